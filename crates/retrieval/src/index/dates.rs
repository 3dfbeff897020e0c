//! The days that a text speaks of: "on 8 May 2023", "in March", "two weeks ago", "next Friday", "between 3 and 9 June".
//!
//! Knows English words for dates; reads no clock: today is an argument.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use chrono::{Datelike, Days, NaiveDate};
use regex::{Captures, Regex};

/// Days that a text names.
pub(super) type DaySpan = RangeInclusive<NaiveDate>;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/// The number of the first day of a weekend, from Monday as 0.
const SATURDAY: i64 = 5;
/// Months of a season.
const SEASON: u32 = 3;
/// A month that was named without its year is at most this many months away.
const HALF_A_YEAR: i32 = 6;

/// What names days, by the names of the groups, and at its end what only says that a time is told. A month alone counts
/// only after a word of time: "may" is a verb too.
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static DATES: LazyLock<Regex> = LazyLock::new(|| {
    let month = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
    let weekday = "(?:mon|tues|wednes|thurs|fri|satur|sun)day";
    let season = "(?:spring|summer|autumn|fall|winter)";
    let number = format!(r"\d{{1,3}}|(?:an?\s+)?(?:few|couple(?:\s+of)?)|several|an?|{}", NUMBERS.join("|"));
    let nth = "(?:st|nd|rd|th)?";
    let to = r"\s*(?:and|to|until|till|-|–)\s*";
    let time = r"(?:in|since|during|by|until|of|last|this|next|on)\s+";
    let parts = [
        r"(?P<iy>[12]\d{3})-(?P<im>\d{2})(?:-(?P<id>\d{2})(?:T[\d:]+)?)?".to_owned(),
        format!(
            r"(?:(?P<d1>\d{{1,2}}){nth}{to})?(?P<dd>\d{{1,2}}){nth}\s+(?:of\s+)?(?P<dm>{month})\b(?:,?\s+(?P<dy>[12]\d{{3}}))?"
        ),
        format!(
            r"(?P<mm>{month})\s+(?P<md>\d{{1,2}}){nth}(?:{to}(?P<d2>\d{{1,2}}){nth})?\b(?:,?\s+(?P<my>[12]\d{{3}}))?"
        ),
        format!(r"(?P<om>{month}),?\s+(?P<oy>[12]\d{{3}})"),
        format!(r"(?P<am>{month})"),
        format!(r"(?P<ss>{season})\s+(?:of\s+)?(?P<sy>[12]\d{{3}})"),
        format!(r"(?P<s>{season})"),
        "(?P<near>today|tonight|yesterday|tomorrow)".to_owned(),
        r"(?P<part>last|this)\s+(?:night|morning|afternoon|evening)".to_owned(),
        format!(r"(?P<n>{number})\s+(?P<unit>day|week|month|year)s?\s+(?:ago|earlier|back)"),
        format!(r"in\s+(?P<fn>{number})\s+(?P<fu>day|week|month|year)s?"),
        format!(r"(?P<rel>last|this|past|previous|next|coming)\s+(?P<of>weekend|week|month|year|{weekday})"),
        format!(r"(?:on|since)\s+(?P<wd>{weekday})"),
        r"(?:on|since|until|till|by|from)\s+the\s+(?P<nth>\d{1,2})(?:st|nd|rd|th)".to_owned(),
        r"(?P<y>(?:19|20)\d{2})".to_owned(),
        format!(r"(?:{number})\s+(?:day|week|weekend|month|year)s?|{weekday}|recently|lately|soon|just"),
    ];
    let after_time = ["am", "s"].map(|group| format!("(?P<{group}>"));
    let with_prefix = |part: &String| {
        let needed = after_time.iter().any(|group| part.starts_with(group));
        if needed { format!("{time}{part}") } else { format!("(?:{time})?{part}") }
    };
    let all = parts.iter().map(with_prefix).collect::<Vec<_>>().join("|");
    // Only ASCII counts, which is searched faster.
    Regex::new(&format!(r"(?i-u)\b(?:{all})\b")).expect("a constant pattern")
});

/// Questions for a time: "when did …", "how long", "which month".
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static WHEN: LazyLock<Regex> = LazyLock::new(|| {
    let parts = [
        // Not "how did it feel when …".
        r"^(?:and|so)?\s*when|when\s+(?:did|do|does|was|were|is|are|will|have|has|had)",
        r"(?:remember|know|tell\s+me)\s+when",
        r"how\s+(?:long|often|recently|old)",
        r"how\s+many\s+(?:days|weeks|months|years)",
        r"(?:what|which)\s+(?:day|date|weekday|week|weekend|month|year|time|season)",
    ];
    Regex::new(&format!(r"(?i-u)(?:^|\b)(?:{})\b", parts.join("|"))).expect("a constant pattern")
});

/// Questions about the last time: "when did we last …", "the latest". "Last week" is a time of its own.
#[allow(clippy::expect_used, reason = "the pattern is constant and every test run compiles it")]
static LATEST: LazyLock<Regex> = LazyLock::new(|| {
    let last = r"((?:did|do|does|have|has|had)\s+\w+)\s+last|last\s+time|latest|newest|most\s+recent(?:ly)?";
    Regex::new(&format!(r"(?i-u)\b(?:{last})\b")).expect("a constant pattern")
});

/// What a question says of days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskedDays {
    /// The days that it names.
    pub spans: Vec<DaySpan>,
    /// Its words without those that name them.
    pub rest: String,
}

/// What a text says of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToldTime {
    /// The days that it names.
    pub spans: Vec<DaySpan>,
    /// Whether it tells any time: days, a duration, or that something is recent.
    pub tells: bool,
}

/// How a text is read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The day on which it was written.
    today: Option<NaiveDate>,
    /// Whether it asks about what was: a month without a year is the latest, and in what is said the nearest.
    asks: bool,
}

/// The day that a text names, such as `8 May 2023`, if it names one and with its year.
pub fn day_of(text: &str) -> Option<NaiveDate> {
    let spans = spans(text, None);
    let first = spans.first()?;
    (first.start() == first.end()).then_some(*first.start())
}

/// Whether a question asks for a time.
pub(crate) fn asks_when(question: &str) -> bool {
    WHEN.is_match(question)
}

/// Whether a question asks about the last time of something.
pub(crate) fn asks_latest(question: &str) -> bool {
    LATEST.is_match(question)
}

/// A question without the words by which it asks about the last time, which say nothing of its subject.
pub(super) fn without_latest(question: &str) -> Cow<'_, str> {
    LATEST.replace_all(question, "$1")
}

/// The days that `question` names. Relative days and dates without a year need `today`.
pub(super) fn spans(question: &str, today: Option<NaiveDate>) -> Vec<DaySpan> {
    asked_days(question, today).spans
}

/// The days that `question` names, and its other words.
pub(super) fn asked_days(question: &str, today: Option<NaiveDate>) -> AskedDays {
    let mut asked = AskedDays { spans: Vec::new(), rest: String::new() };
    let mut end = 0;
    let reading = Reading { today, asks: true };
    for found in DATES.captures_iter(question) {
        let Some((place, span)) = found.get(0).zip(reading.span(&found, question)) else { continue };
        let between = &question[end..place.start()];
        match asked.spans.last_mut().filter(|last| joins(between) && last.start() <= span.end()) {
            Some(last) => *last = *last.start()..=*span.end(),
            None => asked.spans.push(span),
        }
        asked.rest.push_str(between);
        end = place.end();
    }
    asked.rest.push_str(&question[end..]);
    asked
}

/// What a text that was written on a day says of time.
pub(super) fn told_time(text: &str, day: NaiveDate) -> ToldTime {
    let reading = Reading { today: Some(day), asks: false };
    let mut told = ToldTime::default();
    for found in DATES.captures_iter(text) {
        told.tells = true;
        told.spans.extend(reading.span(&found, text));
    }
    told
}

/// Whether what is between two dates makes them the ends of one span.
fn joins(between: &str) -> bool {
    ["and", "to", "until", "till", "through", "-", "–"].contains(&between.trim())
}

impl Reading {
    fn span(self, found: &Captures<'_>, text: &str) -> Option<DaySpan> {
        let whole = found.get(0)?;
        let span = self.named(found, &text[whole.end()..])?;
        let begins = |word: &str| {
            whole.as_str().get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        };
        match self.today.filter(|today| begins("since ") && span.start() < today) {
            Some(today) => Some(*span.start()..=today),
            None => Some(span),
        }
    }

    fn named(self, found: &Captures<'_>, behind: &str) -> Option<DaySpan> {
        let number = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<u32>().ok());
        let year = |name: &str| number(name).and_then(|year| i32::try_from(year).ok());
        let month = |name: &str| place_in(&MONTHS, found.name(name)?.as_str()).map(|at| at + 1);
        if let Some(year) = year("iy") {
            return span_of(year, number("im"), number("id"));
        }
        if let Some(named) = month("dm").or(month("mm")) {
            let year = year("dy").or(year("my")).or_else(|| self.year_of(named))?;
            let day = |name: &str| NaiveDate::from_ymd_opt(year, named, number(name)?);
            let first = day("d1").or_else(|| day("dd")).or_else(|| day("md"))?;
            let last = day("dd").or_else(|| day("d2")).filter(|last| first <= *last);
            return Some(first..=last.unwrap_or(first));
        }
        if let Some(named) = month("om").or(month("am")) {
            return span_of(year("oy").or_else(|| self.year_of(named))?, Some(named), None);
        }
        if let Some(season) = found.name("ss").or(found.name("s")) {
            let first = match season.as_str().to_ascii_lowercase().as_str() {
                "spring" => 3,
                "summer" => 6,
                "winter" => 12,
                _ => 9,
            };
            let first = NaiveDate::from_ymd_opt(year("sy").or_else(|| self.year_of(first))?, first, 1)?;
            return Some(first..=first.checked_add_months(chrono::Months::new(SEASON))?.pred_opt()?);
        }
        if let Some(year) = year("y") {
            return span_of(year, None, None);
        }
        let today = self.today?;
        if let Some(day) = number("nth") {
            // "On the 2nd floor" is no day.
            let is_number = self.asks && behind.trim_start().starts_with(char::is_alphabetic);
            return if is_number { None } else { nearest(today, day, self.asks) };
        }
        relative(found, today)
    }

    /// The year of a month that is named without one.
    fn year_of(self, month: u32) -> Option<i32> {
        let today = self.today?;
        let ahead = i32::try_from(month).ok()? - i32::try_from(today.month()).ok()?;
        Some(match ahead {
            1.. if self.asks || ahead > HALF_A_YEAR => today.year() - 1,
            _ if !self.asks && ahead < -HALF_A_YEAR => today.year() + 1,
            _ => today.year(),
        })
    }
}

/// Where a list has the first three letters of a word.
fn place_in(list: &[&str], word: &str) -> Option<u32> {
    let begin = word.get(..3)?.to_ascii_lowercase();
    list.iter().position(|one| *one == begin).and_then(|at| u32::try_from(at).ok())
}

/// The nearest day of this number in its month, or the latest.
fn nearest(today: NaiveDate, day: u32, latest: bool) -> Option<DaySpan> {
    let away = if latest { -31..=0 } else { -31..=31 };
    let days = away.filter_map(|away| Some((i64::abs(away), shifted(today, away)?)));
    days.filter(|(_, date)| date.day() == day).min().map(|(_, date)| date..=date)
}

/// Days given by their distance from today.
fn relative(found: &Captures<'_>, today: NaiveDate) -> Option<DaySpan> {
    let text = |name: &str| found.name(name).map(|text| text.as_str().to_ascii_lowercase());
    let on = |away: i64| shifted(today, away).map(|day| day..=day);
    if let Some(near) = text("near") {
        return on(i64::from(near == "tomorrow") - i64::from(near == "yesterday"));
    }
    if let Some(part) = text("part") {
        return on(-i64::from(part == "last"));
    }
    if let Some((number, unit)) = text("n").zip(text("unit")) {
        return counted(today, -1, &number, &unit);
    }
    if let Some((number, unit)) = text("fn").zip(text("fu")) {
        return counted(today, 1, &number, &unit);
    }
    let weekday = i64::from(today.weekday().num_days_from_monday());
    // A day of the week by itself is the last one.
    let (of, rel) = text("of").zip(text("rel")).or_else(|| text("wd").map(|day| (day, "last".into())))?;
    let step = match rel.as_str() {
        "last" | "past" | "previous" => -1,
        "this" => 0,
        _ => 1,
    };
    let days = |first: i64, last: i64| Some(shifted(today, first)?..=shifted(today, last)?);
    match of.as_str() {
        // From the Sunday before: where weeks begin differs.
        "week" => days(7 * step - weekday - 1, 7 * step - weekday + 6),
        "weekend" => {
            // The next is this week's, before it; on it, the last is the one before.
            let weeks = if step > 0 && weekday < SATURDAY { 0 } else { step };
            let saturday = SATURDAY - weekday + 7 * weeks;
            days(saturday, saturday + 1)
        }
        "month" => {
            let month = today.year() * 12 + i32::try_from(today.month0()).ok()? + i32::try_from(step).ok()?;
            span_of(month.div_euclid(12), u32::try_from(month.rem_euclid(12) + 1).ok(), None)
        }
        "year" => span_of(today.year() + i32::try_from(step).ok()?, None, None),
        day => {
            let ahead = (i64::from(place_in(&WEEKDAYS, day)?) - weekday).rem_euclid(7);
            // Today is neither the last nor the next.
            on(match step {
                -1 => ahead - 7,
                _ if ahead == 0 && step > 0 => 7,
                _ => ahead,
            })
        }
    }
}

/// A number of units away from today.
fn counted(today: NaiveDate, sign: i64, number: &str, unit: &str) -> Option<DaySpan> {
    let named = || NUMBERS.iter().position(|&word| word == number).and_then(|at| i64::try_from(at + 1).ok());
    let vague = || match number {
        few if few.contains("few") || few == "several" => 3,
        couple if couple.contains("couple") => 2,
        _ => 1,
    };
    let number = number.parse().ok().or_else(named).unwrap_or_else(vague);
    // Nobody means the very day when weeks are counted.
    let (days, around) = match unit {
        "day" => (1, 0),
        "week" => (7, 3),
        "month" => (30, 15),
        _ => (365, 183),
    };
    let middle = sign * number * days;
    Some(shifted(today, middle - around)?..=shifted(today, middle + around)?)
}

fn shifted(day: NaiveDate, away: i64) -> Option<NaiveDate> {
    let days = Days::new(away.unsigned_abs());
    if away < 0 { day.checked_sub_days(days) } else { day.checked_add_days(days) }
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
            ("last week", day(2023, 9, 3), day(2023, 9, 10)),
            ("last month", day(2023, 8, 1), day(2023, 8, 31)),
            ("last year", day(2022, 1, 1), day(2022, 12, 31)),
            ("between 3 and 9 June", day(2023, 6, 3), day(2023, 6, 9)),
            ("August 11 to 15, 2022", day(2022, 8, 11), day(2022, 8, 15)),
            ("from 30 May to June 2nd", day(2023, 5, 30), day(2023, 6, 2)),
            ("on the 11th?", day(2023, 9, 11), day(2023, 9, 11)),
            ("last Wednesday", day(2023, 9, 6), day(2023, 9, 6)),
            ("on Tuesday", day(2023, 9, 12), day(2023, 9, 12)),
            ("since yesterday", day(2023, 9, 12), day(2023, 9, 13)),
            ("last weekend", day(2023, 9, 9), day(2023, 9, 10)),
            ("last summer", day(2023, 6, 1), day(2023, 8, 31)),
            ("in winter 2021", day(2021, 12, 1), day(2022, 2, 28)),
        ];
        for (question, first, last) in cases {
            assert_eq!(spans(question, today), [first..=last], "{question}");
        }
    }

    #[test]
    fn what_is_said_may_be_ahead_and_tells_a_time_without_a_day() {
        let told = |text| told_time(text, day(2023, 11, 17));
        for (text, first, last) in [
            ("We leave tomorrow.", day(2023, 11, 18), day(2023, 11, 18)),
            ("See you next Friday!", day(2023, 11, 24), day(2023, 11, 24)),
            ("It is this weekend.", day(2023, 11, 18), day(2023, 11, 19)),
            ("It is next month.", day(2023, 12, 1), day(2023, 12, 31)),
            ("In two weeks I am done.", day(2023, 11, 28), day(2023, 12, 4)),
            ("The fair is in January.", day(2024, 1, 1), day(2024, 1, 31)),
            ("I was there in August.", day(2023, 8, 1), day(2023, 8, 31)),
            ("I was back on the 15th after my trip.", day(2023, 11, 15), day(2023, 11, 15)),
            ("A few days ago it broke.", day(2023, 11, 14), day(2023, 11, 14)),
        ] {
            assert_eq!(told(text), ToldTime { spans: vec![first..=last], tells: true }, "{text}");
        }
        for text in ["I had it for three years.", "I just signed.", "We meet every Monday."] {
            assert_eq!(told(text), ToldTime { spans: vec![], tells: true }, "{text}");
        }
        assert_eq!(told("May I ask for the second one?"), ToldTime::default());
    }

    #[test]
    fn the_words_of_a_date_are_apart_from_the_rest() {
        let asked = asked_days("What did Ann buy on 8 May, 2023 in Ghent?", None);
        assert_eq!(asked.rest, "What did Ann buy  in Ghent?");
        assert_eq!(asked_days("yesterday", None).rest, "yesterday");
        assert_eq!(without_latest("When did Ann last sing? The last time?"), "When did Ann sing? The ?");
        assert!(asks_latest("the latest") && !asks_latest("What did Ann do last week, on her last day?"));
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
