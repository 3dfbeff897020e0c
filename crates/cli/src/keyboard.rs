//! Lines from standard input, read by a separate thread, so that waiting for one can be cancelled and does not keep
//! the program from ending. Knows nothing of what lines mean.

use std::io::{self, BufRead};
use std::sync::OnceLock;

use tokio::sync::{Mutex, mpsc};

use crate::error::CliError;

/// Standard input, line by line. It is not read before the first line is requested.
#[derive(Default)]
pub struct Keyboard {
    lines: OnceLock<Mutex<mpsc::Receiver<io::Result<String>>>>,
}

impl Keyboard {
    /// The next line; `None` at the end.
    pub async fn line(&self) -> Result<Option<String>, CliError> {
        let line = self.lines.get_or_init(start).lock().await.recv().await.transpose();
        line.map_err(|error| CliError::Fixable(format!("standard input cannot be read: {error}")))
    }
}

/// Starts to read; one line is read ahead.
fn start() -> Mutex<mpsc::Receiver<io::Result<String>>> {
    let (sender, lines) = mpsc::channel(1);
    let reader = std::thread::Builder::new().name("keyboard".to_owned());
    // The thread holds at most one unread line. Without it there are no lines, and the conversation ends.
    let _ = reader.spawn(move || {
        for line in io::stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    Mutex::new(lines)
}
