//! The pages of conversations without their script: everything works by forms, and nothing of another is shown.

use std::path::Path as FilePath;

use axum::Router;
use axum::body::Body;
use axum::http::header::LOCATION;
use axum::http::{Request, StatusCode};
use larder_testkit::gateway::{TestApp, ask, get, post, read};
use larder_testkit::scripted::{Act, text};

use super::*;

const FORM: &str = "application/x-www-form-urlencoded";

async fn talk() -> (Arc<TestApp>, Router, String) {
    let project = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base");
    let fields = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>";
    let acts =
        ["Hello <b>Ana</b>.", "Hello Ben."].map(|words| Act::Say(Ok(text(&format!("{fields}{words}")))));
    let app = Arc::new(TestApp::of_project(&project, acts));
    let router = super::super::router(Arc::clone(&app.app));
    let begun = sent(&app, &router, post("/conversations", FORM, "type=chat&participants=ana%2C+ben")).await;
    let path = begun.1.strip_suffix("?as=ana").unwrap().to_owned();
    (app, router, path)
}

/// Status, where it leads, and the page.
async fn sent(app: &TestApp, router: &Router, request: Request<Body>) -> (StatusCode, String, String) {
    let (status, headers, body) = read(ask(app, router, "a", request).await).await;
    let to = headers.get(LOCATION).map(|to| to.to_str().unwrap().to_owned());
    (status, to.unwrap_or_default(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_is_tried_with_what_was_sent_next_to_it() {
    let (app, router, path) = talk().await;
    let (_, _, list) = sent(&app, &router, get("/conversations")).await;
    assert!(list.contains("option value=\"chat\"") && list.contains(&format!("{path}?as=ben")), "{list}");
    let said = post(&format!("{path}/messages?as=ana"), FORM, "text=My+secret");
    let (status, to, _) = sent(&app, &router, said).await;
    assert_eq!((status, to), (StatusCode::SEE_OTHER, format!("{path}?as=ana")));
    let (_, _, page) = sent(&app, &router, get(&format!("{path}?as=ana"))).await;
    for shown in
        ["My secret", "Hello &lt;b&gt;Ana&lt;/b&gt;.", "UserIntensity", "hello", "Costs of this conversation"]
    {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let (_, _, other) = sent(&app, &router, get(&format!("{path}?as=ben"))).await;
    assert!(!other.contains("My secret") && !other.contains("Hello &lt;b&gt;"), "{other}");
    let (_, _, aside) = sent(&app, &router, get(&format!("{path}/aside?as=ana"))).await;
    assert!(aside.contains("What was sent") && !aside.contains("<html"), "{aside}");
    let (_, _, costs) = sent(&app, &router, get("/costs")).await;
    assert!(
        costs.contains("Conversations by stage") && costs.contains(path.rsplit('/').next().unwrap()),
        "{costs}"
    );
    let stranger = read(ask(&app, &router, "b", get(&format!("{path}?as=ana"))).await).await;
    assert!(stranger.0 == StatusCode::NOT_FOUND && !stranger.2.contains("secret"), "{}", stranger.2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_agrees_revokes_and_leaves_by_forms() {
    let (app, router, path) = talk().await;
    let memory = format!("{path}/memory?as=ana");
    let (_, _, page) = sent(&app, &router, get(&memory)).await;
    assert!(page.contains("I agree that what I say") && page.contains("not agreed"), "{page}");
    let (status, to, _) =
        sent(&app, &router, post(&format!("{path}/consents?as=ana"), FORM, "scope=profile")).await;
    assert_eq!((status, to.as_str()), (StatusCode::SEE_OTHER, memory.as_str()));
    let (_, _, page) = sent(&app, &router, get(&memory)).await;
    let revoke = page.split("action=\"").find(|rest| rest.contains("/revoke?as=ana")).unwrap();
    let revoke = revoke.split('"').next().unwrap();
    let (_, _, other) = sent(&app, &router, get(&format!("{path}/memory?as=ben"))).await;
    assert!(!other.contains("/revoke"), "{other}");
    let (status, ..) = sent(&app, &router, post(&revoke.replace("as=ana", "as=ben"), FORM, "")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(sent(&app, &router, post(revoke, FORM, "")).await.0, StatusCode::SEE_OTHER);
    let (_, _, page) = sent(&app, &router, get(&memory)).await;
    assert!(page.contains("What you agreed to before") && !page.contains("/revoke"), "{page}");
    let (status, ..) = sent(&app, &router, post(&format!("{path}/forget-me?as=ana"), FORM, "")).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(sent(&app, &router, get(&memory)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(sent(&app, &router, get(&format!("{path}?as=ben"))).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_accepted_or_declined_by_the_person_at_the_browser() {
    let (app, router, _) = talk().await;
    let people = ["Ana", "Ben"].map(str::to_owned).map(|name| (name.clone(), name.to_lowercase()));
    let begin = || {
        let all = app.conversations(&larder_testkit::gateway::caller(app.user("ana")));
        all.begin_inviting("chat", "Our house", &people[..1], &people[1..]).unwrap().id
    };
    for (act, to_conversation) in [("decline", false), ("accept", true)] {
        let id = begin();
        let as_ben = |request| async { read(ask(&app, &router, "ben", request).await).await };
        let (_, _, list) = as_ben(get("/conversations")).await;
        assert!(list.contains("Invitations") && list.contains("Ben") && !list.contains("house"), "{list}");
        let (status, headers, _) = as_ben(post(&format!("/conversations/{id}/{act}?as=Ben"), FORM, "")).await;
        let to = headers[LOCATION].to_str().unwrap();
        assert_eq!((status, to.contains(&id)), (StatusCode::SEE_OTHER, to_conversation), "{act}");
        let (_, _, list) = as_ben(get("/conversations")).await;
        assert!(!list.contains("Invitations") && list.contains(&id) == to_conversation, "{act}: {list}");
    }
}
