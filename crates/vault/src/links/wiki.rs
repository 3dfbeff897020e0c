//! Wikilinks: `[[path]]`, `[[path#heading]]`, `[[path#^block]]`, `[[path|text]]`; with a leading `!`, embeds.

use std::ops::Range;

use super::scan::{Link, LinkKind};

/// Maximum bytes between the brackets.
const LONGEST: usize = 2_000;

/// The wikilinks of a text outside the ranges `dead`, which may be in any order.
pub(super) fn in_text(text: &str, dead: &[Range<usize>]) -> Vec<Link> {
    let mut dead: Vec<&Range<usize>> = dead.iter().collect();
    dead.sort_by_key(|range| range.start);
    let mut links = Vec::new();
    let (mut from, mut next_dead) = (0, 0);
    while let Some(at) = text[from..].find("[[").map(|at| from + at) {
        from = at + 1;
        while dead.get(next_dead).is_some_and(|range| range.end <= at) {
            next_dead += 1;
        }
        if let Some(link) = link_at(text, at).filter(|link| {
            dead.get(next_dead).is_none_or(|range| range.start >= link.range.end) && !is_escaped(text, at)
        }) {
            from = link.range.end;
            links.push(link);
        }
    }
    links
}

/// The wikilinks in the properties of a note, outside comments.
pub(super) fn in_properties(frontmatter: &str) -> Vec<Link> {
    let mut comments = Vec::new();
    let mut at = 0;
    for line in frontmatter.split_inclusive('\n') {
        if line.trim_start().starts_with('#') {
            comments.push(at..at + line.len());
        }
        at += line.len();
    }
    in_text(frontmatter, &comments)
}

fn is_escaped(text: &str, at: usize) -> bool {
    let before = &text[..at];
    !(before.len() - before.trim_end_matches('\\').len()).is_multiple_of(2)
}

/// The wikilink whose `[[` is at `at`.
fn link_at(text: &str, at: usize) -> Option<Link> {
    let inner = &text[at + 2..];
    let inner = &inner[..inner.floor_char_boundary(LONGEST)];
    let line_end = inner.find('\n').unwrap_or(inner.len());
    let inner = &inner[..inner[..line_end].find("]]")?];
    let (target, _) = inner.split_once('|').unwrap_or((inner, ""));
    // In a table cell, the vertical bar is escaped by a backslash.
    let target =
        if target.len() < inner.len() { target.strip_suffix('\\').unwrap_or(target) } else { target };
    if target.contains(['[', ']']) || inner.contains("[[") {
        return None;
    }
    let (path, fragment) = match target.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment.trim())),
        None => (target, None),
    };
    if path.trim().is_empty() && fragment.is_none_or(str::is_empty) {
        return None;
    }
    let start = at + 2 + path.len() - path.trim_start().len();
    let embed = text[..at].ends_with('!') && !is_escaped(text, at - 1);
    Some(Link {
        kind: LinkKind::Wiki,
        embed,
        range: at - usize::from(embed)..at + 2 + inner.len() + 2,
        path: path.trim().to_owned(),
        fragment: fragment.map(str::to_owned),
        target: Some(start..start + path.trim().len()),
        label: None,
    })
}
