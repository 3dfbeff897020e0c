//! The progress of a turn: phases, tools and tokens, on standard error if it is a terminal, else in the log.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use larder_agent::turn::{TurnEvent, TurnObserver};

use super::confirm::Display;
use crate::output;

/// Time between two steps of the spinner.
const TICK: Duration = Duration::from_millis(120);

/// Displays the progress of turns. Clones share the display.
#[derive(Clone)]
pub struct Watch {
    bar: ProgressBar,
    turn: Arc<AtomicU32>,
    tokens: Arc<AtomicU64>,
    /// The name of the current phase.
    phase: Arc<Mutex<String>>,
    /// The warnings of the current turn so far: attempts repeat them.
    warnings: Arc<Mutex<BTreeSet<String>>>,
}

impl Watch {
    pub fn new() -> Self {
        let bar = ProgressBar::hidden().with_style(ProgressStyle::default_spinner());
        Self {
            bar,
            turn: Arc::default(),
            tokens: Arc::default(),
            phase: Arc::default(),
            warnings: Arc::default(),
        }
    }

    /// The number of the turn that started last.
    pub fn turn(&self) -> u32 {
        self.turn.load(Ordering::Relaxed)
    }

    /// Clears the line.
    pub fn done(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn start(&self) {
        self.tokens.store(0, Ordering::Relaxed);
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.resume();
    }

    fn show(&self, line: &str) {
        if self.bar.is_hidden() {
            tracing::info!("{line}");
        } else {
            self.bar.suspend(|| output::say(&output::dim(line)));
        }
    }

    fn now(&self, what: &str) {
        let tokens = self.tokens.load(Ordering::Relaxed);
        self.bar.set_message(format!("{what} · {tokens} tokens so far"));
    }

    fn phase_done(&self, number: u8, tokens: u64, millis: u64, text: &str) {
        self.tokens.fetch_add(tokens, Ordering::Relaxed);
        let seconds = millis as f64 / 1000.0;
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner).replace('_', " ");
        self.show(&format!("{number} {phase}: {} · {tokens} tokens · {seconds:.1} s", line(text)));
    }
}

/// The beginning of an untrusted text on one line, without control characters.
fn line(text: &str) -> String {
    super::shortened(&one_line(text))
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|char| !char.is_control()).collect()
}

impl Display for Watch {
    fn pause(&self) {
        self.done();
    }

    fn resume(&self) {
        if std::io::stderr().is_terminal() {
            self.bar.reset();
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(TICK);
        }
    }
}

impl TurnObserver for Watch {
    fn event(&self, event: &TurnEvent) {
        match event {
            TurnEvent::Started { turn, folder } => {
                self.turn.store(*turn, Ordering::Relaxed);
                self.start();
                self.show(&format!("turn {turn} in {folder}"));
            }
            TurnEvent::Phase { number, name, attempt } => {
                let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                self.phase.lock().unwrap_or_else(PoisonError::into_inner).clone_from(name);
                self.now(&format!("{number} {name}{again}"));
            }
            TurnEvent::PhaseDone { number, tokens, millis, text } => {
                self.phase_done(*number, *tokens, *millis, text);
            }
            TurnEvent::Tool { call } => {
                self.now(&line(call));
                self.show(&format!("  {}", line(call)));
            }
            TurnEvent::ToolDone { status, summary, bytes, millis } => {
                self.show(&format!("    {status} {} · {bytes} bytes · {millis} ms", line(summary)));
            }
            TurnEvent::Compacted { section, from, to } => {
                self.show(&format!("  §{section} condensed from {from} to {to} tokens"));
            }
            TurnEvent::Warning { text } => {
                let text = one_line(text);
                if self.warnings.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
                    self.bar.suspend(|| output::say(&format!("warning: {text}")));
                }
            }
            // Printed at the end, or part of the line of the phase.
            TurnEvent::Gathered { .. }
            | TurnEvent::Answer { .. }
            | TurnEvent::Clarify { .. }
            | TurnEvent::Finished { .. } => {}
        }
    }
}
