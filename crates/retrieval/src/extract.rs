//! Extracts the requested parts of a document: sections, blocks, keys; and truncates to a cap. Pure; knows the forms
//! of documents, not how they are found.

use std::collections::BTreeSet;
use std::ops::Range;

use larder_text::sections::{SectionId, Sections};
use larder_text::tokens::Counter;
use larder_vault::VaultPath;
use larder_vault::links::NoteOutline;
use serde_json::{Map, Value};

/// Between pieces that do not follow one another.
pub(super) const GAP: &str = "\n[…]\n";

/// An extract of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Extract {
    /// The original text, gaps marked.
    pub(super) text: String,
    /// The requested sections that were found; empty if the whole document is returned.
    pub(super) sections: Vec<String>,
    /// Its bytes in the document.
    pub(super) ranges: Vec<Range<usize>>,
    /// Sections that are not there.
    pub(super) missing: Vec<String>,
}

/// The sections `wanted` of the document at `path`; the whole document without frontmatter if none is wanted or
/// found. A section of `context.md` is returned in its newest version (C8), a JSON document by its keys.
pub(super) fn extract(path: &VaultPath, text: &str, wanted: &[String]) -> Extract {
    let wanted: Vec<&String> = wanted.iter().filter(|name| !name.trim().is_empty()).collect();
    if path.name().ends_with(".json") {
        return keys(text, &wanted);
    }
    let body = Sections::parse(text).frontmatter.end;
    let mut taken = Extract::default();
    if !wanted.is_empty() {
        let index = NoteContents::of(text);
        for name in wanted {
            match index.find(name) {
                Some(range) => {
                    taken.sections.push(name.clone());
                    taken.ranges.push(range);
                }
                None => taken.missing.push(name.clone()),
            }
        }
    }
    if taken.ranges.is_empty() {
        taken.ranges.push(body..text.len());
    }
    taken.ranges = merged(taken.ranges);
    let pieces: Vec<&str> = taken.ranges.iter().map(|range| &text[range.clone()]).collect();
    taken.text = pieces.join(GAP);
    taken
}

/// Ranges in order, adjacent ones merged.
pub(super) fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The values of a JSON document's keys, at its top or one level below it.
fn keys(text: &str, wanted: &[&String]) -> Extract {
    let whole = || Extract {
        text: text.to_owned(),
        ranges: std::iter::once(0..text.len()).collect(),
        ..Extract::default()
    };
    let Ok(Value::Object(object)) = serde_json::from_str(text) else { return whole() };
    let mut taken = Extract::default();
    let mut shown = Map::new();
    for &name in wanted {
        let found = object.iter().find(|(key, _)| plain(key) == plain(name));
        match found {
            Some((key, value)) => {
                shown.insert(key.clone(), value.clone());
                taken.sections.push(name.clone());
            }
            None => taken.missing.push(name.clone()),
        }
    }
    if shown.is_empty() {
        return Extract { missing: taken.missing, ..whole() };
    }
    taken.text = serde_json::to_string_pretty(&Value::Object(shown)).unwrap_or_default();
    taken
}

/// The positions of sections, headings and blocks of a note.
struct NoteContents {
    sections: Sections,
    outline: NoteOutline,
}

impl NoteContents {
    fn of(text: &str) -> Self {
        Self { sections: Sections::parse(text), outline: NoteOutline::parse(text) }
    }

    /// `§4`, `tool_execution`, `4. Tool Execution`, a heading of the note or a part of it, `^claim-001`.
    fn find(&self, name: &str) -> Option<Range<usize>> {
        let name = name.trim().trim_start_matches('#').trim();
        if name.starts_with('^') {
            return self.outline.find(name);
        }
        if let Some(section) = section_of(name).and_then(|id| self.sections.newest(id)) {
            return Some(section.range.clone());
        }
        let wanted = plain(name);
        let same = |heading: &str| plain(heading) == wanted;
        let holds = |heading: &str| !wanted.is_empty() && plain(heading).contains(&wanted);
        self.heading(same).or_else(|| self.outline.find(name)).or_else(|| self.heading(holds))
    }

    /// The matching heading: in `context.md` the last, whose section is the newest; otherwise the first.
    fn heading(&self, fits: impl Fn(&str) -> bool) -> Option<Range<usize>> {
        let mut headings = self.outline.headings.iter().filter(|heading| fits(&heading.text));
        let found = if self.sections.sections.is_empty() { headings.next() } else { headings.next_back() };
        found.map(|heading| heading.section.clone())
    }
}

/// The section of `context.md` that a name means, by selector, heading, or heading without its number.
fn section_of(name: &str) -> Option<SectionId> {
    let selector = name.split_whitespace().next().unwrap_or_default().trim_end_matches(['.', ':']);
    let by_selector =
        SectionId::from_selector(selector).filter(|_| name.starts_with('§') || selector == name);
    by_selector.or_else(|| {
        let wanted = plain(name);
        SectionId::ALL.into_iter().find(|id| {
            let heading = plain(id.heading());
            heading == wanted || heading.split_once(' ').is_some_and(|(_, title)| title == wanted)
        })
    })
}

/// Letters and digits in lower case with single spaces.
fn plain(text: &str) -> String {
    let words = text.split(|char: char| !char.is_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// `text` truncated to `max` tokens, and whether it was truncated. Truncated text ends at a line if possible, and
/// states how much is shown and where the rest is.
pub(super) fn cut(text: &str, max: usize, counter: &Counter, path: &str) -> (String, bool) {
    if counter.count_up_to(text, max).is_some() {
        return (text.to_owned(), false);
    }
    let mark = |shown: usize| {
        format!("\n[cut here: {shown} of {} bytes are shown; the rest is in {path}]", text.len())
    };
    let mut room = max.saturating_sub(counter.count(&mark(text.len())));
    loop {
        let prefix = counter.prefix(text, room);
        let end = prefix.rfind('\n').filter(|at| *at > prefix.len() / 2).unwrap_or(prefix.len());
        let shown = format!("{}{}", &text[..end], mark(end));
        // Joined texts may count for a token more than the sum of both.
        if counter.count_up_to(&shown, max).is_some() {
            return (shown, true);
        }
        if room == 0 {
            return (String::new(), true);
        }
        room = room.saturating_sub(4);
    }
}

/// Byte ranges as lines from 1, both ends included, of a text of which the line breaks before each range are known.
pub(super) fn lines_of(text: &str, range: &Range<usize>) -> (usize, usize) {
    let first = text[..range.start].matches('\n').count() + 1;
    let within = text[range.clone()].trim_end_matches('\n').matches('\n').count();
    (first, first + within)
}

/// Names of the sections of a document, for the record of one that is missing.
pub(super) fn headings(text: &str, max: usize) -> String {
    let headings: BTreeSet<String> =
        NoteOutline::parse(text).headings.into_iter().map(|heading| heading.text).collect();
    headings.into_iter().take(max).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
