//! The cost of a request, and what it would have cost if sent unchanged. Knows prices and counts only.

use larder_models::chat::Usage;
use larder_models::price::{Billable, CacheWrites, Prices, Usd};

use larder_proxy::record::{Bill, Rehydration, Tokens};
use larder_proxy::wire::ApiDialect;
use larder_text::usage::Service;

/// The known pricing of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pricing {
    /// Of the model.
    pub prices: Prices,
    /// Tokens of the conversation's previous request as received: what the provider would have had in its cache.
    pub before: u64,
    /// What the request allows its provider to bill.
    pub may: Billable<'static>,
}

impl Pricing {
    /// The most that a call can cost which uses at most this.
    pub fn most(&self, max: &Usage) -> Usd {
        self.prices.most(max, self.may)
    }
}

/// What a request allows its provider to bill: `service` is its `service_tier`, if it has one. Anthropic and Bedrock
/// write to their cache what is marked in the body; other providers decide by themselves.
pub fn billable(dialect: ApiDialect, service: Option<&str>, body: &str) -> Billable<'static> {
    let services: &[Service] = match service {
        // Flex may be answered as the usual service, never as a dearer one.
        Some("default" | "standard" | "standard_only" | "flex") => &[Service::Standard],
        // An account may have priority as its default, and a request for priority may be answered without.
        None | Some("auto" | "priority") => Billable::USUAL.services,
        Some(_) => &Service::ALL,
    };
    // The names may be written with escapes.
    let names = |text: &str| body.contains(text) || body.contains("\\u00");
    let writes = match dialect {
        ApiDialect::Messages | ApiDialect::Invoke if !names("cache_control") => CacheWrites::Nothing,
        ApiDialect::Converse if !names("cachePoint") => CacheWrites::Nothing,
        ApiDialect::Messages | ApiDialect::Invoke | ApiDialect::Converse if names("\"1h\"") => {
            CacheWrites::Hour
        }
        _ => CacheWrites::Usual,
    };
    Billable { services, writes }
}

/// The bill of a request that cost this, and for which the provider would have reported `at_once` if the model had read
/// nothing back.
///
/// If the request had been sent unchanged, the provider would have read the previous request from its cache, to the
/// extent that it uses its cache at all, and its counts would relate to ours as they do now. A request sent unchanged
/// saves nothing.
pub fn calculate(cost: Usd, at_once: &Usage, tokens: &Tokens, pricing: &Pricing) -> Bill {
    let Pricing { prices, before, .. } = pricing;
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
    let hour = u128::from(at_once.cache_write_1h) * u128::from(cache_write);
    let hour = hour.checked_div(u128::from(at_once.cache_write)).unwrap_or(0);
    let cache_write_1h = u64::try_from(hour).unwrap_or(u64::MAX);
    let without = Usage { input, cached_input, cache_write, cache_write_1h, ..*at_once };
    Bill { cost, without: prices.cost(&without).total }
}

/// Divides what the further calls of the model took among the originals that it read back in them, by their tokens. `usage`
/// and `at_once` as for [`calculate`]; `cost`: what `usage` cost, with the prices, if known.
pub fn divide(usage: &Usage, at_once: &Usage, cost: Option<(Usd, &Prices)>, read: &mut [Rehydration]) {
    let total = |usage: &Usage| usage.input.saturating_add(usage.output);
    let tokens = total(usage).saturating_sub(total(at_once));
    let more = |(all, prices): (Usd, &Prices)| all.picos().saturating_sub(prices.cost(at_once).total.picos());
    let cost = cost.map(more);
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
    use larder_models::price::{Price, RateTier, Rates};

    #[test]
    fn what_is_read_back_bears_the_further_calls_by_its_tokens() {
        let price = |dollars| Price::per_million(dollars).unwrap();
        let prices = Prices::flat(Rates {
            input: price("1"),
            cached_input: price("0.1"),
            cache_write: price("1"),
            cache_write_1h: price("1"),
            output: price("5"),
        });
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
        divide(&usage, &at_once, Some((prices.cost(&usage).total, &prices)), &mut all);
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
        let prices = Prices::flat(Rates {
            input: price("1"),
            cached_input: price("0.1"),
            cache_write: price("1"),
            cache_write_1h: price("2"),
            output: price("0"),
        });
        let pricing = |before| Pricing { prices: prices.clone(), before, may: Billable::USUAL };
        let cost = |usage: &Usage| prices.cost(usage).total;
        let tokens = Tokens { before: 10_000, after: 2_000, ..Tokens::default() };
        let usage = |cached_input| Usage { input: 2_000, cached_input, ..Usage::default() };
        let bill = |usage: &Usage, before| {
            calculate(cost(usage), usage, &tokens, &pricing(before)).without.to_string()
        };
        assert_eq!(bill(&usage(0), 9_000), "0.01", "a provider that caches nothing");
        assert_eq!(bill(&usage(1_000), 9_000), "0.0019", "9,000 from the cache and 1,000 new");
        assert_eq!(bill(&usage(1_000), 0), "0.01", "the first request of a conversation");
        let doubled = Usage { input: 4_000, ..Usage::default() };
        assert_eq!(bill(&doubled, 0), "0.02", "the provider counts twice as many");
        // Two rounds: what is saved by the first is lost again by the second, which would not have been.
        let both = Usage { input: 9_000, ..Usage::default() };
        let bill = calculate(cost(&both), &usage(0), &tokens, &pricing(0));
        assert_eq!((bill.cost.to_string(), bill.without.to_string()), ("0.009".into(), "0.01".into()));
        let untouched = Tokens { after: 10_000, ..tokens };
        let bill = calculate(cost(&usage(1_000)), &usage(1_000), &untouched, &pricing(9_000));
        assert_eq!(
            bill.without, bill.cost,
            "a request sent unchanged saves nothing, regardless of the cache"
        );
    }

    #[test]
    fn a_request_without_larder_would_have_written_to_the_same_cache_in_the_same_service() {
        let price = |dollars| Price::per_million(dollars).unwrap();
        let rates = |input| Rates {
            input: price(input),
            cached_input: price("0"),
            cache_write: price(input),
            cache_write_1h: price("2"),
            output: price("0"),
        };
        let tier = |service, input| RateTier { service, above: 0, rates: rates(input) };
        let prices =
            Prices::from_tiers([tier(Service::Standard, "1"), tier(Service::Priority, "3")]).unwrap();
        let pricing = Pricing { prices, before: 0, may: Billable::USUAL };
        let tokens = Tokens { before: 10_000, after: 2_000, ..Tokens::default() };
        let usage = Usage { input: 2_000, cache_write: 2_000, cache_write_1h: 1_000, ..Usage::default() };
        let without = |usage: &Usage| calculate(Usd::default(), usage, &tokens, &pricing).without.to_string();
        assert_eq!(without(&usage), "0.015", "half for an hour");
        assert_eq!(without(&Usage { service: Service::Priority, cache_write_1h: 0, ..usage }), "0.03");
    }

    #[test]
    fn what_a_request_may_be_billed_follows_from_what_it_asks_for() {
        let may = |dialect, service, body| billable(dialect, service, body);
        let priority = |service| may(ApiDialect::Chat, service, "{}").services.contains(&Service::Priority);
        assert!(priority(None) && priority(Some("auto")) && priority(Some("priority")));
        assert!(!priority(Some("default")) && !priority(Some("flex")));
        let writes = |body| may(ApiDialect::Messages, None, body).writes;
        assert_eq!(writes("{}"), CacheWrites::Nothing);
        assert_eq!(writes(r#"{"cache_control": {"type": "ephemeral"}}"#), CacheWrites::Usual);
        assert_eq!(writes(r#"{"cache_control": {"type": "ephemeral", "ttl": "1h"}}"#), CacheWrites::Hour);
        assert_eq!(writes(r#"{"cache_\u0063ontrol": 1}"#), CacheWrites::Hour, "it cannot be ruled out");
        assert_eq!(may(ApiDialect::Chat, None, "{}").writes, CacheWrites::Usual);
    }
}
