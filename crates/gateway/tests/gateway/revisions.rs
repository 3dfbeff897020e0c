//! Revisions of what is learned: new conversations use the newest one, those under way keep theirs, in every process.

use std::collections::BTreeMap;
use std::sync::Arc;

use larder_testkit::stub::StubServer;
use serde_json::{Value, json};

use crate::support::{Gateway, after_tool, long_log, said};

/// Learns one value; returns the number of the revision.
fn learn(gateway: &Gateway, key: &str, value: &str) -> u64 {
    let changes = BTreeMap::from([(key.to_owned(), Some(value.to_owned()))]);
    gateway.app.store.revisions().write("a test", &changes).unwrap()
}

/// Sends a history as one conversation, and gives what the provider got.
async fn sent(gateway: &Gateway, session: &str, body: &Value) -> Vec<u8> {
    let request = gateway.post("/v1/chat/completions", body.to_string());
    let reply = request.header("x-larder-session", session).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    reply.bytes().await.unwrap();
    gateway.seen().last().unwrap().body.clone()
}

/// A history that has gone on since.
fn later() -> Value {
    let mut body = after_tool(&long_log());
    let more = [json!({"role": "assistant", "content": "321"}), json!({"role": "user", "content": "Sure?"})];
    body["messages"].as_array_mut().unwrap().extend(more);
    body
}

#[tokio::test]
async fn a_conversation_under_way_keeps_its_revision_in_every_process() {
    let one = Gateway::new(vec![said("321"); 9]).await;
    let other = Gateway::on(Arc::clone(&one.dir), StubServer::start(vec![said("321"); 9]).await).await;
    let first = after_tool(&long_log());
    let old = sent(&one, "old", &first).await;
    assert_eq!(learn(&one, "policy.entry_cap", "300"), 1);
    assert_eq!(sent(&other, "old", &first).await, old, "begun before, in another process");
    let new = sent(&one, "new", &first).await;
    assert_ne!(new, old);
    assert_eq!(sent(&other, "new", &first).await, new);
    assert_eq!(learn(&other, "policy.entry_cap", "600"), 2);
    for session in ["old", "new"] {
        let begun = if session == "old" { &old } else { &new };
        let (mine, theirs) = (sent(&one, session, &later()).await, sent(&other, session, &later()).await);
        assert_eq!(mine, theirs);
        let tool = |body: &[u8]| {
            let body: Value = serde_json::from_slice(body).unwrap();
            body["messages"][3]["content"].clone()
        };
        assert_eq!(tool(&mine), tool(begun), "{session}: its prefix stays");
    }
    assert_ne!(sent(&other, "newest", &first).await, new);
    let revisions = |records: Vec<larder_proxy::record::RequestRecord>| {
        let named = records.into_iter().map(|record| record.summary);
        named.map(|head| (head.session.unwrap(), head.revision.unwrap())).collect::<Vec<_>>()
    };
    other.stop().await;
    let mut found = revisions(one.stop().await.0);
    found.sort();
    found.dedup();
    assert_eq!(found, [("new".to_owned(), 1), ("newest".to_owned(), 2), ("old".to_owned(), 0)]);
}

#[tokio::test]
async fn what_the_settings_say_is_not_overridden() {
    let gateway =
        Gateway::with(StubServer::start(vec![said("321"); 2]).await, "[policy]\nentry_cap = 500\n").await;
    let before = sent(&gateway, "before", &after_tool(&long_log())).await;
    learn(&gateway, "policy.entry_cap", "300");
    assert_eq!(sent(&gateway, "after", &after_tool(&long_log())).await, before);
}
