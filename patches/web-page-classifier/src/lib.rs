//! In place of the crate of this name, which carries 1.3 MB of models that tell the type of a web page and judge an
//! extraction. `larder-condense` sets the type of each page, so that rs-trafilatura never asks for it, and reads no
//! judgement; a build with the original differs in size alone.

/// Length of what [`classify_ml`] is given.
pub const N_NUMERIC_FEATURES: usize = 89;
/// Length of what [`predict_quality`] is given.
pub const N_QUALITY_FEATURES: usize = 27;

/// The types of pages that the original tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageType {
    Article,
    Collection,
    Documentation,
    Forum,
    Listing,
    Product,
    Service,
}

/// Stands for the model: every page is an article, of which it is not sure.
#[must_use]
pub fn classify_ml(_features: &[f64], _title: &str) -> (PageType, f64) {
    (PageType::Article, 0.0)
}

/// Stands for the model: nothing is known of the extraction.
#[must_use]
pub fn predict_quality(_features: &[f64]) -> f64 {
    0.0
}
