//! What settings state about single models of the catalogue, or about models that it lacks. Knows no file.

use std::collections::BTreeSet;

use larder_text::family::Family;
use larder_text::model_id::ModelId;

use super::{Catalogue, Entry, Kind, LimitRule, Limits, Match, PriceTier, Row, is_tuned};
use crate::price::Prices;

/// The facts about a model that settings state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Override {
    /// Tokens of prompt and reply together.
    pub window: Option<u64>,
    /// Tokens of the prompt, where it has a limit of its own.
    pub input_limit: Option<u64>,
    /// Tokens of the longest reply.
    pub max_output: Option<u64>,
    /// All of its prices.
    pub prices: Option<Prices>,
    /// The id of a model whose family it belongs to: its tokens are counted alike, and its cache is.
    pub family: Option<String>,
}

impl Override {
    /// The entry with these facts in place of its own.
    pub(super) fn applied(&self, mut entry: Entry) -> Entry {
        entry.overridden = true;
        entry.row.max_output = self.max_output.or(entry.row.max_output);
        if let Some(family) = &self.family {
            entry.family = Family::of(&ModelId::parse(family));
        }
        if let Some(prices) = &self.prices {
            entry.row.prices = prices.tiers().map(PriceTier::from).collect();
        }
        let window = self.window.or(entry.limits.map(|limits| limits.window)).or(self.input_limit);
        if let Some(window) = window.filter(|_| self.window.is_some() || self.input_limit.is_some()) {
            entry.states_window = true;
            // Another window than the catalogue's says nothing about how the reply shares it.
            let known =
                entry.limits.filter(|limits| limits.window == window).and_then(|limits| limits.input_limit());
            let input = self.input_limit.or(known);
            let rule = if input.is_some() { LimitRule::Separate } else { LimitRule::Shared };
            entry.limits = Some(Limits { rule, window, input: input.unwrap_or(window), uncertain: false });
            entry.limits_from = None;
        }
        entry
    }
}

impl Catalogue {
    /// What settings state about exactly this id, otherwise about the same model at the same provider.
    pub(super) fn override_of(&self, id: &str) -> Option<&Override> {
        if let Some(own) = self.overrides.get(id) {
            return Some(own);
        }
        let parsed = ModelId::parse(id);
        let is_same_model = |other: &ModelId| {
            let are_plain = !is_tuned(&parsed) && !is_tuned(other);
            are_plain && (&other.key, &other.variant) == (&parsed.key, &parsed.variant)
        };
        let spellings = self.overrides.iter().map(|(other, own)| (other, ModelId::parse(other), own));
        let same: Vec<_> = spellings.filter(|(_, other, _)| is_same_model(other)).collect();
        let same_prefix = same.iter().find(|(_, other, _)| other.reseller == parsed.reseller);
        let same_provider = || {
            let provider = self.provider(id, &parsed)?;
            same.iter().find(|(id, other, _)| self.provider(id, other).as_ref() == Some(&provider))
        };
        same_prefix.or_else(same_provider).map(|(_, _, own)| *own)
    }

    /// Who serves a model: as its id says, otherwise as the table does.
    fn provider(&self, id: &str, parsed: &ModelId) -> Option<String> {
        match parsed.reseller.as_str() {
            "" => self.in_table(id).map(|entry| entry.row.provider),
            reseller => Some(reseller.to_owned()),
        }
    }
}

impl Entry {
    /// An entry that states nothing.
    pub(super) fn blank(id: &str) -> Self {
        let row = Row {
            provider: String::new(),
            kind: Kind::Chat,
            unit: None,
            max_input: None,
            max_output: None,
            prices: Vec::new(),
            capabilities: BTreeSet::new(),
            cache_minimum: None,
            dimensions: None,
        };
        let matched = Match { id: id.to_owned(), steps: Vec::new() };
        let family = Family::of(&ModelId::parse(id));
        Self {
            matched,
            row,
            limits: None,
            limits_from: None,
            family,
            overridden: false,
            states_window: false,
        }
    }
}
