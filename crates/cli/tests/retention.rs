//! `larder gc` and what it leaves, over stores whose data is from some time ago.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::sync::Arc;

use larder_store::{
    Clock, MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, NewConversation, NewMessage, Store,
    StoreOptions, SystemClock, Timestamp, Track, UserStore,
};
use larder_text::pointer::Pointer;
use serde_json::{Value, json};
use support::Shop;

/// So many days ago.
struct Ago(u64);

impl Clock for Ago {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() - self.0 * 86_400_000)
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
    let old = insert(&shop, Arc::new(Ago(60)), &"old ".repeat(20_000)).to_string();
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
    assert!(shop.ok(&["gc", "--dry-run"]).out.starts_with("would remove by age: 1 original, "));
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

/// A mediation of `local` and `ben` that was begun and spoken in some time ago.
fn talk(shop: &Shop, days: u64, text: &str) -> String {
    let store = store(shop, Arc::new(Ago(days)));
    let people = [("Ann".to_owned(), "local".to_owned()), ("Ben".to_owned(), "ben".to_owned())];
    let new = NewConversation {
        kind: "mediation",
        title: "",
        participants: &people,
        invited: &[],
        state: &json!({}),
    };
    let id = store.user("local").unwrap().conversations().create(&new).unwrap().id;
    for (name, user) in people {
        let said = format!("{text} of {name} {}", "and more ".repeat(40));
        let message = NewMessage { text: &said, key: None, data: &json!({}), chars: 100 };
        let track = Track { conversation: &id, participant: &name };
        store.user(&user).unwrap().conversations().post(track, &message).unwrap();
    }
    id
}

fn remember(user: &UserStore, conversation: &str, kind: MemoryKind, id: &str, data: Value) {
    let record = MemoryRecord {
        number: 0,
        kind,
        id: id.to_owned(),
        participant: "Ann".to_owned(),
        conversation: Some(conversation.to_owned()),
        session: Some(1),
        consent: None,
        data,
        vector: None,
        created: Timestamp::from_millis(0),
        ended: None,
    };
    let change = MemoryChange { put: vec![record], ..MemoryChange::default() };
    user.conversations().memory().apply(&change).unwrap();
}

fn remembered(shop: &Shop) -> Vec<String> {
    let user = store(shop, Arc::new(SystemClock)).user("local").unwrap();
    let all = user.conversations().memory().list(&MemoryFilter::default()).unwrap();
    all.into_iter().filter(|one| one.kind != MemoryKind::Erasure).map(|one| one.id).collect()
}

/// Whether a file below a folder has these bytes.
fn is_in(folder: &std::path::Path, words: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in(&path, words);
        }
        std::fs::read(path).unwrap().windows(words.len()).any(|bytes| bytes == words.as_bytes())
    })
}

#[test]
fn conversations_at_rest_go_from_all_who_took_part_if_the_settings_say_so() {
    let shop = Shop::new();
    let old = talk(&shop, 60, "MARKER-old");
    let new = talk(&shop, 20, "MARKER-new");
    let ids = || -> Vec<Value> {
        let all = shop.json(&["converse"]);
        all.as_array().unwrap().iter().map(|one| one["id"].clone()).collect()
    };
    shop.ok(&["gc"]);
    assert_eq!(ids(), [json!(new), json!(old)], "they stay unless the settings say otherwise");

    shop.write("larder.toml", "[retention]\nconversations_days = 30\n");
    let dry = shop.json(&["gc", "--dry-run"]);
    let done = shop.json(&["gc"]);
    assert_eq!(done["report"]["by_age"]["conversations"]["items"], 2, "the sides of both: {done}");
    assert_eq!(dry["report"]["by_age"]["conversations"], done["report"]["by_age"]["conversations"]);
    assert_eq!(ids(), [json!(new)]);
    let home = shop.path().join("home");
    assert!(!is_in(&home, "MARKER-old") && is_in(&home, "MARKER-new"));
    assert!(shop.json(&["gc"])["report"]["by_age"]["conversations"].is_null());
    shop.ok(&["verify"]);
}

#[test]
fn facts_go_when_their_category_no_longer_keeps_them_and_notes_of_runs_with_the_runs() {
    let shop = Shop::new();
    let conversation = talk(&shop, 200, "Hello");
    let fact =
        |category: &str| json!({"category": category, "fact": "x", "message": 1, "start": 0, "end": 1});
    for (days, name) in [(200, "old"), (100, "new")] {
        let user = store(&shop, Arc::new(Ago(days))).user("local").unwrap();
        for category in ["Logistics", "People"] {
            let id = format!("{name}-{category}");
            remember(&user, &conversation, MemoryKind::Fact, &id, fact(category));
            remember(&user, &conversation, MemoryKind::Vector, &format!("fact:{id}"), json!({}));
        }
    }
    let user = store(&shop, Arc::new(SystemClock)).user("local").unwrap();
    remember(&user, &conversation, MemoryKind::Run, "run-1", json!({"run": "run-1", "message": 1}));
    drop(user);
    assert_eq!(remembered(&shop).len(), 9);
    // In a mediation, `Logistics` is kept for 180 days.
    let dry = shop.json(&["gc", "--dry-run"]);
    assert_eq!(remembered(&shop).len(), 9);
    let done = shop.json(&["gc"]);
    assert_eq!(done["report"]["by_age"]["facts"]["items"], 1, "{done}");
    assert_eq!(dry["report"]["by_age"]["facts"], done["report"]["by_age"]["facts"], "{dry}");
    let left = ["old-People", "new-Logistics", "new-People"];
    let mut left: Vec<String> = left.iter().flat_map(|id| [(*id).to_owned(), format!("fact:{id}")]).collect();
    let mut found = remembered(&shop);
    left.sort();
    found.sort();
    assert_eq!(found, left);
}

#[test]
fn files_of_locks_that_nobody_holds_go() {
    let shop = Shop::new();
    let conversation = talk(&shop, 0, "Hello");
    let turns = shop.path().join("home/turns");
    std::fs::create_dir_all(&turns).unwrap();
    // Of a process that was killed.
    std::fs::write(turns.join("talk-0123"), "").unwrap();
    let user = store(&shop, Arc::new(SystemClock)).user("local").unwrap();
    let held = user.conversations().take_lease(Track { conversation: &conversation, participant: "Ann" });
    let held = held.unwrap().unwrap();
    let files = || std::fs::read_dir(&turns).unwrap().count();
    assert_eq!(files(), 2);
    shop.ok(&["gc"]);
    assert_eq!(files(), 1, "the one that is held");
    drop(held);
    assert_eq!(files(), 0);
}
