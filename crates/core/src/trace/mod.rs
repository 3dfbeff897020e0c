//! The messages of a conversation or an agent's run: what they cost, what belongs together, what may go first.
//!
//! Pure functions over [`Message`](crate::message::Message); knows no budget, no rendition and no pack. The packer decides, and what it
//! decides keeps to the [`Group`]s: a call and its results are kept or dropped together.

mod coverage;
mod groups;
mod ledger;

pub use coverage::{Coverage, Covered, uncovered};
pub use groups::{Group, GroupKind, PairingFault, eviction_order, groups, pairing_faults};
pub use ledger::Ledger;

/// The newest messages of a conversation that are never touched (R4-5.12).
pub const PROTECTED_MESSAGES: usize = 12;

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
