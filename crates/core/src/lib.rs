//! What a prompt is and how it is made to fit: recipes, the packer, the context policy and output.
//!
//! This crate does no IO. It reaches no async runtime, no HTTP, no SQL, no clock and no environment; everything it needs
//! comes in as a value, and everything it decides goes out as a value. That makes a pack reproducible byte for byte.
//!
//! Modules import in one direction (importer → imported): output → recipe → pack, and policy → pack.
#![deny(missing_docs)]

pub mod output;
pub mod pack;
pub mod policy;
pub mod recipe;
