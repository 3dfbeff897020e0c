//! The answers of the API to messages without replies, malformed and forbidden requests, and invitations.

use axum::http::StatusCode;
use larder_models::chat::ModelError;
use larder_testkit::gateway::{ask, post, read};
use larder_testkit::scripted::{Act, text};
use serde_json::{Value, json};

use super::tests::{keyed, says, send, send_with_key, talk, with};

fn fails() -> Act {
    Act::Say(Err(ModelError::NotConfigured { provider: "script".into(), detail: "no".into() }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_model_failed_is_answered_once_and_before_the_next() {
    let (app, router, path) = talk([fails(), says("To one."), says("To two.")]).await;
    let listed = async || {
        let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
        let messages = list["messages"].as_array().unwrap().clone();
        messages.iter().map(|one| json!([one["text"], one["status"]])).collect::<Vec<_>>()
    };
    let post = async |words: &str, key: &str| {
        let (status, _, body) = read(ask(&app, &router, "a", keyed(&path, words, key, false)).await).await;
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    assert_eq!(post("one", "k-1").await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(listed().await, [json!(["one", "waiting"])]);
    let (_, reply) = post("two", "k-2").await;
    assert_eq!((&reply["text"], &reply["notices"]), (&json!("To two."), &Value::Null));
    let all = [
        json!(["one", "answered"]),
        json!(["To one.", null]),
        json!(["two", "answered"]),
        json!(["To two.", null]),
    ];
    assert_eq!(listed().await, all);
    assert_eq!(post("one", "k-1").await.1["text"], "To one.", "it is not answered twice");
    assert_eq!((listed().await.len(), app.model.left()), (4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_fails_again_is_shown_without_a_reply_until_it_is_sent_again() {
    let (app, router, path) = talk([fails(), fails(), says("To two."), says("To one.")]).await;
    let post = async |words: &str, key: &str| {
        let (_, _, body) = read(ask(&app, &router, "a", keyed(&path, words, key, false)).await).await;
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let status = async || {
        let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
        let messages = list["messages"].as_array().unwrap();
        messages.iter().find(|one| one["text"] == "one").unwrap()["status"].clone()
    };
    post("one", "k-1").await;
    let reply = post("two", "k-2").await;
    assert_eq!(reply["text"], "To two.");
    let notice = reply["notices"][0].as_str().unwrap();
    assert!(notice.contains("stays without a reply") && notice.contains("send it again"), "{notice}");
    assert_eq!(status().await, "unanswered");
    assert_eq!(post("one", "k-1").await["text"], "To one.");
    assert_eq!((status().await, app.model.left()), (json!("answered"), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_a_required_tag_begins_anew() {
    let (app, router, path) = talk([Act::Say(Ok(text("No fields."))), says("With fields.")]).await;
    let (_, _, stream) = read(ask(&app, &router, "a", keyed(&path, "Hi", "k", true)).await).await;
    // Who reads from the second attempt on sees nothing of the first.
    let (void, rest) = stream.split_once("event: restart").unwrap_or(("No fields.", &stream));
    assert!(
        void.contains("No fields.") && rest.contains("With ") && !rest.contains("No fields."),
        "{stream}"
    );
    let (_, list) = send(&app, &router, "a", "GET", &format!("{path}/messages"), json!({})).await;
    assert_eq!((&list["messages"][1]["text"], app.model.left()), (&json!("With fields."), 0));
}

/// What has another form than the one described is 400, what has it and may not be is 422, and both are in the description.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_told_from_those_that_are_not_allowed() {
    let (app, router, path) = talk([]).await;
    let id = path.rsplit('/').next().unwrap();
    let description = serde_json::to_value(crate::api::description()).unwrap();
    let mut bodies = 0;
    for (place, operations) in description["paths"].as_object().unwrap() {
        if !place.starts_with("/api/v1/conversation") {
            continue;
        }
        for (method, operation) in operations.as_object().unwrap() {
            if operation.get("requestBody").is_none() {
                continue;
            }
            bodies += 1;
            assert!(operation["responses"].get("400").is_some(), "{method} {place}");
            let place = place.replace("{id}", id).replace("{fact}", "fact-1").replace("{name}", "chat");
            for body in ["{", r#"{"no_such_field": 1}"#, "7"] {
                let mut request = post(&place, "application/json", body);
                *request.method_mut() = method.to_uppercase().parse().unwrap();
                let (status, _, problem) = read(ask(&app, &router, "a", request).await).await;
                assert_eq!(status, StatusCode::BAD_REQUEST, "{method} {place} {body}: {problem}");
            }
        }
    }
    assert!(bodies >= 9, "{bodies}");
    let of = |end: &str| format!("{path}/{end}");
    for (method, place, body) in [
        ("GET", of("messages?session=x"), json!({})),
        ("GET", of("messages?sesion=1"), json!({})),
        ("GET", of("window?message=-1"), json!({})),
        ("POST", of("messages"), json!({"text": 7})),
    ] {
        let (status, problem) = send(&app, &router, "a", method, &place, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{method} {place}: {problem}");
    }
    let all = "/api/v1/conversations".to_owned();
    let many = json!({"type": "chat", "participants": [{"name": "a"}, {"name": "a"}]});
    let odd = json!({"type": "chat", "participants": [{"name": "a\nb"}]});
    for (method, place, body) in [
        ("POST", all.clone(), many),
        ("POST", all, odd),
        ("POST", of("messages"), json!({"text": " "})),
        ("POST", of("sessions"), json!({"aside": "nowhere"})),
        ("POST", of("actions"), json!({"action": "nothing"})),
        ("POST", of("consents"), json!({"scope": "profile", "shown": " "})),
        ("POST", of("consents"), json!({"scope": "no such scope", "shown": "May I?"})),
        ("PUT", of("memory/fact-1"), json!({"fact": " "})),
        ("POST", of("shares/preview"), json!({"text": "Hi", "to": ["nobody"]})),
        ("POST", "/api/v1/conversation-types/chat/start".to_owned(), json!({"text": "Hi"})),
    ] {
        let (status, problem) = send(&app, &router, "a", method, &place, body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{method} {place}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_or_a_person_that_there_is_not_is_not_found() {
    let (app, router, path) = talk([]).await;
    for place in [format!("{path}/messages?session=9"), format!("{path}/messages?session=0")] {
        let (status, problem) = send(&app, &router, "a", "GET", &place, json!({})).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{place}");
        assert!(problem["detail"].as_str().unwrap().contains("the newest is 1"), "{problem}");
    }
    assert_eq!(
        send(&app, &router, "a", "GET", &format!("{path}/messages?session=1"), json!({})).await.0,
        StatusCode::OK
    );
    let nobody = "/api/v1/conversation-persons/nobody";
    assert_eq!(send(&app, &router, "a", "DELETE", nobody, json!({})).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_invitations_are_limited_and_go_with_the_person() {
    const ALL: &str = "/api/v1/conversations";
    const INVITATIONS: &str = "/api/v1/conversation-invitations";
    let (app, router, _) = talk([]).await;
    let call = async |by: &str, method: &str, path: &str, body: Value| {
        send_with_key(&app, &router, by, method, path, body).await
    };
    let open = async |of: &str| {
        call(of, "GET", INVITATIONS, json!({})).await.1["invitations"].as_array().unwrap().len()
    };
    let mut begun = Vec::new();
    for _ in 0..50 {
        let (status, conversation) = call("a", "POST", ALL, with(&[("ben", "b")])).await;
        assert_eq!(status, StatusCode::CREATED, "{conversation}");
        begun.push(conversation["id"].as_str().unwrap().to_owned());
    }
    let (status, problem) = call("a", "POST", ALL, with(&[("cleo", "c")])).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(problem["detail"].as_str().unwrap().contains("at most 50"), "{problem}");
    assert_eq!(call("a", "POST", ALL, with(&[])).await.0, StatusCode::CREATED, "nobody is invited");
    let accepted = format!("{ALL}/{}/participants", begun[0]);
    assert_eq!(call("b", "POST", &accepted, json!({"name": "ben"})).await.0, StatusCode::CREATED);
    assert_eq!(call("a", "POST", ALL, with(&[("cleo", "c")])).await.0, StatusCode::CREATED);
    assert_eq!((open("b").await, open("c").await), (49, 1));
    // The person who is invited, and then the one who invites.
    let forget = |name: &str| format!("/api/v1/conversation-persons/{name}");
    assert_eq!(call("c", "DELETE", &forget("cleo"), json!({})).await.0, StatusCode::NO_CONTENT);
    assert_eq!((open("b").await, open("c").await), (49, 0));
    assert_eq!(call("a", "DELETE", &forget("ana"), json!({})).await.0, StatusCode::NO_CONTENT);
    assert_eq!(open("b").await, 0);
}
