//! Vectors of what turns and research say, and those nearest to a query. Who makes vectors is nobody's business here.

use std::ops::RangeInclusive;

use super::UserDocuments;
use super::index::{self, Of, Wanted};
use super::types::{EmbeddingText, ResearchRow, TextVector};
use crate::error::StoreError;

/// Research on one topic may say the same again and again: so many times as many are looked at as are wanted.
const COPIES: usize = 20;

impl UserDocuments {
    /// What turns of these numbers and their research say in short, newest first, as far as no vector of `model` is kept
    /// for it.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn texts_without_vector(
        &self,
        model: &str,
        turns: RangeInclusive<u32>,
    ) -> Result<Vec<EmbeddingText>, StoreError> {
        self.index().read(|tx| index::texts_without_vector(tx, model, &turns))
    }

    /// Keeps vectors that `model` made. An index that was deleted loses them, and they have to be made anew; one that is
    /// built anew keeps those of texts that still stand in documents.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn insert_vectors(
        &self,
        model: &str,
        vectors: &[(EmbeddingText, Vec<f32>)],
    ) -> Result<(), StoreError> {
        self.index().write(|tx| index::insert_vectors(tx, model, vectors))
    }

    /// Drops the vectors of all models but one.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn retain_vectors_of(&self, model: &str) -> Result<(), StoreError> {
        self.index().write(|tx| index::retain_vectors_of(tx, model))
    }

    /// The turns before turn `before` whose texts are nearest to a text, nearest first and newer ones first among equals:
    /// at most `limit`, each with its cosine, which is `floor` or more.
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
        let found = self.index().read(|tx| index::near(tx, Of::Turns, vector, before, floor, limit))?;
        Ok(found.into_iter().map(|(_, number, score)| (number, score)).collect())
    }

    /// As [`near_turns`](Self::near_turns), for the research of turns; in place of superseded research what took its
    /// place.
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
        let rows = self.index().read(|tx| {
            let mut rows: Vec<ResearchRow> = Vec::new();
            let most = limit.saturating_mul(COPIES);
            for (document, ..) in index::near(tx, Of::Research, vector, before, floor, most)? {
                if rows.len() == limit {
                    break;
                }
                let Some(row) = index::research(tx, Wanted::Document(&document), 1)?.pop() else { continue };
                // What took its place on the topic stands for it (R1-12.5).
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
        self.with_uses(rows)
    }
}
