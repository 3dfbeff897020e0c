//! The small values in documents: scores, timestamps, lifetimes, block ids, and enumerations.
//!
//! Each type reads what it writes. Nothing here knows which document a value belongs to.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, SecondsFormat};
use larder_text::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The text is not a valid value of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found:?}")]
pub struct ValueError {
    /// The expected values.
    pub expected: &'static str,
    /// The text found, truncated to 60 characters.
    pub found: String,
}

impl ValueError {
    pub(super) fn new(expected: &'static str, found: &str) -> Self {
        Self { expected, found: found.chars().take(60).collect() }
    }
}

/// Implements serialization as text for types with `Display` and `FromStr`.
macro_rules! as_text {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(super) use as_text;

/// Declares an enumeration whose variants are written as fixed words. Aliases are accepted when reading, case is
/// ignored, and anything else is rejected.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $expected:literal:
     $($(#[$doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*),+ $(,)?) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Every value, in order.
            #[allow(dead_code, reason = "not every list of words is gone through")]
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word as written.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::ValueError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let word = text.trim();
                $(if [$word $(, $alias)*].iter().any(|known| known.eq_ignore_ascii_case(word)) {
                    return Ok(Self::$variant);
                })+
                Err($crate::ValueError::new($expected, text))
            }
        }

        $crate::value::as_text!($name);
    };
}
pub(super) use words;

words! {
    /// What a query refers to (C11).
    ReferenceType, "specific_content, general_question, followup or new_topic":
    /// A specific piece of content: a thread, a page, a file.
    SpecificContent = "specific_content",
    /// Nothing mentioned before.
    GeneralQuestion = "general_question" | "general",
    /// The conversation so far.
    Followup = "followup" | "follow_up",
    /// A topic outside the conversation so far.
    NewTopic = "new_topic",
}

words! {
    /// The intent of a query.
    Intent, "informational, transactional, navigation, commerce_search or comparison":
    /// To learn something.
    Informational = "informational",
    /// To buy or do something.
    Transactional = "transactional",
    /// To reach a particular place.
    Navigation = "navigation",
    /// To find something to buy.
    CommerceSearch = "commerce_search" | "commerce",
    /// To compare alternatives.
    Comparison = "comparison",
}

words! {
    /// The scope of knowledge.
    Scope, "new, user or global":
    /// Newly learned, not yet trusted.
    New = "new",
    /// One user, in all conversations.
    User = "user" | "profile",
    /// All users.
    Global = "global" | "system" | "shared",
}

words! {
    /// Yes or no.
    Truth, "true or false":
    /// Yes.
    True = "true" | "yes",
    /// No.
    False = "false" | "no",
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// Implements numbers with a label.
macro_rules! number {
    ($name:ident, $number:ty) => {
        #[derive(Debug, Clone, Copy)]
        pub(super) struct $name(pub $number);

        impl FromStr for $name {
            type Err = ValueError;

            fn from_str(text: &str) -> Result<Self, ValueError> {
                text.trim().parse().map(Self).map_err(|_| ValueError::new("a whole number", text))
            }
        }
    };
}
number!(Number, u32);
number!(Size, u64);

/// A number of hours, to the nearest tenth: `1.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hours(u64);

impl Hours {
    /// Creates a value from tenths of an hour.
    pub const fn tenths(tenths: u64) -> Self {
        Self(tenths)
    }

    /// Creates a value from seconds, rounded to the nearest tenth of an hour.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds / 360 + (seconds % 360) / 180)
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{}", self.0 / 10),
            tenth => write!(f, "{}.{tenth}", self.0 / 10),
        }
    }
}

impl FromStr for Hours {
    type Err = ValueError;

    /// Accepts `1.2` and `1.2 hours`.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let number = text.trim().trim_end_matches(|char: char| char.is_ascii_alphabetic()).trim_end();
        let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
        let tenth = rest.get(..1).filter(|_| rest.bytes().all(|byte| byte.is_ascii_digit()));
        let tenths = || whole.parse::<u64>().ok()?.checked_mul(10)?.checked_add(tenth?.parse().ok()?);
        tenths().map(Self).ok_or_else(|| ValueError::new("a number of hours such as 1.2", text))
    }
}

/// A number from 0 to 1: a confidence, a quality, a reliability, a trust.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Score(f64);

impl Eq for Score {}

impl Score {
    /// The lowest score.
    pub const ZERO: Self = Self(0.0);
    const EXPECTED: &'static str = "a number from 0 to 1";

    /// `None` if `value` is below 0, above 1 or not a number.
    pub fn new(value: f64) -> Option<Self> {
        // Adding zero turns -0.0, which would print its sign, into 0.0.
        (0.0..=1.0).contains(&value).then_some(Self(value + 0.0))
    }

    /// The number, from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// This score to two decimals, as people read it.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self((self.0 * 100.0).round() / 100.0)
    }

    /// The mean to three decimals; `None` for no scores.
    pub fn mean(scores: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (mut sum, mut count) = (0.0, 0_u32);
        for score in scores {
            sum += score.0;
            count += 1;
        }
        Self::new((sum / f64::from(count) * 1_000.0).round() / 1_000.0)
    }
}

impl fmt::Display for Score {
    /// Written with at least two decimals, as in `0.90` and `0.825`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shortest = self.0.to_string();
        match shortest.split_once('.') {
            Some((_, decimals)) if decimals.len() >= 2 => f.write_str(&shortest),
            _ => write!(f, "{:.2}", self.0),
        }
    }
}

impl FromStr for Score {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let number = text.trim().parse().ok();
        number.and_then(Self::new).ok_or_else(|| ValueError::new(Self::EXPECTED, text))
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        Self::new(number)
            .ok_or_else(|| serde::de::Error::custom(ValueError::new(Self::EXPECTED, &number.to_string())))
    }
}

/// A UTC timestamp in whole milliseconds, from year 1 to 9999; written as ISO 8601, with milliseconds only if they
/// are not zero. Any offset is accepted when reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentTime(i64);

impl DocumentTime {
    const FIRST: i64 = -62_135_596_800_000;
    const LAST: i64 = 253_402_300_799_999;

    /// Whether it is the last moment of the year 9999, to which later ones are cut: the sign of a clock that is wrong.
    pub const fn is_last(self) -> bool {
        self.0 == Self::LAST
    }

    /// The time `millis` milliseconds after 1970-01-01T00:00:00Z; `None` before year 1 or after year 9999.
    pub fn from_millis(millis: i64) -> Option<Self> {
        (Self::FIRST..=Self::LAST).contains(&millis).then_some(Self(millis))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Seconds since `earlier`; 0 if the clock was set back in between.
    pub fn seconds_since(self, earlier: Self) -> u64 {
        u64::try_from((self.0 - earlier.0) / 1_000).unwrap_or(0)
    }

    /// This time plus `seconds`, at most the last time that can be written.
    pub fn plus_seconds(self, seconds: u64) -> Self {
        let millis = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        Self(self.0.saturating_add(millis).min(Self::LAST))
    }

    /// The month, such as `2026-11`.
    pub fn month(self) -> String {
        self.to_string().chars().take(7).collect()
    }

    /// The day, such as `2026-11-22`.
    pub fn day(self) -> String {
        self.to_string().chars().take(10).collect()
    }
}

/// Moments after the year 9999 become its last one.
impl From<Timestamp> for DocumentTime {
    fn from(moment: Timestamp) -> Self {
        Self(i64::try_from(moment.as_millis()).unwrap_or(i64::MAX).min(Self::LAST))
    }
}

impl fmt::Display for DocumentTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.0 % 1_000 == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
        let moment = DateTime::from_timestamp_millis(self.0).unwrap_or_default();
        f.write_str(&moment.to_rfc3339_opts(form, true))
    }
}

impl FromStr for DocumentTime {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let moment = DateTime::parse_from_rfc3339(text.trim()).ok();
        let millis = moment.map(|moment| moment.timestamp_millis());
        millis
            .and_then(Self::from_millis)
            .ok_or_else(|| ValueError::new("a time such as 2026-01-05T10:00:00Z", text))
    }
}

as_text!(DocumentTime);

/// How long something may be relied on: forever, or a number of seconds; written `evergreen`, `6h`, `30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ttl {
    /// A number of seconds.
    Seconds(u64),
    /// It does not expire.
    Evergreen,
}

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl Ttl {
    /// A lifetime in hours.
    pub const fn hours(hours: u64) -> Self {
        Self::Seconds(hours.saturating_mul(3_600))
    }

    /// Its seconds; the most there are if it never ends.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Seconds(seconds) => seconds,
            Self::Evergreen => u64::MAX,
        }
    }

    /// When something that was true at `from` expires; `None` if never.
    pub fn end(self, from: DocumentTime) -> Option<DocumentTime> {
        match self {
            Self::Seconds(seconds) => Some(from.plus_seconds(seconds)),
            Self::Evergreen => None,
        }
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Seconds(seconds) = *self else { return f.write_str("evergreen") };
        let whole = |unit: &&(char, u64)| seconds.is_multiple_of(unit.1) && (seconds > 0 || unit.1 == 1);
        // Days are used from two on: `24h` reads better.
        let unit = UNITS.iter().filter(|unit| unit.0 != 'd' || seconds >= 172_800).find(whole);
        let (name, size) = unit.copied().unwrap_or(('s', 1));
        write!(f, "{}{name}", seconds / size)
    }
}

impl FromStr for Ttl {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let word = text.trim();
        if ["evergreen", "never", "none", "-"].iter().any(|known| known.eq_ignore_ascii_case(word)) {
            return Ok(Self::Evergreen);
        }
        let seconds = UNITS.iter().find_map(|(name, size)| {
            let number: u64 = word.strip_suffix(*name)?.trim_end().parse().ok()?;
            number.checked_mul(*size)
        });
        seconds.map(Self::Seconds).ok_or_else(|| ValueError::new("a duration such as 6h, or evergreen", text))
    }
}

as_text!(Ttl);

/// The name of a linkable block: ASCII letters, digits and `-`. Written `^claim-001`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(String);

impl BlockId {
    /// `None` if the name is empty or contains anything but ASCII letters, digits and `-`.
    pub fn new(name: &str) -> Option<Self> {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (!name.is_empty() && name.bytes().all(fine)).then(|| Self(name.to_owned()))
    }

    /// A numbered id: `claim-001` for the first claim.
    pub fn numbered(kind: &'static str, number: usize) -> Self {
        Self(format!("{kind}-{number:03}"))
    }

    /// The name without `^`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "^{}", self.0)
    }
}

impl FromStr for BlockId {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let name = text.trim().strip_prefix('^').and_then(Self::new);
        name.ok_or_else(|| ValueError::new("^ and ASCII letters, digits or -", text))
    }
}

as_text!(BlockId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_that_of_the_goals() {
        let scores = [0.85, 0.80].map(|value| Score::new(value).unwrap());
        assert_eq!(Score::mean(scores).unwrap().to_string(), "0.825");
        assert_eq!(Score::mean([]), None);
        assert!(Score::new(1.01).is_none() && Score::new(f64::NAN).is_none());
        assert_eq!(Score::new(-0.0).unwrap().to_string(), "0.00");
        assert_eq!(Score::new(0.9).unwrap().to_string(), "0.90");
    }

    #[test]
    fn moments_are_read_with_any_offset_and_written_in_utc() {
        let moment: DocumentTime = "2025-12-06T19:44:00+01:00".parse().unwrap();
        assert_eq!(moment.to_string(), "2025-12-06T18:44:00Z");
        assert_eq!(moment.plus_seconds(6 * 3_600).to_string(), "2025-12-07T00:44:00Z");
        assert_eq!((moment.month().as_str(), moment.day().as_str()), ("2025-12", "2025-12-06"));
        assert_eq!(moment.seconds_since(moment.plus_seconds(9)), 0);
        assert!("2025-13-06T18:44:00Z".parse::<DocumentTime>().is_err());
        assert_eq!(moment.plus_seconds(u64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn lifetimes_are_written_in_their_largest_unit() {
        for (text, seconds) in [("6h", 21_600), ("90m", 5_400), ("24h", 86_400), ("7d", 604_800), ("0s", 0)] {
            assert_eq!(text.parse(), Ok(Ttl::Seconds(seconds)));
            assert_eq!(Ttl::Seconds(seconds).to_string(), text);
        }
        assert_eq!("Evergreen".parse(), Ok(Ttl::Evergreen));
        assert!("6".parse::<Ttl>().is_err() && "99999999999999999999h".parse::<Ttl>().is_err());
    }

    #[test]
    fn old_names_are_read_and_new_ones_written() {
        assert_eq!("general".parse::<ReferenceType>().unwrap().as_str(), "general_question");
        assert_eq!("Commerce".parse::<Intent>().unwrap().as_str(), "commerce_search");
        assert_eq!("system".parse::<Scope>().unwrap().as_str(), "global");
        assert_eq!(
            "shopping".parse::<Intent>().unwrap_err().to_string(),
            "expected informational, transactional, navigation, commerce_search or comparison, found \"shopping\""
        );
    }
}
