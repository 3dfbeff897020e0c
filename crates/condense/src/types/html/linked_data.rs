//! JSON-LD: a page's machine-readable statements. Knows the few schema.org terms that captures use; anything else is
//! kept unchanged.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use larder_text::markup::{Token, TokenKind, attribute};

/// Maximum bytes of JSON-LD read per page.
const LARGEST_JSON: usize = 512 << 10;
/// Maximum number of values examined.
const MAX_VALUES: usize = 5_000;
/// Maximum number of comments and products listed.
const MAX_LISTED: usize = 20;

/// All JSON-LD of a page.
#[derive(Debug, Default)]
pub(super) struct LinkedData {
    /// In document order.
    pub(super) values: Vec<Value>,
}

impl LinkedData {
    pub(super) fn of(page: &str, tokens: &[Token]) -> Self {
        let (mut values, mut left) = (Vec::new(), LARGEST_JSON);
        for index in 0..tokens.len() {
            let Some(source) = script(page, tokens, index).filter(|source| source.len() <= left) else {
                continue;
            };
            if let Ok(value) = serde_json::from_str(source) {
                left -= source.len();
                values.push(value);
            }
        }
        Self { values }
    }

    /// The page's kind, from the first type that implies one.
    pub(super) fn kind(&self) -> Option<&'static str> {
        objects(&self.values).find_map(|object| {
            types(object).find_map(|name| match name {
                "DiscussionForumPosting" | "QAPage" => Some("forum_thread"),
                "Product" | "ProductGroup" => Some("product"),
                "Article" | "NewsArticle" | "BlogPosting" | "TechArticle" | "Report" => Some("article"),
                "Recipe" => Some("recipe"),
                "Event" => Some("event"),
                "JobPosting" => Some("job_posting"),
                "VideoObject" => Some("video"),
                "ProfilePage" => Some("profile"),
                "FAQPage" => Some("faq"),
                _ => None,
            })
        })
    }

    pub(super) fn comment_count(&self) -> Option<u64> {
        objects(&self.values).find_map(|object| {
            let about_comments =
                object.get("interactionType").is_some_and(|kind| kind.to_string().contains("Comment"));
            let counted = about_comments.then(|| object.get("userInteractionCount")).flatten();
            number(object.get("commentCount").or(counted)?)
        })
    }

    /// The comments in the data.
    pub(super) fn comments(&self) -> Vec<Value> {
        let lists = objects(&self.values).filter_map(|object| object.get("comment"));
        let all = lists.flat_map(|list| list.as_array().map_or(std::slice::from_ref(list), Vec::as_slice));
        let listed = all.filter_map(|comment| {
            let text = comment.get("text").or_else(|| comment.get("description"))?.as_str()?;
            let author = comment.get("author").and_then(name_of);
            Some(json!({"author": author, "points": comment.get("upvoteCount").and_then(number), "text": text}))
        });
        listed.take(MAX_LISTED).collect()
    }

    /// The products in the data, with their prices.
    pub(super) fn products(&self) -> Vec<Value> {
        let products = objects(&self.values).filter(|object| types(object).any(|name| name == "Product"));
        let listed = products.filter_map(|product| {
            let name = product.get("name")?.as_str()?;
            let offers = product.get("offers").map_or(&[][..], |offers| {
                offers.as_array().map_or(std::slice::from_ref(offers), Vec::as_slice)
            });
            let offer = offers.first();
            let of_offer = |key: &str| offer.and_then(|offer| offer.get(key)).and_then(text);
            let availability = of_offer("availability");
            Some(json!({
                "name": name,
                "price": price_of(offers),
                "currency": of_offer("priceCurrency"),
                "availability": availability.map(|word| word.rsplit('/').next().unwrap_or_default().to_owned()),
                "url": of_offer("url").or_else(|| product.get("url").and_then(text)),
            }))
        });
        listed.take(MAX_LISTED).collect()
    }
}

/// The price of offers: of several in the currency of the first the lowest and the highest.
fn price_of(offers: &[Value]) -> Option<String> {
    let currency = |offer: &Value| offer.get("priceCurrency").and_then(text);
    let first = offers.first().and_then(currency);
    let same: Vec<&Value> = offers.iter().filter(|offer| currency(offer) == first).collect();
    let named = |name| same.iter().filter_map(move |offer| offer.get(name).and_then(text));
    let prices: Vec<String> = ["price", "lowPrice", "highPrice"].into_iter().flat_map(named).collect();
    let amounts: Option<Vec<f64>> = prices.iter().map(|price| price.parse().ok()).collect();
    // `1,299.00` cannot be compared.
    let Some(amounts) = amounts else { return prices.into_iter().next() };
    let mut known: Vec<(f64, String)> = amounts.into_iter().zip(prices).collect();
    known.sort_by(|one, other| one.0.total_cmp(&other.0));
    match &known[..] {
        [(low, first), .., (high, last)] if low < high => Some(format!("{first} to {last}")),
        [(_, price), ..] => Some(price.clone()),
        [] => None,
    }
}

/// The JSON-LD in a token.
pub(super) fn script<'p>(page: &'p str, tokens: &[Token], index: usize) -> Option<&'p str> {
    let token = tokens.get(index).filter(|token| token.kind == TokenKind::Hidden)?;
    let tag = index.checked_sub(1).map_or("", |tag| &page[tokens[tag].range.clone()]);
    let kind = attribute(tag, "type").unwrap_or_default().trim();
    let is_script = page[token.name.clone()].eq_ignore_ascii_case("script");
    (is_script && kind.eq_ignore_ascii_case("application/ld+json")).then(|| &page[token.range.clone()])
}

/// Every object in the values, breadth first, without recursion.
pub(super) fn objects(values: &[Value]) -> impl Iterator<Item = &Map<String, Value>> {
    let mut queue: VecDeque<&Value> = values.iter().collect();
    let mut left = MAX_VALUES;
    std::iter::from_fn(move || {
        while let Some(value) = queue.pop_front() {
            left = left.checked_sub(1)?;
            match value {
                Value::Array(items) => queue.extend(items),
                Value::Object(fields) => {
                    queue.extend(fields.values());
                    return Some(fields);
                }
                _ => {}
            }
        }
        None
    })
}

fn types(object: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let kind = object.get("@type");
    let all = kind.map_or(&[][..], |kind| kind.as_array().map_or(std::slice::from_ref(kind), Vec::as_slice));
    all.iter().filter_map(Value::as_str).map(|name| name.rsplit('/').next().unwrap_or(name))
}

fn name_of(value: &Value) -> Option<String> {
    let one = value.as_array().map_or(Some(value), |all| all.first())?;
    text(one.get("name").unwrap_or(one))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}
