//! A condenser's draft, and the options of extraction. Data only; knows no job and no content type.

use std::ops::Range;

use crate::condensed::Gap;

/// The singular name of a text's parts, with the number and the range of each.
pub(crate) type PartNames = (&'static str, Vec<(usize, Range<usize>)>);

/// How a type's units are chosen and its gaps are marked.
#[derive(Debug, Clone)]
pub(crate) struct ExtractionOptions {
    /// Units with salient spans precede all text without any; otherwise spans only add to a unit's score.
    pub(crate) salient_first: bool,
    /// Spans are shown in whole units: those of at most so many bytes are never divided around them, longer ones only at
    /// clauses, except around what must be shown.
    pub(crate) whole_up_to: Option<usize>,
    /// Gap markers are indented like the text they replace.
    pub(crate) indented_markers: bool,
    /// The text's parts, so that markers can list omitted ones.
    pub(crate) names: Option<PartNames>,
}

impl Default for ExtractionOptions {
    fn default() -> Self {
        Self { salient_first: true, whole_up_to: None, indented_markers: false, names: None }
    }
}

/// A condenser's draft. Shown, rewritten and omitted ranges tile the original.
#[derive(Debug)]
pub(crate) struct CondensedDraft {
    /// The condensed text, header and gap markers included.
    pub(crate) text: String,
    /// Byte ranges of the original that `text` repeats unchanged.
    pub(crate) shown: Vec<Range<usize>>,
    /// Byte ranges of the original whose content `text` gives in another form.
    pub(crate) rewritten: Vec<Range<usize>>,
    /// The omitted ranges.
    pub(crate) gaps: Vec<Gap>,
}
