//! The pages of conversations without their script: everything works by forms, and nothing of another is shown.

use std::path::Path as FilePath;

use axum::Router;
use axum::body::Body;
use axum::http::header::LOCATION;
use axum::http::{Request, StatusCode};
use larder_store::{MemoryChange, MemoryKind, MemoryRecord, Timestamp};
use larder_testkit::gateway::{TestApp, ask, ask_with_key, get, post, read};
use larder_testkit::scripted::{Act, text};

use super::*;

const FORM: &str = "application/x-www-form-urlencoded";

/// A reply with the fields of both types.
fn reply(words: &str) -> String {
    format!("<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>{words}")
}

async fn talk() -> (Arc<TestApp>, Router, String) {
    talk_of("chat", [reply("Hello <b>Ana</b>."), reply("Hello Ben.")]).await
}

/// A conversation of a type between Ana and Ben, whose model says these.
async fn talk_of(kind: &str, said: impl IntoIterator<Item = String>) -> (Arc<TestApp>, Router, String) {
    let project = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base");
    let acts = said.into_iter().map(|words| Act::Say(Ok(text(&words))));
    let app = Arc::new(TestApp::of_project(&project, acts));
    let router = super::super::router(Arc::clone(&app.app));
    let new = format!("type={kind}&participants=ana%2C+ben");
    let begun = sent(&app, &router, post("/conversations", FORM, &new)).await;
    let path = begun.1.strip_suffix("?as=ana").unwrap().to_owned();
    (app, router, path)
}

/// The other name in [`talk_of_two_names`], as addresses have it.
const JO: &str = "Jo%20%26%20Co";

/// A conversation that one user has with themselves as Ann and as Jo, each with a secret.
async fn talk_of_two_names() -> (Arc<TestApp>, Router, String) {
    let (app, router, _) = talk().await;
    let begin = post("/conversations", FORM, &format!("type=chat&participants=Ann,{JO}"));
    let (_, to, page) = sent(&app, &router, begin).await;
    let path = to.strip_suffix("?as=Ann").unwrap_or_else(|| panic!("{to}: {page}")).to_owned();
    for (who, form) in [("Ann", "text=Secret+of+Ann"), (JO, "text=Secret+of+Jo")] {
        let page = done(&app, &router, (&path, "messages", who), form).await;
        assert!(page.contains("Secret of"), "{who}: {page}");
    }
    (app, router, path)
}

/// Posts a form as one participant, and gives the page that it leads to, or is.
async fn done(app: &TestApp, router: &Router, (path, to, name): (&str, &str, &str), form: &str) -> String {
    let (status, to, page) = sent(app, router, post(&format!("{path}/{to}?as={name}"), FORM, form)).await;
    if status == StatusCode::OK {
        return page;
    }
    assert_eq!(status, StatusCode::SEE_OTHER, "{form}: {page}");
    sent(app, router, get(to.split('#').next().unwrap())).await.2
}

/// Status, where it leads, and the page.
async fn sent(app: &TestApp, router: &Router, request: Request<Body>) -> (StatusCode, String, String) {
    let (status, headers, body) = read(ask(app, router, "a", request).await).await;
    let to = headers.get(LOCATION).map(|to| to.to_str().unwrap().to_owned());
    (status, to.unwrap_or_default(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_message_is_changed_answered_again_and_deleted() {
    let (app, router, path) = talk_of("chat", ["One.", "Two.", "Three."].map(reply)).await;
    let change = async |form: &str| done(&app, &router, (&path, "last", "ana"), form).await;
    let before = sent(&app, &router, get(&format!("{path}?as=ana"))).await.2;
    assert!(!before.contains("Your last message"), "{before}");
    let page = done(&app, &router, (&path, "messages", "ana"), "text=My+secert").await;
    assert!(page.contains("One.") && page.contains("dir=\"auto\">My secert</textarea>"), "{page}");
    let number = |page: &str| -> u64 {
        let (_, behind) = page.split_once("name=\"number\" value=\"").unwrap();
        behind.split('"').next().unwrap().parse().unwrap()
    };
    let first = number(&page);
    let page = change(&format!("number={first}&text=My+secret&change=edit")).await;
    assert!(page.contains("Two.") && page.contains("My secret"), "{page}");
    assert!(!page.contains("One.") && !page.contains("secert"), "{page}");
    let form = format!("number={first}&text=No&change=delete");
    let late = sent(&app, &router, post(&format!("{path}/last?as=ana"), FORM, &form)).await;
    assert!(
        late.0.is_client_error() && !late.2.contains("My secret"),
        "an older page changes nothing: {late:?}"
    );
    let page = change(&format!("number={}&text=Ignored&change=again", number(&page))).await;
    assert!(page.contains("Three.") && page.contains("My secret") && !page.contains("Two."), "{page}");
    let other = sent(&app, &router, get(&format!("{path}?as=ben"))).await.2;
    assert!(!other.contains("My secret") && !other.contains("Your last message"), "{other}");
    let page = change(&format!("number={}&text=&change=delete", number(&page))).await;
    assert!(!page.contains("My secret") && !page.contains("Three."), "{page}");
    assert!(!page.contains("Your last message"), "{page}");
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
async fn a_note_says_that_its_agreement_is_revoked_until_it_is_erased() {
    let (app, router, path) = talk().await;
    let said = serde_json::json!({
        "category": "People", "fact": "Has a daughter.", "message": 1, "start": 0, "end": 4, "scope": "session",
        "confidence": 1.0, "preference": false,
    });
    let note = MemoryRecord {
        number: 0,
        kind: MemoryKind::Fact,
        id: "fact-1".to_owned(),
        participant: "ana".to_owned(),
        conversation: path.rsplit('/').next().map(str::to_owned),
        session: Some(1),
        consent: None,
        data: said,
        vector: None,
        created: Timestamp::from_millis(0),
        ended: None,
    };
    let change = MemoryChange { put: vec![note], ..MemoryChange::default() };
    app.user("a").conversations().memory().apply(&change).unwrap();
    let memory = get(&format!("{path}/memory?as=ana"));
    let (_, _, page) = sent(&app, &router, memory).await;
    assert!(page.contains("Has a daughter.") && page.contains("for its session only"), "{page}");
    let page = done(&app, &router, (&path, "consents", "ana"), "scope=profile").await;
    assert!(page.contains("kept, because you agreed"), "{page}");
    let revoke =
        page.split(&format!("action=\"{path}/")).find(|rest| rest.contains("/revoke?as=ana")).unwrap();
    let revoke = revoke.split('?').next().unwrap();
    let page = done(&app, &router, (&path, revoke, "ana"), "").await;
    assert!(page.contains("agreement revoked: will be erased within a minute"), "{page}");
    assert!(!page.contains("kept, because you agreed"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_two_names_leaves_as_one_of_them_alone() {
    let (app, router, path) = talk_of_two_names().await;
    let status = |to: String, is_post: bool| {
        let request = if is_post { post(&to, FORM, "") } else { get(&to) };
        let (app, router) = (&app, &router);
        async move { sent(app, router, request).await.0 }
    };
    let unnamed = status(format!("{path}/delete"), true).await;
    assert_eq!(unnamed, StatusCode::UNPROCESSABLE_ENTITY, "which side is meant has to be said");
    assert_eq!(status(format!("{path}?as={JO}"), false).await, StatusCode::OK);
    assert_eq!(status(format!("{path}/delete?as={JO}"), true).await, StatusCode::SEE_OTHER);
    assert_eq!(status(format!("{path}?as={JO}"), false).await, StatusCode::NOT_FOUND);
    let (_, _, page) = sent(&app, &router, get(&format!("{path}?as=Ann"))).await;
    assert!(page.contains("Secret of Ann"), "{page}");
    assert_eq!(status(format!("{path}/delete?as=Ann"), true).await, StatusCode::SEE_OTHER);
    assert_eq!(status(format!("{path}?as=Ann"), false).await, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_two_names_takes_along_what_one_of_them_said() {
    let (app, router, path) = talk_of_two_names().await;
    let (_, _, page) = sent(&app, &router, get(&format!("{path}/memory?as={JO}"))).await;
    let export = format!("/api/v1{path}/export?participant={JO}");
    assert!(page.contains(&format!("href=\"{export}\"")), "{page}");
    let api = crate::api::router(Arc::clone(&app.app));
    let (status, _, file) = sent(&app, &api, get(&export)).await;
    assert_eq!(status, StatusCode::OK, "{file}");
    assert!(file.contains("Secret of Jo") && !file.contains("Secret of Ann"), "{file}");
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
        let of_ana =
            read(ask(&app, &router, "ana", get(&format!("/conversations/{id}?as=Ana"))).await).await.2;
        assert!(of_ana.contains("is invited and does not take part yet"), "{of_ana}");
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

#[tokio::test(flavor = "multi_thread")]
async fn whoever_begins_is_led_to_a_page_that_exists_and_is_told_how_others_take_part() {
    let (app, router, path) = talk().await;
    for (people, shown) in [
        ("Ann%3Da,Ben", "?as=Ann"),
        ("Zoe,Ben%3Da", "?as=Zoe"),
        ("Ann%3Db,Ben%3Da", "?as=Ben"),
        ("", "?as=user"),
        ("Ann%3Db,Ben%3Dc", "/conversations"),
    ] {
        let new = format!("type=chat&participants={people}");
        let (_, to, page) = sent(&app, &router, post("/conversations", FORM, &new)).await;
        assert!(to.ends_with(shown), "{people}: {to} {page}");
        assert_eq!(sent(&app, &router, get(&to)).await.0, StatusCode::OK, "{people}: {to}");
    }
    let (_, _, list) = sent(&app, &router, get("/conversations")).await;
    assert!(list.contains("NAME=USER lets another user take part at once."), "{list}");
    let (_, _, list) = read(ask_with_key(&app, &router, "a", get("/conversations")).await).await;
    assert!(list.contains("NAME=USER invites another user, who accepts under Conversations."), "{list}");

    let (status, _, page) = sent(&app, &router, get(&path)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        page.contains(
            "you take part in this conversation as ana and ben; say which is meant with `?as=NAME`"
        ),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_begun_is_shown_again_as_it_was_typed_with_the_reason() {
    let (app, router, _) = talk().await;
    let no_user = "ben= names no user; write ben=USER, or ben alone to take part as ben yourself";
    for (kind, people, why) in [
        ("chat", "ann, ben=", no_user),
        ("chat", "ann, =ben", "=ben names no participant; write NAME=USER"),
        ("chat", "ann, ann", "given twice"),
        ("mediation", "ann, ben, cid", "3 participants, but"),
    ] {
        let form = format!("type={kind}&participants={}", segment(people));
        let (status, _, page) = sent(&app, &router, post("/conversations", FORM, &form)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{people}: {page}");
        for shown in [
            format!("value=\"{people}\""),
            format!("value=\"{kind}\" selected>"),
            "aria-describedby=\"begin-problem invites\"".to_owned(),
            "Your conversations".to_owned(),
        ] {
            assert!(page.contains(&shown), "{people}: {shown}: {page}");
        }
        let problem = page.split("id=\"begin-problem\"").nth(1).unwrap().split("</p>").next().unwrap();
        assert!(problem.contains(why), "{people}: {problem}");
    }
    let (_, _, list) = sent(&app, &router, get("/conversations")).await;
    assert!(!list.contains("begin-problem") && !list.contains(" selected"), "{list}");
    let hostile = format!("type=chat&participants={}", segment("\"><script>="));
    let (_, _, page) = sent(&app, &router, post("/conversations", FORM, &hostile)).await;
    assert!(!page.contains("\"><script>") && page.contains("&lt;script&gt;"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_shared_by_forms_after_a_preview_and_nothing_else_is_seen() {
    let fine = r#"{"attacks": false, "spans": [], "suggestion": ""}"#.to_owned();
    let said = [reply("I hear you.<draft>I was scared.</draft>"), fine];
    let (app, router, path) = talk_of("mediation", said).await;
    let page = sent(&app, &router, get(&format!("{path}?as=ana"))).await.2;
    for shown in
        ["You are at <strong>Onboarding", "Let the assistant begin", "<strong>Witnessing", "A short guided"]
    {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(page.contains("Say something first") && !page.contains("value=\"share\""), "{page}");
    let page = done(&app, &router, (&path, "actions", "ana"), "action=begin&text=").await;
    assert!(page.contains("You are at <strong>Witnessing"), "{page}");
    let page = done(&app, &router, (&path, "messages", "ana"), "text=My+secret").await;
    assert!(
        page.contains("rows=\"4\" required>I was scared.</textarea>"),
        "the draft waits in the form: {page}"
    );
    let page = done(&app, &router, (&path, "shares/preview", "ana"), "text=I+was+scared.&to=ben").await;
    assert!(page.contains("nothing has been given yet") && page.contains("Give exactly this to"), "{page}");
    let of_ben = || async { sent(&app, &router, get(&format!("{path}?as=ben"))).await.2 };
    let before = of_ben().await;
    assert!(
        !before.contains("scared") && !before.contains("secret") && before.contains("Nothing yet."),
        "{before}"
    );
    let confirm = page.split("name=\"confirm\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let page = done(&app, &router, (&path, "shares", "ana"), &format!("confirm={confirm}")).await;
    assert!(page.contains("Shared by you") && !page.contains("nothing has been given yet"), "{page}");
    assert!(!page.contains("required>I was scared."), "what was given is no draft any more: {page}");
    let after = of_ben().await;
    assert!(after.contains("I was scared.") && after.contains("ana</bdi> is at Witnessing."), "{after}");
    assert!(!after.contains("secret") && !after.contains("I hear you"), "{after}");
    let (_, _, piece) = sent(&app, &router, get(&format!("{path}/acts?as=ben"))).await;
    assert!(piece.contains("I was scared.") && !piece.contains("<html"), "{piece}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_warns_of_what_attacks_and_suggests_other_words() {
    let judged = |attacks: bool| {
        let (spans, suggestion) = if attacks { (r#"["idiot"]"#, "Please listen.") } else { ("[]", "") };
        format!(r#"{{"attacks": {attacks}, "spans": {spans}, "suggestion": "{suggestion}"}}"#)
    };
    let (app, router, path) = talk_of("mediation", [reply("I hear you."), judged(false), judged(true)]).await;
    done(&app, &router, (&path, "messages", "ana"), "text=Hello").await;
    let page = done(&app, &router, (&path, "shares/preview", "ana"), "text=You+never+listen.&to=ben").await;
    assert!(page.contains("may attack") && page.contains("You never</bdi>"), "by rule: {page}");
    assert!(page.contains("name=\"confirm\""), "what is warned of may be shared: {page}");
    let page = done(&app, &router, (&path, "shares/preview", "ana"), "text=Listen,+idiot.&to=ben").await;
    assert!(page.contains("This cannot be shared as it is") && !page.contains("name=\"confirm\""), "{page}");
    assert!(page.contains("required>Please listen.</textarea>"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_left_out_of_a_preview_is_not_ticked_again() {
    let project = tempfile::tempdir().unwrap();
    let types = project.path().join("conversations");
    std::fs::create_dir(&types).unwrap();
    let cookbook = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../cookbook/conversations");
    let mediation = std::fs::read_to_string(cookbook.join("mediation.yaml")).unwrap();
    let family = mediation.replace("name: mediation", "name: family").replace("most: 2", "most: 3");
    std::fs::write(types.join("family.yaml"), family).unwrap();
    let fine = r#"{"attacks": false, "spans": [], "suggestion": ""}"#.to_owned();
    let said = [reply("I hear you."), fine].map(|words| Act::Say(Ok(text(&words))));
    let app = TestApp::of_project(project.path(), said);
    let router = super::super::router(Arc::clone(&app.app));
    let begin = post("/conversations", FORM, "type=family&participants=Ann,Ben,Carl");
    let (_, to, page) = sent(&app, &router, begin).await;
    let path = to.strip_suffix("?as=Ann").unwrap_or_else(|| panic!("{to}: {page}"));
    let page = done(&app, &router, (path, "messages", "Ann"), "text=Hello").await;
    let ticked = |page: &str, id: &str| {
        let tick = page.split("<input ").find(|rest| rest.contains(&format!("id=\"{id}\""))).unwrap();
        tick.split('>').next().unwrap().contains("checked")
    };
    assert!(ticked(&page, "share-to-Ben") && ticked(&page, "share-to-Carl"), "{page}");
    let page = done(&app, &router, (path, "shares/preview", "Ann"), "text=Hi&to=Ben").await;
    for form in ["share", "change"] {
        assert!(ticked(&page, &format!("{form}-to-Ben")), "{form}: {page}");
        assert!(!ticked(&page, &format!("{form}-to-Carl")), "{form}: {page}");
    }
    let nobody = sent(&app, &router, post(&format!("{path}/shares/preview?as=Ann"), FORM, "text=Hi")).await;
    assert!(nobody.0 == StatusCode::UNPROCESSABLE_ENTITY && nobody.2.contains("who get it"), "{}", nobody.2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_runs_once_both_released_and_shows_each_what_is_about_them() {
    let pair = |about: &str| {
        format!(
            r#"{{"about": "{about}", "guessedBy": "x", "alignment": 0.5, "matches": [], "gaps": [{{"text": "gap of {about}", "quote": "q", "weight": 2}}], "next": "share"}}"#
        )
    };
    let pairs = format!(r#"{{"pairs": [{}, {}]}}"#, pair("ana"), pair("ben"));
    let said =
        [reply("One."), reply("Two."), pairs, reply("Something is missing.<draft>I was alone.</draft>")];
    let (app, router, path) = talk_of("mediation", said).await;
    for name in ["ana", "ben"] {
        for step in ["begin", "feel_heard"] {
            done(&app, &router, (&path, "actions", name), &format!("action={step}")).await;
        }
        done(&app, &router, (&path, "messages", name), &format!("text=Secret+of+{name}")).await;
    }
    let mut page = String::new();
    for name in ["ana", "ben"] {
        let form = format!("purpose=reconcile&text=Guess+of+{name}");
        page = done(&app, &router, (&path, "shares/preview", name), &form).await;
        assert!(page.contains("once everyone has released something"), "{page}");
        let confirm = page.split("name=\"confirm\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        page = done(&app, &router, (&path, "shares", name), &format!("confirm={confirm}")).await;
    }
    assert!(
        page.contains("Only you see this") && page.contains("gap of ben") && page.contains("I was alone."),
        "{page}"
    );
    assert!(
        !page.contains("gap of ana") && !page.contains("Guess of ana") && !page.contains("Secret of ana"),
        "{page}"
    );
    let ana = sent(&app, &router, get(&format!("{path}?as=ana"))).await.2;
    assert!(
        ana.contains("value=\"reconcile\"") && !ana.contains("I was alone") && !ana.contains("gap of"),
        "{ana}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_or_an_aside_is_begun_by_a_form() {
    let (app, router, path) = talk().await;
    done(&app, &router, (&path, "messages", "ana"), "text=My+secret").await;
    let page = done(&app, &router, (&path, "sessions", "ana"), "aside=diary").await;
    assert!(
        page.contains("You are at <strong>Diary</strong> (session 2)") && !page.contains("My secret"),
        "{page}"
    );
    let page = done(&app, &router, (&path, "sessions", "ana"), "aside=").await;
    assert!(page.contains("You are at <strong>Hello</strong> (session 3)"), "{page}");
    let nowhere = post(&format!("{path}/sessions?as=ana"), FORM, "aside=nowhere");
    assert_eq!(sent(&app, &router, nowhere).await.0, StatusCode::UNPROCESSABLE_ENTITY);
}
