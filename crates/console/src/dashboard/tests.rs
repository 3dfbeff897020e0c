//! Pages: what others wrote stays text, every user is walled, and what a picture shows a table says.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use futures::StreamExt;
use larder_core::pack::Rendition;
use larder_gateway::auth::create_key;
use larder_models::table::Provider;
use larder_proxy::record::{AnsweredBy, LeftAlone, RequestRecord};
use larder_store::{
    KeyLimits, NewIntervention, NewJob, NewPublication, NewRun, RunFacts, RunRecord, RunStatus, RunTokens,
    TranscriptMessage,
};
use larder_testkit::gateway::{TestApp as Fake, ask, ask_with_key, get, post, read};
use larder_testkit::records::{exchange, flooded, part};
use larder_text::hash::ContentHash;
use serde_json::json;
use tower::ServiceExt;

use super::*;

/// What a client may write to get out of its place.
const HOSTILE: &str =
    "\"'><script>alert(1)</script><img src=x onerror=alert(2)> </title>&amp; javascript:alert(3)";

fn started(fake: Fake) -> (Arc<Fake>, Router) {
    let fake = Arc::new(fake);
    let router = router(Arc::clone(&fake.app));
    (fake, router)
}

async fn page(fake: &Fake, router: &Router, user: &str, path: &str) -> String {
    let (status, headers, body) = read(ask(fake, router, user, get(path)).await).await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    assert_eq!(headers["content-type"], "text/html; charset=utf-8", "{path}");
    body
}

/// A record in which everything a client may write is hostile, with one part whose original is kept.
fn hostile(fake: &Fake) -> RequestRecord {
    let mut exchange = exchange("a", 1);
    let text = || HOSTILE.to_owned();
    let stored = fake.user("a").pointers().insert(HOSTILE.as_bytes(), HOSTILE, HOSTILE).unwrap();
    exchange.summary.model = text();
    exchange.summary.session = Some(text());
    exchange.summary.recipe = Some(text());
    exchange.summary.error = Some(text());
    exchange.summary.key = Some(text());
    exchange.summary.answered_by =
        Some(AnsweredBy { name: text(), id: text(), server: Some(text()), provider: Provider::OpenAi });
    exchange.summary.left_alone = vec![LeftAlone { what: text(), why: text() }];
    exchange.summary.ignored = vec![text()];
    exchange.summary.unpriced = vec![text()];
    exchange.summary.decision.as_mut().unwrap().reason = text();
    for part in &mut exchange.window {
        part.slot = text().into();
        part.label = text();
        part.role = text().into();
        part.reason = text().into();
        part.pointer = Some(stored.pointer_id.clone());
    }
    for compaction in &mut exchange.compactions {
        compaction.label = text();
        compaction.reason = text();
        compaction.pointer = Some(stored.pointer_id.clone());
    }
    exchange.rehydrations[0].pointer = text();
    exchange
}

/// A run whose receipt and answer are hostile.
fn hostile_run(fake: &Fake) -> RunRecord {
    let store = fake.user("a");
    let pointer = store.pointers().insert(HOSTILE.as_bytes(), "part", "p").unwrap().pointer_id;
    let receipt = json!({
        "recipe": HOSTILE, "version": "v", "model": HOSTILE, "tokenizer": "bytes",
        "budget": {
            "limits": {"total": 900, "window": 1000, "output": 100, "response_reserve": 50, "emergency_floor": 0},
            "available": 750, "framing": 3, "used": 300, "slots": [], "tokenizer": "bytes", "label": "exact",
        },
        "total": 300,
        "refused": {"deficit": 3, "parts": [[HOSTILE, 4]]},
        "parts": [{
            "id": "1", "slot": HOSTILE, "source": HOSTILE, "lines": [1, 9], "rendition": "condensed", "tokens": 200,
            "original_tokens": 800, "reason": "slot_over_cap", "pointer": pointer,
        }],
        "messages": [],
    });
    let facts = RunFacts {
        recipe: HOSTILE.to_owned(),
        recipe_version: "v".to_owned(),
        model_layer: HOSTILE.to_owned(),
        model: HOSTILE.to_owned(),
        session_id: None,
        turn_id: None,
        request_id: None,
        tokens: RunTokens::default(),
        latency_ms: 5,
        success: false,
        schema_valid: None,
        confidence: None,
        retries: 0,
        compression_applied: true,
        compression_savings: 600,
        cost_usd: None,
        models: Vec::new(),
        status: RunStatus::Failed,
        error: Some(HOSTILE.to_owned()),
    };
    let run_id = store.store().new_run_id().unwrap();
    let receipt = receipt.to_string();
    let output = Some(HOSTILE.as_bytes());
    store.runs().record(NewRun { run_id, facts, receipt: receipt.as_bytes(), output, pointers: &[] }).unwrap()
}

/// Every page there is, filled with hostile text.
async fn hostile_pages() -> Vec<(String, String)> {
    let (fake, router) = started(Fake::refusing(HOSTILE));
    let exchange = hostile(&fake);
    fake.record(&exchange);
    let run = hostile_run(&fake);
    let mut intervention = NewIntervention::missing_recipe(HOSTILE);
    intervention.kind = HOSTILE.to_owned();
    fake.user("a").interventions().raise(&intervention).unwrap();
    let statements = &[HOSTILE.to_owned()];
    let new = NewPublication { origin: HOSTILE, category: HOSTILE, source: HOSTILE, statements };
    fake.user(HOSTILE).publications().publish(&new).unwrap();
    let learned = [(format!("models.x{HOSTILE}.window"), Some("32768".to_owned()))].into();
    fake.store.revisions().write(&format!("x{HOSTILE}"), &learned).unwrap();
    let said = TranscriptMessage {
        identity: ContentHash::new(b"1"),
        role: HOSTILE,
        raw: HOSTILE.as_bytes(),
        sent: None,
        pointers: &[],
    };
    fake.user("a").transcripts().append(HOSTILE, &[said], None).unwrap();
    let id = &exchange.summary.id;
    let session = figures::segment(HOSTILE);
    let pointer = exchange.window[0].pointer.as_ref().unwrap();
    larder_testkit::vault::turn(&fake, "a", HOSTILE).await;
    let folder = "/vault/users/a/turns/turn_000001";
    let mut pages = Vec::new();
    for path in [
        "/".to_owned(),
        "/documents".to_owned(),
        "/documents?q=script".to_owned(),
        format!("/documents?q={session}"),
        "/turns/1".to_owned(),
        "/turns/1/claims/claim-001".to_owned(),
        format!("{folder}/context.md"),
        format!("{folder}/context.md?view=raw"),
        format!("{folder}/toolresults.md"),
        format!("{folder}/metrics.json"),
        "/requests".to_owned(),
        format!("/requests?session={session}"),
        format!("/requests/{id}"),
        format!("/requests/{id}/parts/1"),
        format!("/requests/{id}/parts/1?piece=true"),
        format!("/pointers/{pointer}"),
        format!("/pointers/{pointer}?grep={session}"),
        format!("/pointers/{pointer}?piece=true"),
        "/sessions".to_owned(),
        format!("/sessions/{session}"),
        format!("/sessions/{session}/transcript"),
        format!("/sessions/{session}/transcript/1"),
        format!("/sessions/{session}/transcript/1?piece=true"),
        "/runs".to_owned(),
        format!("/runs/{}", run.run_id),
        "/costs?days=100000".to_owned(),
        "/interventions".to_owned(),
        "/interventions?all=true".to_owned(),
        "/policy".to_owned(),
        "/vault".to_owned(),
    ] {
        let body = page(&fake, &router, "a", &path).await;
        pages.push((path, body));
    }
    let form = format!("wire=chat&body={}", figures::segment(&format!("x{HOSTILE}")));
    let inspected =
        ask(&fake, &router, "a", post("/policy", "application/x-www-form-urlencoded", &form)).await;
    pages.push(("/policy (inspected)".to_owned(), read(inspected).await.2));
    let missing = ask(&fake, &router, "a", get(&format!("/pointers/{session}"))).await;
    pages.push(("a problem".to_owned(), read(missing).await.2));
    pages
}

#[tokio::test]
async fn what_others_wrote_stays_text_on_every_page() {
    for (path, body) in hostile_pages().await {
        for wrong in ["<script>alert", "<img src=x", "\"'>", "</title>&amp; java"] {
            assert!(!body.contains(wrong), "{path} lets out {wrong}");
        }
        let lower = body.to_lowercase();
        assert!(!lower.contains("href=\"javascript:") && !lower.contains(" style=\""), "{path}");
        assert!(body.contains("&lt;script&gt;alert(1)"), "{path} shows what was written");
    }
}

#[tokio::test]
async fn every_page_is_well_built() {
    for (path, body) in hostile_pages().await.into_iter().filter(|(path, _)| !path.contains("piece=true")) {
        assert!(body.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{path}");
        assert_eq!(body.matches("<h1>").count(), 1, "{path} has one heading above all");
        assert_eq!(body.matches("<main ").count(), 1, "{path}");
        let ids: Vec<&str> = body.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let unique: BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{path}: an id stands twice");
        for named in body.split("aria-labelledby=\"").skip(1).chain(body.split(" for=\"").skip(1)) {
            let id = named.split('"').next().unwrap();
            assert!(ids.contains(&id), "{path}: nothing has the id {id}");
        }
        for field in ["<input ", "<select ", "<textarea "] {
            for tag in body.split(field).skip(1) {
                let tag = format!(" {}", tag.split('>').next().unwrap());
                let id = tag.split(" id=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
                assert!(body.contains(&format!("for=\"{id}\"")), "{path}: {id} has no label");
            }
        }
    }
}

#[tokio::test]
async fn a_problem_offers_no_sign_in_to_whoever_was_let_in() {
    let (fake, router) = started(Fake::new());
    let (status, _, body) = read(ask(&fake, &router, "a", get("/pointers/none")).await).await;
    assert!(status.is_client_error() && !body.contains(SIGN_IN), "{status}: {body}");
}

#[tokio::test]
async fn pages_load_nothing_from_elsewhere_and_run_nothing_inline() {
    let (fake, router) = started(Fake::new());
    let open = open_router(Arc::clone(&fake.app));
    for (router, path) in
        [(&router, "/"), (&router, "/pointers/none"), (&open, SIGN_IN), (&open, "/assets/script.js")]
    {
        let (_, headers, body) = read(ask(&fake, router, "a", get(path)).await).await;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cache-control"], "no-store");
        for elsewhere in
            ["src=\"http", "src=\"//", "href=\"http", "href=\"//", "<script>", "<style", " onclick="]
        {
            assert!(!body.contains(elsewhere), "{path} has {elsewhere}");
        }
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    assert!(!SCRIPT.contains("http://") && !SCRIPT.contains("https://") && !SCRIPT.contains("eval("));
}

#[tokio::test]
async fn no_page_shows_anything_of_another_user() {
    let (fake, router) = started(Fake::new());
    let exchange = exchange("a", 1);
    fake.record(&exchange);
    let store = fake.user("a");
    let pointer = store.pointers().insert(b"the secret original", "part", "p").unwrap().pointer_id;
    store.interventions().raise(&NewIntervention::missing_recipe("secret")).unwrap();
    for path in [
        format!("/requests/{}", exchange.summary.id),
        format!("/requests/{}/parts/0", exchange.summary.id),
        format!("/pointers/{pointer}"),
        "/sessions/session-1".to_owned(),
    ] {
        let status = ask(&fake, &router, "b", get(&path)).await.status();
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    for path in ["/", "/requests", "/sessions", "/costs?days=100000", "/interventions"] {
        let body = page(&fake, &router, "b", path).await;
        assert!(
            !body.contains("session-1") && !body.contains("secret") && !body.contains(&exchange.summary.id)
        );
    }
    let form = post("/interventions/1", "application/x-www-form-urlencoded", "resolution=x");
    assert_eq!(ask(&fake, &router, "b", form).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn costs_say_what_was_read_back_by_tool() {
    let (fake, router) = started(Fake::new());
    let mut exchange = exchange("a", 1);
    fake.record(&exchange);
    let body = page(&fake, &router, "a", "/costs?days=100000").await;
    for words in ["id=\"read-back\"", "search", "$0.0004", "900"] {
        assert!(body.contains(words), "{words}: {body}");
    }
    exchange.summary.user = "b".to_owned();
    exchange.rehydrations.clear();
    fake.record(&exchange);
    let body = page(&fake, &router, "b", "/costs?days=100000").await;
    assert!(body.contains("No model has asked for an original"), "{body}");
}

#[tokio::test]
async fn the_picture_shows_every_part_and_the_table_says_the_same() {
    let (fake, router) = started(Fake::new());
    let exchange = exchange("a", 1);
    fake.record(&exchange);
    let body = page(&fake, &router, "a", &format!("/requests/{}", exchange.summary.id)).await;
    for (index, part) in exchange.window.iter().enumerate() {
        assert!(body.contains(&format!("id=\"part-{index}\"")), "part {index} has a row");
        let link = format!("href=\"#part-{index}\" aria-label=\"{}", part.label);
        // As it came, as sent, and in its slot; what is absent was sent nowhere.
        let expected = if part.rendition == Rendition::Absent { 1 } else { 3 };
        assert_eq!(body.matches(&link).count(), expected, "{link}");
    }
    assert!(body.contains("800 → 200") && body.contains("over entry cap"));
    assert!(body.contains("2,340") && body.contains("1,440"), "as it came and as sent");
}

#[test]
fn widths_of_parts_are_their_share_and_never_more_than_there_is() {
    let parts = vec![
        part("a", "x", Rendition::Whole, 300, 300),
        part("a", "y", Rendition::Pointer, 100, u64::MAX),
        part("b", "z", Rendition::Absent, 0, 5),
    ];
    let window = map::WindowMap { parts, before: u64::MAX, after: 400, budget: 800, reserve: 0, output: 0 };
    let drawn = map::picture(&window).into_string();
    for width in drawn.split("width=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let percent = width.strip_suffix('%').unwrap_or("0");
        assert!(percent.parse::<f64>().unwrap() <= 100.0, "{width}");
    }
    let empty = map::WindowMap { parts: Vec::new(), before: 0, after: 0, budget: 0, reserve: 0, output: 0 };
    assert!(map::picture(&empty).into_string().contains("no limit"));
}

#[tokio::test]
async fn a_badge_opens_to_what_was_sent_and_to_the_original() {
    let (fake, router) = started(Fake::new());
    let store = fake.user("a");
    let mut exchange = exchange("a", 1);
    let original = "the whole tool result";
    exchange.window[1].pointer =
        Some(store.pointers().insert(original.as_bytes(), "tool_result", "r").unwrap().pointer_id);
    let message = TranscriptMessage {
        identity: ContentHash::new(b"1"),
        role: "tool",
        raw: br#"{"content": "raw message"}"#,
        sent: Some(br#"{"content": "condensed message"}"#),
        pointers: &[],
    };
    let place = store.transcripts().append("session-1", &[message], None).unwrap();
    exchange.summary.branch = Some(place.branch);
    fake.record(&exchange);
    let base = format!("/requests/{}", exchange.summary.id);
    let whole = page(&fake, &router, "a", &base).await;
    assert!(whole.contains(&format!("data-load=\"{base}/parts/1\"")));
    let piece = page(&fake, &router, "a", &format!("{base}/parts/1?piece=true")).await;
    assert!(piece.contains("condensed message") && piece.contains(original) && !piece.contains("<html"));
    let without_pointer = page(&fake, &router, "a", &format!("{base}/parts/4?piece=true")).await;
    assert!(without_pointer.contains("raw message"), "the transcript has what no pointer leads to");
    let missing = ask(&fake, &router, "a", get(&format!("{base}/parts/99"))).await.status();
    assert_eq!(missing, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn compactions_are_shown_in_sum_and_for_each_session() {
    let (fake, router) = started(Fake::new());
    let mut condensed = exchange("a", 1);
    condensed.compactions[0].to = Rendition::Condensed;
    let both = [condensed.compactions.clone(), exchange("a", 1).compactions].concat();
    let RequestRecord { summary: head, window, rehydrations, .. } = condensed;
    let condensed = RequestRecord::new(head, window, both, rehydrations);
    fake.record(&condensed);
    let RequestRecord { summary: mut head, window, compactions, rehydrations } = exchange("a", 2);
    head.decision.as_mut().unwrap().dry_run = true;
    fake.record(&RequestRecord::new(head, window, compactions, rehydrations));
    let overview = page(&fake, &router, "a", "/").await;
    assert!(overview.contains("<dt>Summaries</dt><dd class=\"value\">1</dd>"), "{overview}");
    assert!(overview.contains("; 2 compactions, 2.0 a session"), "{overview}");
    let sessions = page(&fake, &router, "a", "/sessions").await;
    let (_, row) = sessions.split_once("href=\"/sessions/session-1\"").unwrap();
    let (row, _) = row.split_once("</tr>").unwrap();
    assert_eq!(row.matches("<td class=\"numeric\">2</td>").count(), 2, "requests and compactions: {row}");
    let one = page(&fake, &router, "a", "/sessions/session-1").await;
    assert!(one.contains("2 requests, 2 compactions"), "a dry run changes nothing: {one}");
}

#[tokio::test]
async fn a_session_links_to_its_transcript_only_if_it_has_one() {
    let (fake, router) = started(Fake::new());
    fake.record(&exchange("a", 1));
    let link = "href=\"/sessions/session-1/transcript\"";
    let without = page(&fake, &router, "a", "/sessions/session-1").await;
    assert!(without.contains("Its requests") && !without.contains(link), "{without}");
    let message = TranscriptMessage {
        identity: ContentHash::new(b"1"),
        role: "user",
        raw: br#"{"content": "hello"}"#,
        sent: None,
        pointers: &[],
    };
    fake.user("a").transcripts().append("session-1", &[message], None).unwrap();
    assert!(page(&fake, &router, "a", "/sessions/session-1").await.contains(link));
}

#[tokio::test]
async fn live_pieces_are_those_of_the_page() {
    let (fake, router) = started(Fake::new());
    fake.record(&exchange("a", 1));
    let body = page(&fake, &router, "a", "/").await;
    let mut events = ask(&fake, &router, "a", get("/live")).await.into_body().into_data_stream();
    let first = String::from_utf8(events.next().await.unwrap().unwrap().to_vec()).unwrap();
    let data = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let pieces: BTreeMap<String, String> = serde_json::from_str(data).unwrap();
    assert_eq!(pieces.len(), 3);
    for (id, piece) in pieces {
        assert!(body.contains(&format!("<div id=\"{id}\">{piece}</div>")), "{id}");
    }
}

#[tokio::test]
async fn an_intervention_is_settled_from_its_page() {
    let (fake, router) = started(Fake::new());
    fake.user("a").interventions().raise(&NewIntervention::missing_recipe("x")).unwrap();
    let form = post("/interventions/1", "application/x-www-form-urlencoded", "resolution=made+it");
    let answer = ask(&fake, &router, "a", form).await;
    assert_eq!(
        (answer.status(), &answer.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/interventions".parse().unwrap())
    );
    let body = page(&fake, &router, "a", "/interventions?all=true").await;
    assert!(body.contains("made it") && body.contains("settled"));
}

#[tokio::test]
async fn jobs_are_listed_with_interventions_and_removed_there() {
    let (fake, router) = started(Fake::new());
    let key = HOSTILE.to_owned();
    let new = NewJob { kind: "x", key, session: None, payload: serde_json::Value::Null, after: 0 };
    fake.user("a").jobs().add(&new).unwrap();
    let body = page(&fake, &router, "a", "/interventions").await;
    assert!(body.contains("Background jobs") && !body.contains(HOSTILE));
    let form = |action: &str| post("/jobs/1", "application/x-www-form-urlencoded", action);
    assert_eq!(ask(&fake, &router, "b", form("action=cancel")).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(ask(&fake, &router, "a", form("action=cancel")).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(fake.user("a").jobs().list().unwrap(), []);
    assert!(!page(&fake, &router, "a", "/interventions").await.contains("Background jobs"));
}

#[tokio::test]
async fn a_pasted_request_is_shown_as_it_would_become() {
    let (fake, router) = started(Fake::new());
    let paste = |body: &str| post("/policy", "application/x-www-form-urlencoded", body);
    let flooded = format!("wire=messages&body={}", figures::segment(&flooded()));
    let (status, _, body) = read(ask(&fake, &router, "a", paste(&flooded)).await).await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        body.contains("It would be sent, with parts condensed or replaced by pointers.")
            && body.contains("As sent")
    );
    assert!(body.contains("<option value=\"messages\" selected>"), "what was pasted stays");
    let (_, _, body) = read(ask(&fake, &router, "a", paste("wire=chat&body=nonsense")).await).await;
    assert!(body.contains("role=\"alert\"") && body.contains("expected a value at line 1"));
    let (status, ..) = read(ask(&fake, &router, "a", paste("wire=telegram&body=x")).await).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_refused_request_saves_nothing_in_the_chart() {
    let (fake, router) = started(Fake::new());
    let mut refused = exchange("a", 2);
    refused.summary.outcome = larder_proxy::record::Outcome::Refused;
    for exchange in [exchange("a", 1), refused] {
        fake.record(&exchange);
    }
    let body = page(&fake, &router, "a", "/").await;
    assert!(body.contains("1 request sent last: 2,340 tokens came, 1,440 went out"), "{body}");
}

#[tokio::test]
async fn settings_and_metrics_are_for_operators() {
    let (fake, router) = started(Fake::refusing("main"));
    let whole = page(&fake, &router, "a", "/policy").await;
    let (status, _, part) = read(ask_with_key(&fake, &router, "a", get("/policy")).await).await;
    assert_eq!(status, StatusCode::OK);
    for words in [
        "id=\"setting-gateway.listen\"",
        "id=\"budgets\"",
        "The last change of the settings was refused",
        "href=\"/metrics\"",
    ] {
        assert!(whole.contains(words) && !part.contains(words), "{words}");
    }
    assert!(part.contains("--operator") && part.contains("What would become of a request?"));
}

#[tokio::test]
async fn a_key_signs_in_and_out_and_is_never_shown() {
    let fake = Arc::new(Fake::new());
    let (key, _) = create_key(&fake.store, "a", "browser", KeyLimits::default()).unwrap();
    let router = open_router(Arc::clone(&fake.app));
    let form = |body: &str| post(SIGN_IN, "application/x-www-form-urlencoded", body);
    for wrong in ["key=nonsense", "key=lk-000000000000-000000000000000000000000000000000000000000000000"] {
        let (status, headers, body) = read(router.clone().oneshot(form(wrong)).await.unwrap()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(!headers.contains_key("set-cookie") && body.contains("role=\"alert\""));
        assert!(!body.contains(wrong.trim_start_matches("key=")), "what was typed is not shown");
    }
    let right = form(&format!("key={}", key.reveal()));
    let answer = router.clone().oneshot(right).await.unwrap();
    assert_eq!(
        (answer.status(), &answer.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/".parse().unwrap())
    );
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains(key.reveal())
    );
    let out =
        router.clone().oneshot(post("/sign-out", "application/x-www-form-urlencoded", "")).await.unwrap();
    assert!(out.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
}
