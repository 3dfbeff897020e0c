//! Times of day in any usual notation: `14:30`, `2:30 pm`, `2 pm`, `14.30 Uhr`. Plain functions of texts.

use std::collections::BTreeSet;
use std::ops::Range;

use super::digits;

/// Minutes of half a day.
const HALF_DAY: u32 = 12 * 60;

/// A time in a text.
pub(super) struct Written {
    pub(super) range: Range<usize>,
    /// Minutes since midnight; two where it may be morning or afternoon.
    readings: [Option<u32>; 2],
    seconds: Option<u32>,
}

/// The times that documents state: minutes and seconds.
pub(super) struct Stated(BTreeSet<(u32, Option<u32>)>);

impl Stated {
    pub(super) fn of(times: &[Written]) -> Self {
        let of_time =
            |time: &Written| time.readings.into_iter().flatten().zip(std::iter::repeat(time.seconds));
        Self(times.iter().flat_map(of_time).collect())
    }

    /// Whether a time is among them, as far as both say it.
    pub(super) fn state(&self, time: &Written) -> bool {
        let is_stated = |minutes: u32| match time.seconds {
            None => self.0.range((minutes, None)..=(minutes, Some(u32::MAX))).next().is_some(),
            seconds => self.0.contains(&(minutes, seconds)) || self.0.contains(&(minutes, None)),
        };
        time.readings.into_iter().flatten().any(is_stated)
    }
}

/// The times of a text, in order.
pub(super) fn of(text: &str) -> Vec<Written> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(|char: char| char.is_ascii_digit()).map(|found| at + found) {
        let end = start + digits(&text[start..]);
        at = end;
        if let Some(written) = read(text, start, end) {
            at = written.range.end;
            found.push(written);
        }
    }
    found
}

/// Whether a text goes on with the end of a stretch of hours, as in `17 bis 22 Uhr`.
fn is_start_of_hours(after: &str) -> bool {
    let rest = ["bis ", "– ", "–", "- ", "-", "to "].iter().find_map(|word| after.strip_prefix(word));
    rest.is_some_and(|rest| {
        (1..=2).contains(&digits(rest)) && rest[digits(rest)..].trim_start().starts_with("Uhr")
    })
}

fn read(text: &str, start: usize, hour_end: usize) -> Option<Written> {
    let is_joined = |char: char| char.is_alphanumeric() || matches!(char, ':' | '.' | ',' | '-' | '/');
    let hour: u32 = text[start..hour_end].parse().ok().filter(|hour| *hour < 24)?;
    let before = &text[..start];
    let is_day = |before: &str| before.ends_with(|char: char| char.is_ascii_digit());
    // `09:00-17:00`, `10:00,14:00` and `2026-05-03T09:05`.
    let follows = before.strip_suffix(['-', 'T', '/', ',']).is_some_and(is_day);
    if hour_end - start > 2 || before.ends_with(is_joined) && !follows {
        return None;
    }
    let minutes = |separator: char| {
        let after = text[hour_end..].strip_prefix(separator)?;
        let minute: u32 = after.get(..2)?.parse().ok().filter(|minute| *minute < 60)?;
        (digits(after) == 2).then_some((minute, hour_end + 3))
    };
    let (minute, end, is_sure) = match (minutes(':'), minutes('.')) {
        (Some((minute, end)), _) => (minute, end, true),
        (None, Some((minute, end))) => (minute, end, false),
        (None, None) => (0, hour_end, false),
    };
    let seconds = |after: &&str| digits(after) == 2;
    let end_of_minute = end;
    let whole = text[end..].strip_prefix(':').filter(|_| is_sure).filter(seconds).map_or(end, |_| end + 3);
    let fraction = text[whole..].strip_prefix('.').filter(|_| whole > end).map_or(0, digits);
    let end = if fraction > 0 { whole + 1 + fraction } else { whole };
    let is_digit = |after: &str| after.starts_with(|char: char| char.is_ascii_digit());
    let goes_on = text[end..].strip_prefix([':', '.']).is_some_and(is_digit);
    let after = text[end..].trim_start_matches([' ', '\u{a0}', '\u{202f}']);
    let half = ["am", "a.m.", "pm", "p.m."].into_iter().find(|half| {
        let written = after.get(..half.len()).filter(|written| written.eq_ignore_ascii_case(half));
        let rest = written.map(|written| &after[written.len()..]);
        rest.is_some_and(|rest| {
            // In German, "am" goes on with a noun.
            let is_am = *half == "am" && rest.trim_start().starts_with(char::is_uppercase);
            !(rest.starts_with(char::is_alphanumeric) || is_am && end == hour_end)
        })
    });
    let half = half.filter(|_| (1..=12).contains(&hour));
    let end_of = |word: &str| text.len() - after.len() + word.len();
    let is_clock = after.starts_with("Uhr") || after.starts_with("o'clock") || is_start_of_hours(after);
    if goes_on || !is_sure && half.is_none() && !is_clock {
        return None;
    }
    let time = hour * 60 + minute;
    let readings = match half {
        Some(half) => {
            let is_afternoon = half.starts_with(['p', 'P']);
            [Some(time % HALF_DAY + if is_afternoon { HALF_DAY } else { 0 }), None]
        }
        None if (1..=12).contains(&hour) && text[start..hour_end].len() == 1 => {
            [Some(time), Some(time + HALF_DAY)]
        }
        None => [Some(time), None],
    };
    let seconds = if whole > end_of_minute { text[end_of_minute + 1..whole].parse().ok() } else { None };
    Some(Written { seconds, range: start..half.map_or(end, end_of), readings })
}
