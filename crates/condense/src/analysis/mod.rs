//! Analyses texts: their salient spans, and how well passages answer a query.
//!
//! Knows no condenser and no target.

pub(crate) mod relevance;
pub mod salience;
