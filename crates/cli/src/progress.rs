//! Progress of long work, shown on standard error if it is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use larder_core::pack::layout;
use larder_engine::executor::{ProgressObserver, RunReceipt};

use crate::output;

/// A spinner with the stage of a run.
pub struct Spinner {
    bar: ProgressBar,
    explain: bool,
}

impl Spinner {
    /// Starts the spinner; `explain` prints the layout of each prompt before it is sent.
    pub fn new(explain: bool) -> Self {
        Self { bar: spinner(), explain }
    }

    /// Clears the line.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

impl ProgressObserver for Spinner {
    fn stage(&self, text: &str) {
        self.bar.set_style(ProgressStyle::default_spinner());
        self.bar.set_message(text.to_owned());
        if self.bar.is_hidden() {
            tracing::info!("{text}");
        }
    }

    fn progress(&self, done: u64, total: u64) {
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}") {
            self.bar.set_style(style);
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    fn packed(&self, receipt: &RunReceipt) {
        if self.explain {
            self.bar.suspend(|| output::say(&layout(&receipt.receipt)));
        }
    }
}

/// A spinner that moves while work is going on.
pub fn spinner() -> ProgressBar {
    let bar =
        if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// A bar for a transfer of known or unknown length.
pub fn transfer(label: &str) -> impl FnMut(u64, u64) + Send + use<> {
    let bar = if std::io::stderr().is_terminal() { ProgressBar::no_length() } else { ProgressBar::hidden() };
    let style = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.set_message(label.to_owned());
    move |done, total| {
        bar.set_length(total);
        bar.set_position(done);
        if done >= total {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_shows_the_stage_and_the_bytes_read() {
        let spinner = Spinner::new(false);
        spinner.stage("asking main");
        assert_eq!(spinner.bar.message(), "asking main");
        spinner.progress(3, 10);
        assert_eq!((spinner.bar.position(), spinner.bar.length()), (3, Some(10)));
    }
}
