//! What a number of an answer counts, by the words next to it.

use std::ops::Range;

use larder_condense::salience::SpanKind;

use super::{amounts, units};

/// What begins the words of what is counted; after one of them, a digit is no part of the name before it.
const COUNTED: [&str; 42] = [
    "day", "week", "month", "year", "hour", "minute", "second", "night", "working", "business", "piece",
    "item", "review", "star", "person", "people", "unit", "percent", "tag", "tage", "werktag", "woche",
    "monat", "jahr", "stunde", "minute", "sekunde", "stück", "nacht", "nächte", "person", "sterne",
    "prozent", "jour", "semaine", "mois", "día", "semana", "mes", "giorni", "dagen", "dias",
];

/// Signs that join a number and a word.
const HYPHENS: [char; 3] = ['-', '\u{2010}', '\u{2011}'];
/// Other words that a hyphen joins to the number of what they count.
const JOINED: [&str; 5] = ["cup", "seat", "door", "port", "pack"];

/// The number that a hyphen joins to what it counts, as in `9-litre tank`: with its unit, or without another word.
pub(super) fn joined(text: &str, range: &Range<usize>) -> Option<(Range<usize>, SpanKind)> {
    let end = amounts::end(text, range.start);
    let hyphen = text[end..].chars().next().filter(|char| HYPHENS.contains(char) && end > range.start)?;
    let after = &text[end + hyphen.len_utf8()..];
    let length = after.find(|char: char| !char.is_alphabetic()).unwrap_or(after.len());
    let word = &after[..length];
    let whole = end + hyphen.len_utf8() + length;
    // What goes on behind the word is the id, path or address that it looks like.
    if word.chars().count() < 2 || !word.chars().all(char::is_lowercase) || range.end > whole {
        return None;
    }
    if units::is_unit(&units::unit_from(word)) {
        return Some((range.start..whole, SpanKind::Quantity));
    }
    (is_counted(word) || JOINED.contains(&word)).then_some((range.start..end, SpanKind::Number))
}

/// Whether a digit counts something, as in `9 are in stock`: not the number of a list item or a part of a name, unless a
/// unit follows, or a noun where nouns are capitalised.
pub(super) fn is_count(text: &str, range: &Range<usize>, is_english: bool) -> bool {
    let (before, after) = (&text[..range.start], &text[range.end..]);
    let stands_alone = range.len() == 1
        && before
            .chars()
            .next_back()
            .is_none_or(|char| char.is_whitespace() || matches!(char, '(' | '*' | '|'));
    let is_joined = after.starts_with(HYPHENS);
    let unit = after.trim_start_matches('*');
    let unit = unit.strip_prefix(' ').or_else(|| unit.strip_prefix(HYPHENS)).unwrap_or_default();
    let follows_name = || {
        before.split_whitespace().next_back().is_some_and(|word| {
            let is_sentence_end = word.ends_with(['.', '!', '?', ':', '|', '*', '-']);
            !is_sentence_end
                && word.chars().all(char::is_alphanumeric)
                && word.starts_with(char::is_uppercase)
        })
    };
    let is_factor = unit.starts_with("x ");
    let word = unit.split(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    let lower = word.to_lowercase();
    let is_noun = || {
        is_counted(&lower)
            || !is_english
                && word.starts_with(char::is_uppercase)
                && word.chars().skip(1).all(char::is_lowercase)
    };
    stands_alone
        && !is_factor
        && unit.starts_with(char::is_alphabetic)
        && (is_joined || !follows_name() || word.chars().count() > 2 && is_noun())
}

/// Whether a word, in small letters, is of what is counted.
pub(super) fn is_counted(word: &str) -> bool {
    COUNTED.iter().any(|start| word.starts_with(start))
}

/// Whether the word after a number says that it counts the lines of a text.
pub(super) fn says_lines(after: &str) -> bool {
    const LINES: [&str; 20] = [
        "line",
        "lines",
        "row",
        "rows",
        "record",
        "records",
        "entry",
        "entries",
        "zeile",
        "zeilen",
        "einträge",
        "datensätze",
        "ligne",
        "lignes",
        "línea",
        "líneas",
        "fila",
        "filas",
        "righe",
        "linhas",
    ];
    let word = after.trim_start().split(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    LINES.contains(&word.to_lowercase().as_str())
}
