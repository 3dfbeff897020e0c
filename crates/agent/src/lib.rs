//! Answers questions: [`ask`] over files and folders, and [`turn`], one question through eight phases over one
//! `context.md`.
//!
//! Both drive the engine, retrieval and tools; neither knows a terminal, HTTP, or how a document is stored.
#![deny(missing_docs)]

pub mod ask;
pub mod turn;
