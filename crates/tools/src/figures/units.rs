//! Measures in another unit than a document states them in: `1.2 kg` of `1200 g`, `90 min` of `1.5 hours`.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{amounts, numbers};

/// Names of units, what they measure, and how many of the smallest of that they are.
const UNITS: [(&[&str], Measured, i128); 33] = [
    (&["mg"], Measured::Mass, 1),
    (&["g", "gram", "grams", "gramm"], Measured::Mass, 1_000),
    (&["kg", "kilo", "kilos", "kilogram", "kilograms", "kilogramm"], Measured::Mass, 1_000_000),
    (&["t", "tonne", "tonnes", "tonnen"], Measured::Mass, 1_000_000_000),
    (&["mm", "millimeter", "millimeters", "millimetres"], Measured::Length, 1),
    (&["cm", "centimeter", "centimeters", "centimetres", "zentimeter"], Measured::Length, 10),
    (&["m", "meter", "meters", "metre", "metres"], Measured::Length, 1_000),
    (&["km", "kilometer", "kilometers", "kilometres"], Measured::Length, 1_000_000),
    (&["ml", "milliliter", "milliliters", "millilitres"], Measured::Volume, 1),
    (&["cl"], Measured::Volume, 10),
    (&["l", "liter", "liters", "litre", "litres"], Measured::Volume, 1_000),
    (&["ms", "millisecond", "milliseconds", "millisekunden"], Measured::Time, 1),
    (&["s", "sec", "second", "seconds", "sekunde", "sekunden"], Measured::Time, 1_000),
    (&["min", "minute", "minutes", "minuten"], Measured::Time, 60_000),
    (&["h", "hr", "hrs", "hour", "hours", "stunde", "stunden"], Measured::Time, 3_600_000),
    (&["day", "days", "tag", "tage", "tagen"], Measured::Time, 86_400_000),
    (&["week", "weeks", "woche", "wochen"], Measured::Time, 604_800_000),
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
    (&["w", "watt", "watts"], Measured::Power, 1),
    (&["kw", "kilowatt", "kilowatts"], Measured::Power, 1_000),
    (&["wh"], Measured::Energy, 1),
    (&["kwh"], Measured::Energy, 1_000),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Measured {
    Mass,
    Length,
    Volume,
    Time,
    Data,
    /// A thousand of which may be 1024.
    BinaryData,
    Power,
    Energy,
}

/// What a text states in units.
pub(super) struct Measures(BTreeSet<(Measured, i128)>);

impl Measures {
    pub(super) fn of(text: &str) -> Self {
        Self(numbers(text).flat_map(|(at, number)| of_number(text, at, number)).collect())
    }

    /// Whether every number in a stretch of a text has a unit, and is stated in some unit of the same.
    pub(super) fn state(&self, text: &str, range: &Range<usize>) -> bool {
        let mut inside = numbers(text).filter(|(at, _)| range.contains(at)).peekable();
        inside.peek().is_some()
            && inside.all(|(at, number)| of_number(text, at, number).any(|measure| self.0.contains(&measure)))
    }
}

/// What a number is with the unit after it.
fn of_number(text: &str, at: usize, number: i128) -> impl Iterator<Item = (Measured, i128)> {
    let after = &text[amounts::end(text, at)..];
    let after = after.strip_prefix([' ', '\u{a0}', '\u{202f}', '-']).unwrap_or(after);
    let unit = after.split(|char: char| !char.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    let named = UNITS.iter().filter(move |(names, ..)| names.contains(&unit.as_str()));
    named.filter_map(move |(_, measured, factor)| Some((*measured, number.checked_mul(*factor)?)))
}
