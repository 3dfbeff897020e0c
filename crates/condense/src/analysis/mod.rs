//! Analyses texts: their salient spans, and how well passages answer a query.
//!
//! Knows no condenser and no target.

pub(crate) mod relevance;
pub mod salience;

/// A hash that is equal for texts that differ only in numbers.
pub(crate) fn template(line: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&line.bytes().filter(|byte| !byte.is_ascii_digit()).collect::<Vec<_>>())
}
