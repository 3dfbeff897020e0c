//! The cost of a request, and what it would have cost if sent unchanged. Knows prices and counts only.

use larder_models::chat::Usage;
use larder_models::price::Prices;

use larder_proxy::record::{Bill, Tokens};

/// The known pricing of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pricing {
    /// Of the model.
    pub prices: Prices,
    /// Tokens of the conversation's previous request as received: what the provider would have had in its cache.
    pub before: u64,
}

/// The bill of a request for which the provider reported `usage`, and would have reported `at_once` if the model had
/// read nothing back.
///
/// If the request had been sent unchanged, the provider would have read the previous request from its cache, to the
/// extent that it uses its cache at all, and its counts would relate to ours as they do now. A request sent unchanged
/// saves nothing.
pub fn calculate(usage: &Usage, at_once: &Usage, tokens: &Tokens, pricing: &Pricing) -> Bill {
    let Pricing { prices, before } = pricing;
    let cost = prices.cost(usage).total;
    if tokens.before == tokens.after {
        return Bill { cost, without: cost };
    }
    let scaled = |ours: u64| match tokens.after {
        0 => ours,
        after => u64::try_from(u128::from(ours) * u128::from(at_once.input) / u128::from(after))
            .unwrap_or(u64::MAX),
    };
    let caches = at_once.cached_input > 0 || at_once.cache_write > 0;
    let input = scaled(tokens.before);
    let cached_input = if caches { scaled(*before).min(input) } else { 0 };
    let cache_write = if at_once.cache_write > 0 { input - cached_input } else { 0 };
    let without = Usage { input, cached_input, cache_write, ..*at_once };
    Bill { cost, without: prices.cost(&without).total }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_models::price::Price;

    #[test]
    fn savings_are_net_of_cache_effects() {
        let price = |dollars| Price::per_million(dollars).unwrap();
        let prices = Prices {
            input: price("1"),
            cached_input: price("0.1"),
            cache_write: price("1"),
            output: price("0"),
        };
        let tokens = Tokens { before: 10_000, after: 2_000, ..Tokens::default() };
        let usage = |cached_input| Usage { input: 2_000, cached_input, ..Usage::default() };
        let bill = |usage: &Usage, before| {
            calculate(usage, usage, &tokens, &Pricing { prices, before }).without.to_string()
        };
        assert_eq!(bill(&usage(0), 9_000), "0.01", "a provider that caches nothing");
        assert_eq!(bill(&usage(1_000), 9_000), "0.0019", "9,000 from the cache and 1,000 new");
        assert_eq!(bill(&usage(1_000), 0), "0.01", "the first request of a conversation");
        let doubled = Usage { input: 4_000, ..Usage::default() };
        assert_eq!(bill(&doubled, 0), "0.02", "the provider counts twice as many");
        // Two rounds: what is saved by the first is lost again by the second, which would not have been.
        let both = Usage { input: 9_000, ..Usage::default() };
        let pricing = Pricing { prices, before: 0 };
        let bill = calculate(&both, &usage(0), &tokens, &pricing);
        assert_eq!((bill.cost.to_string(), bill.without.to_string()), ("0.009".into(), "0.01".into()));
        let untouched = Tokens { after: 10_000, ..tokens };
        let bill = calculate(&usage(1_000), &usage(1_000), &untouched, &Pricing { prices, before: 9_000 });
        assert_eq!(
            bill.without, bill.cost,
            "a request sent unchanged saves nothing, regardless of the cache"
        );
    }
}
