//! A watch over the programs of a call: a process that ends them when the call does, or when this process does, however it
//! is killed. It waits for the end of its input, which the system closes.
//!
//! A watch in the sandbox of a call ends everything there, whatever session, process group or environment it has: signals
//! from there reach nothing else, or are refused. One outside ends a process group.

use std::io::{PipeWriter, Write as _};
use std::time::Duration;

use tokio::process::Child;

/// Time for a watch to end.
const GRACE: Duration = Duration::from_millis(500);

/// Such a process.
pub(super) struct Watch {
    process: Child,
    /// First it is told whom to end; then it waits for the end.
    input: PipeWriter,
    is_inside: bool,
}

impl Watch {
    /// A watch over everything in the sandbox that this thread has entered, which confines signals. `None` if it cannot
    /// be started.
    #[cfg(target_os = "linux")]
    pub(super) fn inside() -> Option<Self> {
        let (process, input) = waiting(false)?;
        Self { process, input, is_inside: true }.over(1)
    }

    /// A watch over nothing yet: started before a program, so that no moment of the program is without it. `None` if it
    /// cannot be started.
    pub(super) fn ready() -> Option<Self> {
        let (process, input) = waiting(true)?;
        Some(Self { process, input, is_inside: false })
    }

    /// This watch over the process group of this process. `None` if it has ended.
    pub(super) fn over(mut self, leader: u32) -> Option<Self> {
        self.input.write_all(format!("-{leader}\n").as_bytes()).ok()?;
        Some(self)
    }

    /// Ends a watch: what is in its sandbox with it.
    pub(super) async fn end(mut self) {
        if !self.is_inside {
            // First of all: once its program has ended, the number of the group may be another one's.
            let _ = self.process.start_kill();
        }
        drop(self.input);
        let _ = tokio::time::timeout(GRACE, self.process.wait()).await;
    }
}

/// A shell that reads whom to kill, and does so at the end of its input.
#[cfg(unix)]
fn waiting(kill_on_drop: bool) -> Option<(Child, PipeWriter)> {
    use std::process::Stdio;

    let (output, input) = std::io::pipe().ok()?;
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.args(["-c", "read -r whom && read -r line; kill -s KILL -- \"$whom\"", "watch"]);
    shell.env_clear().current_dir("/").process_group(0).kill_on_drop(kill_on_drop);
    shell.stdin(Stdio::from(output)).stdout(Stdio::null()).stderr(Stdio::null());
    Some((shell.spawn().ok()?, input))
}

/// Windows ends the programs of a job with the last handle of it.
#[cfg(not(unix))]
fn waiting(_: bool) -> Option<(Child, PipeWriter)> {
    None
}
