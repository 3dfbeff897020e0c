//! Ages and times since, such as `77 years old` and `vor 3 Tagen`, which follow from dates of the documents, the present
//! among them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{dates, window, worded};

/// Words after the unit of time that make an age of a quantity.
const ENDS: [&str; 4] = ["ago", "old", "alt", "earlier"];
/// Words before the quantity that do.
const STARTS: [&str; 3] = ["vor", "seit", "since"];
/// Words of one.
const ONE: [&str; 5] = ["a", "one", "einem", "einer", "ein"];
/// Numbers that may be years.
const YEARS: Range<i128> = 1_000..2_200;
/// Bytes before and after the number of an age in which these words are.
const NEAR: usize = 128;
/// Days of an age that is not counted in years.
const LONGEST: i64 = 100_000;

/// The years and days that a text names.
pub(super) struct Moments {
    years: BTreeSet<i128>,
    days: BTreeSet<i64>,
}

impl Moments {
    pub(super) fn new<'d>(
        numbers: &BTreeSet<i128>,
        dates: impl Iterator<Item = &'d dates::Written> + Clone,
    ) -> Self {
        let whole = numbers.iter().filter(|number| *number % 1_000 == 0).map(|number| number / 1_000);
        let years = whole.chain(dates.clone().filter_map(dates::Written::year).map(i128::from));
        let days = dates.flat_map(dates::Written::days).collect();
        Self { years: years.filter(|year| YEARS.contains(year)).collect(), days }
    }

    /// Whether a quantity of an answer is an age that lies between two of them. How many hours or minutes ago something was
    /// is not checked.
    pub(super) fn yield_age(&self, text: &str, range: &Range<usize>) -> bool {
        let value = &text[range.clone()];
        let length = value.find(|char: char| !char.is_ascii_digit()).unwrap_or(value.len());
        let Ok(count) = value[..length].parse::<i64>() else { return false };
        let end = range.start + length;
        let mut after = words(&text[end..window(text, &(end..end), NEAR).end]);
        let unit = after.next().unwrap_or_default();
        let ends = after.next().unwrap_or_default();
        let before = &text[window(text, &(range.start..range.start), NEAR).start..range.start];
        let before = before.split_whitespace().next_back().map(str::to_lowercase);
        let is_age = ENDS.contains(&ends.as_str())
            || before
                .is_some_and(|word| STARTS.contains(&word.trim_matches(|char: char| !char.is_alphabetic())));
        let starts = |stems: &[&str]| stems.iter().any(|stem| unit.starts_with(stem));
        let days = |days: i64| self.are_apart(count, days);
        is_age
            && match () {
                () if starts(&["year", "jahr"]) => self.are_years_apart(count.into()),
                () if starts(&["month", "monat"]) => days(30),
                () if starts(&["week", "woche"]) => days(7),
                () if starts(&["day", "tag"]) => days(1),
                () => starts(&["hour", "minute", "second", "stunde", "sekunde", "min"]),
            }
    }

    /// Full years, and years from birthday to birthday.
    fn are_years_apart(&self, count: i128) -> bool {
        self.years
            .iter()
            .any(|year| [count, count + 1].iter().any(|apart| self.years.contains(&(year + apart))))
    }

    fn are_apart(&self, count: i64, length: i64) -> bool {
        let Some(span) = count.checked_mul(length).filter(|span| *span < LONGEST) else { return false };
        let room = length.max(span / 20);
        self.days.iter().any(|day| {
            let first = (day + span - room).max(day + 1);
            self.days.range(first..=day + span + room).next().is_some()
        })
    }
}

/// Whether a text says how many days or weeks ago something was that was `days` ago: `3 days ago`, `vor drei Tagen`.
pub(super) fn says_ago(text: &str, days: &[i64]) -> bool {
    let words: Vec<&str> =
        text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.windows(3).any(|three| {
        let (count, unit) = match three {
            [before, count, unit] if before.eq_ignore_ascii_case("vor") => (count, unit),
            [count, unit, after] if after.eq_ignore_ascii_case("ago") => (count, unit),
            _ => return false,
        };
        let (count, unit) = (count.to_lowercase(), unit.to_lowercase());
        let worded = || worded::of(&count).first().and_then(|worded| i64::try_from(worded.number).ok());
        let one = || ONE.contains(&count.as_str()).then_some(1);
        let count = count.parse().ok().or_else(one).or_else(worded);
        let starts = |stems: [&str; 2]| stems.iter().any(|stem| unit.starts_with(stem));
        let length = match () {
            () if starts(["day", "tag"]) => 1,
            () if starts(["week", "woche"]) => 7,
            () => return false,
        };
        count.and_then(|count: i64| count.checked_mul(length)).is_some_and(|ago| days.contains(&ago))
    })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_ago_are_said_in_digits_and_words() {
        for text in ["3 days ago it cost $697", "Vor drei Tagen", "(three days ago)"] {
            assert!(says_ago(text, &[2, 3]), "{text}");
        }
        assert!(
            says_ago("a week ago", &[7])
                && says_ago("vor 2 Wochen", &[14])
                && says_ago("vor einem Tag", &[1])
        );
        for text in ["4 days ago", "3 days", "3 hours ago", "in 3 days", "99999999999999999999 days ago", ""]
        {
            assert!(!says_ago(text, &[3]), "{text}");
        }
    }
}
