//! Checks pieces and counts against reference implementations: OpenAI's patterns run by a backtracking engine, and
//! the crate `tiktoken`.

use fancy_regex::Regex;
use proptest::prelude::*;

use super::engine::{OpenAi, OpenAiEngine, TokenEngine};
use super::tests::random_numbers;

/// OpenAI's original pattern for cl100k_base. The current one puts white space at the end of a text into one piece,
/// which makes no difference because [`no_token_has_white_space_after_its_last_break`].
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

const BOTH: [(OpenAi, &str); 2] = [(OpenAi::Cl100k, CL100K), (OpenAi::O200k, O200K)];

/// Runs of one or two characters from every class that a pattern distinguishes, and from many scripts.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-z]{1,9}",
        3 => "[A-Z]{1,3}[a-z]{0,6}",
        3 => "[ \t\r\n]{1,4}",
        2 => "[!-/:-@\\[-`{-~]{1,3}",
        2 => "['’][sStTdDmMrReEvVlLſ]{0,3}",
        1 => "[0-9]{1,7}",
        1 => "[½²٣Ⅷ\u{3007}一]{1,4}",
        1 => "[ǅʰªﬁßéÅĄñ]{1,4}",
        1 => "[\u{300}-\u{310}\u{903}\u{20dd}\u{fe0f}]{1,3}",
        1 => "[\u{85}\u{a0}\u{2003}\u{2028}\u{3000}\u{200b}\u{feff}]{1,3}",
        2 => "[ぁ-んァ-ヶ一-龠]{1,9}[、。！」]?",
        1 => "[가-힣]{1,6}",
        1 => "[а-яА-ЯёαΩ]{1,8}",
        1 => "[अ-ह\u{93e}\u{94d}]{1,6}",
        1 => "[א-ת؀-ي]{1,6}",
        1 => "[😀-🙏👍🏽\u{200d}🇦-🇿𠀀-𠂀𝒜-𝔷]{1,4}",
        1 => "(\\{|\\}|;|//|/\\*|=>|    |\\(\\)|\n/|\\.\n/){1,4}",
        2 => "\\PC{1,6}",
        1 => prop::collection::vec(any::<char>(), 1..6).prop_map(String::from_iter),
        1 => "[a =\n漢]".prop_flat_map(|c| (1..90_usize).prop_map(move |n| c.repeat(n))),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn pieces_by<'t>(pattern: &Regex, text: &'t str) -> Vec<&'t str> {
    pattern.find_iter(text).map(|found| found.unwrap().as_str()).collect()
}

fn pieces_of(vocabulary: OpenAi, text: &str) -> Vec<&str> {
    vocabulary.vocabulary().unwrap().pieces(text).collect()
}

proptest! {
    #[test]
    fn pieces_are_those_of_the_pattern(text in text()) {
        for (vocabulary, pattern) in BOTH {
            let expected = pieces_by(&Regex::new(pattern).unwrap(), &text);
            prop_assert_eq!(pieces_of(vocabulary, &text), expected, "{:?}", vocabulary);
        }
    }

    /// The crate counts each piece; its own splitting differs for the long s in a contraction.
    #[test]
    fn counts_are_those_of_the_crate_tiktoken(text in text()) {
        for (vocabulary, _) in BOTH {
            let reference = tiktoken::get_encoding(vocabulary.name()).unwrap();
            let tables = vocabulary.vocabulary().unwrap();
            let sum: usize = tables.pieces(&text).map(|piece| reference.count(piece)).sum();
            prop_assert_eq!(OpenAiEngine::new(vocabulary).count(&text), sum, "{:?}", vocabulary);
            prop_assert_eq!(tables.count(&text), sum);
            if !text.contains('ſ') {
                prop_assert_eq!(reference.count(&text), sum);
                let lengths: Vec<usize> =
                    reference.encode(&text).iter().map(|&id| reference.decode(&[id]).len()).collect();
                prop_assert_eq!(tables.lengths(&text), lengths);
            }
        }
    }
}

#[test]
fn every_character_is_of_its_class() {
    for (vocabulary, pattern) in BOTH {
        let pattern = Regex::new(pattern).unwrap();
        for c in '\0'..=char::MAX {
            for text in [format!("{c}"), format!("a{c}B{c}c1{c}\n"), format!(" {c}{c} b")] {
                assert_eq!(pieces_of(vocabulary, &text), pieces_by(&pattern, &text), "{text:?}");
            }
        }
    }
}

#[test]
fn every_token_is_one_token() {
    for (vocabulary, _) in BOTH {
        let (reference, tables) =
            (tiktoken::get_encoding(vocabulary.name()).unwrap(), vocabulary.vocabulary().unwrap());
        for id in 0..u32::try_from(reference.vocab_size()).unwrap() {
            let token = reference.decode(&[id]);
            assert_eq!(tables.merges.count(&token), 1, "{token:?}");
            assert_eq!(tables.merges.lengths(&token), [token.len()], "{token:?}");
        }
    }
}

/// So white space after the last break counts the same within the break's piece and as its own.
#[test]
fn no_token_has_white_space_after_its_last_break() {
    let reference = tiktoken::get_encoding("cl100k_base").unwrap();
    for id in 0..u32::try_from(reference.vocab_size()).unwrap() {
        let token = String::from_utf8_lossy(&reference.decode(&[id])).into_owned();
        let after = token.rsplit_once(['\r', '\n']).map_or("", |(_, after)| after);
        assert!(!after.starts_with(|c: char| c.is_whitespace() || c == '\u{fffd}'), "{token:?}");
    }
}

/// Long pieces of random letters, which exercise the priority queue.
#[test]
fn long_pieces_count_the_same() {
    let mut random = random_numbers();
    for alphabet in ["abcdefghijklmnopqrstuvwxyz", "aab", "あいうえおかき漢字日本語", "éàüñ", "!-_=+*"]
    {
        let alphabet: Vec<char> = alphabet.chars().collect();
        for length in (1..120).chain([1000, 7000]) {
            let text: String = (0..length).map(|_| alphabet[random() as usize % alphabet.len()]).collect();
            for (vocabulary, _) in BOTH {
                let reference = tiktoken::get_encoding(vocabulary.name()).unwrap();
                assert_eq!(OpenAiEngine::new(vocabulary).count(&text), reference.count(&text), "{text:?}");
                assert_eq!(vocabulary.vocabulary().unwrap().count(&text), reference.count(&text), "{text:?}");
            }
        }
    }
}
