//! Phase 2: what to read, and what was gathered.

use std::collections::BTreeMap;

use larder_vault::VaultPath;
use larder_vault::context::{CachedResearch, GatheredContext, Preference, PriorTurn, Relevance, Sufficiency};
use larder_vault::links::Reference;
use serde::{Deserialize, Serialize};

use larder_engine::answer::stated;

/// What `phase2_context_gatherer_retrieval` answers (R1-10.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrievalAnswer {
    /// Facts that answer the query directly, each with its source.
    pub direct_info: Vec<String>,
    /// The documents to read.
    pub links_to_follow: Vec<LinkChoice>,
    /// The model's reasoning.
    pub reasoning: String,
}

/// A document to read, and which of its sections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkChoice {
    /// The path as the candidates list it.
    pub path: String,
    /// Headings; empty for the relevant parts of the whole document.
    pub sections_to_extract: Vec<String>,
}

/// What `phase2_context_gatherer_synthesis` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatheringAnswer {
    /// What matters for the query, as Markdown, each statement with its source and age.
    pub information: String,
    /// Preferences that matter.
    pub preferences: Vec<PreferenceAnswer>,
    /// Earlier turns that matter.
    pub prior_turns: Vec<PriorTurnAnswer>,
    /// Paths of the documents that were used.
    pub references: Vec<String>,
    /// Whether it is enough.
    pub sufficiency: Sufficiency,
}

/// A preference that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreferenceAnswer {
    /// The name, such as `budget`.
    pub name: String,
    /// The value, such as `$500-800`.
    pub value: String,
    /// The turn it is from.
    pub source_turn: Option<u32>,
}

/// An earlier turn that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorTurnAnswer {
    /// Its number.
    pub turn: u32,
    /// Its relevance to the query.
    pub relevance: Relevance,
    /// Its summary.
    pub summary: String,
}

/// What a model was shown and may therefore refer to.
#[derive(Debug, Clone, Default)]
pub struct ShownItems {
    /// Documents by their path in the prompt, each with its link for §2.
    pub documents: BTreeMap<String, Reference>,
    /// Turns by number, with their `context.md`.
    pub turns: BTreeMap<u32, VaultPath>,
    /// Available research, as listed in §2 (R1-3.32).
    pub research: Vec<CachedResearch>,
    /// Everything that it was shown and the query, in lower case: preferences may only repeat what is in it.
    pub text: String,
}

/// References to documents that the model was not shown; they are omitted from the document and reported.
pub type Dropped = Vec<String>;

impl GatheringAnswer {
    /// §2, and what it omits: documents and turns that the model was not shown are invented, and must not be linked.
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
        let (shown, invented): (Vec<_>, Vec<_>) =
            self.prior_turns.iter().partition(|row| known.turns.contains_key(&row.turn));
        dropped.extend(invented.iter().map(|row| format!("turn {}", row.turn)));
        let preferences = self.preferences.iter().filter_map(|row| {
            let preference = row.preference(known)?;
            let is_shown = known.says(&preference.value);
            if !is_shown {
                dropped.push(format!("preference {}", preference.name));
            }
            is_shown.then_some(preference)
        });
        let preferences: Vec<Preference> = preferences.collect();
        let stated = preferences.iter().filter_map(|row| row.source_turn);
        let named = stated.chain(shown.iter().map(|row| row.turn));
        let turns = named.filter_map(|turn| Some((turn, known.turns.get(&turn)?.clone()))).collect();
        let gathered = GatheredContext {
            sufficiency: Some(self.sufficiency),
            information: self.information.trim().to_owned(),
            preferences,
            turns,
            memory: Vec::new(),
            prior_turns: shown.into_iter().map(PriorTurnAnswer::prior_turn).collect(),
            research: known.research.clone(),
            references,
        };
        (gathered, dropped)
    }
}

impl ShownItems {
    /// Whether every word of `value` was shown.
    fn says(&self, value: &str) -> bool {
        let words = value.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).all(|word| self.text.contains(&word))
    }
}

impl PreferenceAnswer {
    fn preference(&self, known: &ShownItems) -> Option<Preference> {
        Some(Preference {
            name: stated(Some(&self.name))?,
            value: stated(Some(&self.value))?,
            source_turn: self.source_turn.filter(|turn| known.turns.contains_key(turn)),
        })
    }
}

impl PriorTurnAnswer {
    fn prior_turn(&self) -> PriorTurn {
        PriorTurn { turn: self.turn, relevance: self.relevance, summary: self.summary.clone() }
    }
}
