//! Days, and the days that a question speaks of: "on 8 May 2023", "in March", "two weeks ago".
//!
//! Knows the calendar and English words for it; knows no clock: today comes in as a value.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

/// A day of the calendar, as the number of days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Day(pub i32);

/// Days that a question speaks of.
pub(super) type Span = RangeInclusive<Day>;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// The alternatives, by the names of their groups. A month alone counts only after a word of time: "may" is a verb too.
static DATES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let month = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
    let time = r"(?:in|since|during|by|until|of|last|this|on)\s+";
    let parts = [
        r"(?P<iy>[12]\d{3})-(?P<im>\d{2})(?:-(?P<id>\d{2}))?".to_owned(),
        format!(
            r"(?P<dd>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<dm>{month})\b(?:,?\s+(?P<dy>[12]\d{{3}}))?"
        ),
        format!(
            r"(?:{time})?(?P<mm>{month})\s+(?P<md>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<my>[12]\d{{3}}))?"
        ),
        format!(r"(?:{time})?(?P<om>{month}),?\s+(?P<oy>[12]\d{{3}})"),
        format!(r"{time}(?P<am>{month})"),
        r"(?P<near>today|tonight|yesterday)".to_owned(),
        format!(
            r"(?P<n>\d{{1,3}}|an?|{})\s+(?P<unit>day|week|month|year)s?\s+(?:ago|earlier)",
            NUMBERS.join("|")
        ),
        r"(?P<rel>last|this|past|previous)\s+(?P<of>week|month|year)".to_owned(),
        r"(?P<y>(?:19|20)\d{2})".to_owned(),
    ];
    Regex::new(&format!(r"(?i)\b(?:{})\b", parts.join("|"))).ok()
});

impl Day {
    /// The day of a date; none if there is no such date or its year is not within 1 to 9999.
    pub fn of(year: i32, month: u32, day: u32) -> Option<Self> {
        let real = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day);
        real.then(|| {
            // Years from March on, so that the odd day stands last.
            let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
            let before = (153 * m + 2) / 5 + day - 1;
            Self(365 * y + y / 4 - y / 100 + y / 400 + i32::try_from(before).unwrap_or(0) - 719_468)
        })
    }

    fn year(self) -> i32 {
        let guess = (f64::from(self.0) / 365.2425).floor() as i32 + 1970;
        (guess - 1..=guess + 1)
            .rev()
            .find(|&year| Self::of(year, 1, 1).is_some_and(|first| first <= self))
            .unwrap_or(guess)
    }

    fn month(self) -> u32 {
        let year = self.year();
        (1..=12).rev().find(|&month| Self::of(year, month, 1).is_some_and(|first| first <= self)).unwrap_or(1)
    }

    fn before(self, days: i32) -> Self {
        Self(self.0.saturating_sub(days))
    }
}

fn days_of(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days that `question` speaks of. What is relative to `today`, or has no year, needs it.
pub(super) fn spans(question: &str, today: Option<Day>) -> Vec<Span> {
    let Some(dates) = DATES.as_ref() else { return Vec::new() };
    dates.captures_iter(question).filter_map(|found| span(&found, today)).collect()
}

fn span(found: &Captures<'_>, today: Option<Day>) -> Option<Span> {
    let number = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<u32>().ok());
    let year = |name: &str| number(name).and_then(|year| i32::try_from(year).ok());
    let month = |name: &str| {
        let text = found.name(name)?.as_str().get(..3)?.to_ascii_lowercase();
        MONTHS.iter().position(|&month| month == text).and_then(|at| u32::try_from(at + 1).ok())
    };
    if let Some(year) = year("iy") {
        return of(year, number("im"), number("id"));
    }
    if let Some(named) = month("dm").or(month("mm")) {
        let day = number("dd").or(number("md"));
        let year = year("dy").or(year("my")).or_else(|| latest(named, today))?;
        return of(year, Some(named), day);
    }
    if let Some(named) = month("om").or(month("am")) {
        return of(year("oy").or_else(|| latest(named, today))?, Some(named), None);
    }
    if let Some(year) = year("y") {
        return of(year, None, None);
    }
    relative(found, today?)
}

/// What is told by its distance from today.
fn relative(found: &Captures<'_>, today: Day) -> Option<Span> {
    let text = |name: &str| found.name(name).map(|text| text.as_str().to_ascii_lowercase());
    if let Some(near) = text("near") {
        let day = today.before(i32::from(near == "yesterday"));
        return Some(day..=day);
    }
    if let Some(number) = text("n") {
        let number = number.parse().ok().or_else(|| {
            NUMBERS.iter().position(|&word| word == number).map_or(Some(1), |at| i32::try_from(at + 1).ok())
        })?;
        // Nobody means the very day when weeks are counted.
        let (days, around) = match text("unit")?.as_str() {
            "day" => (1, 0),
            "week" => (7, 3),
            "month" => (30, 15),
            _ => (365, 183),
        };
        let middle = today.before(number * days);
        return Some(middle.before(around)..=middle.before(-around));
    }
    let this = text("rel")? == "this";
    let days = match text("of")?.as_str() {
        "week" => 7,
        "month" => 31,
        _ => {
            let year = today.year();
            return of(if this { year } else { year - 1 }, None, None);
        }
    };
    // Last week may end yesterday or on Sunday: both, since the days only raise what they hold.
    Some(today.before(if this { days } else { 2 * days })..=today)
}

/// The year in which a month was last, this one included.
fn latest(month: u32, today: Option<Day>) -> Option<i32> {
    let today = today?;
    Some(today.year() - i32::from(month > today.month()))
}

fn of(year: i32, month: Option<u32>, day: Option<u32>) -> Option<Span> {
    let first = Day::of(year, month.unwrap_or(1), day.unwrap_or(1))?;
    let last_month = month.unwrap_or(12);
    Some(first..=Day::of(year, last_month, day.unwrap_or(days_of(year, last_month)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(year: i32, month: u32, day: u32) -> Day {
        Day::of(year, month, day).unwrap()
    }

    #[test]
    fn days_count_from_1970() {
        assert_eq!(day(1970, 1, 1), Day(0));
        assert_eq!(day(2000, 3, 1), Day(11_017));
        assert_eq!(day(2024, 12, 31).0 - day(2024, 1, 1).0, 365);
        for none in [(2023, 2, 29), (2023, 0, 1), (2023, 13, 1), (2023, 4, 31), (0, 1, 1), (2023, 1, 0)] {
            assert_eq!(Day::of(none.0, none.1, none.2), None);
        }
        for at in [(1970, 1, 1), (1969, 12, 31), (2023, 5, 8), (2024, 2, 29), (1600, 12, 31)] {
            let day = day(at.0, at.1, at.2);
            assert_eq!((day.year(), day.month()), (at.0, at.1));
        }
    }

    #[test]
    fn dates_are_understood_as_they_are_written() {
        let today = Some(day(2023, 9, 13));
        let cases = [
            ("What happened on 8 May, 2023?", day(2023, 5, 8), day(2023, 5, 8)),
            ("the 3rd of June", day(2023, 6, 3), day(2023, 6, 3)),
            ("on October 3rd", day(2022, 10, 3), day(2022, 10, 3)),
            ("2023-05-08", day(2023, 5, 8), day(2023, 5, 8)),
            ("in 2023-02", day(2023, 2, 1), day(2023, 2, 28)),
            ("during September 2021", day(2021, 9, 1), day(2021, 9, 30)),
            ("in March", day(2023, 3, 1), day(2023, 3, 31)),
            ("on March 3, 2021", day(2021, 3, 3), day(2021, 3, 3)),
            ("back in 2022", day(2022, 1, 1), day(2022, 12, 31)),
            ("yesterday", day(2023, 9, 12), day(2023, 9, 12)),
            ("two days ago", day(2023, 9, 11), day(2023, 9, 11)),
            ("a week ago", day(2023, 9, 3), day(2023, 9, 9)),
            ("last week", day(2023, 8, 30), day(2023, 9, 13)),
            ("last year", day(2022, 1, 1), day(2022, 12, 31)),
        ];
        for (question, first, last) in cases {
            assert_eq!(spans(question, today), [first..=last], "{question}");
        }
    }

    #[test]
    fn words_that_only_look_like_dates_are_none() {
        let today = Some(day(2023, 9, 13));
        for question in
            ["May I ask?", "a march of 12 miles", "2023-13-45", "31 February 2023", "room 4051", ""]
        {
            assert!(spans(question, today).is_empty(), "{question}");
        }
        for relative in ["yesterday", "in March", "3 weeks ago", "last month"] {
            assert!(spans(relative, None).is_empty(), "{relative}");
        }
    }
}
