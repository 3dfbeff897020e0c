//! The runtime: drives the core with models and stores. The library that applications embed.
#![deny(missing_docs)]

pub mod project;
