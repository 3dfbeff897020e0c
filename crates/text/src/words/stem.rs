//! Stems: what forms of one English word have in common. Knows single words in lower case.

use std::borrow::Cow;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// A longer run of letters is data; it is left as it is.
const LONGEST_STEMMED: usize = 32;

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

/// How words are stemmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stemming {
    /// Words stay as they are.
    None,
    /// Common endings are cut off, without a dictionary: cheap enough for every word of a text that is being condensed.
    Endings,
    /// Irregular forms are looked up, and Snowball's English rules applied: for indexes, which stem a word once and use it
    /// often.
    English,
}

impl Stemming {
    /// The stem of a word in lower case.
    pub fn stem(self, word: &str) -> Cow<'_, str> {
        match self {
            Self::None => Cow::Borrowed(word),
            Self::Endings => {
                let mut letters = word.chars().rev();
                let tail = [letters.next(), letters.next(), letters.next()].map(Option::unwrap_or_default);
                let cut = ending([tail[2], tail[1], tail[0]], word.chars().count());
                // What is cut off are ASCII letters.
                Cow::Borrowed(&word[..word.len() - cut])
            }
            Self::English => english(word),
        }
    }
}

/// How many of a word's last letters are `ing`, `ed`, `es`, `s` or `e`, where enough is left without them.
pub(super) fn ending([a, b, c]: [char; 3], letters: usize) -> usize {
    match (a, b, c) {
        ('i', 'n', 'g') if letters >= 6 => 3,
        (_, 'e', 'd' | 's') if letters >= 5 => 2,
        (_, b, 's') if letters >= 4 && b != 's' => 1,
        (_, _, 'e') if letters >= 5 => 1,
        _ => 0,
    }
}

fn english(word: &str) -> Cow<'_, str> {
    if word.len() > LONGEST_STEMMED || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    let regular = IRREGULAR.binary_search_by_key(&word, |&(form, _)| form).map_or(word, |at| IRREGULAR[at].1);
    Stemmer::create(Algorithm::English).stem(regular)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_forms_of_one_word_share_a_stem() {
        for forms in [
            ["running", "ran", "runs"],
            ["went", "going", "gone"],
            ["children", "child", "child"],
            ["adopted", "adopting", "adopt"],
        ] {
            let stems = forms.map(|form| Stemming::English.stem(form));
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{forms:?}: {stems:?}");
        }
        assert_ne!(Stemming::English.stem("adopt"), Stemming::English.stem("adapt"));
        assert_eq!(Stemming::English.stem("größere"), "größere");
        assert_eq!(Stemming::English.stem(&"ed".repeat(40)), "ed".repeat(40));
    }

    #[test]
    fn endings_are_cut_off_where_enough_is_left() {
        for (word, stem) in [
            ("loading", "load"),
            ("ring", "ring"),
            ("loaded", "load"),
            ("boxes", "box"),
            ("cats", "cat"),
            ("glass", "glass"),
            ("gates", "gat"),
            ("gate", "gate"),
            ("gates\u{e9}", "gates\u{e9}"),
            ("is", "is"),
            ("", ""),
        ] {
            assert_eq!(Stemming::Endings.stem(word), stem, "{word}");
            assert_eq!(Stemming::None.stem(word), word);
        }
    }

    #[test]
    fn irregular_forms_are_sorted() {
        assert!(IRREGULAR.is_sorted_by(|a, b| a.0 < b.0));
    }
}
