//! Answers questions: [`ask`] over files and folders, and [`turn`], one question through eight phases over one
//! `context.md`. [`recipe_tools`] lets recipes outside turns call what turns call.
//!
//! All drive the engine, retrieval and tools; none knows a terminal, HTTP, or how a document is stored.
#![deny(missing_docs)]

pub mod ask;
pub mod recipe_tools;
pub mod turn;
