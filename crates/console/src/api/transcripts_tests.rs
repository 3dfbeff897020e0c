//! Transcripts over REST: every message by itself, in order, with the tool it is from and both its forms.

use axum::http::StatusCode;
use axum::{Router, routing::get as route};
use larder_store::TranscriptMessage;
use larder_testkit::gateway::{TestApp as Fake, ask, get, read};
use serde_json::{Value, json};

use super::*;

fn router() -> Router {
    Router::new()
        .route("/api/v1/sessions/{session}/transcript", route(show))
        .route("/api/v1/sessions/{session}/transcript/{line}/{form}", route(payload))
}

async fn page(fake: &Fake, user: &str, path: &str) -> (StatusCode, Value) {
    let (status, _, body) = read(ask(fake, &router(), user, get(path)).await).await;
    (status, serde_json::from_str(&body).unwrap())
}

/// A question, a call and its long result as often as said, each result sent shorter with a pointer; and the reply.
fn talk(fake: &Fake, session: &str, results: usize) {
    let store = fake.user("a");
    let pointer = store.pointers().insert(b"the long result", "tool_result", "r").unwrap().pointer_id;
    let mut said = vec![("user", json!({"role": "user", "content": "What is slow?"}), None)];
    for at in 0..results {
        let call =
            json!({"id": format!("c{at}"), "function": {"name": format!("tool_{at}"), "arguments": "{}"}});
        said.push(("assistant", json!({"role": "assistant", "tool_calls": [call]}), None));
        let result =
            |text: String| json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": text});
        said.push(("tool", result(format!("the long result {at}")), Some(result(format!("short {at}")))));
    }
    let bytes: Vec<_> = said
        .iter()
        .map(|(role, raw, sent)| (*role, raw.to_string(), sent.as_ref().map(Value::to_string)))
        .collect();
    let messages: Vec<_> = bytes
        .iter()
        .map(|(role, raw, sent)| TranscriptMessage {
            identity: ContentHash::new(raw.as_bytes()),
            role,
            raw: raw.as_bytes(),
            sent: sent.as_deref().map(str::as_bytes),
            pointers: if sent.is_some() { std::slice::from_ref(&pointer) } else { &[] },
        })
        .collect();
    let reply = json!({"choices": [{"message": {"role": "assistant", "content": "Nothing."}}]}).to_string();
    store.transcripts().append(session, &messages, Some(reply.as_bytes())).unwrap();
}

#[tokio::test]
async fn messages_come_in_order_with_their_tools_and_both_forms() {
    let fake = Fake::new();
    talk(&fake, "a b", 2);
    let base = "/api/v1/sessions/a%20b/transcript";
    let (_, found) = page(&fake, "a", base).await;
    assert_eq!((&found["branch"], &found["total"], &found["next"]), (&json!(1), &json!(6), &Value::Null));
    let messages = found["messages"].as_array().unwrap();
    let text = |at: usize| messages[at]["text"].as_str().unwrap();
    assert_eq!([text(0), text(2), text(4), text(5)], ["What is slow?", "short 0", "short 1", "Nothing."]);
    assert_eq!(
        (&messages[1]["calls"][0]["name"], &messages[4]["tool"]),
        (&json!("tool_0"), &json!("tool_1"))
    );
    assert_eq!((&messages[0]["sent_as"], &messages[4]["sent_as"]), (&json!("whole"), &json!("shortened")));
    assert_eq!(messages[5]["kind"], "reply");
    let pointer = messages[4]["pointers"][0].as_str().unwrap().parse().unwrap();
    assert_eq!(fake.user("a").pointers().resolve(&pointer).unwrap(), b"the long result");
    for (form, words) in [("raw", "the long result 1"), ("sent", "short 1")] {
        let href = messages[4][form]["href"].as_str().unwrap();
        let (status, headers, body) = read(ask(&fake, &router(), "a", get(href)).await).await;
        assert_eq!(status, StatusCode::OK, "{href}");
        assert!(
            body.contains(words) && headers["content-security-policy"].to_str().unwrap().contains("sandbox")
        );
        assert_eq!(messages[4][form]["bytes"], body.len());
    }
    for wrong in ["/99/raw", "/x/raw", "/1/other"] {
        let status = ask(&fake, &router(), "a", get(&format!("{base}{wrong}"))).await.status();
        assert!(status.is_client_error(), "{wrong}: {status}");
    }
}

#[tokio::test]
async fn a_transcript_is_paged_and_every_page_knows_the_tools() {
    let fake = Fake::new();
    talk(&fake, "s", 5);
    let (mut seen, mut after) = (Vec::new(), json!(0));
    while !after.is_null() {
        let (_, found) =
            page(&fake, "a", &format!("/api/v1/sessions/s/transcript?limit=2&after={after}")).await;
        seen.extend(found["messages"].as_array().unwrap().clone());
        after = found["next"].clone();
    }
    assert_eq!(seen.len(), 12);
    let tools: Vec<&str> = seen.iter().filter_map(|message| message["tool"].as_str()).collect();
    assert_eq!(tools, ["tool_0", "tool_1", "tool_2", "tool_3", "tool_4"]);
    let (_, past) = page(&fake, "a", "/api/v1/sessions/s/transcript?after=99").await;
    assert_eq!((&past["messages"], &past["next"]), (&json!([]), &Value::Null));
}

/// A message of each text, one after the other.
fn tell(fake: &Fake, session: &str, messages: &[String]) {
    let messages: Vec<_> = messages
        .iter()
        .map(|raw| TranscriptMessage {
            identity: ContentHash::new(raw.as_bytes()),
            role: "assistant",
            raw: raw.as_bytes(),
            sent: None,
            pointers: &[],
        })
        .collect();
    fake.user("a").transcripts().append(session, &messages, None).unwrap();
}

#[tokio::test]
async fn long_arguments_are_cut_and_make_pages_shorter() {
    let fake = Fake::new();
    let call = |at: usize| {
        let arguments = "é".repeat(TEXT_BYTES / 2 + 1 + at);
        json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}]})
    };
    tell(&fake, "s", &[call(0).to_string(), call(1).to_string()]);
    let (_, found) = page(&fake, "a", "/api/v1/sessions/s/transcript").await;
    let messages = found["messages"].as_array().unwrap();
    let call = &messages[0]["calls"][0];
    assert_eq!((call["arguments"].as_str().unwrap().len(), &call["cut"]), (TEXT_BYTES, &json!(true)));
    assert_eq!((messages.len(), &messages[0]["cut"], &found["next"]), (1, &json!(false), &json!(1)));
}

#[tokio::test]
async fn oversized_messages_link_to_their_full_text() {
    let fake = Fake::new();
    let large = usize::try_from(READ_BYTES).unwrap();
    let picture = |at: usize| {
        let url = "A".repeat(large - 1_000 + at);
        json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}).to_string()
    };
    let text = json!({"role": "user", "content": "x".repeat(large)}).to_string();
    let mut told = vec![text.clone()];
    told.extend((0..6).map(picture));
    tell(&fake, "a b", &told);
    let (_, found) = page(&fake, "a", "/api/v1/sessions/a%20b/transcript").await;
    let first = &found["messages"][0];
    let href = first["raw"]["href"].as_str().unwrap();
    assert!(first["text"].as_str().unwrap().contains(href) && first["cut"] == json!(true), "{first}");
    assert_eq!(read(ask(&fake, &router(), "a", get(href)).await).await.2, text);
    assert_eq!(
        (&found["messages"][1]["text"], &found["messages"][1]["cut"]),
        (&json!("[image_url]"), &json!(false))
    );
    assert_eq!(found["next"], 6, "pictures say little, and are read all the same");
}

#[tokio::test]
async fn earlier_forms_and_other_branches_are_to_be_had() {
    let fake = Fake::new();
    let store = fake.user("a");
    let identity = [b"1", b"2", b"3"].map(|text| ContentHash::new(text));
    let message = |at: usize, sent: Option<&'static [u8]>| TranscriptMessage {
        identity: identity[at],
        role: "user",
        raw: br#"{"content": "long"}"#,
        sent,
        pointers: &[],
    };
    store.transcripts().append("s", &[message(0, None), message(1, None)], None).unwrap();
    store.transcripts().append("s", &[message(0, Some(b"")), message(1, None)], None).unwrap();
    store.transcripts().append("s", &[message(0, Some(b"")), message(2, None)], None).unwrap();
    let (_, newest) = page(&fake, "a", "/api/v1/sessions/s/transcript").await;
    assert_eq!(
        (&newest["branch"], &newest["branches"], &newest["total"]),
        (&json!(2), &json!([1, 2]), &json!(2))
    );
    let (_, first) = page(&fake, "a", "/api/v1/sessions/s/transcript?branch=1").await;
    assert_eq!(
        (&first["messages"][0]["sent_as"], &first["messages"][0]["text"]),
        (&json!("left_out"), &json!(""))
    );
    let (_, all) = page(&fake, "a", "/api/v1/sessions/s/transcript?all=true").await;
    let kinds: Vec<&str> =
        all["messages"].as_array().unwrap().iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "message", "rendition", "message"]);
    assert_eq!(all["branch"], Value::Null);
}

#[tokio::test]
async fn a_damaged_message_does_not_hide_the_others() {
    let fake = Fake::new();
    // Long enough for a file of its own, which is emptied.
    let text: String = (0..20_000).map(|n| format!("{:x}", n * n)).collect();
    tell(&fake, "s", &["first", &text, "last"].map(|said| json!({"content": said}).to_string()));
    let is_large = |path: &std::path::PathBuf| path.metadata().unwrap().len() > 10_000;
    let blobs: Vec<_> = walk(&fake.store.home().join("blobs")).into_iter().filter(is_large).collect();
    assert_eq!(blobs.len(), 1);
    std::fs::write(&blobs[0], "").unwrap();
    let (status, found) = page(&fake, "a", "/api/v1/sessions/s/transcript").await;
    let texts: Vec<_> = (0..3).map(|at| found["messages"][at]["text"].as_str().unwrap()).collect();
    assert_eq!((status, texts), (StatusCode::OK, vec!["first", DAMAGED, "last"]));
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn users_are_walls() {
    let fake = Fake::new();
    talk(&fake, "s", 1);
    for path in ["/api/v1/sessions/s/transcript", "/api/v1/sessions/s/transcript/1/raw"] {
        assert_eq!(ask(&fake, &router(), "a", get(path)).await.status(), StatusCode::OK, "{path}");
        assert_eq!(page(&fake, "b", path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}
