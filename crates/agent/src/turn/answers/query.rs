//! Phases 0 and 1: what the query refers to, and whether it is clear.

use std::collections::BTreeSet;

use larder_vault::context::{Reflection, ReflectionDecision};
use larder_vault::{BlockId, ContentReference, QueryAnalysis, ReferenceType, Score};
use serde::{Deserialize, Serialize};

use larder_engine::answer::{UnusableAnswer, stated};

use super::CONFIDENCE_THRESHOLD;

/// The question when reflection is unsure and has none of its own (C67).
const STANDARD_QUESTION: &str =
    "I am not sure what you mean. Could you say in other words what you would like?";

/// What `phase0_query_analyzer` answers (R1-5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryAnswer {
    /// The query with its references resolved; may be empty if it has none.
    pub resolved_query: String,
    /// Whether any reference had to be resolved.
    pub was_resolved: bool,
    /// The kind of its reference.
    pub query_type: ReferenceType,
    /// What the user wants.
    #[serde(default)]
    pub intent: String,
    /// What the query names.
    #[serde(default)]
    pub entities: Vec<String>,
    /// The content it refers to.
    pub content_reference: Option<ReferenceAnswer>,
    /// The model's reasoning.
    pub reasoning: String,
}

/// Content that a query refers to, as a model describes it (R1-5.3). Whether a capture exists is looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceAnswer {
    /// Its title.
    pub title: String,
    /// The kind of content, such as `thread`.
    pub content_type: String,
    /// The site it is on.
    pub site: String,
    /// The turn that visited it.
    pub source_turn: Option<u32>,
    /// What is known about it.
    pub prior_findings: String,
    /// Its address.
    pub source_url: Option<String>,
}

impl QueryAnswer {
    /// The result of phase 0. A query without references stays exactly as typed, so that no model rewords it.
    /// Captures are not known here.
    pub fn analysis(&self, original: &str) -> QueryAnalysis {
        let resolved = Some(self.resolved_query.trim()).filter(|text| self.was_resolved && !text.is_empty());
        QueryAnalysis {
            original_query: original.to_owned(),
            resolved_query: resolved.unwrap_or(original).to_owned(),
            was_resolved: resolved.is_some(),
            query_type: self.query_type,
            intent: self.intent.trim().to_owned(),
            entities: self.entities(),
            content_reference: self.content_reference.as_ref().map(ReferenceAnswer::reference),
            reasoning: self.reasoning.clone(),
        }
    }
}

impl QueryAnswer {
    /// The entities, each once, without those that are empty.
    fn entities(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let named = self.entities.iter().map(|entity| entity.trim()).filter(|entity| !entity.is_empty());
        named.filter(|entity| seen.insert(*entity)).map(str::to_owned).collect()
    }
}

impl ReferenceAnswer {
    fn reference(&self) -> ContentReference {
        ContentReference {
            title: self.title.clone(),
            content_type: self.content_type.clone(),
            site: self.site.clone(),
            source_turn: self.source_turn,
            prior_findings: self.prior_findings.clone(),
            source_url: stated(self.source_url.as_ref()),
            has_webpage_cache: false,
            webpage_cache_path: None,
        }
    }
}

/// What `phase1_reflection` answers (R1-3.27).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReflectionAnswer {
    /// Whether to proceed.
    pub decision: ReflectionDecision,
    /// Its confidence.
    pub confidence: Score,
    /// Whether the query asks for an action (C11).
    pub is_action: bool,
    /// Whether it follows up on an earlier query.
    pub is_follow_up: bool,
    /// The model's reasoning.
    pub reasoning: String,
    /// With CLARIFY: the question to the user.
    pub question: Option<String>,
}

impl ReflectionAnswer {
    /// §1. With a confidence below [`CONFIDENCE_THRESHOLD`] the user is asked (C67).
    ///
    /// # Errors
    /// CLARIFY without a question.
    pub fn reflection(&self) -> Result<Reflection, UnusableAnswer> {
        let unsure = self.confidence.get() < CONFIDENCE_THRESHOLD;
        let asked = stated(self.question.as_ref());
        let question = match self.decision {
            ReflectionDecision::Clarify => Some(asked.ok_or_else(|| {
                UnusableAnswer::new(
                    "decision is CLARIFY and question is empty; put the question to the user there",
                )
            })?),
            ReflectionDecision::Proceed if unsure => Some(asked.unwrap_or(STANDARD_QUESTION.to_owned())),
            ReflectionDecision::Proceed => None,
        };
        Ok(Reflection {
            decision: if question.is_some() { ReflectionDecision::Clarify } else { self.decision },
            confidence: self.confidence,
            is_action: self.is_action,
            is_follow_up: self.is_follow_up,
            reasoning: self.reasoning.clone(),
            question,
            block: BlockId::new("decision-reflection"),
        })
    }
}
