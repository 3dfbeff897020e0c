//! A wall clock that is put back and forward by a day between requests, and during one.

use larder_gateway::auth::create_key;
use larder_proxy::record::RequestRecord;
use larder_store::{ExchangeFilter, KeyId, KeyLimits, Timestamp};
use larder_testkit::stub::{Answer, StubServer};
use larder_text::pointer::Pointer;
use serde_json::{Value, json};

use crate::support::{Gateway, SetClock, after_tool, chat_events, long_log, pointers, said};

const BEFORE: &str = "2026-11-20T12:00:00.000Z";
const TODAY: &str = "2026-11-21T12:00:00.000Z";
const AFTER: &str = "2026-11-22T12:00:00.000Z";

fn body() -> Value {
    json!({"model": "mini", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]})
}

/// A key of ada's with a budget of so many tokens a day.
fn key(gateway: &Gateway, tokens: u64) -> (String, KeyId) {
    let limits = KeyLimits { tokens_per_day: Some(tokens), picos_per_day: None };
    let (key, record) = create_key(&gateway.app.store, "ada", "test", limits).unwrap();
    (key.reveal().to_owned(), record.id)
}

/// What the key has used on the day of the clock, once that is settled.
async fn settled(gateway: &Gateway, id: &KeyId) -> u64 {
    loop {
        let day = gateway.app.store.keys().day_spend(id).unwrap();
        if day.used.tokens > 0 && day.held.tokens == 0 {
            return day.used.tokens;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_conversation_goes_on_with_the_same_bytes_and_no_record_is_lost() {
    let clock = SetClock::at(TODAY);
    let provider = StubServer::responding(|_| said("ok")).await;
    let gateway = Gateway::with_store(provider, "", clock.store()).await;
    let mut body = after_tool(&long_log());
    for time in [TODAY, BEFORE, AFTER, TODAY] {
        clock.set(time);
        assert_eq!(gateway.chat(&body).await.status(), 200);
    }
    let seen = gateway.seen();
    assert!(seen.iter().all(|sent| sent.body == seen[0].body));
    let history = body["messages"].as_array_mut().unwrap();
    history.push(json!({"role": "assistant", "content": "ok"}));
    history.push(json!({"role": "user", "content": "And why?"}));
    clock.set(BEFORE);
    assert_eq!(gateway.chat(&body).await.status(), 200);
    let (first, last) = (seen[0].json(), gateway.last_sent());
    let (first, last) = (first["messages"].as_array().unwrap(), last["messages"].as_array().unwrap());
    assert_eq!(last[..first.len()], first[..], "the prompt is extended");
    let pointer = pointers(&gateway, &last[3].to_string()).remove(0);
    assert_eq!(
        gateway.store().pointers().resolve(&Pointer::whole(pointer.id)).unwrap(),
        long_log().as_bytes()
    );

    let store = gateway.store();
    let (records, _) = gateway.stop().await;
    let times: Vec<String> = records.iter().map(|record| record.summary.time.to_string()).collect();
    assert_eq!(times, [BEFORE, BEFORE, TODAY, TODAY, AFTER], "by the clock, the newest last");
    assert!(records.iter().all(|record| record.summary.times.total_us >= record.summary.times.upstream_us));
    let mut paged: Vec<String> = Vec::new();
    for _ in 0..records.len() {
        let filter =
            ExchangeFilter { before: paged.last().cloned(), limit: Some(1), ..ExchangeFilter::default() };
        let page = store.exchanges().list(&filter).unwrap();
        paged.push(serde_json::from_str::<RequestRecord>(&page[0]).unwrap().summary.id);
    }
    assert!(
        paged.iter().eq(records.iter().rev().map(|record| &record.summary.id)),
        "each stands on one page"
    );
    let sessions = store.exchanges().sessions(10).unwrap();
    let [session] = sessions.as_slice() else { panic!("one conversation: {sessions:?}") };
    let span = (session.first.to_string(), session.last.to_string());
    assert_eq!((span, session.requests), ((BEFORE.to_owned(), AFTER.to_owned()), 5));
    let costs = store.exchanges().costs(Timestamp::from_millis(0)).unwrap();
    let days: Vec<_> = costs.iter().map(|row| (row.day.as_str(), row.requests)).collect();
    assert_eq!(days, [("2026-11-22", 1), ("2026-11-21", 2), ("2026-11-20", 2)]);
}

#[tokio::test]
async fn a_day_that_comes_again_does_not_give_its_budget_back() {
    let clock = SetClock::at(TODAY);
    let provider = StubServer::responding(|_| said("ok")).await;
    let gateway = Gateway::with_store(provider, "", clock.store()).await;
    // The provider reports 110 tokens, and no second request fits into what is left.
    let (key, id) = key(&gateway, 120);
    for (time, status) in [
        (TODAY, 200),
        (TODAY, 429),
        (AFTER, 200),
        (AFTER, 429),
        (TODAY, 429),
        (BEFORE, 200),
        (TODAY, 429),
        (BEFORE, 429),
        (AFTER, 429),
    ] {
        clock.set(time);
        let asked = gateway.post("/v1/chat/completions", body().to_string()).bearer_auth(&key);
        let response = asked.send().await.unwrap();
        assert_eq!(response.status(), status, "{time}");
        let wait = response.headers().get("retry-after").map(|wait| wait.to_str().unwrap());
        assert_eq!(wait, (status == 429).then_some("43200"), "until midnight");
        assert_eq!(settled(&gateway, &id).await, 110, "{time}");
    }
    assert_eq!(gateway.seen().len(), 3);
}

#[tokio::test]
async fn a_call_counts_on_the_day_it_began_however_the_clock_jumps_meanwhile() {
    for jump in [BEFORE, AFTER] {
        let clock = SetClock::at(TODAY);
        let (streamed, pusher) = Answer::events("").pushed();
        let provider = StubServer::start([streamed, said("ok")]).await;
        let gateway = Gateway::with_store(provider, "", clock.store()).await;
        let (key, id) = key(&gateway, 50_000);
        let ask = |stream: bool| {
            let mut body = body();
            body["stream"] = json!(stream);
            gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(&key).send()
        };
        let events = chat_events(&[json!({"content": "ok"})], "stop");
        let (begin, end) = events.split_at(events.find("\n\n").unwrap() + 2);
        pusher.push(begin);
        let response = ask(true).await.unwrap();
        clock.set(jump);
        // A day ahead, this one finds what is held for the other to have expired.
        assert_eq!(ask(false).await.unwrap().status(), 200);
        assert_eq!(settled(&gateway, &id).await, 110);
        pusher.push(end);
        drop(pusher);
        assert_eq!(response.text().await.unwrap(), events);
        clock.set(TODAY);
        let used = settled(&gateway, &id).await;
        assert!(used < 110, "what was set aside for it: {used}");
        clock.set(jump);
        assert_eq!(settled(&gateway, &id).await, 110, "and not on that day");
    }
}
