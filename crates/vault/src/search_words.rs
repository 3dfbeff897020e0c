//! Splits queries and texts into words as an index of documents does: runs of letters and digits, without case and
//! diacritics. Also finds the passage of a text with most of a query.

use std::collections::HashMap;

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Maximum number of query words; the rest are ignored.
pub const MOST_WORDS: usize = 32;
/// Maximum bytes of a query word.
const LONGEST_WORD: usize = 64;
/// Characters of a snippet.
const SNIPPET: usize = 240;
/// Characters of a snippet before the first word of the query.
const BEFORE: usize = 60;

/// One word, as an index has it.
fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(word);
    let is_mark = |char: &char| ('\u{300}'..='\u{36f}').contains(char);
    decomposed.chars().filter(|char| !is_mark(char)).flat_map(char::to_lowercase).collect()
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_letter = |char: char| char.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&char);
    let start = text.as_ptr() as usize;
    text.split(move |char| !is_letter(char))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - start, word))
}

/// The different words of a query, in their order; at most [`MOST_WORDS`].
pub fn of_query(query: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, word) in words(query).filter(|(_, word)| word.len() <= LONGEST_WORD) {
        let word = folded(word);
        if !word.is_empty() && !found.contains(&word) {
            found.push(word);
        }
        if found.len() == MOST_WORDS {
            break;
        }
    }
    found
}

/// How often each query word occurs in a text, and the number of words in the text.
pub fn counts(text: &str, query: &HashMap<&str, usize>) -> (Vec<u32>, u32) {
    let (mut counts, mut length) = (vec![0; query.len()], 0_u32);
    for (_, word) in words(text) {
        length = length.saturating_add(1);
        if let Some(count) = query.get(folded(word).as_str()).and_then(|at| counts.get_mut(*at)) {
            *count += 1;
        }
    }
    (counts, length)
}

/// The line of a text with the highest-weighted words, cut around the first of them and collapsed to one line.
pub fn snippet(text: &str, query: &HashMap<&str, usize>, weights: &[f64]) -> String {
    let (mut best, mut most) = (("", 0), -1.0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (mut seen, mut first, mut weight) = (vec![false; weights.len()], None, 0.0);
        for (at, word) in words(line) {
            let Some(word) = query.get(folded(word).as_str()).copied() else { continue };
            first = first.or(Some(at));
            if let (Some(seen), Some(more)) = (seen.get_mut(word), weights.get(word)) {
                weight += if *seen { 0.0 } else { *more };
                *seen = true;
            }
        }
        if weight > most {
            (best, most) = ((line, first.unwrap_or(0)), weight);
        }
    }
    let (line, first) = best;
    let skipped = line.get(..first).map_or(0, |before| before.chars().count()).saturating_sub(BEFORE);
    let shown: String = line.chars().skip(skipped).take(SNIPPET).collect();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_index() {
        assert_eq!(
            of_query("Café, CAFE? l'Été-42 \"x\" NEAR(a*)"),
            ["cafe", "l", "ete", "42", "x", "near", "a"]
        );
        assert_eq!(of_query("e\u{301}te\u{301}"), ["ete"]);
        assert!(of_query("…!? --").is_empty());
    }

    #[test]
    fn a_snippet_is_the_line_that_says_most() {
        let query = HashMap::from([("laptop", 0), ("price", 1)]);
        let text =
            format!("# Laptops\na laptop\n{} the laptop has a price of $5   now\nend", "x ".repeat(200));
        let snippet = snippet(&text, &query, &[1.0, 2.0]);
        assert!(snippet.contains("laptop has a price of $5 now"), "{snippet}");
        assert!(snippet.chars().count() <= SNIPPET);
    }
}
