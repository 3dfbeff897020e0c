//! How much memory and how many threads a long-running process uses. Knows the allocator and the system, no command.

use std::num::NonZero;
#[cfg(target_os = "linux")]
use std::time::Duration;

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay` of mimalloc 3: milliseconds after which a thread that allocates or frees returns free memory to the
/// system.
const PURGE_DELAY: mi_option_t = 15;
/// To return 10 MB takes some 2 ms, for which a request would wait, and a new page costs more than filling it. So on Linux memory
/// is returned while the process is idle, and only after this time while it is not.
const PURGE_AFTER_MS: std::ffi::c_long = if cfg!(target_os = "linux") { 5_000 } else { 500 };
/// How often the processor time of the process is read.
#[cfg(target_os = "linux")]
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The most processor time since the last reading with which the process is idle.
#[cfg(target_os = "linux")]
const IDLE_TIME: Duration = Duration::from_micros(2_500);

/// Returns free memory to the system soon, and allocates by pages: with huge pages, a few small objects keep 2 MiB
/// each.
#[allow(unsafe_code, reason = "the allocator's options are set through its C interface")]
pub fn keep_small() {
    #[cfg(target_os = "linux")]
    {
        if let Err(error) = nix::sys::prctl::set_thp_disable(true) {
            tracing::debug!(%error, "huge pages stay allowed");
        }
        let thread = std::thread::Builder::new().name("memory".to_owned()).spawn(return_when_idle);
        if let Err(error) = thread {
            tracing::warn!(%error, "free memory is returned later");
        }
    }
    // SAFETY: stores a number that the allocator reads whenever it frees; the option exists in the version that
    // Cargo.lock pins.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_AFTER_MS) };
}

/// Returns free memory to the system each time the process has become idle: twice, because threads that wait for work at the
/// first time may have ended, and freed their memory, by the second.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the allocator returns memory through its C interface")]
fn return_when_idle() {
    // The allocator does nothing for a thread that has never allocated.
    drop(std::hint::black_box(Box::new(0_u8)));
    let (mut before, mut idle_looks) = (Duration::ZERO, 0_u32);
    loop {
        std::thread::sleep(LOOK_EVERY);
        let Ok(used) = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID.now().map(Duration::from) else { return };
        let is_busy = used.saturating_sub(before) > IDLE_TIME;
        idle_looks = if is_busy { 0 } else { idle_looks.saturating_add(1) };
        if matches!(idle_looks, 1 | 2) {
            // SAFETY: any thread may call it at any time.
            unsafe { libmimalloc_sys::mi_collect(true) };
        }
        before = used;
    }
}

/// Threads for socket IO: half of the processors, since the other half condenses and writes. Where these threads are as many
/// as the processors, one that is interrupted holds up the other, which waits for its events: the slowest requests took twice
/// as long with two threads on two processors. `TOKIO_WORKER_THREADS` overrides this.
pub fn serving_threads() -> Option<usize> {
    let told = std::env::var_os("TOKIO_WORKER_THREADS").is_some();
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    (!told).then_some((processors / 2).max(1))
}
