//! The form of gap markers, and how to find the header and the markers of an earlier condensation in a text.
//!
//! Knows what Larder's markers look like; trusts them only next to one of Larder's pointers, which text cannot forge.
//! Markers are kept if the target allows; otherwise they are behind the pointer of the gap that hides them.

use std::ops::Range;

use crate::request::CondenseRequest;
use larder_text::pointer::Pointer;

/// The prefix of every marker; `…` is one token in current vocabularies, `⋯` three.
pub(crate) const OPEN: &str = "[…";
/// Maximum bytes of a marker, including the names of omitted parts.
const LONGEST_MARK: usize = 96;
/// Maximum bytes of a header line.
const LONGEST_HEADER: usize = 400;
/// The share of the target, as one part in this many, that header lines and markers may take.
const HEADERS_SHARE: usize = 8;
const MARKS_SHARE: usize = 4;
/// The cost of showing a marker: itself and the markers around it, if neither neighbour is shown.
const TOKENS_PER_MARK: usize = 40;

/// The header lines and markers for which the target has room, by position; `required` are pins and pointers,
/// `pointed` the pointers with their positions.
pub(crate) fn of_prior(
    request: &CondenseRequest<'_>,
    required: &[Range<usize>],
    pointed: &[(Range<usize>, Pointer)],
) -> Vec<Range<usize>> {
    let (text, target) = (request.text, request.target);
    if pointed.is_empty() || !text.contains(OPEN) {
        return Vec::new();
    }
    let mut headers: Vec<Range<usize>> =
        pointed.iter().filter_map(|(pointer, _)| header_around(text, pointer)).collect();
    headers.dedup();
    let tokens: usize = headers.iter().map(|line| request.counter.count(&text[line.clone()])).sum();
    if tokens > target / HEADERS_SHARE {
        return Vec::new();
    }
    let inside = |mark: &Range<usize>| {
        headers.iter().chain(required).any(|line| line.start < mark.end && mark.start < line.end)
    };
    let room = target / MARKS_SHARE / TOKENS_PER_MARK;
    let gaps: Vec<Range<usize>> = gap_marks(text).filter(|mark| !inside(mark)).take(room + 1).collect();
    if gaps.len() <= room {
        headers.extend(gaps);
    }
    headers.sort_by_key(|range| range.start);
    headers
}

/// The header line that contains the pointer, if there is one.
fn header_around(text: &str, pointer: &Range<usize>) -> Option<Range<usize>> {
    let low = text.ceil_char_boundary(pointer.start.saturating_sub(LONGEST_HEADER));
    let start = text[low..pointer.start].rfind('\n').map_or(low, |at| low + at + 1);
    let high = text.floor_char_boundary(pointer.end.saturating_add(LONGEST_HEADER));
    let end = pointer.end + text[pointer.end..high].find('\n')?;
    let line = &text[start..end];
    (line.starts_with('[') && line.trim_end().ends_with(']')).then_some(start..end)
}

/// `[…`, an optional tag, and lines or bytes, or nothing if there was no room for more.
fn gap_marks(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    text.match_indices(OPEN).filter_map(|(start, _)| {
        let high = text.floor_char_boundary(start.saturating_add(LONGEST_MARK));
        let inner = &text[start + OPEN.len()..high];
        let close = inner.find([']', '\n']).filter(|&close| inner[close..].starts_with(']'))?;
        let words = inner[..close].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        let place = words.strip_prefix(" L").or_else(|| words.strip_prefix(" B"));
        let is_mark =
            words.is_empty() || place.is_some_and(|place| place.starts_with(|c: char| c.is_ascii_digit()));
        is_mark.then_some(start..start + OPEN.len() + close + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_distinguished_from_other_brackets() {
        let text = "a […] b […x7 L3-9] c [… L1-2, messages 3-4] d [… and so on] e […\n] f [… Lx]";
        let found: Vec<&str> = gap_marks(text).map(|mark| &text[mark]).collect();
        assert_eq!(found, ["[…]", "[…x7 L3-9]", "[… L1-2, messages 3-4]"]);
    }
}
