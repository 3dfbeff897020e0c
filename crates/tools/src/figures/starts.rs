//! Words whose capital says nothing: those that often begin a sentence, ordinary ones in titles, and what is counted in
//! languages that capitalise nouns.

use larder_text::tokens::Counter;

use super::scales::is_scale;

/// Words that often begin a sentence: with one of them, the capital says nothing.
const STARTS: [&str; 150] = [
    "a",
    "about",
    "according",
    "after",
    "all",
    "also",
    "although",
    "an",
    "and",
    "another",
    "any",
    "are",
    "as",
    "ask",
    "at",
    "because",
    "before",
    "best",
    "between",
    "both",
    "but",
    "buy",
    "by",
    "call",
    "can",
    "check",
    "choose",
    "click",
    "compare",
    "compared",
    "consider",
    "contact",
    "could",
    "currently",
    "dear",
    "despite",
    "did",
    "do",
    "does",
    "during",
    "each",
    "every",
    "few",
    "for",
    "from",
    "get",
    "go",
    "good",
    "great",
    "had",
    "happy",
    "has",
    "have",
    "he",
    "hello",
    "her",
    "here",
    "hey",
    "hi",
    "his",
    "how",
    "however",
    "i",
    "if",
    "in",
    "is",
    "it",
    "its",
    "kind",
    "last",
    "let",
    "like",
    "many",
    "may",
    "meanwhile",
    "might",
    "more",
    "most",
    "my",
    "next",
    "no",
    "not",
    "note",
    "of",
    "on",
    "only",
    "open",
    "or",
    "order",
    "other",
    "our",
    "please",
    "press",
    "read",
    "run",
    "see",
    "select",
    "several",
    "she",
    "should",
    "since",
    "so",
    "some",
    "such",
    "tap",
    "than",
    "thank",
    "thanks",
    "that",
    "the",
    "their",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "though",
    "to",
    "today",
    "tomorrow",
    "try",
    "under",
    "unlike",
    "until",
    "use",
    "using",
    "very",
    "visit",
    "warm",
    "warmest",
    "was",
    "we",
    "welcome",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "why",
    "with",
    "without",
    "would",
    "yes",
    "yesterday",
    "you",
    "your",
    "yours",
];

/// Whether a word often begins a sentence, so that its capital says nothing.
pub(super) fn is_start(word: &str) -> bool {
    let lower = word.to_lowercase();
    let word = lower.split(['\'', '’']).next().unwrap_or_default();
    STARTS.contains(&word) || word.ends_with("ly")
}

/// Measures, scales and kinds that precede a noun or a name: what begins with one in capitals is no name yet.
const MEASURES: [&str; 72] = [
    "million",
    "millionen",
    "millions",
    "milliarde",
    "milliarden",
    "billion",
    "billionen",
    "billions",
    "mio",
    "mrd",
    "tausend",
    "hundert",
    "dutzend",
    "paar",
    "prozent",
    "promille",
    "grad",
    "euro",
    "cent",
    "dollar",
    "franken",
    "kronen",
    "pfund",
    "yen",
    "gramm",
    "kilo",
    "kilogramm",
    "milligramm",
    "tonne",
    "tonnen",
    "liter",
    "litern",
    "milliliter",
    "meter",
    "metern",
    "kilometer",
    "kilometern",
    "zentimeter",
    "millimeter",
    "quadratmeter",
    "kubikmeter",
    "hektar",
    "watt",
    "kilowatt",
    "kilowattstunden",
    "volt",
    "ampere",
    "hertz",
    "stunde",
    "stunden",
    "minute",
    "minuten",
    "sekunden",
    "monate",
    "monaten",
    "jahre",
    "jahren",
    "stück",
    "flasche",
    "flaschen",
    "glas",
    "tasse",
    "tassen",
    "packung",
    "packungen",
    "anfang",
    "mitte",
    "ende",
    "kategorie",
    "modell",
    "marke",
    "größe",
];
/// Words of lower rank are ordinary however often they are capitalised.
const FREQUENT: u32 = 10_000;

/// Whether every part of a word is ordinary: one token of o200k_base in small letters which is not rarer than with a
/// capital, as names are.
pub(super) fn is_ordinary(word: &str) -> bool {
    let rank = |word: &str| Counter::o200k_rank(&format!(" {word}"));
    let is_one = |part: &str| {
        let lower = part.to_lowercase();
        let capital: String =
            lower.chars().take(1).flat_map(char::to_uppercase).chain(lower.chars().skip(1)).collect();
        let is_rarer = |small: u32| rank(&capital).is_some_and(|capital| capital / 4 * 5 < small);
        part.chars().count() == 1 || rank(&lower).is_some_and(|small| small < FREQUENT || !is_rarer(small))
    };
    word.split(['-', '\'', '’']).all(is_one)
}

/// Whether a word in capitals is written in small letters or with one capital more often, as no abbreviation is.
pub(super) fn is_rarer_in_capitals(word: &str) -> bool {
    let rank = |word: &str| Counter::o200k_rank(&format!(" {word}"));
    let lower = word.to_lowercase();
    let usual = rank(&lower).filter(|_| is_ordinary(&lower));
    word.chars().count() > 2 && usual.is_some_and(|usual| rank(word).is_none_or(|capitals| usual < capitals))
}

/// Whether a capitalised word after another tells what is counted or measured: a measure, and after a number that is no
/// year a scale or in languages that capitalise nouns any word.
pub(super) fn tells_what_is_counted(before: &str, word: &str, with_nouns: bool) -> bool {
    let number = before.trim_matches(|char: char| !char.is_ascii_digit());
    let is_year = number.len() == 4 && (number.starts_with("19") || number.starts_with("20"));
    let is_number = !number.is_empty()
        && !is_year
        && before.chars().all(|char| char.is_ascii_digit() || ".,*_~+-–".contains(char))
        && before.ends_with(|char: char| char.is_ascii_digit() || matches!(char, '*' | '_'));
    MEASURES.contains(&word.to_lowercase().as_str()) || is_number && (with_nouns || is_scale(word))
}
