//! Tests of the rules: every example of the requirements, and cases around them.

use super::*;

const HOUR: u64 = 3_600;

fn thread() -> PageContents {
    let names =
        ["thread_title", "author", "posted", "subreddit", "comment_count", "pagination", "top_comments"];
    PageContents {
        pages: true,
        comments: true,
        data: names.map(str::to_owned).to_vec(),
        topic: "Best laptops of the year, a thread of r/laptops".to_owned(),
        content: true,
        age: 2 * HOUR,
    }
}

fn product(age: u64) -> PageContents {
    let names = ["name", "price", "in_stock", "gpu", "screen_size"];
    PageContents { data: names.map(str::to_owned).to_vec(), content: true, age, ..PageContents::default() }
}

#[test]
fn the_examples_of_the_requirements_are_answered_where_they_say() {
    use PageLevel::{Content, Data, Manifest, Navigate};
    for (row, query, expected) in [
        ("R1-6.15", "how many pages are there?", Manifest),
        ("R1-6.15", "How many comments does it have", Manifest),
        ("R1-6.16", "what's the top comment", Data),
        ("R1-6.17", "what did the thread say about cooling?", Content),
        ("R1-6.17", "What did the thread say about the current price of the author's GPU?", Content),
        ("R1-6.18", "what's the current price", Navigate),
        ("R1-6.19", "is it still in stock", Navigate),
        ("R1-6.20", "check for new comments", Navigate),
        ("R1-14.5", "how many pages is the thread?", Manifest),
        ("R1-14.7", "is the laptop still in stock?", Navigate),
    ] {
        assert_eq!(choose_level(query, Some(&thread())).level, expected, "{row}: {query}");
    }
}

#[test]
fn what_was_never_visited_is_searched_for() {
    for query in ["how many pages is the thread?", "is it still in stock", ""] {
        assert_eq!(choose_level(query, None).level, PageLevel::Search, "R1-6.14, R1-14.6: {query}");
    }
    assert_eq!(choose_level("are there similar threads?", Some(&thread())).level, PageLevel::Search);
}

#[test]
fn questions_for_now_go_to_the_page() {
    for query in [
        "what does it cost now?",
        "Is it available?",
        "what's the latest?",
        "any updates on the thread",
        "how many comments are there now",
        "what did they say in the new comments",
        "do they still recommend it?",
        "Any left?",
        "Can it be ordered?",
        "Has it become cheaper?",
        "Ist sie noch auf Lager?",
        "Was kostet es jetzt?",
        "Gibt es sie noch?",
    ] {
        assert_eq!(choose_level(query, Some(&thread())).level, PageLevel::Navigate, "{query}");
    }
}

#[test]
fn a_price_is_believed_for_six_hours() {
    let price = |age| choose_level("what's the price", Some(&product(age))).level;
    assert_eq!(price(6 * HOUR - 1), PageLevel::Data);
    assert_eq!(price(6 * HOUR), PageLevel::Navigate);
    let then = choose_level("what was the price?", Some(&product(99 * HOUR)));
    assert_eq!(then.level, PageLevel::Data);
}

#[test]
fn a_level_that_holds_nothing_is_passed_over() {
    use PageLevel::{Content, Data, Manifest, Navigate};
    let without = |change: fn(&mut PageContents)| {
        let mut page = thread();
        change(&mut page);
        move |query: &str| choose_level(query, Some(&page)).level
    };
    assert_eq!(without(|page| page.pages = false)("how many pages"), Content);
    assert_eq!(
        without(|page| page.comments = false)("number of comments"),
        Content,
        "not every thread counts them"
    );
    assert_eq!(without(|page| page.data.clear())("what's the top comment"), Content);
    assert_eq!(without(|page| page.content = false)("what did the thread say about X"), Data);
    let bare = without(|page| *page = PageContents::default());
    assert_eq!((bare("what's the top comment"), bare("what is its title? the title")), (Navigate, Manifest));
}

#[test]
fn a_value_that_was_not_extracted_is_looked_for_in_the_text() {
    let bare =
        PageContents { content: true, data: vec!["comment_count".to_owned()], ..PageContents::default() };
    for query in [
        "what's the price",
        "what was the price?",
        "what are the specs",
        "what's the top comment",
        "who wrote it",
        "when was it posted",
        "which brand is it",
    ] {
        let choice = choose_level(query, Some(&bare));
        assert_eq!(choice.level, PageLevel::Content, "{query}: {}", choice.why);
        assert!(!choice.why.contains("extracted"), "{query}: {}", choice.why);
    }
    let with = |name: &str| PageContents { data: vec![name.to_owned()], ..bare.clone() };
    assert_eq!(choose_level("what's the price", Some(&with("sale_price"))).level, PageLevel::Data);
    assert_eq!(choose_level("what are the specs", Some(&with("specifications"))).level, PageLevel::Data);
}

#[test]
fn names_of_what_was_extracted_lead_to_it() {
    assert_eq!(choose_level("which GPU has it?", Some(&product(0))).level, PageLevel::Data);
    assert_eq!(choose_level("how large is the screen size", Some(&product(0))).level, PageLevel::Data);
    assert_eq!(choose_level("tell me a story", Some(&product(0))).level, PageLevel::Content);
    assert_eq!(
        choose_level("how many comments mention thermal paste", Some(&thread())).level,
        PageLevel::Content
    );
}

#[test]
fn a_value_answers_only_what_it_is_the_value_of() {
    let named = |query: &str, data: &[&str]| {
        let data = data.iter().map(|name| (*name).to_owned()).collect();
        let topic = "Acme kettle 2000 | free shipping\nhttps://shop.example.com/kettle".to_owned();
        let page = PageContents { data, topic, content: true, ..PageContents::default() };
        choose_level(query, Some(&page))
    };
    for query in [
        "How much is shipping?",
        "what does the delivery cost",
        "What was the price of the shipping?",
        "what is the price of the glass lid",
        "what's the energy rating",
        "who is the author of the top review",
    ] {
        let choice = named(query, &["name", "price", "rating", "author"]);
        assert_eq!(choice.level, PageLevel::Content, "{query}: {}", choice.why);
        assert!(!choice.why.contains("was extracted"), "{query}: {}", choice.why);
    }
    for query in
        ["How much was the Acme kettle, I forgot?", "what's the rating of this kettle", "what does it cost"]
    {
        let choice = named(query, &["name", "price", "rating"]);
        assert_eq!(choice.level, PageLevel::Data, "{query}: {}", choice.why);
    }
    let shipping = named("how much does shipping cost", &["price", "shipping_cost"]);
    assert_eq!(shipping.level, PageLevel::Data, "{}", shipping.why);
}

#[test]
fn words_count_and_not_their_parts() {
    assert_eq!(
        choose_level("what knowledge is there, stockings aside", Some(&thread())).level,
        PageLevel::Content
    );
    let odd = "\u{0}\u{202e}\u{202e}🦀 ".repeat(10_000);
    assert_eq!(choose_level(&odd, Some(&thread())).level, PageLevel::Content);
}

#[test]
fn what_points_at_a_page_does_not_restrict_a_count() {
    assert_eq!(
        choose_level("how many pages does that thread have?", Some(&thread())).level,
        PageLevel::Manifest
    );
    let some = "how many comments that praise it are there";
    assert_eq!(choose_level(some, Some(&thread())).level, PageLevel::Content);
}
