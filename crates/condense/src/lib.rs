//! Content types, salient spans and condensing: makes texts smaller without losing anything.
//!
//! [`condense`] fits a text into a target number of tokens, with a pointer to the original and to each gap. Content
//! types are in `types/`, the shared engine in `engine/`, the analysis of texts in `analysis/`.
//!
//! Knows tokens and pointers; does not know recipes, documents' meaning, packs or models.
#![deny(missing_docs)]

mod analysis;
mod condense;
mod condensed;
mod content_type;
mod engine;
mod explanation;
mod request;
pub mod rewrite;
mod truncate;
mod types;

pub use self::analysis::salience;
pub use self::condense::{condense, condense_in_view, essential, explain};
pub use self::condensed::{Author, CondenseError, Condensed, Gap, GapUnit, Probes};
pub use self::content_type::ContentType;
pub use self::engine::job::required_pointers;
pub use self::explanation::{Explanation, Reason, UnitOutcome, UnitReason, UnitScore};
pub use self::request::{CondenseRequest, KnownText, ReaderView};
pub use self::truncate::truncate;
pub use self::types::detect::detect;
pub use self::types::html::{PageText, WebPage, web_page};
pub use self::types::{GRAMMARS, by_extension, structure_of};
pub use larder_text::json::terse as terse_json;
pub use larder_text::rank;

/// Incremented whenever the same request would produce a different text; part of every cache key of a condensed text.
pub const CONDENSER_VERSION: u32 = 14;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
