//! `larder gc` and what it leaves, over a store whose data is from sixty days ago.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::sync::Arc;

use larder_store::{Clock, Store, StoreOptions, SystemClock, Timestamp};
use larder_text::pointer::Pointer;
use serde_json::{Value, json};
use support::Shop;

/// Sixty days ago.
struct Past;

impl Clock for Past {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() - 60 * 86_400_000)
    }
}

fn store(shop: &Shop, clock: Arc<dyn Clock>) -> Store {
    let options = StoreOptions { clock, ..StoreOptions::default() };
    Store::open(&shop.path().join("home"), options).unwrap()
}

fn insert(shop: &Shop, clock: Arc<dyn Clock>, content: &str) -> Pointer {
    let user = store(shop, clock).user("local").unwrap();
    user.pointers().insert(content.as_bytes(), "text", "").unwrap().pointer_id
}

#[test]
fn gc_says_what_would_go_and_removes_it_and_the_pointer_says_when() {
    let shop = Shop::new();
    let old = insert(&shop, Arc::new(Past), &"old ".repeat(20_000)).to_string();
    let new = insert(&shop, Arc::new(SystemClock), "new").to_string();
    let gone = |report: &Value| report["report"]["by_age"]["originals"]["items"].clone();

    shop.write("larder.toml", "[retention]\noriginals_days = \"unlimited\"\n");
    assert_eq!(shop.ok(&["gc"]).out.lines().next(), Some("nothing has expired"));
    shop.write("larder.toml", "[retention]\noriginals_days = 0\n");
    let wrong = shop.run(&["gc"]);
    assert!(wrong.code != 0 && wrong.err.contains("retention.originals_days"), "{wrong:?}");
    shop.write("larder.toml", "");

    let dry = shop.json(&["gc", "--dry-run"]);
    assert_eq!((&dry["dry_run"], gone(&dry)), (&json!(true), json!(1)), "{dry}");
    assert!(shop.ok(&["gc", "--dry-run"]).out.starts_with("would remove by age: 1 originals, "));
    shop.ok(&["rehydrate", &old]);
    let done = shop.json(&["gc"]);
    assert_eq!(gone(&done), json!(1));
    assert_eq!(dry["report"]["by_age"], done["report"]["by_age"]);
    let date = SystemClock.now().date();
    let expired = shop.run(&["rehydrate", &old]);
    assert_eq!(expired.code, 1);
    assert!(expired.err.contains(&format!("expired on {date}")), "{expired:?}");
    assert_eq!(shop.ok(&["rehydrate", &new]).out, "new");
    assert_eq!(shop.json(&["verify"])["tombstones"], 1);
    assert!(shop.ok(&["verify"]).out.contains("1 expired originals: 0 problems"));

    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "rehydrate", "arguments": {"id": old}}});
    let said = shop.run_with(&["mcp"], format!("{hello}\n{ready}\n{call}\n").as_bytes());
    assert!(said.out.contains(&format!("expired on {date}")), "{said:?}");
}

#[test]
fn a_user_is_exported_and_forgotten_and_an_unknown_one_is_an_error() {
    let shop = Shop::new();
    let pointer = insert(&shop, Arc::new(SystemClock), "an original").to_string();
    let export = shop.json(&["export", "local", "--to", "out"]);
    assert_eq!(export["contents"], 1);
    let folder = shop.path().join("out");
    let pointers = std::fs::read_to_string(folder.join("tables/pointers.jsonl")).unwrap();
    let row: Value = serde_json::from_str(&pointers).unwrap();
    let content = folder.join("contents").join(row["content"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(content).unwrap(), "an original");
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"user\": \"local\""), "{manifest}");
    assert!(shop.fails(1, &["export", "local", "--to", "out"]).err.contains("not empty"));
    for args in [&["export", "eve", "--to", "none"][..], &["forget", "eve", "--yes"]] {
        assert!(shop.fails(1, args).err.contains("nothing is stored of this user"));
    }
    shop.ok(&["forget", "local", "--yes"]);
    shop.fails(1, &["rehydrate", &pointer]);
    shop.fails(1, &["forget", "local", "--yes"]);
}
