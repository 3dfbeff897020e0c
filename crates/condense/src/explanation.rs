//! The explanation of a condensation: the outcome for each unit of the original, and why. Data only.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::condensed::Condensed;

/// A condensed text with the reasons for its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The result of [`condense`](crate::condense) for the same request.
    pub condensed: Condensed,
    /// The outcome for each unit, in order; together the units are the original.
    pub units: Vec<UnitReason>,
    /// Tokens beyond the target that [`Explanation::further`] refers to.
    pub more: usize,
    /// Bytes of the original that those tokens would add.
    pub further: Vec<Range<usize>>,
}

/// The outcome for a unit, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitReason {
    /// Its byte range in the original.
    pub bytes: Range<usize>,
    /// The first and last line it touches, from 1.
    pub lines: (usize, usize),
    /// Whether it is in the condensed text.
    #[serde(rename = "fate")]
    pub outcome: UnitOutcome,
    /// The reasons, most important first.
    pub reasons: Vec<Reason>,
    /// Words of the query it contains, in lower case.
    pub terms: Vec<String>,
    /// Tokens charged for the unit alone.
    pub tokens: usize,
    /// Its score relative to everything else shown; `None` for types that rewrite their input.
    pub score: Option<UnitScore>,
}

/// The components of a unit's score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnitScore {
    /// How well it answers the query, from 0 to 1.
    pub relevance: f32,
    /// What each byte adds to the text shown; an average unit adds 1 to an empty text.
    pub novelty: f32,
    /// The weight of its position and structure; 1 is average.
    pub weight: f32,
    /// The overall score minus the cost of gap markers; within a tier the highest is taken first.
    pub rank: f32,
}

/// The outcome for a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitOutcome {
    /// Every byte is in the text.
    Shown,
    /// Its beginning or other parts are in the text.
    Cut,
    /// Shown in another form, such as a row of a table.
    #[serde(rename = "told")]
    Rewritten,
    /// Omitted; behind the pointer of a gap.
    LeftOut,
}

/// A reason for showing or omitting a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The whole text fits.
    Fits,
    /// Contains a pin or one of Larder's pointers.
    Required,
    /// Contains a gap marker of an earlier condensation.
    #[serde(rename = "earlier_mark")]
    PriorMarker,
    /// Always comes first: the request, the newest turn, the current section.
    First,
    /// Contains a line that reports an error or a failure.
    ErrorLine,
    /// Contains a URL, a price, a date, a path or another salient detail.
    #[serde(rename = "telling_detail")]
    SalientDetail,
    /// Contains words of the query.
    Query,
    /// Its position or structure matters: a heading, a signature, the beginning.
    Structure,
    /// Needed to understand another unit that is shown.
    NeededByAnother,
    /// Adds something not said elsewhere in the text.
    Novel,
    /// Repeats text that is already shown.
    Repeats,
    /// Others scored higher and used up the target.
    NoRoom,
    /// Shorter than the gap marker that would replace it.
    ShorterThanAMark,
}
