//! `memory.query`: what is remembered of the user, by relevance to the question and then by age (C102).

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use larder_condense::rank::RankIndex;
use larder_vault::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::notebook::{FactBook, PreferenceBook};
use crate::arguments;
use crate::context::ToolContext;
use crate::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};

/// Facts that are shown when nobody says how many (R4-6.6).
const SHOWN: usize = 5;
/// Facts that are shown at most.
const MOST: u64 = 100;

pub(super) struct Query {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Arguments {
    query: Option<String>,
    kind: Option<String>,
    limit: Option<usize>,
}

impl Query {
    pub(super) fn new() -> Self {
        let kind = json!({"type": "string", "enum": ["fact", "preference"],
            "description": "only facts or only preferences; both if left out"});
        let fields = json!({
            "query": arguments::text("what it is about; everything, newest first, if left out", 1_000),
            "kind": kind,
            "limit": arguments::number("how many to show; 5 if left out", 1, MOST),
        });
        let spec = ToolSpec {
            name: "memory.query".to_owned(),
            description: "Look up what is remembered of the user: facts and preferences, best match first."
                .to_owned(),
            parameters: arguments::object(&[], fields),
            class: ToolClass::Read,
            summarizable: true,
            timeout: Duration::from_secs(30),
            max_bytes: 200_000,
            modes: ToolModes::Both,
        };
        Self { spec }
    }
}

/// Something remembered, with the words it is found by.
struct Entry {
    words: String,
    at: Option<Timestamp>,
    value: Value,
}

impl Tool for Query {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Arguments { query, kind, limit } = arguments::read(arguments)?;
            let wanted = |name: &str| kind.as_deref().is_none_or(|kind| kind == name);
            let mut entries = Vec::new();
            if wanted("fact") {
                entries.extend(facts(context).await?);
            }
            if wanted("preference") {
                entries.extend(preferences(context).await?);
            }
            Ok(answer(entries, query.as_deref(), limit.unwrap_or(SHOWN)))
        }
        .boxed()
    }
}

async fn facts(context: &ToolContext<'_>) -> Result<Vec<Entry>, ToolError> {
    let book = FactBook::open(context.documents, context.now).await?;
    let entry = |fact: larder_vault::FactRecord| Entry {
        words: format!("{} {}", fact.category, fact.fact),
        at: Some(fact.updated_at),
        value: json!({
            "kind": "fact", "id": fact.id.as_str(), "fact": fact.fact, "category": fact.category,
            "confidence": fact.confidence, "updated_at": fact.updated_at, "source": fact.source,
            "expired": fact.ttl.end(fact.updated_at).is_some_and(|end| end <= context.now),
        }),
    };
    let note = |note: String| Entry { value: json!({"kind": "fact", "fact": note}), words: note, at: None };
    Ok(book.facts.into_iter().map(entry).chain(book.notes.into_iter().map(note)).collect())
}

async fn preferences(context: &ToolContext<'_>) -> Result<Vec<Entry>, ToolError> {
    let book = PreferenceBook::open(context.documents, context.now).await?;
    let entry = |preference: larder_vault::PreferenceRecord| Entry {
        words: format!("{} {}", preference.id.replace(['_', '-'], " "), preference.value),
        at: Some(preference.updated_at),
        value: json!({
            "kind": "preference", "name": preference.id, "value": preference.value,
            "updated_at": preference.updated_at, "source": preference.source,
        }),
    };
    Ok(book.preferences.into_iter().map(entry).collect())
}

fn answer(mut entries: Vec<Entry>, query: Option<&str>, limit: usize) -> ToolOutput {
    let all = entries.len();
    // Newest first, so that equals in relevance stand by age.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    let order: Vec<usize> = match query {
        None => (0..all).collect(),
        Some(query) => {
            let mut index = RankIndex::for_query(query);
            for entry in &entries {
                index.start_document();
                index.add(&entry.words);
            }
            index.search(query, 0).into_iter().map(|hit| hit.passage).collect()
        }
    };
    let found = order.len();
    let shown: Vec<&Value> =
        order.iter().take(limit).filter_map(|at| entries.get(*at)).map(|entry| &entry.value).collect();
    let summary = match (shown.len(), query) {
        (0, Some(_)) => format!("Nothing remembered matches; {all} records in all"),
        (0, None) => "Nothing is remembered yet".to_owned(),
        (shown, _) => format!("{shown} of {found} matching records, {all} in all"),
    };
    let content = serde_json::to_string_pretty(&shown).unwrap_or_default();
    ToolOutput::success(summary, content).typed(ContentType::Json)
}
