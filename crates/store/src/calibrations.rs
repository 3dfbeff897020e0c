//! How far token estimates for a model are off, learned from what its provider reports, of all users together: a factor
//! that moved far enough becomes a revision. Knows neither how tokens are estimated nor how a revision names the factor.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row};

use crate::pointers::to_sql;
use crate::revisions;
use crate::store::Store;
use larder_disk::StoreError;

/// The factor 1, in parts per million.
const ONE_PPM: u64 = 1_000_000;
/// Reports outside these factors of the estimate are ignored: they count something other than this prompt.
const PLAUSIBLE_PPM: std::ops::RangeInclusive<u64> = ONE_PPM / 16..=4 * ONE_PPM;
/// Reports that are compared as one: a single prompt says little.
const BLOCK: u64 = 8;
/// Change of the factor, in percent, from which it is learned anew: the reserve that a correction leaves.
const STEP_PERCENT: u64 = 5;
/// How many times as many reports as the last time the next lower factor takes, so that traffic which changes to and fro
/// ends with the highest factor that it needs instead of with a revision for each change.
const LONGER: u64 = 4;
/// The most models and estimates about which anything is learned: clients choose the names of models.
const MAX_MODELS: u64 = 1_000;

/// What the reports of one model have shown about one estimate of its tokens so far. Factors are in parts per million.
struct UsageSums {
    /// Tokens in the current block of reports.
    estimated: u64,
    reported: u64,
    /// Reports since the learned factor was last confirmed or replaced.
    samples: u64,
    /// The highest factor of a block among them.
    highest: u64,
    learned: u64,
    /// So many reports have to agree on a lower factor.
    wait: u64,
}

impl Default for UsageSums {
    fn default() -> Self {
        Self { estimated: 0, reported: 0, samples: 0, highest: 0, learned: ONE_PPM, wait: BLOCK }
    }
}

impl UsageSums {
    /// Adds a report, and gives the factor that it makes necessary: a higher one as soon as a block of reports exceeds what
    /// is charged, since prompts could exceed the window; a lower one after a wait, which then grows.
    fn add(&mut self, estimated: u64, reported: u64, correction: impl Fn(u64) -> u64) -> Option<u64> {
        self.estimated = self.estimated.saturating_add(estimated);
        self.reported = self.reported.saturating_add(reported);
        self.samples = self.samples.saturating_add(1);
        if !self.samples.is_multiple_of(BLOCK) {
            return None;
        }
        let factor = correction(ratio_ppm(self.reported, self.estimated).unwrap_or(ONE_PPM));
        (self.estimated, self.reported) = (0, 0);
        self.highest = self.highest.max(factor);
        let is_raised = factor * 100 > self.learned * (100 + STEP_PERCENT);
        let is_due = self.samples >= self.wait;
        let is_lowered = is_due && self.highest * 100 < self.learned * (100 - STEP_PERCENT);
        if is_lowered {
            self.wait = self.wait.saturating_mul(LONGER);
        }
        let learned = (is_raised || is_lowered).then_some(self.highest);
        if is_raised || is_due {
            (self.samples, self.highest) = (0, 0);
        }
        self.learned = learned.unwrap_or(self.learned);
        learned
    }
}

/// What a factor is written as: the cause of the revision, and its changes.
pub type FactorRevision = (String, BTreeMap<String, Option<String>>);

/// The calibrations of token estimates; from [`Store::calibrations`].
#[derive(Debug, Clone, Copy)]
pub struct Calibrations<'s> {
    pub(crate) store: &'s Store,
}

impl Calibrations<'_> {
    /// Learns from one prompt: the uncorrected estimate and the tokens that the provider reported. What is known of a model
    /// belongs to the estimate of this name: a factor corrects no other. `correction` maps reported tokens per million
    /// estimated ones to the factor that takes effect. Where that has changed by more than a twentieth, writes the revision
    /// that `revise` makes of it, and returns its number. A factor that was reverted is not learned again at once: new ones
    /// are compared with the one that was learned last.
    pub fn observe(
        &self,
        (model, estimate): (&str, &str),
        estimated: u64,
        reported: u64,
        correction: impl Fn(u64) -> u64,
        revise: impl FnOnce(u64) -> FactorRevision,
    ) -> Result<Option<u64>, StoreError> {
        if !ratio_ppm(reported, estimated).is_some_and(|ratio| PLAUSIBLE_PPM.contains(&ratio)) {
            return Ok(None);
        }
        self.store.index().write_unsynced(|tx| {
            let known = tx
                .prepare_cached(
                    "SELECT estimated, reported, samples, highest, learned, wait FROM usage_sums
                     WHERE model = ?1 AND estimate = ?2",
                )?
                .query_row([model, estimate], read)
                .optional()?;
            if known.is_none() {
                let count = "SELECT count(*) FROM usage_sums";
                if tx.query_row(count, [], |row| row.get::<_, i64>(0))?.unsigned_abs() >= MAX_MODELS {
                    return Ok(None);
                }
            }
            let mut sums = known.unwrap_or_default();
            let learned = sums.add(estimated, reported, correction);
            tx.prepare_cached(
                "INSERT OR REPLACE INTO usage_sums
                 (model, estimate, estimated, reported, samples, highest, learned, wait)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute((
                model,
                estimate,
                to_sql(sums.estimated),
                to_sql(sums.reported),
                to_sql(sums.samples),
                to_sql(sums.highest),
                to_sql(sums.learned),
                to_sql(sums.wait),
            ))?;
            let Some(factor) = learned else { return Ok(None) };
            let (cause, changes) = revise(factor);
            revisions::append(tx, self.store.now(), &cause, changes).map(Some)
        })
    }
}

/// `part` per `whole` in parts per million; `None` if either is zero.
fn ratio_ppm(part: u64, whole: u64) -> Option<u64> {
    let ratio = (u128::from(part) * u128::from(ONE_PPM)).checked_div(u128::from(whole))?;
    u64::try_from(ratio).ok().filter(|_| part > 0)
}

fn read(row: &Row<'_>) -> rusqlite::Result<UsageSums> {
    let number = |at| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
    let (estimated, reported, samples) = (number(0)?, number(1)?, number(2)?);
    let (highest, learned, wait) = (number(3)?, number(4)?, number(5)?);
    Ok(UsageSums { estimated, reported, samples, highest, learned, wait })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As for an estimate of which at least 54 % are charged, and which a factor from 0.953 on does not change.
    fn correction(reported: u64) -> u64 {
        if reported > 952_000 { ONE_PPM } else { reported.max(541_667) }
    }

    /// A report of this many parts per million, more or less by up to a tenth.
    fn report(sums: &mut UsageSums, at: u64, ppm: u64) -> Option<u64> {
        let random = at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let estimated = [500, 2_000, 20_000][(random % 3) as usize];
        sums.add(estimated, estimated * ppm / 1_000 * (900 + random % 201) / ONE_PPM, correction)
    }

    #[test]
    fn two_teams_that_take_turns_lead_to_few_factors() {
        for (low, high) in [(650_000, 800_000), (550_000, 900_000)] {
            for burst in [1, 10, 50, 200, 1_000, 5_000, 20_000] {
                let mut sums = UsageSums::default();
                let ppm = |at: u64| if at / burst % 2 == 0 { low } else { high };
                let learned: Vec<u64> =
                    (0..100_000).filter_map(|at| report(&mut sums, at, ppm(at))).collect();
                assert!((1..=20).contains(&learned.len()), "{low} {high} {burst}: {learned:?}");
            }
        }
    }

    #[test]
    fn what_changes_for_good_is_followed_and_too_low_a_factor_at_once() {
        let mut sums = UsageSums::default();
        let mut reports =
            |count: u64, ppm: u64| (0..count).filter_map(|at| report(&mut sums, at, ppm)).collect::<Vec<_>>();
        assert!(!reports(1_000, 800_000).is_empty());
        let lower = reports(2_000, 600_000);
        assert!(lower.last().is_some_and(|factor| *factor < 680_000), "{lower:?}");
        let higher = reports(2 * BLOCK, 900_000);
        assert!(higher.last().is_some_and(|factor| *factor > 850_000), "{higher:?}");
    }

    #[test]
    fn what_has_no_effect_is_not_learned() {
        let mut sums = UsageSums::default();
        assert!((0..1_000).all(|at| report(&mut sums, at, 1_300_000).is_none()), "never above the estimate");
        let learned: Vec<u64> = (0..1_000).filter_map(|at| report(&mut sums, at, 283_000 + at)).collect();
        assert_eq!(learned, [541_667], "nor below the lowest factor");
    }
}
