//! Every route described, every user walled, every problem in the one form.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use futures::StreamExt;
use larder_store::{
    ModelUsage, NewIntervention, NewJob, NewPublication, NewRun, RunFacts, RunStatus, RunTokens, UserStore,
};
use larder_testkit::gateway::{TestApp as Fake, ask, ask_with_key, get, post, read};
use larder_testkit::records::{self as fake, exchange, flooded};
use larder_text::hash::ContentHash;
use larder_text::usage::{Service, Usage};
use serde_json::{Value, json};

use super::*;

fn started() -> (Arc<Fake>, Router) {
    let fake = Arc::new(Fake::new());
    let router = router(Arc::clone(&fake.app));
    (fake, router)
}

async fn json_of(fake: &Fake, router: &Router, user: &str, path: &str) -> (StatusCode, Value) {
    let (status, headers, body) = read(ask(fake, router, user, get(path)).await).await;
    let expected =
        if status.is_success() { "application/json" } else { larder_gateway::problem::CONTENT_TYPE };
    assert_eq!(headers["content-type"], expected, "{path}: {body}");
    (status, serde_json::from_str(&body).unwrap())
}

fn run_of(store: &UserStore) -> larder_store::RunRecord {
    let pointer = store.pointers().insert(b"original", "part", "a part").unwrap().pointer_id;
    let facts = RunFacts {
        recipe: "answer".to_owned(),
        recipe_version: "v".to_owned(),
        model_layer: "MIND".to_owned(),
        model: "main".to_owned(),
        session_id: None,
        turn_id: None,
        request_id: None,
        tokens: RunTokens { prompt: 1, input: 2, output: 3 },
        latency_ms: 5,
        success: true,
        schema_valid: None,
        confidence: Some(0.5),
        retries: 0,
        compression_applied: true,
        compression_savings: 7,
        cost_usd: Some(0.25),
        models: vec![ModelUsage {
            model: "main".to_owned(),
            calls: 1,
            input_tokens: 3,
            output_tokens: 3,
            cost_usd: Some(0.25),
        }],
        status: RunStatus::Completed,
        error: None,
    };
    let run_id = store.store().new_run_id().unwrap();
    let new =
        NewRun { run_id, facts, receipt: br#"{"total": 6}"#, output: Some(b"yes"), pointers: &[pointer] };
    store.runs().record(new).unwrap()
}

#[tokio::test]
async fn every_route_is_described_and_everything_described_is_there() {
    let (fake, router) = started();
    let (_, description) = json_of(&fake, &router, "a", "/api/v1/openapi.json").await;
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths = description["paths"].as_object().unwrap();
    assert!(paths.len() > 25 && paths.keys().all(|path| !path.contains('*')), "{paths:?}");
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let path = path.replace(['{', '}'], "");
            let mut request =
                if method == "get" { get(&path) } else { post(&path, "application/json", "{}") };
            *request.method_mut() = method.to_uppercase().parse().unwrap();
            let status = ask(&fake, &router, "a", request).await.status();
            assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path} says what it does");
        }
        let bare = path.replace(['{', '}'], "");
        for (method, request) in [("get", get(&bare)), ("post", post(&bare, "application/json", "{}"))] {
            if item.get(method).is_none() {
                let status = ask(&fake, &router, "a", request).await.status();
                assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path} is not described");
            }
        }
    }
}

/// The names of the fields of a schema of the description.
#[tokio::test]
async fn every_reference_of_the_description_resolves() {
    let (fake, router) = started();
    let (_, description) = json_of(&fake, &router, "a", "/api/v1/openapi.json").await;
    let mut references = Vec::new();
    collect_references(&description, &mut references);
    assert!(references.len() > 50, "{}", references.len());
    let dangling = |reference: &&&str| {
        reference.strip_prefix('#').and_then(|pointer| description.pointer(pointer)).is_none()
    };
    assert_eq!(references.iter().filter(dangling).collect::<Vec<_>>(), Vec::<&&str>::new());
}

fn collect_references<'d>(value: &'d Value, references: &mut Vec<&'d str>) {
    match value {
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|value| collect_references(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, references)),
        _ => {}
    }
}

fn properties(description: &Value, schema: &str) -> BTreeSet<String> {
    fields_of(description, &description["components"]["schemas"][schema])
}

/// The fields of a schema; flattened types are part of an `allOf`.
fn fields_of(description: &Value, schema: &Value) -> BTreeSet<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return properties(description, name.rsplit('/').next().unwrap());
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().flat_map(|one| fields_of(description, one)).collect();
    }
    schema["properties"].as_object().unwrap_or_else(|| panic!("{schema}")).keys().cloned().collect()
}

#[tokio::test]
async fn types_of_other_crates_are_described_as_they_are() {
    let (fake, router) = started();
    let (_, description) = json_of(&fake, &router, "a", "/api/v1/openapi.json").await;
    let store = fake.user("a");
    let run = run_of(&store);
    let pointer = store.pointers().insert(b"x", "part", "x").unwrap();
    let intervention = store.interventions().raise(&NewIntervention::missing_recipe("x")).unwrap();
    store.jobs().add(&job()).unwrap();
    let job = store.jobs().get(1).unwrap();
    let new = NewPublication { origin: "o", category: "c", source: "s", statements: &["x".to_owned()] };
    let publication = store.publications().publish(&new).unwrap();
    let diagnostic = larder_core::recipe::Diagnostic::whole_file(
        larder_core::recipe::DiagnosticCode::ALL[0],
        "f",
        "m",
        "h",
    );
    // Fields that are seldom used are left out where they say nothing.
    let usage = Usage { cache_write_1h: 1, service: Service::Batch, ..Usage::default() };
    for (schema, value) in [
        ("RunRecord", json!(run)),
        ("RunTokens", json!(run.facts.tokens)),
        ("StoredPointer", json!(pointer)),
        ("Intervention", json!(intervention)),
        ("Job", json!(job)),
        ("Publication", json!(publication)),
        ("Setting", json!(fake.settings()[0])),
        ("Diagnostic", json!(diagnostic)),
        ("Usage", json!(usage)),
    ] {
        let served: BTreeSet<String> = value.as_object().unwrap().keys().cloned().collect();
        assert_eq!(properties(&description, schema), served, "{schema}");
    }
}

#[tokio::test]
async fn recipes_are_listed_and_shown() {
    let (fake, router) = started();
    let (_, list) = json_of(&fake, &router, "a", "/api/v1/recipes").await;
    let id = list["recipes"][0]["id"].as_str().unwrap();
    let (status, one) = json_of(&fake, &router, "a", &format!("/api/v1/recipes/{id}")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(one["version"], list["recipes"][0]["version"]);
    let (status, problem) = json_of(&fake, &router, "a", "/api/v1/recipes/ask/answr").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(problem["detail"].as_str().unwrap().contains("ask/answer"), "{problem}");
}

#[tokio::test]
async fn runs_receipts_and_originals_come_back() {
    let (fake, router) = started();
    let run = run_of(&fake.user("a"));
    let (_, list) = json_of(&fake, &router, "a", "/api/v1/runs?recipe=answer&since=2026-01-01").await;
    assert_eq!(list["runs"][0]["run_id"], run.run_id.as_str());
    let (_, one) = json_of(&fake, &router, "a", &format!("/api/v1/runs/{}", run.run_id)).await;
    assert_eq!((&one["output"], one["record"]["tokens"]["total"].as_u64()), (&json!("yes"), Some(6)));
    let (_, receipt) = json_of(&fake, &router, "a", &format!("/api/v1/runs/{}/receipt", run.run_id)).await;
    assert_eq!(receipt["total"], 6);
    let pointer = one["pointers"][0].as_str().unwrap();
    let (_, known) = json_of(&fake, &router, "a", &format!("/api/v1/pointers/{pointer}")).await;
    assert_eq!((&known["bytes"], &known["display_text"]), (&json!(8), &json!("a part")));
}

#[tokio::test]
async fn originals_are_read_whole_and_in_part_and_run_in_no_browser() {
    let (fake, router) = started();
    let html = "<script>alert(1)</script>\nline two\n";
    let pointer =
        fake.user("a").pointers().insert(html.as_bytes(), "tool_result", "page").unwrap().pointer_id;
    let path = format!("/api/v1/pointers/{pointer}/content");
    let (status, headers, body) = read(ask(&fake, &router, "a", get(&path)).await).await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, html));
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert!(headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    for (part, expected) in
        [("lines=2:2", "line two\n"), ("bytes=0:8", "<script>"), ("grep=tw%5Bo%5D", "line two\n")]
    {
        let (_, _, body) = read(ask(&fake, &router, "a", get(&format!("{path}?{part}"))).await).await;
        assert_eq!(body, expected, "{part}");
    }
    for (part, expected) in [
        ("lines=9:10", StatusCode::RANGE_NOT_SATISFIABLE),
        ("lines=x", StatusCode::BAD_REQUEST),
        ("grep=%28", StatusCode::BAD_REQUEST),
        ("lines=1:1&bytes=0:1", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(json_of(&fake, &router, "a", &format!("{path}?{part}")).await.0, expected, "{part}");
    }
    let binary = fake.user("a").pointers().insert(&[0xff, 0xfe], "tool_result", "bytes").unwrap().pointer_id;
    let answer = ask(&fake, &router, "a", get(&format!("/api/v1/pointers/{binary}/content"))).await;
    assert_eq!(answer.headers()["content-type"], "application/octet-stream");
}

#[tokio::test]
async fn no_user_reads_anything_of_another() {
    let (fake, router) = started();
    let store = fake.user("a");
    let run = run_of(&store);
    let pointer = store.pointers().insert(b"secret", "part", "p").unwrap().pointer_id;
    store.interventions().raise(&NewIntervention::missing_recipe("x")).unwrap();
    store.jobs().add(&job()).unwrap();
    let exchange = exchange("a", 1);
    fake.record(&exchange);
    for path in [
        format!("/api/v1/runs/{}", run.run_id),
        format!("/api/v1/runs/{}/receipt", run.run_id),
        format!("/api/v1/pointers/{pointer}"),
        format!("/api/v1/pointers/{pointer}/content"),
        "/api/v1/interventions/1".to_owned(),
        "/api/v1/jobs/1".to_owned(),
        format!("/api/v1/exchanges/{}", exchange.summary.id),
        "/api/v1/sessions/session-1".to_owned(),
    ] {
        assert_eq!(ask(&fake, &router, "a", get(&path)).await.status(), StatusCode::OK, "{path}");
        assert_eq!(json_of(&fake, &router, "b", &path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    for (path, list, count) in [
        ("/api/v1/runs", "runs", 1),
        ("/api/v1/interventions", "interventions", 1),
        ("/api/v1/jobs", "jobs", 1),
        ("/api/v1/exchanges", "exchanges", 1),
        ("/api/v1/sessions", "sessions", 1),
        // The run and the request.
        ("/api/v1/costs?days=100000", "costs", 2),
        ("/api/v1/read-back?days=100000", "tools", 1),
        ("/api/v1/live", "recent", 1),
    ] {
        let listed = json_of(&fake, &router, "a", path).await.1[list].as_array().unwrap().len();
        assert_eq!(listed, count, "{path}");
        assert_eq!(json_of(&fake, &router, "b", path).await.1[list], json!([]), "{path}");
    }
}

#[tokio::test]
async fn requests_are_paged_and_sessions_mapped() {
    let (fake, router) = started();
    for number in 1..=5 {
        fake.record(&exchange("a", number));
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/exchanges?limit=2".to_owned();
    loop {
        let (_, page) = json_of(&fake, &router, "a", &path).await;
        let ids = page["exchanges"].as_array().unwrap().iter();
        seen.extend(ids.map(|one| one["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/exchanges?limit=2&before={next}");
    }
    let expected: Vec<String> = (1..=5).rev().map(|number| exchange("a", number).summary.id).collect();
    assert_eq!(seen, expected);
    let (_, map) = json_of(&fake, &router, "a", "/api/v1/sessions/session-1").await;
    assert_eq!(
        (map["requests"].as_array().unwrap().len(), map["compactions"].as_array().unwrap().len()),
        (5, 5)
    );
    assert_eq!(map["requests"][0]["id"], exchange("a", 1).summary.id, "oldest first");
    let (_, sessions) = json_of(&fake, &router, "a", "/api/v1/sessions").await;
    let session = &sessions["sessions"][0];
    assert_eq!((&session["requests"], &session["saved"]), (&json!(5), &json!("0.0075")));
    let (_, costs) = json_of(&fake, &router, "a", "/api/v1/costs?days=100000").await;
    assert_eq!((&costs["costs"][0]["model"], &costs["costs"][0]["cost"]), (&json!("main"), &json!("0.01")));
    let (_, read) = json_of(&fake, &router, "a", "/api/v1/read-back?days=100000").await;
    let expected = json!({"tool": "search", "readings": 5, "requests": 5, "tokens": 150, "spent_tokens": 4_500, "unpriced": 0, "cost": "0.002"});
    assert_eq!(read["tools"], json!([expected]));
}

#[tokio::test]
async fn revisions_are_shown_and_reverted_by_operators() {
    let (fake, router) = started();
    let learned = [("models.far-away.window".to_owned(), Some("32768".to_owned()))].into();
    fake.store.revisions().write("a refusal", &learned).unwrap();
    let (_, listed) = json_of(&fake, &router, "a", "/api/v1/revisions").await;
    assert_eq!(
        (&listed["revisions"][0]["number"], &listed["revisions"][0]["cause"]),
        (&json!(1), &json!("a refusal"))
    );
    let (_, first) = json_of(&fake, &router, "a", "/api/v1/revisions/1").await;
    let value = json!({"key": "models.far-away.window", "value": "32768", "standing": "used"});
    assert_eq!(
        (&first["learned"], &first["revision"]["changes"]["models.far-away.window"]),
        (&json!([value]), &json!("32768"))
    );
    let revert = || post("/api/v1/revisions/0/revert", "application/json", "");
    let (status, _, body) = read(ask(&fake, &router, "a", revert()).await).await;
    let newest: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &newest["number"], &newest["learned"]), (StatusCode::OK, &json!(2), &json!([])));
    assert_eq!(json_of(&fake, &router, "a", "/api/v1/revisions/3").await.0, StatusCode::NOT_FOUND);
    for request in [get("/api/v1/revisions"), get("/api/v1/revisions/1"), revert()] {
        let refused = ask_with_key(&fake, &router, "a", request).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    }
    fake.store
        .revisions()
        .write("damaged", &[("models.far-away.window".to_owned(), Some("wide".to_owned()))].into())
        .unwrap();
    fake.store.revisions().revert(0).unwrap();
    let damaged = post("/api/v1/revisions/3/revert", "application/json", "");
    let (status, _, body) = read(ask(&fake, &router, "a", damaged).await).await;
    assert!(status == StatusCode::CONFLICT && body.contains("models.far-away.window = wide"), "{body}");
    for number in 5..=150 {
        let learned = [("models.far-away.window".to_owned(), Some(number.to_string()))].into();
        fake.store.revisions().write("a refusal", &learned).unwrap();
    }
    let (mut path, mut seen) = ("/api/v1/revisions".to_owned(), Vec::new());
    for _ in 0..2 {
        let (_, page) = json_of(&fake, &router, "a", &path).await;
        seen.extend(page["revisions"].as_array().unwrap().iter().map(|one| one["number"].as_u64().unwrap()));
        path = format!("/api/v1/revisions?before={}", page["next"]);
    }
    assert_eq!(seen, (1..=150).rev().collect::<Vec<_>>());
    assert_eq!(path, "/api/v1/revisions?before=null");
}

fn job() -> NewJob {
    NewJob { kind: "summarize_turn", key: "x".to_owned(), session: None, payload: json!({}), after: 60_000 }
}

#[tokio::test]
async fn jobs_are_repeated_and_cancelled() {
    let (fake, router) = started();
    fake.user("a").jobs().add(&job()).unwrap();
    let act = |action: &str| post(&format!("/api/v1/jobs/1/{action}"), "application/json", "");
    assert_eq!(ask(&fake, &router, "b", act("retry")).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(ask(&fake, &router, "a", act("retry")).await.status(), StatusCode::OK);
    let job = fake.user("a").jobs().get(1).unwrap();
    assert!(job.due.as_millis() < job.created.as_millis() + 60_000, "it need not wait: {job:?}");
    assert_eq!(ask(&fake, &router, "a", act("cancel")).await.status(), StatusCode::OK);
    assert_eq!(fake.user("a").jobs().list().unwrap(), []);
}

#[tokio::test]
async fn interventions_are_settled_once() {
    let (fake, router) = started();
    fake.user("a").interventions().raise(&NewIntervention::missing_recipe("x")).unwrap();
    let settle = |body: &'static str| post("/api/v1/interventions/1/resolve", "application/json", body);
    let (status, ..) = read(ask(&fake, &router, "a", settle("{}")).await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, _, body) =
        read(ask(&fake, &router, "a", settle(r#"{"resolution": "made it"}"#)).await).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let (status, headers, _) = read(ask(&fake, &router, "a", settle(r#"{"resolution": "no"}"#)).await).await;
    assert_eq!(
        (status, &headers["content-type"]),
        (StatusCode::CONFLICT, &larder_gateway::problem::CONTENT_TYPE.parse().unwrap())
    );
    let (_, open) = json_of(&fake, &router, "a", "/api/v1/interventions").await;
    assert_eq!(open["interventions"], json!([]));
    let (_, all) = json_of(&fake, &router, "a", "/api/v1/interventions?all=true").await;
    assert_eq!(all["interventions"][0]["resolution"], "made it");
}

#[tokio::test]
async fn the_policy_is_shown_and_a_request_is_inspected() {
    let (fake, router) = started();
    let (_, policy) = json_of(&fake, &router, "a", "/api/v1/policy").await;
    assert_eq!(policy["budgets"][0]["budget"], 100_000);
    let settings = policy["settings"].as_array().unwrap();
    assert!(settings.iter().all(|setting| !setting["help"].as_str().unwrap().is_empty()));
    let inspect = |path: &str, body: &str| post(path, "application/json", body);
    let path = "/api/v1/policy/inspect?wire=messages";
    let (status, _, body) = read(ask(&fake, &router, "a", inspect(path, &flooded())).await).await;
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &value["wire"]), (StatusCode::OK, &json!("messages")));
    let (status, _, body) = read(ask(&fake, &router, "a", inspect(path, "nonsense")).await).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(body.contains("expected a value"), "{body}");
    let large = " ".repeat((1 << 20) + 1);
    let (status, ..) = read(ask(&fake, &router, "a", inspect(path, &large)).await).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let (_, _, recorded) = read(ask(&fake, &router, "a", get("/api/v1/live")).await).await;
    assert!(recorded.contains("\"requests\":0"), "inspecting leaves no record");
}

#[tokio::test]
async fn problems_have_one_form_and_tell_no_paths() {
    let (fake, router) = started();
    for (path, status) in [
        ("/api/v1/runs?limit=many", StatusCode::BAD_REQUEST),
        ("/api/v1/runs?since=yesterday", StatusCode::BAD_REQUEST),
        ("/api/v1/runs/nonsense", StatusCode::NOT_FOUND),
        ("/api/v1/pointers/lp1-forged", StatusCode::NOT_FOUND),
        ("/api/v1/pointers/lp1-0000000000000-000000", StatusCode::NOT_FOUND),
        ("/api/v1/interventions/first", StatusCode::BAD_REQUEST),
        ("/api/v1/exchanges/unknown", StatusCode::NOT_FOUND),
    ] {
        let (found, problem) = json_of(&fake, &router, "a", path).await;
        assert_eq!(found, status, "{path}");
        let keys: Vec<&String> = problem.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["type", "title", "status", "detail"]);
        assert_eq!(problem["status"], status.as_u16());
    }
    let path = fake.store.home().to_path_buf();
    let error = larder_store::StoreError::CorruptBlob { path, reason: "cut".to_owned() };
    let problem = Problem::from(error);
    assert_eq!(problem.status, 500);
    assert!(!problem.detail.contains('/'), "{problem:?}");
}

#[tokio::test]
async fn news_comes_at_once_and_as_it_happens() {
    let (fake, router) = started();
    fake.record(&exchange("a", 1));
    let answer = ask(&fake, &router, "a", get("/api/v1/live/events")).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut events = answer.into_body().into_data_stream();
    let first = String::from_utf8(events.next().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(first.contains("event: news") && first.contains("id: 1"), "{first}");
    let data = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let news: larder_gateway::live_stats::LiveUpdate = serde_json::from_str(data).unwrap();
    assert_eq!((news.totals.requests, news.recent.len()), (1, 1));
    fake.record(&exchange("a", 2));
    let second = String::from_utf8(events.next().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(second.contains("id: 2"), "{second}");
    fake.telemetry.close();
    assert!(events.next().await.is_none(), "a stream ends when the gateway does");
}

#[tokio::test]
async fn metrics_are_served_as_openmetrics() {
    let (fake, router) = started();
    let (status, headers, body) = read(ask(&fake, &router, "a", get("/metrics")).await).await;
    assert_eq!(
        (status, &headers["content-type"]),
        (StatusCode::OK, &larder_gateway::metrics::CONTENT_TYPE.parse().unwrap())
    );
    assert!(body.contains("context_budget_violation_total 0"), "{body}");
}

#[tokio::test]
async fn what_belongs_to_all_users_needs_an_operators_key() {
    let (fake, router) = started();
    for path in ["/metrics", "/api/v1/policy"] {
        let (status, _, body) =
            read(larder_testkit::gateway::ask_with_key(&fake, &router, "a", get(path)).await).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        assert!(body.contains("--operator"), "{body}");
    }
    for path in ["/api/v1/live", "/api/v1/costs", "/api/v1/recipes"] {
        let (status, ..) =
            read(larder_testkit::gateway::ask_with_key(&fake, &router, "a", get(path)).await).await;
        assert_eq!(status, StatusCode::OK, "{path}");
    }
}

#[test]
fn addresses_of_contents_are_not_confused_with_pointers() {
    let hash = ContentHash::new(b"x").to_hex();
    assert_eq!(parse(&hash).unwrap_err().status, 404);
    assert_eq!(fake::NOW.to_string(), "2026-11-22T08:00:00.000Z");
}
