//! Exact token counts, content hashes, pointers, messages and JSON spans: the vocabulary types of every other Larder
//! crate.
//!
//! Does no IO and reads no clock; knows no content types, recipes or documents.
#![deny(missing_docs)]

pub mod abbreviation;
pub mod attribute_price;
pub mod bm25;
pub mod cache;
pub mod call_links;
pub mod chunk;
pub mod code_state;
pub mod elements;
pub mod entities;
pub mod family;
pub mod fields;
pub mod file_calls;
pub mod frames;
pub mod gguf;
pub mod hash;
pub mod json;
mod layer;
pub mod lines;
pub mod markup;
pub mod message;
mod mode;
pub mod model_id;
pub mod months;
pub mod names;
pub mod page_counters;
pub mod page_tables;
pub mod parallel;
pub mod pattern;
pub mod picture;
pub mod pointer;
pub mod price;
mod processor;
pub mod provider;
pub mod query;
pub mod rank;
pub mod sections;
pub mod seen_text;
pub mod select;
pub mod source;
pub mod sse;
pub mod table_spans;
pub mod terminal;
pub mod time;
pub mod tokens;
pub mod transcript;
pub mod usage;
pub mod words;

pub use layer::Layer;
pub use mode::Mode;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
