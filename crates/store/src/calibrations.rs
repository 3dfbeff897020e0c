//! How far token estimates for a model are off, learned from what its provider reports. Every version of a factor is
//! kept, and a session keeps the version it started with: correcting an estimate must not change a prefix that has
//! already been decided. Knows nothing of how tokens are estimated.

use rusqlite::{OptionalExtension, Row, Transaction};
use serde::{Deserialize, Serialize};

use crate::pointers::to_sql;
use crate::store::UserStore;
use crate::user;
use larder_disk::StoreError;
use larder_disk::Timestamp;

/// The factor 1, in parts per million.
const ONE_PPM: u64 = 1_000_000;
/// Reports outside these factors of the estimate are ignored: they count something other than this prompt.
const PLAUSIBLE_PPM: std::ops::RangeInclusive<u64> = ONE_PPM / 16..=4 * ONE_PPM;
/// Reports needed before the first factor is computed.
const MIN_SAMPLES: u64 = 8;
/// Change of the factor, in percent, above which a new version is created.
const STEP_PERCENT: u64 = 5;
/// After this many reports, older ones count half, so that a provider's new tokenizer takes effect.
const HALVED_EVERY: u64 = 128;

/// The factor between estimated and reported tokens of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// The model.
    pub model: String,
    /// From 1; 0 if no factor has been learned yet.
    pub version: u32,
    /// Reported per estimated tokens, in parts per million.
    pub factor_ppm: u64,
    /// Number of reports behind the factor.
    pub samples: u64,
    /// When the version was created.
    pub created: Timestamp,
}

impl Calibration {
    /// The estimate, corrected and rounded up.
    pub fn apply(&self, estimated: u64) -> u64 {
        let exact = (u128::from(estimated) * u128::from(self.factor_ppm)).div_ceil(u128::from(ONE_PPM));
        u64::try_from(exact).unwrap_or(u64::MAX)
    }
}

const COLUMNS: &str = "model, version, factor_ppm, samples, created";

/// The calibrations of token estimates of one user; from [`UserStore::calibrations`].
#[derive(Debug, Clone, Copy)]
pub struct Calibrations<'s> {
    pub(crate) store: &'s UserStore,
}

impl Calibrations<'_> {
    /// Learns from one prompt: the uncorrected estimate and the tokens that the provider reported. Returns the new version
    /// if this moved the factor far enough for one.
    pub fn observe(
        &self,
        model: &str,
        estimated: u64,
        reported: u64,
    ) -> Result<Option<Calibration>, StoreError> {
        if !ratio_ppm(reported, estimated).is_some_and(|ratio| PLAUSIBLE_PPM.contains(&ratio)) {
            return Ok(None);
        }
        let now = self.store.now();
        self.store.write_unsynced(|tx| {
            let (mut sums, samples) = self.add_usage(tx, model, estimated, reported)?;
            let newest = self.newest(tx, model)?;
            let factor = ratio_ppm(sums.1, sums.0).unwrap_or(ONE_PPM);
            if samples.is_multiple_of(HALVED_EVERY) {
                sums = (sums.0 / 2, sums.1 / 2);
            }
            tx.prepare_cached(
                "INSERT INTO usage_sums (user, model, estimated, reported, samples) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (user, model) DO UPDATE SET estimated = excluded.estimated,
                     reported = excluded.reported, samples = excluded.samples",
            )?
            .execute((self.store.user(), model, to_sql(sums.0), to_sql(sums.1), to_sql(samples)))?;
            let current = newest.as_ref().map_or(ONE_PPM, |newest| newest.factor_ppm);
            if samples < MIN_SAMPLES || factor.abs_diff(current) * 100 <= current * STEP_PERCENT {
                return Ok(None);
            }
            let version = newest.map_or(1, |newest| newest.version.saturating_add(1));
            let new = Calibration { model: model.to_owned(), version, factor_ppm: factor, samples, created: now };
            tx.execute(
                &format!("INSERT INTO calibrations (user, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
                (self.store.user(), model, version, to_sql(factor), to_sql(samples), to_sql(now.as_millis())),
            )?;
            Ok(Some(new))
        })
    }

    /// Estimated and reported tokens so far and the number of reports, this one included.
    fn add_usage(
        &self,
        tx: &Transaction<'_>,
        model: &str,
        estimated: u64,
        reported: u64,
    ) -> Result<((u64, u64), u64), StoreError> {
        let mut query = tx.prepare_cached(
            "SELECT estimated, reported, samples FROM usage_sums WHERE user = ?1 AND model = ?2",
        )?;
        let number = |row: &Row<'_>, at| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
        let sums = query
            .query_row((self.store.user(), model), |row| {
                Ok((number(row, 0)?, number(row, 1)?, number(row, 2)?))
            })
            .optional()?
            .unwrap_or_default();
        let sum = (sums.0.saturating_add(estimated), sums.1.saturating_add(reported));
        Ok((sum, sums.2.saturating_add(1)))
    }

    fn newest(&self, tx: &Transaction<'_>, model: &str) -> Result<Option<Calibration>, StoreError> {
        let mut query = tx.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM calibrations WHERE user = ?1 AND model = ?2 ORDER BY version DESC LIMIT 1"
        ))?;
        Ok(query.query_row((self.store.user(), model), read).optional()?)
    }

    /// The calibration of a session for a model: the newest one on the first call, and the same one in every process
    /// afterwards. Version 0 with a factor of 1 if there was none.
    pub fn for_session(&self, session: &str, model: &str) -> Result<Calibration, StoreError> {
        user::check_name("session id", session)?;
        if let Some(kept) = self.store.index().read(|tx| self.kept(tx, session, model))? {
            return Ok(kept);
        }
        self.store.write_unsynced(|tx| {
            let version = self.newest(tx, model)?.map_or(0, |newest| newest.version);
            tx.execute(
                "INSERT INTO session_calibrations (user, session, model, version) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
                (self.store.user(), session, model, version),
            )?;
            let kept = self.kept(tx, session, model)?;
            kept.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
        })
    }

    /// What [`for_session`](Self::for_session) would return now, without fixing it for the session.
    pub fn peek(&self, session: &str, model: &str) -> Result<Calibration, StoreError> {
        user::check_name("session id", session)?;
        self.store.index().read(|tx| {
            if let Some(kept) = self.kept(tx, session, model)? {
                return Ok(kept);
            }
            let none = || Calibration {
                model: model.to_owned(),
                version: 0,
                factor_ppm: ONE_PPM,
                samples: 0,
                created: Timestamp::from_millis(0),
            };
            Ok(self.newest(tx, model)?.unwrap_or_else(none))
        })
    }

    fn kept(
        &self,
        tx: &Transaction<'_>,
        session: &str,
        model: &str,
    ) -> Result<Option<Calibration>, StoreError> {
        // Version 0 has no row: it is the factor 1.
        let mut query = tx.prepare_cached(
            "SELECT kept.model, kept.version, coalesce(factor_ppm, 1000000), coalesce(samples, 0), coalesce(created, 0)
             FROM session_calibrations AS kept LEFT JOIN calibrations USING (user, model, version)
             WHERE kept.user = ?1 AND kept.session = ?2 AND kept.model = ?3",
        )?;
        Ok(query.query_row((self.store.user(), session, model), read).optional()?)
    }

    /// Every version of every model's factor, by model and version.
    pub fn list(&self) -> Result<Vec<Calibration>, StoreError> {
        self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM calibrations WHERE user = ?1 ORDER BY model, version"
            ))?;
            let rows = query.query_map([self.store.user()], read)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

/// `part` per `whole` in parts per million; `None` if either is zero.
fn ratio_ppm(part: u64, whole: u64) -> Option<u64> {
    let ratio = (u128::from(part) * u128::from(ONE_PPM)).checked_div(u128::from(whole))?;
    u64::try_from(ratio).ok().filter(|_| part > 0)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Calibration> {
    Ok(Calibration {
        model: row.get(0)?,
        version: row.get(1)?,
        factor_ppm: row.get::<_, i64>(2)?.unsigned_abs(),
        samples: row.get::<_, i64>(3)?.unsigned_abs(),
        created: Timestamp::from_millis(row.get::<_, i64>(4)?.unsigned_abs()),
    })
}
