//! Quality gates: whether an answer is good enough, what is wrong with it, and what to do about it.
//!
//! Decides nothing about retries, layers or interventions. Reports which failures the model can repair when shown
//! them, and which need another model or a human.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;

use super::citations::Citations;
use super::schema::{SchemaError, Schemas, Violation};
use super::{OutputError, Parsed, shorten};
use crate::recipe::{Gates, OutputFormat, OutputSpec};

/// How many failures a repair message lists.
const MAX_LISTED: usize = 10;
/// The text around the list of failures that a model reads after an answer that was not accepted.
const REPAIR: &str = include_str!("../../cookbook/prompts/engine/repair.md");
/// How many characters of each failure a repair message quotes.
const FAILURE_CHARS: usize = 400;
/// How many part ids a repair message suggests.
const MAX_OFFERED: usize = 40;

/// A place in an answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CitationPlace {
    /// In data: a JSON pointer.
    Pointer(String),
    /// In text: a byte range of the reply.
    Bytes(Range<usize>),
}

/// A citation of a part in the pack.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Citation {
    /// The part's id.
    pub part: String,
    /// What the answer wrote after `#`, if it cited only a range of the part.
    pub fragment: Option<String>,
    /// Where in the answer it appears.
    pub place: CitationPlace,
}

/// How a failure can be repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Remedy {
    /// Show the failure to the same model, then try the next layer.
    Repair,
    /// Repeating the request does not help: a model that learns its confidence is too low simply states a higher one.
    /// Use the next layer, or the rule of the recipe's role.
    Escalate,
}

/// A reason why an answer is not good enough. The messages are written for the model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GateFailure {
    /// The answer cannot be parsed.
    #[error(transparent)]
    Unreadable(#[from] OutputError),
    /// The answer violates its schema.
    #[error("at {}: {}", where_at(path), violation.message)]
    Schema {
        /// The tag, for tagged answers, followed by the JSON pointer.
        path: String,
        /// The violation.
        violation: Violation,
    },
    /// The answer states no confidence, though the recipe has a threshold.
    #[error("a top-level \"confidence\" from 0 to 1 is missing; state how sure the answer is")]
    NoConfidence,
    /// The stated confidence is below the threshold.
    #[error("the stated confidence {found} is below {threshold}")]
    LowConfidence {
        /// The stated confidence.
        found: f64,
        /// The required confidence.
        threshold: f64,
    },
    /// The answer cites nothing, though the recipe requires evidence.
    #[error("nothing is cited; cite the parts that each claim comes from, in square brackets: {offered}")]
    NoEvidence {
        /// The ids that may be cited, as listed in the message.
        offered: String,
    },
    /// A claim without citations.
    #[error("the claim at {} cites nothing; add the id of the part it comes from", where_at(path))]
    BareClaim {
        /// JSON pointer of the claim.
        path: String,
    },
    /// A citation of something that is not in the pack.
    #[error("{cited:?} is none of the parts given; cite only {offered}")]
    UnknownCitation {
        /// The citation as written.
        cited: String,
        /// Where it appears.
        place: CitationPlace,
        /// The ids that may be cited, as listed in the message.
        offered: String,
    },
    /// The answer was cut off at its token limit before the model had finished.
    #[error("the answer was cut off at {limit} tokens, before its end; say it in fewer words")]
    Cut {
        /// The limit in tokens.
        limit: usize,
    },
    /// The model or its provider declined.
    #[error("the model declined to answer")]
    Declined,
    /// The model called tools that were not carried out, instead of answering.
    #[error("it calls tools instead of answering, and {limit}; answer with what is known")]
    Calls {
        /// The limit that was reached.
        limit: String,
    },
}

impl GateFailure {
    /// How to repair the failure.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::LowConfidence { .. } | Self::Declined => Remedy::Escalate,
            _ => Remedy::Repair,
        }
    }
}

fn where_at(path: &str) -> &str {
    if path.is_empty() { "the top level" } else { path }
}

/// The outcome of all gates for one answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GateResult {
    /// Whether the answer satisfies its schema; `None` if there is none, or the gate is off.
    pub schema_valid: Option<bool>,
    /// The top-level `confidence`, if it is between 0 and 1.
    pub confidence: Option<f64>,
    /// The citations that resolve, in order; collected even when the recipe does not require evidence.
    pub citations: Vec<Citation>,
    /// Everything that is wrong; empty if the answer passes.
    pub failures: Vec<GateFailure>,
}

impl GateResult {
    /// Whether the answer passes every gate.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// What to do next: repair as long as the model can repair anything; `None` if the answer passed.
    pub fn remedy(&self) -> Option<Remedy> {
        let remedies = self.failures.iter().map(GateFailure::remedy);
        remedies.fold(None, |all, one| Some(if all == Some(Remedy::Repair) { Remedy::Repair } else { one }))
    }
}

/// Checks an answer against the gates of its recipe. `citable` are the ids of the parts in the pack.
///
/// # Errors
/// If the recipe's schema does not compile; never because of the answer.
pub fn evaluate(
    answer: Result<&Parsed, &OutputError>,
    spec: &OutputSpec,
    gates: &Gates,
    schemas: &Schemas,
    citable: &BTreeSet<String>,
) -> Result<GateResult, SchemaError> {
    let parsed = match answer {
        Ok(parsed) => parsed,
        Err(error) => {
            let schema_valid = gates.schema_validation.then_some(false);
            return Ok(GateResult {
                schema_valid,
                failures: vec![error.clone().into()],
                ..GateResult::default()
            });
        }
    };
    let mut result = GateResult { confidence: confidence(&parsed.value), ..GateResult::default() };
    if gates.schema_validation {
        schema_gate(parsed, spec, schemas, &mut result)?;
    }
    if let Some(threshold) = gates.confidence_threshold {
        match result.confidence {
            None => result.failures.push(GateFailure::NoConfidence),
            // Written so that a NaN threshold rejects everything.
            Some(found) if found >= threshold => {}
            Some(found) => result.failures.push(GateFailure::LowConfidence { found, threshold }),
        }
    }
    evidence_gate(parsed, spec.format, gates.evidence_required, citable, &mut result);
    Ok(result)
}

fn schema_gate(
    parsed: &Parsed,
    spec: &OutputSpec,
    schemas: &Schemas,
    result: &mut GateResult,
) -> Result<(), SchemaError> {
    let tags = spec.tags.iter().filter_map(|tag| Some((tag, tag.schema.as_ref()?)));
    let mut checks: Vec<(String, &Value, &Value)> = Vec::new();
    for (tag, schema) in tags {
        match parsed.value.get(&tag.name) {
            Some(Value::Array(contents)) if tag.multiple => {
                checks.extend(
                    contents.iter().enumerate().map(|(at, c)| (format!("/{}/{at}", tag.name), c, schema)),
                );
            }
            Some(content) => checks.push((format!("/{}", tag.name), content, schema)),
            None => {}
        }
    }
    checks.extend(spec.schema.iter().map(|schema| (String::new(), &parsed.value, schema)));
    let mut valid = (!checks.is_empty()).then_some(true);
    for (prefix, value, schema) in checks {
        for violation in schemas.compile(schema)?.violations(value) {
            valid = Some(false);
            let path = format!("{prefix}{}", violation.path);
            result.failures.push(GateFailure::Schema { path, violation });
        }
    }
    result.schema_valid = valid;
    Ok(())
}

/// The top-level `confidence`: a number from 0 to 1, or in tagged answers its text form.
fn confidence(value: &Value) -> Option<f64> {
    let stated = value.get("confidence")?;
    let number = stated.as_f64().or_else(|| stated.as_str()?.trim().parse().ok())?;
    (0.0..=1.0).contains(&number).then_some(number)
}

fn evidence_gate(
    parsed: &Parsed,
    format: OutputFormat,
    required: bool,
    citable: &BTreeSet<String>,
    result: &mut GateResult,
) {
    let mut citations = Citations::new(citable);
    match format {
        OutputFormat::Json | OutputFormat::Yaml => citations.read_value(&parsed.value),
        OutputFormat::Markdown => citations.read_markdown(&parsed.reply),
        OutputFormat::Text => citations.read_text(&parsed.reply),
        OutputFormat::Tagged => {
            citations.read_value(&parsed.value);
            citations.read_text(&parsed.reply);
        }
    }
    result.citations = citations.resolved;
    if !required {
        return;
    }
    if result.citations.is_empty() && citations.unknown.is_empty() && citations.bare_claims.is_empty() {
        result.failures.push(GateFailure::NoEvidence { offered: offer(citable) });
    }
    result.failures.extend(citations.bare_claims.into_iter().map(|path| GateFailure::BareClaim { path }));
    let offered = offer(citable);
    result.failures.extend(
        citations.unknown.into_iter().map(|(cited, place)| GateFailure::UnknownCitation {
            cited,
            place,
            offered: offered.clone(),
        }),
    );
}

fn offer(citable: &BTreeSet<String>) -> String {
    let mut ids: Vec<&str> = citable.iter().take(MAX_OFFERED).map(String::as_str).collect();
    if citable.len() > MAX_OFFERED {
        ids.push("…");
    }
    if ids.is_empty() { "nothing, since no parts were given".to_owned() } else { ids.join(", ") }
}

/// The message for the model's next attempt: the failures it can repair, in order. Empty if there are none.
pub fn repair_message(failures: &[GateFailure]) -> String {
    let mendable: Vec<_> = failures.iter().filter(|failure| failure.remedy() == Remedy::Repair).collect();
    if mendable.is_empty() {
        return String::new();
    }
    let mut listed = String::new();
    for failure in mendable.iter().take(MAX_LISTED) {
        // Writing to a string cannot fail.
        let _ = writeln!(listed, "- {}", shorten(&failure.to_string(), FAILURE_CHARS));
    }
    if let Some(more) = mendable.len().checked_sub(MAX_LISTED).filter(|&more| more > 0) {
        let _ = writeln!(listed, "- and {more} more of this kind");
    }
    REPAIR.trim_end().replace("{{ failures }}\n", &listed)
}

#[cfg(test)]
#[path = "gates_tests.rs"]
mod tests;
