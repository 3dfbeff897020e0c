//! After the turn: its summary, and what the user wants to be remembered.

use larder_vault::{Score, Ttl};
use serde::{Deserialize, Serialize};

use larder_engine::answer::{said, topic};

/// What `phase7_summarizer` answers (C5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryAnswer {
    /// The turn in one or two sentences.
    pub summary: String,
    /// Dotted.
    pub topic: String,
    /// What the next turn of this kind should do differently.
    pub lessons: Vec<String>,
}

impl SummaryAnswer {
    /// The dotted topic.
    pub fn topic(&self) -> String {
        topic(&self.topic)
    }

    /// The lessons that are not empty.
    pub fn lessons(&self) -> Vec<String> {
        said(&self.lessons)
    }
}

/// What `memory/remember` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberAnswer {
    /// Preferences that the user stated.
    pub preferences: Vec<RememberedPreference>,
    /// Facts that the user stated.
    pub facts: Vec<RememberedFact>,
    /// Names of preferences and facts that the user withdrew.
    pub forget: Vec<String>,
    /// The model's reasoning.
    pub reason: String,
}

/// One preference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedPreference {
    /// In snake case, such as `favorite_hamster`.
    pub name: String,
    /// The value, such as `Syrian`.
    pub value: String,
    /// The user's own words for it.
    pub quote: String,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedFact {
    /// The category, such as `People`.
    pub category: String,
    /// The fact in one sentence.
    pub fact: String,
    /// Its confidence.
    pub confidence: Score,
    /// How long it is valid.
    pub ttl: Ttl,
    /// The user's own words for it.
    pub quote: String,
}

impl RememberAnswer {
    /// Keeps only what quotes the user's own words (C99). Turns do not run `memory/remember` yet (R1-7.1).
    pub fn of_user(mut self, query: &str) -> Self {
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let query = plain(query);
        let said = |quote: &str| !quote.trim().is_empty() && query.contains(&plain(quote));
        self.preferences.retain(|preference| said(&preference.quote));
        self.facts.retain(|fact| said(&fact.quote));
        self
    }
}
