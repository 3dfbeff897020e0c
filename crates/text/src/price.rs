//! The cost of a call, computed in exact integers from its usage and the model table's prices. Knows no provider.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::usage::Usage;

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    fn of(self, tokens: u64) -> Usd {
        Usd(self.0.0.saturating_mul(tokens))
    }
}

/// What a model's tokens cost (R4-8.6). Reasoning tokens are billed as output, of which they are a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Prompt tokens.
    pub input: Price,
    /// Prompt tokens read from the provider's cache.
    pub cached_input: Price,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: Price,
    /// Reply tokens.
    pub output: Price,
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

/// Prices of the provider's prompt cache, as shares of the price of an uncached token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheShares {
    /// Of a token that is read from it.
    pub read: f64,
    /// Of a token that is written to it.
    pub write: f64,
}

impl Prices {
    /// What the provider's cache costs; `None` where prompts cost nothing.
    pub fn cache_shares(&self) -> Option<CacheShares> {
        let input = self.input.0.0;
        let share = |price: Price| price.0.0 as f64 / input as f64;
        (input > 0).then(|| CacheShares { read: share(self.cached_input), write: share(self.cache_write) })
    }

    /// The cost of `tokens` tokens at the highest of the prices.
    pub fn max_cost(&self, tokens: u64) -> Usd {
        let kinds = [self.input, self.cached_input, self.cache_write, self.output];
        kinds.map(|price| price.of(tokens)).into_iter().max().unwrap_or_default()
    }

    /// What a call with this usage costs.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let uncached = usage.input.saturating_sub(usage.cached_input).saturating_sub(usage.cache_write);
        let input = self.input.of(uncached);
        let cached_input = self.cached_input.of(usage.cached_input);
        let cache_write = self.cache_write.of(usage.cache_write);
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
        let sonnet = Prices {
            input: price("3"),
            cached_input: price("0.3"),
            cache_write: price("3.75"),
            output: price("15"),
        };
        let usage =
            Usage { input: 10_000, cached_input: 6_000, cache_write: 1_000, output: 500, reasoning: 200 };
        let cost = sonnet.cost(&usage);
        assert_eq!(cost.input.to_string(), "0.009", "3,000 uncached tokens at $0.003 per 1K (R4-1.4)");
        assert_eq!(cost.cached_input.to_string(), "0.0018");
        assert_eq!(cost.cache_write.to_string(), "0.00375");
        assert_eq!(cost.output.to_string(), "0.0075", "reasoning is part of the output");
        assert_eq!(cost.total.to_string(), "0.02205");
        let titan = Prices { input: price("0.02"), ..Prices::default() };
        let one = titan.cost(&Usage { input: 1, ..Usage::default() });
        assert_eq!(one.total.picos(), 20_000, "$0.00002 per 1K (R4-1.6)");
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
        let dear = Prices { input: price("1000000"), ..Prices::default() };
        let huge = Usage { input: u64::MAX, cached_input: 3, cache_write: u64::MAX, ..Usage::default() };
        assert_eq!(
            dear.cost(&huge).input,
            Usd::default(),
            "a usage that contradicts itself bills nothing twice"
        );
        assert_eq!(dear.cost(&Usage { input: u64::MAX, ..Usage::default() }).total.picos(), u64::MAX);
    }
}
