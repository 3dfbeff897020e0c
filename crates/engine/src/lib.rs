//! The engine: recipes packed under a hard token budget, condensed without loss, run, checked and recorded.
//!
//! [`Engine`] puts a project, its models and one user's store together. Everything that reaches a model goes through its
//! [`run`](Engine::run). Knows neither retrieval, tools nor turns, and no command line.
#![deny(missing_docs)]

pub mod answer;
pub mod condensing;
pub mod config;
pub mod embedding;
mod engine;
pub mod executor;
pub mod inputs;
mod packer;
mod prepare;
pub mod project;
pub mod settings;

pub use self::engine::{Engine, LoadCounter, RunPolicy};
pub use self::prepare::PrepareError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
