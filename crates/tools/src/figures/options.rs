//! The values of options and keys, such as `--workers 6` and `port = 7443`: one that an answer gives an option must be one
//! that the documents give it, where they give it any. Plain functions of texts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A value of an option.
struct Given<'t> {
    name: &'t str,
    value: &'t str,
    range: Range<usize>,
}

/// The values with digits that a text gives options, in order.
fn given(text: &str) -> Vec<Given<'_>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("--") {
        let is_start = !text[..at].ends_with(|char: char| char.is_alphanumeric() || char == '-');
        if !is_start {
            continue;
        }
        let name = word(&text[at + 2..]);
        let from = at + 2 + name.len();
        let is_name = name.len() > 1 && name.starts_with(|char: char| char.is_ascii_alphabetic());
        if is_name && text[from..].starts_with([' ', '=']) {
            found.extend(value(text, name, from + 1));
        }
    }
    for (at, _) in text.match_indices('=') {
        let before = text[..at].trim_end_matches(' ');
        let name = before.rsplit(|char: char| !is_part(char)).next().unwrap_or_default();
        let is_name = name.len() > 1 && name.starts_with(|char: char| char.is_ascii_alphabetic());
        let is_option = before[..before.len() - name.len()].ends_with("--");
        let from = at + 1 + text[at + 1..].len() - text[at + 1..].trim_start_matches([' ', '"']).len();
        if is_name && !is_option && from - at < 4 {
            found.extend(value(text, name, from));
        }
    }
    found
}

fn value<'t>(text: &'t str, name: &'t str, from: usize) -> Option<Given<'t>> {
    let value = &text[from..];
    let length =
        value.find(|char: char| !(is_part(char) || matches!(char, '.' | ':'))).unwrap_or(value.len());
    let value = value[..length].trim_end_matches(['.', ':']);
    let is_number = value.starts_with(|char: char| char.is_ascii_digit());
    is_number.then_some(Given { name, value, range: from..from + value.len() })
}

fn word(text: &str) -> &str {
    &text[..text.find(|char: char| !is_part(char)).unwrap_or(text.len())]
}

const fn is_part(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_')
}

/// Where an answer gives an option a value that the documents do not, though they give it another.
pub(super) fn changed(text: &str, documents: &str) -> Vec<(usize, String)> {
    let asked = given(text);
    if asked.is_empty() {
        return Vec::new();
    }
    let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in given(documents) {
        known.entry(one.name).or_default().insert(one.value);
    }
    let is_other = |one: &Given<'_>| known.get(one.name).is_some_and(|values| !values.contains(one.value));
    let found = asked.into_iter().filter(is_other);
    found.map(|one| (one.range.start, format!("{} {}", one.name, one.value))).collect()
}
