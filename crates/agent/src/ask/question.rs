//! What a question asks for: its words, each with its rarity, and the kind of answer it expects. English and German.
//!
//! Knows questions and sentences; does not know where sentences come from.

use larder_text::words::{is_stop_word, is_wide};

use super::vocabulary::{
    ARTICLES, ASKING, ASKS_AMOUNT, ASKS_DATE, ASKS_ELSE_THAN_PRICE, ASKS_MEANING, ASKS_PERSON, ASKS_PLACE,
    ASKS_REASON, ASKS_WAY, AT, AUXILIARY, DAYS, DEFINITE, GERMAN, INTERROGATIVE, IS, MONTHS, NUMBERS,
    ONLY_GERMAN, PRICE, REASONS, lists, says,
};

/// Maximum words of a subject in a question for a definition.
const SUBJECT_WORDS: usize = 3;
/// What a number is worth that follows another word than in the question, as in `12 crowns` for `gate 12`.
const OF_ANOTHER: f64 = 0.3;
/// Consecutive letters that parts of compounds must share.
const SHARED_STEM: usize = 6;

/// The kind of answer that a question expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    Date,
    Amount,
    Price,
    Person,
    Place,
    Reason,
    /// A way of doing something.
    Way,
    /// What something is.
    Meaning,
    /// Nothing in particular.
    Any,
}

/// A word of a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub word: String,
    /// The weight: 1 or more, higher for rare words.
    pub weight: f64,
    /// Whether the question writes it as a name: `France` in `What is the capital of France?`
    is_name: bool,
    /// Whether it is a number, an id or a word in capitals, which is what a question is about.
    is_key: bool,
    /// What a number is the number of: `gate` in `gate 12`.
    counted: Option<String>,
}

/// What a question asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuestionProfile {
    pub terms: Vec<Term>,
    pub kind: AnswerKind,
    /// All words of the question, as returned by [`words`].
    words: Vec<String>,
    /// The subject of a question for a definition, and whether it has a definite article.
    subject: Vec<String>,
    is_definite: bool,
    /// Whether it names an identifier, a path or a flag.
    pub names_code: bool,
}

impl QuestionProfile {
    /// `rarity` returns the rarity of a word in the texts that were read.
    pub fn of(question: &str, rarity: impl Fn(&str) -> f64) -> Self {
        let words = words(question);
        let german = is_german(&words);
        let names = if german { Vec::new() } else { names(question) };
        let is_capital = |word: &&str| word.len() > 1 && !word.contains(char::is_lowercase);
        let capitals: Vec<String> =
            question.split_whitespace().filter(is_capital).flat_map(self::words).collect();
        let mut terms: Vec<Term> = Vec::new();
        let is_empty =
            |word: &String| is_stop_word(word) || lists(ASKING, word) || german && lists(GERMAN, word);
        for (at, word) in words.iter().enumerate().filter(|(_, word)| !is_empty(word)) {
            if terms.iter().all(|term| term.word != *word) {
                let is_name = names.contains(word);
                let before = at.checked_sub(1).map(|before| &words[before]);
                let counted = before.filter(|before| is_number(word) && !is_empty(before)).cloned();
                let is_key = word.contains(|c: char| c.is_ascii_digit()) || capitals.contains(word);
                terms.push(Term { word: word.clone(), weight: 1.0 + rarity(word), is_name, is_key, counted });
            }
        }
        let names_code = question.split_whitespace().any(is_code);
        let subject = subject(&words);
        let kind = AnswerKind::of(&words, subject.is_some());
        let (subject, is_definite) = subject.unwrap_or_default();
        Self { kind, terms, words, subject, is_definite, names_code }
    }

    /// How far a text contains each word of the question, from 0 to 1.
    pub fn found(&self, text: &[String]) -> Vec<f64> {
        let like = |term: &Term, at: usize, word: &String| {
            let like = likeness(&term.word, word);
            let is_other = term.counted.as_ref().is_some_and(|counted| {
                at.checked_sub(1).is_none_or(|before| likeness(counted, &text[before]) == 0.0)
            });
            if is_other { like * OF_ANOTHER } else { like }
        };
        let best =
            |term: &Term| text.iter().enumerate().map(|(at, word)| like(term, at, word)).fold(0.0, f64::max);
        self.terms.iter().map(best).collect()
    }

    /// The share of the question, by the weight of its words, that was found.
    pub fn share(&self, found: &[f64]) -> f64 {
        let all: f64 = self.terms.iter().map(|term| term.weight).sum();
        let some: f64 = self.terms.iter().zip(found).map(|(term, found)| term.weight * found).sum();
        if all > 0.0 { some / all } else { 0.0 }
    }

    /// Whether a name in the question, no more common than its other words, was not found at all.
    pub fn lacks_name(&self, found: &[f64]) -> bool {
        let mean = self.terms.iter().map(|term| term.weight).sum::<f64>() / self.terms.len() as f64;
        let is_missing = |(term, found): (&Term, &f64)| term.is_name && term.weight >= mean && *found == 0.0;
        self.terms.iter().zip(found).any(is_missing)
    }

    /// Whether a quotation, which is or is not prose, states what the question is about: every number, id and word in
    /// capitals, and a row or a line of code also the rarest word. `words` are those of the quotation, of the headings
    /// above it and of its file's name.
    pub fn is_about(&self, words: &[String], is_prose: bool) -> bool {
        let rarest = self.terms.iter().map(|term| term.weight).fold(0.0, f64::max);
        let is_common = self.terms.iter().all(|term| term.weight == rarest);
        let states = |term: &Term| {
            // `v2.4` states 2.4.
            words.iter().any(|word| {
                likeness(&term.word, word) > 0.0 || word.trim_start_matches(char::is_alphabetic) == term.word
            })
        };
        let is_needed = |term: &&Term| term.is_key || !is_prose && !is_common && term.weight >= rarest;
        self.terms.iter().filter(is_needed).all(states)
    }

    /// Whether a text repeats the question, as documents about questions do, and code that poses it. What states a few
    /// words, or asks for them without saying so, is not repeated but found.
    pub fn is_repeated(&self, text: &str) -> bool {
        let count = self.words.len();
        let asks = self.words.iter().any(|word| lists(INTERROGATIVE, word))
            || self.words.first().is_some_and(|word| lists(AUXILIARY, word));
        // A line break that code writes as `\n` is not part of the next word.
        asks && count > 2
            && words(&text.replace("\\n", " ")).windows(count).any(|window| window == self.words)
    }

    /// Whether a text contains the expected kind of answer.
    pub fn is_satisfied(&self, text: &str, words: &[String]) -> bool {
        let is_new = |word: &&String| !self.words.contains(word);
        let any = |list: &str| words.iter().filter(is_new).any(|word| lists(list, word));
        let number = || words.iter().filter(is_new).any(|word| is_number(word));
        match self.kind {
            AnswerKind::Any => true,
            AnswerKind::Date => {
                any(MONTHS) || any(DAYS) || words.iter().filter(is_new).any(|word| is_date(word))
            }
            AnswerKind::Amount => number() || any(NUMBERS),
            AnswerKind::Price => {
                let is_price = |word: &String| likeness(word, "price") > 0.5;
                number() && (text.contains(['$', '€', '£', '¥']) || words.iter().any(is_price))
            }
            AnswerKind::Person => names_somebody(text, &self.words),
            AnswerKind::Place => text.split_whitespace().any(is_code) || names_place(words),
            AnswerKind::Reason => says(words, REASONS),
            AnswerKind::Way => holds_command(text),
            AnswerKind::Meaning => self.defines(text, words),
        }
    }

    /// Whether a text defines the subject: `A pointer is …`, `pointer: …`, `pointer | …`.
    fn defines(&self, text: &str, words: &[String]) -> bool {
        let is_subject = |words: &[String]| {
            words.len() == self.subject.len()
                && words.iter().zip(&self.subject).all(|(word, subject)| likeness(word, subject) > 0.9)
        };
        // `The pointer is …` refers to one mentioned before.
        let words = match words.split_first() {
            Some((first, rest)) if lists(ARTICLES, first) => {
                match self.is_definite || !lists(DEFINITE, first) {
                    true => rest,
                    false => return false,
                }
            }
            _ => words,
        };
        let (head, verb) = (words.get(..self.subject.len()), words.get(self.subject.len()));
        head.is_some_and(is_subject) && verb.is_some_and(|verb| lists(IS, verb))
            || text.split_once([':', '|', '–', '—']).is_some_and(|(name, _)| is_subject(&self::words(name)))
    }
}

impl AnswerKind {
    fn of(words: &[String], is_meaning: bool) -> Self {
        // `Preis`, and `Lieferpreis`.
        let is_price = |word: &String| {
            PRICE.split(", ").any(|price| word == price || price.len() > 4 && word.ends_with(price))
        };
        let asks = |list| says(words, list);
        match () {
            () if asks(ASKS_WAY) => Self::Way,
            () if words.iter().any(is_price) && !asks(ASKS_ELSE_THAN_PRICE) => Self::Price,
            () if asks(ASKS_DATE) => Self::Date,
            () if asks(ASKS_AMOUNT) => Self::Amount,
            () if asks(ASKS_PERSON) => Self::Person,
            () if asks(ASKS_PLACE) => Self::Place,
            () if asks(ASKS_REASON) => Self::Reason,
            () if is_meaning => Self::Meaning,
            () => Self::Any,
        }
    }
}

/// The subject of a question for a definition: `pointer` in `What is a pointer?`, nothing in `What is the name of it?`. With
/// whether it has a definite article.
fn subject(words: &[String]) -> Option<(Vec<String>, bool)> {
    let (start, rest) = words.split_at_checked(2)?;
    if !lists(ASKS_MEANING, &start.join(" ")) {
        return None;
    }
    let rest = rest.strip_suffix(&["mean".to_owned()][..]).unwrap_or(rest);
    let article = rest.first().filter(|word| lists(ARTICLES, word));
    let subject = &rest[usize::from(article.is_some())..];
    let is_empty = |word: &String| is_stop_word(word) || lists(GERMAN, word);
    let is_subject = (1..=SUBJECT_WORDS).contains(&subject.len()) && !subject.iter().any(is_empty);
    is_subject.then(|| (subject.to_vec(), article.is_some_and(|word| lists(DEFINITE, word))))
}

/// A pattern of lines that define the subject, for a question that asks for a definition.
pub(super) fn definition(question: &str) -> Option<String> {
    let words = words(question);
    let (subject, is_definite) = subject(&words)?;
    if AnswerKind::of(&words, true) != AnswerKind::Meaning
        || !subject.iter().flat_map(|word| word.chars()).all(char::is_alphanumeric)
    {
        return None;
    }
    let articles = if is_definite { "an?|ein|eine|the|der|die|das" } else { "an?|ein|eine" };
    let (subject, verbs) = (subject.join("\\W+"), IS.replace(", ", "|"));
    Some(format!(
        "(?i)(^|[.!?]\\s)\\W*((({articles})\\s+)?{subject}s?\\W?\\s+({verbs})\\s|{subject}\\W?\\s*[|–—]\\s)"
    ))
}

/// A question without German stop words, whose rarity in English documents means nothing, and with synonyms for price
/// if it asks for one.
pub(super) fn searched(question: &str) -> String {
    let words = words(question);
    let is_german = is_german(&words);
    let says = |word: &&str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        !is_german || !lists(GERMAN, &bare)
    };
    let kept: Vec<&str> = question.split_whitespace().filter(says).collect();
    let kept = if kept.is_empty() { question.to_owned() } else { kept.join(" ") };
    let is_price = AnswerKind::of(&words, false) == AnswerKind::Price;
    if is_price { format!("{kept} {}", PRICE.replace(',', "")) } else { kept }
}

/// The capitalised words of an English question, but for its first, in lower case.
fn names(question: &str) -> Vec<String> {
    let rest = question.split_whitespace().skip(1);
    rest.filter(|word| word.starts_with(char::is_uppercase)).flat_map(words).collect()
}

fn is_german(words: &[String]) -> bool {
    words.iter().any(|word| lists(ONLY_GERMAN, word))
}

/// The words of a text in lower case. Numbers stay whole (`2.4`, `14:30`), words in camel case are added in parts too,
/// and scripts without spaces are split into pairs of characters.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let mut wide: Option<char> = None;
    let mut previous = ' ';
    while let Some(c) = chars.next() {
        let within_number = matches!(c, '.' | ',' | ':' | '-' | '/')
            && previous.is_ascii_digit()
            && chars.peek().is_some_and(char::is_ascii_digit);
        if is_wide(c) {
            end_word(&mut word, &mut found);
            if let Some(before) = wide {
                found.push(format!("{before}{c}"));
            }
        } else if c.is_alphanumeric() || within_number {
            word.push(c);
        } else {
            end_word(&mut word, &mut found);
        }
        wide = is_wide(c).then_some(c);
        previous = c;
    }
    end_word(&mut word, &mut found);
    found
}

/// Adds a complete word, and its parts if it is in camel case.
fn end_word(word: &mut String, found: &mut Vec<String>) {
    let taken = std::mem::take(word);
    let mut part = 0;
    let mut previous_is_lower = false;
    for (at, c) in taken.char_indices() {
        if c.is_uppercase() && previous_is_lower {
            found.push(taken[part..at].to_lowercase());
            part = at;
        }
        previous_is_lower = c.is_lowercase();
    }
    if part > 0 {
        found.push(taken[part..].to_lowercase());
    }
    if !taken.is_empty() {
        found.push(taken.to_lowercase());
    }
}

/// The similarity of two words, from 0 to 1: forms of one word (`ship`, `shipped`), parts of compounds, prices.
pub(super) fn likeness(a: &str, b: &str) -> f64 {
    if a == b {
        return 1.0;
    }
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    if short.starts_with(|c: char| c.is_ascii_digit()) {
        return 0.0;
    }
    let (least, most) = (short.chars().count(), long.chars().count());
    let same = short.chars().zip(long.chars()).take_while(|(a, b)| a == b).count();
    // A plural, a past, a case.
    if same == least && most - least <= 2 && least >= 3 {
        return 0.95;
    }
    if same == least && most - least <= 4 && least >= 4 || same >= 4 && same * 10 >= most * 7 {
        return 0.8;
    }
    if lists(PRICE, a) && lists(PRICE, b) {
        return 0.7;
    }
    if share_stem(short, long, least) { 0.6 } else { 0.0 }
}

/// Whether most of the shorter word is in the longer: `Termin` in `Liefertermin`, `liefert` in both `geliefert` and `Liefertermin`.
fn share_stem(short: &str, long: &str, letters: usize) -> bool {
    let needed = SHARED_STEM.max((letters * 3).div_ceil(5));
    let starts: Vec<usize> = short.char_indices().map(|(at, _)| at).chain([short.len()]).collect();
    starts.windows(needed + 1).any(|window| long.contains(&short[window[0]..window[needed]]))
}

/// Whether a word, as written, is a path, an identifier or a flag.
fn is_code(word: &str) -> bool {
    let word =
        word.trim_matches(|c: char| matches!(c, '.' | ',' | '?' | '!' | '(' | ')' | '"' | '\'' | ';' | ':'));
    let inner = word.trim_matches('`');
    word.len() > 2
        && (word.starts_with('`')
            || inner.contains("::")
            || inner.contains('_')
            || inner.starts_with("--")
            || inner.contains('/') && !inner.starts_with("//") && !inner.contains("://")
            || inner.split_once('.').is_some_and(|(name, extension)| {
                !name.is_empty()
                    && (1..=5).contains(&extension.len())
                    && extension.chars().all(|c| c.is_ascii_lowercase())
            }))
}

fn is_date(word: &str) -> bool {
    let is_year = word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let signs = word.bytes().filter(|byte| matches!(byte, b'-' | b'/' | b'.' | b':')).count();
    word.starts_with(|c: char| c.is_ascii_digit())
        && (is_year || signs == 2 && digits >= 4 || signs == 1 && word.contains(':'))
}

/// Whether a text contains a capitalised word that is not in the question.
fn names_somebody(text: &str, asked: &[String]) -> bool {
    let is_name = |word: &str| {
        let lower = word.to_lowercase();
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_uppercase)
            && letters.next().is_some_and(char::is_lowercase)
            && word.chars().all(char::is_alphabetic)
            && !is_stop_word(&lower)
            && !lists(GERMAN, &lower)
            && !lists(DAYS, &lower)
            && !lists(MONTHS, &lower)
            && !asked.contains(&lower)
    };
    text.split(|c: char| !c.is_alphanumeric()).any(is_name)
}

/// Whether a text names a place: `in the cellar`, but not `in 14 days`.
fn names_place(words: &[String]) -> bool {
    let is_place = |word: &String| !is_number(word) && !lists(MONTHS, word) && !lists(DAYS, word);
    let is_article = |word: &&String| lists(ARTICLES, word) || lists(GERMAN, word);
    let follows = |at: usize| words.iter().skip(at + 1).find(|word| !is_article(word));
    (0..words.len()).any(|at| lists(AT, &words[at]) && follows(at).is_some_and(is_place))
}

/// Whether a text quotes something that can be typed: code of several words.
fn holds_command(text: &str) -> bool {
    text.split('`').skip(1).step_by(2).any(|code| code.trim().contains(' '))
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(question: &str) -> QuestionProfile {
        QuestionProfile::of(question, |_| 1.0)
    }

    fn satisfies(question: &str, text: &str) -> bool {
        wanted(question).is_satisfied(text, &words(text))
    }

    #[test]
    fn words_keep_numbers_whole_and_divide_humps() {
        assert_eq!(words("v2.4 on 14:30, RankIndex."), ["v2.4", "on", "14:30", "rank", "index", "rankindex"]);
        assert_eq!(words("猫の名"), ["猫の", "の名"]);
        let terms = |question| wanted(question).terms.into_iter().map(|term| term.word).collect::<Vec<_>>();
        assert_eq!(terms("When does version 2.4 ship?"), ["version", "2.4", "ship"]);
        assert_eq!(terms("Wann wird die neue Fassung geliefert?"), ["neue", "fassung", "geliefert"]);
        assert_eq!(searched("Wann ist der Termin?"), "Termin?");
        assert_eq!(searched("When did he die?"), "When did he die?");
    }

    #[test]
    fn a_name_that_the_question_is_about_has_to_be_found() {
        let france = wanted("What is the capital of France?");
        assert!(france.lacks_name(&[1.0, 0.0]) && !france.lacks_name(&[0.0, 0.2]));
        assert!(!wanted("How much does it cost?").lacks_name(&[0.0]));
        assert!(!wanted("Wann ist der Termin?").lacks_name(&[0.0]), "nouns are capitalised in German");
        let common =
            QuestionProfile::of("Which tokenizers does Larder have?", |word| f64::from(word.len() as u32));
        assert!(!common.lacks_name(&[1.0, 0.0]), "a common name need not be repeated");
    }

    #[test]
    fn forms_of_a_word_are_alike() {
        for (a, b) in [
            ("ship", "shipped"),
            ("enforce", "enforced"),
            ("liefern", "liefert"),
            ("cost", "price"),
            ("termin", "liefertermin"),
        ] {
            assert!(likeness(a, b) > 0.5 && likeness(b, a) > 0.5, "{a} {b}");
        }
        for (a, b) in [("ship", "shop"), ("2.4", "2.45"), ("ask", "task"), ("part", "pack")] {
            assert!(likeness(a, b) < 0.1, "{a} {b}");
        }
    }

    #[test]
    fn a_question_wants_a_kind_of_thing() {
        let date = "When does version 2.4 ship?";
        assert!(
            satisfies(date, "We ship on 14 March 2025.") && !satisfies(date, "We ship version 2.4 soon.")
        );
        assert!(satisfies("Wann?", "Am Freitag.") && satisfies("When?", "At 14:30, it said."));
        assert!(satisfies("How many lamps?", "Three lamps.") && !satisfies("How many lamps?", "Lamps."));
        assert!(
            satisfies("What does it cost?", "The price is $5.")
                && !satisfies("What does it cost?", "On page 5.")
        );
        assert!(
            satisfies("Who owns it?", "Tom owns it.") && !satisfies("Who owns it?", "The owner owns it.")
        );
        assert!(
            satisfies("Where is it?", "It is in crates/core/src/lib.rs.")
                && !satisfies("Where is it?", "It is lost.")
        );
        assert!(
            satisfies("Why?", "Because it rains.") && satisfies("What is a pointer?", "A pointer is short.")
        );
    }
}
