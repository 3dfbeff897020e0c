//! What a process that stays does about its memory and its threads. Knows the allocator and the system, no command.

use std::convert::Infallible;
use std::num::NonZero;
use std::ops::Range;
use std::time::Duration;

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay` of mimalloc 3: milliseconds after which memory that is free goes back to the system.
const PURGE_DELAY: mi_option_t = 15;
/// Long enough that the requests of a conversation, which come one upon the other, find the memory of the one before:
/// to be given a page costs more than to fill it.
const PURGE_AFTER_MS: std::ffi::c_long = 500;

/// Gives memory back soon, and takes it page by page: in huge pages a few small things keep 2 MiB each.
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

/// How often pages of the program that nothing needs now go back to the system.
const PERIOD: Duration = Duration::from_secs(15);

/// Gives back, again and again, the pages of the program itself: the system maps some sixteen for each that is touched,
/// and keeps those of the start forever. What is in use is mapped again at once, from the memory that files are cached
/// in; that is a fraction of a millisecond in each period.
pub async fn give_back_program() -> Infallible {
    let pages = std::env::current_exe().ok().and_then(|program| {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        Some(unwritten(&maps, program.to_str()?))
    });
    loop {
        tokio::time::sleep(PERIOD).await;
        #[cfg(target_os = "linux")]
        pages.iter().flatten().for_each(forget);
    }
}

/// Where the file of the program is mapped and no page is a copy of our own: its code and constants. `maps` is what
/// Linux tells of a process in `smaps`.
fn unwritten(maps: &str, program: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), None);
    for line in maps.lines() {
        if let Some(kib) = line.strip_prefix("Anonymous:") {
            found.extend(at.take().filter(|_| kib.trim() == "0 kB"));
        } else if let Some((range, rest)) = line.split_once(' ').filter(|(range, _)| range.contains('-')) {
            let bounds = range.split_once('-').and_then(|(start, end)| {
                let address = |text| usize::from_str_radix(text, 16).ok();
                Some(address(start)?..address(end)?)
            });
            let kept = rest.starts_with("r-") && rest.ends_with(&format!(" {program}"));
            at = bounds.filter(|_| kept);
        }
    }
    found
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "tells the system about memory by address")]
fn forget(pages: &Range<usize>) {
    use nix::sys::mman::{MmapAdvise, madvise};
    let Some(start) = std::ptr::NonNull::new(pages.start as *mut std::ffi::c_void) else { return };
    // SAFETY: the pages are of a file, may not be written and never were, so whoever reads them next reads the same
    // bytes from the file.
    if let Err(error) = unsafe { madvise(start, pages.len(), MmapAdvise::MADV_DONTNEED) } {
        tracing::debug!(%error, "pages of the program stay");
    }
}

/// Threads that wait for sockets: half of the processors, since the other half condenses and writes. A request that goes
/// from one such thread to another costs more than it gains. `TOKIO_WORKER_THREADS` says otherwise.
pub fn serving_threads() -> Option<usize> {
    let told = std::env::var_os("TOKIO_WORKER_THREADS").is_some();
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    (!told).then_some((processors / 2).max(1))
}

#[cfg(test)]
mod tests {
    use super::unwritten;

    #[test]
    fn only_pages_of_the_program_that_nobody_wrote_are_given_back() {
        let map = |range: &str, rights: &str, file: &str, copied: u32| {
            format!(
                "{range} {rights} 00000000 fe:00 123    {file}\nRss:  88 kB\nAnonymous:  {copied} kB\nVmFlags: rd mr\n"
            )
        };
        let maps = [
            map("1000-3000", "r--p", "/bin/larder", 0),
            map("3000-8000", "r-xp", "/bin/larder", 0),
            map("8000-9000", "r--p", "/bin/larder", 4),
            map("9000-a000", "rw-p", "/bin/larder", 0),
            map("b000-c000", "r--p", "/lib/libc.so.6", 0),
        ];
        assert_eq!(unwritten(&maps.concat(), "/bin/larder"), [0x1000..0x3000, 0x3000..0x8000]);
    }
}
