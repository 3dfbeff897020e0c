//! `memory.query`: what is remembered about the user, by relevance to the question and then by age (C102).

use larder_condense::ContentType;
use larder_retrieval::{MemoryEntry, MemoryKinds, RecalledMemory};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::MemoryKind;
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

impl TypedTool for MemoryQuery {
    type Args = MemoryQueryArgs;

    fn spec(&self) -> ToolSpec {
        ToolSpec { max_bytes: 200_000, ..ToolSpec::from_args::<MemoryQueryArgs>("memory.query") }
    }

    async fn run(&self, args: MemoryQueryArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let kinds = match args.kind {
            Some(MemoryKind::Fact) => MemoryKinds::Facts,
            Some(MemoryKind::Preference) => MemoryKinds::Preferences,
            None => MemoryKinds::All,
        };
        let limit = args.limit.unwrap_or(SHOWN);
        let RecalledMemory { entries, matching, considered } =
            context.retrieval().recall(args.query.as_deref(), kinds, limit).await?;
        let summary = match (entries.len(), &args.query) {
            (0, Some(_)) => "Nothing remembered matches".to_owned(),
            (0, None) => "Nothing is remembered yet".to_owned(),
            (shown, _) => format!("{shown} of {matching} matching records"),
        };
        let entries: Vec<Value> = entries.iter().map(record).collect();
        let content = serde_json::to_string_pretty(&entries).unwrap_or_default();
        let output = ToolOutput::success(summary, content).typed(ContentType::Json);
        Ok(ToolOutput { considered, ..output })
    }
}

/// An entry as the model reads it; what another user published says by whom.
fn record(entry: &MemoryEntry) -> Value {
    match entry {
        MemoryEntry::Fact(fact) => {
            let mut record = json!({
                "kind": "fact", "id": fact.id, "fact": fact.fact, "category": fact.category,
                "confidence": fact.confidence, "updated_at": fact.updated_at, "source": fact.source,
            });
            if let Some(by) = &fact.published {
                record["published_by"] = by.user.as_str().into();
                record["source"] = by.source.as_str().into();
            }
            record
        }
        MemoryEntry::Preference(known) => json!({
            "kind": "preference", "name": known.name, "value": known.value, "updated_at": known.updated_at,
            "turn": known.source_turn,
        }),
    }
}
