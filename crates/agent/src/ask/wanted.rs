//! What a question wants: its words, each by how rare it is, and the kind of thing that would answer it. English and
//! German.
//!
//! Knows questions and sentences; does not know where sentences come from.

use larder_text::words::{is_stop_word, is_wide};

/// German words that say nothing of a subject.
const GERMAN: [&str; 66] = [
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines", "und",
    "oder", "aber", "nicht", "ist", "sind", "war", "waren", "wird", "werden", "wurde", "wurden", "hat",
    "haben", "hatte", "kann", "muss", "soll", "von", "vom", "zu", "zum", "zur", "mit", "für", "auf", "an",
    "am", "im", "in", "bei", "aus", "nach", "über", "unter", "um", "wann", "wer", "wem", "wen", "wo", "wie",
    "was", "warum", "wieso", "weshalb", "welche", "welcher", "welches", "welchem", "es", "sie", "er", "man",
];
/// Those of them that hardly any English question holds.
const ONLY_GERMAN: [&str; 22] = [
    "der", "das", "dem", "ein", "eine", "einen", "und", "nicht", "ist", "wird", "wurde", "wann", "wer",
    "wem", "wo", "wie", "warum", "wieso", "weshalb", "welche", "welcher", "welches",
];
/// Words of questions that name what is wanted and not what it is about.
const ASKING: [&str; 32] = [
    "much", "many", "long", "old", "often", "far", "kind", "sort", "please", "tell", "say", "says", "get",
    "use", "used", "date", "day", "viel", "viele", "lange", "hoch", "groß", "oft", "alt", "mean", "means",
    "happens", "happen", "whose", "whom", "any", "heißt",
];
/// Words for what is paid, which stand for one another.
const PRICE: [&str; 16] = [
    "price", "prices", "cost", "costs", "fee", "fees", "pay", "paid", "charge", "preis", "preise", "kosten",
    "kostet", "gebühr", "usd", "eur",
];
const MONTHS: [&str; 22] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "januar",
    "jänner",
    "februar",
    "märz",
    "mai",
    "juni",
    "juli",
    "oktober",
    "dezember",
    "sept",
];
const DAYS: [&str; 22] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "today",
    "tomorrow",
    "yesterday",
    "montag",
    "dienstag",
    "mittwoch",
    "donnerstag",
    "freitag",
    "samstag",
    "sonntag",
    "heute",
    "morgen",
    "gestern",
    "week",
    "woche",
];
const NUMBERS: [&str; 30] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "twenty", "hundred", "thousand", "half", "none", "eins", "zwei", "drei", "vier", "fünf", "sechs",
    "sieben", "acht", "neun", "zehn", "zwölf", "hundert", "tausend",
];
const REASONS: [&str; 14] = [
    "because",
    "since",
    "due to",
    "so that",
    "therefore",
    "otherwise",
    "in order to",
    "caused by",
    "weil",
    "damit",
    "wegen",
    "denn",
    "deshalb",
    "sonst",
];
/// Words before a place.
const AT: [&str; 22] = [
    "in", "at", "on", "under", "beneath", "behind", "near", "by", "inside", "within", "next", "between",
    "im", "am", "auf", "unter", "hinter", "neben", "bei", "beim", "zwischen", "vor",
];

/// Letters in a row that parts of compounds have to share.
const SHARED_STEM: usize = 6;

/// What would answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Date,
    Amount,
    Price,
    Person,
    Place,
    Reason,
    Meaning,
    /// Nothing in particular.
    Any,
}

/// A word of a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub word: String,
    /// At least 1, more for rare words.
    pub weight: f64,
}

/// What a question wants.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub terms: Vec<Term>,
    pub kind: Kind,
    /// All words of the question, as [`words`] gives them.
    words: Vec<String>,
    /// Whether it names something of code.
    pub names_code: bool,
}

impl Wanted {
    /// `rarity` says how rare a word is in what was read.
    pub fn of(question: &str, rarity: impl Fn(&str) -> f64) -> Self {
        let words = words(question);
        let german = is_german(&words);
        let mut terms: Vec<Term> = Vec::new();
        for word in &words {
            let is_empty = is_stop_word(word)
                || ASKING.contains(&word.as_str())
                || german && GERMAN.contains(&word.as_str());
            if !is_empty && terms.iter().all(|term| term.word != *word) {
                terms.push(Term { word: word.clone(), weight: 1.0 + rarity(word) });
            }
        }
        let names_code = question.split_whitespace().any(is_code);
        Self { kind: Kind::of(&words), terms, words, names_code }
    }

    /// How much of each word of the question a text holds, from 0 to 1.
    pub fn found(&self, text: &[String]) -> Vec<f64> {
        let best = |term: &Term| text.iter().map(|word| likeness(&term.word, word)).fold(0.0, f64::max);
        self.terms.iter().map(best).collect()
    }

    /// The share of the question, by the weight of its words, that was found.
    pub fn share(&self, found: &[f64]) -> f64 {
        let all: f64 = self.terms.iter().map(|term| term.weight).sum();
        let some: f64 = self.terms.iter().zip(found).map(|(term, found)| term.weight * found).sum();
        if all > 0.0 { some / all } else { 0.0 }
    }

    /// Whether a text repeats the question, as documents about questions do.
    pub fn is_repeated(&self, text: &[String]) -> bool {
        self.words.len() > 2 && text.windows(self.words.len()).any(|window| window == self.words)
    }

    /// Whether a text holds the kind of thing that is wanted.
    pub fn is_satisfied(&self, text: &str, words: &[String]) -> bool {
        let is_new = |word: &&String| !self.words.contains(word);
        let any = |list: &[&str]| words.iter().filter(is_new).any(|word| list.contains(&word.as_str()));
        let number =
            || words.iter().filter(is_new).any(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        match self.kind {
            Kind::Any => true,
            Kind::Date => any(&MONTHS) || any(&DAYS) || words.iter().filter(is_new).any(|word| is_date(word)),
            Kind::Amount => number() || any(&NUMBERS),
            Kind::Price => {
                number()
                    && (text.contains(['$', '€', '£', '¥'])
                        || any(&PRICE)
                        || words.iter().any(|word| likeness(word, "price") > 0.5))
            }
            Kind::Person => names_somebody(text, &self.words),
            Kind::Place => text.split_whitespace().any(is_code) || any(&AT),
            Kind::Reason => {
                let text = format!(" {} ", words.join(" "));
                REASONS.iter().any(|reason| text.contains(&format!(" {reason} ")))
            }
            Kind::Meaning => self.terms.last().is_some_and(|subject| {
                let is_entry =
                    text.contains(" | ") && words.first().is_some_and(|word| *word == subject.word);
                is_entry || defines(words, &subject.word)
            }),
        }
    }
}

impl Kind {
    fn of(words: &[String]) -> Self {
        let text = format!(" {} ", words.join(" "));
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(&format!(" {phrase} ")));
        if words.iter().any(|word| PRICE.contains(&word.as_str()))
            && !says(&["why", "warum", "who", "wer", "when", "wann"])
        {
            Self::Price
        } else if says(&[
            "when",
            "wann",
            "what date",
            "which date",
            "what day",
            "which day",
            "what time",
            "what year",
            "welchem tag",
            "welchen tag",
            "welches datum",
            "deadline",
        ]) {
            Self::Date
        } else if says(&[
            "how many",
            "how much",
            "how long",
            "how old",
            "how large",
            "how big",
            "how fast",
            "how often",
            "how far",
            "how high",
            "what size",
            "what percentage",
            "limit",
            "maximum",
            "minimum",
            "wie viel",
            "wie viele",
            "wieviel",
            "wieviele",
            "wie lange",
            "wie groß",
            "wie hoch",
            "wie alt",
            "wie oft",
            "wie weit",
            "wie schnell",
        ]) {
            Self::Amount
        } else if says(&["who", "whom", "whose", "wer", "wem", "wen", "wessen"]) {
            Self::Person
        } else if says(&[
            "where",
            "wo",
            "wohin",
            "woher",
            "which file",
            "what file",
            "which folder",
            "welche datei",
        ]) {
            Self::Place
        } else if says(&["why", "warum", "wieso", "weshalb"]) {
            Self::Reason
        } else if words.len() <= 8
            && (says(&[
                "what is",
                "what are",
                "what does",
                "what s",
                "was ist",
                "was sind",
                "was bedeutet",
                "was heißt",
            ]))
        {
            Self::Meaning
        } else {
            Self::Any
        }
    }
}

/// A question without German words that say nothing, which documents in English hold too seldom for their rarity to
/// mean anything; as it is where it is not German.
pub(super) fn searched(question: &str) -> String {
    if !is_german(&words(question)) {
        return question.to_owned();
    }
    let says = |word: &&str| {
        !GERMAN.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().as_str())
    };
    let kept: Vec<&str> = question.split_whitespace().filter(says).collect();
    if kept.is_empty() { question.to_owned() } else { kept.join(" ") }
}

fn is_german(words: &[String]) -> bool {
    words.iter().any(|word| ONLY_GERMAN.contains(&word.as_str()))
}

/// The words of a text in lower case. Numbers stay whole (`2.4`, `14:30`), words of several humps come in parts too,
/// and scripts without spaces in pairs of characters.
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

/// Takes a word that is complete, and its parts where it has several humps.
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

/// How alike two words are, from 0 to 1: forms of one word (`ship`, `shipped`), parts of compounds, prices.
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
    if PRICE.contains(&a) && PRICE.contains(&b) {
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

/// Whether a word, as it is written, is a path, a name of code or a flag.
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

/// Whether a text holds a capitalised word that the question does not hold.
fn names_somebody(text: &str, asked: &[String]) -> bool {
    let is_name = |word: &str| {
        let lower = word.to_lowercase();
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_uppercase)
            && letters.next().is_some_and(char::is_lowercase)
            && word.chars().all(char::is_alphabetic)
            && !is_stop_word(&lower)
            && !GERMAN.contains(&lower.as_str())
            && !DAYS.contains(&lower.as_str())
            && !MONTHS.contains(&lower.as_str())
            && !asked.contains(&lower)
    };
    text.split(|c: char| !c.is_alphanumeric()).any(is_name)
}

/// Whether a text says what a subject is: `A pointer is …`, `pointer: …`.
fn defines(words: &[String], subject: &str) -> bool {
    let at = words.iter().take(6).position(|word| likeness(word, subject) > 0.9);
    let is = ["is", "are", "means", "ist", "sind", "bedeutet", "heißt", "stands"];
    at.is_some_and(|at| words.iter().skip(at + 1).take(2).any(|word| is.contains(&word.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(question: &str) -> Wanted {
        Wanted::of(question, |_| 1.0)
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
