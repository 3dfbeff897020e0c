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
/// Reports needed before the first factor is computed.
const MIN_SAMPLES: u64 = 8;
/// Change of the factor, in percent, above which it is learned anew.
const STEP_PERCENT: u64 = 5;
/// After this many reports, older ones count half, so that a provider's new tokenizer takes effect.
const HALVED_EVERY: u64 = 128;
/// The most models about which anything is learned: clients choose their names.
const MAX_MODELS: u64 = 1_000;

/// Prompts of one model so far.
#[derive(Default)]
struct UsageSums {
    estimated: u64,
    reported: u64,
    samples: u64,
    /// The factor that was learned last, in parts per million.
    learned: u64,
}

/// What a factor is written as: the cause of the revision, and its changes.
pub type FactorRevision = (String, BTreeMap<String, Option<String>>);

/// The calibrations of token estimates; from [`Store::calibrations`].
#[derive(Debug, Clone, Copy)]
pub struct Calibrations<'s> {
    pub(crate) store: &'s Store,
}

impl Calibrations<'_> {
    /// Learns from one prompt: the uncorrected estimate and the tokens that the provider reported. If this moved the factor
    /// between them, in parts per million, by more than a twentieth from the one that was learned last, writes the revision
    /// that `revise` makes of it, and returns its number. A factor that was reverted is therefore not learned again at once.
    pub fn observe(
        &self,
        model: &str,
        estimated: u64,
        reported: u64,
        revise: impl FnOnce(u64) -> FactorRevision,
    ) -> Result<Option<u64>, StoreError> {
        if !ratio_ppm(reported, estimated).is_some_and(|ratio| PLAUSIBLE_PPM.contains(&ratio)) {
            return Ok(None);
        }
        self.store.index().write_unsynced(|tx| {
            let known = tx
                .prepare_cached(
                    "SELECT estimated, reported, samples, learned FROM usage_sums WHERE model = ?1",
                )?
                .query_row([model], read)
                .optional()?;
            if known.is_none() {
                let count = "SELECT count(*) FROM usage_sums";
                if tx.query_row(count, [], |row| row.get::<_, i64>(0))?.unsigned_abs() >= MAX_MODELS {
                    return Ok(None);
                }
            }
            let mut sums = known.unwrap_or(UsageSums { learned: ONE_PPM, ..UsageSums::default() });
            sums.estimated = sums.estimated.saturating_add(estimated);
            sums.reported = sums.reported.saturating_add(reported);
            sums.samples = sums.samples.saturating_add(1);
            let factor = ratio_ppm(sums.reported, sums.estimated).unwrap_or(ONE_PPM);
            let moved = factor.abs_diff(sums.learned) * 100 > sums.learned * STEP_PERCENT;
            let learns = moved && sums.samples >= MIN_SAMPLES;
            if learns {
                sums.learned = factor;
            }
            if sums.samples.is_multiple_of(HALVED_EVERY) {
                (sums.estimated, sums.reported) = (sums.estimated / 2, sums.reported / 2);
            }
            tx.prepare_cached(
                "INSERT OR REPLACE INTO usage_sums (model, estimated, reported, samples, learned)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute((
                model,
                to_sql(sums.estimated),
                to_sql(sums.reported),
                to_sql(sums.samples),
                to_sql(sums.learned),
            ))?;
            if !learns {
                return Ok(None);
            }
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
    Ok(UsageSums { estimated: number(0)?, reported: number(1)?, samples: number(2)?, learned: number(3)? })
}
