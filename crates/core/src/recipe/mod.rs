//! Recipes: parsed with source spans , checked as a whole , and then relied upon
//! ([`Recipe`]).
//!
//! Knows tokens and content types. Does not know packs, models, or where the files come from: they arrive as a map
//! from path to bytes.

mod model;

pub use model::*;

/// What `compression.preserve` may name besides `section_0` … `section_6` (R0-10.12, C30).
pub const PRESERVE: [&str; 7] = ["tool_errors", "errors", "urls", "prices", "numbers", "dates", "names"];
