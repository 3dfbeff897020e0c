//! Recipes: parsed with source spans ([`RecipeFile`]), then checked as a whole ([`check()`]) to produce values that
//! can be relied upon ([`Recipe`]).
//!
//! Knows tokens and content types. Does not know packs, models, or where the files come from: they arrive as a map
//! from path to bytes.

mod assemble;
mod catalog;
pub(crate) mod check;
mod code;
pub(crate) mod diagnostic;
pub(crate) mod fields;
mod file;
mod inputs;
mod model;
mod outputs;
mod prompts;
mod registry;
mod schema_file;
mod slots;
mod template;
pub(crate) mod yaml;

pub use catalog::{Catalog, RecipeError};
pub use check::{CheckReport, MAX_FILE_BYTES, ProjectFiles, check, check_with, read_text};
pub use code::DiagnosticCode;
pub use diagnostic::{Diagnostic, Severity, SpanEnd, nearest, render_plain, suggest};
pub use file::{KEYS, RecipeFile};
pub use larder_text::{Layer, Mode};
pub use model::*;
pub use registry::REGISTRY_PATH;
pub use schema_file::SchemaFile;
pub use template::{BUILTINS, PromptInputs, RenderedPrompts, TemplateError};

/// Names allowed in `compression.preserve` in addition to `section_0` … `section_6`.
pub const PRESERVE: [&str; 7] = ["tool_errors", "errors", "urls", "prices", "numbers", "dates", "names"];
/// The category whose recipes may omit the user's query (C54).
pub const COMPRESS_CATEGORY: &str = "compress";
