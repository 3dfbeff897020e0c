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
    &["chf", "fr.", "franken"],
    &["cny", "rmb", "yuan"],
    &["c$", "cad"],
    &["a$", "aud"],
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
const TABLE_SCALES: [&str; 6] = ["in thousand", "in million", "in billion", "in tausend", "in mio", "in mrd"];

/// Whether a character is part of a number.
const fn is_digit(char: char) -> bool {
    char.is_ascii_digit() || matches!(char, '.' | ',')
}

/// A number of a text, in thousandths, with its currency if one stands next to it.
pub(super) struct Amount {
    pub(super) number: i128,
    /// What a word or letter after it multiplies it with; part of `number`.
    pub(super) scale: i128,
    currency: Option<usize>,
}

/// The amounts in a stretch of a text; what stands next to it counts as well.
pub(super) fn amounts<'t>(text: &'t str, range: &Range<usize>) -> impl Iterator<Item = Amount> + 't {
    let (start, end) = (range.start, range.end);
    // A word that multiplies may follow the stretch.
    let until = text[end..].find('\n').map_or(text.len(), |at| end + at);
    let found = numbers(&text[start..until]).map(move |(at, number)| (start + at, number));
    found.take_while(move |(at, _)| *at < end).map(|(at, number)| {
        let digits = text[at..].find(|char: char| !is_digit(char)).map_or(text.len(), |length| at + length);
        let scale = scale(text, at + text[at..digits].trim_end_matches(['.', ',']).len());
        Amount { number, scale, currency: currency(text, at) }
    })
}

/// Which numbers a text states in which currencies.
pub(super) struct Currencies {
    known: BTreeMap<i128, BTreeSet<Option<usize>>>,
    /// Whether it says of a table in what its numbers are, such as "in millions".
    pub(super) states_scale: bool,
}

impl Currencies {
    pub(super) fn of(text: &str) -> Self {
        let mut known: BTreeMap<i128, BTreeSet<Option<usize>>> = BTreeMap::new();
        for (at, number) in numbers(text) {
            known.entry(number).or_default().insert(currency(text, at));
        }
        let lower = text.to_lowercase();
        Self { known, states_scale: TABLE_SCALES.iter().any(|words| lower.contains(words)) }
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
        let prefix = before[..before.len() - sign.len_utf8()].chars().next_back();
        let with_prefix =
            prefix.filter(|char| char.is_ascii_alphabetic()).and_then(|char| of(&format!("{char}{sign}")));
        return with_prefix.or_else(|| of(&sign.to_string()));
    }
    let word_before = before.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    let after = text[at..].trim_start_matches(is_digit).trim_start_matches(['*', '_']);
    let after = after.strip_prefix(scale_word(after)).unwrap_or(after).trim_start_matches(' ');
    let sign_after = after.chars().next().filter(|char| is_sign(*char)).map(|char| char.to_string());
    let word_after: String = after.chars().take_while(|char| char.is_alphabetic()).collect();
    let of_word = |word: &str| if word.len() < 3 { None } else { of(word) };
    sign_after.as_deref().and_then(of).or_else(|| of_word(&word_after)).or_else(|| of_word(word_before))
}

/// What the number that ends at a place is multiplied with by the word or letter after it.
pub(super) fn scale(text: &str, end: usize) -> i128 {
    let word = scale_word(&text[end..]);
    let lower = word.trim_start().to_lowercase();
    let spelled = SCALES.iter().find(|(scale, _)| *scale == lower);
    let is_money = || {
        let number =
            text[..end].trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | ','));
        number.trim_end_matches(' ').ends_with(['$', '€', '£', '¥', '₹'])
    };
    let letter = || {
        LETTERS.iter().find(|(letter, _)| *letter == lower && !word.starts_with(' ')).filter(|_| is_money())
    };
    spelled.or_else(letter).map_or(1, |(_, factor)| *factor)
}

/// The word right after a number, with the space before it, if it can multiply.
fn scale_word(after: &str) -> &str {
    let gap = usize::from(after.starts_with(' '));
    let length = after[gap..].find(|char: char| !char.is_alphabetic()).unwrap_or(after.len() - gap);
    let lower = after[gap..gap + length].to_lowercase();
    let is_spelled = SCALES.iter().any(|(scale, _)| *scale == lower);
    let is_letter = gap == 0 && LETTERS.iter().any(|(letter, _)| *letter == lower);
    if is_spelled || is_letter { &after[..gap + length] } else { "" }
}
