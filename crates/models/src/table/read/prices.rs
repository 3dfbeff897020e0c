//! What tokens cost, in `larder.toml`: one table of prices, or a list of them by service and length of the prompt. Knows no
//! provider.

use std::collections::BTreeMap;

use larder_text::usage::Service;
use toml::Spanned;
use toml::de::DeValue;

use super::super::TableProblemCode;
use super::walk::TableWalk;
use crate::price::{Price, Prices, RateTier, Rates};

const PRICE_KEYS: [&str; 5] = ["input", "cached_input", "cache_write", "cache_write_1h", "output"];
const TIER_KEYS: [&str; 7] =
    ["service", "above", "input", "cached_input", "cache_write", "cache_write_1h", "output"];
/// The longest prompt that a tier may begin above.
const MAX_ABOVE: u64 = 1 << 30;

/// `{ input = 3, … }`, or a list of these, each with `service` and `above`.
pub(super) fn read(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>) -> Option<Prices> {
    let Some(list) = value.get_ref().as_array() else {
        return tier(walk, value, &PRICE_KEYS).map(|tier| Prices::flat(tier.rates));
    };
    let mut tiers = Vec::<RateTier>::new();
    for value in list.iter() {
        let tier = tier(walk, value, &TIER_KEYS)?;
        if tiers.iter().any(|other| (other.service, other.above) == (tier.service, tier.above)) {
            let message =
                format!("`prices` has two tiers of service `{}` above {}", tier.service.as_str(), tier.above);
            walk.problem(TableProblemCode::M006, value.span(), message, "keep one");
            return None;
        }
        tiers.push(tier);
    }
    let prices = Prices::from_tiers(tiers);
    if prices.is_none() {
        let message = "`prices` has no tier for short prompts in the usual service";
        walk.problem(TableProblemCode::M004, value.span(), message, "add one without `service` and `above`");
    }
    prices
}

fn tier(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>, keys: &[&'static str]) -> Option<RateTier> {
    let table = walk.table("prices", value)?;
    let mut found: BTreeMap<&str, Price> = BTreeMap::new();
    let (mut service, mut above) = (Service::Standard, 0);
    for (key, value) in table {
        let Some(name) = keys.iter().copied().find(|name| *name == key.get_ref().as_ref()) else {
            walk.unknown_key(key, "`prices`", keys);
            continue;
        };
        match name {
            "service" => service = self::service(walk, value)?,
            "above" => above = walk.integer("above", value, 1..=MAX_ABOVE)?,
            _ => found.extend(price(walk, name, value).map(|price| (name, price))),
        }
    }
    let Some(&input) = found.get("input") else {
        if !table.contains_key("input") {
            let help = "state US dollars per million tokens";
            walk.problem(TableProblemCode::M004, value.span(), "`prices` lacks `input`", help);
        }
        return None;
    };
    // If a provider bills its cache like any other input, the table need not repeat the price.
    let or = |key, other| found.get(key).copied().unwrap_or(other);
    let cache_write = or("cache_write", input);
    let rates = Rates {
        input,
        cached_input: or("cached_input", input),
        cache_write,
        cache_write_1h: or("cache_write_1h", cache_write),
        output: found.get("output").copied().unwrap_or_default(),
    };
    Some(RateTier { service, above, rates })
}

fn service(walk: &mut TableWalk<'_>, value: &Spanned<DeValue<'_>>) -> Option<Service> {
    let name = walk.string("service", value)?;
    let found = Service::ALL.into_iter().find(|service| service.as_str() == name);
    if found.is_none() {
        let names = Service::ALL.map(Service::as_str);
        walk.unknown_name(TableProblemCode::M003, value.span(), "service", &name, &names);
    }
    found
}

fn price(walk: &mut TableWalk<'_>, name: &str, value: &Spanned<DeValue<'_>>) -> Option<Price> {
    let text = walk.decimal(name, value)?;
    let price = Price::per_million(&text);
    if price.is_none() {
        let message =
            format!("the price `{text}` is not a plain decimal number with at most six decimal places");
        let help = "prices are US dollars per million tokens, such as `0.25`";
        walk.problem(TableProblemCode::M003, value.span(), message, help);
    }
    price
}
