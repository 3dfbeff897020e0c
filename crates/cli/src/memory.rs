//! How much memory and how many threads a long-running process uses. Knows the allocator and the system, no command.

use std::num::NonZero;

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay` of mimalloc 3: milliseconds after which free memory is returned to the system.
const PURGE_DELAY: mi_option_t = 15;
/// Long enough for the next request of a conversation to reuse the memory of the one before: a new page costs more than
/// filling it.
const PURGE_AFTER_MS: std::ffi::c_long = 500;

/// Returns free memory to the system soon, and allocates by pages: with huge pages, a few small objects keep 2 MiB
/// each.
#[allow(unsafe_code, reason = "the allocator's options are set through its C interface")]
pub fn keep_small() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_thp_disable(true) {
        tracing::debug!(%error, "huge pages stay allowed");
    }
    // SAFETY: stores a number that the allocator reads whenever it frees; the option exists in the version that
    // Cargo.lock pins.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_AFTER_MS) };
}

/// Threads for socket IO: half of the processors, since the other half condenses and writes. Where these threads are as many
/// as the processors, one that is interrupted holds up the other, which waits for its events: the slowest requests took twice
/// as long with two threads on two processors. `TOKIO_WORKER_THREADS` overrides this.
pub fn serving_threads() -> Option<usize> {
    let told = std::env::var_os("TOKIO_WORKER_THREADS").is_some();
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    (!told).then_some((processors / 2).max(1))
}
