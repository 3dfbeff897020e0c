//! Analyses texts: their sections, chunks and salient spans, and how well passages answer a query.
//!
//! Knows no condenser and no target.

pub(crate) mod abbreviation;
pub mod chunk;
pub(crate) mod months;
pub(crate) mod pattern;
pub(crate) mod query_prefilter;
pub mod rank;
pub(crate) mod relevance;
pub mod salience;
