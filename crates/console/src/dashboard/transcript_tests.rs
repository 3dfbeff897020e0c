//! The page of a transcript: what others wrote stays text, badges lead to the original with and without scripts.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use larder_store::TranscriptMessage;
use larder_text::hash::ContentHash;
use serde_json::json;

use larder_testkit::gateway::{TestApp as Fake, ask, get, read};
use larder_testkit::records::exchange;

const HOSTILE: &str = "\"'><script>alert(1)</script></pre>";

async fn started() -> (Arc<Fake>, Router) {
    let fake = Arc::new(Fake::new());
    let store = fake.user("a");
    let pointer = store.pointers().insert(b"the original result", HOSTILE, HOSTILE).unwrap().pointer_id;
    let call = json!({"role": "assistant", "content": null,
        "tool_calls": [{"id": "c", "function": {"name": HOSTILE, "arguments": HOSTILE}}]});
    let result = |text: &str| json!({"role": "tool", "tool_call_id": "c", "content": text}).to_string();
    let (call, raw, sent) = (call.to_string(), result("the original result"), result(HOSTILE));
    let first = r#"{"role": "user", "content": "Why?"}"#;
    let messages =
        [("user", first, None), ("assistant", &*call, None), ("tool", &*raw, Some(sent.as_bytes()))].map(
            |(role, raw, sent)| TranscriptMessage {
                identity: ContentHash::new(raw.as_bytes()),
                role,
                raw: raw.as_bytes(),
                sent,
                pointers: if sent.is_some() { std::slice::from_ref(&pointer) } else { &[] },
            },
        );
    store.transcripts().append("session-1", &messages, Some(b"data: a reply\n\n")).unwrap();
    fake.record(&exchange("a", 1));
    let router = super::super::router(Arc::clone(&fake.app));
    (fake, router)
}

async fn page(fake: &Fake, router: &Router, path: &str) -> String {
    let (status, _, body) = read(ask(fake, router, "a", get(path)).await).await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    body
}

#[tokio::test]
async fn a_transcript_is_read_from_the_page_of_its_session() {
    let (fake, router) = started().await;
    let session = page(&fake, &router, "/sessions/session-1").await;
    assert!(session.contains("href=\"/sessions/session-1/transcript\""));
    let body = page(&fake, &router, "/sessions/session-1/transcript").await;
    assert_eq!(body.matches("<tr id=\"line-").count(), 4, "three messages and the reply");
    assert!(body.contains("Why?") && body.contains(">shortened<") && body.contains(">whole<"));
    assert!(!body.contains("<script>alert") && body.contains("&lt;script&gt;alert(1)"));
    // Without scripts the link in the badge leads there; with them the piece is loaded into it.
    let address = "/sessions/session-1/transcript/3";
    assert!(
        body.contains(&format!("data-load=\"{address}\"")) && body.contains(&format!("href=\"{address}\""))
    );
    for path in [address.to_owned(), format!("{address}?piece=true")] {
        let shown = page(&fake, &router, &path).await;
        assert!(shown.contains("the original result") && !shown.contains("<script>alert"), "{path}");
        assert!(shown.contains("href=\"/api/v1/sessions/session-1/transcript/3/raw\""), "{path}");
        assert_eq!(shown.contains("<html"), path == address, "{path}");
    }
}

#[tokio::test]
async fn a_transcript_is_paged_and_walled() {
    let (fake, router) = started().await;
    let body = page(&fake, &router, "/sessions/session-1/transcript?limit=3&all=true").await;
    assert!(
        body.contains("href=\"/sessions/session-1/transcript?after=3&amp;all=true&amp;limit=3\""),
        "{body}"
    );
    for path in ["/sessions/session-1/transcript", "/sessions/session-1/transcript/3"] {
        assert_eq!(ask(&fake, &router, "b", get(path)).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(
        ask(&fake, &router, "a", get("/sessions/none/transcript")).await.status(),
        StatusCode::NOT_FOUND
    );
}
