//! Values that a table of the documents gives to another row than an answer does, or to another column where its things are
//! the columns, or a list of prices or measures, such as
//! `- Lamp: $20`, to another item. Only where it is clear: the answer's clause begins with the name of one row, or puts it
//! right after the value, and compares nothing; and the value is in other rows alone. Plain functions of texts.

use std::collections::{BTreeMap, BTreeSet};

use super::axes::{Axis, is_attribute};
use super::{amounts, currencies, numbers, units, worded};

/// What separates the clauses of a line.
const BETWEEN: [&str; 13] = [
    ", ", "; ", ". ", " and ", " und ", " et ", " y ", " e ", " en ", " but ", " aber ", " while ", ": the ",
];
/// Words that may stand before a name.
const BEFORE: [&str; 30] = [
    "the", "and", "but", "while", "only", "a", "an", "price", "cost", "for", "der", "die", "das", "und",
    "aber", "ein", "eine", "preis", "des", "für", "le", "la", "les", "un", "une", "prix", "el", "il",
    "precio", "prezzo",
];
/// Words of a clause that compares.
const COMPARING: [&str; 37] = [
    "than",
    "als",
    "wie",
    "que",
    "compared",
    "comparison",
    "against",
    "versus",
    "vs",
    "gegenüber",
    "gegen",
    "unlike",
    "instead",
    "statt",
    "more",
    "less",
    "cheaper",
    "dearer",
    "mehr",
    "weniger",
    "günstiger",
    "teurer",
    "plus",
    "moins",
    "not",
    "nicht",
    "difference",
    "between",
    "like",
    "after",
    "besides",
    "up",
    "upgrade",
    "upgraded",
    "switch",
    "switched",
    "wechseln",
];
/// Words between a number and the name of what it counts.
const OF: [&str; 11] = ["of", "the", "x", "×", "stück", "von", "vom", "des", "du", "de", "pieces"];
/// Words between a name and the value that it has.
const IS: [&str; 53] = [
    "is",
    "are",
    "was",
    "costs",
    "cost",
    "weighs",
    "weigh",
    "takes",
    "take",
    "lasts",
    "last",
    "has",
    "have",
    "at",
    "ist",
    "sind",
    "kostet",
    "kosten",
    "wiegt",
    "wiegen",
    "dauert",
    "hat",
    "est",
    "sont",
    "coûte",
    "coûtent",
    "pèse",
    "dure",
    "es",
    "son",
    "cuesta",
    "cuestan",
    "pesa",
    "dura",
    "è",
    "sono",
    "costa",
    "costano",
    "kost",
    "weegt",
    "duurt",
    "custa",
    "priced",
    "sells",
    "goes",
    "will",
    "be",
    "now",
    "currently",
    "about",
    "jetzt",
    "derzeit",
    "etwa",
];
/// Words between the name of one of several equals and its value, whatever they say.
const MOST_BETWEEN: usize = 6;
/// Letters of the name of a row, and of the beginning of a word that tells it.
const SHORTEST: usize = 3;
const STEM: usize = 4;

/// Rows among which those of a clause are searched.
const MOST_ROWS: usize = 500;
/// Bytes of a row before a number.
const ROW: usize = 4_096;
/// What begins the items of a list.
const MARKS: [&str; 4] = ["- ", "* ", "+ ", "• "];
/// What separates the name of an item from its value.
const SEPARATORS: [&str; 4] = [":", " – ", " — ", " - "];

/// The rows of the tables of the documents, and the items of their lists.
pub(super) struct Rows {
    /// The numbers of each row by its name, in small letters.
    of_name: BTreeMap<String, BTreeSet<i128>>,
    /// Names of which only what a clause says right after them is compared: of items, whose values may be multiplied and
    /// the like, and of tables of which it is not clear whether their rows or their columns are things; and whether the
    /// others next to it are things like it, not what is said of it, such as its shipping.
    strict: BTreeMap<String, bool>,
    /// Numbers that stand elsewhere, too.
    elsewhere: BTreeSet<i128>,
}

impl Rows {
    /// The rows of a text with these numbers.
    pub(super) fn of(text: &str, numbers: &[(usize, i128)]) -> Self {
        let mut items = items(text);
        if items.len() > MOST_ROWS {
            items.clear();
        }
        let mut rows = Self { of_name: BTreeMap::new(), strict: BTreeMap::new(), elsewhere: BTreeSet::new() };
        items.values().for_each(|item| rows.add_strict(&item.name, item.is_equal));
        let mut numbers = numbers.iter().peekable();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (mut at, mut row) = (0, 0);
        let mut axis = Axis::Rows;
        for (line_at, line) in lines.iter().enumerate() {
            let item = items.remove(&at);
            at += line.len();
            row = if is_row(line) { row + 1 } else { 0 };
            if row == 1 {
                let end = lines[line_at..].iter().position(|line| !is_row(line));
                axis = Axis::of(&lines[line_at..end.map_or(lines.len(), |end| line_at + end)], name_of);
            }
            let start = at - line.len();
            let of_line = std::iter::from_fn(|| numbers.next_if(|(place, _)| *place < at));
            let of_line: Vec<(usize, i128)> =
                of_line.map(|(place, number)| (place - start, *number)).collect();
            match item {
                Some(item) => rows.add_item(&item, start, &of_line),
                // The first row is the heading.
                None if row > 1 => rows.add_row(line, &axis, &of_line),
                None => rows.elsewhere.extend(of_line.iter().map(|(_, number)| *number)),
            }
        }
        rows
    }

    fn add_strict(&mut self, name: &str, is_equal: bool) {
        *self.strict.entry(name.to_owned()).or_insert(true) &= is_equal;
    }

    fn add_item(&mut self, item: &Item, start: usize, numbers: &[(usize, i128)]) {
        let (own, others): (Vec<_>, Vec<_>) = numbers.iter().partition(|(at, _)| start + at == item.value);
        let of_item = self.of_name.entry(item.name.clone()).or_default();
        of_item.extend(own.into_iter().map(|(_, number)| number));
        self.elsewhere.extend(others.into_iter().map(|(_, number)| number));
    }

    fn add_row(&mut self, line: &str, axis: &Axis, numbers: &[(usize, i128)]) {
        let row = name_of(line.split('|').nth(1).unwrap_or_default());
        let row = Some(&row).filter(|name| is_name(name));
        for (at, number) in numbers {
            let column = |names: &'_ [String]| {
                let is_read = *at <= ROW;
                is_read.then(|| names.get(line[..*at].matches('|').count()).cloned()).flatten()
            };
            let names: Vec<String> = match axis {
                Axis::Rows => row.cloned().into_iter().collect(),
                Axis::Columns(names) => column(names).into_iter().collect(),
                Axis::Either(names) => row.cloned().into_iter().chain(column(names)).collect(),
            };
            let names: Vec<String> = names.into_iter().filter(|name| is_name(name)).collect();
            if names.is_empty() {
                self.elsewhere.insert(*number);
            }
            for name in names {
                if matches!(axis, Axis::Either(_)) {
                    self.add_strict(&name, !is_attribute(&name));
                }
                self.of_name.entry(name).or_default().insert(*number);
            }
        }
    }

    /// The values that an answer gives to the wrong row, with their places.
    pub(super) fn swapped(&self, text: &str) -> Vec<(usize, String)> {
        if !(2..=MOST_ROWS).contains(&self.of_name.len()) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut is_shared = false;
        for (at, clause) in clauses(text) {
            if !is_shared {
                found.extend(self.wrong_in(clause).into_iter().map(|(place, value)| (at + place, value)));
            }
            // The values after `the City and the Trek cost` are of both.
            is_shared = !clause.contains('\n') && self.ends_with_name(clause);
        }
        found
    }

    /// Whether a word of a clause that is not of a name begins like one of another name, as in `the phone ships for $5` next
    /// to `Shipping`.
    fn hints_at_other(&self, lower: &str, name: &str) -> bool {
        let words = |text: &'_ str| -> Vec<String> {
            let words = text.split(|char: char| !char.is_alphabetic());
            words
                .filter(|word| !IS.contains(word))
                .map(|word| word.chars().take(STEM).collect())
                .filter(|stem: &String| stem.len() >= STEM)
                .collect()
        };
        let own = words(name);
        let said: BTreeSet<String> = words(lower).into_iter().filter(|stem| !own.contains(stem)).collect();
        let mut others = self.strict.keys().filter(|other| *other != name);
        !said.is_empty() && others.any(|other| words(other).iter().any(|stem| said.contains(stem)))
    }

    /// Whether a clause without a number ends with the name of a row.
    fn ends_with_name(&self, clause: &str) -> bool {
        let lower = lower_in_place(plain(clause));
        let is_last =
            |name: &String| lower.ends_with(name) && is_whole(&lower, lower.len() - name.len(), name);
        !clause.contains(|char: char| char.is_ascii_digit()) && self.of_name.keys().any(is_last)
    }

    fn wrong_in(&self, clause: &str) -> Vec<(usize, String)> {
        if !clause.contains(|char: char| char.is_ascii_digit()) {
            return Vec::new();
        }
        // Places of numbers are those of the clause itself.
        let lower = lower_in_place(clause);
        let named: Vec<&String> = self.of_name.keys().filter(|name| has(&lower, name)).collect();
        let longest = named.iter().max_by_key(|name| name.len()).copied();
        let Some(name) = longest.filter(|longest| named.iter().all(|name| longest.contains(name.as_str())))
        else {
            return Vec::new();
        };
        if compares(clause) {
            return Vec::new();
        }
        // `Pro Monat` is not the name `Pro`.
        let begins = begins_with(&lower, name);
        let begins = begins.filter(|end| !units::is_unit(&units::unit_from(&lower[*end..])));
        let own = self.of_name.get(name);
        let is_own = |number: &i128| own.is_some_and(|own| own.contains(number));
        let strict = self.strict.get(name).copied();
        let is_strict = strict.is_some();
        // `Standard: 2 × $20 = $40`, and `the battery is charged in 2 hours` next to `Charging`.
        if is_strict
            && (numbers(clause).any(|(_, number)| is_own(&number)) || self.hints_at_other(&lower, name))
        {
            return Vec::new();
        }
        let is_wrong = |(at, number): &(usize, i128)| {
            let end = amounts::end(clause, *at);
            let is_said = |from: usize| {
                !is_strict
                    || says_is(&lower[from..*at])
                    || strict == Some(true) && is_only(&lower[from..], at - from)
            };
            let follows = begins.is_some_and(|end| *at >= end && is_said(end));
            let is_of = follows || !is_strict && is_followed(&lower[end..], name);
            is_of
                && !is_own(number)
                && !self.elsewhere.contains(number)
                && self.of_name.values().any(|others| others.contains(number))
        };
        let wrong = numbers(clause).filter(is_wrong);
        wrong.map(|(at, _)| (at, clause[at..amounts::end(clause, at)].to_owned())).collect()
    }
}

/// Whether a clause compares.
pub(super) fn compares(clause: &str) -> bool {
    let lower = clause.to_lowercase();
    lower.split(|char: char| !char.is_alphanumeric()).any(|word| COMPARING.contains(&word))
}

/// Whether nothing is between a name and a value but a sign, an article, a currency or a verb such as `costs`.
fn says_is(between: &str) -> bool {
    let mut words = between.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty());
    words.all(|word| IS.contains(&word) || BEFORE.contains(&word) || currencies::is_currency(word))
}

/// Whether few words are between the name that precedes a text and a value, and no other number is in it, which may multiply
/// that.
fn is_only(after: &str, value: usize) -> bool {
    let words = after[..value].split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty());
    words.count() <= MOST_BETWEEN && numbers(after).nth(1).is_none() && worded::of(after).is_empty()
}

pub(super) fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// A cell as a name.
fn name_of(cell: &str) -> String {
    lower_in_place(plain(cell))
}

/// Whether a cell is a name, or a time of day, which names a departure or the like.
fn is_name(name: &str) -> bool {
    name.len() >= SHORTEST && name.contains(|char: char| char.is_alphabetic() || char == ':')
}

/// An item of a list with one value.
struct Item {
    name: String,
    /// The place of the value, and the currency or unit in which it is.
    value: usize,
    kind: (Option<usize>, String),
    /// Whether no item of its list is what is said of the others.
    is_equal: bool,
}

/// The items of lists of prices or of measures by the start of their lines: of at least two lines next to each other with
/// values of the same kind and different names, none of which says what the value is, such as `Total`.
fn items(text: &str) -> BTreeMap<usize, Item> {
    let mut items = BTreeMap::new();
    let mut list: Vec<(usize, Item)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n').chain(std::iter::once("\n")) {
        let item = item(text, at, line);
        let goes_on = |item: &Item| list.last().is_none_or(|(_, last)| last.kind == item.kind);
        if !item.as_ref().is_some_and(goes_on) {
            let mut list = std::mem::take(&mut list);
            let are_equal = !list.iter().any(|(_, item)| is_attribute(&item.name));
            list.iter_mut().for_each(|(_, item)| item.is_equal = are_equal);
            let names: BTreeSet<&str> = list.iter().map(|(_, item)| item.name.as_str()).collect();
            let are_things = !names.iter().any(|name| amounts::says_price(name));
            if names.len() > 1 && names.len() == list.len() && are_things {
                items.extend(list);
            }
        }
        list.extend(item.map(|item| (at, item)));
        at += line.len();
    }
    items
}

fn item(text: &str, start: usize, line: &str) -> Option<Item> {
    let content = line.trim_start();
    let unnumbered = content.trim_start_matches(|char: char| char.is_ascii_digit());
    let numbered = unnumbered.strip_prefix(". ").filter(|_| unnumbered.len() < content.len());
    let content = MARKS.iter().find_map(|mark| content.strip_prefix(mark)).or(numbered)?;
    let (name_end, separator) =
        SEPARATORS.iter().filter_map(|separator| Some((content.find(separator)?, separator.len()))).min()?;
    let name = lower_in_place(plain(&content[..name_end]));
    let rest = start + line.len() - content.len() + name_end + separator;
    let mut values = numbers(&text[rest..start + line.len()]);
    let (at, _) = values.next().filter(|_| values.next().is_none())?;
    let value = rest + at;
    let range = value..amounts::end(text, value);
    let currency = amounts::amounts(text, &range).next()?.currency();
    let unit = units::unit_after(text, value);
    let kind = if currency.is_some() { (currency, String::new()) } else { (None, unit) };
    let is_known = currency.is_some() || units::is_unit(&kind.1);
    (is_known && is_name(&name)).then_some(Item { name, value, kind, is_equal: false })
}

/// A text in small letters, each at the place where it was.
fn lower_in_place(text: &str) -> String {
    let lower = |char: char| {
        let mut lower = char.to_lowercase();
        lower.next().filter(|small| lower.len() == 0 && small.len_utf8() == char.len_utf8()).unwrap_or(char)
    };
    text.chars().map(lower).collect()
}

/// A name without what emphasises it.
fn plain(name: &str) -> &str {
    name.trim_matches(|char: char| !char.is_alphanumeric() && char != ')')
}

/// Whether a text contains a name as a word of its own.
fn has(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| is_whole(text, at, name))
}

fn is_whole(text: &str, at: usize, name: &str) -> bool {
    !text[..at].ends_with(char::is_alphanumeric)
        && !text[at + name.len()..].starts_with(char::is_alphanumeric)
}

/// The end of the name that a clause begins with, after its mark and an article.
fn begins_with(lower: &str, name: &str) -> Option<usize> {
    let first = |at: usize, is_meant: fn(char) -> bool| {
        lower.len() - lower[at..].trim_start_matches(|char: char| !is_meant(char)).len()
    };
    let begins = |at: &usize| lower[*at..].starts_with(name) && is_whole(lower, *at, name);
    let start = first(0, char::is_alphabetic);
    // `the price of the lamp`, but not `2 of the lamp`
    let precedes = |word: &str, at: usize| BEFORE.contains(&word) || at > start && OF.contains(&word);
    let mut end = 0;
    loop {
        let at = first(end, char::is_alphabetic);
        if let Some(at) = [first(end, char::is_alphanumeric), at].into_iter().find(begins) {
            return Some(at + name.len());
        }
        let word = lower[at..].split(' ').next().filter(|word| precedes(word, at))?;
        end = at + word.len();
    }
}

/// Whether the name follows a number, with a word such as `of` between them.
fn is_followed(after: &str, name: &str) -> bool {
    let mut rest = after.trim_start_matches([' ', '*', '_']);
    while let Some(word) = rest.split(' ').next().filter(|word| OF.contains(word)) {
        rest = rest[word.len()..].trim_start_matches([' ', '*', '_']);
    }
    rest.len() < after.len() && rest.starts_with(name) && is_whole(rest, 0, name)
}

/// The clauses of a text with their places.
pub(super) fn clauses(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let (mut from, end) = (start, start + line.len());
        // Where each mark is next.
        let find = |mark: &str, from: usize| text[from..end].find(mark).map(|at| from + at);
        let mut next = BETWEEN.map(|mark| find(mark, from));
        while let Some((at, length)) =
            BETWEEN.iter().zip(&next).filter_map(|(mark, at)| Some(((*at)?, mark.len()))).min()
        {
            found.push((from, &text[from..at]));
            from = at + length;
            for (mark, at) in BETWEEN.iter().zip(&mut next).filter(|(_, at)| at.is_some_and(|at| at < from)) {
                *at = find(mark, from);
            }
        }
        found.push((from, &text[from..end]));
        start = end;
    }
    found
}
