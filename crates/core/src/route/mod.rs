//! The router: which tier of models answers a request, decided by rules before the call.
//!
//! A preset is data: factors with weights, tiers with thresholds, requirements and ceilings. It is parsed with source
//! spans, as recipes are ([`check()`]), and [`Preset::decide`] is a pure function of the request and of what the caller
//! knows of the models. Does not know which model plays a layer, or what becomes of a decision.

mod check;
mod condition;
mod decide;
mod file;
mod phrases;
mod text;

pub use check::{Presets, check};
pub use condition::{Condition, Measure};
pub use decide::{ExcludedTier, FactorScore, RouteDecision, TierModel};
pub use text::{RouteDocument, RouteRequest};

use std::collections::BTreeMap;

use larder_text::Layer;
use larder_text::hash::ContentHash;
use larder_text::price::Usd;

/// The preset that is used where none is named.
pub const DEFAULT_PRESET: &str = "default";

/// A checked preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// Its name, which is that of its file.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The hash of its file.
    pub version: ContentHash,
    /// From the smallest to the largest; the last whose threshold is reached answers.
    pub tiers: Vec<Tier>,
    /// What adds to the score, or takes from it.
    pub factors: Vec<Factor>,
    /// What a model must be able to do.
    pub requirements: Vec<Requirement>,
    /// What a call may cost at most, as estimated before it.
    pub max_cost: Option<Usd>,
    /// How long a layer may take to answer at most, by its target in the model table.
    pub max_latency_ms: Option<u64>,
}

/// A tier of models.
#[derive(Debug, Clone, PartialEq)]
pub struct Tier {
    /// Its name, such as `large`.
    pub name: String,
    /// The layer whose model answers.
    pub layer: Layer,
    /// The score from which it answers; the first tier has none.
    pub from: Option<f64>,
}

/// Something that is known of a request, and what it adds to the score.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// What is added where the condition holds; may be negative.
    pub weight: f64,
    /// When it holds.
    pub when: Condition,
}

/// A capability that a model must have to answer a kind of request.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// The capability, as in the model table.
    pub capability: String,
    /// For which requests.
    pub when: Condition,
}

impl Preset {
    /// The tier with this name.
    pub fn tier(&self, name: &str) -> Option<&Tier> {
        self.tiers.iter().find(|tier| tier.name == name)
    }
}

/// Values that a caller knows of a request, such as `intensity`.
pub type Fields = BTreeMap<String, serde_json::Value>;
