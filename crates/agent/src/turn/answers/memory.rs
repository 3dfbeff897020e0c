//! After the turn: its summary, and what the user wants remembered.

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
    /// What the next turn of this kind should do otherwise.
    pub lessons: Vec<String>,
}

impl SummaryAnswer {
    /// The dotted topic.
    pub fn topic(&self) -> String {
        topic(&self.topic)
    }

    /// Lessons that say something.
    pub fn lessons(&self) -> Vec<String> {
        said(&self.lessons)
    }
}

/// What `memory/remember` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberAnswer {
    /// What the user likes.
    pub preferences: Vec<RememberedPreference>,
    /// What the user said of themselves and their world.
    pub facts: Vec<RememberedFact>,
    /// Names of preferences and facts that the user took back.
    pub forget: Vec<String>,
    /// Why.
    pub reason: String,
}

/// One preference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedPreference {
    /// In snake case, such as `favorite_hamster`.
    pub name: String,
    /// Such as `Syrian`.
    pub value: String,
    /// The user's own words for it.
    pub quote: String,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedFact {
    /// Such as `People`.
    pub category: String,
    /// In one sentence.
    pub fact: String,
    /// How sure it is.
    pub confidence: Score,
    /// How long it may be believed.
    pub ttl: Ttl,
    /// The user's own words for it.
    pub quote: String,
}

impl RememberAnswer {
    /// Only what stands in the user's own words is remembered (C99): whatever quotes something else is left out.
    pub fn of_user(mut self, query: &str) -> Self {
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let query = plain(query);
        let said = |quote: &str| !quote.trim().is_empty() && query.contains(&plain(quote));
        self.preferences.retain(|preference| said(&preference.quote));
        self.facts.retain(|fact| said(&fact.quote));
        self
    }
}
