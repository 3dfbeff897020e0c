//! The explanation of a condensation: what became of each unit of the original, and why. Data only.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::condensed::Condensed;

/// A condensed text with the reasons for what it shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// What [`condense`](crate::condense) gives for the same request.
    pub condensed: Condensed,
    /// What became of each unit, in order; together they are the original.
    pub units: Vec<UnitReason>,
    /// Tokens beyond the target that [`Explanation::further`] is about.
    pub more: usize,
    /// Bytes of the original that those tokens would let in.
    pub further: Vec<Range<usize>>,
}

/// What became of a unit, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitReason {
    /// The range of the original, in bytes.
    pub bytes: Range<usize>,
    /// First and last line, from 1, that it touches.
    pub lines: (usize, usize),
    /// Whether it is in the condensed text.
    #[serde(rename = "fate")]
    pub outcome: UnitOutcome,
    /// Why; the most important reason first.
    pub reasons: Vec<Reason>,
    /// Words of the query that it contains, in lower case.
    pub terms: Vec<String>,
    /// What the counter charges for the unit alone.
    pub tokens: usize,
    /// Its score against everything else that is shown; `None` for types that rewrite their input.
    pub score: Option<UnitScore>,
}

/// The components of a unit's score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnitScore {
    /// How well it answers the query, 0 to 1.
    pub relevance: f32,
    /// What each byte adds to what is shown; an average unit adds 1 to nothing.
    pub novelty: f32,
    /// The weight of its position and structure; 1 is average.
    pub weight: f32,
    /// The overall score, less the cost of gap markers; within a tier the highest is taken first.
    pub rank: f32,
}

/// What became of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitOutcome {
    /// Every byte is in the text.
    Shown,
    /// Its beginning or other parts are in the text.
    Cut,
    /// In another form, such as a row of a table.
    #[serde(rename = "told")]
    Rewritten,
    /// Behind the pointer of a gap.
    LeftOut,
}

/// A reason for keeping a unit or leaving it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The whole text fits.
    Fits,
    /// Contains a pin of the caller, or a pointer of ours.
    Required,
    /// Contains a gap marker of an earlier condensation.
    #[serde(rename = "earlier_mark")]
    PriorMarker,
    /// Always goes first: the request, the newest turn, the section in force.
    First,
    /// Contains a line that reports an error or a failure.
    ErrorLine,
    /// Contains a URL, a price, a date, a path or another salient detail.
    #[serde(rename = "telling_detail")]
    SalientDetail,
    /// Contains words of the query.
    Query,
    /// A heading, a signature, the beginning: its position or structure matters.
    Structure,
    /// Needed to understand another unit that is shown.
    NeededByAnother,
    /// Adds something that nothing else in the text says.
    Novel,
    /// Repeats what is shown already.
    Repeats,
    /// Others scored higher and used up the target.
    NoRoom,
    /// Shorter than the gap marker that would replace it.
    ShorterThanAMark,
}
