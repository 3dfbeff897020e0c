//! What is erased of a conversation leaves no vector behind: neither after a consent is revoked, nor after `larder forget`.
//! A vector has no words, so each text gets one of its own, and every file of the home is searched for its bytes.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use larder_store::{LOCAL_USER, MemoryFilter, MemoryKind, Store, StoreOptions};
use larder_testkit::stub::{Answer, Seen};
use larder_text::hash::ContentHash;
use serde_json::{Value, json};
use support::Shop;
use support::served::Served;

const DIMENSIONS: usize = 32;

/// A vector that only this text has.
fn vector_of(text: &str) -> Vec<f32> {
    ContentHash::new(text.as_bytes()).as_bytes().iter().map(|byte| f32::from(*byte) / 255.0 - 0.5).collect()
}

/// Replies, one fact for each message about a daughter, and vectors.
fn respond(seen: &Seen) -> Answer {
    let body = seen.json();
    if seen.line.ends_with("/embeddings") {
        let texts = body["input"].as_array().cloned().unwrap_or_else(|| vec![body["input"].clone()]);
        let vector = |(index, text): (usize, &Value)| json!({"index": index, "embedding": vector_of(text.as_str().unwrap())});
        let data: Vec<Value> = texts.iter().enumerate().map(vector).collect();
        return Answer::json(
            200,
            &json!({"data": data, "model": "vectors", "usage": {"prompt_tokens": 3, "total_tokens": 3}}),
        );
    }
    if body.to_string().contains("Update the facts.") {
        let fact = json!({"category": "People", "fact": "The daughter is called Lily.", "quote": "my daughter Lily"});
        return support::reply(&json!({"upsert": [fact], "delete": []}));
    }
    support::reply_text("<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>I see.")
}

fn shop() -> Shop {
    let shop = Shop::responding(respond);
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base");
    larder_testkit::talks::copy_folder(&base, shop.path());
    let tables = format!(
        "[models.vectors]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\nid = \"vectors\"\nwindow = 512\ndimensions = {DIMENSIONS}\ncapabilities = [\"embedding\"]\nretries = 0\n\n[gather]\nembedding = \"vectors\"\n",
        shop.address()
    );
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", &tables);
    shop
}

/// The bytes of each vector in the store, by what it is of.
fn vectors(shop: &Shop) -> BTreeMap<String, Vec<u8>> {
    let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
    let user = store.user(LOCAL_USER).unwrap();
    let filter = MemoryFilter { kind: Some(MemoryKind::Vector), ..MemoryFilter::default() };
    let records = user.conversations().memory().list(&filter).unwrap().into_iter();
    let bytes = |vector: Vec<f32>| vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    records.map(|record| (record.id, bytes(record.vector.unwrap()))).collect()
}

/// Whether a file of a folder has these bytes.
fn is_in(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            is_in(&path, bytes)
        } else {
            std::fs::read(path).unwrap().windows(bytes.len()).any(|window| window == bytes)
        }
    })
}

/// The body of the reply to a post of the API.
fn post(server: &Served, path: &str, body: &Value) -> Value {
    let (status, said) = server.post(&format!("/api/v1/{path}"), body);
    assert!(status < 300, "{status} {said}");
    serde_json::from_str(&said).unwrap_or_default()
}

/// Ends a server once it has done what is left behind its replies.
fn settle(shop: &Shop, server: Served) {
    let end = Instant::now() + Duration::from_secs(60);
    let waits = |job: &Value| job["kind"].as_str().unwrap().starts_with("conversation_");
    while shop.json(&["jobs"]).as_array().unwrap().iter().any(waits) {
        assert!(Instant::now() < end, "jobs are never done: {}", shop.json(&["jobs"]));
    }
    server.signal("TERM");
    server.end();
}

#[test]
fn vectors_of_what_is_erased_are_in_no_file() {
    let shop = shop();
    let home = shop.path().join("home");
    let server = Served::start(&shop, &[]);
    let begun = post(&server, "conversations", &json!({"type": "chat"}));
    let talk = format!("conversations/{}", begun["id"].as_str().unwrap());
    let consent = json!({"scope": "profile", "shown": "May I remember what you tell me?"});
    let consent = post(&server, &format!("{talk}/consents"), &consent)["id"].as_str().unwrap().to_owned();
    post(&server, &format!("{talk}/messages"), &json!({"text": "This is about my daughter Lily."}));
    settle(&shop, server);
    let before = vectors(&shop);
    let kinds: Vec<&str> = before.keys().map(|key| key.split(':').next().unwrap()).collect();
    assert_eq!(kinds, ["fact", "message", "message", "session"]);
    assert!(before.values().all(|bytes| is_in(&home, bytes)), "the search finds what is there");
    let server = Served::start(&shop, &[]);
    post(&server, &format!("{talk}/consents/{consent}/revoke"), &json!({}));
    settle(&shop, server);
    for (key, bytes) in &before {
        // Messages stay with their author, and so do their vectors.
        assert_eq!(is_in(&home, bytes), key.starts_with("message:"), "{key} after the consent was revoked");
    }
    assert!(vectors(&shop).keys().all(|key| key.starts_with("message:")));
    shop.ok(&["forget", LOCAL_USER, "--yes"]);
    assert!(before.values().all(|bytes| !is_in(&home, bytes)), "after everything was forgotten");
}
