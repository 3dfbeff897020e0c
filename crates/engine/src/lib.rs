//! The engine: recipes packed under a hard token budget, condensed without loss, run, checked and recorded.
//!
//! [`Engine`] combines a project, its models and one user's store. Everything sent to a model goes through its
//! [`run`](Engine::run). Knows no retrieval, turns or command line, and of tools only
//! the interface through which a run calls them.
#![deny(missing_docs)]

pub mod answer;
pub mod background;
pub mod blocking;
mod candidate;
mod compression_recipes;
pub mod condensing;
pub mod config;
pub mod embedding;
mod engine;
mod evidence;
pub mod executor;
pub mod given;
pub mod history;
pub mod inputs;
mod metrics;
mod model_set;
mod opening;
mod packer;
mod prepare;
pub mod project;
mod prompt;
pub mod recipe_tools;
pub mod rehydrate;
pub mod routing;
mod run;
pub mod settings;

pub use self::compression_recipes::MissingRecipe;
pub use self::engine::{Engine, LoadCounter};
pub use self::prepare::PrepareError;
pub use self::settings::RunPolicy;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
