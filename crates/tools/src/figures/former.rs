//! Former values: `Was $1,520.00`, `~~$1,520.00~~`. An answer that calls one the present value contradicts the
//! documents. Plain functions of texts.

use std::collections::BTreeSet;
use std::ops::Range;

use super::window;

/// What stands before a former value, in small letters.
const FORMER: [&str; 21] = [
    "reduced from",
    "down from",
    "cut from",
    "reduziert von",
    "old price",
    "former price",
    "formerly",
    "previously",
    "before it was",
    "instead of",
    "rrp",
    "msrp",
    "statt",
    "uvp",
    "vorher",
    "früher",
    "alter preis",
    "ancien prix",
    "au lieu de",
    "antes",
    "precio anterior",
];
/// Words which say that a value holds now.
const PRESENT: [&str; 26] = [
    "now",
    "currently",
    "current",
    "today",
    "is",
    "are",
    "cost",
    "costs",
    "ist",
    "sind",
    "est",
    "jetzt",
    "aktuell",
    "aktuelle",
    "heute",
    "derzeit",
    "kostet",
    "kosten",
    "maintenant",
    "actuellement",
    "coûte",
    "ahora",
    "cuesta",
    "adesso",
    "costa",
    "nu",
];
/// Words which say that it does not.
const PAST: [&str; 44] = [
    "was",
    "were",
    "before",
    "instead",
    "formerly",
    "previously",
    "reduced",
    "from",
    "old",
    "former",
    "original",
    "originally",
    "regular",
    "regularly",
    "normally",
    "list",
    "retail",
    "crossed",
    "struck",
    "off",
    "save",
    "discount",
    "ursprünglich",
    "durchgestrichen",
    "than",
    "compared",
    "down",
    "rrp",
    "msrp",
    "usually",
    "statt",
    "vorher",
    "früher",
    "war",
    "von",
    "uvp",
    "gegenüber",
    "als",
    "lieu",
    "ancien",
    "était",
    "antes",
    "era",
    "until",
];
/// Bytes between such words and a value.
const NEAR: usize = 32;
/// Bytes of a clause before and after a value.
const CLAUSE: usize = 500;

/// The numbers that a text states as former values alone.
pub(super) struct Former(BTreeSet<i128>);

impl Former {
    /// Those among these numbers of a text.
    pub(super) fn of(text: &str, numbers: &[(usize, i128)]) -> Self {
        let struck = struck(text);
        let is_former = |at: usize| is_in(&struck, at) || is_former(text, at);
        let (former, others): (Vec<_>, Vec<_>) = numbers.iter().partition(|(at, _)| is_former(*at));
        let others: BTreeSet<i128> = others.into_iter().map(|(_, number)| number).collect();
        Self(former.into_iter().map(|(_, number)| number).filter(|number| !others.contains(number)).collect())
    }

    /// Whether an answer calls a value the present one though this number of the documents is a former one.
    pub(super) fn is_contradicted(&self, text: &str, range: &Range<usize>, number: i128) -> bool {
        if !self.0.contains(&number) {
            return false;
        }
        let ends = ["\n", "; ", ". ", ", ", " (", " and ", " but ", " und ", " aber ", " et ", " mais "];
        let near = window(text, range, CLAUSE);
        let (before, after) = (&text[near.start..range.start], &text[range.end..near.end]);
        let start = ends.iter().filter_map(|end| Some(near.start + before.rfind(end)? + end.len())).max();
        let end = ends.iter().filter_map(|end| Some(range.end + after.find(end)?)).min();
        let clause = start.unwrap_or(near.start)..end.unwrap_or(near.end);
        let is_struck = is_in(&struck(&text[clause.clone()]), range.start - clause.start);
        let clause = text[clause].to_lowercase();
        let says = |known: &[&str]| {
            clause.split(|char: char| !char.is_alphabetic()).any(|word| known.contains(&word))
        };
        says(&PRESENT) && !says(&PAST) && !is_struck
    }
}

/// What Markdown strikes through within a line, in order.
fn struck(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let marks: Vec<usize> = line.match_indices("~~").map(|(mark, _)| at + mark).collect();
        found.extend(marks.chunks_exact(2).map(|pair| pair[0]..pair[1]));
        at += line.len();
    }
    found
}

fn is_in(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|range| range.end <= at);
    ranges.get(next).is_some_and(|range| range.start <= at)
}

/// Whether a number follows a word such as `was` at the start of a sentence, or another that says the same anywhere.
fn is_former(text: &str, at: usize) -> bool {
    let near = (at.saturating_sub(NEAR)..at).find(|start| text.is_char_boundary(*start)).unwrap_or(at);
    let before = text[near..at].rsplit(['\n', '.', ';', '(', '[', ',', '|']).next().unwrap_or_default();
    if !before.contains(char::is_alphabetic) {
        return false;
    }
    let is_whole = !before.contains(|char: char| char.is_ascii_digit());
    let lower = before.to_lowercase();
    // `Helmet: was $89.90`.
    let (has_label, was) = lower.rsplit_once(':').map_or((false, lower.as_str()), |(_, was)| (true, was));
    let is_start = has_label || before.len() < at - near || near == 0;
    let was = was.trim_start_matches(['*', '_', '~', ' ']);
    let is_was = is_start && was.split(|char: char| !char.is_alphabetic()).next() == Some("was");
    let says = |word: &&str| {
        lower.match_indices(*word).any(|(at, _)| {
            !lower[..at].ends_with(char::is_alphabetic)
                && !lower[at + word.len()..].starts_with(char::is_alphabetic)
        })
    };
    is_whole && (is_was && was.len() < NEAR / 2 || FORMER.iter().any(says))
}
