//! A price that a page keeps in attributes for its scripts, such as `data-price="299.90"`.
//!
//! Knows such attributes only. Several values are of several things, and a whole number without a currency may be one of
//! cents: neither is the price of the page.

use crate::entities::plain;
use crate::markup::{Token, TokenKind, attributes};

/// Attributes with a price.
const PRICES: [&str; 3] = ["data-price", "data-product-price", "data-price-amount"];
/// One that may be an amount of anything, unless a currency is next to it.
const AMOUNT: &str = "data-amount";
/// Attributes of the same element with the currency.
const CURRENCIES: [&str; 3] = ["data-currency", "data-price-currency", "data-currency-code"];
/// Longer values are no prices.
const LONGEST: usize = 24;

/// A price as it is written, and the currency next to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributePrice {
    /// As it is written.
    pub price: String,
    /// The currency, if an attribute of the same element has it.
    pub currency: Option<String>,
    cents: u64,
}

/// The only price in attributes of a page.
pub fn in_attributes(page: &str, tokens: &[Token]) -> Option<AttributePrice> {
    let tags = tokens.iter().filter(|token| token.kind == TokenKind::Open);
    let mut prices = tags.flat_map(|tag| of_tag(&page[tag.range.clone()]));
    let first = prices.next()?;
    prices.all(|price| price.cents == first.cents && price.currency == first.currency).then_some(first)
}

fn of_tag(tag: &str) -> Vec<AttributePrice> {
    let named = |names: &[&str]| {
        let is_named = move |name: &str| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        let values = attributes(tag).filter(move |(name, value)| is_named(name) && value.len() <= LONGEST);
        values.map(|(_, value)| plain(value).trim().to_owned()).filter(|value| !value.is_empty()).collect()
    };
    let currency: Option<String> = Vec::into_iter(named(&CURRENCIES)).next();
    let amounts = named(&[AMOUNT]).into_iter().filter(|value| currency.is_some() || names_currency(value));
    let prices = named(&PRICES).into_iter().chain(amounts);
    let read =
        |price: String| Some(AttributePrice { cents: cents(&price)?, price, currency: currency.clone() });
    prices.filter_map(read).collect()
}

/// The cents of a price such as `299.90`, `1.299,00 €` and `$40`; `None` for what may be cents already, or nothing.
fn cents(price: &str) -> Option<u64> {
    let is_part = |char: char| char.is_ascii_digit() || matches!(char, '.' | ',');
    let start = price.find(is_part)?;
    let end = price.rfind(is_part)? + 1;
    let number = &price[start..end];
    let is_one = number.chars().all(is_part) && number.ends_with(|char: char| char.is_ascii_digit());
    let is_bare = number.len() == price.len();
    let decimals = number.rfind(['.', ',']).map_or("", |mark| &number[mark + 1..]);
    let has_cents = (1..=2).contains(&decimals.len());
    if !is_one || !(is_bare && has_cents || names_currency(price)) {
        return None;
    }
    let whole = if has_cents { &number[..number.len() - decimals.len() - 1] } else { number };
    let groups: Vec<&str> = whole.split(['.', ',']).collect();
    if groups.len() > 1 && (groups[0].len() > 3 || groups[1..].iter().any(|group| group.len() != 3)) {
        return None;
    }
    let whole = groups.concat();
    let decimals = if has_cents { decimals } else { "" };
    format!("{whole}{decimals:0<2}").parse().ok().filter(|cents| *cents > 0)
}

/// Whether nothing but the sign or the code of a currency is next to a number.
fn names_currency(price: &str) -> bool {
    let is_number = |char: &char| char.is_ascii_digit() || matches!(char, '.' | ',');
    let rest: String = price.chars().filter(|char| !is_number(char) && !char.is_whitespace()).collect();
    let is_sign =
        ["$", "US$", "€", "£", "¥", "₹", "₩", "₽", "₺", "₪", "zł", "Kč", "kr"].contains(&rest.as_str());
    is_sign || rest.len() == 3 && rest.bytes().all(|byte| byte.is_ascii_uppercase())
}
