//! Turns, documents and search over REST: described as they are, walled, resumable, and safe to open.

use axum::http::StatusCode;
use larder_agent::turn::TurnEvent;
use larder_models::chat::Usage;
use larder_testkit::gateway::{TestApp as Fake, ask, get, post, read};
use larder_testkit::turns::plain_turn;
use larder_testkit::vault;
use larder_vault::{Mode, TurnStatus};
use serde_json::{Value, json};

use super::*;

fn over(fake: Fake) -> (Arc<Fake>, Router) {
    let fake = Arc::new(fake);
    let router = router(Arc::clone(&fake.app));
    (fake, router)
}

async fn json_of(fake: &Fake, router: &Router, user: &str, path: &str) -> (StatusCode, Value) {
    let (status, _, body) = read(ask(fake, router, user, get(path)).await).await;
    (status, serde_json::from_str(&body).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_whole() {
    let (fake, router) = over(Fake::scripted(plain_turn()));
    let question = json!({"query": "What is it?", "session": " s-1 "}).to_string();
    let (status, headers, body) =
        read(ask(&fake, &router, "a", post("/api/v1/turns", "application/json", &question)).await).await;
    assert_eq!(
        (status, headers["content-type"].to_str().unwrap()),
        (StatusCode::OK, "application/json"),
        "{body}"
    );
    let outcome: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&outcome["turn"], &outcome["status"]), (&json!(1), &json!("complete")));
    let (_, list) = json_of(&fake, &router, "a", "/api/v1/turns").await;
    assert_eq!(
        (&list["turns"][0]["number"], &list["turns"][0]["session"]),
        (&json!(1), &json!("s-1")),
        "{list}"
    );
    let (_, one) = json_of(&fake, &router, "a", "/api/v1/turns/1").await;
    let context = one["documents"]
        .as_array()
        .unwrap()
        .iter()
        .find(|path| path.as_str().unwrap().ends_with("/context.md"));
    let context = context.unwrap().as_str().unwrap();
    assert!(one["metrics"]["total_tokens"].as_u64().unwrap() > 0, "{one}");
    let (status, headers, text) =
        read(ask(&fake, &router, "a", get(&format!("/api/v1/documents/{context}"))).await).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert!(text.contains("## 0. User Query") && text.contains("What is it?"));
    let (_, found) = json_of(&fake, &router, "a", "/api/v1/search?q=answer&kind=context").await;
    assert_eq!(found["hits"][0]["document"], context);
}

/// The names and data of server-sent events.
fn events(body: &str) -> Vec<(String, Value)> {
    let blocks = body.split("\n\n").filter(|block| block.starts_with("event: "));
    let read = |block: &str| {
        let (name, data) = block.split_once("\ndata: ").unwrap();
        (name.trim_start_matches("event: ").to_owned(), serde_json::from_str(data).unwrap())
    };
    blocks.map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_as_events() {
    for asked in [json!({"query": "What is it?", "stream": true}), json!({"query": "What is it?"})] {
        let (fake, router) = over(Fake::scripted(plain_turn()));
        let mut request = post("/api/v1/turns", "application/json", &asked.to_string());
        if asked.get("stream").is_none() {
            request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
        }
        let (status, headers, body) = read(ask(&fake, &router, "a", request).await).await;
        assert_eq!(
            (status, headers["content-type"].to_str().unwrap()),
            (StatusCode::OK, "text/event-stream")
        );
        let events = events(&body);
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names.first(), names.last()), (Some(&"started"), Some(&"outcome")), "{names:?}");
        assert!(events.iter().all(|(name, data)| name == "outcome" || data["event"] == *name));
        assert_eq!(names.iter().filter(|name| **name == "phase").count(), 7, "{names:?}");
        assert_eq!(events.last().unwrap().1["turn"], 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_stopped_is_resumed() {
    let failing = larder_testkit::scripted::Act::Say(Err(larder_models::chat::ModelError::NotConfigured {
        provider: "script".into(),
        detail: "no answer".into(),
    }));
    let mut acts: Vec<_> = plain_turn().into_iter().take(3).collect();
    acts.push(failing);
    acts.extend(plain_turn().into_iter().skip(2));
    let (fake, router) = over(Fake::scripted(acts));
    let question = post("/api/v1/turns", "application/json", r#"{"query": "What is it?", "stream": true}"#);
    let (_, _, body) = read(ask(&fake, &router, "a", question).await).await;
    let (name, problem) = events(&body).pop().unwrap();
    assert_eq!((name.as_str(), &problem["status"]), ("problem", &json!(502)), "{problem}");
    let (_, list) = json_of(&fake, &router, "a", "/api/v1/turns").await;
    assert_eq!(list["unfinished"][0]["number"], 1);
    assert_eq!(list["unfinished"][0]["running"], false);
    let (_, one) = json_of(&fake, &router, "a", "/api/v1/turns/1").await;
    let context = one["documents"][0].as_str().unwrap();
    let draft = ask(&fake, &router, "a", get(&format!("/api/v1/documents/{context}"))).await;
    assert_eq!(draft.status(), StatusCode::OK, "documents of a draft are read, too");
    for (user, expected) in
        [("b", StatusCode::NOT_FOUND), ("a", StatusCode::OK), ("a", StatusCode::NOT_FOUND)]
    {
        let (status, _, body) =
            read(ask(&fake, &router, user, post("/api/v1/turns/1/resume", "application/json", "")).await)
                .await;
        assert_eq!(status, expected, "{user}: {body}");
    }
}

#[tokio::test]
async fn no_document_of_another_user_is_read() {
    let (fake, router) = over(Fake::new());
    vault::turn(&fake, "a", "the secret of a").await;
    let path = "/api/v1/documents/users/a/turns/turn_000001/context.md";
    assert_eq!(ask(&fake, &router, "a", get(path)).await.status(), StatusCode::OK);
    let (status, problem) = json_of(&fake, &router, "b", path).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (_, missing) = json_of(&fake, &router, "b", "/api/v1/documents/users/b/none.md").await;
    assert_eq!(problem, missing, "what is another's is as unknown as what is not there");
    for path in [
        "/api/v1/documents/users/b/..%2fa/turns/turn_000001/context.md",
        "/api/v1/documents/..%2f..%2fetc%2fpasswd",
        "/api/v1/documents/%00",
        "/api/v1/turns/1",
    ] {
        assert_eq!(json_of(&fake, &router, "b", path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let (_, list) = json_of(&fake, &router, "b", "/api/v1/turns").await;
    assert_eq!(list["turns"], json!([]));
    let (_, found) = json_of(&fake, &router, "b", "/api/v1/search?q=secret").await;
    assert_eq!(found["hits"], json!([]));
}

#[tokio::test]
async fn documents_run_in_no_browser_and_turns_are_paged() {
    let (fake, router) = over(Fake::new());
    let vault = vault::turn(&fake, "a", "<script>alert(1)</script>").await;
    for (name, bytes, kind) in [
        ("page.html", b"<script>alert(1)</script>".to_vec(), "text/plain; charset=utf-8"),
        ("x.png", b"\x89PNG\r\n\x1a\nxx".to_vec(), "image/png"),
        ("x.svg", b"<svg onload=alert(1)>".to_vec(), "text/plain; charset=utf-8"),
        ("x.bin", vec![0xff, 0x00], "application/octet-stream"),
    ] {
        let mut draft = vault.drafts().begin(Mode::Chat, None, "x").unwrap();
        draft.files.insert(name.to_owned(), bytes.clone());
        vault.drafts().checkpoint(&draft).unwrap();
        let path = format!("/api/v1/documents/{}/{name}", draft.place.folder());
        let response = ask(&fake, &router, "a", get(&path)).await;
        assert_eq!(response.headers()["content-type"], kind, "{name}");
        assert!(response.headers()["content-security-policy"].to_str().unwrap().starts_with("sandbox"));
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(body, bytes);
    }
    let (_, page) = json_of(&fake, &router, "a", "/api/v1/turns?limit=1").await;
    assert_eq!((page["turns"].as_array().unwrap().len(), &page["next"]), (1, &Value::Null));
    let (_, page) = json_of(&fake, &router, "a", "/api/v1/turns?before=1").await;
    assert_eq!((&page["turns"], &page["unfinished"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn invalid_questions_are_rejected_with_a_reason() {
    let (fake, router) = over(Fake::new());
    for (body, status) in [
        (r#"{"query": "  "}"#, StatusCode::UNPROCESSABLE_ENTITY),
        (r#"{"query": "x", "mode": "loud"}"#, StatusCode::BAD_REQUEST),
        (r#"{"question": "x"}"#, StatusCode::BAD_REQUEST),
        (r#"{"query": "x", "session": "a\u0007b"}"#, StatusCode::BAD_REQUEST),
        ("{", StatusCode::BAD_REQUEST),
    ] {
        let answer = ask(&fake, &router, "a", post("/api/v1/turns", "application/json", body)).await;
        let (found, headers, text) = read(answer).await;
        assert_eq!(found, status, "{body}: {text}");
        assert_eq!(headers["content-type"], larder_gateway::problem::CONTENT_TYPE, "{body}");
    }
    let large = json!({"query": "x".repeat(2 << 20)}).to_string();
    let answer = ask(&fake, &router, "a", post("/api/v1/turns", "application/json", &large)).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(fake.vault("a").drafts().list().unwrap().is_empty(), "nothing was begun");
}

/// One of each.
fn every_event() -> Vec<TurnEvent> {
    let text = || "x".to_owned();
    vec![
        TurnEvent::Started { turn: 1, folder: text() },
        TurnEvent::Phase { number: 1, name: text(), attempt: 1 },
        TurnEvent::PhaseDone { number: 1, tokens: 1, millis: 1, text: text() },
        TurnEvent::Tool { call: text() },
        TurnEvent::ToolDone { status: text(), summary: text(), bytes: 1, millis: 1 },
        TurnEvent::Gathered { considered: Vec::new() },
        TurnEvent::Compacted { section: 4, from: 2, to: 1 },
        TurnEvent::Answer { text: text() },
        TurnEvent::Clarify { question: text() },
        TurnEvent::Finished {
            status: TurnStatus::Complete,
            unverified: false,
            tokens: 1,
            cost: None,
            millis: 1,
        },
        TurnEvent::Warning { text: text() },
    ]
}

fn keys(value: &Value) -> Vec<&String> {
    let mut keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn turns_are_described_as_they_are() {
    let (fake, router) = over(Fake::new());
    let vault = vault::turn(&fake, "a", "laptop").await;
    vault.drafts().begin(Mode::Chat, None, "x").unwrap();
    let (_, description) = json_of(&fake, &router, "a", "/api/v1/openapi.json").await;
    let schemas = &description["components"]["schemas"];
    let metrics = json_of(&fake, &router, "a", "/api/v1/turns/1").await.1["metrics"].clone();
    let outcome = larder_agent::turn::TurnOutcome {
        turn: 1,
        folder: String::new(),
        status: TurnStatus::Complete,
        answer: None,
        sources: Vec::new(),
        question: None,
        reason: None,
        unverified: false,
        usage: Usage::default(),
        cost: None,
        tool_calls: 0,
        latency_ms: 0,
    };
    for (schema, value) in [
        ("TurnRow", json!(vault.catalog().turn(1).unwrap())),
        ("DraftSummary", json!(vault.drafts().list().unwrap()[0])),
        ("DocumentHit", json!(vault.catalog().search("laptop", &[], 1).unwrap()[0])),
        ("TurnMetrics", metrics.clone()),
        ("RunMetrics", metrics["runs"][0].clone()),
        ("TurnOutcome", json!(outcome)),
    ] {
        assert_eq!(keys(&schemas[schema]["properties"]), keys(&value), "{schema}");
    }
    let described = schemas["TurnEvent"]["oneOf"].as_array().unwrap();
    assert_eq!(described.len(), every_event().len());
    for event in every_event() {
        let json = json!(event);
        let schema =
            described.iter().find(|schema| schema["properties"]["event"]["enum"][0] == json["event"]);
        let schema = schema.unwrap_or_else(|| panic!("{json} is described: {described:?}"));
        assert_eq!(keys(&schema["properties"]), keys(&json));
    }
}
