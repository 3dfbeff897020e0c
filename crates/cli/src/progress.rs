//! Progress of long work, shown on standard error if it is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use larder_core::pack::layout;
use larder_engine::executor::{CallReceipt, ProgressObserver, RunReceipt};
use larder_text::pointer::Pointer;

use crate::output;
use crate::turns::confirm::Display;

/// How a stage without a known end is shown: models may take a minute without any other sign.
const STAGE: &str = "{spinner} {msg} {elapsed}";

/// Time between two steps of a spinner.
const TICK: Duration = Duration::from_millis(120);

/// A spinner with the stage of a run. Clones share it.
#[derive(Clone)]
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

impl Display for Spinner {
    fn pause(&self) {
        self.bar.disable_steady_tick();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn resume(&self) {
        if std::io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(TICK);
        }
    }
}

impl ProgressObserver for Spinner {
    fn stage(&self, text: &str) {
        if let Ok(style) = ProgressStyle::with_template(STAGE) {
            self.bar.set_style(style);
        }
        self.bar.reset_elapsed();
        self.bar.set_message(output::visible(text));
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

    fn called(&self, call: &CallReceipt) {
        let shown = |name: &str, pointer: &Pointer| format!("\n  {name}: {pointer}");
        let pointer = call.pointer.as_ref().map(|pointer| format!(" · {pointer}")).unwrap_or_default();
        let files: String = call.files.iter().map(|(name, pointer)| shown(name, pointer)).collect();
        let line = format!("{}: {} {}{pointer}{files}", call.call, call.status, call.summary);
        self.bar.suspend(|| output::say(&output::dim(&output::visible(&line))));
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
    bar.enable_steady_tick(TICK);
    bar
}

/// A bar for work in steps until it is dropped. It is there from the beginning, because preparing the first step may take
/// long, too, and stays at the end of a stage, because the next one may have further steps.
pub fn steps(label: &str) -> impl Fn(u64, u64) + use<> {
    steps_on(
        if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        },
        label,
    )
}

fn steps_on(target: ProgressDrawTarget, label: &str) -> impl Fn(u64, u64) + use<> {
    let bar = ProgressBar::with_draw_target(None, target).with_finish(ProgressFinish::AndClear);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.set_message(label.to_owned());
    bar.enable_steady_tick(TICK);
    move |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    }
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
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal that keeps what is written to it.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn taken(&self) -> String {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn work_in_steps_is_shown_before_its_first_step() {
        let screen = Screen::default();
        let bar = steps_on(ProgressDrawTarget::term_like(Box::new(screen.clone())), "replaying");
        let began = std::time::Instant::now();
        let shows = |text: &str| {
            let mut shown = String::new();
            while !shown.contains(text) && began.elapsed() < Duration::from_secs(60) {
                std::thread::yield_now();
                shown += &screen.taken();
            }
            assert!(shown.contains(text), "{shown}");
        };
        shows("replaying");
        bar(2, 2);
        shows("2/2");
        bar(3, 4);
        shows("3/4");
    }

    #[test]
    fn a_terminal_shows_how_long_a_model_has_taken_and_the_bytes_read() {
        let (screen, bar) = (Screen::default(), spinner());
        bar.disable_steady_tick();
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        let spinner = Spinner { bar, explain: false };
        spinner.stage("asking main");
        spinner.bar.force_draw();
        let shown = screen.taken();
        assert!(shown.contains("asking main 0s"), "{shown}");
        spinner.progress(3_000, 10_000);
        spinner.bar.force_draw();
        let shown = screen.taken();
        assert!(shown.contains("asking main") && shown.contains("2.93 KiB/9.77 KiB"), "{shown}");
    }
}
