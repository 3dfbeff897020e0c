//! The processor that a thread is on. Knows no work.

#[cfg(target_os = "linux")]
use std::sync::LazyLock;

#[cfg(target_os = "linux")]
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};

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

    /// Moves the calling thread to another processor, if it is on this one and may use others. It may come back.
    pub(crate) fn leave(self) {
        #[cfg(target_os = "linux")]
        // The usual processors are found out before this thread is limited to others, as threads inherit their limits.
        if let (Some(here), true) = (self.0, self.0 == Self::current().0)
            && let Some(usual) = &*USUAL
            && let Ok(mut others) = sched_getaffinity(THIS_THREAD)
            && others.unset(here).is_ok()
            // Refused if no other is left.
            && sched_setaffinity(THIS_THREAD, &others).is_ok()
        {
            sched_setaffinity(THIS_THREAD, usual).ok();
        }
    }
}

#[cfg(target_os = "linux")]
const THIS_THREAD: nix::unistd::Pid = nix::unistd::Pid::from_raw(0);

/// What a thread of this process asks for. All processors, of which the system takes those of the process's group, now and when
/// the group gets others; or those that the process was limited to when it started.
#[cfg(target_os = "linux")]
static USUAL: LazyLock<Option<CpuSet>> = LazyLock::new(|| {
    let find = || {
        let inherited = sched_getaffinity(THIS_THREAD)?;
        let mut all = CpuSet::new();
        (0..CpuSet::count()).try_for_each(|processor| all.set(processor))?;
        sched_setaffinity(THIS_THREAD, &all)?;
        let is_group = sched_getaffinity(THIS_THREAD)? == inherited;
        nix::Result::Ok(if is_group { all } else { inherited })
    };
    // On a thread of its own, which ends.
    std::thread::spawn(find).join().ok()?.ok()
});

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_processor_and_may_come_back() {
        let allowed = || sched_getaffinity(THIS_THREAD).unwrap();
        let before = allowed();
        let others = (0..CpuSet::count()).filter(|&one| before.is_set(one).unwrap()).count() - 1;
        let left = (0..100).any(|_| {
            let here = Processor::current();
            here.leave();
            Processor::current().0 != here.0
        });
        assert_eq!(left, others > 0);
        assert_eq!(allowed(), before);
    }
}
