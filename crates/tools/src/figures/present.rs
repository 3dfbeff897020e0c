//! What the time of an answer supports: its date, or the part of it that the answer says is of today. Its numbers are those of
//! nothing else.

use std::ops::Range;

use super::{dates, window};

/// Words before a date which say that it is of today.
const BEFORE: [&str; 28] = [
    "today",
    "today's",
    "todays",
    "now",
    "currently",
    "current",
    "as of",
    "as at",
    "date is",
    "heute",
    "heutige",
    "heutigen",
    "stand",
    "derzeit",
    "aktuell",
    "aujourd'hui",
    "aujourd’hui",
    "à ce jour",
    "en date du",
    "hoy",
    "oggi",
    "hoje",
    "vandaag",
    "dziś",
    "dzisiaj",
    "今日",
    "本日",
    "現在",
];
/// Words after it that do.
const AFTER: [&str; 15] = [
    "today",
    "is today",
    "(today",
    "now",
    "heute",
    "ist heute",
    "aujourd'hui",
    "hoy",
    "es hoy",
    "oggi",
    "hoje",
    "vandaag",
    "dziś",
    "現在",
    "(heute",
];
/// Words before a year which do.
const YEAR: [&str; 4] = ["this year", "dieses jahr", "current year", "as of"];
/// Words between one of these and the date.
const APART: usize = 4;
/// Bytes before and after a date in which these words are.
const NEAR: usize = 256;

/// The time of an answer.
pub(super) struct Present {
    pub(super) dates: Vec<dates::Written>,
}

impl Present {
    pub(super) fn new(now: &str) -> Self {
        Self { dates: dates::of(now) }
    }

    /// Whether a date of an answer is of today, as the answer says.
    pub(super) fn states(&self, text: &str, date: &dates::Written) -> bool {
        self.dates.iter().any(|now| date.is_stated_by(now))
            && (says(before(text, date.range.start), &BEFORE) || is_followed(text, date.range.end))
    }

    /// Whether a number is the year that the answer says is the present one.
    pub(super) fn is_year(&self, text: &str, range: &Range<usize>) -> bool {
        let year = text[range.clone()].parse().ok();
        year.is_some()
            && self.dates.iter().any(|now| now.year() == year)
            && says(before(text, range.start), &YEAR)
    }
}

/// The sentence before a place.
fn before(text: &str, at: usize) -> &str {
    let before = &text[window(text, &(at..at), NEAR).start..at];
    let start =
        [". ", "! ", "? ", "; ", "\n"].iter().filter_map(|end| Some(before.rfind(end)? + end.len())).max();
    &before[start.unwrap_or(0)..]
}

/// Whether the last words of a text are among these, or next to them.
fn says(before: &str, wanted: &[&str]) -> bool {
    let lower = before.to_lowercase();
    let is_by_itself = |at: usize, word: &str| {
        let joins = |char: Option<char>| char.is_some_and(char::is_alphabetic) && word.is_ascii();
        !joins(lower[..at].chars().next_back()) && !joins(lower[at + word.len()..].chars().next())
    };
    wanted.iter().any(|word| {
        let last = lower.rmatch_indices(word).map(|(at, _)| at).find(|at| is_by_itself(*at, word));
        last.is_some_and(|at| lower[at + word.len()..].split_whitespace().count() <= APART)
    })
}

fn is_followed(text: &str, end: usize) -> bool {
    let after = &text[end..window(text, &(end..end), NEAR).end];
    let after = after.trim_start_matches([' ', ',', '*', '_', ')']).to_lowercase();
    AFTER.iter().any(|word| {
        let rest = after.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
    })
}
