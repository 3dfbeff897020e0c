//! Exact token counts, content hashes, pointers and messages: what every other crate of Larder is written in terms of.
//!
//! Does no IO and reads no clock; knows no content types, recipes or documents.
#![deny(missing_docs)]

pub mod bm25;
pub mod cache;
pub mod hash;
pub mod message;
pub mod parallel;
pub mod pointer;
pub mod tokens;
pub mod words;
