//! Timestamps in UTC and their text form. Reads no clock.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time in UTC, in whole milliseconds; written as ISO 8601, `2026-11-21T08:30:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time `millis` milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Its day in UTC, `2026-11-21`.
    pub fn date(self) -> String {
        self.to_string().split('T').next().unwrap_or_default().to_owned()
    }
}

/// Times beyond the calendar, some 260,000 years from now, are written as its last one.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = i64::try_from(self.0).ok().and_then(DateTime::<Utc>::from_timestamp_millis);
        f.write_str(&moment.unwrap_or(DateTime::<Utc>::MAX_UTC).to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

/// Text that is not a UTC timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time: expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ss[.mmm]Z (UTC, from 1970 on)")]
pub struct ParseTimestampError;

/// Accepts only the documented subset of RFC 3339: a date, or a UTC time with zero or three decimals.
fn parse(text: &str) -> Option<u64> {
    let moment = match text.len() {
        10 => DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")),
        // A leap second cannot be represented as a count of milliseconds.
        20 | 24 if text.as_bytes()[10] == b'T' && text.ends_with('Z') && text.get(17..19) != Some("60") => {
            DateTime::parse_from_rfc3339(text)
        }
        _ => return None,
    };
    u64::try_from(moment.ok()?.timestamp_millis()).ok()
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
    fn other_texts_are_refused() {
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
            "2026-01-01T00:00:00.1234567890Z",
            "2026-12-31T23:59:60Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01t00:00:00Z",
            "2026-01-01T00:00:00z",
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
        fn a_written_time_reads_back(millis in 0u64..253_402_300_800_000) {
            prop_assert_eq!(Timestamp(millis).to_string().parse(), Ok(Timestamp(millis)));
        }
    }
}
