//! A price that a page keeps in attributes for its scripts, such as `data-price="299.90"`.
//!
//! Knows such attributes, and where prices of nothing stand. Several values are of several things, and a whole number
//! without a currency may be one of cents: neither is the price of the page.

use std::ops::Range;

use crate::entities::plain;
use crate::markup::{Token, TokenKind, attribute, attributes};

/// Attributes with a price.
const PRICES: [&str; 3] = ["data-price", "data-product-price", "data-price-amount"];
/// One that may be an amount of anything, unless a currency is next to it.
const AMOUNT: &str = "data-amount";
/// Attributes of the same element with the currency.
const CURRENCIES: [&str; 3] = ["data-currency", "data-price-currency", "data-currency-code"];
/// Words before the least price of orders, and those that may be before that of a product, too.
const OVER: [&str; 4] = ["over", "above", "exceeding", "über"];
const FROM: [&str; 5] = ["from", "ab", "dès", "desde", "vanaf"];
/// What such words are about if they are no price of something that is sold: the beginning of a word, or a part of one.
const ORDERS: [&str; 11] = [
    " orders",
    "shipping",
    "delivery",
    "versand",
    "bestellung",
    "bestellwert",
    "lieferung",
    "livraison",
    "envío",
    "pedidos",
    "verzend",
];
/// The same before [`OVER`] alone: a sofa may be *delivered from $299*.
const ORDERING: [&str; 5] = [" order", "deliver", "bestell", "liefer", "pedido"];
/// Bytes before a price in which these words are.
const NEAR: usize = 160;
/// Elements with prices of nothing that the page sells: links to other pages, and what a price was before.
const OTHERS: [&str; 5] = ["nav", "footer", "del", "s", "strike"];
/// Longer values cannot be read.
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

/// The only price in attributes of a page. One that cannot be read may be that of the page: then there is none.
pub fn in_attributes(page: &str, tokens: &[Token]) -> Option<AttributePrice> {
    let mut others = 0_usize;
    let tags = tokens.iter().map(|token| (token, &page[token.range.clone()])).filter(|(token, tag)| {
        let is_other = OTHERS.iter().any(|name| name.eq_ignore_ascii_case(&page[token.name.clone()]));
        match token.kind {
            TokenKind::Open if is_other => others += 1,
            TokenKind::Close if is_other => others = others.saturating_sub(1),
            _ => {}
        }
        token.kind == TokenKind::Open && others == 0 && !is_old(tag)
    });
    let mut prices = tags.flat_map(|(_, tag)| of_tag(tag));
    let first = prices.next()??;
    let is_same = |price: &AttributePrice| price.cents == first.cents && price.currency == first.currency;
    prices.all(|price| price.as_ref().is_some_and(is_same)).then_some(first)
}

/// Whether a tag is of what a price was before, by its class: `price old`, `was-price`.
fn is_old(tag: &str) -> bool {
    let words =
        |class: &str| class.split(|char: char| !char.is_alphanumeric()).map(str::to_lowercase).collect();
    let words: Vec<String> = attribute(tag, "class").map(words).unwrap_or_default();
    words.iter().any(|word| ["old", "was", "former"].contains(&word.as_str()))
}

/// The prices of a tag that are neither empty nor zero; `None` for what cannot be read.
fn of_tag(tag: &str) -> Vec<Option<AttributePrice>> {
    let named = |names: &[&str]| {
        let is_named = move |name: &str| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        let values = attributes(tag).filter(move |(name, _)| is_named(name));
        values.map(|(_, value)| plain(value).trim().to_owned()).filter(|value| !value.is_empty()).collect()
    };
    let currency: Option<String> = Vec::into_iter(named(&CURRENCIES)).next();
    let amounts = named(&[AMOUNT]).into_iter().filter(|value| currency.is_some() || names_currency(value));
    let prices = named(&PRICES).into_iter().chain(amounts).filter(|price| !is_zero(price));
    let read = |price: String| {
        let cents = cents(&price).filter(|_| price.len() <= LONGEST)?;
        Some(AttributePrice { cents, price, currency: currency.clone() })
    };
    prices.map(read).collect()
}

/// Whether a price is one of nothing: it has digits, all of them zero.
fn is_zero(price: &str) -> bool {
    price.contains('0') && !price.contains(|char: char| char.is_numeric() && char != '0')
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

/// Where the navigation, the footers and the headers of a page are: prices there are of no product.
#[derive(Debug, Default)]
pub struct PageBars(Vec<Range<usize>>);

impl PageBars {
    /// Those of a page. A header within its main content is none.
    pub fn of(page: &str, tokens: &[Token]) -> Self {
        let (mut bars, mut depth, mut main) = (Self::default(), 0_usize, 0_usize);
        for token in tokens {
            let name = &page[token.name.clone()];
            let is = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
            let count = match () {
                () if is(&["nav", "footer"]) || main == 0 && is(&["header"]) => &mut depth,
                () if is(&["main", "article"]) => &mut main,
                () => continue,
            };
            match token.kind {
                TokenKind::Open => *count += 1,
                TokenKind::Close => *count = count.saturating_sub(1),
                _ => continue,
            }
            match bars.0.last_mut().filter(|bar| bar.end == usize::MAX) {
                Some(bar) if depth == 0 => bar.end = token.range.start,
                None if depth > 0 => bars.0.push(token.range.end..usize::MAX),
                _ => {}
            }
        }
        // Without its end, one would hide the rest of the page.
        bars.0.retain(|bar| bar.end < usize::MAX);
        bars
    }

    /// Whether a place of the page is in one.
    pub fn contains(&self, at: usize) -> bool {
        let bar = self.0.partition_point(|bar| bar.start <= at).checked_sub(1);
        bar.is_some_and(|bar| at < self.0[bar].end)
    }
}

/// A text with the signs of currencies next to their numbers: `299€` for `299 €`, `€299` for `€ 299`.
pub fn with_joined_signs(text: &str) -> String {
    let is_sign = |char: &char| "$€£¥₹₩₽".contains(*char);
    let chars: Vec<char> = text.chars().collect();
    let at = |at: Option<usize>| at.and_then(|at| chars.get(at)).copied().unwrap_or(' ');
    let is_apart = |(place, char): &(usize, &char)| {
        let before = |many: usize| at(place.checked_sub(many));
        let after = |many: usize| at(Some(place + many));
        let follows = before(1).is_ascii_digit() && is_sign(&after(1)) && !after(2).is_ascii_digit();
        let leads = is_sign(&before(1)) && after(1).is_ascii_digit();
        let is_taken = before(2).is_ascii_digit() || before(2).is_whitespace() && before(3).is_ascii_digit();
        char.is_whitespace() && (follows || leads && !is_taken)
    };
    chars.iter().enumerate().filter(|one| !is_apart(one)).map(|(_, char)| char).collect()
}

/// Whether the price after a text is the least one of an order: `free shipping on orders over`, `Versand ab`.
pub fn is_threshold(before: &str) -> bool {
    let near = &before[before.floor_char_boundary(before.len().saturating_sub(NEAR))..];
    let sentence = near.rsplit(['.', '!', '?', ';', '\n']).next().unwrap_or_default();
    let sentence = format!(" {}", sentence.trim().to_lowercase());
    let word = sentence.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
    let says = |parts: &[&str]| parts.iter().any(|part| sentence.contains(part));
    let is_over = OVER.contains(&word);
    (is_over || FROM.contains(&word)) && says(&ORDERS) || is_over && says(&ORDERING)
}

/// Whether nothing but the sign or the code of a currency is next to a number.
fn names_currency(price: &str) -> bool {
    let is_number = |char: &char| char.is_ascii_digit() || matches!(char, '.' | ',');
    let rest: String = price.chars().filter(|char| !is_number(char) && !char.is_whitespace()).collect();
    let is_sign =
        ["$", "US$", "€", "£", "¥", "₹", "₩", "₽", "₺", "₪", "zł", "Kč", "kr"].contains(&rest.as_str());
    is_sign || rest.len() == 3 && rest.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_join_their_own_numbers() {
        for (text, joined) in [
            ("ab 299 €", "ab 299€"),
            ("from € 299", "from €299"),
            ("299 € 20 % off", "299€ 20 % off"),
            ("1 234,50 € or $ 5", "1 234,50€ or $5"),
            ("5 $10", "5 $10"),
            ("€", "€"),
        ] {
            assert_eq!(with_joined_signs(text), joined);
        }
    }
}
