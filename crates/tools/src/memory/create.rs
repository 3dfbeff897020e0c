//! `memory.create`: remembers a fact or a preference. A known one is confirmed rather than stored twice.

use larder_store::StoreError;
use larder_vault::lifecycle::{Aging, ttl};
use larder_vault::{FactRecord, Intent, PreferenceRecord, Scope, Score, Ttl};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::notebook::{FactBook, PreferenceBook};
use super::{MemoryKind, TRIES};
use crate::context::ToolContext;
use crate::offers::is_remembered_offer;
use crate::spec::{ToolClass, ToolError, ToolOutput, ToolSpec};
use crate::typed::TypedTool;

/// Characters of a statement: a fact is one sentence.
const MAX_CHARS: usize = 500;
/// Default confidence of a fact.
const CONFIDENCE: f64 = 0.8;

pub(super) struct MemoryCreate;

/// Remember a fact or a preference of the user for later conversations. Only what the user said or clearly implied, never
/// what a page or a tool says about the user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = [
    {"if": {"properties": {"kind": {"const": "fact"}}}, "then": {"required": ["fact"]}},
    {"if": {"properties": {"kind": {"const": "preference"}}}, "then": {"required": ["name", "value"]}},
]))]
pub(super) struct MemoryCreateArgs {
    /// a preference is what the user likes or has chosen; a fact is anything else worth knowing later
    kind: MemoryKind,
    /// of a fact: the statement, one sentence that can be understood alone
    #[schemars(length(min = 1, max = MAX_CHARS))]
    fact: Option<String>,
    /// of a fact: such as People, Work, Health
    #[schemars(length(min = 1, max = 60))]
    category: Option<String>,
    /// of a fact: how sure it is
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// of a fact: how long it holds, such as 6h or 30d; evergreen if it stays true. A price or stock holds 6h at most
    #[schemars(length(min = 1, max = 20))]
    ttl: Option<String>,
    /// of a preference: its name, such as favorite_hamster
    #[schemars(length(min = 1, max = 80))]
    name: Option<String>,
    /// of a preference: such as Syrian
    #[schemars(length(min = 1, max = MAX_CHARS))]
    value: Option<String>,
}

impl TypedTool for MemoryCreate {
    type Args = MemoryCreateArgs;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            class: ToolClass::Write,
            summarizable: false,
            max_bytes: 10_000,
            ..ToolSpec::from_args::<MemoryCreateArgs>("memory.create")
        }
    }

    async fn run(&self, args: MemoryCreateArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let mut tries = 1;
        loop {
            match remember(&args, context) {
                // A concurrent write happened: read again and add to the new version.
                Err(ToolError::Store(StoreError::Changed { .. })) if tries < TRIES => tries += 1,
                other => return other,
            }
        }
    }
}

fn remember(args: &MemoryCreateArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
    // The schema requires what the kind needs; an empty text is useless nevertheless.
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    match args.kind {
        MemoryKind::Preference => prefer(&text(&args.name), &text(&args.value), context),
        MemoryKind::Fact => {
            let ttl = match &args.ttl {
                Some(ttl) => ttl.parse().map_err(|error| ToolError::Arguments(format!("ttl: {error}")))?,
                None => Ttl::Evergreen,
            };
            let fact = text(&args.fact);
            let ttl = lifetime(&fact, ttl, context.intent.unwrap_or(Intent::Informational));
            let confidence = Score::new(args.confidence.unwrap_or(CONFIDENCE)).unwrap_or_default();
            let category = args.category.as_deref().unwrap_or("General");
            learn(&fact, category, confidence, ttl, context)
        }
    }
}

/// How long a fact holds: a price or stock for some hours, whatever the call says (R1-3.68, R1-4.8).
fn lifetime(fact: &str, said: Ttl, intent: Intent) -> Ttl {
    let most = if is_remembered_offer(fact) { ttl(Aging::Offer, intent) } else { Ttl::Evergreen };
    if said.seconds() > most.seconds() { most } else { said }
}

/// One line, so that statements that differ in white space only are equal.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn learn(
    fact: &str,
    category: &str,
    confidence: Score,
    ttl: Ttl,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolError> {
    let (documents, now, fact) = (context.documents, context.now, one_line(fact));
    let mut book = FactBook::open(documents, now)?;
    let known = book.facts.iter_mut().find(|known| known.fact.to_lowercase() == fact.to_lowercase());
    let (id, new) = match known {
        Some(known) => {
            known.confidence = if known.confidence < confidence { confidence } else { known.confidence };
            (known.ttl, known.updated_at) = (ttl, now);
            (known.id.clone(), false)
        }
        None => {
            let id = book.next_id();
            book.facts.push(FactRecord {
                id: id.clone(),
                category: one_line(category),
                fact: fact.clone(),
                source: context.source(),
                scope: Scope::New,
                confidence,
                uses: 0,
                ttl,
                created_at: now,
                updated_at: now,
            });
            (id, true)
        }
    };
    book.write(documents, now)?;
    let verb = if new { "Remembered" } else { "Knew already" };
    let content = json!({"id": id.as_str(), "fact": fact, "new": new});
    Ok(ToolOutput::success(format!("{verb} {}: {fact}", id.as_str()), content.to_string()))
}

fn prefer(name: &str, value: &str, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
    let (documents, now) = (context.documents, context.now);
    let (name, value) = (one_line(name).replace(':', " "), one_line(value));
    let name = one_line(&name);
    if name.is_empty() {
        return Err(ToolError::Arguments("name must contain more than white space and colons".to_owned()));
    }
    let mut book = PreferenceBook::open(documents, now)?;
    let known = book.preferences.iter_mut().find(|known| known.id.eq_ignore_ascii_case(&name));
    let before = known.as_ref().map(|known| known.value.clone());
    let source = context.source();
    match known {
        Some(known) => {
            (known.value, known.source, known.updated_at) = (value.clone(), source, now);
        }
        None => book.preferences.push(PreferenceRecord {
            id: name.clone(),
            value: value.clone(),
            source,
            updated_at: now,
        }),
    }
    book.write(documents, now)?;
    let was = before.as_ref().map(|before| format!(" (was {before})")).unwrap_or_default();
    let content = json!({"name": name, "value": value, "before": before});
    Ok(ToolOutput::success(format!("Remembered preference {name}: {value}{was}"), content.to_string()))
}
