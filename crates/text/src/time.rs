//! Moments in UTC, and how they are written. Reads no clock.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MILLIS_PER_DAY: u64 = 86_400_000;

/// A moment in UTC, in whole milliseconds; written as ISO 8601, `2026-11-21T08:30:00.000Z` (R0-27.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The moment `millis` milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

/// Year, month and day of a day counted from 1970-01-01 (Howard Hinnant's `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The day counted from 1970-01-01, for years 1970 to 9999; `None` if there is no such date.
fn day_number(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted_year / 400, shifted_year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    (civil(days) == (year, month, day)).then_some(days)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0 / MILLIS_PER_DAY);
        let millis = self.0 % MILLIS_PER_DAY;
        let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
        let (second, milli) = (millis / 1_000 % 60, millis % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// The text is not a moment in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time: expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ss[.mmm]Z (UTC, from 1970 on)")]
pub struct ParseTimestampError;

/// The number that the digits of `text` write, if it is `digits` of them and nothing else.
fn number(text: &str, digits: usize) -> Option<u64> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn parse(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    let mut date = date.split('-');
    let (year, month, day) = (date.next()?, date.next()?, date.next()?);
    if date.next().is_some() {
        return None;
    }
    let midnight = day_number(number(year, 4)?, number(month, 2)?, number(day, 2)?)? * MILLIS_PER_DAY;
    let Some(time) = time else { return Some(midnight) };
    let (time, fraction) =
        time.strip_suffix('Z').map(|time| time.split_once('.').unwrap_or((time, "000")))?;
    let mut time = time.split(':').map(|field| number(field, 2));
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    if time.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(midnight + hour * 3_600_000 + minute * 60_000 + second * 1_000 + number(fraction, 3)?)
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self).ok_or(ParseTimestampError)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments_are_written_as_iso_8601() {
        let written = |millis| Timestamp::from_millis(millis).to_string();
        assert_eq!(written(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(written(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(written(1_795_300_245_678), "2026-11-21T22:30:45.678Z");
        assert!(!written(u64::MAX).is_empty());
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026",
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+01:00",
            "2026-01-01T00:00:00.1Z",
            "1969-12-31",
            "99999-01-01",
            "2026-01-01-01",
            "é-01-01",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(ParseTimestampError), "{text}");
        }
        assert_eq!("2026-11-21".parse(), Ok(Timestamp::from_millis(1_795_219_200_000)));
        assert_eq!("2026-11-21T00:00:01Z".parse(), Ok(Timestamp::from_millis(1_795_219_201_000)));
    }

    proptest! {
        #[test]
        fn a_time_reads_back_as_it_was_written(millis in 0u64..253_402_300_800_000) {
            prop_assert_eq!(Timestamp(millis).to_string().parse(), Ok(Timestamp(millis)));
        }
    }
}
