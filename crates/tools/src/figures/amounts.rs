//! Numbers with what makes amounts of them: a currency next to them, and a word or letter that multiplies them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::numbers;

/// What a currency is written as, before or after a number; one line for each currency.
const CURRENCIES: [&[&str]; 9] = [
    &["$", "us$", "usd", "dollar", "dollars"],
    &["€", "eur", "euro", "euros"],
    &["£", "gbp", "pound", "pounds"],
    &["¥", "jpy", "yen"],
    &["₹", "inr", "rupee", "rupees"],
    &["chf", "franken"],
    &["cny", "rmb", "yuan"],
    &["c$", "ca$", "cad"],
    &["a$", "au$", "aud"],
];
/// Words that multiply the number before them.
const SCALES: [(&str, i128); 14] = [
    ("thousand", 1_000),
    ("tausend", 1_000),
    ("tsd", 1_000),
    ("million", 1_000_000),
    ("millions", 1_000_000),
    ("millionen", 1_000_000),
    ("mio", 1_000_000),
    ("billion", 1_000_000_000),
    ("billions", 1_000_000_000),
    ("milliarde", 1_000_000_000),
    ("milliarden", 1_000_000_000),
    ("mrd", 1_000_000_000),
    ("bn", 1_000_000_000),
    ("trillion", 1_000_000_000_000),
];
/// Letters right after the number of an amount of money that do; `5m` alone may be a length.
const LETTERS: [(&str, i128); 4] =
    [("k", 1_000), ("m", 1_000_000), ("b", 1_000_000_000), ("bn", 1_000_000_000)];

/// How tables say in what their numbers are.
const TABLE_SCALES: [(&str, i128); 6] = [
    ("in thousand", 1_000),
    ("in million", 1_000_000),
    ("in billion", 1_000_000_000),
    ("in tausend", 1_000),
    ("in mio", 1_000_000),
    ("in mrd", 1_000_000_000),
];

/// Whether a character is part of a number.
const fn is_digit(char: char) -> bool {
    char.is_ascii_digit() || matches!(char, '.' | ',')
}

/// A number of a text, in thousandths, with its currency if one stands next to it.
pub(super) struct Amount {
    pub(super) number: i128,
    /// What it may be if the letter after it multiplies it, where that is not certain.
    by_letter: Option<i128>,
    /// What a word or letter after it multiplies it with; part of `number`.
    pub(super) scale: i128,
    currency: Option<usize>,
}

impl Amount {
    /// Whether its number says what it is, however it is written: an amount of money, or a number of three digits.
    pub(super) const fn is_distinct(&self) -> bool {
        self.currency.is_some() || !self.is_short()
    }

    const fn is_short(&self) -> bool {
        self.number < 100 * 1_000
    }

    /// Whether another amount is this one, or may be, since no currency stands next to it.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.number == other.number
            && (self.currency == other.currency || other.currency.is_none() && !self.is_short())
    }

    /// The numbers that it may be.
    pub(super) fn readings(&self) -> impl Iterator<Item = i128> {
        [Some(self.number), self.by_letter].into_iter().flatten()
    }
}

/// The amounts in a stretch of a text; what stands next to it counts as well.
pub(super) fn amounts<'t>(text: &'t str, range: &Range<usize>) -> impl Iterator<Item = Amount> + use<'t> {
    let (start, end) = (range.start, range.end);
    // The words before and after the stretch say what its numbers are.
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let until = text[end..].find("\n\n").map_or(text.len(), |at| end + at);
    let found = numbers(&text[line..until]).map(move |(at, number)| (line + at, number));
    let found = found.skip_while(move |(at, _)| *at < start).take_while(move |(at, _)| *at < end);
    found.map(|(at, number)| {
        let end = self::end(text, at);
        let by_letter = letter(text, end).and_then(|factor| number.checked_mul(factor));
        Amount { number, by_letter, scale: scale(text, end), currency: currency(text, at) }
    })
}

/// Every number of a text, in thousandths; one with a letter such as `70B` also as what that may multiply it to.
pub(super) fn readings(text: &str) -> impl Iterator<Item = i128> {
    numbers(text).flat_map(|(at, number)| {
        let by_letter = letter(text, end(text, at)).and_then(|factor| number.checked_mul(factor));
        std::iter::once(number).chain(by_letter)
    })
}

/// The end of the number that begins at a place.
pub(super) fn end(text: &str, at: usize) -> usize {
    let digits = text[at..].find(|char: char| !is_digit(char)).map_or(text.len(), |length| at + length);
    at + text[at..digits].trim_end_matches(['.', ',']).len()
}

/// Which numbers a text states in which currencies.
pub(super) struct Currencies {
    known: BTreeMap<i128, BTreeSet<Option<usize>>>,
    /// In what it says that the numbers of a table are, such as "in millions".
    pub(super) scales: Vec<i128>,
}

impl Currencies {
    pub(super) fn of(text: &str) -> Self {
        let mut known: BTreeMap<i128, BTreeSet<Option<usize>>> = BTreeMap::new();
        for (at, number) in numbers(text) {
            known.entry(number).or_default().insert(currency(text, at));
        }
        let lower = text.to_lowercase();
        let of_table = |words: &&(&str, i128)| {
            lower.match_indices(words.0).any(|(at, found)| {
                let after = lower[at + found.len()..].trim_start_matches(char::is_alphabetic);
                let after = after.trim_start_matches(['.', ' ']);
                after.is_empty()
                    || after.starts_with([')', ']', ',', ';', ':', '|', '\n', '\r', '$', '€', '£'])
                    || ["of dollars", "of euros", "of us", "dollars", "euros", "usd", "eur"]
                        .iter()
                        .any(|words| after.starts_with(words))
            })
        };
        Self { known, scales: TABLE_SCALES.iter().filter(of_table).map(|(_, scale)| *scale).collect() }
    }

    /// Whether an amount is not one that the text states in other currencies only.
    pub(super) fn allow(&self, shown: &Amount) -> bool {
        let Some(currency) = shown.currency else { return true };
        let known = self.known.get(&shown.number);
        known.is_none_or(|known| known.contains(&None) || known.contains(&Some(currency)))
    }
}

/// The currency next to the number that begins at a place.
fn currency(text: &str, at: usize) -> Option<usize> {
    let of = |word: &str| {
        let word = word.to_lowercase();
        CURRENCIES.iter().position(|written| written.contains(&word.as_str()))
    };
    let before = text[..at].trim_end_matches(' ');
    let is_sign = |char: char| matches!(char, '$' | '€' | '£' | '¥' | '₹');
    let sign = before.chars().next_back().filter(|char| is_sign(*char));
    if let Some(sign) = sign {
        let prefix = &before[..before.len() - sign.len_utf8()];
        let letters = prefix.len() - prefix.trim_end_matches(|char: char| char.is_ascii_alphabetic()).len();
        return of(&before[before.len() - sign.len_utf8() - letters..]);
    }
    let word_before = before.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    let after = text[at..].trim_start_matches(is_digit).trim_start_matches(['*', '_']);
    let after = after.strip_prefix(scale_word(after)).unwrap_or(after).trim_start_matches(' ');
    let sign_after = after.chars().next().filter(|char| is_sign(*char)).map(|char| char.to_string());
    let word_after: String = after.chars().take_while(|char| char.is_alphabetic()).collect();
    let of_word = |word: &str| if word.len() < 3 { None } else { of(word) };
    sign_after.as_deref().and_then(of).or_else(|| of_word(&word_after)).or_else(|| of_word(word_before))
}

/// What the number that ends at a place is certainly multiplied with, by the word or letter after it.
pub(super) fn scale(text: &str, end: usize) -> i128 {
    let word = scale_word(&text[end..]).trim_matches(|char: char| !char.is_alphabetic()).to_lowercase();
    let spelled = SCALES.iter().find(|(scale, _)| *scale == word).map(|(_, factor)| *factor);
    let number = text[..end].trim_end_matches(is_digit).trim_end_matches(' ');
    let is_money = number.ends_with(['$', '€', '£', '¥', '₹']);
    spelled.or_else(|| letter_after(text, end).filter(|_| is_money)).unwrap_or(1)
}

/// What the letter after the number that ends at a place may multiply it with, if it is not certain that it does.
fn letter(text: &str, end: usize) -> Option<i128> {
    letter_after(text, end).filter(|_| scale(text, end) == 1)
}

fn letter_after(text: &str, end: usize) -> Option<i128> {
    let word = scale_word(&text[end..]);
    LETTERS.iter().find(|(letter, _)| word.eq_ignore_ascii_case(letter)).map(|(_, factor)| *factor)
}

/// The word right after a number, with the mark and the white space before it, if it can multiply.
fn scale_word(after: &str) -> &str {
    let marks = after.len() - after.trim_start_matches(['*', '_']).len();
    let space = after[marks..].chars().next().filter(|char| char.is_whitespace()).map_or(0, char::len_utf8);
    let gap = marks + space;
    let length = after[gap..].find(|char: char| !char.is_alphabetic()).unwrap_or(after.len() - gap);
    let lower = after[gap..gap + length].to_lowercase();
    let is_spelled = SCALES.iter().any(|(scale, _)| *scale == lower);
    let is_letter = gap == 0 && LETTERS.iter().any(|(letter, _)| *letter == lower);
    if is_spelled || is_letter { &after[..gap + length] } else { "" }
}
