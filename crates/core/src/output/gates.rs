//! Quality gates: whether an answer is good enough, what is wrong with it, and who can fix it.
//!
//! Decides nothing about retries, layers or interventions; it says which failures the model can repair when shown
//! them, and which need another model or a human (C66, C67).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;

use super::citations::Citations;
use super::schema::{SchemaError, Schemas, Violation};
use super::{OutputError, Parsed, shorten};
use crate::recipe::{Gates, OutputFormat, OutputSpec};

/// Failures that a repair message lists.
const MAX_LISTED: usize = 10;
/// Characters of one failure in a repair message.
const FAILURE_CHARS: usize = 400;
/// Part ids that a repair message offers.
const MAX_OFFERED: usize = 40;

/// A place in an answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CitationPlace {
    /// In data: a JSON pointer into the value.
    Pointer(String),
    /// In text: bytes of the reply.
    Bytes(Range<usize>),
}

/// A citation of a part that was in the pack.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Citation {
    /// The part's id.
    pub part: String,
    /// What the answer wrote after `#`, if it cited only a stretch of the part.
    pub fragment: Option<String>,
    /// Where the answer cites it.
    pub place: CitationPlace,
}

/// Who can repair a failure (C66, C67).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Remedy {
    /// The same model, shown the failure; then the next layer.
    Repair,
    /// Not by asking again: a model that learns that its confidence is too low only states a higher one. The next layer,
    /// or the rule of the recipe's role.
    Escalate,
}

/// One reason why an answer is not good enough. The messages are written for the model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GateFailure {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] OutputError),
    /// It breaks its schema.
    #[error("at {}: {}", where_at(path), violation.message)]
    Schema {
        /// The tag, for tagged answers, and the JSON pointer.
        path: String,
        /// What is broken.
        violation: Violation,
    },
    /// No confidence is stated, though the recipe has a threshold.
    #[error("a top-level \"confidence\" from 0 to 1 is missing; state how sure the answer is")]
    NoConfidence,
    /// The stated confidence is below the threshold.
    #[error("the stated confidence {found} is below {threshold}")]
    LowConfidence {
        /// As stated.
        found: f64,
        /// As required.
        threshold: f64,
    },
    /// Nothing is cited, though the recipe asks for evidence.
    #[error("nothing is cited; cite the parts that each claim comes from, by their ids")]
    NoEvidence,
    /// A claim cites nothing.
    #[error("the claim at {} cites nothing; add the id of the part it comes from", where_at(path))]
    BareClaim {
        /// JSON pointer of the claim.
        path: String,
    },
    /// A citation of what was not in the pack.
    #[error("{cited:?} is none of the parts given; cite only {offered}")]
    UnknownCitation {
        /// As the answer wrote it.
        cited: String,
        /// Where.
        place: CitationPlace,
        /// The ids that may be cited, as the message lists them.
        offered: String,
    },
    /// It ends where its room ended, not where the model was done.
    #[error("the answer was cut off at {limit} tokens, before its end; say it in fewer words")]
    Cut {
        /// Tokens that it could have.
        limit: usize,
    },
    /// The model or its provider declined.
    #[error("the model declined to answer")]
    Declined,
}

impl GateFailure {
    /// Who can repair it.
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

/// What the gates say of one answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GateResult {
    /// Whether it keeps to its schema; `None` when there is none, or the gate is off.
    pub schema_valid: Option<bool>,
    /// The top-level `confidence`, if the answer states one from 0 to 1.
    pub confidence: Option<f64>,
    /// The citations that resolve, in order; read also when the recipe does not ask for evidence.
    pub citations: Vec<Citation>,
    /// Everything that is wrong; none means that the answer passes.
    pub failures: Vec<GateFailure>,
}

impl GateResult {
    /// Whether the answer passes every gate.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// What to do next: repair as long as there is anything the model can repair; `None` when it passed.
    pub fn remedy(&self) -> Option<Remedy> {
        let remedies = self.failures.iter().map(GateFailure::remedy);
        remedies.fold(None, |all, one| Some(if all == Some(Remedy::Repair) { Remedy::Repair } else { one }))
    }
}

/// Holds an answer to the gates of its recipe. `citable` are the ids of the parts that were in the pack.
///
/// # Errors
/// A schema of the recipe that cannot be compiled; never anything about the answer.
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
            // Written so that a threshold of NaN lets nothing pass.
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

/// The top-level `confidence`: a number from 0 to 1, or in a tagged answer the same as text.
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
        result.failures.push(GateFailure::NoEvidence);
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

/// The message for the model when it tries again: what it can repair, in the order found. Empty when there is nothing.
pub fn repair_message(failures: &[GateFailure]) -> String {
    let mendable: Vec<_> = failures.iter().filter(|failure| failure.remedy() == Remedy::Repair).collect();
    if mendable.is_empty() {
        return String::new();
    }
    let mut message = "The last answer was not accepted:\n".to_owned();
    for failure in mendable.iter().take(MAX_LISTED) {
        // Writing to a string cannot fail.
        let _ = writeln!(message, "- {}", shorten(&failure.to_string(), FAILURE_CHARS));
    }
    if let Some(more) = mendable.len().checked_sub(MAX_LISTED).filter(|&more| more > 0) {
        let _ = writeln!(message, "- and {more} more of this kind");
    }
    message.push_str(
        "Give the whole answer again in the required form, with these points mended and nothing else.",
    );
    message
}

#[cfg(test)]
#[path = "gates_tests.rs"]
mod tests;
