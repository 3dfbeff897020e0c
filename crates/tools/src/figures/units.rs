//! Units of numbers: whether a number is stated in the unit of an answer, and measures in another unit than a document
//! states them in: `1.2 kg` of `1200 g`, `90 min` of `1.5 hours`, `51.8 lb` of `23.5 kg`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::tables::Tables;
use super::worded::Worded;
use super::{amounts, axes, counts, starts};

/// What units measure. Of the same measure, factors are whole numbers of the smallest unit that all are multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Measured {
    Mass,
    Length,
    Volume,
    Time,
    Months,
    Speed,
    Data,
    /// A thousand of which may be 1024.
    BinaryData,
    Power,
    Energy,
    Charge,
    Frequency,
    Voltage,
    Celsius,
    Fahrenheit,
    Share,
}

/// Names of units, what they measure, and how many of the smallest of that they are.
const UNITS: [(&[&str], Measured, i128); 61] = [
    (&["mg"], Measured::Mass, 1_000_000),
    (
        &["g", "gram", "grams", "gramm", "gramme", "grammes", "gramos", "grammi"],
        Measured::Mass,
        1_000_000_000,
    ),
    (&["kg", "kilo", "kilos", "kilogram", "kilograms", "kilogramm"], Measured::Mass, 1_000_000_000_000),
    (&["t", "tonne", "tonnes", "tonnen"], Measured::Mass, 1_000_000_000_000_000),
    (&["lb", "lbs"], Measured::Mass, 453_592_370_000),
    (&["oz", "ounce", "ounces"], Measured::Mass, 28_349_523_125),
    (&["mm", "millimeter", "millimeters", "millimetres"], Measured::Length, 1_000),
    (&["cm", "centimeter", "centimeters", "centimetres", "zentimeter"], Measured::Length, 10_000),
    (&["m", "meter", "meters", "metre", "metres", "mètres", "metros", "metri"], Measured::Length, 1_000_000),
    (
        &["km", "kilometer", "kilometers", "kilometre", "kilometres", "kilomètres", "kilómetros"],
        Measured::Length,
        1_000_000_000,
    ),
    (&["inch", "inches", "zoll"], Measured::Length, 25_400),
    (&["ft", "foot", "feet"], Measured::Length, 304_800),
    (&["yd", "yard", "yards"], Measured::Length, 914_400),
    (&["mi", "mile", "miles", "meile", "meilen"], Measured::Length, 1_609_344_000),
    (&["ml", "milliliter", "milliliters", "millilitres"], Measured::Volume, 1_000_000),
    (&["cl"], Measured::Volume, 10_000_000),
    (&["l", "liter", "liters", "litre", "litres", "litros", "litri"], Measured::Volume, 1_000_000_000),
    (&["gal", "gallon", "gallons"], Measured::Volume, 3_785_411_784),
    (&["ms", "millisecond", "milliseconds", "millisekunden"], Measured::Time, 1),
    (
        &[
            "s", "sec", "secs", "second", "seconds", "sekunde", "sekunden", "seconde", "secondes", "segundo",
            "segundos", "secondo", "secondi", "seconden",
        ],
        Measured::Time,
        1_000,
    ),
    (
        &["min", "mins", "minute", "minutes", "minuten", "minuto", "minutos", "minuti", "minuut"],
        Measured::Time,
        60_000,
    ),
    (
        &[
            "h", "hr", "hrs", "hour", "hours", "stunde", "stunden", "heure", "heures", "hora", "horas",
            "ora", "ore", "uur",
        ],
        Measured::Time,
        3_600_000,
    ),
    (
        &[
            "day", "days", "tag", "tage", "tagen", "jour", "jours", "día", "días", "dia", "dias", "giorno",
            "giorni", "dag", "dagen",
        ],
        Measured::Time,
        86_400_000,
    ),
    (
        &[
            "week",
            "weeks",
            "woche",
            "wochen",
            "semaine",
            "semaines",
            "semana",
            "semanas",
            "settimana",
            "settimane",
            "weken",
        ],
        Measured::Time,
        604_800_000,
    ),
    (
        &[
            "month", "months", "monat", "monate", "monaten", "mois", "mes", "meses", "mês", "mese", "mesi",
            "maand", "maanden",
        ],
        Measured::Months,
        1,
    ),
    (
        &[
            "year", "years", "jahr", "jahre", "jahren", "ans", "année", "années", "año", "años", "ano",
            "anos", "anno", "anni", "jaar",
        ],
        Measured::Months,
        12,
    ),
    (&["km/h", "kph", "kmh"], Measured::Speed, 1_000_000),
    (&["mph", "mi/h"], Measured::Speed, 1_609_344),
    (&["m/s"], Measured::Speed, 3_600_000),
    (&["knot", "knots", "kn", "knoten"], Measured::Speed, 1_852_000),
    (&["kb"], Measured::Data, 1_000),
    (&["mb"], Measured::Data, 1_000_000),
    (&["gb"], Measured::Data, 1_000_000_000),
    (&["tb"], Measured::Data, 1_000_000_000_000),
    (&["kib"], Measured::BinaryData, 1),
    (&["mib"], Measured::BinaryData, 1 << 10),
    (&["gib"], Measured::BinaryData, 1 << 20),
    (&["tib"], Measured::BinaryData, 1 << 30),
    (&["kb"], Measured::BinaryData, 1),
    (&["mb"], Measured::BinaryData, 1 << 10),
    (&["gb"], Measured::BinaryData, 1 << 20),
    (&["tb"], Measured::BinaryData, 1 << 30),
    (&["mw"], Measured::Power, 1),
    (&["megawatt", "megawatts"], Measured::Power, 1_000_000_000),
    (&["w", "watt", "watts"], Measured::Power, 1_000),
    (&["kw", "kilowatt", "kilowatts"], Measured::Power, 1_000_000),
    (&["wh"], Measured::Energy, 1),
    (&["kwh"], Measured::Energy, 1_000),
    (&["mah"], Measured::Charge, 1),
    (&["ah"], Measured::Charge, 1_000),
    (&["hz"], Measured::Frequency, 1),
    (&["khz"], Measured::Frequency, 1_000),
    (&["mhz"], Measured::Frequency, 1_000_000),
    (&["ghz"], Measured::Frequency, 1_000_000_000),
    (&["v", "volt", "volts"], Measured::Voltage, 1_000),
    (&["kv"], Measured::Voltage, 1_000_000),
    (&["mv"], Measured::Voltage, 1),
    (&["°c", "celsius"], Measured::Celsius, 1),
    (&["°f", "fahrenheit"], Measured::Fahrenheit, 1),
    (&["%", "percent", "prozent"], Measured::Share, 10),
    (&["‰", "promille"], Measured::Share, 1),
];
/// Units of which only exact multiples are no measures of the others: their measures are rounded.
const IMPERIAL: [&str; 9] = ["lb", "oz", "inch", "ft", "yd", "mi", "gal", "mph", "knot"];
/// What may be short for another unit, too.
const SHORT: [(&str, &str); 3] = [("m", "min"), ("w", "week"), ("min", "m")];
/// The French year, which is an article of English: only of one.
const YEAR: &str = "an";
const YEARS: &str = "ans";
/// The unit that only its capital tells from the milliwatt.
const MEGAWATT: &str = "MW";
/// What begins German adjectives of a number of units, and the unit.
const ADJECTIVES: [(&str, &str); 6] = [
    ("jährig", "jahre"),
    ("monatig", "monate"),
    ("wöchig", "wochen"),
    ("tägig", "tage"),
    ("stündig", "stunden"),
    ("minütig", "minuten"),
];
/// In place of the row of a unit: a number next to a currency.
const MONEY: usize = UNITS.len();
/// The same for a number that measures nothing: of a rating, or a count of reviews or pieces.
const UNMEASURED: usize = MONEY + 1;
/// The same for a number of the name of a model.
const OF_MODEL: usize = UNMEASURED + 1;

/// What a text states in units.
pub(super) struct Measures {
    /// The rows of the units in which each number is stated; `None` where it has no unit that is known.
    stated: BTreeMap<i128, BTreeSet<Option<usize>>>,
    measures: BTreeSet<(Measured, bool, i128)>,
}

impl Measures {
    /// What a text says of these numbers of it, and in words.
    pub(super) fn of(text: &str, tables: &Tables, numbers: &[(usize, i128)], words: &[Worded]) -> Self {
        let mut stated: BTreeMap<i128, BTreeSet<Option<usize>>> = BTreeMap::new();
        let mut measures = BTreeSet::new();
        for (at, number) in numbers.iter().copied() {
            let unit = unit_after(text, at);
            let mut rows: Vec<usize> = rows(&unit).collect();
            if rows.is_empty() {
                rows = rows_of_column(text, tables, at);
            }
            let others =
                SHORT.iter().filter(|(short, _)| *short == unit).flat_map(|(_, other)| self::rows(other));
            let is_money = rows.is_empty() && amounts::is_money(text, tables, at);
            let known = stated.entry(number).or_default();
            known.extend(rows.iter().copied().chain(others).chain(is_money.then_some(MONEY)).map(Some));
            let of_what = || match follows_model(text, at) {
                true => Some(OF_MODEL),
                false => counts::is_unmeasured(text, tables, at).then_some(UNMEASURED),
            };
            known.extend((rows.is_empty() && !is_money).then(of_what));
            let written = &text[at..amounts::end(text, at)];
            measures.extend(rows.into_iter().filter_map(|row| measure(row, number, written)));
        }
        for (number, after) in in_words(text, words) {
            let rows: Vec<usize> = rows(&unit_from(after)).collect();
            let known = stated.entry(number).or_default();
            known.extend(rows.iter().copied().map(Some));
            known.extend(rows.is_empty().then_some(None));
            measures.extend(rows.into_iter().filter_map(|row| measure(row, number, "")));
        }
        Self { stated, measures }
    }

    /// The numbers that are stated otherwise than in the name of a model.
    pub(super) fn numbers(&self) -> impl Iterator<Item = i128> {
        let is_stated = |rows: &BTreeSet<_>| rows.iter().any(|row| *row != Some(OF_MODEL));
        self.stated.iter().filter(move |(_, rows)| is_stated(rows)).map(|(number, _)| *number)
    }

    /// Whether a number of an answer may be this one: it has no unit, or is stated somewhere in the same or without one.
    pub(super) fn allow(&self, text: &str, at: usize, number: i128) -> bool {
        self.allow_unit(&unit_after(text, at), number)
    }

    /// The same of a number with a unit.
    pub(super) fn allow_unit(&self, unit: &str, number: i128) -> bool {
        let mut rows = rows(unit).peekable();
        let Some(stated) = self.stated.get(&number).filter(|_| rows.peek().is_some()) else { return true };
        stated.contains(&None) || rows.any(|row| stated.contains(&Some(row)))
    }

    /// The numbers that are stated in a unit, for each of the units of that name.
    pub(super) fn in_unit(&self, unit: &str) -> Vec<Vec<i128>> {
        let stated_in = |row: usize| {
            let stated = self.stated.iter().filter(move |(_, rows)| rows.contains(&Some(row)));
            stated.map(|(number, _)| *number).collect()
        };
        rows(unit).map(stated_in).collect()
    }

    /// Whether every number in a stretch of a text has a unit, and is stated in some unit of the same: exactly, or as it is
    /// rounded where one is of the metric system and the other is not.
    pub(super) fn state(&self, text: &str, tables: &Tables, range: &Range<usize>) -> bool {
        let mut inside = amounts::amounts(text, range).map(|amount| (amount.at, amount.number)).peekable();
        inside.peek().is_some()
            && inside.all(|(at, number)| {
                let written = &text[at..amounts::end(text, at)];
                let mut rows = rows(&unit_after(text, at)).collect::<Vec<_>>();
                if rows.is_empty() {
                    rows = rows_of_column(text, tables, at);
                }
                rows.into_iter().any(|row| self.measures(row, number, written))
            })
    }

    /// Whether a number is stated in another unit than this.
    pub(super) fn state_unit(&self, unit: &str, number: i128) -> bool {
        rows(unit).any(|row| self.measures(row, number, ""))
    }

    fn measures(&self, row: usize, number: i128, written: &str) -> bool {
        let Some((measured, is_imperial, value)) = measure(row, number, written) else { return false };
        let decimals = written.rsplit_once(['.', ',']).map_or(0, |(_, decimals)| decimals.len());
        let digits = written.bytes().filter(u8::is_ascii_digit).count();
        let half = UNITS[row].2 * 500 / 10_i128.pow(decimals.min(3) as u32);
        let range = |is_imperial, room| {
            let (least, most) = (value.saturating_sub(room), value.saturating_add(room));
            (measured, is_imperial, least)..=(measured, is_imperial, most)
        };
        self.measures.range(range(is_imperial, 0)).next().is_some()
            || digits > 1 && self.measures.range(range(!is_imperial, half)).next().is_some()
    }
}

/// How a percentage is written in words.
const PERCENT: [&str; 7] =
    ["per cent", "percent", "pour cent", "por ciento", "per cento", "procent", "Prozent"];

/// Words in capitals within sentences that readings and rates stand after; others in capitals are of models.
const READINGS: [&str; 23] = [
    "BAT", "BATT", "BTW", "CPU", "GPU", "HDD", "HUM", "IVA", "LCD", "LED", "LOAD", "MWST", "NVME", "OLED",
    "QLED", "RAM", "SOC", "SSD", "TEMP", "TVA", "UHD", "VAT", "WEIGHT",
];

/// Whether a number is of the name of a model: in the same word, as in `T6`, or with nothing but a space between, as in
/// `HP 15` and `iPhone 15`, but not in `Discount: 15` and `Humidity 45`. An ordinary word in capitals that no other precedes,
/// or only one in capitals, is rather a label: `VOLTAGE 230`.
fn follows_model(text: &str, at: usize) -> bool {
    let code = text[..at].strip_suffix('-').unwrap_or(&text[..at]);
    if code.ends_with(|char: char| char.is_ascii_uppercase()) {
        return true;
    }
    let before = text[..at].strip_suffix([' ', '\u{a0}']).unwrap_or_default();
    let word = last_word(before);
    let after = text[amounts::end(text, at)..].trim_start();
    let has = |is: fn(char) -> bool| word.contains(is);
    let is_named = || {
        let before = before[..before.len() - word.len()].strip_suffix([' ', '\u{a0}']).unwrap_or_default();
        last_word(before).contains(char::is_lowercase)
    };
    let is_label = || axes::is_attribute(word) || starts::is_rarer_in_capitals(word);
    let is_capital = word.chars().count() > 1 && !has(char::is_lowercase) && !READINGS.contains(&word);
    let is_mixed = has(char::is_numeric) || word.chars().skip(1).any(char::is_uppercase);
    has(char::is_uppercase)
        && (is_capital && (is_named() || !is_label()) || is_mixed && has(char::is_lowercase))
        && !PERCENT.iter().any(|written| after.starts_with(written))
}

fn last_word(text: &str) -> &str {
    text.rsplit(|char: char| !char.is_alphanumeric()).next().unwrap_or_default()
}

/// The numbers in words of a text, with what follows them; also those of one unit, as in `one year`, and with a half after
/// the number or its unit, as in `an hour and a half`.
fn in_words<'t>(text: &'t str, words: &[Worded]) -> Vec<(i128, &'t str)> {
    const ONE: [&str; 3] = ["one", "an", "a"];
    const ONE_OF: [&str; 20] = [
        "one", "One", "un", "Un", "une", "Une", "una", "Una", "um", "Um", "uma", "Uma", "ein", "Ein", "eine",
        "Eine", "een", "Een", "één", "Één",
    ];
    const HALF: &str = " and a half";
    let number = |word: &Worded| (word.number * 1_000, &text[word.range.end..]);
    let mut found: Vec<(i128, &str)> = words.iter().map(number).collect();
    let ones = ONE_OF.iter().flat_map(|word| text.match_indices(word));
    let ones = ones.filter(|(at, word)| {
        // `einjährig`, but not `eins`.
        let is_joined = word.eq_ignore_ascii_case("ein")
            && ADJECTIVES.iter().any(|(stem, _)| text[at + word.len()..].starts_with(stem));
        !text[..*at].ends_with(|char: char| char.is_alphanumeric())
            && (is_joined || text[at + word.len()..].starts_with([' ', '-']))
    });
    let ones = ones.map(|(at, word)| {
        let after = &text[at + word.len()..];
        let is_year = word.eq_ignore_ascii_case("un") && unit_from(after) == YEAR;
        (1_000, if is_year { YEARS } else { after })
    });
    found.extend(ones.filter(|(_, after)| is_unit(&unit_from(after))));
    for (at, half) in text.match_indices(HALF) {
        let mut before = text[..at].rsplit(' ');
        let last = before.next().unwrap_or_default();
        let start = at - last.len();
        let (number_end, unit) = match is_unit(&unit_from(last)) {
            true => (start.saturating_sub(1), &text[start..]),
            false => (at, &text[at + half.len()..]),
        };
        let word = text[..number_end].rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
        let is_one = || ONE.contains(&word.to_lowercase().as_str()).then_some(1);
        let whole = words.partition_point(|word| word.range.end < number_end);
        let whole = words.get(whole).filter(|word| word.range.end == number_end).map(|word| word.number);
        found.extend(whole.or_else(is_one).map(|whole| (whole * 1_000 + 500, unit)));
    }
    found
}

/// What a number of a unit, in thousandths, measures: exactly, if it is written with more decimals.
fn measure(row: usize, number: i128, written: &str) -> Option<(Measured, bool, i128)> {
    let (names, measured, factor) = UNITS[row];
    let finer = written.split_once(['.', ',']).filter(|(_, decimals)| decimals.len() > 3);
    let exact = finer.and_then(|(whole, decimals)| {
        let part = 10_i128.checked_pow(u32::try_from(decimals.len()).ok()? - 3)?;
        let digits: i128 = format!("{whole}{decimals}").parse().ok()?;
        (digits / part == number).then(|| Some(digits.checked_mul(factor)? / part)).flatten()
    });
    Some((measured, IMPERIAL.contains(&names[0]), exact.or_else(|| number.checked_mul(factor))?))
}

pub(super) fn rows(unit: &str) -> impl Iterator<Item = usize> {
    let known = if unit.is_empty() { &UNITS[..0] } else { &UNITS };
    known.iter().enumerate().filter(move |(_, (names, ..))| names.contains(&unit)).map(|(row, _)| row)
}

/// Whether a word is a unit.
pub(super) fn is_unit(word: &str) -> bool {
    rows(word).next().is_some()
}

/// The unit after the number that begins at a place, in small letters, or the word in its place.
pub(super) fn unit_after(text: &str, at: usize) -> String {
    let end = amounts::end(text, at);
    let unit = unit_from(&text[end..]);
    if unit == YEAR && &text[at..end] == "1" { YEARS.to_owned() } else { unit }
}

/// The unit, or a word, that a text begins with.
pub(super) fn unit_from(after: &str) -> String {
    let after = after.trim_start_matches(['*', '_']);
    let after = after.strip_prefix([' ', '\u{a0}', '\u{202f}', '-']).unwrap_or(after);
    let is_part = |char: char| char.is_alphabetic() || char == '/';
    if let Some(sign) = after.chars().next().filter(|char| matches!(char, '%' | '‰')) {
        return sign.to_string();
    }
    let (degree, letters) = after.strip_prefix('°').map_or(("", after), |after| ("°", after.trim_start()));
    let word = letters.split(|char: char| !is_part(char)).next().unwrap_or_default();
    let word = word.trim_end_matches('/');
    let word = if word == MEGAWATT { "megawatt".to_owned() } else { word.to_lowercase() };
    let of_adjective = ADJECTIVES.iter().find(|(stem, _)| word.starts_with(stem));
    let word = of_adjective.map_or(word, |(_, unit)| (*unit).to_owned());
    // `€5/kg` and `2 km/day` are prices and distances.
    let unit = if is_unit(&word) { word.as_str() } else { word.split('/').next().unwrap_or_default() };
    format!("{degree}{unit}")
}

/// Whether a text begins with a unit; `in` is rather a word.
pub(super) fn begins(after: &str) -> bool {
    let unit = unit_from(after);
    unit != "in" && is_unit(&unit)
}

/// Where the German adjective of a number of units, such as `zweijährig`, has its unit, in small letters.
pub(super) fn adjective(word: &str) -> Option<usize> {
    ADJECTIVES.iter().find_map(|(stem, _)| word.find(stem))
}

/// The unit in the heading of the column of a table in which a number stands.
fn rows_of_column(text: &str, tables: &Tables, at: usize) -> Vec<usize> {
    tables.column(text, at).map(|column| column.units.clone()).unwrap_or_default()
}

/// The unit in the heading of a column: in brackets, or the last word.
pub(super) fn rows_of_heading(heading: &str) -> Vec<usize> {
    let inner = heading.split_once(['(', '[']).map(|(_, inner)| unit_from(inner));
    let last = heading.split_whitespace().next_back().filter(|word| word.len() > 1).map(unit_from);
    inner.or(last).map(|unit| rows(&unit).collect()).unwrap_or_default()
}
