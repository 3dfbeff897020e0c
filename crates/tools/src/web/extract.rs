//! Values of a page that does not state them as data: products, comments, specifications (R1-6.9). A recipe finds them;
//! a value counts only if its quote is on the page and states it.

use std::ops::Range;
use std::time::Duration;

use larder_engine::executor::Meter;
use larder_engine::inputs::InputDocument;
use larder_vault::value_names;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::capture::Visited;
use crate::context::ToolContext;
use crate::figures;
use crate::offers::{is_offered, stocks};
use crate::quotes::{contains_number, numbers, place_of, places_of};
use crate::sub_run::run_recipe;

const RECIPE: &str = "research/extract_page";
/// Time for one page.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// Characters of a line that is a heading, a label or a value; longer ones are prose.
const SHORT_LINE: usize = 80;
/// Words of headings under which pages list technical data …
const SPECIFICATIONS: [&str; 6] =
    ["specification", "specs", "technical details", "technical data", "technische daten", "spezifikation"];
/// … and of counts of what readers wrote.
const COMMENTS: [&str; 7] =
    ["comments", "replies", "points", "upvotes", "reviews", "kommentare", "bewertungen"];

/// What `research/extract_page` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageAnswer {
    products: Vec<ProductAnswer>,
    comments: Vec<CommentAnswer>,
    specifications: Vec<SpecificationAnswer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProductAnswer {
    name: String,
    price: String,
    quote: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommentAnswer {
    author: String,
    points: Option<i64>,
    text: String,
    quote: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecificationAnswer {
    name: String,
    value: String,
    quote: String,
}

/// Adds what the page's text states and its data does not. A model is asked only if the text shows signs of it.
pub(super) async fn complete(page: &mut Visited, context: &ToolContext<'_>) {
    let wanted = Wanted::of(page);
    // A document of JSON is its own data.
    if page.kind == "json" || !wanted.has_signs {
        return;
    }
    let meter = Meter::new(context.observer, context.budget.tokens, context.budget.cost);
    let text = format!("Title: {}\nURL: {}\n\n{}", page.title, page.url, page.text);
    let document = InputDocument::whole("page", page.url.clone(), text);
    let until = Instant::now() + context.budget.time(TIMEOUT);
    match run_recipe::<PageAnswer>(context, &meter, RECIPE, vec![document], &[], until).await {
        Ok(answer) => {
            let (found, dropped) = answer.on_page(&page.text, &wanted);
            add(&mut page.data, found);
            if dropped > 0 {
                page.notes
                    .push(format!("{dropped} extracted values were dropped: the page does not state them"));
            }
        }
        Err(why) => page.notes.push(format!("values were not extracted from its text: {why}")),
    }
}

/// Adds extracted values to those that the page states as data, which stay as they are.
fn add(stated: &mut Map<String, Value>, found: Vec<(String, Value)>) {
    for (name, value) in found {
        match (stated.get_mut(&name), value) {
            (Some(Value::Array(stated)), Value::Array(found)) => add_things(stated, found),
            (Some(_), _) => {}
            (None, value) => drop(stated.insert(name, value)),
        }
    }
}

/// Completes the things of the same name, such as a product without its price, and adds the others.
fn add_things(stated: &mut Vec<Value>, found: Vec<Value>) {
    let name = |thing: &Value| thing.get("name").and_then(Value::as_str).map(str::to_lowercase);
    for thing in found {
        let same = stated.iter_mut().find(|stated| name(stated).is_some() && name(stated) == name(&thing));
        match (same.and_then(Value::as_object_mut), thing) {
            (Some(same), Value::Object(thing)) => {
                for (name, value) in thing {
                    let known = same.entry(name).or_insert(Value::Null);
                    if known.is_null() {
                        *known = value;
                    }
                }
            }
            (_, thing) => stated.push(thing),
        }
    }
}

/// What the data lacks, and whether the text shows signs of any of it.
struct Wanted {
    products: bool,
    comments: bool,
    specifications: bool,
    has_signs: bool,
}

impl Wanted {
    fn of(page: &Visited) -> Self {
        let known = value_names(&page.data);
        let lacks = |name: &str| !known.iter().any(|known| known == name);
        // Prose that mentions a price or a review offers none.
        let is_short = |line: &&str| line.chars().count() <= SHORT_LINE;
        let lines = page.text.lines().filter(is_short).collect::<Vec<_>>();
        let short = lines.iter().map(|line| line.to_lowercase()).collect::<Vec<_>>();
        let says = |line: &str, words: &[&str]| words.iter().any(|word| line.contains(word));
        let counts = |line: &str| line.contains(|char: char| matches!(char, '1'..='9'));
        let products = lacks("price") && figures::states_money(&lines.join("\n"));
        let (comments, specifications) = (lacks("top_comments"), lacks("specifications"));
        let has_comments = || short.iter().any(|line| says(line, &COMMENTS) && counts(line));
        let has_data_sheet = || lacks("tables") && short.iter().any(|line| says(line, &SPECIFICATIONS));
        let has_signs = products || comments && has_comments() || specifications && has_data_sheet();
        Self { products, comments, specifications, has_signs }
    }
}

impl PageAnswer {
    /// The values that the page states, by their names in its data, and how many it does not state.
    fn on_page(&self, page: &str, wanted: &Wanted) -> (Vec<(String, Value)>, usize) {
        let states = |quote: &str, value: &str| {
            let exact = || numbers(value).iter().all(|number| contains_number(number, quote));
            value.is_empty() || place_of(quote, page).is_some() && place_of(value, quote).is_some() && exact()
        };
        let on_page = |text: &str| place_of(text, page).is_some();
        let products: Vec<&ProductAnswer> = self.products.iter().filter(|_| wanted.products).collect();
        let comments: Vec<&CommentAnswer> = self.comments.iter().filter(|_| wanted.comments).collect();
        let specifications: Vec<&SpecificationAnswer> =
            self.specifications.iter().filter(|_| wanted.specifications).collect();
        let all = products.len() + comments.len() + specifications.len();
        let names: Vec<&str> = products.iter().map(|product| product.name.as_str()).collect();
        let products: Vec<Value> = products
            .iter()
            .zip(stocks(page, &names))
            .filter(|(product, _)| {
                on_page(&product.name)
                    && states(&product.quote, &product.price)
                    && is_offered(page, (&product.name, &product.price), &names)
            })
            .map(|(product, stock)| {
                let price = Some(&product.price).filter(|price| !price.is_empty());
                json!({"name": product.name, "price": price, "in_stock": stock})
            })
            .collect();
        let comments: Vec<Value> = comments
            .into_iter()
            .filter(|comment| {
                let points = comment.points.map(|points| points.to_string()).unwrap_or_default();
                on_page(&comment.text)
                    && states(&comment.quote, &comment.author)
                    && states(&comment.quote, &points)
            })
            .map(|comment| {
                let author = Some(&comment.author).filter(|author| !author.is_empty());
                json!({"author": author, "points": comment.points, "text": comment.text})
            })
            .collect();
        let specifications: Vec<Value> = specifications
            .into_iter()
            .filter(|specification| {
                states(&specification.quote, &specification.value)
                    && labels(page, &specification.quote, &specification.name)
            })
            .map(|specification| json!({"name": specification.name, "value": specification.value}))
            .collect();
        let kept = products.len() + comments.len() + specifications.len();
        // One product with one price is what the page costs.
        let price = match products.as_slice() {
            [only] => only.get("price").filter(|price| !price.is_null()).cloned(),
            _ => None,
        };
        let lists = [("products", products), ("top_comments", comments), ("specifications", specifications)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let found = lists.map(|(name, list)| (name.to_owned(), Value::Array(list)));
        (found.chain(price.map(|price| ("price".to_owned(), price))).collect(), all - kept)
    }
}

/// Whether a quote contains the name, or stands right behind it on the page.
fn labels(page: &str, quote: &str, name: &str) -> bool {
    let name = name.trim_end_matches(|char: char| !char.is_alphanumeric());
    let follows = |place: Range<usize>| {
        let before = page[..place.start].trim_end_matches(|char: char| !char.is_alphanumeric());
        before.strip_suffix(name).is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
    };
    !name.is_empty() && (place_of(name, quote).is_some() || places_of(quote, page).any(follows))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Rule 1100 pump\n\n$74.00\n\nSold out\n\nFlow: 1,100 gallons an hour\n\noldsalt 54 points 3 hours ago\n\nBuy the bigger one.";

    fn on_page(answer: Value) -> (serde_json::Map<String, Value>, usize) {
        let wanted = Wanted { products: true, comments: true, specifications: true, has_signs: true };
        let answer: PageAnswer = serde_json::from_value(answer).unwrap();
        let (found, dropped) = answer.on_page(PAGE, &wanted);
        (found.into_iter().collect(), dropped)
    }

    #[test]
    fn values_count_if_their_quotes_are_on_the_page_and_state_them() {
        let (found, dropped) = on_page(json!({
            "products": [{"name": "Rule 1100 pump", "price": "$74.00", "quote": "$74.00"}],
            "comments": [{"author": "oldsalt", "points": 54, "text": "Buy the bigger one.", "quote": "oldsalt 54 points"}],
            "specifications": [{"name": "Flow", "value": "1,100 gallons an hour", "quote": "Flow: 1,100 gallons an hour"}]}));
        assert_eq!(dropped, 0);
        assert_eq!((&found["price"], &found["products"][0]["in_stock"]), (&json!("$74.00"), &json!("no")));
        assert_eq!(
            found["top_comments"],
            json!([{"author": "oldsalt", "points": 54, "text": "Buy the bigger one."}])
        );
        assert_eq!(found["specifications"], json!([{"name": "Flow", "value": "1,100 gallons an hour"}]));
    }

    #[test]
    fn a_specification_has_its_name_in_its_quote_or_before_it() {
        let page = "Runs on 12 V anywhere.\nStorage | 512 GB\nVoltage\n12 V";
        let found = [
            ("Voltage", "12 V"),
            ("Storage", "512 GB"),
            ("age", "512 GB"),
            ("Current", "12 V"),
            ("", "12 V"),
        ]
        .map(|(name, quote)| labels(page, quote, name));
        assert_eq!(found, [true, true, false, false, false]);
    }

    #[test]
    fn invented_values_are_dropped() {
        let product =
            |name: &str, price: &str, quote: &str| json!({"name": name, "price": price, "quote": quote});
        let comment = |points: i64, text: &str, quote: &str| json!({"author": "oldsalt", "points": points, "text": text, "quote": quote});
        let (found, dropped) = on_page(json!({
            "products": [product("Rule 1100 pump", "$64.00", "$64.00"), product("Rule 1100 pump", "$74.00", "gallons"),
                product("Rule 1100 pump", "$7", "$74.00"), product("Rule 2000 pump", "$74.00", "$74.00")],
            "comments": [comment(5, "Buy the bigger one.", "oldsalt 54 points"), comment(54, "Buy two.", "oldsalt 54 points")],
            "specifications": [{"name": "Flow", "value": "2,000 gallons", "quote": "Flow: 1,100 gallons an hour"},
                {"name": "pump", "value": "1,100", "quote": "Flow: 1,100 gallons an hour"}]}));
        assert_eq!((found.len(), dropped), (0, 8), "{found:?}");
    }
}
