//! Words of a text as terms that can be compared: any script, lower case, English words without their endings.
//!
//! Knows texts; does not know records, queries or scores.

use std::borrow::Cow;

use hashbrown::HashMap;
use snowball_stemmers_rs::{Algorithm, Stemmer};
use xxhash_rust::xxh3::xxh3_64;

use larder_text::words::is_wide;

/// A longer run of letters is data; it is left as it is.
const LONGEST_STEMMED: usize = 32;
/// What follows an apostrophe and is no word.
const CLITICS: [&str; 7] = ["d", "ll", "m", "re", "s", "t", "ve"];

/// English forms that no rule of endings brings together, in order.
const IRREGULAR: [(&str, &str); 123] = [
    ("ate", "eat"),
    ("became", "become"),
    ("began", "begin"),
    ("begun", "begin"),
    ("bent", "bend"),
    ("bitten", "bite"),
    ("blew", "blow"),
    ("blown", "blow"),
    ("bought", "buy"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("burnt", "burn"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("crept", "creep"),
    ("dealt", "deal"),
    ("drank", "drink"),
    ("drawn", "draw"),
    ("dreamt", "dream"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("drunk", "drink"),
    ("dug", "dig"),
    ("eaten", "eat"),
    ("fallen", "fall"),
    ("fed", "feed"),
    ("feet", "foot"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("found", "find"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("geese", "goose"),
    ("given", "give"),
    ("goes", "go"),
    ("gone", "go"),
    ("got", "get"),
    ("gotten", "get"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("hung", "hang"),
    ("kept", "keep"),
    ("knew", "know"),
    ("known", "know"),
    ("laid", "lay"),
    ("led", "lead"),
    ("left", "leave"),
    ("lent", "lend"),
    ("lit", "light"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("paid", "pay"),
    ("people", "person"),
    ("ran", "run"),
    ("rang", "ring"),
    ("ridden", "ride"),
    ("risen", "rise"),
    ("rode", "ride"),
    ("rung", "ring"),
    ("said", "say"),
    ("sang", "sing"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("shaken", "shake"),
    ("shook", "shake"),
    ("shot", "shoot"),
    ("shown", "show"),
    ("slept", "sleep"),
    ("sold", "sell"),
    ("sought", "seek"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("stuck", "stick"),
    ("sung", "sing"),
    ("swam", "swim"),
    ("swept", "sweep"),
    ("swum", "swim"),
    ("taken", "take"),
    ("taught", "teach"),
    ("teeth", "tooth"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("tore", "tear"),
    ("torn", "tear"),
    ("understood", "understand"),
    ("went", "go"),
    ("wept", "weep"),
    ("wives", "wife"),
    ("woke", "wake"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("written", "write"),
    ("wrote", "write"),
];

/// The terms of texts that are added one after another; every word is stemmed once.
#[derive(Debug, Clone, Default)]
pub(super) struct Stems(HashMap<u64, u64>);

impl Stems {
    /// Calls `give` with the term of every word of `text`, in order.
    pub(super) fn for_each(&mut self, text: &str, mut give: impl FnMut(u64)) {
        for_each_word(text, |word| {
            give(*self.0.entry(xxh3_64(word.as_bytes())).or_insert_with(|| term(word)));
        });
    }
}

/// The distinct terms of a text, in order of their first words.
pub(super) fn terms(text: &str) -> Vec<u64> {
    let mut terms = Vec::new();
    for_each_word(text, |word| {
        let term = term(word);
        if !terms.contains(&term) {
            terms.push(term);
        }
    });
    terms
}

/// The term of a word in lower case.
pub(super) fn term(word: &str) -> u64 {
    xxh3_64(stem(word).as_bytes())
}

fn stem(word: &str) -> Cow<'_, str> {
    if word.len() > LONGEST_STEMMED || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    let regular = IRREGULAR.binary_search_by_key(&word, |&(form, _)| form).map_or(word, |at| IRREGULAR[at].1);
    Stemmer::create(Algorithm::English).stem(regular)
}

/// Calls `give` with every word in lower case: runs of letters and digits; of scripts without spaces, every pair of
/// characters, or the one that stands alone.
fn for_each_word(text: &str, mut give: impl FnMut(&str)) {
    let (mut word, mut after_apostrophe) = (String::new(), false);
    // The last character of a script without spaces, and whether it was given in a pair.
    let mut wide: Option<(char, bool)> = None;
    let mut pair = String::new();
    for c in text.chars().chain([' ']) {
        let letter = c.is_alphanumeric();
        let is_wide = letter && is_wide(c);
        if !letter || is_wide {
            let clitic = after_apostrophe && CLITICS.contains(&word.as_str());
            if !word.is_empty() && !clitic {
                give(&word);
            }
            after_apostrophe = !word.is_empty() && matches!(c, '\'' | '’');
            word.clear();
        }
        if let Some((before, paired)) = wide
            && (is_wide || !paired)
        {
            pair.clear();
            pair.push(before);
            pair.extend(is_wide.then_some(c));
            give(&pair);
        }
        wide = is_wide.then_some((c, wide.is_some()));
        if letter && !is_wide {
            word.extend(c.to_lowercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_of_any_script_are_found() {
        assert_eq!(words("Mel's kids didn’t see veh-0772!"), ["mel", "kids", "didn", "see", "veh", "0772"]);
        assert_eq!(words("ÜBER’S straße О'Нил"), ["über", "straße", "о", "нил"]);
        assert_eq!(words("猫の名前 is 猫"), ["猫の", "の名", "名前", "is", "猫"]);
        assert_eq!(words("a猫b"), ["a", "猫", "b"]);
        assert!(words(" …!").is_empty());
    }

    #[test]
    fn forms_of_one_word_are_one_term() {
        for forms in [
            ["running", "ran", "runs"],
            ["went", "going", "gone"],
            ["Children", "child", "child's"],
            ["adopted", "adopting", "adopt"],
        ] {
            let terms: Vec<Vec<u64>> = forms.iter().map(|form| terms(form)).collect();
            assert!(terms.iter().all(|term| *term == terms[0]), "{forms:?}");
        }
        assert_ne!(term("adopt"), term("adapt"));
        assert_eq!(stem("größere"), "größere");
        assert_eq!(stem(&"ed".repeat(40)), "ed".repeat(40));
    }

    #[test]
    fn irregular_forms_stand_in_order() {
        assert!(IRREGULAR.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn remembered_stems_are_the_same() {
        let (mut stems, mut given) = (Stems::default(), Vec::new());
        for _ in 0..2 {
            stems.for_each("She wrote to us and writes again", |term| given.push(term));
        }
        let fresh: Vec<u64> =
            ["she", "wrote", "to", "us", "and", "writes", "again"].iter().map(|w| term(w)).collect();
        assert_eq!(given, [fresh.clone(), fresh].concat());
    }
}
