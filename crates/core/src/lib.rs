//! What a prompt is and how it is made to fit: the pure heart of Larder.
//!
//! This crate does no IO. It reaches no async runtime, no HTTP, no SQL, no clock and no environment; everything
//! it needs comes in as a value, and everything it decides goes out as a value. That is what makes a pack
//! reproducible byte for byte.
//!
//! Inside the crate the import direction is tokens → content → {recall, recipe, document, trace} → pack → output, with
//! policy over pack; the leaf modules `beside`, `hash`, `pointer` and `message` may be used by all.
#![deny(missing_docs)]

pub mod beside;
pub mod content;
pub mod document;
pub mod hash;
pub mod message;
pub mod output;
pub mod pack;
pub mod pointer;
pub mod policy;
pub mod recall;
pub mod recipe;
pub mod tokens;
pub mod trace;
