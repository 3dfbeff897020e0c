//! Names in an answer: two or more capitalised words next to each other. Headings, the labels of lists and tables, and code
//! are not searched, since they may capitalise any word.

use std::ops::Range;

use larder_text::tokens::Counter;

use super::cues::{cued, is_anybody, says_who};
use super::starts::{is_start, tells_what_is_counted};
use super::strangers::is_name as is_unusual;

/// Titles whose full stop ends no sentence.
const TITLES: [&str; 18] = [
    "dr.", "mr.", "mrs.", "ms.", "prof.", "st.", "hr.", "fr.", "jr.", "mme.", "sr.", "sra.", "srta.", "sig.",
    "sig.ra", "dott.", "dhr.", "mevr.",
];
/// What stands before a name alone, too: titles in full.
const FULL_TITLES: [&str; 20] = [
    "doctor",
    "professor",
    "miss",
    "madam",
    "sir",
    "herr",
    "herrn",
    "frau",
    "president",
    "mme",
    "mlle",
    "madame",
    "monsieur",
    "señor",
    "señora",
    "signor",
    "signora",
    "senhor",
    "senhora",
    "pani",
];
/// Words before a single letter that is no initial: `vitamin C.`
const LETTERED: [&str; 16] = [
    "vitamin", "option", "plan", "type", "typ", "grade", "class", "klasse", "part", "teil", "version",
    "step", "section", "group", "gruppe", "case",
];
/// Bytes between two words of a name that is written another way.
const MOST_BETWEEN: usize = 8;
/// Words of praise: with one of them, emphasised text is a label.
const PRAISE: [&str; 8] = ["best", "good", "great", "top", "very", "beste", "bester", "bestes"];
/// Polite pronouns of German, which are capitalised within sentences.
const PRONOUNS: [&str; 7] = ["sie", "ihr", "ihre", "ihrem", "ihren", "ihrer", "ihnen"];
/// Frequent words of English and of German. Where German ones prevail, nouns are capitalised, too.
const ENGLISH: [&str; 24] = [
    "the", "of", "and", "is", "are", "it", "to", "in", "for", "at", "by", "this", "that", "runs", "has",
    "was", "with", "from", "on", "says", "you", "be", "its", "not",
];
const GERMAN: [&str; 16] = [
    "der", "die", "das", "und", "ist", "sind", "ein", "eine", "nicht", "mit", "für", "zu", "im", "auf",
    "sie", "von",
];

/// The same of French, Spanish, Italian, Portuguese and Dutch, which do not capitalise nouns.
const OTHERS: [&str; 26] = [
    "le", "la", "les", "est", "et", "une", "votre", "sont", "el", "los", "las", "es", "y", "una", "il",
    "della", "di", "è", "het", "een", "van", "os", "uma", "é", "du", "por",
];
/// First names which are ordinary words of the vocabulary.
pub(super) const GIVEN: [&str; 52] = [
    "john", "james", "robert", "michael", "david", "william", "richard", "thomas", "charles", "daniel",
    "paul", "mark", "peter", "george", "mary", "anna", "maria", "sarah", "jane", "emma", "alice", "laura",
    "lisa", "julia", "martin", "simon", "max", "adam", "alex", "ben", "tom", "jan", "kim", "lee", "sam",
    "eric", "jack", "henry", "kevin", "steven", "brian", "elena", "marie", "sven", "ada", "eva", "nina",
    "hans", "uwe", "clara", "mia", "lena",
];
/// Bytes of the documents that tell their language.
const SAMPLE: usize = 20_000;

/// Whether a text is of a language that capitalises nouns, or may be.
pub(super) fn capitalises_nouns(text: &str) -> bool {
    let others = frequency(text, &OTHERS);
    !is_english(text) && (others == 0 || others < frequency(text, &GERMAN))
}

/// A name of a text.
pub(super) struct Name {
    /// Where its line begins.
    pub(super) line: usize,
    pub(super) text: String,
    /// Whether what is before it says that it is of a person or a company.
    pub(super) is_cued: bool,
}

/// The names of a text. In English the first word of a sentence may begin one. A text
/// without a frequent word of any language is in that of its documents.
pub(super) fn of(text: &str, documents: &str) -> Vec<Name> {
    let end =
        (SAMPLE..documents.len()).find(|end| documents.is_char_boundary(*end)).unwrap_or(documents.len());
    let sample = &documents[..end];
    let is_undecided = || [&ENGLISH[..], &GERMAN, &OTHERS].iter().all(|known| frequency(text, known) == 0);
    let are_english =
        || frequency(sample, &ENGLISH) > 2 * (frequency(sample, &GERMAN) + frequency(sample, &OTHERS));
    let is_english = is_english(text);
    if is_english || !is_undecided() || !are_english() {
        return names(text, is_english);
    }
    let mut found = names(text, true);
    found.retain(|name| {
        let first = name.text.split(' ').next().unwrap_or_default();
        name.is_cued
            || GIVEN.contains(&first.to_lowercase().as_str())
            || is_unusual(&[first], true)
            || first.ends_with('.')
    });
    found
}

/// The names of a text that do not begin a sentence.
pub(super) fn within(text: &str) -> Vec<Name> {
    names(text, false)
}

/// Whether English words prevail over German ones.
pub(super) fn is_english(text: &str) -> bool {
    frequency(text, &ENGLISH) > frequency(text, &GERMAN)
}

/// Whether German words prevail over those of other languages.
pub(super) fn is_german(text: &str) -> bool {
    frequency(text, &GERMAN) > frequency(text, &ENGLISH).max(frequency(text, &OTHERS))
}

/// How many of these words a text has.
fn frequency(text: &str, known: &[&str]) -> usize {
    let words = text.split(|char: char| !char.is_alphabetic()).map(str::to_lowercase);
    words.filter(|word| known.contains(&word.as_str())).count()
}

fn names(text: &str, with_first: bool) -> Vec<Name> {
    let mut found = Vec::new();
    let (mut at, mut rows, mut names_people) = (0, 0, false);
    let end = text.trim_end().len();
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let is_last = at >= end;
        let plain = without_code(line.trim());
        rows = if plain.starts_with('|') { rows + 1 } else { 0 };
        let names: Vec<(String, bool)> = match rows {
            _ if plain.starts_with('#') => Vec::new(),
            0 => {
                let labelled = labelled(&plain).map(|name| (name, true));
                in_line(&plain, is_last, with_first).into_iter().chain(labelled).collect()
            }
            1 => {
                names_people = plain.split('|').nth(1).is_some_and(says_who);
                Vec::new()
            }
            // The first column says what the others are about, unless it names people.
            _ if names_people => {
                plain.split('|').flat_map(|cell| in_text(cell, true, with_first).0).collect()
            }
            _ => plain.split('|').skip(2).flat_map(|cell| in_text(cell, true, with_first).0).collect(),
        };
        found.extend(names.into_iter().map(|(text, is_cued)| Name { line: start, text, is_cued }));
    }
    found
}

/// The name after a label such as `Contact:`, up to a comma or semicolon: nothing but capitalised words.
fn labelled(line: &str) -> Option<String> {
    let (label, value) = line.split_once(':').filter(|(label, _)| says_who(label))?;
    let value = value.trim_start_matches(['*', '_']).split([',', ';', '(']).next().unwrap_or_default();
    // The address of a link follows its text.
    let words = value.split_whitespace().take_while(|word| !word.contains("://") && !word.contains("mailto"));
    let words: Vec<&str> = words.map(|word| word.trim_matches(['*', '_', '.'])).collect();
    let is_name = |word: &&str| {
        word.starts_with(char::is_uppercase)
            && word.chars().skip(1).any(char::is_lowercase)
            && !is_anybody(word)
    };
    let is_one = label.split_whitespace().count() <= 4 && (2..=4).contains(&words.len());
    (is_one && words.iter().all(is_name)).then(|| words.join(" "))
}

/// A line without what stands between backticks.
pub(super) fn without_code(line: &str) -> String {
    let pieces = line.split('`').enumerate();
    pieces.map(|(at, piece)| if at % 2 == 0 { piece } else { " - " }).collect()
}

/// The names of a line. One of nothing but capitalised words is a heading if there is text below it.
fn in_line(line: &str, is_last: bool, with_first: bool) -> Vec<(String, bool)> {
    let (names, is_name_alone) = in_text(line, false, with_first);
    let is_heading = !is_last && (is_name_alone || is_emphasised(line));
    if is_heading { Vec::new() } else { names }
}

/// Whether nothing but emphasised text is in a line, which may be an item of a list.
fn is_emphasised(line: &str) -> bool {
    let text = line.trim_start_matches(|char: char| !char.is_alphanumeric() && char != '*');
    let text = text.trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | ')' | ' '));
    let text = text.trim_start_matches("* ").trim();
    let inner = text.strip_prefix("**").and_then(|text| text.strip_suffix("**"));
    inner.is_some_and(|inner| !inner.contains("**"))
}

/// Whether the emphasised text that begins a sentence here is a label: a colon ends it, or it praises what follows.
fn is_label(from: &str) -> bool {
    let Some((inner, after)) = from.strip_prefix("**").and_then(|from| from.split_once("**")) else {
        return false;
    };
    let first = inner.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    inner.trim_end().ends_with(':') || after.trim_start().starts_with(':') || PRAISE.contains(&first.as_str())
}

/// The words of a text, each with the text from there on.
fn words_from(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        let from = rest;
        let end = from.find(char::is_whitespace).unwrap_or(from.len());
        rest = from[end..].trim_start();
        (end > 0).then(|| (&from[..end], from))
    })
}

/// Whether a word is the initial of a name, as in `E. Doe`, after this word: not the label of a list or of one of several
/// things.
fn is_initial(word: &str, before: &str) -> bool {
    let mut chars = word.chars();
    let is_letter = chars.next().is_some_and(char::is_uppercase) && chars.as_str() == ".";
    let is_word = before.chars().all(char::is_lowercase) && !LETTERED.contains(&before);
    is_letter && is_word && !(before.is_empty() && matches!(word, "A." | "B." | "C." | "D."))
}

/// A text with spaces in place of these words, which are in lower case.
pub(super) fn without_words(text: &str, words: &[String]) -> String {
    let mut left = text.to_owned();
    for (place, word) in words_with_places(text) {
        if words.binary_search(&word.to_lowercase()).is_ok() {
            left.replace_range(place.clone(), &" ".repeat(place.len()));
        }
    }
    left
}

/// The names of a text, or of a cell whose first word may begin one, each with whether it is cued, and whether nothing but a
/// name is in the text. What stands before a colon at the start of a sentence is a label.
fn in_text(text: &str, mut is_inside: bool, with_first: bool) -> (Vec<(String, bool)>, bool) {
    let mut found = Vec::new();
    let (mut at, mut run): (usize, Vec<&str>) = (0, Vec::new());
    let (mut is_labelling, mut begins, mut before) = (false, false, "");
    for (word, from) in words_from(text) {
        let plain = word.trim_matches(['*', '_']);
        let bare = plain.trim_matches(|char: char| !char.is_alphanumeric());
        is_labelling |= !is_inside && is_label(from);
        let is_name = !is_labelling
            && bare.chars().next().is_some_and(char::is_uppercase)
            && bare.chars().count() > 1
            && !PRONOUNS.contains(&bare.to_lowercase().as_str())
            && bare.chars().skip(1).any(char::is_lowercase);
        let is_start = || !with_first || is_start(bare);
        let lower = plain.to_lowercase();
        let is_initial = !is_labelling && run.is_empty() && is_initial(plain, before);
        let is_name = is_name || is_initial;
        let is_abbreviated = TITLES.contains(&lower.as_str()) || is_initial;
        let is_title = is_abbreviated || FULL_TITLES.contains(&lower.as_str());
        let is_counted = run.is_empty() && tells_what_is_counted(before, bare, !with_first);
        before = word;
        if !is_name || is_title {
            found.push((at, std::mem::take(&mut run)));
        }
        at = if run.is_empty() { text.len() - from.len() } else { at };
        if is_title && is_name {
            // Even a single word after it is a name.
            run.push(if is_abbreviated { plain } else { bare });
            begins = false;
        } else if is_name && !is_counted && (is_inside || !is_start()) {
            begins = if run.is_empty() { !is_inside } else { begins };
            run.push(bare);
        }
        if !is_abbreviated && plain.ends_with(['.', '!', '?', ':', ',', ';', ')']) {
            let ended = std::mem::take(&mut run);
            if !(begins && plain.ends_with(':')) {
                found.push((at, ended));
            }
        }
        is_labelling &= !word.trim_start_matches('*').contains("**");
        // The first word of a sentence is capitalised anyway, if no name begins with it.
        is_inside = !bare.is_empty() && (is_title || !plain.ends_with(['.', '!', '?', ':']));
    }
    let is_name_alone = begins && run.len() == text.split_whitespace().count();
    found.push((at, run));
    let names = found.into_iter().filter(|(_, run)| run.len() > 1).map(|(at, run)| {
        let (is_cued, run) = cued(text, at, &run);
        (run.join(" "), is_cued)
    });
    (names.collect(), is_name_alone)
}

/// Where a text has one of these names: in any letter case, and its last word after a title.
pub(super) fn places(text: &str, names: &[&String]) -> Vec<Range<usize>> {
    let words: Vec<(Range<usize>, String)> =
        words_with_places(text).map(|(place, word)| (place, word.to_lowercase())).collect();
    let is_gap = |gap: &str| {
        gap.len() <= MOST_BETWEEN
            && gap.chars().all(|char| char.is_whitespace() || matches!(char, '*' | '_' | '-'))
    };
    let of_name = |name: &&String| {
        let mut wanted: Vec<String> = words_with_places(name).map(|(_, word)| word.to_lowercase()).collect();
        if wanted.len() > 2 && is_title(&wanted[0]) {
            wanted.remove(0);
        }
        let is_name = wanted.len() > 1 && !name.contains(|char: char| char.is_ascii_digit());
        let Some(last) = wanted.last().filter(|_| is_name) else { return Vec::new() };
        let whole = words.windows(wanted.len()).filter(|found| {
            found.iter().zip(&wanted).all(|((_, word), wanted)| word == wanted)
                && found.windows(2).all(|two| is_gap(&text[two[0].0.end..two[1].0.start]))
        });
        // What remains of a name that is used alone, or with an initial.
        let alone = words.iter().enumerate().filter(|(at, (place, word))| {
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let follows = before.is_some_and(|(before, word)| {
                let is_gap = is_gap(&text[before.end..place.start]);
                is_gap
                    && text[before.clone()].starts_with(char::is_uppercase)
                    && word.len() > 1
                    && !is_start(word)
            });
            let is_capital = text[place.clone()].starts_with(char::is_uppercase);
            // Indexes have names in small letters.
            word == last && !(is_capital && follows) && Counter::o200k().count(&format!(" {word}")) > 1
        });
        let alone = alone.map(|(_, (place, _))| place.clone());
        let titled = words.windows(2).filter(|two| {
            let (title, gap) = (two[0].1.as_str(), &text[two[0].0.end..two[1].0.start]);
            two[1].1 == *last && is_title(title) && is_gap(gap.strip_prefix('.').unwrap_or(gap))
        });
        let of = |found: &[(Range<usize>, String)]| found[0].0.start..found[found.len() - 1].0.end;
        whole.map(of).chain(titled.map(of)).chain(alone).collect::<Vec<_>>()
    };
    names.iter().flat_map(of_name).collect()
}

pub(super) fn is_title(word: &str) -> bool {
    let letter = word.strip_suffix('.').is_some_and(|letter| letter.chars().count() == 1);
    let word = word.trim_end_matches('.');
    letter || FULL_TITLES.contains(&word) || TITLES.iter().any(|known| known.trim_end_matches('.') == word)
}

pub(super) fn words_with_places(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut at = 0;
    let words = text.split(|char: char| !char.is_alphanumeric()).map(move |word| {
        let start = text[at..].find(word).map_or(at, |skipped| at + skipped);
        at = start + word.len();
        (start..at, word)
    });
    words.filter(|(_, word)| !word.is_empty())
}
