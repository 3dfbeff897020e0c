//! The words of documents and the names that they are of, which tell whether a name of an answer is one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use larder_text::tokens::Counter;

use super::cues::is_role;
use super::names::{GIVEN, Name, is_title, words_with_places};
use super::starts::{is_ordinary, is_start};
use super::strangers::is_noun;

/// Words of one name before its last.
const APART: usize = 4;
/// Parts of an address that may be of a name.
const PARTS: usize = 12;
/// Words in small letters within names.
const PARTICLES: [&str; 9] = ["van", "von", "de", "der", "den", "di", "da", "del", "la"];

/// What is between two words, without the full stop of an initial or a title.
fn gap<'t>(text: &'t str, two: &[(Range<usize>, &str)]) -> &'t str {
    let gap = &text[two[0].0.end..two[1].0.start];
    let is_short = two[0].1.chars().count() <= 3;
    gap.strip_prefix('.').filter(|_| is_short).unwrap_or(gap)
}

/// Where mail addresses, URLs and domains are: names in them are in small letters whatever they are.
fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let pieces = text.split(|char: char| char.is_whitespace() || "<>()[]{}\"',;|`".contains(char));
    let places = pieces.map(move |piece| {
        let start = at;
        at += piece.len();
        let end = at;
        // What separates two pieces may be longer than a byte.
        at += text[end..].chars().next().map_or(0, char::len_utf8);
        start..end
    });
    let is_address = |place: &Range<usize>| {
        let piece = text[place.clone()].trim_matches(|char: char| !char.is_alphanumeric());
        let joins_labels = |at: usize| {
            let is_letter = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
            is_letter(piece[..at].chars().next_back()) && is_letter(piece[at + 1..].chars().next())
        };
        piece.contains('@')
            || piece.contains("://")
            || piece.match_indices('.').any(|(at, _)| joins_labels(at))
    };
    places.filter(is_address).collect()
}

/// The words of documents, in lower case.
pub(super) struct Words {
    all: BTreeSet<String>,
    /// Those that begin with a capital somewhere.
    capitalised: BTreeSet<String>,
    /// Those that begin with a small letter somewhere.
    small: BTreeSet<String>,
    /// The capitalised words right before each capitalised word.
    before: BTreeMap<String, BTreeSet<String>>,
    /// The words of the names that each capitalised word is in.
    near: BTreeMap<String, BTreeSet<String>>,
}

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let words: Vec<(Range<usize>, &str)> = words_with_places(text).collect();
        let addresses = addresses(text);
        let is_in_address = |place: &Range<usize>| {
            let after = addresses.partition_point(|address| address.start <= place.start);
            after.checked_sub(1).is_some_and(|at| place.end <= addresses[at].end)
        };
        let is_capital = |word: &str| word.starts_with(char::is_uppercase);
        let mut before: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for two in words.windows(2).filter(|two| is_capital(two[0].1) && is_capital(two[1].1)) {
            let gap = gap(text, two);
            if !gap.is_empty() && gap.chars().all(|char| matches!(char, ' ' | '\u{a0}')) {
                before.entry(two[1].1.to_lowercase()).or_default().insert(two[0].1.to_lowercase());
            }
        }
        // `Grace Brewster Hopper`, `Ludwig van Beethoven` and `Hopper, Grace`.
        let joins = |two: &[(Range<usize>, &str)]| {
            let gap = gap(text, two).trim_start_matches(',');
            let is_name = |word: &str| is_capital(word) || PARTICLES.contains(&word);
            is_name(two[1].1) && gap.chars().all(|char| matches!(char, ' ' | '\u{a0}' | '-' | '\'' | '’'))
        };
        let mut near: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (at, (_, word)) in words.iter().enumerate().filter(|(_, (_, word))| is_capital(word)) {
            let lower = word.to_lowercase();
            if before.contains_key(&lower) {
                let first =
                    (at.saturating_sub(APART)..at).rev().take_while(|at| joins(&words[*at..at + 2])).last();
                let after = words.get(at..at + 2).filter(|two| joins(two));
                let around = words[first.unwrap_or(at)..at].iter().chain(after.into_iter().flatten());
                near.entry(lower).or_default().extend(around.map(|(_, word)| word.to_lowercase()));
            }
        }
        // `ingrid.halvorsen@shop.example` is of somebody with both names.
        for address in addresses.iter().map(|address| &text[address.clone()]) {
            let may_be_name = |word: &str| address.contains('@') || word.chars().count() > 1;
            let parts = words_with_places(address).filter(|(_, word)| may_be_name(word));
            let parts: Vec<String> = parts.map(|(_, word)| word.to_lowercase()).collect();
            for part in parts.iter().filter(|part| before.contains_key(*part)) {
                near.entry(part.clone()).or_default().extend(parts.iter().take(PARTS).cloned());
            }
        }
        let lower = |is_kind: &dyn Fn(&Range<usize>, &str) -> bool| {
            let kind = words.iter().filter(|(place, word)| is_kind(place, word));
            kind.map(|(_, word)| word.to_lowercase()).collect()
        };
        Self {
            capitalised: lower(&|_, word| is_capital(word)),
            small: lower(&|place, word| word.starts_with(char::is_lowercase) && !is_in_address(place)),
            all: lower(&|_, _| true),
            before,
            near,
        }
    }

    /// Whether a name is of another person or thing than the documents have of its last word: they put other names before
    /// it, and the first word of this is a name, too.
    fn is_other(&self, first: &str, last: &str) -> bool {
        let (first, last) = (first.to_lowercase(), last.to_lowercase());
        let Some(before) = self.before.get(&last) else { return false };
        if let Some(initial) = first.strip_suffix('.') {
            let mut names =
                before.iter().filter(|name| self.is_given(name) || name.chars().count() == 1).peekable();
            return initial.chars().count() == 1
                && names.peek().is_some()
                && !names.any(|name| name.starts_with(initial));
        }
        let is_near = self.near.get(&last).is_some_and(|near| {
            near.contains(&first)
                || near.iter().any(|word| word.chars().count() == 1 && first.starts_with(word.as_str()))
        });
        !is_near
            && self.is_given(&first)
            && self.is_given(&last)
            && before.iter().any(|name| self.is_given(name))
    }

    /// Whether a word in small letters is rather a name than another word.
    fn is_given(&self, word: &str) -> bool {
        let is_name = |word: &str| Counter::o200k().count(&format!(" {word}")) > 1;
        let is_word = word.chars().all(char::is_alphabetic) && word.chars().count() > 2;
        is_word && !self.small.contains(word) && !is_start(word) && (GIVEN.contains(&word) || is_name(word))
    }

    /// Whether one of the documents has a word, or one that it begins.
    pub(super) fn know_word(&self, word: &str) -> bool {
        knows(&self.all, word)
    }

    /// The capitalised words of a text that these are not, in lower case and sorted.
    pub(super) fn lack(&self, text: &str) -> Vec<String> {
        let may_be_name =
            |word: &str| word.starts_with(char::is_uppercase) && word.chars().skip(1).any(char::is_lowercase);
        let words = words_with_places(text).map(|(_, word)| word).filter(|word| may_be_name(word));
        let lacking: BTreeSet<String> =
            words.filter(|word| !self.know_word(word)).map(str::to_lowercase).collect();
        lacking.into_iter().collect()
    }

    /// Whether a name is of the documents: of two words both, or the second as a name, since the first may be what somebody
    /// is; of more words more than half. In languages that capitalise nouns, one known word is enough. After a title the last
    /// word is a surname, which must be one of the documents. Where the documents put another name before the last word, this
    /// is of somebody else. Ordinary words of which the documents have none are no name unless it is cued.
    pub(super) fn know(&self, name: &Name, with_nouns: bool) -> bool {
        let parts: Vec<&str> = name.text.split(' ').collect();
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return true };
        if is_title(&first.to_lowercase()) {
            let is_initial = first.chars().count() == 2 && first.ends_with('.');
            let given = if is_initial || parts.len() < 3 { first } else { parts[parts.len() - 2] };
            return knows(&self.capitalised, last) && !self.is_other(given, last);
        }
        let known: Vec<bool> = parts.iter().map(|part| knows(&self.all, part)).collect();
        // `Mayor Jonas Fischer`
        let says_who = |word: &str| is_role(&word.to_lowercase()) || is_start(word) || is_ordinary(word);
        let person = match parts.as_slice() {
            [before, person @ ..] if person.len() == 2 && says_who(before) => person,
            all => all,
        };
        if let [first, last] = person
            && self.is_other(first, last)
        {
            return false;
        }
        let is_given = name.is_cued || GIVEN.contains(&first.to_lowercase().as_str());
        if with_nouns {
            return known.contains(&true) || !is_given && (is_ordinary(first) || is_noun(first));
        }
        if !is_given && parts.iter().all(|part| is_ordinary(part)) {
            return true;
        }
        match known.as_slice() {
            [first, second] => *second && (*first || knows(&self.capitalised, last)),
            known => known.iter().filter(|known| **known).count() * 2 > known.len(),
        }
    }
}

/// Whether a word of a name occurs, in the singular or the plural, by itself or as the beginning of another.
fn knows(words: &BTreeSet<String>, part: &str) -> bool {
    let lower = part.to_lowercase();
    let pieces = lower.split(|char: char| !char.is_alphanumeric()).filter(|piece| piece.len() > 1);
    let starts =
        |piece: &str| words.range(piece.to_owned()..).next().is_some_and(|word| word.starts_with(piece));
    let mut pieces = pieces.peekable();
    pieces.peek().is_some()
        && pieces.all(|piece| starts(piece) || piece.strip_suffix('s').is_some_and(starts))
}
