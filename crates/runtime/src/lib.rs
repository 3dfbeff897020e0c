//! Larder as a library: recipes packed under a hard token budget, condensed without loss, run, checked, recorded.
//!
//! [`engine::Engine`] drives `larder-core` with models and a store. Everything that reaches a model goes through
//! its [`run`](engine::Engine::run).
#![deny(missing_docs)]

pub mod ask;
pub mod condensing;
pub mod config;
pub mod embedding;
pub mod engine;
pub mod executor;
pub mod gather;
pub mod inputs;
mod packer;
mod prepare;
pub mod project;
pub mod tools;
pub mod turn;

pub use prepare::PrepareError;
