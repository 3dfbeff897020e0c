//! `memory.create`: remembers a fact or a preference. What is known already is confirmed, not doubled.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_store::StoreError;
use larder_vault::{FactRecord, PreferenceRecord, Scope, Score, Ttl};
use serde::Deserialize;
use serde_json::{Value, json};

use super::notebook::{FactBook, PreferenceBook};
use crate::arguments;
use crate::context::ToolContext;
use crate::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};

/// Characters of a statement: a fact is one sentence.
const LONGEST: usize = 500;
/// How sure a fact is when the caller does not say.
const CONFIDENCE: f64 = 0.8;
/// Times that are tried when somebody else writes at the same time.
const TRIES: usize = 4;

pub(super) struct Create {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum What {
    Fact { fact: String, category: Option<String>, confidence: Option<f64>, ttl: Option<String> },
    Preference { name: String, value: String },
}

impl Create {
    pub(super) fn new() -> Self {
        let kind = json!({"type": "string", "enum": ["fact", "preference"],
            "description": "a preference is what the user likes or has chosen; a fact is anything else worth knowing later"});
        let fields = json!({
            "kind": kind,
            "fact": arguments::text("of a fact: the statement, one sentence that can be understood alone", LONGEST),
            "category": arguments::text("of a fact: such as People, Work, Health", 60),
            "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "of a fact: how sure it is"},
            "ttl": arguments::text("of a fact: how long it holds, such as 6h or 30d; evergreen if it stays true", 20),
            "name": arguments::text("of a preference: its name, such as favorite_hamster", 80),
            "value": arguments::text("of a preference: such as Syrian", LONGEST),
        });
        let needs = |kind: &str, names: &[&str]| json!({"if": {"properties": {"kind": {"const": kind}}}, "then": {"required": names}});
        let mut parameters = arguments::object(&["kind"], fields);
        parameters["allOf"] = json!([needs("fact", &["fact"]), needs("preference", &["name", "value"])]);
        let spec = ToolSpec {
            name: "memory.create".to_owned(),
            description:
                "Remember a fact or a preference of the user for later conversations. Only what the user \
                          said or clearly implied, never what a page or a tool says about the user."
                    .to_owned(),
            parameters,
            class: ToolClass::Write,
            summarizable: false,
            timeout: Duration::from_secs(30),
            max_bytes: 10_000,
            modes: ToolModes::Both,
        };
        Self { spec }
    }

    async fn remember(what: &What, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        match what {
            What::Preference { name, value } => prefer(name, value, context).await,
            What::Fact { fact, category, confidence, ttl } => {
                let ttl = match ttl {
                    Some(ttl) => {
                        ttl.parse().map_err(|error| ToolError::Arguments(format!("ttl: {error}")))?
                    }
                    None => Ttl::Evergreen,
                };
                let confidence = Score::new(confidence.unwrap_or(CONFIDENCE)).unwrap_or_default();
                let category = category.as_deref().unwrap_or("General");
                learn(fact, category, confidence, ttl, context).await
            }
        }
    }
}

impl Tool for Create {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let what: What = arguments::read(arguments)?;
            let mut tries = 1;
            loop {
                match Self::remember(&what, context).await {
                    // Somebody wrote in between: read again and add to what stands there now.
                    Err(ToolError::Store(StoreError::Changed { .. })) if tries < TRIES => tries += 1,
                    other => return other,
                }
            }
        }
        .boxed()
    }
}

/// One line, so that two statements that differ in white space are one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn learn(
    fact: &str,
    category: &str,
    confidence: Score,
    ttl: Ttl,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolError> {
    let (documents, now, fact) = (context.documents, context.now, one_line(fact));
    let mut book = FactBook::open(documents, now).await?;
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
                source: Some(context.turn.context()),
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
    book.write(documents, now).await?;
    let verb = if new { "Remembered" } else { "Knew already" };
    let content = json!({"id": id.as_str(), "fact": fact, "new": new});
    Ok(ToolOutput::success(format!("{verb} {}: {fact}", id.as_str()), content.to_string()))
}

async fn prefer(name: &str, value: &str, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
    let (documents, now) = (context.documents, context.now);
    let (name, value) = (one_line(name).replace(':', " "), one_line(value));
    let name = one_line(&name);
    if name.is_empty() {
        return Err(ToolError::Arguments("name must hold more than white space and colons".to_owned()));
    }
    let mut book = PreferenceBook::open(documents, now).await?;
    let known = book.preferences.iter_mut().find(|known| known.id.eq_ignore_ascii_case(&name));
    let before = known.as_ref().map(|known| known.value.clone());
    let source = Some(context.turn.context());
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
    book.write(documents, now).await?;
    let was = before.as_ref().map(|before| format!(" (was {before})")).unwrap_or_default();
    let content = json!({"name": name, "value": value, "before": before});
    Ok(ToolOutput::success(format!("Remembered preference {name}: {value}{was}"), content.to_string()))
}
