//! The traits of a content type: [`Condenser`] if it rewrites its input (a table for an array, a template for log
//! lines), [`Divide`] if it shows a subset of the original's bytes.
//!
//! Knows jobs, drafts and units; does not know any content type, or how units are chosen.

use crate::condensed::CondenseError;
use crate::engine::draft::{CondensedDraft, ExtractionOptions};
use crate::engine::job::Job;
use crate::engine::units::TextPiece;
use crate::explanation::UnitReason;

/// Condenses texts of one content type.
pub(crate) trait Condenser: Sync {
    /// Produces a draft within the target.
    ///
    /// # Errors
    /// If the parts that must be shown do not fit.
    fn condense(&self, job: &Job<'_>) -> Result<CondensedDraft, CondenseError>;

    /// The smallest target at which one item of every kind in the text is still shown; `None` for types without
    /// kinds.
    fn essential(&self, _job: &Job<'_>) -> Option<usize> {
        None
    }

    /// Produces the same draft with the reason for each unit, if this condenser chooses among units.
    fn condense_explained(
        &self,
        job: &Job<'_>,
    ) -> Result<(CondensedDraft, Option<Vec<UnitReason>>), CondenseError> {
        Ok((self.condense(job)?, None))
    }

    /// Whether `text` has the structure that consumers of this type rely on. If the original has it, the draft must
    /// too.
    fn parses(&self, _text: &str) -> bool {
        true
    }
}

/// Divides a text into units, among which [`Extractive`](crate::engine::extractive::Extractive) chooses.
pub(crate) trait Divide: Sync {
    /// Units that tile the text.
    fn units(&self, job: &Job<'_>) -> Vec<TextPiece>;

    /// How units are chosen and gaps are marked.
    fn options(&self, _job: &Job<'_>) -> ExtractionOptions {
        ExtractionOptions::default()
    }

    /// See [`Condenser::parses`].
    fn parses(&self, _text: &str) -> bool {
        true
    }
}
