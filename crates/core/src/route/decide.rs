//! Decides which tier answers, and says why.

use larder_text::Layer;
use larder_text::price::Usd;
use serde::{Deserialize, Serialize};

use super::text::{RouteRequest, Words};
use super::{Preset, Tier};

/// What the caller knows of the model that plays the layer of a tier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TierModel {
    /// Its name in the model table.
    pub model: String,
    /// Tokens that it takes.
    pub window: usize,
    /// What it can do, as in the model table.
    pub capabilities: Vec<String>,
    /// What the call would cost at most; `None` if its prices are not known.
    pub cost: Option<Usd>,
    /// How fast the layer should answer; `None` if the table does not say.
    pub latency_ms: Option<u64>,
}

/// What one factor added to a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactorScore {
    /// The factor.
    pub name: String,
    /// What it added: its weight, or 0 if it does not hold.
    pub score: f64,
    /// What made it hold, in words of the preset.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// A tier that could not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedTier {
    /// The tier.
    pub tier: String,
    /// Why.
    pub reason: String,
}

/// Which tier answers, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteDecision {
    /// The preset.
    pub preset: String,
    /// The hash of its file.
    pub version: String,
    /// The tier that answers.
    pub tier: String,
    /// Its layer.
    pub layer: Layer,
    /// The model that plays it; empty if none does.
    pub model: String,
    /// The sum of the factors.
    pub score: f64,
    /// Every factor of the preset.
    pub factors: Vec<FactorScore>,
    /// The smallest tier that the caller allowed, if it asked for one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub floor: Option<String>,
    /// Tiers that could not answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub excluded: Vec<ExcludedTier>,
}

impl Preset {
    /// Decides. `floor` names the smallest tier that may answer; a name that the preset does not have means the largest.
    /// `model` says what plays the layer of a tier; `None` if nothing does.
    ///
    /// A tier whose model lacks a capability or whose window is too small never answers while another can. Ceilings give
    /// way to these and to the floor, the score gives way to all.
    pub fn decide(
        &self,
        request: &RouteRequest,
        floor: Option<&str>,
        model: impl Fn(&Tier) -> Option<TierModel>,
    ) -> RouteDecision {
        let words = Words::of(request);
        let factors: Vec<FactorScore> = self
            .factors
            .iter()
            .map(|factor| {
                let reason = factor.when.reason(request, &words);
                let score = if reason.is_some() { factor.weight } else { 0.0 };
                FactorScore { name: factor.name.clone(), score, reason }
            })
            .collect();
        let score = rounded(factors.iter().map(|factor| factor.score).sum());
        let models: Vec<Option<TierModel>> = self.tiers.iter().map(&model).collect();
        let last = self.tiers.len().saturating_sub(1);
        let lowest =
            floor.map_or(0, |name| self.tiers.iter().position(|tier| tier.name == name).unwrap_or(last));
        let reached =
            self.tiers.iter().rposition(|tier| tier.from.is_none_or(|from| score >= from)).unwrap_or(0);
        let wanted = reached.max(lowest);
        let mut excluded = Vec::new();
        let mut exclude = |at: usize, reason: String| {
            excluded.push(ExcludedTier { tier: self.tiers[at].name.clone(), reason });
        };
        let mut able = Vec::new();
        for (at, model) in models.iter().enumerate() {
            match self.missing(model.as_ref(), request, &words) {
                Some(reason) => exclude(at, reason),
                None => able.push(at),
            }
        }
        // What no model can do, the largest is asked for, and its refusal says why.
        if able.is_empty() {
            able.push(last);
        }
        // The smallest tier that may answer does so whatever it costs.
        let smallest =
            able.iter().copied().find(|at| *at >= lowest).or(able.first().copied()).unwrap_or(last);
        able.retain(|&at| match self.ceiling(models[at].as_ref()) {
            Some(reason) if at > smallest => {
                exclude(at, reason);
                false
            }
            _ => true,
        });
        // A larger tier can do what a smaller one cannot.
        let chosen = able.iter().find(|at| **at >= wanted).or(able.last()).copied().unwrap_or(last);
        let tier = &self.tiers[chosen];
        RouteDecision {
            preset: self.name.clone(),
            version: self.version.to_hex(),
            tier: tier.name.clone(),
            layer: tier.layer,
            model: models[chosen].as_ref().map(|model| model.model.clone()).unwrap_or_default(),
            score,
            factors,
            floor: floor.map(|_| self.tiers[lowest].name.clone()),
            excluded,
        }
    }

    /// Why a model cannot answer.
    fn missing(&self, model: Option<&TierModel>, request: &RouteRequest, words: &Words) -> Option<String> {
        let Some(model) = model else { return Some("no model plays its layer".to_owned()) };
        let required = self.requirements.iter().filter(|one| one.when.reason(request, words).is_some());
        let mut lacking = required.filter(|one| !model.capabilities.contains(&one.capability));
        if let Some(lacking) = lacking.next() {
            return Some(format!("{} lacks {}", model.model, lacking.capability));
        }
        (request.tokens > model.window)
            .then(|| format!("{} tokens do not fit the {} of {}", request.tokens, model.window, model.model))
    }

    /// Which ceiling a model exceeds.
    fn ceiling(&self, model: Option<&TierModel>) -> Option<String> {
        let model = model?;
        if let (Some(most), Some(cost)) = (self.max_cost, model.cost)
            && cost > most
        {
            return Some(format!("{} may cost ${cost}, the ceiling is ${most}", model.model));
        }
        match (self.max_latency_ms, model.latency_ms) {
            (Some(most), Some(latency)) if latency > most => {
                Some(format!("{} should answer within {latency} ms, the ceiling is {most} ms", model.model))
            }
            _ => None,
        }
    }
}

/// Sums of decimal weights without the noise of binary fractions.
fn rounded(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}
