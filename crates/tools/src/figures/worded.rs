//! Numbers in words, in English, German, French and Spanish: `four hundred`, `dreihundert`, `vingt`. Plain functions of
//! texts.

use std::ops::Range;

/// Numbers that a phrase is made of, except the factors.
const SMALL: [(&str, i128); 87] = [
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("zwei", 2),
    ("drei", 3),
    ("vier", 4),
    ("fünf", 5),
    ("sechs", 6),
    ("sieben", 7),
    ("acht", 8),
    ("neun", 9),
    ("zehn", 10),
    ("elf", 11),
    ("zwölf", 12),
    ("dreizehn", 13),
    ("vierzehn", 14),
    ("fünfzehn", 15),
    ("sechzehn", 16),
    ("siebzehn", 17),
    ("achtzehn", 18),
    ("neunzehn", 19),
    ("zwanzig", 20),
    ("dreißig", 30),
    ("dreissig", 30),
    ("vierzig", 40),
    ("fünfzig", 50),
    ("sechzig", 60),
    ("siebzig", 70),
    ("achtzig", 80),
    ("neunzig", 90),
    ("deux", 2),
    ("trois", 3),
    ("quatre", 4),
    ("cinq", 5),
    ("sept", 7),
    ("huit", 8),
    ("neuf", 9),
    ("dix", 10),
    ("onze", 11),
    ("douze", 12),
    ("treize", 13),
    ("quinze", 15),
    ("vingt", 20),
    ("trente", 30),
    ("quarante", 40),
    ("cinquante", 50),
    ("soixante", 60),
    ("dos", 2),
    ("tres", 3),
    ("cuatro", 4),
    ("cinco", 5),
    ("seis", 6),
    ("siete", 7),
    ("ocho", 8),
    ("nueve", 9),
    ("diez", 10),
    ("doce", 12),
    ("veinte", 20),
    ("treinta", 30),
    ("cuarenta", 40),
    ("cincuenta", 50),
    ("doscientos", 200),
    ("trescientos", 300),
];
/// Words that multiply what is before them.
const FACTORS: [(&str, i128); 6] = [
    ("hundred", 100),
    ("hundert", 100),
    ("thousand", 1_000),
    ("tausend", 1_000),
    ("million", 1_000_000),
    ("millionen", 1_000_000),
];

/// A number in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Worded {
    pub(super) range: Range<usize>,
    pub(super) number: i128,
}

/// The numbers from two on that a text states in words, in order.
pub(super) fn of(text: &str) -> Vec<Worded> {
    let mut found: Vec<Worded> = Vec::new();
    let mut phrase = Phrase::default();
    let mut last = 0;
    for (start, word) in words(text) {
        let lower = word.to_lowercase();
        let gap = &text[last.min(start)..start];
        let goes_on = matches!(gap, " " | "-" | "\u{a0}");
        if !goes_on {
            found.extend(phrase.end());
        }
        if lower == "and" && phrase.has_factor && goes_on {
            last = start + word.len();
            continue;
        }
        match part(&lower) {
            Some(part) if phrase.takes(part) => phrase.add(part, start, start + word.len()),
            Some(part) => {
                found.extend(phrase.end());
                if phrase.takes(part) {
                    phrase.add(part, start, start + word.len());
                }
            }
            None => found.extend(phrase.end()),
        }
        last = start + word.len();
    }
    found.extend(phrase.end());
    found
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Number(i128),
    Factor(i128),
}

#[derive(Debug, Default)]
struct Phrase {
    range: Range<usize>,
    /// What is complete, and what a factor may still multiply.
    sum: i128,
    open: i128,
    has_factor: bool,
}

impl Phrase {
    fn takes(&self, part: Part) -> bool {
        match part {
            Part::Factor(_) => self.open > 0,
            // `twenty five`, but not `two three`.
            Part::Number(number) => {
                let room = if self.open % 100 == 0 {
                    100
                } else if self.open % 10 == 0 && self.open > 19 {
                    10
                } else {
                    0
                };
                self.open == 0 || number < room
            }
        }
    }

    fn add(&mut self, part: Part, start: usize, end: usize) {
        if self.sum == 0 && self.open == 0 {
            self.range.start = start;
        }
        self.range.end = end;
        match part {
            Part::Number(number) => self.open += number,
            Part::Factor(100) => self.open *= 100,
            Part::Factor(factor) => {
                self.sum += self.open * factor;
                self.open = 0;
            }
        }
        self.has_factor |= matches!(part, Part::Factor(_));
    }

    fn end(&mut self) -> Option<Worded> {
        let phrase = std::mem::take(self);
        let number = phrase.sum + phrase.open;
        (number > 1).then_some(Worded { range: phrase.range, number })
    }
}

fn part(word: &str) -> Option<Part> {
    let known =
        |words: &[(&str, i128)]| words.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    let number = known(&SMALL).or_else(|| joined(word));
    number.map(Part::Number).or_else(|| known(&FACTORS).map(Part::Factor))
}

/// The value of a German number that is written as one word: `dreihundert`, `vierundzwanzig`, `zweitausendfünf`.
fn joined(word: &str) -> Option<i128> {
    let small = |word: &str| match word {
        "ein" => Some(1),
        word => SMALL.iter().find(|(name, _)| *name == word).map(|(_, number)| *number),
    };
    let below_hundred = |word: &str| {
        small(word).or_else(|| {
            let (ones, tens) = word.split_once("und")?;
            Some(small(ones).filter(|ones| *ones < 10)? + small(tens).filter(|tens| tens % 10 == 0)?)
        })
    };
    let rest = |word: &str, below: &dyn Fn(&str) -> Option<i128>| {
        if word.is_empty() { Some(0) } else { below(word) }
    };
    let below_thousand = |word: &str| match word.split_once("hundert") {
        Some((before, after)) => Some(small(before)? * 100 + rest(after, &below_hundred)?),
        None => below_hundred(word),
    };
    let value = match word.split_once("tausend") {
        Some((before, after)) => below_thousand(before)? * 1_000 + rest(after, &below_thousand)?,
        None => below_thousand(word)?,
    };
    (value > 1).then_some(value)
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(|char: char| !char.is_alphabetic()).filter_map(move |piece| {
        let start = at;
        at += piece.len();
        let word = piece.trim_end_matches(|char: char| !char.is_alphabetic());
        (!word.is_empty()).then_some((start, word))
    })
}
