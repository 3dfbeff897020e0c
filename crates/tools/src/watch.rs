//! A watch over the programs of a call: a process that ends them when the call does, or when this process does, however it
//! is killed. It waits for the end of its input, which the system closes.
//!
//! One outside leads the process group that its program is started in, so no moment of the program is without it. One in
//! the sandbox of a call ends everything there, whatever session, process group or environment it has: signals from
//! there reach nothing else, or are refused.

use std::io::PipeWriter;
use std::time::Duration;

use tokio::process::Child;

/// Time for a watch to end.
const GRACE: Duration = Duration::from_secs(10);

/// Such a process. Dropped, it ends what it watches.
pub(super) struct Watch {
    process: Child,
    /// Its end is what the process waits for.
    input: PipeWriter,
}

impl Watch {
    /// A watch over everything in the sandbox that this thread has entered, which confines signals. `None` if it cannot
    /// be started.
    #[cfg(target_os = "linux")]
    pub(super) fn inside() -> Option<Self> {
        waiting("-1")
    }

    /// A watch over a process group of its own, which nothing else is in yet. `None` if it cannot be started.
    pub(super) fn over_group() -> Option<Self> {
        waiting("0")
    }

    /// The number of its process group.
    pub(super) fn group(&self) -> Option<i32> {
        self.process.id()?.try_into().ok()
    }

    /// Kills what is in its process group at once, itself included.
    pub(super) fn kill_group(&self) {
        #[cfg(unix)]
        if let Some(group) = self.group() {
            // Until the watch is waited for, no other group has its number.
            let _ = nix::sys::signal::killpg(
                nix::unistd::Pid::from_raw(group),
                nix::sys::signal::Signal::SIGKILL,
            );
        }
    }

    /// Ends what it watches, and itself.
    pub(super) async fn end(self) {
        let Self { mut process, input } = self;
        drop(input);
        if tokio::time::timeout(GRACE, process.wait()).await.is_err() {
            tracing::warn!("programs of a call may go on: what ends them takes longer than {GRACE:?}");
        }
    }
}

/// A shell that sends SIGKILL to this process number when its input ends: 0 is its own group, -1 every process that it may
/// signal.
#[cfg(unix)]
fn waiting(whom: &str) -> Option<Watch> {
    use std::process::Stdio;

    let (output, input) = std::io::pipe().ok()?;
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.args(["-c", "read -r line; kill -s KILL -- \"$1\"", "watch", whom]);
    shell.env_clear().current_dir("/").process_group(0);
    shell.stdin(Stdio::from(output)).stdout(Stdio::null()).stderr(Stdio::null());
    crate::process::close_inherited(&mut shell);
    Some(Watch { process: shell.spawn().ok()?, input })
}

/// Windows ends the programs of a job with the last handle of it.
#[cfg(not(unix))]
fn waiting(_: &str) -> Option<Watch> {
    None
}
