//! Phase 2: what to read, and what was gathered.

use std::collections::{BTreeMap, BTreeSet};

use larder_vault::context::{CachedResearch, GatheredContext, Preference, PriorTurn, Relevance};
use larder_vault::links::Reference;
use serde::{Deserialize, Serialize};

use larder_engine::answer::stated;

/// What `phase2_context_gatherer_retrieval` answers (R1-10.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrievalAnswer {
    /// What answers already, each with where it stands.
    pub direct_info: Vec<String>,
    /// What to read.
    pub links_to_follow: Vec<LinkChoice>,
    /// Why.
    pub reasoning: String,
}

/// A document to read, and which of its sections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkChoice {
    /// As the candidates give it.
    pub path: String,
    /// Headings; empty means what is relevant of the whole.
    pub sections_to_extract: Vec<String>,
}

/// How far what was gathered goes (R1-11.4 to R1-11.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Sufficiency {
    /// It answers the query.
    Sufficient,
    /// What stays true is there, what changes is old.
    StaleResearch,
    /// Nothing relevant is there.
    NeedsResearch,
    /// Some of it is there.
    NeedsMore,
}

impl Sufficiency {
    /// The word, as the answer and §2 write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sufficient => "SUFFICIENT",
            Self::StaleResearch => "STALE_RESEARCH",
            Self::NeedsResearch => "NEEDS_RESEARCH",
            Self::NeedsMore => "NEEDS_MORE",
        }
    }
}

/// What `phase2_context_gatherer_synthesis` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatheringAnswer {
    /// Markdown: what matters for the query, each statement with its source and age.
    pub information: String,
    /// Preferences that matter.
    pub preferences: Vec<PreferenceAnswer>,
    /// Earlier turns that matter.
    pub prior_turns: Vec<PriorTurnAnswer>,
    /// Paths of the documents that were used.
    pub references: Vec<String>,
    /// How far it goes.
    pub sufficiency: Sufficiency,
}

/// A preference that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreferenceAnswer {
    /// Such as `budget`.
    pub name: String,
    /// Such as `$500-800`.
    pub value: String,
    /// The turn that said so.
    pub source_turn: Option<u32>,
}

/// An earlier turn that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorTurnAnswer {
    /// Its number.
    pub turn: u32,
    /// How much it matters.
    pub relevance: Relevance,
    /// What it was about.
    pub summary: String,
}

/// What a model was shown and so may name.
#[derive(Debug, Clone, Default)]
pub struct ShownItems {
    /// Documents by path, as the prompt spelled it, each with the link that §2 gives.
    pub documents: BTreeMap<String, Reference>,
    /// Turns by number.
    pub turns: BTreeSet<u32>,
    /// Research at hand, as §2 lists it (R1-3.32).
    pub research: Vec<CachedResearch>,
}

/// What an answer named and was not shown: left out of the document, and worth a warning.
pub type Dropped = Vec<String>;

impl GatheringAnswer {
    /// §2, and what it leaves out: documents and turns that nobody showed the model are made up, and no link may lead to
    /// them.
    pub fn gathered(&self, known: &ShownItems) -> (GatheredContext, Dropped) {
        let mut dropped = Dropped::new();
        let mut references: Vec<Reference> = Vec::new();
        for path in &self.references {
            match known.documents.get(path.trim()) {
                Some(reference) if references.contains(reference) => {}
                Some(reference) => references.push(reference.clone()),
                None => dropped.push(format!("reference {path}")),
            }
        }
        let (shown, made_up): (Vec<_>, Vec<_>) =
            self.prior_turns.iter().partition(|row| known.turns.contains(&row.turn));
        dropped.extend(made_up.iter().map(|row| format!("turn {}", row.turn)));
        let gathered = GatheredContext {
            information: self.information(),
            preferences: self.preferences.iter().filter_map(|row| row.preference(known)).collect(),
            prior_turns: shown.into_iter().map(PriorTurnAnswer::prior_turn).collect(),
            research: known.research.clone(),
            references,
        };
        (gathered, dropped)
    }

    /// The text of §2, which ends with how far it goes: that is what the planner routes by (R1-11.10).
    fn information(&self) -> String {
        let end = format!("Sufficiency: {}", self.sufficiency.as_str());
        match self.information.trim() {
            "" => end,
            information => format!("{information}\n\n{end}"),
        }
    }
}

impl PreferenceAnswer {
    fn preference(&self, known: &ShownItems) -> Option<Preference> {
        Some(Preference {
            name: stated(Some(&self.name))?,
            value: stated(Some(&self.value))?,
            source_turn: self.source_turn.filter(|turn| known.turns.contains(turn)),
        })
    }
}

impl PriorTurnAnswer {
    fn prior_turn(&self) -> PriorTurn {
        PriorTurn { turn: self.turn, relevance: self.relevance, summary: self.summary.clone() }
    }
}
