//! Transcripts from outside: whatever became of a message, it is read as it came and as it was sent.

use serde_json::{Value, json};

use crate::support::{Gateway, after_tool, long_log, said};

/// Every message of a session's transcript, page after page.
async fn transcript(gateway: &Gateway, session: &str) -> Vec<Value> {
    let (mut messages, mut after) = (Vec::new(), json!(0));
    while !after.is_null() {
        let path = format!("/api/v1/sessions/{session}/transcript?limit=100&after={after}");
        let page: Value = gateway.get(&path).send().await.unwrap().json().await.unwrap();
        messages.extend(page["messages"].as_array().unwrap_or_else(|| panic!("{page}")).clone());
        after = page["next"].clone();
    }
    messages
}

/// A message of a transcript as it came.
async fn raw(gateway: &Gateway, message: &Value) -> String {
    let href = message["raw"]["href"].as_str().unwrap();
    gateway.get(href).send().await.unwrap().text().await.unwrap()
}

fn session(response: &reqwest::Response) -> String {
    response.headers()["x-larder-session"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_message_of_a_long_history_is_there_though_its_window_tells_neighbours_as_one() {
    let gateway = Gateway::new([said("ok")]).await;
    let turn = |at: usize| json!({"role": "user", "content": format!("message {at}")});
    let history: Vec<Value> = (0..240).map(turn).collect();
    let session = session(&gateway.chat(&json!({"model": "mini", "messages": history})).await);
    let gateway = gateway.restart().await;
    let messages = transcript(&gateway, &session).await;
    assert_eq!(messages.len(), 241, "all messages and the reply");
    for (came, message) in history.iter().zip(&messages) {
        assert_eq!(message["text"], came["content"]);
        assert_eq!(&serde_json::from_str::<Value>(&raw(&gateway, message).await).unwrap(), came);
    }
    assert_eq!((&messages[240]["kind"], &messages[240]["text"]), (&json!("reply"), &json!("ok")));
    let (records, _) = gateway.stop().await;
    assert!(records[0].window.len() < 200, "the window has {} parts", records[0].window.len());
}

#[tokio::test]
async fn five_runs_of_a_tool_are_compacted_and_stay_readable() {
    let settings =
        "[policy]\nentry_cap = 400\ntrace_threshold_tokens = 900\nprotect_last = 2\nexpected_turns = 100";
    let provider = larder_testkit::stub::StubServer::start((0..5).map(|_| said("Go on."))).await;
    let gateway = Gateway::with(provider, settings).await;
    let log = |run: usize| long_log().replace("2026", &format!("{}", 2000 + run));
    let mut body = after_tool(&log(0));
    let mut named = String::new();
    for run in 1..=5 {
        let response = gateway.chat(&body).await;
        assert_eq!(response.status(), 200);
        named = session(&response);
        let id = format!("call_{}", run + 1);
        let history = body["messages"].as_array_mut().unwrap();
        history.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read_log", "arguments": "{}"}}]}));
        history.push(json!({"role": "tool", "tool_call_id": id, "content": log(run)}));
    }
    let gateway = gateway.restart().await;
    let messages = transcript(&gateway, &named).await;
    let results: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 5);
    for (run, message) in results.into_iter().enumerate() {
        assert_eq!((&message["tool"], &message["sent_as"]), (&json!("read_log"), &json!("shortened")));
        let came: Value = serde_json::from_str(&raw(&gateway, message).await).unwrap();
        assert_eq!(came["content"], log(run));
        let pointer = message["pointers"][0].as_str().unwrap();
        let path = format!("/api/v1/pointers/{pointer}/content");
        assert_eq!(gateway.get(&path).send().await.unwrap().text().await.unwrap(), log(run));
    }
    let path = format!("/api/v1/sessions/{named}/transcript?all=true");
    let all: Value = gateway.get(&path).send().await.unwrap().json().await.unwrap();
    let renditions = all["messages"].as_array().unwrap().iter().filter(|line| line["kind"] == "rendition");
    assert!(renditions.count() > 0, "the compaction is told: {all}");
}
