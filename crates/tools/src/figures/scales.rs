//! Words and letters that multiply the number before them: `million`, `Mrd.`, `mil millones`. Plain functions of texts.

use super::amounts::is_digit;
use super::currencies::{is_currency, is_sign};
use super::{names, window};

/// Words that multiply the number before them. Of `billion`, this is the English meaning.
const SCALES: [(&str, i128); 60] = [
    ("thousand", 1_000),
    ("tausend", 1_000),
    ("tsd", 1_000),
    ("mille", 1_000),
    ("mil", 1_000),
    ("mila", 1_000),
    ("duizend", 1_000),
    ("tusen", 1_000),
    ("tusind", 1_000),
    ("million", 1_000_000),
    ("millions", 1_000_000),
    ("millionen", 1_000_000),
    ("mio", 1_000_000),
    ("mln", 1_000_000),
    ("millón", 1_000_000),
    ("millones", 1_000_000),
    ("milione", 1_000_000),
    ("milioni", 1_000_000),
    ("milhão", 1_000_000),
    ("milhões", 1_000_000),
    ("miljoen", 1_000_000),
    ("miljon", 1_000_000),
    ("miljoner", 1_000_000),
    ("millioner", 1_000_000),
    ("billion", BILLION),
    ("billions", BILLION),
    ("milliarde", BILLION),
    ("milliarden", BILLION),
    ("mrd", BILLION),
    ("bn", BILLION),
    ("mld", BILLION),
    ("milliard", BILLION),
    ("milliards", BILLION),
    ("milliarder", BILLION),
    ("miliardo", BILLION),
    ("miliardi", BILLION),
    ("miljard", BILLION),
    ("miljarder", BILLION),
    ("bilhão", BILLION),
    ("bilhões", BILLION),
    ("mil millones", BILLION),
    ("mil milhões", BILLION),
    ("trillion", TRILLION),
    ("trillions", TRILLION),
    ("billionen", TRILLION),
    ("billón", TRILLION),
    ("billones", TRILLION),
    ("bilione", TRILLION),
    ("bilioni", TRILLION),
    ("biljoen", TRILLION),
    ("biljon", TRILLION),
    ("biljoner", TRILLION),
    ("billioner", TRILLION),
    ("bilião", TRILLION),
    ("biliões", TRILLION),
    ("trilhão", TRILLION),
    ("trilhões", TRILLION),
    ("mille milliards", TRILLION),
    ("mila miliardi", TRILLION),
    ("tusen miljarder", TRILLION),
];
const BILLION: i128 = 1_000_000_000;
const TRILLION: i128 = 1_000_000_000_000;
/// Thousands that are other words, or names, with a capital.
const SMALL: [&str; 3] = ["mil", "mila", "mille"];
/// Scales after which a full stop ends no sentence.
const SHORTENED: [&str; 5] = ["tsd", "mio", "mrd", "mln", "mld"];
/// Letters right after the number of an amount of money that do; `5m` alone may be a length.
const LETTERS: [(&str, i128); 4] = [("k", 1_000), ("m", 1_000_000), ("b", BILLION), ("bn", BILLION)];
/// How tables say in what their numbers are.
pub(super) const OF_TABLES: [(&str, i128); 16] = [
    ("in thousand", 1_000),
    ("in million", 1_000_000),
    ("in billion", BILLION),
    ("in tausend", 1_000),
    ("in mio", 1_000_000),
    ("in mrd", BILLION),
    ("en million", 1_000_000),
    ("en milliard", BILLION),
    ("en millones", 1_000_000),
    ("in milioni", 1_000_000),
    ("in miliardi", BILLION),
    ("in miljoen", 1_000_000),
    ("in miljard", BILLION),
    ("em milh", 1_000_000),
    ("i miljoner", 1_000_000),
    ("i millioner", 1_000_000),
];
/// What stands between a scale and its currency: `4,2 millones de dólares`.
const OF: [&str; 6] = ["de ", "di ", "d'", "d’", "of ", "US-"];
/// Between two numbers of which only the second has their scale: `3.5 to 4.2 million`.
const TO: [&str; 13] =
    ["para", "naar", "to", "or", "bis", "auf", "oder", "à", "ou", "a", "tot", "till", "til"];
/// The same after one of [`BETWEEN`]: `between 3.5 and 4.2 million`, but not `12 and 4 million`.
const AND: [&str; 8] = ["and", "und", "et", "y", "e", "en", "och", "og"];
const BETWEEN: [&str; 9] =
    ["between", "zwischen", "entre", "tra", "fra", "tussen", "mellan", "mellem", "mellom"];
/// Signs that do the same.
const SIGNS: [&str; 5] = ["-", "–", "—", "→", "->"];
/// Bytes in which these are.
const NEAR: usize = 16;
/// Bytes around a number that tell its language.
const LANGUAGE: usize = 256;

/// What the number that ends at a place is certainly multiplied with, by the word or letter after it.
pub(super) fn scale(text: &str, end: usize) -> i128 {
    let word = scale_word(&text[end..]);
    if word.is_empty() {
        return 1;
    }
    let spelled = spelled(word);
    let number = text[..end].trim_end_matches(is_digit).trim_end_matches(' ');
    let is_money = number.ends_with(is_sign) || text[end + word.len()..].starts_with(is_sign);
    spelled.or_else(|| letter_after(text, end).filter(|_| is_money)).unwrap_or(1)
}

/// What else the number that ends at a place may be multiplied with, after its scale: by a letter, by the scale of the
/// number that it leads to, or by `billion` in the sense of most languages but English.
pub(super) fn other_scale(text: &str, end: usize) -> Option<i128> {
    match scale(text, end) {
        1 => letter_after(text, end).or_else(|| Some(carried(text, end)?.1)),
        BILLION => is_long(text, end).then_some(TRILLION / BILLION),
        _ => None,
    }
}

/// The end of the scale after a number that ends at a place.
pub(super) fn end_of_scale(text: &str, end: usize) -> usize {
    let word = scale_word(&text[end..]);
    if spelled(word).is_some() { end + word.len() } else { end }
}

/// A text after a number without the scale that it begins with, and what joins its currency to that.
pub(super) fn after_scale(after: &str) -> &str {
    let scale = scale_word(after);
    let rest = &after[scale.len()..];
    let rest = rest.strip_prefix('.').filter(|_| is_shortened(scale)).unwrap_or(rest);
    let currency = rest.trim_start_matches([' ', '\u{a0}', '\u{202f}']);
    let of = OF.iter().find_map(|of| currency.strip_prefix(of));
    of.filter(|_| spelled(scale).is_some()).unwrap_or(rest)
}

/// Whether a text ends with a scale after which a full stop ends no sentence.
pub(super) fn is_shortened(text: &str) -> bool {
    let word = text.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    SHORTENED.contains(&word.as_str())
}

fn letter_after(text: &str, end: usize) -> Option<i128> {
    let word = scale_word(&text[end..]).trim_start();
    LETTERS.iter().find(|(letter, _)| word.eq_ignore_ascii_case(letter)).map(|(_, factor)| *factor)
}

/// Whether the `billion` after a number may be of a language in which it is a million millions: `1,2 billion d'euros`, and
/// `1 Billion Euro` in German.
fn is_long(text: &str, end: usize) -> bool {
    let word = scale_word(&text[end..]);
    let name = word.trim_start_matches(|char: char| !char.is_alphabetic());
    let near = &text[window(text, &(end..end), LANGUAGE)];
    if !name.to_lowercase().starts_with("billion") || names::is_english(near) {
        return false;
    }
    let number = &text[text[..end].trim_end_matches(is_digit).len()..end];
    let has_decimals = number.split_once(',').is_some_and(|(_, decimals)| {
        decimals.len() != 3 && decimals.bytes().all(|byte| byte.is_ascii_digit())
    });
    let after = text[end + word.len()..].trim_start();
    has_decimals
        || name.starts_with('B') && names::is_german(near)
        || ["de ", "d'", "d’"].iter().any(|of| after.starts_with(of))
}

/// The place and the scale of the number that one which ends at a place leads to: `3.5 to 4.2 million`.
pub(super) fn carried(text: &str, end: usize) -> Option<(usize, i128)> {
    let after = &text[end..];
    let digit = after.find(|char: char| char.is_ascii_digit()).filter(|at| *at <= NEAR)?;
    let between = after[..digit].trim_matches(|char: char| char.is_whitespace() || is_sign(char));
    let mut words = between.split_whitespace().filter(|word| !is_currency(word));
    let word = words.next().filter(|_| words.next().is_none())?;
    let is_between = || {
        let before = text[..end].trim_end_matches(is_digit);
        let before = before.trim_end_matches(|char: char| char == ' ' || is_sign(char));
        let last = before.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
        BETWEEN.contains(&last.to_lowercase().as_str())
    };
    let is_to = TO.contains(&word) || SIGNS.contains(&word) || AND.contains(&word) && is_between();
    let number = &after[digit..];
    let length = number.find(|char: char| !is_digit(char)).unwrap_or(number.len());
    let factor = scale(number, number[..length].trim_end_matches(['.', ',']).len());
    (is_to && factor > 1).then_some((end + digit, factor))
}

/// Whether a word multiplies the number before it.
pub(super) fn is_scale(word: &str) -> bool {
    spelled(word).is_some()
}

fn spelled(word: &str) -> Option<i128> {
    let word = word.trim_matches(|char: char| !char.is_alphabetic()).to_lowercase();
    SCALES.iter().find(|(scale, _)| *scale == word).map(|(_, factor)| *factor)
}

/// The word right after a number, with the mark and the white space before it, if it can multiply.
fn scale_word(after: &str) -> &str {
    let marks = after.len() - after.trim_start_matches(['*', '_']).len();
    let space = after[marks..].chars().next().filter(|char| char.is_whitespace()).map_or(0, char::len_utf8);
    let gap = marks + space;
    let length =
        |from: usize| after[from..].find(|char: char| !char.is_alphabetic()).unwrap_or(after.len() - from);
    let end = gap + length(gap);
    let word = &after[gap..end];
    // `mil millones`
    let second = after[end..].strip_prefix(' ').map(|_| end + 1 + length(end + 1));
    if let Some(second) = second.filter(|second| word.len() < 6 && spelled(&after[gap..*second]).is_some()) {
        return &after[..second];
    }
    let is_name = SMALL.contains(&word.to_lowercase().as_str()) && !SMALL.contains(&word);
    let is_letter = LETTERS.iter().any(|(letter, _)| word.eq_ignore_ascii_case(letter));
    // `4,2 M€`
    let is_letter = is_letter && (gap == 0 || after[end..].starts_with(is_sign));
    let is_scale = !word.is_empty() && !is_name && spelled(word).is_some() || is_letter;
    if is_scale { &after[..end] } else { "" }
}
