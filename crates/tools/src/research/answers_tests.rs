//! What the recipes of research may say: nothing that was not searched, listed or on the page.

use larder_engine::answer::read;
use larder_vault::Ttl;
use serde_json::json;

use super::*;

#[test]
fn research_takes_no_address_and_no_quote_that_was_not_there() {
    let urls = ["https://a.example/1".to_owned(), "https://b.example/2".to_owned()];
    let sources = |urls: &[&str]| read::<SourcesAnswer>(&json!({"urls": urls, "reason": ""})).unwrap();
    let chosen = sources(&["https://b.example/2", "https://made.up/", "https://b.example/2"]).chosen(&urls);
    assert_eq!(chosen.unwrap(), ["https://b.example/2"]);
    assert_eq!(sources(&[]).chosen(&urls).unwrap(), Vec::<String>::new());
    let refused = sources(&["https://made.up/"]).chosen(&urls).unwrap_err();
    assert!(refused.to_string().contains("copy addresses exactly"));
    let plan: ResearchPlanAnswer =
        read(&json!({"searches": ["a", " a ", "", "b", "c"], "reason": ""})).unwrap();
    assert_eq!(plan.searches(2).unwrap(), ["a", "b"]);

    let claim = |quote: &str, evergreen: bool| json!({"claim": "It costs $25", "confidence": 0.9, "quote": quote, "ttl": "6h", "evergreen": evergreen});
    let extract: ExtractAnswer = read(
        &json!({"claims": [claim("only $25", false), claim("$99", false), claim("", true)], "summary": ""}),
    )
    .unwrap();
    assert_eq!(extract.claims[0].claim("https://a.example/1", Intent::Informational).ttl, Ttl::hours(6));
    assert_eq!(extract.claims[2].claim("u", Intent::Informational).ttl, Ttl::hours(6), "a price changes");
    let lasts = |claim: &str, ttl: &str, evergreen: bool| {
        let claim =
            json!({"claim": claim, "confidence": 0.9, "quote": "q", "ttl": ttl, "evergreen": evergreen});
        read::<FoundClaim>(&claim).unwrap().claim("u", Intent::Informational).ttl.to_string()
    };
    assert_eq!(lasts("The pump is sold out", "30d", false), "6h");
    assert_eq!(lasts("Syrian hamsters live alone", "6h", true), "evergreen");
    assert_eq!(lasts("The festival is in May", "30d", false), "7d", "the table decides");
    assert_eq!(lasts("The road is closed", "24h", false), "24h", "and the page can only shorten it");

    let listing = |source: &str| json!({"product": "Hamster", "price": "$25", "source": source});
    let written: WrittenResearch = read(&json!({"title": "t", "topic": "Pet / Hamster > Syrian hamster",
        "overview": "", "findings": [], "listings": [listing("https://a.example/1")],
        "evergreen": ["They live alone", " "], "time_sensitive": []}))
    .unwrap();
    assert_eq!(written.topic(), "pet.hamster.syrian_hamster");
    let listings = written.listings(|_| Stock::Unknown);
    assert_eq!((listings.len(), listings[0].vendor.as_str()), (1, "a.example"));
}
