//! The cost of a request, and what it would have cost if sent unchanged. Knows prices and counts only.

use larder_models::chat::Usage;
use larder_models::price::{Prices, Usd};

use larder_proxy::record::{Bill, Rehydration, Tokens};

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

/// Divides what the further calls of the model took among the originals that it read back in them, by their tokens. `usage`
/// and `at_once` as for [`calculate`]; `prices` if known.
pub fn divide(usage: &Usage, at_once: &Usage, prices: Option<&Prices>, read: &mut [Rehydration]) {
    let total = |usage: &Usage| usage.input.saturating_add(usage.output);
    let tokens = total(usage).saturating_sub(total(at_once));
    let picos = |usage: &Usage| prices.map(|prices| prices.cost(usage).total.picos());
    let cost = picos(usage).zip(picos(at_once)).map(|(all, once)| all.saturating_sub(once));
    let weight = |read: &Rehydration| u128::from(read.tokens.max(1));
    let all: u128 = read.iter().map(weight).sum();
    for one in read {
        let share = |of: u64| u64::try_from(u128::from(of) * weight(one) / all).unwrap_or(u64::MAX);
        (one.spent_tokens, one.cost) = (share(tokens), cost.map(share).map(Usd::from_picos));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_models::price::Price;

    #[test]
    fn what_is_read_back_bears_the_further_calls_by_its_tokens() {
        let price = |dollars| Price::per_million(dollars).unwrap();
        let prices = Prices {
            input: price("1"),
            cached_input: price("0.1"),
            cache_write: price("1"),
            output: price("5"),
        };
        let read = |tokens| Rehydration {
            pointer: String::new(),
            found: true,
            bytes: 0,
            tokens,
            tool: "shell".to_owned(),
            spent_tokens: 0,
            cost: None,
        };
        let at_once = Usage { input: 1_000, output: 50, ..Usage::default() };
        let usage = Usage { input: 2_400, cached_input: 1_000, output: 110, ..Usage::default() };
        let mut all = [read(300), read(100)];
        divide(&usage, &at_once, Some(&prices), &mut all);
        // 1,460 tokens more; 400 new ones at 1, 1,000 cached ones at 0.1, 60 of the reply at 5 dollars a million.
        let shares = all.each_ref().map(|one| (one.spent_tokens, one.cost.unwrap().to_string()));
        assert_eq!(shares, [(1_095, "0.0006".to_owned()), (365, "0.0002".to_owned())]);
        divide(&usage, &at_once, None, &mut all);
        assert_eq!((all[0].spent_tokens, all[0].cost), (1_095, None));
        divide(&usage, &at_once, None, &mut []);
    }

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
