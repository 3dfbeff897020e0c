//! Conversations over HTTP: posted once, answered once, read again at any time, and seen by nobody else.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use larder_models::chat::ModelError;
use larder_testkit::gateway::{TestApp, ask, ask_with_key, get, post, read};
use larder_testkit::scripted::{Act, text};
use serde_json::{Value, json};

const FIELDS: &str = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>";

pub(super) fn says(words: &str) -> Act {
    Act::Say(Ok(text(&format!("{FIELDS}{words}"))))
}

/// A gateway with the conversation type `chat`, whose model performs `acts`; and a conversation of user `a`.
pub(super) async fn talk(acts: impl IntoIterator<Item = Act>) -> (Arc<TestApp>, Router, String) {
    let project = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base");
    let app = Arc::new(TestApp::of_project(&project, acts));
    let router = crate::api::router(Arc::clone(&app.app));
    let (status, begun) =
        send(&app, &router, "a", "POST", "/api/v1/conversations", json!({"type": "chat"})).await;
    assert_eq!(status, StatusCode::CREATED, "{begun}");
    let path = format!("/api/v1/conversations/{}", begun["id"].as_str().unwrap());
    (app, router, path)
}

pub(super) async fn send(
    app: &TestApp,
    router: &Router,
    user: &str,
    method: &str,
    path: &str,
    body: Value,
) -> (StatusCode, Value) {
    let mut request = post(path, "application/json", &body.to_string());
    *request.method_mut() = method.parse().unwrap();
    let (status, _, body) = read(ask(app, router, user, request).await).await;
    (status, serde_json::from_str(&body).unwrap_or_default())
}

pub(super) fn keyed(path: &str, words: &str, key: &str, events: bool) -> Request<Body> {
    let mut request =
        post(&format!("{path}/messages"), "application/json", &json!({ "text": words }).to_string());
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    if events {
        request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    }
    request
}

/// The text of a stream, and the ids of its events.
fn told(stream: &str) -> (String, Vec<String>) {
    let (mut text, mut ids) = (String::new(), Vec::new());
    for block in stream.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        match field("event: ") {
            Some("restart") => (text, ids) = Default::default(),
            Some("text") => {
                let data: Value = serde_json::from_str(field("data: ").unwrap()).unwrap();
                text.push_str(data["text"].as_str().unwrap());
                ids.extend(field("id: ").map(str::to_owned));
            }
            _ => {}
        }
    }
    (text, ids)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_and_what_was_sent_is_shown() {
    let (app, router, path) = talk([says("Hello, you."), says("And again.")]).await;
    let (status, reply) =
        send(&app, &router, "a", "POST", &format!("{path}/messages"), json!({"text": "Hi"})).await;
    assert_eq!(
        (status, &reply["text"], &reply["stage"]),
        (StatusCode::OK, &json!("Hello, you."), &json!("hello"))
    );
    send(&app, &router, "a", "POST", &format!("{path}/messages"), json!({"text": "Go on"})).await;
    let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
    let said: Vec<&str> =
        list["messages"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(said, ["Hi", "Hello, you.", "Go on", "And again."]);
    let (_, window) = send(&app, &router, "a", "GET", &format!("{path}/window"), json!({})).await;
    assert_eq!(window["record"]["fields"]["UserIntensity"], "4", "{window}");
    assert_eq!(window["record"]["window"]["sent"].as_array().unwrap().len(), 2, "{window}");
    let first = list["messages"][0]["number"].as_u64().unwrap();
    let (_, window) =
        send(&app, &router, "a", "GET", &format!("{path}/window?message={first}"), json!({})).await;
    assert_eq!(
        (&window["reply"], &window["record"]["window"]["sent"]),
        (&list["messages"][1]["number"], &json!([]))
    );
    let (_, export) = send(&app, &router, "a", "GET", &format!("{path}/export"), json!({})).await;
    assert_eq!(export["tracks"][0]["messages"].as_array().unwrap().len(), 4, "{export}");
    assert_eq!(export["costs"][0]["calls"], 2, "{export}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_another_s_is_as_unknown_as_what_does_not_exist() {
    let (app, router, path) = talk([says("Hello.")]).await;
    send(&app, &router, "a", "POST", &format!("{path}/messages"), json!({"text": "my secret"})).await;
    let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
    let number = list["messages"][0]["number"].as_u64().unwrap();
    for (method, end, body) in [
        ("GET", String::new(), json!({})),
        ("DELETE", String::new(), json!({})),
        ("GET", "/messages".into(), json!({})),
        ("POST", "/messages".into(), json!({"text": "x"})),
        ("PUT", "/messages/last".into(), json!({"text": "x"})),
        ("POST", "/regenerate".into(), json!({})),
        ("POST", "/sessions".into(), json!({})),
        ("GET", "/window".into(), json!({})),
        ("GET", "/actions".into(), json!({})),
        ("POST", "/actions".into(), json!({"action": "explain"})),
        ("GET", "/export".into(), json!({})),
        ("GET", "/memory".into(), json!({})),
        ("PUT", "/memory/fact-1".into(), json!({"fact": "x"})),
        ("DELETE", "/memory/fact-1".into(), json!({})),
        ("GET", "/consents".into(), json!({})),
        ("POST", "/consents".into(), json!({"scope": "profile", "shown": "May I?"})),
        ("POST", "/consents/consent-1/revoke".into(), json!({})),
        ("GET", "/shares".into(), json!({})),
        ("POST", "/shares/preview".into(), json!({"message": number, "to": ["user"]})),
        ("POST", "/shares".into(), json!({"confirm": "x"})),
        ("DELETE", format!("/messages/{number}"), json!({})),
        ("GET", format!("/messages/{number}/events"), json!({})),
    ] {
        let other = send(&app, &router, "b", method, &format!("{path}{end}"), body.clone()).await;
        let unknown = path.replace("conv-", "conv-0");
        let (status, mut missing) = send(&app, &router, "b", method, &format!("{unknown}{end}"), body).await;
        missing["detail"] = json!(missing["detail"].as_str().unwrap().replace("conv-0", "conv-"));
        assert_eq!(
            (status, other),
            (StatusCode::NOT_FOUND, (StatusCode::NOT_FOUND, missing)),
            "{method} {end}"
        );
    }
    assert_eq!(app.model.left(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_is_repeated_is_the_same_post() {
    let (app, router, path) = talk([says("One two three four.")]).await;
    let sent = |events| ask(&app, &router, "a", keyed(&path, "Hi", "k-1", events));
    let (first, second, third) = tokio::join!(sent(true), sent(true), sent(false));
    let (first, second) = (read(first).await.2, read(second).await.2);
    assert_eq!((first.clone(), told(&first).0.as_str()), (second, "One two three four."));
    let whole: Value = serde_json::from_str(&read(third).await.2).unwrap();
    assert_eq!(whole["text"], "One two three four.");
    assert_eq!(read(sent(true).await).await.2, first, "later, too");
    let other = read(ask(&app, &router, "a", keyed(&path, "Ho", "k-1", false)).await).await;
    assert_eq!(other.0, StatusCode::UNPROCESSABLE_ENTITY, "{}", other.2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_resumed_anywhere_with_the_same_bytes() {
    let (app, router, path) = talk([says("One two three, wörld and more.")]).await;
    let whole = read(ask(&app, &router, "a", keyed(&path, "Hi", "k", true)).await).await.2;
    let (text, ids) = told(&whole);
    assert!(!ids.is_empty(), "{whole}");
    let number = ids[0].split('.').next().unwrap();
    let events = format!("{path}/messages/{number}/events");
    assert_eq!(read(ask(&app, &router, "a", get(&events)).await).await.2, whole);
    for id in &ids {
        let mut request = get(&events);
        request.headers_mut().insert("last-event-id", id.parse().unwrap());
        let rest = read(ask(&app, &router, "a", request).await).await.2;
        assert!(whole.ends_with(&rest), "{id}: {rest}");
        let read_before = &text[..id.rsplit('.').next().unwrap().parse::<usize>().unwrap()];
        assert_eq!(format!("{read_before}{}", told(&rest).0), text);
    }
    let mut request = get(&events);
    request.headers_mut().insert("last-event-id", format!("{number}.000000000000.3").parse().unwrap());
    let rest = read(ask(&app, &router, "a", request).await).await.2;
    assert!(rest.starts_with("event: restart") && rest.ends_with(&whole), "{rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_model_failed_is_answered_by_the_next_try() {
    let failing = Act::Say(Err(ModelError::NotConfigured { provider: "script".into(), detail: "no".into() }));
    let (app, router, path) = talk([failing, says("Now.")]).await;
    let (status, _, body) = read(ask(&app, &router, "a", keyed(&path, "Hi", "k", false)).await).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    let (status, _, body) = read(ask(&app, &router, "a", keyed(&path, "Hi", "k", false)).await).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
    assert_eq!(list["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_message_is_edited_and_answered_once_more() {
    let (app, router, path) = talk([says("First."), says("Second."), says("Third."), says("Fourth.")]).await;
    let texts = || async {
        let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
        let messages = list["messages"].as_array().unwrap().clone();
        messages.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (status, _) = send(&app, &router, "a", "POST", &format!("{path}/regenerate"), json!({})).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "nothing was said yet");
    send(&app, &router, "a", "POST", &format!("{path}/messages"), json!({"text": "Hi"})).await;
    let (_, reply) = send(&app, &router, "a", "POST", &format!("{path}/regenerate"), json!({})).await;
    assert_eq!(
        (reply["text"].as_str(), texts().await),
        (Some("Second."), vec!["Hi".into(), "Second.".into()])
    );
    let (_, reply) =
        send(&app, &router, "a", "PUT", &format!("{path}/messages/last"), json!({"text": "Ho"})).await;
    assert_eq!((reply["text"].as_str(), texts().await), (Some("Third."), vec!["Ho".into(), "Third.".into()]));
    let (_, one) = send(&app, &router, "a", "GET", &path, json!({})).await;
    assert_eq!(one["participants"][0]["state"]["turns"], 1, "{one}");
    send(&app, &router, "a", "POST", &format!("{path}/messages"), json!({"text": "More"})).await;
    assert_eq!(texts().await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_is_gone_and_a_session_begins_without_it() {
    let (app, router, path) = talk([says("First."), says("Second.")]).await;
    for words in ["one", "two"] {
        send(&app, &router, "a", "POST", &format!("{path}/messages"), json!({ "text": words })).await;
    }
    let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
    let run = app.user("a").runs().list(&larder_store::RunFilter::default()).unwrap();
    assert_eq!(run.len(), 2);
    let number = list["messages"][0]["number"].as_u64().unwrap();
    let (status, _) =
        send(&app, &router, "a", "DELETE", &format!("{path}/messages/{number}"), json!({})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) =
        send(&app, &router, "a", "DELETE", &format!("{path}/messages/{number}"), json!({})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
    assert_eq!(
        (list["messages"].as_array().unwrap().len(), &list["messages"][0]["text"]),
        (2, &json!("two"))
    );
    let (status, begun) =
        send(&app, &router, "a", "POST", &format!("{path}/sessions"), json!({"aside": "diary"})).await;
    assert_eq!((status, &begun["session"]), (StatusCode::CREATED, &json!(2)));
    let (status, _) =
        send(&app, &router, "a", "POST", &format!("{path}/sessions"), json!({"aside": "work"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let (status, _) = send(&app, &router, "a", "DELETE", &path, json!({})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(send(&app, &router, "a", "GET", &path, json!({})).await.0, StatusCode::NOT_FOUND);
    let (_, list) = send(&app, &router, "a", "GET", "/api/v1/conversations", json!({})).await;
    assert_eq!(list["conversations"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_are_listed_and_started() {
    let (app, router, _) = talk([Act::Say(Ok(text("1. What is a half?")))]).await;
    let (_, begun) =
        send(&app, &router, "a", "POST", "/api/v1/conversations", json!({"type": "tutor"})).await;
    let path = format!("/api/v1/conversations/{}/actions", begun["id"].as_str().unwrap());
    let (status, list) = send(&app, &router, "a", "GET", &path, json!({})).await;
    let names: Vec<&str> =
        list["actions"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!((status, names), (StatusCode::OK, vec!["open", "practise"]));
    let (status, refused) = send(&app, &router, "a", "POST", &path, json!({"action": "quiz"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused["detail"].as_str().unwrap().contains("use open, practise"), "{refused}");
    let (_, moved) = send(&app, &router, "a", "POST", &path, json!({"action": "practise"})).await;
    assert_eq!(moved["stage"], "practice", "{moved}");
    let (_, quiz) = send(&app, &router, "a", "POST", &path, json!({"action": "quiz"})).await;
    assert_eq!(
        (&quiz["reply"]["text"], &quiz["reply"]["action"]),
        (&json!("1. What is a half?"), &json!("quiz"))
    );
    assert_eq!(app.model.left(), 0);
}

#[tokio::test]
async fn types_are_listed() {
    let (app, router, _) = talk([]).await;
    let (_, types) = send(&app, &router, "a", "GET", "/api/v1/conversation-types", json!({})).await;
    let chat = types["types"].as_array().unwrap().iter().find(|kind| kind["name"] == "chat").unwrap();
    assert_eq!((&chat["participants"], &chat["asides"]), (&json!(2), &json!(["diary"])));
    let (status, problem) =
        send(&app, &router, "a", "POST", "/api/v1/conversations", json!({"type": "chatt"})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(problem["detail"].as_str().unwrap().contains("chat"), "{problem}");
}

/// As [`send`], with a key that is not an operator's.
pub(super) async fn send_with_key(
    app: &TestApp,
    router: &Router,
    user: &str,
    method: &str,
    path: &str,
    body: Value,
) -> (StatusCode, Value) {
    let mut request = post(path, "application/json", &body.to_string());
    *request.method_mut() = method.parse().unwrap();
    let (status, _, body) = read(ask_with_key(app, router, user, request).await).await;
    (status, serde_json::from_str(&body).unwrap_or_default())
}

pub(super) fn with(others: &[(&str, &str)]) -> Value {
    let others = others.iter().map(|(name, user)| json!({"name": name, "user": user}));
    let all: Vec<Value> = [json!({"name": "ana"})].into_iter().chain(others).collect();
    json!({"type": "chat", "title": "About the house", "participants": all})
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_part_by_the_key_of_another() {
    const ALL: &str = "/api/v1/conversations";
    const INVITATIONS: &str = "/api/v1/conversation-invitations";
    let (app, router, _) = talk([says("Hello."), says("Welcome.")]).await;
    let call = async |user: &str, method: &str, path: &str, body| {
        send_with_key(&app, &router, user, method, path, body).await
    };
    let (status, begun) = call("a", "POST", ALL, with(&[("ben", "b")])).await;
    assert_eq!(status, StatusCode::CREATED, "{begun}");
    assert_eq!(begun["participants"].as_array().unwrap().len(), 1, "{begun}");
    assert_eq!(begun["invited"], json!([{"name": "ben", "user": "b"}]));
    let path = format!("{ALL}/{}", begun["id"].as_str().unwrap());
    let (_, reply) = call("a", "POST", &format!("{path}/messages"), json!({"text": "my secret"})).await;
    assert_eq!(reply["text"], "Hello.");

    // The one who is invited has the invitation and nothing else, and nothing is kept of them.
    let (_, waiting) = call("b", "GET", INVITATIONS, json!({})).await;
    let invitation = &waiting["invitations"][0];
    assert_eq!((&invitation["name"], &invitation["from"]), (&json!("ben"), &json!("a")), "{waiting}");
    assert!(!waiting.to_string().contains("house") && !waiting.to_string().contains("secret"), "{waiting}");
    assert_eq!(call("b", "GET", ALL, json!({})).await.1["conversations"], json!([]));
    for (method, end, body) in [
        ("GET", "", json!({})),
        ("GET", "/messages", json!({})),
        ("GET", "/export", json!({})),
        ("POST", "/messages", json!({"text": "x"})),
        ("POST", "/consents", json!({"scope": "profile", "shown": "May I?"})),
    ] {
        let (status, _) = call("b", method, &format!("{path}{end}"), body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {end}");
    }
    let preview = json!({"text": "Hello, Ben", "to": ["ben"]});
    let (status, _) = call("a", "POST", &format!("{path}/shares/preview"), preview).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "nothing is shared with one who takes no part");

    // Only the one who is invited accepts, once.
    let join = format!("{path}/participants");
    for (user, body) in [
        ("a", json!({"name": "ben"})),
        ("c", json!({"name": "ben"})),
        ("a", json!({"name": "ben", "user": "b"})),
    ] {
        assert_eq!(call(user, "POST", &join, body).await.0, StatusCode::NOT_FOUND, "{user}");
    }
    let (status, joined) = call("b", "POST", &join, json!({"name": "ben"})).await;
    assert_eq!((status, &joined["invited"]), (StatusCode::CREATED, &Value::Null), "{joined}");
    assert_eq!(call("b", "POST", &join, json!({"name": "ben"})).await.0, StatusCode::NOT_FOUND);
    let (_, reply) = call("b", "POST", &format!("{path}/messages"), json!({"text": "Here I am"})).await;
    assert_eq!(reply["text"], "Welcome.");
    let (_, list) = call("b", "GET", &format!("{path}/messages"), json!({})).await;
    assert!(!list.to_string().contains("secret"), "{list}");

    // One may decline, the owner may take it back, and somebody must take part.
    for by in ["b", "a"] {
        let (_, begun) = call("a", "POST", ALL, with(&[("ben", "b")])).await;
        let place = format!("{ALL}/{}/participants/ben", begun["id"].as_str().unwrap());
        assert_eq!(call("c", "DELETE", &place, json!({})).await.0, StatusCode::NOT_FOUND);
        assert_eq!(call(by, "DELETE", &place, json!({})).await.0, StatusCode::NO_CONTENT);
        assert_eq!(call("b", "GET", INVITATIONS, json!({})).await.1["invitations"], json!([]));
    }
    let alone = json!({"type": "chat", "participants": [{"name": "ben", "user": "b"}]});
    let (status, problem) = call("a", "POST", ALL, alone).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("name yourself"), "{problem}");
    let (status, _) = call("a", "POST", ALL, with(&[("ben", "b"), ("cleo", "c")])).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "those who are invited count");

    // What is deleted takes its invitations along; an operator makes others take part at once, and accepts for them.
    let (_, begun) = call("a", "POST", ALL, with(&[("ben", "b")])).await;
    let path = format!("{ALL}/{}", begun["id"].as_str().unwrap());
    assert_eq!(call("a", "DELETE", &path, json!({})).await.0, StatusCode::NO_CONTENT);
    assert_eq!(call("b", "GET", INVITATIONS, json!({})).await.1["invitations"], json!([]));
    let (_, begun) = send(&app, &router, "a", "POST", ALL, with(&[("ben", "b")])).await;
    assert_eq!(begun["participants"].as_array().unwrap().len(), 2, "{begun}");
    let (_, begun) = call("a", "POST", ALL, with(&[("ben", "b")])).await;
    let join = format!("{ALL}/{}/participants", begun["id"].as_str().unwrap());
    let (status, _) = send(&app, &router, "o", "POST", &join, json!({"name": "ben", "user": "b"})).await;
    assert_eq!(status, StatusCode::CREATED);
}

fn ready() -> Act {
    Act::Say(Ok(text("<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: Y\n</thinking>Good.")))
}

/// A stage that waits for the others waits for those who are invited, too.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_invited_is_waited_for() {
    let (app, router, _) = talk([ready(), ready(), ready(), ready()]).await;
    let all = "/api/v1/conversations";
    let (_, begun) = send_with_key(&app, &router, "a", "POST", all, with(&[("ben", "b")])).await;
    let path = format!("{all}/{}", begun["id"].as_str().unwrap());
    let say = async || {
        let body = json!({"text": "Go on"});
        let said = send_with_key(&app, &router, "a", "POST", &format!("{path}/messages"), body).await;
        said.1["next_stage"].clone()
    };
    assert_eq!([say().await, say().await, say().await], ["hello", "hello", "hello"]);
    let body = json!({"name": "ben"});
    send_with_key(&app, &router, "b", "POST", &format!("{path}/participants"), body).await;
    assert_eq!(say().await, "work");
}

/// Of the others one sees what the type lets be seen, and nothing else of where they stand.
#[tokio::test(flavor = "multi_thread")]
async fn of_the_others_one_sees_how_far_they_are_where_the_type_says_so() {
    let (app, router, _) = talk([ready(), ready()]).await;
    let all = "/api/v1/conversations";
    let (_, begun) = send(&app, &router, "a", "POST", all, with(&[("ben", "b")])).await;
    let path = format!("{all}/{}", begun["id"].as_str().unwrap());
    let seen = async |by: &str, whom: usize| {
        let (_, shown) = send(&app, &router, by, "GET", &path, json!({})).await;
        shown["participants"][whom].clone()
    };
    assert_eq!(seen("a", 1).await["state"], json!({"stage": "hello", "milestones": []}));
    for _ in 0..2 {
        let body = json!({"text": "my secret"});
        send(&app, &router, "b", "POST", &format!("{path}/messages"), body).await;
    }
    let ben = json!({"stage": "work", "milestones": ["Said to be ready."]});
    assert_eq!(seen("a", 1).await, json!({"name": "ben", "user": "b", "session": 0, "state": ben}));
    assert_eq!(seen("b", 1).await["state"]["turns"], 2, "one's own is whole");
    assert_eq!(seen("b", 0).await["state"]["stage"], "hello");
    let mut support = with(&[("ben", "b")]);
    support["type"] = json!("support");
    let (_, begun) = send(&app, &router, "a", "POST", all, support).await;
    let (_, shown) =
        send(&app, &router, "a", "GET", &format!("{all}/{}", begun["id"].as_str().unwrap()), json!({})).await;
    assert_eq!(shown["participants"][1]["state"], Value::Null, "{shown}");
}
