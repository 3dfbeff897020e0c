//! Whether a page states what a model says it does: by the quote, and by every number.

use std::ops::Range;

/// The bytes of `page` that match `quote`, white space aside; `None` if it is not on the page.
pub(super) fn place_of(quote: &str, page: &str) -> Option<Range<usize>> {
    places_of(quote, page).next()
}

/// Every place of `quote` on the page, white space aside.
pub(super) fn places_of<'t>(quote: &'t str, page: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
    let quote: Vec<&str> = quote.split_whitespace().collect();
    let first: Option<&'t str> = quote.first().copied();
    let starts = first.into_iter().flat_map(|first| page.match_indices(first)).map(|(at, _)| at);
    starts.filter_map(move |start| end_of(&quote, page, start).map(|end| start..end))
}

/// The end of the words that begin at `start`.
fn end_of(words: &[&str], page: &str, start: usize) -> Option<usize> {
    let mut at = start;
    for (place, word) in words.iter().enumerate() {
        let rest = &page[at..];
        let gap = rest.len() - rest.trim_start().len();
        if place > 0 && gap == 0 {
            return None;
        }
        at += gap;
        page[at..].starts_with(word).then_some(())?;
        at += word.len();
    }
    Some(at)
}

/// `697` and `1,299.00` of `$697 to $1,299.00`.
pub(super) fn numbers(price: &str) -> Vec<&str> {
    let digits = |char: char| char.is_ascii_digit() || char == '.' || char == ',';
    let parts = price.split(|char: char| !digits(char)).map(|part| part.trim_matches(['.', ',']));
    parts.filter(|part| part.bytes().any(|byte| byte.is_ascii_digit())).collect()
}

/// Whether the number is in the text by itself: `1` is not in `15`, `1.5` or `1,500`.
pub(super) fn contains_number(number: &str, text: &str) -> bool {
    let digit = |char: Option<char>| char.is_some_and(|char| char.is_ascii_digit());
    text.match_indices(number).any(|(at, _)| {
        let (mut before, mut after) = (text[..at].chars().rev(), text[at + number.len()..].chars());
        let (left, right) = (before.next(), after.next());
        let joined = |near: Option<char>, far: Option<char>| {
            digit(near) || matches!(near, Some('.' | ',')) && digit(far)
        };
        !joined(left, before.next()) && !joined(right, after.next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_found_apart_from_white_space_and_nothing_else() {
        let page = "The LOQ 15\ncosts  $697 today. The LOQ 15 costs $697.";
        let found = place_of("LOQ 15 costs $697", page).unwrap();
        assert_eq!(&page[found], "LOQ 15\ncosts  $697");
        for absent in ["LOQ 15 costs $699", "LOQ15 costs", "", "  ", "loq 15", "costs $697 today! The"] {
            assert_eq!(place_of(absent, page), None, "{absent}");
        }
        assert_eq!(place_of("é b", "aé b").map(|range| range.len()), Some(4));
        // Much that begins alike costs no more than its length.
        assert_eq!(place_of("a b", &"a ".repeat(100_000)), None);
    }

    #[test]
    fn every_number_of_a_price_must_be_on_the_page() {
        assert_eq!(numbers("$697 to $1,299.00, about"), ["697", "1,299.00"]);
        assert!(numbers("on request").is_empty());
        assert!(
            contains_number("697", "for $697.")
                && contains_number("1", "1, 2")
                && contains_number("649", "649")
        );
        for text in ["15", "1.5", "1,500", "2.1", ""] {
            assert!(!contains_number("1", text), "{text}");
        }
    }
}
