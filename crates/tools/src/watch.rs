//! A watch over the programs of a call: a process that ends them when the call does, or when this process does, however it
//! is killed. It waits for the end of its input, which the system closes.
//!
//! A watch in the sandbox of a call ends everything there, whatever session, process group or environment it has: signals
//! from there reach nothing else, or are refused. One outside ends a process group.

use std::time::Duration;

use tokio::process::Child;

/// Time for a watch to end.
const GRACE: Duration = Duration::from_millis(500);

/// Such a process.
pub(super) struct Watch {
    process: Child,
    is_inside: bool,
}

impl Watch {
    /// A watch over everything in the sandbox that this thread has entered, which confines signals. `None` if it cannot
    /// be started.
    #[cfg(target_os = "linux")]
    pub(super) fn inside() -> Option<Self> {
        Some(Self { process: waiting("-1", false)?, is_inside: true })
    }

    /// A watch over the process group of this process. `None` if it cannot be started.
    pub(super) fn of_group(leader: u32) -> Option<Self> {
        Some(Self { process: waiting(&format!("-{leader}"), true)?, is_inside: false })
    }

    /// Ends a watch: what is in its sandbox with it.
    pub(super) async fn end(mut self) {
        if !self.is_inside {
            // First of all: once its program has ended, the number of the group may be another one's.
            let _ = self.process.start_kill();
        }
        drop(self.process.stdin.take());
        let _ = tokio::time::timeout(GRACE, self.process.wait()).await;
    }
}

/// A shell that kills `whom` at the end of its input.
#[cfg(unix)]
fn waiting(whom: &str, kill_on_drop: bool) -> Option<Child> {
    use std::process::Stdio;

    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.args(["-c", "read -r line; kill -s KILL -- \"$1\"", "watch", whom]);
    shell.env_clear().current_dir("/").process_group(0).kill_on_drop(kill_on_drop);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

/// Windows ends the programs of a job with the last handle of it.
#[cfg(not(unix))]
fn waiting(_: &str, _: bool) -> Option<Child> {
    None
}
