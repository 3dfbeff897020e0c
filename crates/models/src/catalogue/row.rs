//! One model in the catalogue, as the table it was read from has it: nothing is filled in. Knows the formats of
//! litellm's table and of ours.

use std::collections::{BTreeMap, BTreeSet};

use larder_text::price::{Price, Prices, RateTier, Rates};
use larder_text::usage::Service;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::table::Capability;

/// What a model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Replies to conversations.
    Chat,
    /// Replies to conversations, through OpenAI's responses API only.
    Responses,
    /// Continues a text.
    Completion,
    /// Makes vectors of texts.
    Embedding,
    /// Makes pictures, and is billed by the picture.
    Image,
    /// Speaks a text, and is billed by the character.
    Speech,
}

/// A model of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Who serves it, as the table names them.
    pub provider: String,
    /// What it is asked for.
    pub kind: Kind,
    /// Tokens of the prompt that the table states; whether the reply shares them is for [`Limits`](super::Limits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_input: Option<u64>,
    /// Tokens of the longest reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// What one picture or one character costs, in picodollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u64>,
    /// Prices by service and length; none if they are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<PriceTier>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub capabilities: BTreeSet<Capability>,
    /// Tokens of the smallest prompt prefix that is cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_minimum: Option<u64>,
    /// Length of an embedding model's vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u64>,
}

/// What one token costs in a service, in prompts above a length. A price that the table lacks is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTier {
    /// `standard`, `batch`, `priority`, `flex` or another name of a provider's.
    pub service: String,
    /// Prompts of more tokens than this pay these prices for all their tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub above: u64,
    /// A prompt token, in picodollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// A reply token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// A prompt token read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// A prompt token written to the cache, for its usual lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// A prompt token written to the cache for an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A price of a tier.
type PriceField = fn(&mut PriceTier) -> &mut Option<u64>;

/// Prices per token and their names in litellm's table.
const PRICES: [(&str, PriceField); 4] = [
    ("input_cost_per_token", |tier| &mut tier.input),
    ("output_cost_per_token", |tier| &mut tier.output),
    ("cache_read_input_token_cost", |tier| &mut tier.cache_read),
    ("cache_creation_input_token_cost", |tier| &mut tier.cache_write),
];
/// DeepSeek's older name of the price for reading from the cache.
const CACHE_HIT: &str = "input_cost_per_token_cache_hit";
const CAPABILITIES: [(&str, Capability); 5] = [
    ("supports_response_schema", Capability::JsonSchema),
    ("supports_function_calling", Capability::Tools),
    ("supports_vision", Capability::Vision),
    ("supports_prompt_caching", Capability::Cache),
    ("supports_reasoning", Capability::Thinking),
];
/// The service of requests that ask for none.
pub const STANDARD: &str = "standard";

impl Row {
    /// Reads an entry of litellm's table; `None` for models of other kinds.
    ///
    /// # Errors
    /// The field that has a value of another type than litellm documents.
    pub(super) fn from_litellm(fields: &Map<String, Value>) -> Result<Option<Self>, String> {
        let Some(provider) = fields.get("litellm_provider").and_then(Value::as_str) else { return Ok(None) };
        let kind = match fields.get("mode").and_then(Value::as_str) {
            Some("image_generation") => return Self::of_image(provider, fields),
            Some("audio_speech") => return Self::of_speech(provider, fields),
            Some("chat") => Kind::Chat,
            Some("responses") => Kind::Responses,
            Some("completion") => Kind::Completion,
            Some("embedding") => Kind::Embedding,
            _ => return Ok(None),
        };
        let is_on = |name: &str| fields.get(name) == Some(&Value::Bool(true));
        let mut capabilities: BTreeSet<Capability> = CAPABILITIES
            .into_iter()
            .filter(|(name, _)| is_on(name))
            .map(|(_, capability)| capability)
            .collect();
        if kind == Kind::Embedding {
            capabilities.insert(Capability::Embedding);
        }
        Ok(Some(Self {
            provider: provider.to_owned(),
            kind,
            unit: None,
            max_input: tokens(fields, "max_input_tokens")?,
            max_output: tokens(fields, "max_output_tokens")?,
            prices: prices(fields)?,
            capabilities,
            cache_minimum: tokens(fields, "prompt_cache_min_tokens")?,
            dimensions: tokens(fields, "output_vector_size")?,
        }))
    }

    /// A model that makes pictures: what one costs, if nothing else does; otherwise what the prompt costs beside the
    /// pictures, whose prices have rows of their own, by size and quality.
    fn of_image(provider: &str, fields: &Map<String, Value>) -> Result<Option<Self>, String> {
        let per_picture = ["output_cost_per_image", "input_cost_per_image"];
        let by_size = |name: &str| {
            let other =
                name.contains("cost_per") && !name.ends_with("cost_per_image") && !name.contains("pixel");
            other || name.starts_with("tiered")
        };
        let input = price(fields, "input_cost_per_token")?;
        if fields.iter().any(|(name, value)| by_size(name) && !value.is_null()) {
            let standard = PriceTier { service: STANDARD.to_owned(), input, ..PriceTier::default() };
            let of_prompt = Self { prices: vec![standard], ..Self::by_unit(provider, Kind::Image, None) };
            return Ok(input.map(|_| of_prompt));
        }
        for name in per_picture {
            if let Some(unit) = price(fields, name)? {
                return Ok(Some(Self::by_unit(provider, Kind::Image, Some(unit))));
            }
        }
        Ok(None)
    }

    /// A model that speaks, if it is billed by the character.
    fn of_speech(provider: &str, fields: &Map<String, Value>) -> Result<Option<Self>, String> {
        let unit = price(fields, "input_cost_per_character")?;
        Ok(unit.map(|unit| Self::by_unit(provider, Kind::Speech, Some(unit))))
    }

    fn by_unit(provider: &str, kind: Kind, unit: Option<u64>) -> Self {
        Self {
            provider: provider.to_owned(),
            kind,
            unit,
            max_input: None,
            max_output: None,
            prices: Vec::new(),
            capabilities: BTreeSet::new(),
            cache_minimum: None,
            dimensions: None,
        }
    }

    /// The prices of a service in prompts of this length; a price that a dearer tier lacks is that of the tier below.
    pub fn prices(&self, service: &str, prompt: u64) -> Option<PriceTier> {
        let mut found: Option<PriceTier> = None;
        let tiers = self.prices.iter().filter(|tier| tier.service == service);
        for tier in tiers.filter(|tier| tier.above == 0 || prompt > tier.above) {
            let mut next = tier.clone();
            if let Some(below) = found {
                next.input = next.input.or(below.input);
                next.output = next.output.or(below.output);
                next.cache_read = next.cache_read.or(below.cache_read);
                next.cache_write = next.cache_write.or(below.cache_write);
                next.cache_write_1h = next.cache_write_1h.or(below.cache_write_1h);
            }
            found = Some(next);
        }
        found
    }

    /// All prices that a bill needs; `None` if those of the usual service are unknown. Tiers that are incomplete are
    /// left out, so that the usual ones hold.
    pub fn all_prices(&self) -> Option<Prices> {
        let hour = self.prices(STANDARD, 0).and_then(|tier| tier.cache_write_1h);
        let tiers = self.prices.iter().filter_map(|tier| {
            let service = Service::ALL.into_iter().find(|service| service.as_str() == tier.service)?;
            let whole = self.prices(&tier.service, tier.above.saturating_add(1))?;
            Some(RateTier { service, above: tier.above, rates: whole.rates(self.kind, hour)? })
        });
        Prices::from_tiers(tiers)
    }

    /// Why the row cannot be used.
    pub(super) fn problem(&self) -> Option<String> {
        const MAX_TOKENS: u64 = 1 << 30;
        let limits = [self.max_input, self.max_output, self.cache_minimum];
        if limits.into_iter().flatten().any(|tokens| tokens > MAX_TOKENS) {
            return Some(format!("a limit is above {MAX_TOKENS} tokens"));
        }
        let is_sorted = self.prices.is_sorted_by(|a, b| (&a.service, a.above) < (&b.service, b.above));
        (!is_sorted).then(|| "`prices` are not in the order of service and `above`".to_owned())
    }
}

/// A number of tokens; zero and absent are both unknown.
fn tokens(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    let number = match fields.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64().filter(|number| *number >= 0.0 && *number < 1e12),
        Some(_) => None,
    };
    let number = number.ok_or_else(|| format!("`{name}` is not a number of tokens"))?;
    Ok(Some(number as u64).filter(|number| *number > 0))
}

fn prices(fields: &Map<String, Value>) -> Result<Vec<PriceTier>, String> {
    let mut tiers = BTreeMap::<(String, u64), PriceTier>::new();
    let mut set = |service: &str, above: u64, field: &str, price: PriceField| {
        let value = fields.get(field).and_then(Value::as_f64);
        let Some(picos) = value.and_then(picos) else { return Err(format!("`{field}` is not a price")) };
        let tier = tiers.entry((service.to_owned(), above)).or_default();
        *price(tier) = Some(picos);
        Ok(())
    };
    for (field, _) in fields.iter().filter(|(_, value)| !value.is_null()) {
        for (name, price) in PRICES {
            let Some(rest) = field.strip_prefix(name) else { continue };
            let (rest, hour) = match rest.strip_prefix("_above_1hr") {
                Some(rest) => (rest, true),
                None => (rest, false),
            };
            let Some((above, service)) = tier(rest) else { continue };
            if field == CACHE_HIT {
                continue;
            }
            match hour {
                true => set(service, above, field, |tier| &mut tier.cache_write_1h)?,
                false => set(service, above, field, price)?,
            }
        }
    }
    if fields.contains_key(CACHE_HIT) && !fields.contains_key("cache_read_input_token_cost") {
        set(STANDARD, 0, CACHE_HIT, |tier| &mut tier.cache_read)?;
    }
    for range in fields.get("tiered_pricing").and_then(Value::as_array).into_iter().flatten() {
        let above = range.get("range").and_then(|range| range.get(0)).and_then(Value::as_f64);
        let Some(above) = above.filter(|above| *above >= 0.0 && *above < 1e12) else { continue };
        for (name, price) in PRICES {
            let value = range.get(name).and_then(Value::as_f64).and_then(picos);
            if let Some(value) = value {
                *price(tiers.entry((STANDARD.to_owned(), above as u64)).or_default()) = Some(value);
            }
        }
    }
    let named = tiers.into_iter().map(|((service, above), tier)| PriceTier { service, above, ..tier });
    Ok(named.collect())
}

/// The end of a price's name: the length above which it holds, in tokens, and the service.
fn tier(rest: &str) -> Option<(u64, &str)> {
    let (above, rest) = match rest.strip_prefix("_above_") {
        Some(rest) => {
            let (thousands, rest) = rest.split_once("k_tokens")?;
            (thousands.parse::<u64>().ok()? * 1_000, rest)
        }
        None => (0, rest),
    };
    match rest.strip_prefix('_') {
        None => rest.is_empty().then_some((above, STANDARD)),
        Some("batches") => Some((above, "batch")),
        Some(service) => Some((above, service)),
    }
}

/// A price in picodollars.
fn price(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let picos = value.as_f64().and_then(picos);
            picos.map(Some).ok_or_else(|| format!("`{name}` is not a price"))
        }
    }
}

/// Dollars as picodollars, which is finer than any published price.
fn picos(dollars: f64) -> Option<u64> {
    let picos = (dollars * 1e12).round();
    ((0.0..=1e12).contains(&picos)).then_some(picos as u64)
}

impl PriceTier {
    /// The rates that a bill needs; `None` if that of the prompt or, but for vectors, of the reply is unknown. Tokens
    /// whose use of the cache has no price of its own are billed like any other token of the prompt. `hour` is the price
    /// of a cache written for an hour where the tier has none.
    fn rates(&self, kind: Kind, hour: Option<u64>) -> Option<Rates> {
        let free = (kind == Kind::Embedding).then_some(0);
        let input = self.input?;
        let cache_write = self.cache_write.unwrap_or(input);
        Some(Rates {
            input: Price::from_picos(input),
            cached_input: Price::from_picos(self.cache_read.unwrap_or(input)),
            cache_write: Price::from_picos(cache_write),
            cache_write_1h: Price::from_picos(self.cache_write_1h.or(hour).unwrap_or(cache_write)),
            output: Price::from_picos(self.output.or(free)?),
        })
    }
}

impl From<RateTier> for PriceTier {
    fn from(RateTier { service, above, rates }: RateTier) -> Self {
        let picos = |price: Price| Some(price.picos());
        Self {
            service: service.as_str().to_owned(),
            above,
            input: picos(rates.input),
            output: picos(rates.output),
            cache_read: picos(rates.cached_input),
            cache_write: picos(rates.cache_write),
            cache_write_1h: picos(rates.cache_write_1h),
        }
    }
}
