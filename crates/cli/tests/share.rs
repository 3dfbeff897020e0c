//! `larder share` and its effect on the turns of other users, by the binary and over HTTP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use larder_vault::{FactRecord, FactRecords, Score, Ttl, write_json};
use serde_json::{Value, json};
use support::Shop;
use support::served::Served;

const FACT: &str = "Syrian hamsters live alone";
const SECRET: &str = "The alarm code of the shed is 4711";
const TURN: [&str; 4] = ["--user", "bob", "turn", "Do hamsters live alone in the shed?"];

/// A home in which a user knows two statements for long, one of which proved right.
fn shop(user: &str) -> Shop {
    let shop = Shop::with_scholar(|_, _| None);
    let fact = |number: usize, fact: &str, uses: u32| FactRecord {
        id: larder_vault::BlockId::numbered("fact", number),
        category: "Pets".to_owned(),
        fact: fact.to_owned(),
        source: None,
        scope: larder_vault::Scope::User,
        confidence: Score::new(0.9).unwrap(),
        uses,
        ttl: Ttl::Evergreen,
        created_at: "2026-01-05T10:00:00Z".parse().unwrap(),
        updated_at: "2026-01-05T10:00:00Z".parse().unwrap(),
    };
    let facts = FactRecords { facts: vec![fact(1, FACT, 12), fact(2, SECRET, 3)] };
    shop.write(&format!("home/documents/users/{user}/memory/facts.json"), write_json(&facts));
    shop
}

/// Whether a turn of bob includes the fact; it never includes what was not published.
fn bob_is_told(shop: &Shop, by: &str) -> bool {
    let before = shop.seen().len();
    shop.ok(&TURN);
    let prompts = shop.seen().split_off(before);
    let prompts: String =
        prompts.iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    assert!(!prompts.contains("4711"));
    let is_told = prompts.contains(FACT);
    let author = format!("published by {by}: fact-001 of {by}");
    assert_eq!(prompts.contains(&author), is_told, "it says who published it");
    is_told
}

#[test]
fn a_person_publishes_what_is_shown_and_revokes_it() {
    let shop = shop("ann");
    let listed = shop.json(&["--user", "ann", "share", "list"]);
    assert_eq!(listed["candidates"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["published"], json!([]));
    assert!(shop.ok(&["--user", "ann", "share"]).out.contains("may be published: fact-001 (12 uses)"));
    assert!(shop.ok(&["--user", "bob", "share"]).out.contains("nothing is published, and nothing may be"));
    assert!(!bob_is_told(&shop, "ann"), "what may be published is not");

    let refused = shop.fails(1, &["--user", "ann", "share", "publish", "fact-001"]);
    assert!(refused.err.contains(FACT) && refused.err.contains("nothing was published"), "{refused:?}");
    assert!(!bob_is_told(&shop, "ann"), "nobody agreed");
    shop.fails(1, &["--user", "ann", "share", "publish", "fact-002", "--yes"]);
    shop.fails(1, &["--user", "bob", "share", "publish", "fact-001", "--yes"]);
    let published = shop.json(&["--user", "ann", "share", "publish", "fact-001", "--yes"]);
    assert_eq!(
        (&published["published_by"], &published["statements"]),
        (&json!("ann"), &json!([FACT])),
        "{published}"
    );
    assert!(bob_is_told(&shop, "ann"));
    assert!(shop.ok(&["--user", "bob", "share", "list"]).out.contains("#1 published by ann at "));
    assert_eq!(shop.json(&["--user", "ann", "share"])["candidates"], json!([]));

    shop.fails(1, &["--user", "bob", "share", "revoke", "1"]);
    shop.ok(&["--user", "ann", "share", "revoke", "1"]);
    assert!(!bob_is_told(&shop, "ann"));
    shop.ok(&["--user", "ann", "share", "publish", "fact-001", "--yes"]);
    assert!(bob_is_told(&shop, "ann"));
    shop.ok(&["forget", "ann", "--yes"]);
    assert!(!bob_is_told(&shop, "ann"), "it went with ann");
    assert_eq!(shop.json(&["--user", "bob", "share"])["published"], json!([]));
}

#[test]
fn over_http_only_the_text_that_was_seen_is_published() {
    let shop = shop("local");
    let served = Served::start(&shop, &[]);
    let act = |path: &str, body: &Value| {
        let (status, body) = served.post(&format!("/api/v1/shared/{path}"), body);
        (status, serde_json::from_str::<Value>(&body).unwrap_or_default())
    };
    assert_eq!(act("fact-001", &json!({"statements": ["Hamsters live together"]})).0, 409);
    assert_eq!(act("fact-002", &json!({"statements": [SECRET]})).0, 404);
    let (status, published) = act("fact-001", &json!({"statements": [FACT]}));
    assert_eq!((status, &published["id"]), (200, &json!(1)), "{published}");
    assert!(bob_is_told(&shop, "local"));
    assert_eq!(act("1/revoke", &json!({})).0, 200);
    assert_eq!(act("1/revoke", &json!({})).0, 404);
    assert!(!bob_is_told(&shop, "local"));
    served.signal("TERM");
    assert_eq!(served.end().0, Some(0));
}
