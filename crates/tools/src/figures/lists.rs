//! Numbers that a comma separates without a space, as in rows of CSV, in lists of JSON and in pairs such as
//! `(12.5,17.25)`: each is a number of its own, not a part of one with groups or decimals.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::counts::is_noun;

/// A text with a space after each comma that separates two numbers.
pub(super) fn with_parted_lists(text: &str) -> Cow<'_, str> {
    let mut parted = String::new();
    let mut done = 0;
    let mut part = |comma: usize| {
        parted.push_str(&text[done..=comma]);
        parted.push(' ');
        done = comma + 1;
    };
    let (fields, lists) = (fields(text), lists(text));
    for (run, commas) in runs(text) {
        let list = lists.get(lists.partition_point(|list| list.end <= run.start));
        let are_listed = list.is_some_and(|list| list.contains(&run.start))
            || commas.first().is_some_and(|comma| fields.binary_search(comma).is_ok());
        if are_listed || !is_number(&text[run]) {
            commas.into_iter().for_each(&mut part);
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    parted.push_str(&text[done..]);
    Cow::Owned(parted)
}

/// What begins the words for things of any kind and for what sentences often enumerate, which they need not name.
const KINDS: [&str; 64] = [
    "person",
    "people",
    "leute",
    "gente",
    "member",
    "mitglied",
    "membre",
    "miembro",
    "particip",
    "teilnehm",
    "name",
    "noms",
    "nombre",
    "thing",
    "ding",
    "chose",
    "cosa",
    "item",
    "option",
    "choice",
    "kind",
    "type",
    "typ",
    "variant",
    "version",
    "model",
    "colo",
    "couleur",
    "farb",
    "size",
    "größe",
    "taille",
    "talla",
    "material",
    "matéri",
    "flavo",
    "season",
    "jahresz",
    "countr",
    "länder",
    "pays",
    "país",
    "paese",
    "langu",
    "sprache",
    "idioma",
    "city",
    "cities",
    "städte",
    "ville",
    "ciudad",
    "città",
    "ingred",
    "zutat",
    "shade",
    "amenit",
    "platform",
    "plattform",
    "parts",
    "teile",
    "location",
    "standort",
    "format",
    "feature",
];

/// How many things the sentences of a text enumerate, each of few words, as in `red, green, blue and black`: the beginnings
/// of the words of those that enumerate as many.
#[derive(Default)]
pub(super) struct Enumerated(BTreeMap<usize, BTreeSet<String>>);

impl Enumerated {
    /// More things than this are not counted in a word or a digit.
    const MOST: usize = 12;
    /// Words between a number and the end of what it counts.
    const WORDS: usize = 3;

    pub(super) fn of(text: &str) -> Self {
        let mut found = Self::default();
        for sentence in text.split(['\n', '.', ';', '!', '?']) {
            let counts: BTreeSet<usize> = sentence.split([':', '(', ')']).flat_map(enumerations).collect();
            for count in counts.into_iter().filter(|count| *count <= Self::MOST) {
                found.0.entry(count).or_default().extend(words(sentence).map(stem));
            }
        }
        found
    }

    /// Whether a sentence enumerates as many of what a number of an answer counts: its words have the noun, or that is one
    /// of [`KINDS`].
    pub(super) fn has(&self, count: usize, answer: &str, number: &Range<usize>) -> bool {
        let Some(known) = self.0.get(&count) else { return false };
        let after = words(&answer[number.end..]).take_while(|word| is_noun(word)).take(Self::WORDS);
        let mut nouns = after.map(str::to_lowercase);
        nouns.any(|noun| known.contains(&stem(&noun)) || KINDS.iter().any(|kind| noun.starts_with(kind)))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty())
}

/// The beginning of a word, without the plural of a short one.
fn stem(word: &str) -> String {
    let lower = word.to_lowercase();
    lower.strip_suffix('s').unwrap_or(&lower).chars().take(4).collect()
}

/// How many things a part of a sentence enumerates.
fn enumerations(text: &str) -> BTreeSet<usize> {
    /// Words of a thing, and of the last with what follows it.
    const MOST: usize = 4;
    const LAST: [&str; 8] = [" and ", " or ", " und ", " oder ", " et ", " y ", " e ", " en "];
    let mut found = BTreeSet::new();
    let mut count = 1;
    for thing in text.split(", ").skip(1) {
        let last = LAST.iter().filter_map(|last| thing.find(last)).min();
        let few = |thing: &str| thing.split_whitespace().count() <= MOST;
        let is_oxford = LAST.iter().any(|last| thing.starts_with(last.trim_start()));
        match last.filter(|at| few(&thing[..*at])) {
            Some(_) if !is_oxford => {
                found.insert(count + 2);
                count = 1;
            }
            _ if is_oxford => {
                found.insert(count + 1);
                count = 1;
            }
            _ if few(thing) => count += 1,
            _ => count = 1,
        }
    }
    if count > 2 {
        found.insert(count);
    }
    found
}

/// The stretches of digits, points and commas with a comma between two digits, and these commas.
fn runs(text: &str) -> impl Iterator<Item = (Range<usize>, Vec<usize>)> {
    let bytes = text.as_bytes();
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + bytes.get(at..)?.iter().position(u8::is_ascii_digit)?;
            let length = bytes[start..].iter().take_while(|byte| is_part(**byte)).count();
            at = start + length;
            let end = start + text[start..at].trim_end_matches(['.', ',']).len();
            let is_between =
                |comma: &usize| bytes[comma - 1].is_ascii_digit() && bytes[comma + 1].is_ascii_digit();
            let commas: Vec<usize> =
                (start..end).filter(|at| bytes[*at] == b',').filter(is_between).collect();
            if !commas.is_empty() {
                return Some((start..end, commas));
            }
        }
    })
}

/// Whether digits, points and commas are one number: with groups of three, or of two as in India, or with one comma.
fn is_number(run: &str) -> bool {
    let are_groups = |whole: &str, mark: char| {
        let groups: Vec<usize> = whole.split(mark).map(str::len).collect();
        let (first, others) = (groups[0], &groups[1..]);
        let are_all = |length: usize, of: &[usize]| of.iter().all(|one| *one == length);
        let are_threes = (1..=3).contains(&first) && are_all(3, others);
        let are_twos = others.split_last().is_some_and(|(last, twos)| {
            (1..=2).contains(&first) && *last == 3 && !twos.is_empty() && are_all(2, twos)
        });
        are_threes || are_twos
    };
    let commas = run.matches(',').count();
    let is_one = |decimals: &str| !decimals.is_empty() && decimals.bytes().all(|byte| byte.is_ascii_digit());
    match run.find('.') {
        None => commas == 1 || are_groups(run, ','),
        Some(point) if commas == 1 && run.find(',') > Some(point) => {
            let (whole, decimals) = run.split_once(',').unwrap_or((run, ""));
            are_groups(whole, '.') && is_one(decimals)
        }
        Some(_) => {
            run.split_once('.').is_some_and(|(whole, decimals)| are_groups(whole, ',') && is_one(decimals))
        }
    }
}

/// Where lists of JSON that hold only numbers are: `"sizes":[451,782,963]`.
fn lists(text: &str) -> Vec<Range<usize>> {
    let is_part = |char: char| char.is_ascii_digit() || matches!(char, '.' | ',' | '-' | '+' | 'e' | 'E');
    let list = |(at, _): (usize, &str)| {
        let before = text[..at].chars().next_back();
        let after = text[at + 1..].trim_start_matches(is_part);
        let end = text.len() - after.len();
        let is_list =
            before.is_none_or(|char| matches!(char, ':' | '[' | ',' | '\n')) && after.starts_with(']');
        is_list.then_some(at..end)
    };
    text.match_indices('[').filter_map(list).collect()
}

/// The commas that separate the fields of CSV: of lines next to each other with equally many commas, none of them before
/// a space, and at least one next to something that is no digit.
fn fields(text: &str) -> Vec<usize> {
    let mut fields = Vec::new();
    let mut block = Block::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (commas, is_data) = separators(line, at);
        if block.width != commas.len() {
            fields.extend(std::mem::take(&mut block).fields());
            block.width = commas.len();
        }
        block.commas.extend(commas);
        block.is_data |= is_data;
        at += line.len();
    }
    fields.extend(block.fields());
    fields
}

/// Lines next to each other with equally many separators.
#[derive(Default)]
struct Block {
    width: usize,
    commas: Vec<usize>,
    is_data: bool,
}

impl Block {
    fn fields(self) -> Vec<usize> {
        if self.is_data { self.commas } else { Vec::new() }
    }
}

/// The commas that separate fields of the line at a place, and whether one of them cannot be a part of a number; none if
/// the line has fewer than two, or one of prose.
fn separators(line: &str, start: usize) -> (Vec<usize>, bool) {
    let bytes = line.trim_end().as_bytes();
    let (mut commas, mut is_data, mut is_quoted) = (Vec::new(), false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                let next = bytes.get(at + 1);
                if next.is_some_and(u8::is_ascii_whitespace) {
                    return (Vec::new(), false);
                }
                let around = [at.checked_sub(1).and_then(|at| bytes.get(at)), next];
                is_data |= around.iter().any(|byte| !byte.is_some_and(u8::is_ascii_digit));
                commas.push(start + at);
            }
            _ => {}
        }
    }
    if commas.len() < 2 { (Vec::new(), false) } else { (commas, is_data) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_without_a_space_separate_the_fields_of_rows_and_lists() {
        for (text, expected) in [
            ("1300,Gadget cc,378.00,77", "1300,Gadget cc,378.00, 77"),
            ("sku,name,price,stock\n1300,Gadget,378,177\n", "sku,name,price,stock\n1300,Gadget,378, 177\n"),
            ("a,b,c\n451,782,963\n", "a,b,c\n451, 782, 963\n"),
            (r#"1,"Doe, Jane",378,177"#, r#"1,"Doe, Jane",378, 177"#),
            (r#"x,"1,299.00",y"#, r#"x,"1,299.00",y"#),
            (
                r#"{"pos":[52.5203,13.4094],"sizes":[451,782,963]}"#,
                r#"{"pos":[52.5203, 13.4094],"sizes":[451, 782, 963]}"#,
            ),
            ("[[1,-2],[300,400]]", "[[1,-2],[300, 400]]"),
            ("between (12.5,17.25) and (7777,4321,503)", "between (12.5, 17.25) and (7777, 4321, 503)"),
        ] {
            assert_eq!(with_parted_lists(text), expected);
        }
    }

    #[test]
    fn numbers_stay_whole() {
        for text in [
            "It costs 1,299.50 or 1.299,50 €, or 378,50.",
            "₹1,14,900 and 12,345,678 people, 1.234.567,8 km.",
            "The museum has 12,500 objects, (12,500) of them shown.",
            "1,299\n2,450\n3,100\n",
            "Shown in [1,2] and [12,500].",
            "12.500,00 zł",
        ] {
            assert_eq!(with_parted_lists(text), text);
        }
    }
}
