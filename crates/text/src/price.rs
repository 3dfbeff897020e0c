//! The cost of a call, computed in exact integers from its usage and the model table's prices. Knows no provider.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::usage::{Service, Usage};

/// Decimal places that an amount keeps: one unit is a picodollar.
const DECIMALS: usize = 12;
/// Maximum decimal places of a price per million tokens, so that one token costs a whole number of picodollars.
const PRICE_DECIMALS: usize = 6;

/// An amount of US dollars, exact to a picodollar. It prints and serializes as a decimal number (`0.0105`), and
/// saturates at about 18 million dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(u64);

impl Usd {
    /// An amount from picodollars.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// The exact amount in picodollars.
    pub const fn picos(self) -> u64 {
        self.0
    }
}

impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Self::add)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollar = 10_u64.pow(DECIMALS as u32);
        let fraction = format!("{:012}", self.0 % dollar);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}", self.0 / dollar),
            fraction => write!(f, "{}.{fraction}", self.0 / dollar),
        }
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Text that is not an amount of US dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount of dollars such as `0.0105`")]
pub struct ParseUsdError(String);

impl FromStr for Usd {
    type Err = ParseUsdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_decimal(text, DECIMALS).map(Self).ok_or_else(|| ParseUsdError(text.to_owned()))
    }
}

/// The price of one token of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Price(Usd);

impl Price {
    /// Parses a price in dollars per million tokens, such as `0.02`, with at most six decimal places. `None` for
    /// anything else.
    pub fn per_million(dollars: &str) -> Option<Self> {
        parse_decimal(dollars, PRICE_DECIMALS).map(|picos| Self(Usd(picos)))
    }

    /// A price in picodollars per token.
    pub const fn from_picos(picos: u64) -> Self {
        Self(Usd(picos))
    }

    /// Picodollars per token.
    pub const fn picos(self) -> u64 {
        self.0.picos()
    }

    /// What this many of them cost.
    pub fn of(self, tokens: u64) -> Usd {
        Usd(self.0.0.saturating_mul(tokens))
    }
}

/// What tokens cost in one service (R4-8.6). Reasoning tokens are billed as output, of which they are a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Rates {
    /// Prompt tokens.
    pub input: Price,
    /// Prompt tokens read from the provider's cache.
    pub cached_input: Price,
    /// Prompt tokens written to the provider's cache for its usual lifetime.
    pub cache_write: Price,
    /// Prompt tokens written to the provider's cache for an hour.
    pub cache_write_1h: Price,
    /// Reply tokens.
    pub output: Price,
}

/// Rates of a service, in prompts above a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RateTier {
    /// The service.
    pub service: Service,
    /// Prompts of more tokens than this pay these rates for all their tokens.
    pub above: u64,
    /// The rates.
    #[serde(flatten)]
    pub rates: Rates,
}

/// All that a model's tokens cost, by service and length of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    /// What holds where no tier does.
    base: Rates,
    /// By service, then by length.
    tiers: Arc<[RateTier]>,
}

/// What a request allows its provider to bill, so that the most that it can cost is known before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Billable<'a> {
    /// The services that it may be served under.
    pub services: &'a [Service],
    /// Which tokens of the prompt may be written to the cache.
    pub writes: CacheWrites,
}

/// What a request may write to the provider's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheWrites {
    /// Nothing.
    Nothing,
    /// For the usual lifetime.
    Usual,
    /// Also for an hour.
    Hour,
}

impl Billable<'static> {
    /// A request that asks for nothing in particular: a provider may have priority as the default of an account.
    pub const USUAL: Self =
        Self { services: &[Service::Standard, Service::Priority], writes: CacheWrites::Usual };
}

/// What one call cost, with cached and uncached prompt tokens listed separately (R4-9.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: Usd,
    /// Prompt tokens read from the provider's cache.
    pub cached_input: Usd,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: Usd,
    /// Reply tokens, reasoning included.
    pub output: Usd,
    /// The sum.
    pub total: Usd,
}

/// What the provider's prompt cache costs, as shares of the price of an uncached token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheShares {
    /// Tokens of the shortest prompt that is cached.
    pub minimum: usize,
    /// Of a token that is read from it.
    pub read: f64,
    /// Of a token that is written to it for its usual lifetime.
    pub write: f64,
    /// Of a token that is written to it for an hour.
    pub write_hour: f64,
}

impl CacheShares {
    /// The shares in a request that writes this. Where writing has a price, only what a request marks is written: without
    /// a mark all of it is paid each time.
    #[must_use]
    pub fn of_request(self, writes: CacheWrites) -> Self {
        match writes {
            CacheWrites::Nothing if self.write > 1.0 => Self { read: 1.0, write: 1.0, ..self },
            CacheWrites::Hour => Self { write: self.write_hour, ..self },
            CacheWrites::Nothing | CacheWrites::Usual => self,
        }
    }

    /// The shares in a prompt of this many tokens: one that is too short is not cached, so all of it is paid each time.
    #[must_use]
    pub fn of_prompt(self, tokens: usize) -> Self {
        if tokens < self.minimum { Self { read: 1.0, write: 1.0, ..self } } else { self }
    }
}

impl Rates {
    /// The highest of the prices of a prompt token.
    fn max_input(&self, writes: CacheWrites) -> Price {
        let usual = if writes == CacheWrites::Nothing { Price::default() } else { self.cache_write };
        let hour = if writes == CacheWrites::Hour { self.cache_write_1h } else { Price::default() };
        [self.input, self.cached_input, usual, hour].into_iter().max().unwrap_or_default()
    }

    fn cost(&self, usage: &Usage) -> Cost {
        let uncached = usage.input.saturating_sub(usage.cached_input).saturating_sub(usage.cache_write);
        let hour = usage.cache_write_1h.min(usage.cache_write);
        let input = self.input.of(uncached);
        let cached_input = self.cached_input.of(usage.cached_input);
        let cache_write = self.cache_write.of(usage.cache_write - hour) + self.cache_write_1h.of(hour);
        let output = self.output.of(usage.output);
        Cost {
            input,
            cached_input,
            cache_write,
            output,
            total: [input, cached_input, cache_write, output].into_iter().sum(),
        }
    }
}

impl Prices {
    /// The same rates for every service and length.
    pub fn flat(rates: Rates) -> Self {
        Self { base: rates, tiers: Arc::default() }
    }

    /// Rates by service and length; `None` if there are none for short prompts in the usual service.
    pub fn from_tiers(tiers: impl IntoIterator<Item = RateTier>) -> Option<Self> {
        let mut tiers: Vec<RateTier> = tiers.into_iter().collect();
        tiers.sort_by_key(|tier| (tier.service as u8, tier.above));
        let is_base = |tier: &&RateTier| tier.service == Service::Standard && tier.above == 0;
        let base = tiers.iter().find(is_base)?.rates;
        Some(Self { base, tiers: tiers.into() })
    }

    /// All rates, by service and length.
    pub fn tiers(&self) -> impl Iterator<Item = RateTier> {
        let flat = RateTier { service: Service::Standard, above: 0, rates: self.base };
        self.tiers.is_empty().then_some(flat).into_iter().chain(self.tiers.iter().copied())
    }

    /// The rates of a prompt of this length in a service; those of the usual one, where this has none.
    pub fn rates(&self, service: Service, prompt: u64) -> &Rates {
        let of = |service| {
            let holds =
                |tier: &&RateTier| tier.service == service && (tier.above == 0 || prompt > tier.above);
            self.tiers.iter().rev().find(holds).map(|tier| &tier.rates)
        };
        of(service).or_else(|| of(Service::Standard)).unwrap_or(&self.base)
    }

    /// What the provider's cache costs in short prompts; `None` where prompts cost nothing.
    pub fn cache_shares(&self) -> Option<CacheShares> {
        let Rates { input, cached_input, cache_write, cache_write_1h, .. } = self.base;
        let share = |price: Price| price.0.0 as f64 / input.0.0 as f64;
        let shares = || CacheShares {
            minimum: 0,
            read: share(cached_input),
            write: share(cache_write),
            write_hour: share(cache_write_1h),
        };
        (input.0.0 > 0).then(shares)
    }

    /// The cost of `tokens` tokens at the highest of the prices.
    pub fn max_cost(&self, tokens: u64) -> Usd {
        let rates = Billable::USUAL.services.iter().map(|service| self.rates(*service, tokens));
        let prices = rates.flat_map(|rates| [rates.max_input(CacheWrites::Usual), rates.output]);
        prices.max().unwrap_or_default().of(tokens)
    }

    /// The most that a call can cost which uses at most this.
    pub fn most(&self, max: &Usage, may: Billable<'_>) -> Usd {
        let cost = |service: &Service| {
            let rates = self.rates(*service, max.input);
            rates.max_input(may.writes).of(max.input) + rates.output.of(max.output)
        };
        may.services.iter().map(cost).max().unwrap_or_default()
    }

    /// What a call with this usage costs. Only for single calls: a sum of several is longer than each of them.
    pub fn cost(&self, usage: &Usage) -> Cost {
        self.rates(usage.service, usage.input).cost(usage)
    }
}

impl Serialize for Prices {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.tiers.len() <= 1 {
            self.base.serialize(serializer)
        } else {
            serializer.collect_seq(&*self.tiers)
        }
    }
}

/// The non-negative decimal number `text`, times ten to the power of `decimals`; `None` when it has more decimal
/// places, is too large, or is not such a number.
fn parse_decimal(text: &str, decimals: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > decimals || !digits(whole) || !digits(fraction) {
        return None;
    }
    format!("{whole}{fraction:0<decimals$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(dollars: &str) -> Price {
        Price::per_million(dollars).unwrap()
    }

    #[test]
    fn prices_of_the_conversation_profile_are_exact() {
        let sonnet = Prices::flat(Rates {
            input: price("3"),
            cached_input: price("0.3"),
            cache_write: price("3.75"),
            cache_write_1h: price("6"),
            output: price("15"),
        });
        let usage = Usage {
            input: 10_000,
            cached_input: 6_000,
            cache_write: 1_000,
            output: 500,
            reasoning: 200,
            ..Usage::default()
        };
        let cost = sonnet.cost(&usage);
        assert_eq!(cost.input.to_string(), "0.009", "3,000 uncached tokens at $0.003 per 1K (R4-1.4)");
        assert_eq!(cost.cached_input.to_string(), "0.0018");
        assert_eq!(cost.cache_write.to_string(), "0.00375");
        assert_eq!(cost.output.to_string(), "0.0075", "reasoning is part of the output");
        assert_eq!(cost.total.to_string(), "0.02205");
        let hour = sonnet.cost(&Usage { cache_write_1h: 400, ..usage });
        assert_eq!(hour.cache_write.to_string(), "0.00465", "600 for five minutes, 400 for an hour");
        let titan = Prices::flat(Rates { input: price("0.02"), ..Rates::default() });
        let one = titan.cost(&Usage { input: 1, ..Usage::default() });
        assert_eq!(one.total.picos(), 20_000, "$0.00002 per 1K (R4-1.6)");
    }

    #[test]
    fn the_tier_that_applies_is_the_services_and_the_prompts() {
        let rates = |input, output| Rates {
            input: price(input),
            cached_input: price("0.1"),
            cache_write: price("2"),
            cache_write_1h: price("3"),
            output: price(output),
        };
        let tier = |service, above, rates| RateTier { service, above, rates };
        let tiers = [
            tier(Service::Priority, 0, rates("10", "60")),
            tier(Service::Standard, 200_000, rates("4", "9")),
            tier(Service::Standard, 0, rates("1", "6")),
            tier(Service::Batch, 0, rates("0.5", "3")),
        ];
        let prices = Prices::from_tiers(tiers).unwrap();
        let cost = |service, input| {
            prices.cost(&Usage { input, output: 1_000_000, service, ..Usage::default() }).total.to_string()
        };
        assert_eq!(cost(Service::Standard, 200_000), "6.2");
        assert_eq!(cost(Service::Standard, 200_001), "9.800004", "all of it at the dearer tier");
        assert_eq!(cost(Service::Priority, 300_000), "63", "a service with no dearer tier keeps its own");
        assert_eq!(cost(Service::Batch, 100_000), "3.05");
        assert_eq!(cost(Service::Flex, 100_000), "6.1", "a service without prices costs the usual ones");
        assert_eq!(Prices::from_tiers([tier(Service::Batch, 0, rates("1", "1"))]), None);
        // What is reserved covers every service, and every use of the cache, that the request allows.
        let max = Usage { input: 100_000, output: 1_000_000, ..Usage::default() };
        let most = |services, writes| prices.most(&max, Billable { services, writes }).to_string();
        assert_eq!(most(&[Service::Standard][..], CacheWrites::Nothing), "6.1");
        assert_eq!(most(&[Service::Standard][..], CacheWrites::Usual), "6.2");
        assert_eq!(most(&[Service::Standard][..], CacheWrites::Hour), "6.3");
        assert_eq!(prices.most(&max, Billable::USUAL).to_string(), "61");
        assert_eq!(prices.max_cost(1_000_000).to_string(), "60");
        let cache = CacheShares { minimum: 1_024, ..prices.cache_shares().unwrap() };
        assert_eq!((cache.read, cache.write), (0.1, 2.0));
        assert_eq!(cache.of_prompt(1_024), cache);
        assert_eq!((cache.of_prompt(1_023).read, cache.of_prompt(1_023).write), (1.0, 1.0));
        let written = |writes| (cache.of_request(writes).read, cache.of_request(writes).write);
        assert_eq!(written(CacheWrites::Usual), (0.1, 2.0));
        assert_eq!(written(CacheWrites::Hour), (0.1, cache.write_hour));
        assert_eq!(written(CacheWrites::Nothing), (1.0, 1.0), "nothing is marked");
        let free = CacheShares { write: 1.0, ..cache };
        assert_eq!(free.of_request(CacheWrites::Nothing), free, "the provider writes what it likes");
    }

    #[test]
    fn a_price_is_a_plain_decimal_of_at_most_six_places() {
        for good in ["0", "3", "3.0", "0.02", "0.000001", "1.25000000"] {
            assert!(Price::per_million(good).is_some(), "{good}");
        }
        for bad in ["", "-1", "+1", ".5", "1e3", "0.0000001", "nan", "99999999999999999999", "1.2.3", "１"] {
            assert_eq!(Price::per_million(bad), None, "{bad}");
        }
    }

    #[test]
    fn amounts_round_trip_and_never_overflow() {
        for picos in [0, 1, 999, 1_000_000_000_000, 1_500_000_000_001, u64::MAX] {
            let usd = Usd::from_picos(picos);
            let json = serde_json::to_string(&usd).unwrap();
            assert_eq!(serde_json::from_str::<Usd>(&json).unwrap(), usd, "{json}");
        }
        let dear = Prices::flat(Rates { input: price("1000000"), ..Rates::default() });
        let huge = Usage { input: u64::MAX, cached_input: 3, cache_write: u64::MAX, ..Usage::default() };
        assert_eq!(
            dear.cost(&huge).input,
            Usd::default(),
            "a usage that contradicts itself bills nothing twice"
        );
        assert_eq!(dear.cost(&Usage { input: u64::MAX, ..Usage::default() }).total.picos(), u64::MAX);
    }
}
