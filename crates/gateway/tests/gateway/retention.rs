//! Expired originals as clients meet them, and that a conversation in use loses none.

use std::sync::Arc;
use std::time::Duration;

use larder_store::{ExchangeFilter, Retention, Store, StoreOptions};
use larder_testkit::stub::{Answer, StubServer};
use larder_text::pointer::Pointer;
use serde_json::{Value, json};

use crate::support::{Gateway, SetClock, after_tool, completion, long_log, pointers, said};

/// Waits until so many requests are recorded.
async fn recorded(gateway: &Gateway, requests: usize) {
    while gateway.store().exchanges().list(&ExchangeFilter::default()).unwrap().len() < requests {
        tokio::task::yield_now().await;
    }
}

async fn problem(gateway: &Gateway, path: &str) -> (u16, Value) {
    let response = gateway.get(path).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_conversation_in_use_keeps_its_originals_and_one_at_rest_says_when_they_expired() {
    let clock = SetClock::at("2026-01-01T12:00:00Z");
    let provider = StubServer::responding(|_| said("ok")).await;
    let gateway = Gateway::with_store(provider, "", clock.store()).await;
    let body = after_tool(&long_log());
    let times = ["2026-01-01T12:00:00Z", "2026-01-20T12:00:00Z", "2026-02-10T12:00:00Z"];
    for (requests, time) in (1..).zip(times) {
        clock.set(time);
        assert_eq!(gateway.chat(&body).await.status(), 200);
        recorded(&gateway, requests).await;
        gateway.app.collect().unwrap();
        let pointer = pointers(&gateway, &gateway.last_sent().to_string()).remove(0);
        let original = gateway.store().pointers().resolve(&Pointer::whole(pointer.id)).unwrap();
        assert_eq!(original, long_log().as_bytes(), "{time}");
    }
    let id = pointers(&gateway, &gateway.last_sent().to_string()).remove(0).id;
    clock.set("2026-03-13T12:00:00Z");
    gateway.app.collect().unwrap();
    for path in [format!("/api/v1/pointers/{id}"), format!("/api/v1/pointers/{id}/content?lines=1:2")] {
        let (status, problem) = problem(&gateway, &path).await;
        assert_eq!(status, 410, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("expired on 2026-03-13"), "{detail}");
    }
    // The client still has the original, and the conversation goes on.
    assert_eq!(gateway.chat(&body).await.status(), 200);
    assert_eq!(gateway.store().pointers().resolve(&Pointer::whole(id)).unwrap(), long_log().as_bytes());
    assert!(gateway.app.store.verify().unwrap().is_clean());
}

#[tokio::test]
async fn an_original_in_a_history_that_the_provider_holds_is_in_use() {
    let clock = SetClock::at("2026-01-01T12:00:00Z");
    let provider = StubServer::responding(|seen| {
        // A conversation has one name; replies that are continued have one each.
        let continued = seen.json()["previous_response_id"].as_str().map_or(0, |id| id[5..].parse().unwrap());
        Answer::json(
            200,
            &json!({"id": format!("resp_{}", continued + 1), "object": "response", "status": "completed",
            "output": [{"id": "msg", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "ok", "annotations": []}]}]}),
        )
    })
    .await;
    let gateway = Gateway::with_store(provider, "", clock.store()).await;
    let mut requests = 0;
    for (place, log) in [("previous_response_id", long_log()), ("conversation", long_log() + "another")] {
        let call = json!({"type": "function_call", "call_id": "c", "name": "read_log", "arguments": "{}"});
        let output = json!({"type": "function_call_output", "call_id": "c", "output": log});
        let mut body = json!({"model": "mini", "input": [call, output]});
        if place == "conversation" {
            body[place] = json!("conv_1");
        }
        let mut id = None;
        for (at, time) in (0..).zip(["2026-01-01T12:00:00Z", "2026-01-20T12:00:00Z", "2026-02-10T12:00:00Z"])
        {
            clock.set(time);
            let reply = gateway.post("/v1/responses", body.to_string()).send().await.unwrap();
            assert_eq!(reply.status(), 200);
            requests += 1;
            recorded(&gateway, requests).await;
            gateway.app.collect().unwrap();
            let pointer =
                id.get_or_insert_with(|| pointers(&gateway, &gateway.last_sent().to_string()).remove(0).id);
            let original = gateway.store().pointers().resolve(&Pointer::whole(pointer.clone())).unwrap();
            assert_eq!(original, log.as_bytes(), "{place} {time}");
            body["input"] = json!([{"role": "user", "content": "And why?"}]);
            if place == "previous_response_id" {
                body[place] = json!(format!("resp_{}", at + 1));
            }
        }
    }
    assert!(gateway.app.store.verify().unwrap().is_clean());
}

#[tokio::test]
async fn what_another_process_forgets_is_stored_again_before_a_pointer_to_it_is_sent() {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, "").await;
    let body = after_tool(&long_log());
    assert_eq!(gateway.chat(&body).await.status(), 200);
    recorded(&gateway, 1).await;
    let other = Store::open(&gateway.dir.path().join("home"), StoreOptions::default()).unwrap();
    other.delete_user("local").unwrap();
    let id = pointers(&gateway, &gateway.last_sent().to_string()).remove(0).id;
    assert!(gateway.store().pointers().resolve(&Pointer::whole(id.clone())).is_err());
    // Another process is believed to have changed nothing for 2 ms.
    tokio::time::sleep(Duration::from_millis(5)).await;
    for _ in 0..2 {
        assert_eq!(gateway.chat(&body).await.status(), 200);
        assert!(gateway.last_sent().to_string().contains(&id.to_string()));
        let original = gateway.store().pointers().resolve(&Pointer::whole(id.clone())).unwrap();
        assert_eq!(original, long_log().as_bytes());
    }
}

#[tokio::test]
async fn a_request_under_way_when_its_user_is_forgotten_stores_nothing_and_a_later_one_does() {
    let reply = completion(json!({"role": "assistant", "content": "a dawn reply"}), "stop").to_string();
    let (begun, rest) = reply.split_at(20);
    let (answer, pusher) = Answer::new(200, "application/json", begun).pushed();
    let gateway = Gateway::new([answer, said("a dusk reply")]).await;
    let ask = |session: &str| {
        let body = json!({"model": "mini", "max_tokens": 10,
            "messages": [{"role": "user", "content": format!("an {session} word")}]});
        gateway.post("/v1/chat/completions", body.to_string()).header("x-larder-session", session).send()
    };
    let asking = tokio::spawn(ask("dawn"));
    while gateway.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    let home = gateway.dir.path().join("home");
    Store::open(&home, StoreOptions::default()).unwrap().delete_user("local").unwrap();
    pusher.push(rest);
    drop(pusher);
    let answered = asking.await.unwrap().unwrap();
    assert_eq!(answered.status(), 200);
    assert!(answered.text().await.unwrap().contains("a dawn reply"));
    assert_eq!(ask("dusk").await.unwrap().status(), 200);
    let (store, dir) = (gateway.store(), Arc::clone(&gateway.dir));
    let (records, _) = gateway.stop().await;
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0].summary.session.as_deref(), Some("dusk"));
    assert!(store.transcripts().lines("dawn").unwrap().is_empty());
    assert!(!store.transcripts().lines("dusk").unwrap().is_empty());
    for file in ["index.sqlite", "index.sqlite-wal"] {
        let bytes = std::fs::read(dir.path().join("home").join(file)).unwrap_or_default();
        assert!(!bytes.windows(4).any(|window| window == b"dawn"), "{file}");
    }
}

#[tokio::test]
async fn an_original_that_a_client_quotes_is_in_use() {
    let clock = SetClock::at("2026-01-01T12:00:00Z");
    let provider = StubServer::responding(|_| said("ok")).await;
    let gateway = Gateway::with_store(provider, "", clock.store()).await;
    let stored = gateway.store().pointers().insert(b"the original", "text", "").unwrap();
    clock.set("2026-01-25T12:00:00Z");
    let body = json!({"model": "mini", "max_tokens": 10,
        "messages": [{"role": "user", "content": format!("What does {} say?", stored.pointer_id)}]});
    assert_eq!(gateway.chat(&body).await.status(), 200);
    recorded(&gateway, 1).await;
    clock.set("2026-02-20T12:00:00Z");
    let kept = Retention { max_bytes: None, ..gateway.app.current().config.retention() };
    assert!(gateway.app.documents.collect(&kept, &|_| true).unwrap().by_age.is_empty());
    gateway.store().pointers().resolve(&stored.pointer_id).unwrap();
}
