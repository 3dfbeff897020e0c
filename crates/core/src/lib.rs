//! What a prompt is and how it is made to fit: recipes, the packer, the context policy, the router and output
//! parsing.
//!
//! This crate does no IO. It uses no async runtime, HTTP, SQL, clock or environment; all inputs and decisions are
//! values, which makes a pack reproducible byte for byte.
//!
//! Modules import in one direction (importer → imported): output → recipe → pack, route → recipe, and policy → pack.
#![deny(missing_docs)]

pub mod output;
pub mod pack;
pub mod policy;
pub mod recipe;
pub mod route;
