//! Numbers with what makes amounts of them: a currency next to them, and a word or letter that multiplies them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use larder_condense::salience::{SalientSpan, SpanKind};

use super::currencies::{YEN, is_name, is_sign, may_be_same, named};
use super::scales::{OF_TABLES, after_scale, carried, is_shortened, other_scale};
pub(super) use super::scales::{end_of_scale, scale};
use super::tables::Tables;
use super::worded::Worded;
use super::{counts, digits, names, numbers, units, window};

/// What prices stand under: parts of words, the ends of words, and whole words.
const PRICE_PARTS: [&str; 5] = ["price", "preis", "koste", "gebühr", "betrag"];
const PRICE_ENDS: [&str; 4] = ["cost", "total", "amount", "summe"];
const PRICE_WORDS: [&str; 11] =
    ["fee", "charge", "charged", "rate", "kost", "costing", "costo", "coste", "costa", "totale", "amounting"];
/// What begins words for amounts of money after a number with a scale.
const OF_MONEY: [&str; 20] = [
    "revenue",
    "turnover",
    "sales",
    "profit",
    "loss",
    "debt",
    "income",
    "budget",
    "funding",
    "umsatz",
    "gewinn",
    "verlust",
    "schulden",
    "erlös",
    "bénéfice",
    "dette",
    "beneficio",
    "deuda",
    "utile",
    "winst",
];
/// Plurals that look like none, and other words for many people.
const PEOPLE: [&str; 20] = [
    "people",
    "staff",
    "sheep",
    "men",
    "women",
    "children",
    "leute",
    "mensen",
    "klanten",
    "brukere",
    "personer",
    "kunder",
    "användare",
    "invånare",
    "persone",
    "clienti",
    "utenti",
    "abitanti",
    "visitatori",
    "gente",
];
/// Words before a number of things, of which it is no amount.
const SOLD: [&str; 5] = ["sold", "shipped", "verkauft", "vendu", "vendido"];
/// Words that end like a plural and are none.
const NO_PLURALS: [&str; 8] =
    ["remains", "comes", "goes", "stays", "always", "towards", "overseas", "afterwards"];
/// Numbers below this, in thousandths, are rather parts of names and counts than prices.
const SHORT: i128 = 100 * 1_000;
/// Bytes before a number in which a word says that it is a price.
const NEAR: usize = 32;
/// Bytes next to a stretch that say what its numbers are.
const BESIDE: usize = 256;
/// Bytes of a JSON object before and after a number that are searched for its currency.
const OBJECT: usize = 400;

/// Whether a character is part of a number.
pub(super) const fn is_digit(char: char) -> bool {
    char.is_ascii_digit() || matches!(char, '.' | ',')
}

/// A number of a text, in thousandths, with its currency if one stands next to it.
pub(super) struct Amount {
    /// Where it begins.
    pub(super) at: usize,
    pub(super) number: i128,
    /// What it may be if a letter after it or the scale of another number multiplies it, where that is not certain.
    scaled: Option<i128>,
    /// What a word or letter after it multiplies it with; part of `number`.
    pub(super) scale: i128,
    currency: Option<usize>,
}

impl Amount {
    /// Whether its number says what it is, however it is written: an amount of money, or a number of three digits.
    pub(super) const fn is_distinct(&self) -> bool {
        self.currency.is_some() || !self.is_short()
    }

    /// The currency next to it.
    pub(super) const fn currency(&self) -> Option<usize> {
        self.currency
    }

    /// Whether a currency stands next to it.
    pub(super) const fn is_money(&self) -> bool {
        self.currency.is_some()
    }

    const fn is_short(&self) -> bool {
        self.number < SHORT
    }

    /// Whether another amount is this one, or may be, since no currency stands next to it.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.number == other.number
            && (self.currency == other.currency || other.currency.is_none() && !self.is_short())
    }

    /// The numbers that it may be.
    pub(super) fn readings(&self) -> impl Iterator<Item = i128> {
        [Some(self.number), self.scaled].into_iter().flatten()
    }
}

/// The amounts in a stretch of a text; what stands next to it counts as well.
pub(super) fn amounts<'t>(text: &'t str, range: &Range<usize>) -> impl Iterator<Item = Amount> + use<'t> {
    let (start, end) = (range.start, range.end);
    // The words before and after the stretch say what its numbers are.
    let near = window(text, range, BESIDE);
    let line = text[near.start..start].rfind('\n').map_or(near.start, |at| near.start + at + 1);
    let until = text[end..near.end].find("\n\n").map_or(near.end, |at| end + at);
    let found = numbers(&text[line..until]).map(move |(at, number)| (line + at, number));
    let found = found.skip_while(move |(at, _)| *at < start).take_while(move |(at, _)| *at < end);
    found.map(|(at, number)| {
        let end = self::end(text, at);
        let scaled = scaled(text, end, number);
        Amount { at, number, scaled, scale: scale(text, end), currency: currency(text, &(at..end)) }
    })
}

/// Every number of a text with its place, in thousandths; one with a letter such as `70B`, or that leads to one with a scale,
/// also as what that may multiply it to.
pub(super) fn readings(text: &str) -> impl Iterator<Item = (usize, i128)> {
    numbers(text).flat_map(|(at, number)| {
        let scaled = scaled(text, end(text, at), number);
        std::iter::once(number).chain(scaled).map(move |number| (at, number))
    })
}

/// What else a number that ends at a place may be, if not only that.
fn scaled(text: &str, end: usize, number: i128) -> Option<i128> {
    number.checked_mul(other_scale(text, end)?)
}

/// Whether a number is a part of an id, such as `lp1-d5sr7p9vpgyja`: a long word in which digits and letters alternate.
pub(super) fn is_of_id(text: &str, at: usize) -> bool {
    /// Letters of a word that are looked at before and after a number.
    const NEAR: usize = 64;
    let is_part = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    let before: Vec<char> = text[..at].chars().rev().take(NEAR).take_while(is_part).collect();
    let after = text[at..].chars().take(NEAR).take_while(is_part);
    let word: Vec<char> = before.into_iter().rev().chain(after).collect();
    let changes = word.windows(2).filter(|two| {
        two[0].is_alphanumeric()
            && two[1].is_alphanumeric()
            && two[0].is_alphabetic() != two[1].is_alphabetic()
    });
    let changes = changes.count();
    let is_small = !word.iter().any(char::is_ascii_uppercase);
    changes > 2 && word.len() >= 8 || changes == 2 && word.len() >= 10 && is_small
}

/// The end of the number that begins at a place.
pub(super) fn end(text: &str, at: usize) -> usize {
    let digits = text[at..].find(|char: char| !is_digit(char)).map_or(text.len(), |length| at + length);
    at + text[at..digits].trim_end_matches(['.', ',']).len()
}

/// How a text states a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stated {
    /// As an amount in this currency.
    In(usize),
    /// Under a word such as "price", or with cents, without a currency.
    AsPrice,
    /// As a number that may be anything.
    Bare,
}

/// Which numbers a text states in which currencies.
pub(super) struct Currencies {
    known: BTreeMap<i128, BTreeSet<Stated>>,
    /// Those that it names anywhere.
    named: BTreeSet<usize>,
    /// In what it says that the numbers of a table are, such as "in millions".
    pub(super) scales: Vec<i128>,
}

impl Currencies {
    /// Those of a text with these tables and numbers in words, and of the same text as its digits may be grouped otherwise.
    pub(super) fn of(text: &str, tables: &Tables, grouped: &str, worded: &[Worded]) -> Self {
        let mut known: BTreeMap<i128, BTreeSet<Stated>> = BTreeMap::new();
        for (text, tables) in [(text, tables), (grouped, &Tables::of(grouped))] {
            for (at, number) in numbers(text) {
                let range = at..end(text, at);
                let stated = stated(text, tables, &range);
                known.entry(number).or_default().insert(stated);
                if let Some(scaled) = scaled(text, range.end, number) {
                    // `3 to 4.2 million euros` are both euros.
                    let next = || Some(carried(text, range.end).filter(|_| stated == Stated::Bare)?.0);
                    let stated = next().map_or(stated, |at| self::stated(text, tables, &(at..end(text, at))));
                    known.entry(scaled).or_default().insert(stated);
                }
            }
        }
        for worded in worded {
            let stated = stated(text, tables, &worded.range);
            known.entry(worded.number.saturating_mul(1_000)).or_default().insert(stated);
        }
        let lower = text.to_lowercase();
        let of_table = |words: &&(&str, i128)| {
            lower.match_indices(words.0).any(|(at, found)| {
                let after = lower[at + found.len()..].trim_start_matches(char::is_alphabetic);
                let after = after.trim_start_matches(['.', ' ']);
                after.is_empty()
                    || after.starts_with([')', ']', ',', ';', ':', '|', '\n', '\r', '$', '€', '£'])
                    || [
                        "of dollars",
                        "of euros",
                        "of us",
                        "dollars",
                        "euros",
                        "usd",
                        "eur",
                        "d'eur",
                        "d’eur",
                        "de ",
                        "di ",
                        "dollar",
                    ]
                    .iter()
                    .any(|words| after.starts_with(words))
            })
        };
        let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| is_name(word));
        let signs = text.chars().filter(|char| is_sign(*char) || *char == YEN).map(String::from);
        Self {
            known,
            named: words.filter_map(named).chain(signs.filter_map(|sign| named(&sign))).collect(),
            scales: OF_TABLES.iter().filter(of_table).map(|(_, scale)| *scale).collect(),
        }
    }

    /// The numbers that the text states in each currency.
    pub(super) fn of_each(&self) -> Vec<Vec<i128>> {
        let mut of_each: BTreeMap<usize, Vec<i128>> = BTreeMap::new();
        for (number, stated) in &self.known {
            let currencies = stated.iter().filter_map(|stated| match stated {
                Stated::In(currency) => Some(*currency),
                Stated::AsPrice | Stated::Bare => None,
            });
            currencies.for_each(|currency| of_each.entry(currency).or_default().push(*number));
        }
        of_each.into_values().collect()
    }

    /// The numbers that the text states in the currency of an amount.
    pub(super) fn of_same(&self, shown: &Amount) -> Vec<i128> {
        let Some(currency) = shown.currency else { return Vec::new() };
        let is_same = |stated: &Stated| matches!(stated, Stated::In(other) if may_be_same(*other, currency));
        let stated = self.known.iter().filter(|(_, stated)| stated.iter().any(is_same));
        stated.map(|(number, _)| *number).collect()
    }

    /// Whether a number of the text may be this amount: one that it states in the same currency, or as a price without one
    /// in a text that names no other.
    pub(super) fn allow(&self, shown: &Amount, number: i128) -> bool {
        let (Some(currency), Some(known)) = (shown.currency, self.known.get(&number)) else { return true };
        let is_only = self.named.is_empty() || self.named.contains(&currency);
        let is_same = |stated: &Stated| matches!(stated, Stated::In(other) if may_be_same(*other, currency));
        known.iter().any(is_same) || known.contains(&Stated::AsPrice) && is_only
    }
}

/// Whether the number that begins at a place is stated in a currency.
pub(super) fn is_money(text: &str, tables: &Tables, at: usize) -> bool {
    matches!(stated(text, tables, &(at..end(text, at))), Stated::In(_))
}

/// Whether a currency stands before the number that begins at a place.
pub(super) fn is_money_from(text: &str, start: usize) -> bool {
    currency(&text[..start], &(start..start)).is_some()
}

/// Whether a currency or cents stand after the digits that end at a place.
pub(super) fn is_money_to(text: &str, end: usize) -> bool {
    let after = &text[end..];
    let has_cents = after
        .strip_prefix(['.', ','])
        .is_some_and(|cents| digits(cents) == 2 || cents.starts_with(['-', '–']));
    has_cents || currency(after, &(0..0)).is_some()
}

/// How a number is stated.
fn stated(text: &str, tables: &Tables, range: &Range<usize>) -> Stated {
    let Range { start: at, end } = *range;
    let column = tables.column(text, at);
    let is_price = says_price(before(text, at));
    let of_object = || is_price.then(|| currency_of_object(text, at)).flatten();
    let of_other = || currency_of_scaled(text, range);
    if let Some(currency) =
        currency(text, range).or_else(of_object).or_else(|| column?.currency).or_else(of_other)
    {
        return Stated::In(currency);
    }
    let is_word =
        |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || matches!(char, '-' | '_'));
    let is_glued = is_word(text[..at].chars().next_back()) || is_word(text[end..].chars().next());
    let cents = text[at..end].rsplit(['.', ',']).next().map_or(0, str::len);
    let may_be = !is_glued && cents == 2 && text[at..end].len() > 2;
    if may_be || is_price || column.is_some_and(|column| column.says_price) {
        return Stated::AsPrice;
    }
    Stated::Bare
}

/// Whether the word before a number, the key of its value in data, or the heading of its column says that it is a price.
pub(super) fn is_called_price(text: &str, tables: &Tables, at: usize) -> bool {
    let name = before(text, at).rsplit(|char: char| char.is_ascii_digit()).next().unwrap_or_default();
    is_name_of_price(name) || tables.column(text, at).is_some_and(|column| column.is_called_price)
}

/// Whether a name has one of the words that prices stand under, of those that stand over little else.
pub(super) fn is_name_of_price(name: &str) -> bool {
    const NAMES: [&str; 9] = ["price", "preis", "cost", "kost", "prix", "precio", "prezzo", "cena", "prijs"];
    let lower = name.to_lowercase();
    NAMES.iter().any(|word| lower.contains(word))
}

/// What is before a place in its line or list, and near it: the key of a JSON value, too.
fn before(text: &str, at: usize) -> &str {
    let start = (at.saturating_sub(NEAR)..at).find(|start| text.is_char_boundary(*start)).unwrap_or(at);
    let part = text[start..at].rsplit(['\n', ',', '{', ';', '|']).next().unwrap_or_default();
    part.rsplit(". ").next().unwrap_or_default()
}

/// Whether a text has one of the words that prices stand under.
pub(super) fn says_price(text: &str) -> bool {
    if !text.contains(char::is_alphabetic) {
        return false;
    }
    // `totalAmount` is two words.
    let (mut words, mut last) = (String::with_capacity(text.len()), ' ');
    for char in text.chars() {
        words.extend((last.is_lowercase() && char.is_uppercase()).then_some(' '));
        words.extend(char.to_lowercase());
        last = char;
    }
    let is_price = |word: &str| {
        let word = word.strip_suffix('s').unwrap_or(word);
        PRICE_PARTS.iter().any(|part| word.contains(part))
            || PRICE_ENDS.iter().any(|end| word.ends_with(end))
            || PRICE_WORDS.contains(&word)
    };
    words.split(|char: char| !char.is_alphabetic()).any(is_price)
}

/// The currency of the number with a scale before one in its sentence, unless that counts something else: of the second in
/// `4,2 millions d'euros, contre 3,5 millions`, but not in `€4.2 million for 3 million cars`.
fn currency_of_scaled(text: &str, range: &Range<usize>) -> Option<usize> {
    let has_scale = |text: &str, end: usize| scale(text, end) > 1;
    let Range { start: at, end } = *range;
    let is_german = || names::is_german(&text[window(text, range, BESIDE)]);
    let after = after_scale(&text[end..]);
    let is_counted = || SOLD.iter().any(|sold| last_word(text[..at].trim_end()).eq_ignore_ascii_case(sold));
    if !has_scale(text, end) || units::begins(after) || is_counted() || counts_something(after, is_german) {
        return None;
    }
    let start = window(text, &(at..at), BESIDE).start;
    let line = text[start..at].rsplit(['\n', ';']).next()?;
    // `Mio. Euro`
    let stop = line.rmatch_indices(". ").find(|(stop, _)| !is_shortened(&line[..*stop]));
    let sentence = &line[stop.map_or(0, |(stop, mark)| stop + mark.len())..];
    let from = at - sentence.len();
    let places = numbers(sentence).map(|(place, _)| from + place).map(|at| at..self::end(text, at));
    currency(text, &places.filter(|place| has_scale(text, place.end)).last()?)
}

/// Whether a text after a scale begins with what is plainly counted: a plural or a word for people, also after an adjective.
fn counts_something(after: &str, is_german: impl Fn() -> bool) -> bool {
    let phrase = after.split(|char: char| !(char.is_alphabetic() || is_space(char))).next();
    let words = phrase.unwrap_or_default().split(is_space).filter(|word| !word.is_empty()).take(2);
    let mut words = words.take_while(|word| counts::is_noun(word)).enumerate();
    words.any(|(place, word)| {
        let lower = word.to_lowercase();
        let is_plural =
            lower.ends_with('s') && !lower.ends_with("ss") && !NO_PLURALS.contains(&lower.as_str());
        // `3 Millionen neue Kunden`
        let is_capital = word.starts_with(char::is_uppercase) && (place == 0 || is_german());
        let is_of_money = OF_MONEY.iter().any(|start| lower.starts_with(start));
        !is_of_money && (is_plural || is_capital || PEOPLE.contains(&lower.as_str()))
    })
}

/// The currency that the JSON object around a number names: `{"price": 697, "priceCurrency": "USD"}`.
fn currency_of_object(text: &str, at: usize) -> Option<usize> {
    let start = at - text[..at].bytes().rev().take(OBJECT).position(|byte| byte == b'{')?;
    let length = text[at..].bytes().take(OBJECT).position(|byte| byte == b'}')?;
    let object = &text[start..at + length];
    let after = &object[object.to_ascii_lowercase().find("currency")? + "currency".len()..];
    let code = after.split(|char: char| !char.is_alphanumeric()).find(|word| !word.is_empty())?;
    named(code)
}

/// The currency that the heading of a column names.
pub(super) fn currency_of_heading(heading: &str) -> Option<usize> {
    let words = heading.split(|char: char| !char.is_alphanumeric()).filter(|word| is_name(word));
    words
        .filter_map(named)
        .next()
        .or_else(|| heading.chars().filter(|char| is_sign(*char)).find_map(|sign| named(&sign.to_string())))
}

/// The sign of a currency that begins a text and is not that of the next number.
fn sign_at_start(text: &str) -> Option<char> {
    let sign = text.chars().next().filter(|char| is_sign(*char) || *char == YEN)?;
    let next = text[sign.len_utf8()..].trim_start_matches(' ').chars().next();
    (!next.is_some_and(|char| char.is_ascii_digit())).then_some(sign)
}

fn last_word(text: &str) -> &str {
    text.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default()
}

/// Whether a space may stand between a number and its currency.
const fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// The place of a value with the currency next to it, which makes a price of a number.
pub(super) fn with_currency(text: &str, span: &SalientSpan) -> Option<Range<usize>> {
    let Range { start, end } = span.range.clone();
    let is_number = matches!(span.kind, SpanKind::Number | SpanKind::Quantity | SpanKind::Price);
    if !is_number || !text[start..end].contains(|char: char| char.is_ascii_digit()) {
        return None;
    }
    let after = &text[end..];
    let scaled = after_scale(after);
    let space = scaled.chars().next().filter(|char| is_space(*char)).map_or(0, char::len_utf8);
    let written = &scaled[space..];
    let sign = sign_at_start(written);
    let word = written.find(|char: char| !char.is_alphabetic()).map_or(written, |length| &written[..length]);
    let length =
        sign.map(char::len_utf8).or_else(|| named(word).filter(|_| is_name(word)).map(|_| word.len()));
    if let Some(length) = length {
        return Some(start..text.len() - written.len() + length);
    }
    let before = text[..start].trim_end_matches(' ');
    let sign = before.chars().next_back().filter(|char| is_sign(*char) && start - before.len() <= 1)?;
    Some(before.len() - sign.len_utf8()..end)
}

/// The currency next to a number.
fn currency(text: &str, range: &Range<usize>) -> Option<usize> {
    let before = text[..range.start].trim_end_matches(is_space);
    let sign = before.chars().next_back().filter(|char| is_sign(*char));
    if let Some(sign) = sign {
        let prefix = &before[..before.len() - sign.len_utf8()];
        let letters = prefix.len() - prefix.trim_end_matches(|char: char| char.is_ascii_alphabetic()).len();
        // `US$` is one currency, but `Price$` is a label before a sign.
        return named(&before[before.len() - sign.len_utf8() - letters..])
            .or_else(|| named(&sign.to_string()));
    }
    let word_before = last_word(before);
    // `Fr. 20.50` and `Rs. 500`, but no sentence that ends with a currency, and no opening hours on Fridays.
    let number = &text[range.clone()];
    let has_cents =
        number.rsplit(['.', ',']).next().is_some_and(|cents| cents.len() == 2 && cents.len() < number.len());
    let is_shortened = |word: &&str| word.len() < 3 && (has_cents || *word != "Fr");
    let shortened = before.strip_suffix('.').map(last_word).filter(is_shortened);
    let after = text[range.end..].trim_start_matches(is_digit).trim_start_matches(['*', '_']);
    let after = after_scale(after).trim_start_matches(is_space);
    let sign_after = sign_at_start(after).map(|char| char.to_string());
    let word_after: String = after.chars().take_while(|char| char.is_alphabetic()).collect();
    let of_word = |word: &str| named(word).filter(|_| is_name(word));
    let before = || of_word(word_before).or_else(|| named(shortened?));
    sign_after.as_deref().and_then(named).or_else(|| of_word(&word_after)).or_else(before)
}
