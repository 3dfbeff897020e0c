//! Vectors of turns and research, and those nearest to a query. Does not know how vectors are computed.

use std::ops::RangeInclusive;

use super::UserDocuments;
use super::index::{self, Subject, Wanted};
use super::types::{EmbeddingText, ResearchRow, TextVector};
use larder_disk::StoreError;

/// How many times more research is examined than returned, since research on one topic often repeats itself.
const COPIES: usize = 20;

/// Vectors of the turns and research of one user; from [`UserDocuments::vectors`].
#[derive(Debug, Clone, Copy)]
pub struct Vectors<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl Vectors<'_> {
    /// The texts about turns of these numbers and their research that lack a vector of `model`, newest first.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn missing(&self, model: &str, turns: RangeInclusive<u32>) -> Result<Vec<EmbeddingText>, StoreError> {
        self.docs.index().read(|tx| index::texts_without_vector(tx, model, &turns))
    }

    /// Stores vectors of `model`. Deleting the index loses them; rebuilding it keeps those whose text still exists.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn insert(&self, model: &str, vectors: &[(EmbeddingText, Vec<f32>)]) -> Result<(), StoreError> {
        self.docs.index().write(|tx| index::insert_vectors(tx, model, vectors))
    }

    /// Drops the vectors of all models but one.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn retain_model(&self, model: &str) -> Result<(), StoreError> {
        self.docs.index().write(|tx| index::retain_vectors_of(tx, model))
    }

    /// The turns before turn `before` whose texts are nearest to a text, nearest first and newer ones first among
    /// equals: at most `limit`, each with its cosine, which is at least `floor`.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn near_turns(
        &self,
        vector: &TextVector,
        before: u32,
        floor: f64,
        limit: usize,
    ) -> Result<Vec<(u32, f64)>, StoreError> {
        let found =
            self.docs.index().read(|tx| index::near(tx, Subject::Turns, vector, before, floor, limit))?;
        Ok(found.into_iter().map(|(_, number, score)| (number, score)).collect())
    }

    /// As [`near_turns`](Self::near_turns), for research; superseded research is replaced by its successor.
    ///
    /// # Errors
    /// The index or the main database cannot be read.
    pub fn near_research(
        &self,
        vector: &TextVector,
        before: u32,
        floor: f64,
        limit: usize,
    ) -> Result<Vec<ResearchRow>, StoreError> {
        let rows = self.docs.index().read(|tx| {
            let mut rows: Vec<ResearchRow> = Vec::new();
            let most = limit.saturating_mul(COPIES);
            for (document, ..) in index::near(tx, Subject::Research, vector, before, floor, most)? {
                if rows.len() == limit {
                    break;
                }
                let Some(row) = index::research(tx, Wanted::Document(&document), 1)?.pop() else { continue };
                // The research that superseded it replaces it (R1-12.5).
                let newest = match &row.superseded_by {
                    Some(newer) => index::research(tx, Wanted::Just(&row.topic), 1)?
                        .pop()
                        .filter(|newest| newest.id == *newer && newest.turn < before),
                    None => None,
                };
                let row = newest.unwrap_or(row);
                if rows.iter().all(|known| known.document != row.document) {
                    rows.push(row);
                }
            }
            Ok(rows)
        })?;
        self.docs.catalog().with_uses(rows)
    }
}
