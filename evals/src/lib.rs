//! Measures of Larder's condensing and recall: quality on texts by other people, speed, and what no input may break.
//!
//! Reads corpora that are not part of this repository, in place; knows Larder by its public interface only. Nothing
//! here ships.
#![deny(missing_docs)]

pub mod corpora;
pub mod fuzz;
pub mod made;
pub mod measure;
pub mod peer;
pub mod pictures;
pub mod report;
pub mod suites;

/// Any failure that ends a command: what failed and why.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
