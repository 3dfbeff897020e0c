//! What the turns of all users took by day and week, naming nobody (R1-13.8, R1-13.9), in `observability/`.

use std::collections::BTreeMap;

use larder_vault::layout::{DAILY, daily_figures, trends};
use larder_vault::{DayFigures, DocumentTime, TurnMetadata, TurnMetrics, VaultPath, read_json, write_json};
use serde::{Deserialize, Serialize};

use super::index::recent_turns;
use super::{Documents, UserDocuments};
use larder_disk::StoreError;

/// Weeks in the trends.
const WEEKS: usize = 12;
const DAY_MILLIS: i64 = 86_400_000;

/// Figures by week, each named by its Monday.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trends {
    /// The last twelve weeks that have turns, oldest first.
    pub weeks: BTreeMap<String, DayFigures>,
}

impl UserDocuments {
    /// Adds a committed turn to the figures of its day and week.
    ///
    /// # Errors
    /// The figures cannot be read or written.
    pub fn add_to_figures(&self, turn: &TurnMetadata, metrics: &TurnMetrics) -> Result<(), StoreError> {
        let all = &self.documents;
        let _one_process = self.leases().lock_figures()?;
        let day = day_of(turn.created_at);
        let mut figures = all.day(&daily_figures(&day))?;
        figures.add(turn, metrics);
        all.tree().write(&daily_figures(&day), write_json(&figures).as_bytes())?;
        let mut known = all.trends()?;
        known.weeks.entry(week_of(turn.created_at)).or_default().add(turn, metrics);
        all.write_trends(known)
    }
}

impl Documents {
    /// Sums all days and weeks anew from the turns themselves, which repairs what a crash left out.
    ///
    /// # Errors
    /// Turns cannot be read, or the figures not written.
    pub fn roll_up(&self) -> Result<(), StoreError> {
        let users = self.users()?;
        let Some(first) = users.first() else { return Ok(()) };
        let _one_process = first.leases().lock_figures()?;
        let (mut days, mut known) = (BTreeMap::<String, DayFigures>::new(), Trends::default());
        for user in &users {
            for row in user.index().read(|tx| recent_turns(tx, u64::MAX, None, None))? {
                let read = |name: &str| -> Result<Option<String>, StoreError> {
                    let Some(path) = row.context.join(name) else { return Ok(None) };
                    let bytes = self.tree().read(&path)?;
                    Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
                };
                let metadata = read("metadata.json")?.and_then(|text| read_json::<TurnMetadata>(&text).value);
                let metrics = read("metrics.json")?.and_then(|text| read_json::<TurnMetrics>(&text).value);
                let Some(metadata) = metadata else { continue };
                let metrics = metrics.unwrap_or_default();
                days.entry(day_of(metadata.created_at)).or_default().add(&metadata, &metrics);
                known.weeks.entry(week_of(metadata.created_at)).or_default().add(&metadata, &metrics);
            }
        }
        for (day, figures) in &days {
            self.tree().write(&daily_figures(day), write_json(figures).as_bytes())?;
        }
        self.write_trends(known)
    }

    /// The figures of every day that has some, oldest first; an error if they cannot be read.
    pub fn days(&self) -> Result<BTreeMap<String, DayFigures>, StoreError> {
        let mut days = BTreeMap::new();
        for path in self.tree().list(DAILY)? {
            if let Some(day) = path.name().strip_suffix(".json") {
                days.insert(day.to_owned(), self.day(&path)?);
            }
        }
        Ok(days)
    }

    /// The figures of the last weeks; an error if they cannot be read.
    pub fn trends(&self) -> Result<Trends, StoreError> {
        let bytes = self.tree().read(&trends())?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.and_then(|text| read_json(&text).value).unwrap_or_default())
    }

    fn day(&self, path: &VaultPath) -> Result<DayFigures, StoreError> {
        let bytes = self.tree().read(path)?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.and_then(|text| read_json(&text).value).unwrap_or_default())
    }

    fn write_trends(&self, mut known: Trends) -> Result<(), StoreError> {
        while known.weeks.len() > WEEKS {
            known.weeks.pop_first();
        }
        self.tree().write(&trends(), write_json(&known).as_bytes())
    }
}

/// `2026-01-05`.
fn day_of(at: DocumentTime) -> String {
    at.to_string().chars().take("2026-01-05".len()).collect()
}

/// The Monday of its week.
fn week_of(at: DocumentTime) -> String {
    let days = at.as_millis().div_euclid(DAY_MILLIS);
    // The first day of 1970 was a Thursday.
    let monday = days - (days + 3).rem_euclid(7);
    DocumentTime::from_millis(monday * DAY_MILLIS).map(day_of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_monday() {
        let week = |at: &str| week_of(at.parse().unwrap());
        for (at, monday) in [
            ("2026-01-05T00:00:00Z", "2026-01-05"),
            ("2026-01-11T23:59:59Z", "2026-01-05"),
            ("2026-01-04T12:00:00Z", "2025-12-29"),
            ("1969-12-31T00:00:00Z", "1969-12-29"),
        ] {
            assert_eq!(week(at), monday, "{at}");
        }
    }
}
