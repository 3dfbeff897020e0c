//! Lines from standard input, read by a thread of their own: waiting for one can be given up, and a program that ends
//! does not wait for it. Knows nothing of what lines mean.

use std::io::{self, BufRead};
use std::sync::OnceLock;

use tokio::sync::{Mutex, mpsc};

use crate::error::CliError;

/// Standard input, line by line. It is not touched before the first line is wanted.
#[derive(Default)]
pub struct Keyboard {
    lines: OnceLock<Mutex<mpsc::Receiver<io::Result<String>>>>,
}

impl Keyboard {
    /// The next line; none at the end.
    pub async fn line(&self) -> Result<Option<String>, CliError> {
        let line = self.lines.get_or_init(start).lock().await.recv().await.transpose();
        line.map_err(|error| CliError::Fixable(format!("standard input cannot be read: {error}")))
    }
}

/// Starts to read; one line is read ahead.
fn start() -> Mutex<mpsc::Receiver<io::Result<String>>> {
    let (sender, lines) = mpsc::channel(1);
    let reader = std::thread::Builder::new().name("keyboard".to_owned());
    // It holds nothing but a line that nobody has read. Without it there are no lines, and the conversation ends.
    let _ = reader.spawn(move || {
        for line in io::stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    Mutex::new(lines)
}
