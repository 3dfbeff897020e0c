//! A store that cannot be written to: its disk is full, or another program holds it.

use std::path::PathBuf;
use std::time::Duration;

use larder_gateway::auth::create_key;
use larder_proxy::record::Outcome;
use larder_store::{Job, KeyLimits, Retention, StoreOptions};
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
pub fn fill_up(index: &Connection, table: &str) {
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

/// What an operator sees: `degraded` of /readyz, whether the metric is set, whether the dashboard says so.
async fn degraded(gateway: &Gateway) -> (Value, bool, bool) {
    let ready: Value = gateway.get("/readyz").send().await.unwrap().json().await.unwrap();
    let page =
        |path: &'static str| async move { gateway.get(path).send().await.unwrap().text().await.unwrap() };
    let (metrics, overview) = (page("/metrics").await, page("/").await);
    (
        ready["degraded"].clone(),
        metrics.lines().any(|line| line == "larder_store_degraded 1"),
        overview.contains("The store cannot write"),
    )
}

#[tokio::test]
async fn with_a_full_disk_what_fits_goes_whole_and_only_the_rest_is_refused() {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, "").await;
    let path = index(&gateway);
    let held = Connection::open(&path).unwrap();
    fill_up(&held, "pointers");
    let log: String = long_log().lines().take(200).map(|line| format!("{line}\n")).collect();
    assert_eq!(degraded(&gateway).await, (Value::Null, false, false));
    assert_eq!(gateway.chat(&after_tool(&log)).await.status(), 200);
    let sent = gateway.last_sent();
    assert_eq!(
        sent["messages"],
        after_tool(&log)["messages"],
        "whole, and nothing points to what is not stored"
    );
    assert_eq!(degraded(&gateway).await, (json!("storage_full"), true, true));
    let flood = long_log().repeat(4);
    let refused = gateway.chat(&after_tool(&flood)).await;
    assert_eq!(refused.status(), 507);
    let words = words(refused).await;
    assert!(words.contains("nothing was sent") && words.contains("disk of the gateway is full"), "{words}");
    assert!(!words.contains(gateway.dir.path().to_str().unwrap()), "{words}");
    assert_eq!(gateway.seen().len(), 1);

    free_up(&held);
    assert_eq!(gateway.chat(&after_tool(&flood)).await.status(), 200, "once there is room");
    let pointer = pointers(&gateway, &gateway.last_sent().to_string()).remove(0);
    assert_eq!(gateway.store().pointers().resolve(&Pointer::whole(pointer.id)).unwrap(), flood.as_bytes());
    assert_eq!(degraded(&gateway).await, (Value::Null, false, false));
    assert!(gateway.app.store.verify().unwrap().is_clean());
    let (records, _) = gateway.stop().await;
    let ended: Vec<_> =
        records.iter().map(|record| (record.summary.outcome, record.summary.status)).collect();
    assert_eq!(ended, [(Outcome::Ok, 200), (Outcome::Failed, 507), (Outcome::Ok, 200)]);
    assert_eq!(records[1].summary.error.as_deref(), Some("storage_full"));
}

#[tokio::test]
async fn what_collections_of_others_find_of_the_size_is_shown_either_way() {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, "").await;
    // Its own first collection is over, and the next one is due in an hour.
    let is_later = |job: &Job| job.kind == "collect" && job.due > gateway.app.store.now();
    while !gateway.store().jobs().list().unwrap().iter().any(is_later) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    gateway.store().pointers().insert(b"used today", "text", "").unwrap();
    // As `larder gc` does.
    let collect = |retention: &Retention| gateway.app.documents.collect(retention, &|_| true).unwrap();
    let tiny = Retention { max_bytes: Some(1), ..Retention::default() };
    assert!(collect(&tiny).over_limit);
    assert_eq!(degraded(&gateway).await, (json!("storage_over_limit"), true, true));
    assert_eq!(gateway.chat(&after_tool(&long_log().repeat(4))).await.status(), 507);
    collect(&Retention::default());
    assert_eq!(degraded(&gateway).await, (Value::Null, false, false));
    // Where the settings allow more, nobody has to collect.
    assert!(collect(&tiny).over_limit);
    let settings = gateway.dir.path().join("larder.toml");
    let before = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(settings, format!("{before}\n[retention]\nmax_gb = 30\n")).unwrap();
    gateway.app.reload();
    while gateway.app.store.is_over_limit().unwrap() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_index_that_is_damaged_under_a_running_server_is_shown_without_its_path() {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, "").await;
    let ready = || async { gateway.get("/readyz").send().await.unwrap().text().await.unwrap() };
    let shown = ready().await;
    assert!(shown.contains("\"degraded\":null"), "{shown}");
    // From now on SQLite cannot make out a table.
    let damage = "PRAGMA writable_schema = ON;
                  UPDATE sqlite_schema SET sql = 'CREATE TABLE exchanges (' WHERE name = 'exchanges';
                  PRAGMA schema_version = 1000000;";
    Connection::open(index(&gateway)).unwrap().execute_batch(damage).unwrap();
    let shown = ready().await;
    assert!(shown.contains("\"degraded\":\"storage_damaged\""), "{shown}");
    assert!(!shown.contains(gateway.dir.path().to_str().unwrap()), "{shown}");
}

#[tokio::test]
async fn originals_have_the_kind_of_their_content() {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, "").await;
    let lines = |sign: char| -> String {
        (0..900).map(|n| format!("{sign}value {n} of the configuration, {}\n", n * 7 % 97)).collect()
    };
    let diff = format!(
        "diff --git a/a.toml b/a.toml\n--- a/a.toml\n+++ b/a.toml\n@@ -1,900 +1,900 @@\n{}{}",
        lines('-'),
        lines('+')
    );
    let rows: Vec<Value> =
        (0..3_000).map(|n| json!({"id": n, "took": n * 7 % 97, "path": format!("/api/{n}")})).collect();
    for (text, kind) in
        [(long_log().repeat(4), "log"), (diff, "diff"), (Value::from(rows).to_string(), "json")]
    {
        assert_eq!(gateway.chat(&after_tool(&text)).await.status(), 200);
        let pointer = pointers(&gateway, &gateway.last_sent().to_string()).remove(0);
        let stored = gateway.store().pointers().get(&Pointer::whole(pointer.id)).unwrap();
        assert_eq!((stored.kind.as_str(), stored.bytes), (kind, text.len() as u64));
    }
    gateway.stop().await;
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
    assert!(words.contains("nothing was sent") && words.contains("another process"), "{words}");
    assert!(!words.contains(path.to_str().unwrap()), "{words}");
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
        assert!(words.contains("nothing was sent") && !words.contains(path.to_str().unwrap()), "{words}");
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

#[tokio::test]
async fn a_damaged_original_is_stored_again_once_a_read_has_found_it() {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, "").await;
    let flood = long_log().repeat(4);
    assert_eq!(gateway.chat(&after_tool(&flood)).await.status(), 200);
    let pointer = pointers(&gateway, &gateway.last_sent().to_string()).remove(0);
    let path = format!("/api/v1/pointers/{}/content", pointer.id);
    let content = || async { gateway.get(&path).send().await.unwrap() };
    assert_eq!(content().await.text().await.unwrap(), flood);

    // The first record of the only segment: originals are stored before the request is sent.
    let segment = gateway.dir.path().join("home/blobs/u-local/000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[1_000] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    assert!(content().await.status().is_server_error(), "nothing is given for what it is not");
    assert_eq!(gateway.chat(&after_tool(&flood)).await.status(), 200);
    assert_eq!(content().await.text().await.unwrap(), flood, "the request brought it along");
    gateway.stop().await;
}
