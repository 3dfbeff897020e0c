//! Numbers in words, in English, German, French and Spanish: `four hundred`, `dreihundert`, `vingt`. Plain functions of
//! texts.

use std::ops::Range;

use super::{units, window};

/// Numbers that a phrase is made of, except the factors.
const SMALL: [(&str, i128); 98] = [
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
    ("quatorze", 14),
    ("seize", 16),
    ("vingts", 20),
    ("septante", 70),
    ("huitante", 80),
    ("nonante", 90),
    ("catorce", 14),
    ("sesenta", 60),
    ("setenta", 70),
    ("ochenta", 80),
    ("noventa", 90),
];
/// Words that multiply what is before them.
const FACTORS: [(&str, i128); 14] = [
    ("hundred", 100),
    ("hundert", 100),
    ("thousand", 1_000),
    ("tausend", 1_000),
    ("million", 1_000_000),
    ("millions", 1_000_000),
    ("millionen", 1_000_000),
    ("millones", 1_000_000),
    ("billion", 1_000_000_000),
    ("milliarde", 1_000_000_000),
    ("milliarden", 1_000_000_000),
    ("milliard", 1_000_000_000),
    ("milliards", 1_000_000_000),
    ("trillion", 1_000_000_000_000),
];
/// Ordinals and parts, without the plural: `twenty-fifth` is not 20.
const ORDINALS: [&str; 29] = [
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "thirtieth",
    "fortieth",
    "fiftieth",
    "sixtieth",
    "seventieth",
    "eightieth",
    "ninetieth",
    "hundredth",
    "thousandth",
    "millionth",
    "billionth",
    "trillionth",
];
/// Hundreds and thousands of French, which are composed next to other numbers, and of Spanish, which are not; some are other
/// words of English.
const ELSEWHERE: [&str; 9] =
    ["cent", "cents", "mille", "mil", "cien", "ciento", "cientos", "quinientos", "quinientas"];

/// A number in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Worded {
    pub(super) range: Range<usize>,
    pub(super) number: i128,
    /// Whether it is a factor by itself, as in `a hundred`, which rarely means the exact number.
    pub(super) is_vague: bool,
}

/// Whether a word, in small letters, is an English number below a hundred.
pub(super) fn is_english_number(word: &str) -> bool {
    SMALL.iter().take_while(|(name, _)| *name != "zwei").any(|(name, _)| *name == word)
}

/// The numbers from two on that a text states in words, in order. Words that make no number for certain are none.
pub(super) fn of(text: &str) -> Vec<Worded> {
    let mut found: Vec<Worded> = Vec::new();
    let mut run: Vec<(Range<usize>, Part)> = Vec::new();
    let (mut last, mut before) = (0, String::new());
    for (start, word) in words(text) {
        let gap = &text[last.min(start)..start];
        last = start + word.len();
        if !matches!(gap, " " | "-" | "\u{a0}") {
            found.extend(end(&mut run));
        }
        let word = word.to_lowercase();
        // `pour cent`, `por ciento` and `per cento` are no hundreds.
        let is_share = matches!(before.as_str(), "pour" | "por" | "per")
            && ["cent", "cento", "cien", "ciento"].contains(&word.as_str());
        // `4.2 million` is one number.
        let is_scale =
            || text[..start].trim_end_matches([' ', '*', '_']).ends_with(|char: char| char.is_ascii_digit());
        let part = part(&word, run.last().map(|(_, part)| *part), gap).filter(|_| !is_share);
        match part.filter(|part| !matches!(part, Part::Factor(_)) || !is_scale()) {
            Some(part) => run.push((start..last, part)),
            None => found.extend(end(&mut run)),
        }
        before = word;
    }
    found.extend(end(&mut run));
    found
}

/// Twelve in words that no other number is made of.
const DOZENS: [&str; 6] = ["dozen", "dutzend", "douzaine", "docena", "dozzina", "dozijn"];
/// What makes six of it, and bytes in which that is.
const HALF: usize = 8;
const HALVES: [&str; 5] = ["half a ", "halbes ", "demi-", "media ", "mezza "];

/// The numbers that documents state in words: those of [`of`], and dozens, which answers rarely mean exactly.
pub(super) fn stated(text: &str) -> Vec<Worded> {
    let mut found = of(text);
    for (start, word) in words(text).filter(|(_, word)| DOZENS.contains(&word.to_lowercase().as_str())) {
        let before = text[window(text, &(start..start), HALF).start..start].to_lowercase();
        let is_half = HALVES.iter().any(|half| before.ends_with(half));
        let number = if is_half { 6 } else { 12 };
        found.push(Worded { range: start..start + word.len(), number, is_vague: true });
    }
    found.sort_by_key(|worded| worded.range.start);
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Number(i128),
    /// Of French or Spanish.
    Elsewhere(i128),
    Factor(i128),
    /// `cent` and `mille`, which are other words by themselves.
    French(i128),
    And,
    /// `et` and `y`.
    Plus,
    /// Makes a number of its neighbours that is not composed.
    Unsure,
}

impl Part {
    const fn is_link(self) -> bool {
        matches!(self, Self::And | Self::Plus)
    }
}

/// What a word is after another part.
fn part(word: &str, last: Option<Part>, gap: &str) -> Option<Part> {
    let known =
        |words: &[(&str, i128)]| words.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    let is_elsewhere = || {
        let first = SMALL.iter().position(|(name, _)| *name == "deux").unwrap_or_default();
        word == "six" || SMALL[first..].iter().any(|(name, _)| *name == word)
    };
    if let Some(factor) = known(&FACTORS) {
        return Some(Part::Factor(factor));
    }
    if let Some(number) = known(&SMALL).or_else(|| joined(word)) {
        return Some(if is_elsewhere() { Part::Elsewhere(number) } else { Part::Number(number) });
    }
    let after_number = matches!(last, Some(Part::Number(_) | Part::Elsewhere(_) | Part::Factor(_)));
    match (word, last) {
        // `six cents` may be of English.
        ("cent" | "cents", Some(Part::Elsewhere(2..=5 | 7..=9))) => return Some(Part::French(100)),
        ("cent", None | Some(Part::French(1_000))) => return Some(Part::French(100)),
        ("mille", None | Some(Part::Elsewhere(_) | Part::French(100))) => return Some(Part::French(1_000)),
        _ => {}
    }
    match word {
        "and" if after_number => Some(Part::And),
        "et" | "y" if after_number => Some(Part::Plus),
        "un" | "une" if matches!(last, Some(Part::French(_))) => Some(Part::Elsewhere(1)),
        "un" | "une" | "uno" | "una" if last == Some(Part::Plus) => Some(Part::Elsewhere(1)),
        "first" | "second" | "third" if after_number && gap == "-" => Some(Part::Unsure),
        _ => {
            let is_ordinal = word.ends_with("ième") || ORDINALS.contains(&word.trim_end_matches('s'));
            let is_hundreds =
                ELSEWHERE.contains(&word) || word.ends_with("cientos") || word.ends_with("cientas");
            let is_unsure = is_ordinal && after_number
                || is_hundreds && matches!(last, None | Some(Part::Elsewhere(_) | Part::Unsure));
            is_unsure.then_some(Part::Unsure)
        }
    }
}

/// The numbers of words that follow each other: of all, or of those on either side of the only `and`.
fn end(run: &mut Vec<(Range<usize>, Part)>) -> Vec<Worded> {
    let mut run = std::mem::take(run);
    if run.last().is_some_and(|(_, part)| part.is_link()) {
        run.pop();
    }
    if let Some(whole) = composed(&run) {
        return vec![whole];
    }
    let mut sides = run.split(|(_, part)| part.is_link());
    match (sides.next(), sides.next(), sides.next()) {
        (Some(left), Some(right), None) => [left, right].into_iter().filter_map(composed).collect(),
        _ => Vec::new(),
    }
}

/// The number that all of these words make.
fn composed(run: &[(Range<usize>, Part)]) -> Option<Worded> {
    // What is complete, what a factor may still multiply, and the last factor of thousands.
    let (mut sum, mut open, mut last_factor) = (0, 0, i128::MAX);
    let has = |is: fn(&Part) -> bool| run.iter().any(|(_, part)| is(part));
    if has(|part| matches!(part, Part::French(_))) && has(|part| matches!(part, Part::Number(_))) {
        return None;
    }
    for (at, (_, part)) in run.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| run[at].1);
        let part = match *part {
            Part::French(_) if run.len() == 1 => return None,
            Part::French(100) if open == 0 => {
                open = 100;
                continue;
            }
            Part::French(factor) => Part::Factor(factor),
            part => part,
        };
        let is_round = open % 100 == 0 && sum + open > 0;
        match part {
            Part::Unsure | Part::French(_) => return None,
            Part::And if is_round => {}
            Part::Plus if open % 10 == 0 && open % 100 >= 20 => {}
            Part::And | Part::Plus => return None,
            Part::Number(number) | Part::Elsewhere(number) => {
                let is_french = matches!(part, Part::Elsewhere(_));
                let tens = open % 100;
                let room = match before {
                    Some(Part::Plus) if number == 11 && tens == 60 => 12,
                    _ if is_french && number == 20 && tens == 4 => {
                        open += 76;
                        continue;
                    }
                    _ if is_french && matches!(tens, 60 | 80) => 17,
                    Some(Part::Elsewhere(10)) if (7..10).contains(&number) => 10,
                    _ if tens == 0 => 100,
                    _ if tens % 10 == 0 && tens > 19 => 10,
                    _ => 0,
                };
                if open != 0 && number >= room || number >= last_factor {
                    return None;
                }
                open += number;
            }
            Part::Factor(100) if (1..100).contains(&open) => open *= 100,
            Part::Factor(100) if at == 0 => open = 100,
            Part::Factor(factor) if factor > 100 && factor < last_factor && (open > 0 || at == 0) => {
                sum += open.max(1) * factor;
                (open, last_factor) = (0, factor);
            }
            Part::Factor(_) => return None,
        }
    }
    let (first, last) = (run.first()?, run.last()?);
    let number = sum + open;
    let is_vague = run.len() == 1 && matches!(first.1, Part::Factor(_));
    (number > 1).then_some(Worded { range: first.0.start..last.0.end, number, is_vague })
}

/// The value of a German number that is written as one word: `dreihundert`, `vierundzwanzig`, `zweitausendfünf`.
fn joined(word: &str) -> Option<i128> {
    let small = |word: &str| match word {
        "ein" | "eins" => Some(1),
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
        // `hundertfünfzig`
        Some(("", after)) => Some(100 + rest(after, &below_hundred)?),
        Some((before, after)) => Some(small(before)? * 100 + rest(after, &below_hundred)?),
        None => below_hundred(word),
    };
    let value = match word.split_once("tausend") {
        Some(("", after)) => 1_000 + rest(after, &below_thousand)?,
        Some((before, after)) => below_thousand(before)? * 1_000 + rest(after, &below_thousand)?,
        None => below_thousand(word)?,
    };
    (value > 1).then_some(value)
}

/// The words of a text with their places; of `zweijährig`, those that it joins.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let words = text.split_inclusive(|char: char| !char.is_alphabetic()).filter_map(move |piece| {
        let start = at;
        at += piece.len();
        let word = piece.trim_end_matches(|char: char| !char.is_alphabetic());
        (!word.is_empty()).then_some((start, word))
    });
    words.flat_map(|(start, word)| {
        let (number, unit) = word.split_at(units::adjective(word).unwrap_or_default());
        [(start, number), (start + number.len(), unit)].into_iter().filter(|(_, word)| !word.is_empty())
    })
}
