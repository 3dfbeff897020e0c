//! Names of which the documents have not a single word, wherever they stand in an answer: where a sentence begins, in
//! emphasised text, before a colon, and in every column of a table, in every language. Two capitalised words, the first of
//! which is no ordinary word. What is ordinary is told from the vocabulary of a tokenizer, in which ordinary words are one
//! token in small letters and names are several.

use larder_text::tokens::Counter;

use super::names::{is_english, without_code};
use super::starts::{is_ordinary, is_start, tells_what_is_counted};
use super::words::Words;

/// How adjectives and nouns end that are no names, in small letters. Longer words of German are rarely one token.
const NO_NAMES: [&str; 48] = [
    "ung", "ungen", "heit", "heiten", "keit", "keiten", "schaft", "zeit", "zeiten", "kosten", "preis",
    "preise", "tage", "tion", "tionen", "nis", "tät", "ment", "isch", "ische", "ischer", "isches", "ischen",
    "liche", "licher", "liches", "lichen", "ige", "iger", "iges", "igen", "bare", "barer", "bares", "baren",
    "te", "ter", "tes", "ten", "able", "ible", "ness", "ity", "ship", "ing", "ized", "proof", "ful",
];

/// Bytes of the endings that names have, too.
const LONGEST_SHARED: usize = 3;
/// A longer word of a language that joins nouns is a compound.
const LONGEST_NAME: usize = 13;

/// These names of a text, each with the start of its line.
pub(super) fn of(text: &str, words: &Words) -> Vec<(usize, String)> {
    let with_nouns = !is_english(text);
    let mut found = Vec::new();
    let (mut at, mut rows) = (0, 0);
    let end = text.trim_end().len();
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let plain = without_code(line.trim());
        rows = if plain.starts_with('|') { rows + 1 } else { 0 };
        // Headings may capitalise any word.
        if plain.starts_with('#') || rows == 1 {
            continue;
        }
        let is_last = at >= end;
        for cell in plain.split('|') {
            let words_of_cell = cell.split_whitespace().count();
            let is_heading = |run: &[&str]| rows == 0 && !is_last && run.len() == words_of_cell;
            let of_cell = runs(cell, with_nouns).into_iter().filter(|run| !is_heading(run));
            let unknown =
                of_cell.filter(|run| run.len() > 1 && !run.iter().any(|word| words.know_word(word)));
            let named = unknown.filter(|run| is_name(run, with_nouns));
            found.extend(named.map(|run| (start, run.join(" "))));
        }
    }
    found
}

/// Runs of capitalised words, without what usually begins a sentence and what is counted.
fn runs(text: &str, with_nouns: bool) -> Vec<Vec<&str>> {
    let mut runs: Vec<Vec<&str>> = vec![Vec::new()];
    let mut before = "";
    for word in text.split_whitespace() {
        let plain = word.trim_matches(['*', '_']);
        let bare = plain.trim_matches(|char: char| !char.is_alphanumeric());
        let is_part = bare.starts_with(char::is_uppercase)
            && bare.chars().skip(1).any(char::is_lowercase)
            && bare.chars().all(|char| char.is_alphabetic() || matches!(char, '-' | '\'' | '’'));
        let opens = plain.starts_with(|char: char| !char.is_alphanumeric());
        if (!is_part || opens)
            && let Some(last) = runs.last()
            && !last.is_empty()
        {
            runs.push(Vec::new());
        }
        let is_led = is_start(bare) || tells_what_is_counted(before, bare, with_nouns);
        if let Some(run) = runs.last_mut().filter(|run| is_part && !(run.is_empty() && is_led)) {
            run.push(bare);
        }
        before = word;
        if plain.ends_with(|char: char| !char.is_alphanumeric()) {
            runs.push(Vec::new());
        }
    }
    runs
}

/// Whether the first of unknown words is no ordinary one, nor a noun or an adjective of a language that capitalises nouns.
pub(super) fn is_name(run: &[&str], with_nouns: bool) -> bool {
    let Some(first) = run.first().map(|word| word.to_lowercase()) else { return false };
    let is_built = with_nouns
        && first.split('-').any(|part| {
            part.chars().count() > LONGEST_NAME || NO_NAMES.iter().any(|end| part.ends_with(end))
        });
    let is_plain = || match first.contains('-') {
        true => is_ordinary(&first),
        false => Counter::o200k().count(&format!(" {first}")) == 1,
    };
    !is_built && first.chars().all(|char| !is_wide(char)) && !is_plain()
}

/// Whether a word of a language that joins nouns, or a part of one with hyphens, is too long for a name or has an ending of
/// nouns and adjectives; names have short ones, too, as *Thorsten* and *Brigitte* do.
pub(super) fn is_noun(word: &str) -> bool {
    let lower = word.to_lowercase();
    let has_ending =
        |part: &str| NO_NAMES.iter().any(|end| end.len() > LONGEST_SHARED && part.ends_with(end));
    lower.split('-').any(|part| part.chars().count() > LONGEST_NAME || has_ending(part))
}

/// Whether a letter is of a script whose words are rarely one token.
fn is_wide(char: char) -> bool {
    !matches!(char, '\0'..='\u{24f}')
}
