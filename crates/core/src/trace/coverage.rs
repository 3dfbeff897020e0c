//! The coverage invariant: no message of a trace is neither sent, nor condensed, nor retrievable (C93).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::pointer::Pointer;

/// How a request holds messages of the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// As they are.
    Verbatim,
    /// In a condensed form that stands in the request; the pointer leads to the originals.
    Condensed(Pointer),
    /// Not in the request, but the pointer to them is.
    Retrievable(Pointer),
}

/// A stretch of the trace and how it is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// The messages, by index.
    pub range: Range<usize>,
    /// How the request holds them.
    pub how: Coverage,
}

/// The stretches of a trace of `messages` messages that nothing covers; none means that the invariant holds.
pub fn uncovered(messages: usize, covered: &[Covered]) -> Vec<Range<usize>> {
    let mut stretches: Vec<&Range<usize>> = covered.iter().map(|covered| &covered.range).collect();
    stretches.sort_by_key(|range| range.start);
    let (mut gaps, mut reached) = (Vec::new(), 0);
    for range in stretches {
        let start = range.start.min(messages);
        if range.is_empty() {
            continue;
        }
        if start > reached {
            gaps.push(reached..start);
        }
        reached = reached.max(range.end.min(messages));
    }
    if reached < messages {
        gaps.push(reached..messages);
    }
    gaps
}
