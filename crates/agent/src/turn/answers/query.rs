//! Phases 0 and 1: what the query refers to, and whether it is clear.

use larder_vault::context::{Reflection, ReflectionDecision};
use larder_vault::{BlockId, ContentReference, QueryAnalysis, ReferenceType, Score};
use serde::{Deserialize, Serialize};

use larder_engine::answer::{UnusableAnswer, stated};

use super::CONFIDENCE_THRESHOLD;

/// What is asked when reflection is unsure and has no question of its own (C67).
const STANDARD_QUESTION: &str =
    "I am not sure what you mean. Could you say in other words what you would like?";

/// What `phase0_query_analyzer` answers (R1-5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryAnswer {
    /// The query with its references resolved; may be empty when there was nothing to resolve.
    pub resolved_query: String,
    /// Whether anything had to be resolved.
    pub was_resolved: bool,
    /// What it refers to.
    pub query_type: ReferenceType,
    /// The content it refers to.
    pub content_reference: Option<ReferenceAnswer>,
    /// Why.
    pub reasoning: String,
}

/// Content that a query refers to, as far as a model knows it (R1-5.3). Whether a capture exists is looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceAnswer {
    /// Its title.
    pub title: String,
    /// Such as `thread`.
    pub content_type: String,
    /// Where it stands.
    pub site: String,
    /// The turn that saw it.
    pub source_turn: Option<u32>,
    /// What is known of it.
    pub prior_findings: String,
    /// Its address.
    pub source_url: Option<String>,
}

impl QueryAnswer {
    /// What phase 0 writes. A query that had nothing to be resolved stands as it was typed, so that no model rewords it.
    /// Whether there is a capture, and where, is not known here.
    pub fn analysis(&self, original: &str) -> QueryAnalysis {
        let resolved = Some(self.resolved_query.trim()).filter(|text| self.was_resolved && !text.is_empty());
        QueryAnalysis {
            original_query: original.to_owned(),
            resolved_query: resolved.unwrap_or(original).to_owned(),
            was_resolved: resolved.is_some(),
            query_type: self.query_type,
            content_reference: self.content_reference.as_ref().map(ReferenceAnswer::reference),
            reasoning: self.reasoning.clone(),
        }
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
    /// Whether to go on.
    pub decision: ReflectionDecision,
    /// How sure it is.
    pub confidence: Score,
    /// Whether something is to be done (C11).
    pub is_action: bool,
    /// Whether it goes on with an earlier query.
    pub is_follow_up: bool,
    /// Why.
    pub reasoning: String,
    /// What to ask, with CLARIFY.
    pub question: Option<String>,
}

impl ReflectionAnswer {
    /// §1. One that is less sure than [`CONFIDENCE_THRESHOLD`] asks the user (C67).
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
