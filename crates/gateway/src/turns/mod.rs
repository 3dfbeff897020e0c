//! Turns that this gateway runs: one at a time each, on a thread of its own, watched by whoever asked and by pages. Knows
//! no wire format, no phase, and no document.
//!
//! A client that leaves stops its turn where it is: nothing is paid for an answer that nobody waits for, and the turn
//! stays a draft that `resume` goes on with from its last checkpoint. Only the summary of a committed turn goes on
//! behind the reply (C5); it is lost without harm when the gateway stops.

mod open;
mod run;
mod running;

pub use open::Tools;
pub use run::{StartedTurn, TurnJob, start};
pub use running::{Running, RunningTurns, TurnStream, TurnWatch};
