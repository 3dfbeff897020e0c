//! `memory.query`: what is remembered about the user, by relevance to the question and then by age (C102).

use larder_condense::ContentType;
use larder_condense::rank::RankIndex;
use larder_vault::DocumentTime;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::MemoryKind;
use super::notebook::{FactBook, PreferenceBook};
use crate::context::ToolContext;
use crate::spec::{ToolError, ToolOutput, ToolSpec};
use crate::typed::TypedTool;

/// Default and maximum number of records shown (R4-6.6).
const SHOWN: usize = 5;
const MAX_SHOWN: u64 = 100;

pub(super) struct MemoryQuery;

/// Look up what is remembered of the user: facts and preferences, best match first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryQueryArgs {
    /// what it is about; by default everything, newest first
    #[schemars(length(min = 1, max = 1_000))]
    query: Option<String>,
    /// only facts or only preferences; both by default
    kind: Option<MemoryKind>,
    /// how many to show; 5 by default
    #[schemars(range(min = 1, max = MAX_SHOWN))]
    limit: Option<usize>,
}

/// A fact or a preference, with the words it is found by.
struct MemoryRecord {
    words: String,
    at: Option<DocumentTime>,
    value: Value,
}

impl TypedTool for MemoryQuery {
    type Args = MemoryQueryArgs;

    fn spec(&self) -> ToolSpec {
        ToolSpec { max_bytes: 200_000, ..ToolSpec::from_args::<MemoryQueryArgs>("memory.query") }
    }

    async fn run(&self, args: MemoryQueryArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let wanted = |kind| args.kind.is_none_or(|only| only == kind);
        let mut records = Vec::new();
        if wanted(MemoryKind::Fact) {
            records.extend(facts(context)?);
        }
        if wanted(MemoryKind::Preference) {
            records.extend(preferences(context)?);
        }
        Ok(answer(records, args.query.as_deref(), args.limit.unwrap_or(SHOWN)))
    }
}

fn facts(context: &ToolContext<'_>) -> Result<Vec<MemoryRecord>, ToolError> {
    let book = FactBook::open(context.documents, context.now)?;
    let record = |fact: larder_vault::FactRecord| MemoryRecord {
        words: format!("{} {}", fact.category, fact.fact),
        at: Some(fact.updated_at),
        value: json!({
            "kind": "fact", "id": fact.id.as_str(), "fact": fact.fact, "category": fact.category,
            "confidence": fact.confidence, "updated_at": fact.updated_at, "source": fact.source,
            "expired": fact.ttl.end(fact.updated_at).is_some_and(|end| end <= context.now),
        }),
    };
    let note =
        |note: String| MemoryRecord { value: json!({"kind": "fact", "fact": note}), words: note, at: None };
    Ok(book.facts.into_iter().map(record).chain(book.notes.into_iter().map(note)).collect())
}

fn preferences(context: &ToolContext<'_>) -> Result<Vec<MemoryRecord>, ToolError> {
    let book = PreferenceBook::open(context.documents, context.now)?;
    let record = |preference: larder_vault::PreferenceRecord| MemoryRecord {
        words: format!("{} {}", preference.id.replace(['_', '-'], " "), preference.value),
        at: Some(preference.updated_at),
        value: json!({
            "kind": "preference", "name": preference.id, "value": preference.value,
            "updated_at": preference.updated_at, "source": preference.source,
        }),
    };
    Ok(book.preferences.into_iter().map(record).collect())
}

fn answer(mut records: Vec<MemoryRecord>, query: Option<&str>, limit: usize) -> ToolOutput {
    let all = records.len();
    // Newest first, so that records of equal relevance are ordered by age.
    records.sort_by_key(|record| std::cmp::Reverse(record.at));
    let order: Vec<usize> = match query {
        None => (0..all).collect(),
        Some(query) => {
            let mut index = RankIndex::for_query(query);
            for record in &records {
                index.start_document();
                index.add(&record.words);
            }
            index.search(query, 0).into_iter().map(|hit| hit.passage).collect()
        }
    };
    let found = order.len();
    let shown: Vec<&Value> =
        order.iter().take(limit).filter_map(|at| records.get(*at)).map(|record| &record.value).collect();
    let summary = match (shown.len(), query) {
        (0, Some(_)) => format!("Nothing remembered matches; {all} records in all"),
        (0, None) => "Nothing is remembered yet".to_owned(),
        (shown, _) => format!("{shown} of {found} matching records, {all} in all"),
    };
    let content = serde_json::to_string_pretty(&shown).unwrap_or_default();
    ToolOutput::success(summary, content).typed(ContentType::Json)
}
