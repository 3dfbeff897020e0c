//! What is told of runs, whoever starts them and whatever becomes of them: to a listener, in the log, in the record.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use larder_condense::{CondenseRequest, ContentType};
use larder_core::pack::Rendition;
use larder_core::policy::BudgetStatus;
use larder_engine::executor::{NoopObserver, ReducedText, RunError, RunMetricsSink, RunOutcome, RunReport};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_models::chat::ModelError;
use larder_store::{RunFilter, RunRecord, RunStatus, Store, StoreOptions};
use larder_testkit::events::Events;
use larder_testkit::layers::every_layer;
use larder_testkit::scripted::{Act, ScriptedModel, text};
use larder_text::tokens::Counter;
use tempfile::TempDir;

const RECIPE: &str = "summarize/summarize";

#[derive(Default)]
struct Heard {
    ran: Mutex<Vec<RunReport>>,
    condensed: Mutex<Vec<ReducedText>>,
}

impl RunMetricsSink for Heard {
    fn run_ended(&self, report: &RunReport) {
        self.ran.lock().unwrap().push(report.clone());
    }

    fn text_condensed(&self, shrunk: ReducedText, _: Duration) {
        self.condensed.lock().unwrap().push(shrunk);
    }
}

struct Shop {
    engine: Engine,
    heard: Arc<Heard>,
    events: Events,
    _dir: TempDir,
}

fn shop(acts: impl IntoIterator<Item = Act>) -> Shop {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap().user("tester").unwrap();
    let models = every_layer(Arc::new(ScriptedModel::new(acts)), dir.path(), 8_000, 1_000);
    let project = Project::builtin(&Counter::cl100k());
    let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
    let heard = Arc::new(Heard::default());
    let engine = engine.with_metrics(Arc::clone(&heard) as Arc<dyn RunMetricsSink>);
    Shop { engine, heard, events: Events::default(), _dir: dir }
}

fn says(words: &str) -> Act {
    Act::Say(Ok(text(words)))
}

fn prose(sentences: usize) -> String {
    (0..sentences).map(|at| format!("On day {at} the council talked about bridge {}. ", at * 7)).collect()
}

fn input(query: &str, sentences: usize) -> RunInput {
    let documents = vec![InputDocument::whole("document", "minutes.txt", prose(sentences))];
    RunInput { query: Some(query.to_owned()), documents, ..RunInput::default() }
}

/// Fields of an event that the reference does not name, in the column of runs.
fn unnamed(events: &Events, event: &str) -> Vec<String> {
    let page = include_str!("../../../docs/reference/telemetry.md");
    let row = page.lines().find(|line| line.starts_with(&format!("| `{event}` |"))).expect(event);
    let named = row.split(" | ").nth(3).expect(event);
    let fields = events.named(event).into_iter().flat_map(std::collections::BTreeMap::into_keys);
    fields.filter(|field| field != "message" && !named.contains(&format!("`{field}`"))).collect()
}

impl Shop {
    async fn run(&self, input: &RunInput) -> Result<RunOutcome, RunError> {
        let logging = tracing::subscriber::set_default(self.events.clone());
        let outcome = self.engine.run(RECIPE, input, &NoopObserver).await;
        drop(logging);
        outcome
    }

    /// The one run that was told of.
    fn report(&self) -> RunReport {
        let ran = self.heard.ran.lock().unwrap();
        let [report] = ran.as_slice() else { panic!("one run is told of once: {ran:?}") };
        report.clone()
    }

    fn record(&self) -> RunRecord {
        let mut runs = self.engine.store.runs().list(&RunFilter::default()).unwrap();
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }

    fn count(&self, event: &str) -> usize {
        self.events.named(event).len()
    }
}

#[tokio::test]
async fn a_condensing_run_reports_its_savings() {
    let shop = shop([says("It was about bridges.")]);
    shop.run(&input("What was it about?", 900)).await.unwrap();
    let report = shop.report();
    assert_eq!((report.status, report.violates), (Some(BudgetStatus::NeedsSummary), false));
    assert!(report.shrunk.iter().any(|one| one.to == Rendition::Condensed), "{report:?}");
    assert!(report.packing > Duration::ZERO);
    let saved: usize = report.shrunk.iter().map(|one| one.before - one.after).sum();
    assert_eq!(saved as u64, shop.record().facts.compression_savings);

    let decided = shop.events.named("context_budget_decision");
    let [decision] = decided.as_slice() else { panic!("one decision: {decided:?}") };
    for (field, value) in [
        ("status", "needs_summary"),
        ("deficit", "0"),
        ("dry_run", "false"),
        ("recipe", RECIPE),
        ("model", "m"),
    ] {
        assert_eq!(decision[field], value, "{field}");
    }
    let sizes = shop.events.named("context_sizes");
    let size = |name: &str| sizes[0][name].parse::<usize>().unwrap();
    assert!(size("pinned") > 0 && size("rag") > 0, "{sizes:?}");
    assert_eq!((sizes.len(), size("summary"), size("recent")), (1, 0, 0));
    let (started, completed) = (shop.events.named("call_started"), shop.events.named("call_completed"));
    assert_eq!((started.len(), completed.len(), shop.count("call_failed")), (1, 1, 0));
    assert_eq!((started[0]["model"].as_str(), started[0]["operation"].as_str()), ("m", RECIPE));
    assert_eq!((completed[0]["input_tokens"].as_str(), completed[0]["output_tokens"].as_str()), ("10", "4"));
    assert!(completed[0].contains_key("duration_ms"));
    for event in
        ["context_budget_decision", "smart_summarization", "context_sizes", "call_started", "call_completed"]
    {
        assert_eq!(
            unnamed(&shop.events, event),
            Vec::<String>::new(),
            "{event}: docs/reference/telemetry.md"
        );
    }
    let told =
        decided.iter().chain(&sizes).chain(&started).chain(&completed).flat_map(|event| event.values());
    assert!(told.into_iter().all(|value| !value.contains("bridge") && !value.contains("minutes")));
}

#[tokio::test]
async fn a_run_over_budget_is_reported_and_makes_no_call() {
    let shop = shop([]);
    let refused = shop.run(&input(&prose(3_000), 1)).await;
    assert!(matches!(refused, Err(RunError::Refused { .. })), "{refused:?}");
    let report = shop.report();
    assert_eq!((report.status, report.shrunk.len()), (Some(BudgetStatus::Reject), 0));
    let decision = shop.events.named("context_budget_decision").remove(0);
    assert_eq!(decision["status"], "reject");
    assert!(decision["deficit"].parse::<usize>().unwrap() > 0);
    assert!(decision.values().all(|value| !value.contains("bridge")), "{decision:?}");
    assert_eq!((shop.count("call_started"), shop.record().facts.status), (0, RunStatus::Refused));
}

#[tokio::test]
async fn a_run_that_ends_before_its_prompt_is_packed_leaves_a_record_too() {
    let shop = shop([]);
    let failed = shop.run(&RunInput::default()).await;
    assert!(matches!(failed, Err(RunError::Prepare(_))), "{failed:?}");
    assert_eq!(shop.report(), RunReport::default());
    let record = shop.record();
    let facts = &record.facts;
    assert_eq!(
        (facts.status, facts.error.as_deref(), facts.success),
        (RunStatus::Failed, Some("input"), false)
    );
    assert_eq!((facts.recipe.as_str(), facts.tokens.total(), facts.model.as_str()), ("summarize", 0, ""));
    assert_eq!(shop.count("context_budget_decision"), 0);
}

#[tokio::test]
async fn a_call_that_fails_is_logged_by_its_class() {
    let shop =
        shop([Act::Say(Err(ModelError::Timeout { provider: "secret".into(), after: Duration::ZERO }))]);
    shop.run(&input("What was it about?", 1)).await.unwrap_err();
    let failed = shop.events.named("call_failed").remove(0);
    assert_eq!((failed["error"].as_str(), failed["model"].as_str()), ("timeout", "m"));
    assert!(failed.values().all(|value| !value.contains("secret")), "{failed:?}");
    assert_eq!(unnamed(&shop.events, "call_failed"), Vec::<String>::new(), "docs/reference/telemetry.md");
    assert_eq!(shop.report().status, Some(BudgetStatus::Ok), "its budget was checked all the same");
}

#[tokio::test]
async fn a_call_that_its_provider_refused_used_no_tokens() {
    let server = |status| ModelError::Server { provider: "m".into(), status, detail: String::new() };
    let limited = ModelError::RateLimited { provider: "m".into(), detail: String::new(), retry_after: None };
    let timeout = ModelError::Timeout { provider: "m".into(), after: Duration::ZERO };
    for (error, may_have_used) in
        [(limited, false), (server(503), false), (server(504), true), (timeout, true)]
    {
        let shop = shop([Act::Say(Err(error))]);
        let error = shop.run(&input("What was it about?", 1)).await.unwrap_err();
        let tokens = shop.record().facts.tokens;
        assert_eq!(tokens.total() > 0, may_have_used, "{error}: {tokens:?}");
    }
}

#[tokio::test]
async fn text_condensed_outside_a_run_is_reported() {
    // What a model says is of no use, so that it is condensed by rule.
    let shop = shop((0..8).map(|_| says("no")));
    let (text, counter) = (prose(200), Counter::cl100k());
    let request = CondenseRequest {
        text: &text,
        content_type: ContentType::Prose,
        target: 300,
        query: None,
        pins: &[],
        counter: &counter,
        key: shop.engine.store.key(),
    };
    shop.engine.condense(&request, "minutes.txt", &NoopObserver).await.unwrap();
    let condensed = shop.heard.condensed.lock().unwrap();
    let [shrunk] = condensed.as_slice() else { panic!("one text: {condensed:?}") };
    assert!(shrunk.before > 1_000 && shrunk.after <= 300, "{shrunk:?}");
}

#[tokio::test]
async fn unknown_recipe_names_are_not_logged() {
    let shop = shop([]);
    let logging = tracing::subscriber::set_default(shop.events.clone());
    shop.engine.run("my secret words", &RunInput::default(), &NoopObserver).await.unwrap_err();
    drop(logging);
    let missing = shop.events.named("recipe not found or broken");
    assert_eq!(missing.len(), 1);
    assert!(!missing[0].contains_key("recipe"), "{missing:?}");
}
