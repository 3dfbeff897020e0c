//! Telephone numbers, which are the same in whatever groups their digits are. Plain functions of texts.

use std::collections::BTreeSet;
use std::ops::Range;

use super::digits;

/// Digits of a telephone number.
const LENGTHS: Range<usize> = 7..16;
/// What may separate groups of digits.
const SEPARATORS: [char; 7] = [' ', '\u{a0}', '(', ')', '-', '.', '/'];
/// Bytes between two groups.
const GAP: usize = 3;

/// The digits of numbers that begin with `+` or `0`, which may end after any of their groups.
pub(super) fn stated(text: &str) -> BTreeSet<String> {
    runs(text).into_iter().flatten().map(|(_, digits)| digits).collect()
}

/// The places of the telephone numbers of an answer that are stated, in order.
pub(super) fn same(text: &str, stated: &BTreeSet<String>) -> Vec<Range<usize>> {
    let longest = |run: Vec<(Range<usize>, String)>| {
        run.into_iter().rev().find(|(_, digits)| stated.contains(digits)).map(|(range, _)| range)
    };
    runs(text).into_iter().filter_map(longest).collect()
}

/// The numbers that begin at each place: a longer one after each group of digits.
fn runs(text: &str) -> Vec<Vec<(Range<usize>, String)>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(['+', '0']).map(|at| from + at) {
        let is_inside = text[..start].ends_with(|char: char| {
            char.is_alphanumeric() || matches!(char, '.' | ',' | '-' | '/' | ':' | '+')
        });
        let mut run = Vec::new();
        let mut number = String::new();
        let mut at = start + usize::from(text[start..].starts_with('+'));
        loop {
            let length = digits(&text[at..]);
            number.push_str(&text[at..at + length]);
            if is_inside || length == 0 || number.len() >= LENGTHS.end {
                break;
            }
            at += length;
            if LENGTHS.contains(&number.len()) {
                run.push((start..at, number.clone()));
            }
            let gap = text[at..].len() - text[at..].trim_start_matches(SEPARATORS).len();
            // `0.25` is a decimal.
            let is_decimal = number == "0" && text[at..].starts_with('.');
            if is_decimal || !(1..=GAP).contains(&gap) {
                break;
            }
            at += gap;
        }
        from = at.max(start + 1);
        found.push(run);
    }
    found
}
