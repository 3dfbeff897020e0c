//! Lines of tool results that report a failure and that the assistant later repeats word for word. They are kept, because
//! the assistant has worked on these failures and a reader of the summary has to know them.

use std::ops::Range;

use aho_corasick::AhoCorasick;
use hashbrown::HashMap;
use larder_text::json::with_escapes_written_out;

use super::cues;
use super::messages::{ChatMessage, Speaker};

/// Bytes of all lines that are looked for.
const MOST_BYTES: usize = 128 << 10;
/// Lines found in one message, each time that they occur.
const MOST_HITS: usize = 50_000;
/// Longer lines are not looked for, in bytes.
const LONGEST_LINE: usize = 1_000;

/// The lines of tool results that report a failure and that a later message or call of the assistant repeats, each
/// once, in order.
pub(super) fn failures(text: &str, messages: &[ChatMessage]) -> Vec<Range<usize>> {
    // The places of each line, with their messages.
    let mut places: HashMap<&str, Vec<(usize, Range<usize>)>> = HashMap::new();
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| message.role == Speaker::Tool) {
        let mut start = message.label.end;
        for line in text[start..message.range.end].split_inclusive('\n') {
            if line.len() <= LONGEST_LINE && cues::names_failure(line) {
                places.entry(line.trim()).or_default().push((at, start..start + line.len()));
            }
            start += line.len();
        }
    }
    // Of too many, the newest: those that the assistant may still be working on.
    let mut lines: Vec<&str> = places.keys().copied().collect();
    lines.sort_unstable_by_key(|line| std::cmp::Reverse(places[line].last().map(|(_, range)| range.start)));
    let mut bytes = 0;
    lines.retain(|line| {
        bytes += line.len();
        bytes <= MOST_BYTES
    });
    let Ok(finder) = AhoCorasick::new(&lines) else { return Vec::new() };
    // By line: the newest place before it was repeated.
    let mut found: HashMap<usize, Range<usize>> = HashMap::new();
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| message.role == Speaker::Assistant)
    {
        let said = with_escapes_written_out(&text[message.label.end..message.range.end]);
        for hit in finder.find_overlapping_iter(said.as_bytes()).take(MOST_HITS) {
            let line = hit.pattern().as_usize();
            let places = &places[lines[line]];
            let before = places.partition_point(|(of, _)| *of < at);
            found.extend(places[..before].last().map(|(_, range)| (line, range.clone())));
        }
    }
    let mut found: Vec<Range<usize>> = found.into_values().collect();
    found.sort_unstable_by_key(|range| range.start);
    found
}

/// Whether one of the sorted `quoted` ranges overlaps `range`.
pub(super) fn overlaps(quoted: &[Range<usize>], range: &Range<usize>) -> bool {
    let next = quoted.partition_point(|one| one.end <= range.start);
    quoted.get(next).is_some_and(|one| one.start < range.end)
}
