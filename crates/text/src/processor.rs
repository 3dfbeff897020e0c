//! The processor that a thread is on. Knows no work.

/// The processor of a thread that woke others. Linux often wakes a worker on the processor of the thread that has work for it,
/// which then stands still although another processor is idle.
#[derive(Clone, Copy)]
pub(crate) struct Processor(#[cfg(target_os = "linux")] Option<usize>);

impl Processor {
    pub(crate) fn current() -> Self {
        Self(
            #[cfg(target_os = "linux")]
            nix::sched::sched_getcpu().ok(),
        )
    }

    /// Moves the calling thread to another processor, if it is on this one and may use others, until the result is dropped.
    pub(crate) fn leave(self) -> Option<AwayFrom> {
        #[cfg(target_os = "linux")]
        {
            use nix::sched::{sched_getaffinity, sched_setaffinity};
            if self.0.is_none() || self.0 != Self::current().0 {
                return None;
            }
            let allowed = sched_getaffinity(THIS_THREAD).ok()?;
            let mut others = allowed;
            others.unset(self.0?).ok()?;
            // Refused if no other is left.
            sched_setaffinity(THIS_THREAD, &others).ok()?;
            Some(AwayFrom { allowed })
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

#[cfg(target_os = "linux")]
const THIS_THREAD: nix::unistd::Pid = nix::unistd::Pid::from_raw(0);

/// Gives the thread back the processors that it may use, when dropped.
pub(crate) struct AwayFrom {
    #[cfg(target_os = "linux")]
    allowed: nix::sched::CpuSet,
}

impl Drop for AwayFrom {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        nix::sched::sched_setaffinity(THIS_THREAD, &self.allowed).ok();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_processor_and_may_come_back() {
        let allowed = || nix::sched::sched_getaffinity(THIS_THREAD).unwrap();
        let before = allowed();
        let here = Processor::current();
        match here.leave() {
            Some(_away) => assert_ne!(Processor::current().0, here.0),
            // Moved meanwhile, or there is no other.
            None => assert_eq!(allowed(), before),
        }
        assert_eq!(allowed(), before);
    }
}
