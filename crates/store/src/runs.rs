//! Run records: one JSON record per recipe execution (R0-27), written whole with its receipt, or not at all.

use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use rusqlite::{OptionalExtension, Row, Transaction};
use serde::{Deserialize, Serialize, Serializer};

use crate::contents::NewContent;
use crate::pointers::to_sql;
use crate::retention::limit;
use crate::store::UserStore;
use larder_disk::StoreError;
use larder_disk::Timestamp;
use larder_disk::run_id::RunId;

/// Runs, newest first. The `+` keeps SQLite from sorting all of them by its time index, since it can stop at a limit.
pub(crate) const NEWEST: &str = "
    SELECT run_id, record FROM runs
    WHERE user = ?1 AND (?2 IS NULL OR recipe = ?2) AND +recorded >= ?3
    ORDER BY seq DESC LIMIT ?4";

/// Tokens of a run; serialized with `total`, their sum (R0-27.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct RunTokens {
    /// Of the prompt text itself.
    pub prompt: u64,
    /// Tokens of documents and sections.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
}

impl RunTokens {
    /// The sum of the three (R0-27.3).
    pub const fn total(&self) -> u64 {
        self.prompt.saturating_add(self.input).saturating_add(self.output)
    }
}

impl Serialize for RunTokens {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut tokens = serializer.serialize_struct("RunTokens", 4)?;
        tokens.serialize_field("prompt", &self.prompt)?;
        tokens.serialize_field("input", &self.input)?;
        tokens.serialize_field("output", &self.output)?;
        tokens.serialize_field("total", &self.total())?;
        tokens.end()
    }
}

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for RunTokens {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        let fields = [
            ("prompt", "Of the prompt text itself."),
            ("input", "Of the documents and sections put into it."),
            ("output", "Of the answer."),
            ("total", "Their sum."),
        ];
        let tokens = ObjectBuilder::new().description(Some("Tokens of a run, by their place."));
        let add = |tokens: ObjectBuilder, (name, words)| {
            let count = ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                .minimum(Some(0))
                .description(Some(words));
            tokens.property(name, count).required(name)
        };
        fields.into_iter().fold(tokens, add).into()
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for RunTokens {}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// With an answer that passed every check.
    Completed,
    /// Ended before any call, since the prompt could not be made to fit.
    Refused,
    /// With an error of the model or an answer that failed its checks.
    Failed,
    /// With a request for a human.
    Intervention,
}

/// What one model used in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelUsage {
    /// The model's name in the table.
    pub model: String,
    /// Its calls that were answered, or may have been charged.
    pub calls: u32,
    /// Prompt tokens of these calls.
    pub input_tokens: u64,
    /// Reply tokens of these calls.
    pub output_tokens: u64,
    /// Their price in US dollars; `None` if the model has no price.
    pub cost_usd: Option<f64>,
}

/// What is recorded of a run. Sizes, names and outcomes only: payloads stay in blobs (C104).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunFacts {
    /// The recipe's name.
    pub recipe: String,
    /// The version of the recipe.
    pub recipe_version: String,
    /// The layer that answered, such as `MIND`.
    pub model_layer: String,
    /// The model that answered.
    pub model: String,
    /// The conversation it belongs to.
    pub session_id: Option<String>,
    /// The turn it belongs to, in the form `turn_000042`.
    pub turn_id: Option<String>,
    /// The gateway request whose record also includes this run's cost.
    #[serde(default)]
    pub request_id: Option<String>,
    /// Tokens by their place.
    pub tokens: RunTokens,
    /// From the start to the end, in milliseconds.
    pub latency_ms: u64,
    /// Whether it returned an answer that passed every check.
    pub success: bool,
    /// Whether the answer satisfied its schema; `None` if there is no schema or no answer.
    pub schema_valid: Option<bool>,
    /// The confidence the answer states; `None` if it states none.
    pub confidence: Option<f64>,
    /// Calls after the first.
    pub retries: u32,
    /// Whether anything was condensed, replaced by a pointer or dropped.
    pub compression_applied: bool,
    /// Tokens saved by that.
    pub compression_savings: u64,
    /// The price of the calls in US dollars; `None` if no model that was asked has a price.
    pub cost_usd: Option<f64>,
    /// What each model used, in the order of their first calls; empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUsage>,
    /// How it ended.
    pub status: RunStatus,
    /// The class of the error, such as `timeout`; never its payload.
    pub error: Option<String>,
}

/// A run to be recorded.
#[derive(Debug, Clone)]
pub struct NewRun<'a> {
    /// From [`crate::Store::new_run_id`].
    pub run_id: RunId,
    /// What happened.
    pub facts: RunFacts,
    /// The receipt of the pack, as JSON.
    pub receipt: &'a [u8],
    /// The answer, byte for byte, if there was one.
    pub output: Option<&'a [u8]>,
    /// The pointers in the prompt; each must resolve.
    pub pointers: &'a [Pointer],
}

/// The record of one recipe execution (R0-27.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunRecord {
    /// Its id.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    /// When it was recorded.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub timestamp: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub facts: RunFacts,
    /// The address of the receipt.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub receipt: ContentHash,
    /// The address of the answer.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub output: Option<ContentHash>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only those of this recipe.
    pub recipe: Option<String>,
    /// Only those recorded at this moment or later.
    pub since: Option<Timestamp>,
    /// At most this many, the newest; `None` for all.
    pub limit: Option<u64>,
}

/// The run records of one user; from [`UserStore::runs`].
#[derive(Debug, Clone, Copy)]
pub struct Runs<'s> {
    pub(crate) store: &'s UserStore,
}

impl Runs<'_> {
    /// Records a run: the record with its receipt, answer and pointers, in one transaction; large
    /// contents are written first.
    ///
    /// After a crash there is either the complete record or none. Fails if the id exists, a pointer does not resolve, or the
    /// store is over its limit.
    pub fn record(&self, run: NewRun<'_>) -> Result<RunRecord, StoreError> {
        let contents: Vec<_> = std::iter::once(run.receipt).chain(run.output).collect();
        let record = RunRecord {
            run_id: run.run_id,
            timestamp: self.store.now(),
            facts: run.facts,
            receipt: ContentHash::new(run.receipt),
            output: run.output.map(ContentHash::new),
        };
        let json = serde_json::to_string(&record)
            .map_err(|source| StoreError::Record { what: format!("run {}", record.run_id), source })?;
        let insert = |tx: &Transaction<'_>, _: &_| self.insert(tx, &record, &json, run.pointers);
        // Before its contents are placed, some in files of their own.
        self.store.index().read(limit::require_room)?;
        self.store.contents().write_placed(&NewContent::plain(&contents), insert)?;
        tracing::debug!(run_id = %record.run_id, bytes = json.len(), "recorded a run");
        Ok(record)
    }

    fn insert(
        &self,
        tx: &Transaction<'_>,
        record: &RunRecord,
        json: &str,
        pointers: &[Pointer],
    ) -> Result<(), StoreError> {
        let id = record.run_id.as_str();
        for hash in [Some(record.receipt), record.output].into_iter().flatten() {
            self.store.contents().require(tx, hash)?;
        }
        let added = tx.execute(
            "INSERT INTO runs (user, run_id, recipe, recorded, record, receipt, output)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (user, run_id) DO NOTHING",
            (
                self.store.user(),
                id,
                &record.facts.recipe,
                to_sql(record.timestamp.as_millis()),
                json,
                record.receipt.as_bytes(),
                record.output.as_ref().map(ContentHash::as_bytes),
            ),
        )?;
        if added == 0 {
            return Err(StoreError::RunExists { id: id.to_owned() });
        }
        let mut link = tx.prepare_cached(
            "INSERT INTO run_pointers (user, run_id, pointer) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        )?;
        for pointer in pointers {
            self.store.pointers().require(tx, pointer)?;
            self.store.pointers().touch(tx, pointer.id.name(), record.timestamp)?;
            link.execute((self.store.user(), id, pointer.to_string()))?;
        }
        Ok(())
    }

    /// The record of one run.
    pub fn get(&self, id: &RunId) -> Result<RunRecord, StoreError> {
        let row = self.store.index().read(|tx| {
            let mut query =
                tx.prepare_cached("SELECT run_id, record FROM runs WHERE user = ?1 AND run_id = ?2")?;
            Ok(query.query_row((self.store.user(), id.as_str()), id_and_record).optional()?)
        })?;
        row.map_or_else(|| Err(StoreError::UnknownRun { id: id.to_string() }), parse)
    }

    /// The records of this user's runs, newest first.
    pub fn list(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        let rows: Vec<_> = self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(NEWEST)?;
            let since = filter.since.map_or(0, |since| to_sql(since.as_millis()));
            let limit = filter.limit.map_or(i64::MAX, to_sql);
            let rows = query.query_map((self.store.user(), &filter.recipe, since, limit), id_and_record)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        rows.into_iter().map(parse).collect()
    }

    /// The runs of a session that were recorded since a moment, oldest first.
    ///
    /// # Errors
    /// The store fails.
    pub fn of_session(&self, session: &str, since: Timestamp) -> Result<Vec<RunId>, StoreError> {
        let ids: Vec<String> = self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT run_id FROM runs WHERE user = ?1 AND recorded >= ?2 AND record ->> '$.session_id' = ?3 ORDER BY seq",
            )?;
            let values = (self.store.user(), to_sql(since.as_millis()), session);
            Ok(query.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?)
        })?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// The pointers in the prompt of a run, in the order of their text.
    pub fn pointers(&self, id: &RunId) -> Result<Vec<Pointer>, StoreError> {
        self.store.index().read(|tx| self.pointers_in(tx, id))
    }

    pub(crate) fn pointers_in(&self, tx: &Transaction<'_>, id: &RunId) -> Result<Vec<Pointer>, StoreError> {
        let mut query = tx.prepare_cached(
            "SELECT pointer FROM run_pointers WHERE user = ?1 AND run_id = ?2 ORDER BY pointer",
        )?;
        let rows = query.query_map((self.store.user(), id.as_str()), |row| row.get(0))?;
        let texts: Vec<String> = rows.collect::<Result<_, _>>()?;
        let parse = |text: String| {
            let what = || format!("pointer {text:?} of run {id}");
            text.parse()
                .map_err(|error| StoreError::Record { what: what(), source: serde::de::Error::custom(error) })
        };
        texts.into_iter().map(parse).collect()
    }
}

fn id_and_record(row: &Row<'_>) -> rusqlite::Result<(String, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn parse((id, json): (String, String)) -> Result<RunRecord, StoreError> {
    serde_json::from_str(&json).map_err(|source| StoreError::Record { what: format!("run {id}"), source })
}
