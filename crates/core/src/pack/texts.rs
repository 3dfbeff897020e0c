//! Results of several texts, such as a sentence and the JSON that it announces: what of them is condensed on its own, and how
//! that shares the tokens of the result.
//!
//! Knows structures and tokens; does not know how a text is condensed.

use std::collections::BTreeMap;
use std::ops::Range;

use super::items::ConversationItem;
use larder_condense::{CondenseError, Condensed, structure_of};
use larder_text::tokens::Counter;

/// The fewest tokens that a larger text is condensed to on its own: with fewer, little more than its header would be left.
const MIN_SHARE: usize = 96;

/// What of a result is condensed on its own: each text with a structure, and those between them. Nothing if the result is
/// of one kind: none of its texts has a structure, or they have that of the whole, such as the lines of a log.
pub(super) fn sections(item: &ConversationItem<'_>) -> Vec<Range<usize>> {
    let mut sections: Vec<Range<usize>> = Vec::new();
    if item.texts.len() < 2 {
        return sections;
    }
    let whole = structure_of(item.text);
    let (mut mixed, mut joins) = (false, false);
    for range in item.texts {
        let structure = structure_of(&item.text[range.clone()]);
        mixed |= structure.is_some() && structure != whole;
        match sections.last_mut().filter(|_| joins && structure.is_none()) {
            Some(last) => last.end = range.end,
            None => sections.push(range.clone()),
        }
        joins = structure.is_none();
    }
    if mixed { sections } else { Vec::new() }
}

/// The sections of a result in at most `target` tokens: the smallest first, so that what one does not need is left to the
/// larger ones. `condense` condenses one with so many tokens to a target. `None` if there are no sections, or too many to
/// show something of each.
pub(super) fn condense_sections(
    item: &ConversationItem<'_>,
    target: usize,
    counter: &Counter,
    condense: impl Fn(&Range<usize>, usize, usize) -> Result<Condensed, CondenseError>,
) -> Option<Condensed> {
    let count = |range: &Range<usize>| counter.sampled(&item.text[range.clone()]);
    let mut sections: Vec<_> = sections(item).into_iter().map(|range| (count(&range), range)).collect();
    sections.sort_by_key(|(tokens, _)| *tokens);
    // A section may need a line feed after it.
    let mut left = target.saturating_sub(sections.len());
    let mut condensed = BTreeMap::new();
    for (done, (tokens, range)) in sections.iter().enumerate() {
        let share = left / (sections.len() - done);
        if share < MIN_SHARE.min(*tokens) {
            return None;
        }
        let made = condense(range, *tokens, share).ok()?;
        left = left.saturating_sub(made.tokens);
        condensed.insert(range.start, made);
    }
    let joined = condensed.into_values().reduce(|mut joined, next| {
        if !joined.text.ends_with('\n') {
            joined.text.push('\n');
        }
        joined.text += &next.text;
        joined.gaps.extend(next.gaps);
        joined
    })?;
    let tokens = counter.count(&joined.text);
    (tokens <= target).then_some(Condensed { tokens, ..joined })
}
