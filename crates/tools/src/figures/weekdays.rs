//! Days of the week next to a date of an answer, which code can compute. Plain functions of texts.

use super::dates::Calendar;
use super::{dates, window};

/// The days of the week from Monday on, in each language.
const NAMES: [[&str; 7]; 9] = [
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
    ["montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag"],
    ["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"],
    ["lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"],
    ["lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"],
    ["maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"],
    ["segunda", "terça", "quarta", "quinta", "sexta", "sábado", "domingo"],
    ["poniedziałek", "wtorek", "środa", "czwartek", "piątek", "sobota", "niedziela"],
    ["月曜日", "火曜日", "水曜日", "木曜日", "金曜日", "土曜日", "日曜日"],
];
/// Words between a day of the week and its date.
const BETWEEN: [&str; 17] = [
    "the", "den", "dem", "der", "le", "el", "il", "de", "on", "am", "feira", "a", "an", "ein", "is", "ist",
    "día",
];
/// Words between them.
const APART: usize = 2;
/// Bytes before and after a date in which its day of the week is.
const NEAR: usize = 200;
/// Days of the week that are reported.
const MOST_FOUND: usize = 200;
/// What to add to days since year 0 so that the remainder of 7 is 0 on a Monday.
const MONDAY: i64 = 1;

/// Where an answer names a day of the week that its date is not: the place, and the date with that word. A document that
/// says the same is repeated, not contradicted.
pub(super) fn wrong(
    text: &str,
    written: &[dates::Written],
    documents: &str,
    known: &[dates::Written],
) -> Vec<(usize, String)> {
    let dated = written.iter().filter(|date| date.has_day());
    let named_days: Vec<_> = dated.filter_map(|date| Some((date, named(text, date)?))).collect();
    if named_days.is_empty() {
        return Vec::new();
    }
    // The days of the week that the documents' dates are, and those that they name next to them.
    let computed = known.iter().flat_map(|date| date.days().map(move |days| (date, weekday(days))));
    let computed = Calendar::of(computed);
    let stated = known.iter().filter_map(|date| Some((date, named(documents, date)?.0)));
    let stated = Calendar::of(stated);
    let is_wrong = |date: &dates::Written, day: usize| {
        let mut days = date.days().map(weekday).peekable();
        let (is_dated, is_day) = match days.peek() {
            Some(_) => (true, days.any(|other| other == day)),
            // Its year is that of the documents' date.
            None => ((0..7).any(|any| computed.says(date, any)), computed.says(date, day)),
        };
        is_dated && !is_day && !stated.says(date, day)
    };
    let wrong = named_days.into_iter().filter(|(date, (day, _))| is_wrong(date, *day));
    let found =
        wrong.map(|(date, (_, word))| (date.range.start, format!("{word}, {}", &text[date.range.clone()])));
    found.take(MOST_FOUND).collect()
}

/// The day of the week of days since year 0, from Monday on.
const fn weekday(days: i64) -> usize {
    (days + MONDAY).rem_euclid(7) as usize
}

/// The day of the week right before or after a date, and its word.
fn named<'t>(text: &'t str, date: &dates::Written) -> Option<(usize, &'t str)> {
    let words =
        |text: &'t str| text.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty());
    let is_near = |part: &str| !part.contains(['.', ';', '\n', '|', '!', '?']);
    let near = window(text, &date.range, NEAR);
    let before = text[near.start..date.range.start].rsplit(['\n', ';', '|']).next().unwrap_or_default();
    let after = text[date.range.end..near.end].split(['\n', ';', '|', '.']).next().unwrap_or_default();
    let first = |words: &mut dyn Iterator<Item = &'t str>| {
        for word in words.take(APART) {
            if let Some(day) = day(word) {
                return Some((day, word));
            }
            if !BETWEEN.contains(&word.to_lowercase().as_str()) {
                return None;
            }
        }
        None
    };
    let before = first(&mut words(before).rev()).filter(|(_, word)| {
        let at = before.rfind(word).map_or(before.len(), |at| at + word.len());
        is_near(before[at..].trim_end_matches('.')) && before[at..].bytes().all(|byte| !byte.is_ascii_digit())
    });
    // `6 March 2027 (Saturday)`, but not `6 March, Saturday the 13th …`.
    let is_inside = after.trim_start_matches(' ').starts_with(['(', '（', ',', 'i']);
    let of_after = || {
        let found = first(&mut words(after))?;
        let at = after.find(found.1)? + found.1.len();
        (is_inside
            && !after[..at].contains(|char: char| char.is_ascii_digit())
            && after[at..].trim_start_matches([')', '）', ' ']).is_empty())
        .then_some(found)
    };
    before.or_else(of_after)
}

fn day(word: &str) -> Option<usize> {
    let lower = word.to_lowercase();
    NAMES
        .iter()
        .find_map(|names| names.iter().position(|name| *name == lower))
        .or((lower == "sonnabend").then_some(5))
}
