//! Former values: `Was $1,520.00`, `~~$1,520.00~~`. An answer that calls one the present value contradicts the
//! documents. Plain functions of texts.

use std::collections::BTreeSet;
use std::ops::Range;

use super::window;

/// What stands before a former value, in small letters.
const FORMER: [&str; 22] = [
    "reduced from",
    "down from",
    "cut from",
    "reduziert von",
    "old price",
    "original price",
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
/// The same where one of [`REDUCED`] is beside them.
const FORMER_IF_REDUCED: [&str; 6] =
    ["list price", "regular price", "normal price", "normalpreis", "listenpreis", "regulärer preis"];
const REDUCED: [&str; 9] = [
    "sale price",
    "current price",
    "special price",
    "deal price",
    "offer price",
    "our price",
    "you save",
    "aktionspreis",
    "angebotspreis",
];
/// Words which say that a value holds now.
const PRESENT: [&str; 34] = [
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
    "price",
    "priced",
    "sell",
    "sells",
    "preis",
    "prix",
    "precio",
    "prezzo",
];
/// Words which say that it does not.
const PAST: [&str; 39] = [
    "was",
    "were",
    "before",
    "instead",
    "formerly",
    "reduced",
    "from",
    "old",
    "former",
    "list",
    "retail",
    "crossed",
    "struck",
    "off",
    "save",
    "discount",
    "than",
    "compared",
    "down",
    "rrp",
    "msrp",
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
    "used",
    "longer",
    "not",
    "versus",
];
/// What begins such words.
const PAST_BEGINS: [&str; 13] = [
    "usual",
    "full",
    "previous",
    "standard",
    "normal",
    "regul",
    "listen",
    "ursprüngl",
    "durchgestr",
    "barré",
    "initial",
    "origin",
    "habitu",
];
/// Bytes between such words and a value.
const NEAR: usize = 32;
/// Bytes between a regular price and a reduced one.
const BESIDE: usize = 120;
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
        let words = || clause.split(|char: char| !char.is_alphabetic());
        let is_past =
            |word: &str| PAST.contains(&word) || PAST_BEGINS.iter().any(|start| word.starts_with(start));
        words().any(|word| PRESENT.contains(&word)) && !words().any(is_past) && !is_struck
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
    // `€249.00 instead of €299.00`
    let own = lower.rsplit(|char: char| char.is_ascii_digit()).next().unwrap_or_default();
    let says = |word: &&str| {
        own.match_indices(*word).any(|(at, _)| {
            !own[..at].ends_with(char::is_alphabetic)
                && !own[at + word.len()..].starts_with(char::is_alphabetic)
        })
    };
    is_whole && is_was && was.len() < NEAR / 2
        || FORMER.iter().any(says)
        || FORMER_IF_REDUCED.iter().any(says) && is_reduced(text, at)
}

/// Whether the paragraph of a number states a reduced price near it: that of another product lowers no price.
fn is_reduced(text: &str, at: usize) -> bool {
    let near = window(text, &(at..at), BESIDE);
    let (before, after) = (&text[near.start..at], &text[at..near.end]);
    let before = before.rsplit("\n\n").next().unwrap_or_default().to_lowercase();
    let after = after.split("\n\n").next().unwrap_or_default().to_lowercase();
    REDUCED.iter().any(|reduced| before.contains(reduced) || after.contains(reduced))
}
