//! The digit by which an answer shows that a price is multiplied: `7 × 25 €`, `25 EUR x 7`. Plain functions of texts.

use super::{amounts, window};

/// What stands after a price for multiplied by.
const SIGNS: [&str; 3] = ["×", " x ", " * "];
/// Words between the number of a price and the sign, as in `25 € pro Stück × 7`, and bytes in which they are.
const MOST_WORDS: usize = 3;
const NEAR: usize = 32;

/// The digit that a text shows to multiply the price whose number begins at a place, in thousandths.
pub(super) fn factor(text: &str, at: usize) -> Option<i128> {
    let digit = before(&text[..at]).or_else(|| after(&text[amounts::end(text, at)..]));
    digit.map(|digit| i128::from(digit) * 1_000)
}

/// The digit before a price, as in `7 × 25 €`, `7 * €25` and `7 Stück × 25 €`.
fn before(text: &str) -> Option<u32> {
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '.' | ',' | '/');
    let before = before_sign(text)?.trim_end();
    let noun = before.trim_end_matches(char::is_alphabetic);
    let before = noun.strip_suffix(' ').unwrap_or(before);
    let digit = before.chars().next_back()?.to_digit(10)?;
    (!before[..before.len() - 1].ends_with(is_part)).then_some(digit)
}

/// What is before the sign between a factor and a price.
fn before_sign(text: &str) -> Option<&str> {
    // A currency, and what emphasises the price.
    let is_between = |char: char| !char.is_alphanumeric() && !matches!(char, '×' | '\n' | '|');
    let end = text.trim_end_matches(is_between);
    let by_letter = || end.strip_suffix('x').filter(|before| !before.ends_with(char::is_alphabetic));
    // `7 * €25` and `7*25`, but `7 *25 €*` is emphasised.
    let end_of_star = text.trim_end_matches(|char: char| is_between(char) && !matches!(char, '*' | ' '));
    let by_star = || {
        let glued = || end_of_star.strip_suffix('*').filter(|before| before.ends_with(char::is_numeric));
        end_of_star.strip_suffix(" * ").or_else(glued)
    };
    end.strip_suffix('×').or_else(by_letter).or_else(by_star)
}

/// The digit after a price, as in `25 € × 7` and `25 EUR/Stück * 7`.
fn after(text: &str) -> Option<u32> {
    let near = &text[window(text, &(0..0), NEAR)];
    let (at, length) = SIGNS.iter().filter_map(|sign| Some((near.find(sign)?, sign.len()))).min()?;
    let between = &text[..at];
    let is_mark = |char: char| char.is_numeric() || "\n|+=,;:()[]".contains(char);
    let words = between.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty());
    if between.contains(is_mark) || between.contains(". ") || words.count() > MOST_WORDS {
        return None;
    }
    let after = text[at + length..].trim_start_matches(' ');
    let digit = after.chars().next()?.to_digit(10)?;
    let rest = &after[1..];
    let decimals = rest.strip_prefix(['.', ',']).unwrap_or_default();
    let is_longer = rest.starts_with(|char: char| char.is_alphanumeric() || char == '/')
        || decimals.starts_with(|char: char| char.is_ascii_digit());
    (!is_longer).then_some(digit)
}
