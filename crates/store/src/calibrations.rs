//! How far token estimates for a model are off, learned from what its provider reports, of all users together: a factor
//! that moved far enough becomes a revision. Knows neither when that is nor how a revision names the factor.

use std::collections::BTreeMap;

use larder_text::tokens::EstimateReports;
use rusqlite::{OptionalExtension, Row};

use crate::pointers::to_sql;
use crate::revisions::{self, LearnedSettings};
use crate::store::Store;
use larder_disk::StoreError;

/// The factor 1, in parts per million.
const ONE_PPM: u64 = 1_000_000;
/// The most models and estimates about which anything is learned: clients choose the names of models.
const MAX_MODELS: u64 = 1_000;

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
    /// estimated ones to the factor that takes effect, and `used` finds the one that applies among all that is learned. Where
    /// reports exceed that by more than a twentieth, or need less than what was learned last, writes the revision that
    /// `revise` makes of it, and returns its number. A factor that was reverted is therefore not learned again at once.
    pub fn observe(
        &self,
        (model, estimate): (&str, &str),
        (estimated, reported): (u64, u64),
        correction: impl Fn(u64) -> u64,
        used: impl FnOnce(&LearnedSettings) -> u64,
        revise: impl FnOnce(u64) -> FactorRevision,
    ) -> Result<Option<u64>, StoreError> {
        if !EstimateReports::is_plausible(estimated, reported) {
            return Ok(None);
        }
        self.store.index().write_unsynced(|tx| {
            let known = tx
                .prepare_cached(
                    "SELECT estimated, reported, samples, highest, learned, used, wait, revision FROM usage_sums
                     WHERE model = ?1 AND estimate = ?2",
                )?
                .query_row([model, estimate], read)
                .optional()?;
            if known.is_none() {
                // Makes room by forgetting the least, of which nothing may have been learned.
                tx.prepare_cached(
                    "DELETE FROM usage_sums WHERE (model, estimate) IN (
                         SELECT model, estimate FROM usage_sums ORDER BY learned < ?1, samples LIMIT 1)
                     AND (SELECT count(*) FROM usage_sums) >= ?2",
                )?
                .execute([to_sql(ONE_PPM), to_sql(MAX_MODELS)])?;
            }
            let newest = revisions::newest(tx)?;
            let mut reports = match known {
                Some((reports, revision)) if revision == newest => reports,
                outdated => {
                    let used = used(&revisions::settings(tx, newest)?);
                    outdated.map_or(EstimateReports::new(used), |(known, _)| EstimateReports { used, ..known })
                }
            };
            let learned = reports.add(estimated, reported, correction);
            let revision = learned.map(|factor| {
                let (cause, changes) = revise(factor);
                revisions::append(tx, self.store.now(), &cause, changes)
            });
            let revision = revision.transpose()?;
            let EstimateReports { estimated, reported, samples, highest, learned, used, wait } = reports;
            let numbers = [estimated, reported, samples, highest, learned, used, wait, revision.unwrap_or(newest)];
            let [a, b, c, d, e, f, g, h] = numbers.map(to_sql);
            tx.prepare_cached("INSERT OR REPLACE INTO usage_sums VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?
                .execute((model, estimate, a, b, c, d, e, f, g, h))?;
            Ok(revision)
        })
    }
}

/// The reports, and the revision as of which they know what applies.
fn read(row: &Row<'_>) -> rusqlite::Result<(EstimateReports, u64)> {
    let number = |at| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
    let (estimated, reported, samples, highest) = (number(0)?, number(1)?, number(2)?, number(3)?);
    let (learned, used, wait) = (number(4)?, number(5)?, number(6)?);
    Ok((EstimateReports { estimated, reported, samples, highest, learned, used, wait }, number(7)?))
}
