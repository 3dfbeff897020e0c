//! Days on the calendar: those that come again, of which one is chosen as it is seen from today, and those that are counted
//! from today.

use std::ops::RangeInclusive;

use chrono::{Datelike, Days, Months, NaiveDate};

/// Days that a text names.
pub(super) type DaySpan = RangeInclusive<NaiveDate>;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
pub(super) const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/// The number of the first day of a weekend, from Monday as 0.
const SATURDAY: i64 = 5;
/// The month in which winter begins.
const WINTER: u32 = 12;
/// Months of a season.
const SEASON: u32 = 3;
/// How far repetitions are looked for: 29 February is missing for 8 years around 1900, and no three months in a row lack a
/// 31st.
const YEARS: i32 = 8;
const MONTHS_AROUND: i32 = 3;
const WEEKS: i64 = 2;

/// Days by what a text calls them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NamedDays {
    /// Days with their year.
    Known(DaySpan),
    /// Months of every year, or one day of the first.
    Yearly { month: u32, months: u32, day: Option<u32> },
    /// The day with this number of every month that has it.
    Monthly(u32),
    /// A day of every week, from Monday as 0.
    Weekly(u32),
}

/// Which of the days that come again is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// "Last June".
    Last,
    /// "This June".
    This,
    /// "Next June".
    Next,
    /// "Since June".
    Since,
    /// "I was there in June", and "I booked a flight for June".
    Past,
    /// "I will be there in June".
    Coming,
    /// "It is in June".
    Open,
}

impl NamedDays {
    /// A month of a year or, without one, of every year.
    pub(super) fn of_month(year: Option<i32>, month: u32) -> Option<Self> {
        match year {
            Some(year) => span_of(year, Some(month), None).map(Self::Known),
            None => Some(Self::Yearly { month, months: 1, day: None }),
        }
    }

    /// A day of a month.
    pub(super) fn of_day(year: Option<i32>, month: u32, day: u32) -> Option<Self> {
        match year {
            Some(year) => span_of(year, Some(month), Some(day)).map(Self::Known),
            None => Some(Self::Yearly { month, months: 1, day: Some(day) }),
        }
    }

    /// A season, by the year in which it begins.
    pub(super) fn of_season(year: Option<i32>, season: &str) -> Option<Self> {
        let month = match season.to_ascii_lowercase().as_str() {
            "spring" => 3,
            "summer" => 6,
            "winter" => WINTER,
            _ => 9,
        };
        match year {
            Some(year) => months_of(year, month, SEASON).map(Self::Known),
            None => Some(Self::Yearly { month, months: SEASON, day: None }),
        }
    }

    /// Each time that they come around a day, in order.
    pub(super) fn around(&self, day: NaiveDate) -> Vec<DaySpan> {
        match *self {
            Self::Known(ref span) => vec![span.clone()],
            Self::Yearly { month, months, day: number } => {
                let of = |year| match number {
                    Some(number) => span_of(year, Some(month), Some(number)),
                    None => months_of(year, month, months),
                };
                (day.year() - YEARS..=day.year() + YEARS).filter_map(of).collect()
            }
            Self::Monthly(number) => {
                let of = |away| span_of_month(day, away)?.start().with_day(number).map(|day| day..=day);
                (-MONTHS_AROUND..=MONTHS_AROUND).filter_map(of).collect()
            }
            Self::Weekly(weekday) => {
                let away = i64::from(weekday) - weekday_of(day);
                let of = |week| shifted(day, away + 7 * week).map(|day| day..=day);
                (-WEEKS..=WEEKS).filter_map(of).collect()
            }
        }
    }

    /// Which of them are meant. What is said means the nearest where nothing tells the past from what is to come; a day of
    /// the week, and any in a question, may be the latest or the next.
    pub(super) fn seen_from(&self, today: NaiveDate, sense: Sense, asks: bool) -> Vec<DaySpan> {
        if let Self::Known(span) = self {
            return vec![span.clone()];
        }
        let mut all = self.around(today);
        let is_weekly = matches!(self, Self::Weekly(_));
        // Nobody calls today by its weekday alone.
        if is_weekly && sense != Sense::This {
            all.retain(|span| !span.contains(&today));
        }
        let latest = all.iter().rfind(|span| *span.start() <= today);
        let coming = all.iter().find(|span| *span.end() >= today);
        let nearest = all.iter().min_by_key(|span| distance(span, today));
        let this = match self {
            Self::Weekly(_) => coming,
            // It lies in two years.
            Self::Yearly { month: WINTER, months: SEASON, .. } => nearest,
            _ => all.iter().find(|span| span.start().year() == today.year()),
        };
        let (one, other) = match sense {
            Sense::Last => (all.iter().rfind(|span| *span.end() < today), None),
            Sense::Next => (all.iter().find(|span| *span.start() > today), None),
            Sense::This => (this, None),
            Sense::Since => (latest, None),
            Sense::Coming => (coming, None),
            Sense::Past => (latest, nearest),
            Sense::Open if asks || is_weekly => (latest, coming),
            Sense::Open => (nearest, None),
        };
        let other = other.filter(|other| Some(*other) != one);
        one.into_iter().chain(other).cloned().collect()
    }
}

/// The number of a month.
pub(super) fn month_of(name: &str) -> Option<u32> {
    place_in(&MONTHS, name).map(|at| at + 1)
}

/// The number of a weekday, from Monday as 0.
pub(super) fn weekday_named(name: &str) -> Option<u32> {
    place_in(&WEEKDAYS, name)
}

/// Where a list has the first three letters of a word.
fn place_in(list: &[&str], word: &str) -> Option<u32> {
    let begin = word.get(..3)?.to_ascii_lowercase();
    list.iter().position(|one| *one == begin).and_then(|at| u32::try_from(at).ok())
}

/// The week, weekend, month or year before today's (-1), today's (0) or after it (1).
pub(super) fn unit_around(today: NaiveDate, unit: &str, step: i32) -> Option<DaySpan> {
    let weekday = weekday_of(today);
    let days = |first: i64, last: i64| Some(shifted(today, first)?..=shifted(today, last)?);
    match unit {
        // From the Sunday before: where weeks begin differs.
        "week" => days(7 * i64::from(step) - weekday - 1, 7 * i64::from(step) - weekday + 6),
        "weekend" => {
            // The next is this week's, before it; on it, the last is the one before.
            let weeks = if step > 0 && weekday < SATURDAY { 0 } else { i64::from(step) };
            let saturday = SATURDAY - weekday + 7 * weeks;
            days(saturday, saturday + 1)
        }
        "month" => span_of_month(today, step),
        _ => span_of(today.year() + step, None, None),
    }
}

/// A number of units before today (-1) or after it (1).
pub(super) fn counted(today: NaiveDate, sign: i64, number: &str, unit: &str) -> Option<DaySpan> {
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
        "week" | "weekend" => (7, 3),
        "month" => (30, 15),
        _ => (365, 183),
    };
    let middle = sign * number * days;
    Some(shifted(today, middle - around)?..=shifted(today, middle + around)?)
}

pub(super) fn shifted(day: NaiveDate, away: i64) -> Option<NaiveDate> {
    let days = Days::new(away.unsigned_abs());
    if away < 0 { day.checked_sub_days(days) } else { day.checked_add_days(days) }
}

/// A year, a month of it, or a day of that.
pub(super) fn span_of(year: i32, month: Option<u32>, day: Option<u32>) -> Option<DaySpan> {
    match (month, day) {
        (Some(month), None) => months_of(year, month, 1),
        (None, None) => months_of(year, 1, 12),
        (month, Some(day)) => NaiveDate::from_ymd_opt(year, month?, day).map(|day| day..=day),
    }
}

fn months_of(year: i32, month: u32, months: u32) -> Option<DaySpan> {
    let first = NaiveDate::from_ymd_opt(year, month, 1)?;
    Some(first..=first.checked_add_months(Months::new(months))?.pred_opt()?)
}

/// The month so many months after that of a day, or before it.
fn span_of_month(day: NaiveDate, away: i32) -> Option<DaySpan> {
    let month = day.year() * 12 + i32::try_from(day.month0()).ok()? + away;
    months_of(month.div_euclid(12), u32::try_from(month.rem_euclid(12)).ok()? + 1, 1)
}

fn weekday_of(day: NaiveDate) -> i64 {
    i64::from(day.weekday().num_days_from_monday())
}

/// How many days a span is away.
fn distance(span: &DaySpan, day: NaiveDate) -> i64 {
    (*span.start() - day).max(day - *span.end()).num_days().max(0)
}
