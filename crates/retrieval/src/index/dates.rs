//! The days that a text names: "on 8 May 2023", "in March", "two weeks ago".
//!
//! Knows English words for dates; reads no clock: today is an argument.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use chrono::{Datelike, Days, NaiveDate};
use regex::{Captures, Regex};

/// Days that a text names.
pub(super) type DaySpan = RangeInclusive<NaiveDate>;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// The alternatives, by the names of their groups. A month alone counts only after a word of time: "may" is a verb too.
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static DATES: LazyLock<Regex> = LazyLock::new(|| {
    let month = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
    let time = r"(?:in|since|during|by|until|of|last|this|on)\s+";
    let parts = [
        r"(?P<iy>[12]\d{3})-(?P<im>\d{2})(?:-(?P<id>\d{2})(?:T[\d:]+)?)?".to_owned(),
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
    Regex::new(&format!(r"(?i)\b(?:{})\b", parts.join("|"))).expect("a constant pattern")
});

/// The day that a text names, such as `8 May 2023`, if it names one and with its year.
pub fn day_of(text: &str) -> Option<NaiveDate> {
    let spans = spans(text, None);
    let first = spans.first()?;
    (first.start() == first.end()).then_some(*first.start())
}

/// The days that `question` names. Relative days and dates without a year need `today`.
pub(super) fn spans(question: &str, today: Option<NaiveDate>) -> Vec<DaySpan> {
    DATES.captures_iter(question).filter_map(|found| span(&found, today)).collect()
}

fn span(found: &Captures<'_>, today: Option<NaiveDate>) -> Option<DaySpan> {
    let number = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<u32>().ok());
    let year = |name: &str| number(name).and_then(|year| i32::try_from(year).ok());
    let month = |name: &str| {
        let text = found.name(name)?.as_str().get(..3)?.to_ascii_lowercase();
        MONTHS.iter().position(|&month| month == text).and_then(|at| u32::try_from(at + 1).ok())
    };
    if let Some(year) = year("iy") {
        return span_of(year, number("im"), number("id"));
    }
    if let Some(named) = month("dm").or(month("mm")) {
        let day = number("dd").or(number("md"));
        let year = year("dy").or(year("my")).or_else(|| latest(named, today))?;
        return span_of(year, Some(named), day);
    }
    if let Some(named) = month("om").or(month("am")) {
        return span_of(year("oy").or_else(|| latest(named, today))?, Some(named), None);
    }
    if let Some(year) = year("y") {
        return span_of(year, None, None);
    }
    relative(found, today?)
}

/// Days given by their distance from today.
fn relative(found: &Captures<'_>, today: NaiveDate) -> Option<DaySpan> {
    let text = |name: &str| found.name(name).map(|text| text.as_str().to_ascii_lowercase());
    if let Some(near) = text("near") {
        let day = today.checked_sub_days(Days::new(u64::from(near == "yesterday")))?;
        return Some(day..=day);
    }
    if let Some(number) = text("n") {
        let number = number.parse().ok().or_else(|| {
            NUMBERS.iter().position(|&word| word == number).map_or(Some(1), |at| u64::try_from(at + 1).ok())
        })?;
        // Nobody means the very day when weeks are counted.
        let (days, around) = match text("unit")?.as_str() {
            "day" => (1, 0),
            "week" => (7, 3),
            "month" => (30, 15),
            _ => (365, 183),
        };
        let middle = today.checked_sub_days(Days::new(number * days))?;
        let around = Days::new(around);
        return Some(middle.checked_sub_days(around)?..=middle.checked_add_days(around)?);
    }
    let this = text("rel")? == "this";
    let days = match text("of")?.as_str() {
        "week" => 7,
        "month" => 31,
        _ => {
            let year = today.year();
            return span_of(if this { year } else { year - 1 }, None, None);
        }
    };
    // Last week may end yesterday or on Sunday: both, since the days only raise what they hold.
    Some(today.checked_sub_days(Days::new(if this { days } else { 2 * days }))?..=today)
}

/// The year in which a month was last, this one included.
fn latest(month: u32, today: Option<NaiveDate>) -> Option<i32> {
    let today = today?;
    Some(today.year() - i32::from(month > today.month()))
}

fn span_of(year: i32, month: Option<u32>, day: Option<u32>) -> Option<DaySpan> {
    let first = NaiveDate::from_ymd_opt(year, month.unwrap_or(1), day.unwrap_or(1))?;
    let last = match (month, day) {
        (_, Some(_)) => first,
        (Some(month), None) => first.with_day(u32::from(first.num_days_in_month()))?.with_month(month)?,
        (None, None) => NaiveDate::from_ymd_opt(year, 12, 31)?,
    };
    Some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(year: i32, month: u32, day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(year, month, day).unwrap()
    }

    #[test]
    fn a_single_day_is_read_from_a_text_with_its_year() {
        assert_eq!(day_of("1:56 pm on 8 May, 2023"), Some(day(2023, 5, 8)));
        assert_eq!(day_of("2024-02-29T10:00:00Z"), Some(day(2024, 2, 29)));
        for none in ["8 May", "May 2023", "yesterday", "2023-02-29", ""] {
            assert_eq!(day_of(none), None, "{none}");
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
            ("in February 2024", day(2024, 2, 1), day(2024, 2, 29)),
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
