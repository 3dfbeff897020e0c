//! The candidates of a search, and their text for prompts (R1-10.2 to R1-10.6).

use std::ops::Range;
use std::sync::Arc;

use larder_vault::lifecycle::ResearchState;
use larder_vault::{DocumentTime, Intent, Scope, Score, TurnStatus, VaultPath};
use serde::Serialize;

use super::page::PageAnswer;
use super::render::{line, when};
use super::trace::TraceEntry;

/// Candidates for the answer to a query, best first in every list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Candidates {
    /// Earlier turns, at most 20 (R1-10.2).
    pub turn_index: Vec<TurnCandidate>,
    /// Valid research on the topic, which may answer without any search (R1-10.3).
    pub cached_intel: Vec<ResearchCandidate>,
    /// Other research, with its state (R1-10.4).
    pub research_hits: Vec<ResearchCandidate>,
    /// Approaches that worked for similar queries and sites (R1-10.5).
    pub strategy_patterns: Vec<String>,
    /// Preferences of the user, at most 5 (C102).
    pub preferences: Vec<PreferenceCandidate>,
    /// Facts about and for the user, at most 5 (C102).
    pub facts: Vec<FactCandidate>,
    /// The answer from a captured page, or where to look for it (R1-6.10 to R1-6.20).
    pub page: Option<PageAnswer>,
    /// Passages of documents that share words with the query, or that those refer to.
    pub passages: Vec<PassageCandidate>,
    /// Everything that was considered and why it was used or not, for the receipt.
    pub considered: Vec<TraceEntry>,
}

/// An earlier turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnCandidate {
    /// Its number.
    pub turn: u32,
    /// Its `context.md`, in the archive if it is there.
    pub context: VaultPath,
    /// The user's question.
    pub query: String,
    /// The summary of its answer, if there is one.
    pub summary: Option<String>,
    /// A topic such as `commerce.laptop`.
    pub topic: Option<String>,
    /// How good the answer was.
    pub quality: Option<Score>,
    /// How it ended.
    pub status: TurnStatus,
    /// When it started.
    pub created_at: DocumentTime,
    /// Seconds since then.
    pub age_seconds: u64,
    /// Fused over all rankings; comparable within one search.
    pub score: f64,
    /// How it was found.
    pub why: String,
}

/// Research that is available (R1-12.2).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResearchCandidate {
    /// `research.md` of the turn that did it.
    pub document: VaultPath,
    /// `research_759_abc123`.
    pub id: String,
    /// The turn that did it.
    pub turn: u32,
    /// A topic such as `pet.hamster.syrian_hamster`.
    pub topic: String,
    /// The intent of the question it was done for.
    pub intent: Intent,
    /// Its title.
    pub title: String,
    /// How good it is.
    pub quality: Score,
    /// Active or stale; anything else is not offered (R1-12.4).
    pub state: ResearchState,
    /// When it was done.
    pub created_at: DocumentTime,
    /// Seconds since then.
    pub age_seconds: u64,
    /// When its time-sensitive part is old.
    pub expires_at: Option<DocumentTime>,
    /// For whom it counts.
    pub scope: Scope,
    /// Fused over all rankings; comparable within one search.
    pub score: f64,
    /// Its best findings; of stale research only the evergreen ones.
    pub digest: String,
}

/// A preference of the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PreferenceCandidate {
    /// A name such as `budget`.
    pub name: String,
    /// A value such as `$500-800`.
    pub value: String,
    /// The turn in which it was stated (R1-3.30).
    pub source_turn: Option<u32>,
    /// When it was last stated; `None` for what people wrote themselves.
    pub updated_at: Option<DocumentTime>,
    /// How well it answers the query; 0 if it shares nothing with it.
    pub score: f64,
}

/// Who published a statement for all users (R1-12.12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedBy {
    /// The number of the publication.
    pub id: u64,
    /// The user who published it.
    pub user: String,
    /// Where the author has it from, in words.
    pub source: String,
}

/// A fact about or for the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactCandidate {
    /// The record's id; `None` for what people wrote themselves.
    pub id: Option<String>,
    /// The statement.
    pub fact: String,
    /// A category such as `People`.
    pub category: String,
    /// For whom it counts.
    pub scope: Scope,
    /// The confidence in it.
    pub confidence: Option<Score>,
    /// The document it comes from.
    pub source: Option<VaultPath>,
    /// What another user published: by whom.
    pub published: Option<PublishedBy>,
    /// When it was last learned; `None` for what people wrote themselves.
    pub updated_at: Option<DocumentTime>,
    /// How well it answers the query; 0 if it shares nothing with it.
    pub score: f64,
}

/// A stretch of a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassageCandidate {
    /// The document.
    pub document: VaultPath,
    /// Its bytes in the document.
    pub bytes: Range<usize>,
    /// Its lines, from 1, both ends included.
    pub lines: (usize, usize),
    /// The text of these bytes.
    pub text: String,
    /// How well it answers: 1 for the best passage, less for the others.
    pub score: f64,
    /// Its tokens.
    pub tokens: usize,
    /// The document it is from.
    #[serde(skip)]
    pub whole: Arc<str>,
}

impl TurnCandidate {
    /// One line of the turn index.
    pub fn line(&self) -> String {
        let topic = self.topic.as_deref().map(|topic| format!("; topic {}", line(topic))).unwrap_or_default();
        let quality = self.quality.map(|quality| format!("; quality {quality}")).unwrap_or_default();
        let summary = self.summary.as_deref().map(|summary| format!(" → {}", line(summary)));
        format!(
            "- turn {} ({}; {}{topic}{quality}) path: {} | asked: {}{}",
            self.turn,
            when(self.created_at, self.age_seconds),
            self.status,
            self.context,
            line(&self.query),
            summary.unwrap_or_default(),
        )
    }
}

impl ResearchCandidate {
    /// Head and digest, as a recipe reads them.
    pub fn text(&self) -> String {
        let expires = self.expires_at.map(|expires| format!("\nexpires: {expires}")).unwrap_or_default();
        let state = match self.state {
            ResearchState::Stale => {
                "stale (its time-sensitive part is old: research anew before relying on it)"
            }
            state => state.as_str(),
        };
        format!(
            "id: {}\npath: {}\ntitle: {}\ntopic: {}\nquality: {}\nstate: {state}\nmade: {}{expires}\n{}",
            line(&self.id),
            self.document,
            line(&self.title),
            line(&self.topic),
            self.quality,
            when(self.created_at, self.age_seconds),
            self.digest,
        )
    }
}

impl PreferenceCandidate {
    /// `- favorite_hamster: Syrian (turn 758)`.
    pub fn line(&self) -> String {
        let turn = self.source_turn.map(|turn| format!(" (turn {turn})")).unwrap_or_default();
        format!("- {}: {}{turn}", line(&self.name), line(&self.value))
    }
}

impl PublishedBy {
    /// `published by ann: fact-001 of ann, learned in turn 12`.
    pub fn line(&self) -> String {
        format!("published by {}: {}", line(&self.user), line(&self.source))
    }
}

impl FactCandidate {
    /// `- statement (People, user, confidence 0.90) ^fact-001`, as `facts.md` has it; of another user
    /// `- statement (Pets, global, published by ann: fact-001 of ann, learned in turn 12)`.
    pub fn line(&self) -> String {
        let sure = self.confidence.map(|sure| format!(", confidence {sure}")).unwrap_or_default();
        let block = self.id.as_ref().map(|id| format!(" ^{id}")).unwrap_or_default();
        let by = self.published.as_ref().map(|by| format!(", {}", by.line())).unwrap_or_default();
        format!("- {} ({}, {}{sure}{by}){block}", line(&self.fact), line(&self.category), self.scope)
    }
}
