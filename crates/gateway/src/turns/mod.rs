//! Turns that this gateway runs: one per user at a time, each on its own thread, watched by the caller and by pages.
//! Knows no wire format, no phase, and no document.
//!
//! A client that leaves stops its turn: nothing is paid for an answer that no one waits for, and the turn remains a
//! draft that `resume` continues from its last checkpoint.

mod budget;
mod open;
mod run;
mod running;

pub use open::TurnTools;
pub use run::{StartedTurn, TurnJob, start};
pub use running::{Running, RunningTurns, TurnStream, TurnWatch};
