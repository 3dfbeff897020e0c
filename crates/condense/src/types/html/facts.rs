//! What a page says about itself in its metadata: title, author, date, price, address.
//!
//! Knows `<title>`, `<meta>`, `<link rel=canonical>` and JSON-LD; does not know the page's text. Values are copied
//! verbatim, never shortened; overlong ones are omitted.

use serde_json::Value;

use super::linked_data::{objects, script};
use larder_text::entities::plain;
use larder_text::markup::{Token, TokenKind, attribute};

/// Longer values are text, not facts.
const LONGEST_VALUE: usize = 200;
/// Larger JSON-LD is ignored.
const LARGEST_JSON: usize = 256 << 10;

/// Facts in display order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Title,
    Site,
    Author,
    Published,
    Modified,
    Price,
    Currency,
    Availability,
    Brand,
    Rating,
    Reviews,
    Address,
    Description,
}

const FACTS: usize = 13;

const NAMES: [(Fact, &str); FACTS] = [
    (Fact::Title, "title"),
    (Fact::Site, "site"),
    (Fact::Author, "author"),
    (Fact::Published, "published"),
    (Fact::Modified, "modified"),
    (Fact::Price, "price"),
    (Fact::Currency, "currency"),
    (Fact::Availability, "availability"),
    (Fact::Brand, "brand"),
    (Fact::Rating, "rating"),
    (Fact::Reviews, "reviews"),
    (Fact::Address, "address"),
    (Fact::Description, "description"),
];

/// What a page says about itself; the first value for a fact wins.
#[derive(Debug, Default)]
pub(super) struct PageFacts([Option<String>; FACTS]);

impl PageFacts {
    pub(super) fn of(page: &str, tokens: &[Token]) -> Self {
        let mut facts = Self::default();
        let mut html_title = None;
        for (index, token) in tokens.iter().enumerate() {
            let text = &page[token.range.clone()];
            let name = &page[token.name.clone()];
            match token.kind {
                TokenKind::Open if name.eq_ignore_ascii_case("meta") => facts.meta(text),
                TokenKind::Open if name.eq_ignore_ascii_case("link") => {
                    let rel = attribute(text, "rel").filter(|rel| rel.eq_ignore_ascii_case("canonical"));
                    facts.set(Fact::Address, rel.and_then(|_| attribute(text, "href")).unwrap_or_default());
                }
                TokenKind::Hidden if name.eq_ignore_ascii_case("title") => {
                    html_title.get_or_insert(text);
                }
                TokenKind::Hidden if text.len() <= LARGEST_JSON => {
                    let source = script(page, tokens, index).unwrap_or_default();
                    let value: Option<Value> = serde_json::from_str(source).ok();
                    for (key, value) in objects(value.as_slice()).flatten() {
                        facts.json_field(key, value, source);
                    }
                }
                _ => {}
            }
        }
        facts.set(Fact::Title, html_title.unwrap_or_default());
        facts
    }

    /// Every known fact with its name.
    pub(super) fn known(&self) -> impl Iterator<Item = (&'static str, &str)> {
        NAMES.into_iter().filter_map(|(fact, name)| Some((name, self.get(fact)?)))
    }

    /// The page's title.
    pub(super) fn title(&self) -> Option<&str> {
        self.get(Fact::Title)
    }

    /// The name its site gives itself.
    pub(super) fn site(&self) -> Option<&str> {
        self.get(Fact::Site)
    }

    /// The page's canonical address.
    pub(super) fn address(&self) -> Option<&str> {
        self.get(Fact::Address)
    }

    /// One line in brackets, with its line break; empty if nothing is known. `visible` is text that the reader sees
    /// anyway.
    pub(super) fn line(&self, visible: &str) -> String {
        let mut said: Vec<String> = Vec::new();
        let labelled = [
            (Fact::Site, "site "),
            (Fact::Author, "by "),
            (Fact::Published, "published "),
            (Fact::Modified, "modified "),
            (Fact::Availability, ""),
            (Fact::Brand, "brand "),
            (Fact::Rating, "rating "),
            (Fact::Reviews, "reviews "),
            (Fact::Address, ""),
        ];
        said.extend(self.get(Fact::Title).map(|title| format!("\"{title}\"")));
        if let Some(price) = self.get(Fact::Price) {
            let currency = self.get(Fact::Currency).unwrap_or_default();
            said.push(format!("price {price} {currency}").trim_end().to_owned());
        }
        said.extend(
            labelled.into_iter().filter_map(|(fact, label)| Some(format!("{label}{}", self.get(fact)?))),
        );
        if visible.len() < LONGEST_VALUE {
            said.extend(self.get(Fact::Description).map(str::to_owned));
        }
        if said.is_empty() { String::new() } else { format!("[Page: {}]\n\n", said.join("; ")) }
    }

    fn get(&self, fact: Fact) -> Option<&str> {
        self.0[fact as usize].as_deref()
    }

    fn set(&mut self, fact: Fact, raw: &str) {
        let slot = &mut self.0[fact as usize];
        if slot.is_none() && raw.len() <= 2 * LONGEST_VALUE {
            *slot = Some(plain(raw)).filter(|value| !value.is_empty() && value.len() <= LONGEST_VALUE);
        }
    }

    fn meta(&mut self, tag: &str) {
        let Some(key) = ["property", "name", "itemprop"].into_iter().find_map(|name| attribute(tag, name))
        else {
            return;
        };
        let fact = match key.to_ascii_lowercase().as_str() {
            "og:title" | "twitter:title" => Fact::Title,
            "og:site_name" => Fact::Site,
            "author" | "article:author" | "dc.creator" => Fact::Author,
            "article:published_time" | "datepublished" | "dc.date" | "date" => Fact::Published,
            "article:modified_time" | "datemodified" => Fact::Modified,
            "product:price:amount" | "og:price:amount" | "price" => Fact::Price,
            "product:price:currency" | "og:price:currency" | "pricecurrency" => Fact::Currency,
            "product:availability" | "og:availability" | "availability" => Fact::Availability,
            "product:brand" | "og:brand" => Fact::Brand,
            "ratingvalue" => Fact::Rating,
            "reviewcount" => Fact::Reviews,
            "og:url" => Fact::Address,
            "description" | "og:description" => Fact::Description,
            _ => return,
        };
        let value = attribute(tag, "content").unwrap_or_default();
        // A profile's address is not a name.
        if fact != Fact::Author || !value.contains("://") {
            self.set(fact, value);
        }
    }

    fn json_field(&mut self, key: &str, value: &Value, source: &str) {
        let fact = match key {
            "headline" => Fact::Title,
            "author" => Fact::Author,
            "datePublished" => Fact::Published,
            "dateModified" => Fact::Modified,
            "price" | "lowPrice" => Fact::Price,
            "priceCurrency" => Fact::Currency,
            "availability" => Fact::Availability,
            "brand" => Fact::Brand,
            "ratingValue" => Fact::Rating,
            "reviewCount" | "ratingCount" => Fact::Reviews,
            _ => return,
        };
        let named = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
        let text = match value {
            Value::String(text) => text.clone(),
            // A number that was rounded when parsed would not appear in the source.
            Value::Number(number) => {
                Some(number.to_string()).filter(|n| source.contains(n.as_str())).unwrap_or_default()
            }
            Value::Object(_) => named(value).unwrap_or_default(),
            Value::Array(items) => {
                let names: Vec<String> = items.iter().filter_map(named).collect();
                names.join(", ")
            }
            _ => return,
        };
        let text =
            if fact == Fact::Availability { text.rsplit('/').next().unwrap_or_default() } else { &text };
        self.set(fact, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_text::elements::tokens;

    fn line(page: &str) -> String {
        PageFacts::of(page, &tokens(page)).line("")
    }

    #[test]
    fn meta_title_and_json_ld_form_one_line() {
        let page = r#"<html><head><title>Lamp &amp; shade</title><meta property="og:site_name" content="Shop">
            <script type="application/ld+json">{"@type":"Product","offers":[{"price":12.90,"priceCurrency":"EUR",
            "availability":"https://schema.org/InStock"}],"brand":{"name":"Lux"}}</script>
            <link rel=canonical href="https://shop.example/lamp"></head>"#;
        let expected = "[Page: \"Lamp & shade\"; price 12.9 EUR; site Shop; InStock; brand Lux; https://shop.example/lamp]\n\n";
        assert_eq!(line(page), expected);
    }

    #[test]
    fn broken_and_overlong_facts_are_omitted() {
        let deep = "[".repeat(100_000);
        let long = "x".repeat(5_000);
        for page in [
            format!("<script type=application/ld+json>{deep}</script>"),
            "<script type=application/ld+json>{\"author\":".to_owned(),
            format!("<title>{long}</title>"),
            "<meta property><meta content=x><link rel=canonical>".to_owned(),
        ] {
            assert_eq!(line(&page), "", "{}", &page[..40]);
        }
    }
}
