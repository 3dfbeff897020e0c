//! What a condenser proposes, and the options of extraction. Data only; knows no job and no content type.

use std::ops::Range;

use crate::condensed::Gap;

/// How the units of a type are chosen, and how its gaps are written.
#[derive(Debug, Clone)]
pub(crate) struct ExtractionOptions {
    /// Units with salient spans go before all text without any; otherwise the spans only add to a unit's score.
    pub(crate) salient_first: bool,
    /// Gap markers are indented like the text that they replace.
    pub(crate) indented_markers: bool,
    /// What the parts of the text are called, in the singular, and their ranges: markers say which parts they leave out.
    pub(crate) names: Option<(&'static str, Vec<Range<usize>>)>,
}

impl Default for ExtractionOptions {
    fn default() -> Self {
        Self { salient_first: true, indented_markers: false, names: None }
    }
}

/// What a condenser proposes. Shown, rewritten and left-out ranges tile the original.
#[derive(Debug)]
pub(crate) struct CondensedDraft {
    /// The condensed text, header and gap markers included.
    pub(crate) text: String,
    /// Bytes of the original that `text` repeats unchanged.
    pub(crate) shown: Vec<Range<usize>>,
    /// Bytes of the original whose content `text` gives in another form.
    pub(crate) rewritten: Vec<Range<usize>>,
    /// What is left out.
    pub(crate) gaps: Vec<Gap>,
}
