//! A store that cannot be written to: its disk is full, or another program holds it.

use std::path::PathBuf;
use std::time::Duration;

use larder_gateway::auth::create_key;
use larder_proxy::record::Outcome;
use larder_store::{KeyLimits, StoreOptions};
use larder_testkit::stub::StubServer;
use larder_text::pointer::Pointer;
use reqwest::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Gateway, after_tool, long_log, pointers, said};

fn body() -> Value {
    json!({"model": "mini", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]})
}

fn index(gateway: &Gateway) -> PathBuf {
    gateway.dir.path().join("home/index.sqlite")
}

/// From now on SQLite says of every row that is added to `table` that the disk is full, as it does where no number is
/// left for a row.
fn fill_up(index: &Connection, table: &str) {
    let no_room = format!(
        "CREATE TABLE no_room (number INTEGER PRIMARY KEY AUTOINCREMENT);
         INSERT INTO no_room (number) VALUES ({});
         CREATE TRIGGER disk_full BEFORE INSERT ON {table}
             BEGIN INSERT INTO no_room (number) VALUES (NULL); END;",
        i64::MAX
    );
    index.execute_batch(&no_room).unwrap();
}

fn free_up(index: &Connection) {
    index.execute_batch("DROP TRIGGER disk_full").unwrap();
}

/// What a refused client is told.
async fn words(response: Response) -> String {
    let error: Value = response.json().await.unwrap();
    error["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_full_disk_is_reported_with_a_fix_and_nothing_is_sent() {
    let gateway = Gateway::new([said("small"), said("ok")]).await;
    let path = index(&gateway);
    let held = Connection::open(&path).unwrap();
    fill_up(&held, "pointers");
    let flood = json!({"model": "claude", "max_tokens": 100,
        "tools": [{"name": "read_log", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Which request failed?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read_log", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": long_log()}]}]});
    for response in [gateway.chat(&after_tool(&long_log())).await, gateway.messages(&flood).await] {
        assert_eq!(response.status(), 507);
        let words = words(response).await;
        for part in ["nothing was sent", path.to_str().unwrap(), "free some space"] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
    assert!(gateway.seen().is_empty());
    assert_eq!(gateway.chat(&body()).await.status(), 200, "what leaves nothing out needs no room");

    free_up(&held);
    assert_eq!(gateway.chat(&after_tool(&long_log())).await.status(), 200, "once there is room");
    let pointer = pointers(&gateway, &gateway.last_sent().to_string()).remove(0);
    assert_eq!(
        gateway.store().pointers().resolve(&Pointer::whole(pointer.id)).unwrap(),
        long_log().as_bytes()
    );
    let (records, _) = gateway.stop().await;
    let ended: Vec<_> =
        records.iter().map(|record| (record.summary.outcome, record.summary.status)).collect();
    let full = (Outcome::Failed, 507);
    assert_eq!(ended, [full, full, (Outcome::Ok, 200), (Outcome::Ok, 200)]);
    assert!(records[..2].iter().all(|record| record.summary.error.as_deref() == Some("storage_full")));
}

#[tokio::test]
async fn a_store_that_another_holds_is_waited_for_and_then_named_and_nothing_is_sent() {
    let options = StoreOptions { patience: Duration::from_millis(20), ..StoreOptions::default() };
    let provider = StubServer::start([said("small"), said("ok")]).await;
    let gateway = Gateway::with_store(provider, "", options).await;
    let path = index(&gateway);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let response = gateway.chat(&after_tool(&long_log())).await;
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    let words = words(response).await;
    for part in ["nothing was sent", path.to_str().unwrap(), "another process"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(gateway.seen().is_empty());
    assert_eq!(gateway.chat(&body()).await.status(), 200, "what leaves nothing out waits for nobody");

    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(gateway.chat(&after_tool(&long_log())).await.status(), 200, "once it is let go");
    let (records, _) = gateway.stop().await;
    let ended: Vec<_> =
        records.iter().map(|record| (record.summary.status, record.summary.error.as_deref())).collect();
    assert_eq!(ended, [(503, Some("storage_locked")), (200, None), (200, None)], "none is lost");
}

#[tokio::test]
async fn a_failed_reservation_is_reported_alike() {
    let options = StoreOptions { patience: Duration::from_millis(20), ..StoreOptions::default() };
    let gateway = Gateway::with_store(StubServer::start([said("ok")]).await, "", options).await;
    let limits = KeyLimits { tokens_per_day: Some(50_000), picos_per_day: None };
    let (key, _) = create_key(&gateway.app.store, "ada", "test", limits).unwrap();
    let ask = || gateway.post("/v1/chat/completions", body().to_string()).bearer_auth(key.reveal()).send();
    let path = index(&gateway);
    let other = Connection::open(&path).unwrap();
    fill_up(&other, "reservations");
    let full = ask().await.unwrap();
    assert_eq!(full.status(), 507);
    let full = words(full).await;
    free_up(&other);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = ask().await.unwrap();
    assert_eq!((locked.status().as_u16(), locked.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    let locked = words(locked).await;
    for words in [full, locked] {
        assert!(words.contains("nothing was sent") && words.contains(path.to_str().unwrap()), "{words}");
    }
    assert!(gateway.seen().is_empty());
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(ask().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_conversation_goes_on_although_its_records_cannot_be_read() {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, "").await;
    let body = after_tool(&long_log());
    gateway.chat(&body).await;
    let gateway = gateway.restart().await;
    // From now on no record can be found.
    let other = Connection::open(index(&gateway)).unwrap();
    other.execute_batch("ALTER TABLE exchanges RENAME TO away").unwrap();
    assert_eq!(gateway.chat(&body).await.status(), 200, "what is only reported is no reason to refuse");
    other.execute_batch("ALTER TABLE away RENAME TO exchanges").unwrap();
    assert_eq!(gateway.seen()[0].body, gateway.seen()[1].body);
}
