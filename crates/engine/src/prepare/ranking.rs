//! How well each of several documents of one input answers the query, where no caller has said.

use larder_text::rank::RankIndex;

use crate::inputs::InputDocument;

/// What is left of the weight of a document that shares no word with the query.
const LEAST: f64 = 0.25;

/// The relevance of each document: as it was given, or, if all are neutral, by the words that they share with the query,
/// from [`LEAST`] to 1. Passages are neutral on purpose.
pub(super) fn relevance(documents: &[&InputDocument], query: Option<&str>) -> Vec<f64> {
    let given: Vec<f64> = documents.iter().map(|document| document.relevance).collect();
    let is_neutral = |document: &&InputDocument| {
        document.slice.is_none() && (document.relevance - 1.0).abs() < f64::EPSILON
    };
    let Some(query) = query.filter(|_| documents.len() > 1 && documents.iter().all(is_neutral)) else {
        return given;
    };
    let mut index = RankIndex::for_query(query);
    documents.iter().for_each(|document| index.add(&document.text));
    let ranked = index.search(query, 0);
    let Some(best) = ranked.first().map(|best| best.score) else { return given };
    let mut relevance = vec![LEAST; documents.len()];
    for found in ranked {
        relevance[found.passage] = LEAST + (1.0 - LEAST) * found.score / best;
    }
    relevance
}
