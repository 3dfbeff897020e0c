//! Recall: which records of many answer a question, without any model, and what they lead on to within a budget
//! (R1-8, R1-10, R4-4; C90, C91).
//!
//! A record is a short piece of text: a turn of a conversation, a section, a row, a fact. The [`Index`] holds what is
//! needed to find records; texts stay with the caller. [`Index::search`] ranks, [`Index::gather`] fills a budget and
//! follows links. Both are pure: the same records and question give the same order on every machine.
//!
//! Knows words, days, ids and tokens as numbers; does not know where records come from, documents, prompts or models.

mod gather;
mod index;
mod links;
mod when;
mod words;

pub use self::gather::{Gathered, Left, Limits, LinkLimits, Taken, Why};
pub use self::index::{Hit, Index, Query, Record};
pub use self::when::Day;

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
