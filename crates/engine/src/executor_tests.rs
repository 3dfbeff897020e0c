//! What becomes of a run whose models fail: repairs, fallbacks, and the limits of both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use larder_core::recipe::Risk;
use larder_models::chat::{ChatModel, EmbeddingModel, ModelError, Usage};
use larder_models::connect::{EmbeddedModels, Models};
use larder_models::price::Usd;
use larder_models::table::{ModelSpec, ModelTable};
use larder_store::{Store, StoreOptions};
use larder_testkit::events::Events;
use larder_testkit::scripted::{Act, ScriptedModel, text};
use larder_text::tokens::Counter;

use super::*;
use crate::inputs::InputDocument;
use crate::project::Project;
use crate::settings::RunPolicy;

const TABLE: &str = "
[models.layers]
VOICE = { model = \"first\", target_ms = 100 }
MIND = \"first\"
NERVES = \"first\"

[models.first]
provider = \"embedded\"
id = \"first\"
tokenizer = \"cl100k_base\"
window = 8000
max_output = 1000
fallback = \"spare\"

[models.spare]
provider = \"embedded\"
id = \"spare\"
tokenizer = \"cl100k_base\"
window = 4000
max_output = 1000
";

/// Opens scripted models by id.
struct Scripted(BTreeMap<&'static str, Arc<ScriptedModel>>);

impl EmbeddedModels for Scripted {
    fn chat(&self, spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
        Ok(Arc::clone(&self.0[spec.id.as_str()]) as Arc<dyn ChatModel>)
    }

    fn embedding(&self, spec: &ModelSpec) -> Result<Arc<dyn EmbeddingModel>, ModelError> {
        Err(ModelError::NotConfigured { provider: spec.id.clone(), detail: "no vectors".into() })
    }
}

/// Permits nothing after the first call, and records calls with an unknown outcome.
#[derive(Default)]
struct OneCall(Mutex<Vec<Usage>>);

impl ProgressObserver for OneCall {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
    fn unanswered(&self, max: Usage, _: Option<Usd>) {
        self.0.lock().unwrap().push(max);
    }
    fn may_spend(&self) -> bool {
        false
    }
}

struct World {
    _home: tempfile::TempDir,
    engine: Engine,
    first: Arc<ScriptedModel>,
    spare: Arc<ScriptedModel>,
}

fn world(first: Vec<Act>, spare: Vec<Act>) -> World {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), StoreOptions::default()).unwrap().user("tester").unwrap();
    let (first, spare) = (Arc::new(ScriptedModel::new(first)), Arc::new(ScriptedModel::new(spare)));
    let scripted = Scripted([("first", Arc::clone(&first)), ("spare", Arc::clone(&spare))].into());
    let models = Models::new(ModelTable::parse(TABLE).unwrap(), home.path(), &|_| None);
    let models = models.with_embedded(Arc::new(scripted));
    let project = Project::builtin(&Counter::cl100k());
    let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
    World { _home: home, engine, first, spare }
}

fn input() -> RunInput {
    let passage = InputDocument::whole("passages", "notes.md", "The barge left at noon.\n");
    RunInput { query: Some("When did it leave?".into()), documents: vec![passage], ..RunInput::default() }
}

fn good() -> Act {
    Act::Say(Ok(text("{\"answer\": \"At noon.\", \"citations\": [\"passages\"]}")))
}

fn bad() -> Act {
    Act::Say(Ok(text("At noon.")))
}

fn failing(error: fn(String) -> ModelError) -> Act {
    Act::Say(Err(error("first".into())))
}

fn timeout(provider: String) -> ModelError {
    ModelError::Timeout { provider, after: Duration::from_secs(1) }
}

fn server(provider: String) -> ModelError {
    ModelError::Unreachable { provider, detail: "connection refused".into() }
}

#[tokio::test]
async fn a_fallback_answers_with_a_prompt_for_its_own_window() {
    let world = world(vec![failing(server)], vec![good()]);
    let outcome = world.engine.run("ask/answer", &input(), &NoopObserver).await.unwrap();
    assert_eq!(
        (outcome.receipt.model.as_str(), outcome.output["answer"].as_str()),
        ("spare", Some("At noon."))
    );
    assert_eq!(outcome.receipt.receipt.budget.limits.window, 4_000);
}

#[tokio::test]
async fn after_a_call_with_an_unknown_outcome_a_fallback_needs_a_budget() {
    let world = world(vec![failing(timeout)], vec![good()]);
    let observer = OneCall::default();
    let error = world.engine.run("ask/answer", &input(), &observer).await.unwrap_err();
    assert!(error.may_be_billed(), "{error}");
    assert_eq!(world.spare.left(), 1, "the fallback was not called");
    let asked = &world.first.requests()[0];
    let prompt = Counter::cl100k().count_messages(&asked.messages, &[], None) as u64;
    let booked = observer.0.into_inner().unwrap();
    assert!(booked[0].input >= prompt && booked[0].input < 2 * prompt, "{booked:?}, {prompt} sent");
    assert_eq!((booked.len(), booked[0].output), (1, u64::from(asked.max_output)));
}

/// Wants answers as they are written.
struct Streaming;

impl ProgressObserver for Streaming {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
    fn wants_output(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_stream_that_broke_counts_its_prompt_and_what_came() {
    let broken = ModelError::Protocol { provider: "first".into(), detail: "the connection broke".into() };
    let came = "{\"answer\": \"At no";
    let world = world(vec![Act::Break(vec![came.into()], broken)], vec![good()]);
    let outcome = world.engine.run("ask/answer", &input(), &Streaming).await.unwrap();
    let counter = Counter::cl100k();
    let prompt = counter.count_messages(&world.first.requests()[0].messages, &[], None) as u64;
    let answered = text("{\"answer\": \"At noon.\", \"citations\": [\"passages\"]}").usage;
    assert_eq!(outcome.usage.output, counter.count(came) as u64 + answered.output);
    assert!(outcome.usage.input >= prompt + answered.input, "{:?}, {prompt} sent", outcome.usage);
}

#[tokio::test]
async fn an_answer_that_stays_wrong_becomes_an_intervention_unless_rules_can_take_over() {
    let answer = world(vec![bad(), bad()], Vec::new());
    let error = answer.engine.run("ask/answer", &input(), &NoopObserver).await.unwrap_err();
    assert!(matches!(error, RunError::Gates { .. }), "{error}");
    assert_eq!(answer.first.left(), 0, "one repair");

    let planning = world(vec![bad(), bad()], Vec::new());
    let recipe = planning.engine.find("ask/answer", None).unwrap();
    let run =
        planning.engine.run_recipe(recipe, &input(), &NoopObserver, RunKind::Planning { until: None }).await;
    assert!(matches!(run, Err(RunError::Unusable { .. })), "{run:?}");
}

#[tokio::test]
async fn a_repair_needs_a_budget() {
    let world = world(vec![bad(), good()], Vec::new());
    let error = world.engine.run("ask/answer", &input(), &OneCall::default()).await.unwrap_err();
    assert!(matches!(error, RunError::Spent { .. }), "{error}");
    assert_eq!(world.first.left(), 1);
}

/// The recipe `ask/answer` with other terms.
fn answer(world: &World, change: impl FnOnce(&mut Recipe)) -> Recipe {
    let mut recipe = world.engine.find("ask/answer", None).unwrap().clone();
    change(&mut recipe);
    recipe
}

#[tokio::test]
async fn at_high_risk_no_other_model_takes_over_without_a_human() {
    let world = world(vec![failing(server)], vec![good()]);
    let recipe = answer(&world, |recipe| recipe.risk = Risk::High);
    let run = world.engine.run_recipe(&recipe, &input(), &NoopObserver, RunKind::Answer).await;
    assert!(matches!(run, Err(RunError::Model { .. })), "{run:?}");
    assert_eq!(world.spare.left(), 1, "the fallback was not called");
    let raised = world.engine.store.interventions().list(false).unwrap();
    assert!(raised[0].message.contains("its fallback spare was not asked"), "{raised:?}");
}

#[tokio::test]
async fn the_time_for_a_call_is_the_recipes_unless_the_model_is_a_slow_one() {
    let asked = async |stated: Option<u64>| {
        let world = world(vec![good()], Vec::new());
        let recipe = answer(&world, |recipe| recipe.gates.timeout_ms = stated);
        world.engine.run_recipe(&recipe, &input(), &NoopObserver, RunKind::Answer).await.unwrap();
        world.first.requests()[0].timeout.as_millis()
    };
    assert_eq!([asked(Some(700)).await, asked(Some(90_000)).await, asked(None).await], [700, 90_000, 30_000]);
    let slow = call::timeout(Some(700), Duration::from_secs(600));
    assert_eq!(slow, Duration::from_secs(600), "a table that gives its model more time is obeyed");
}

#[tokio::test(start_paused = true)]
async fn a_call_slower_than_its_layer_should_be_is_warned_of() {
    for (millis, warnings) in [(50, 0), (200, 1)] {
        let events = Events::default();
        let world = world(vec![Act::After(Duration::from_millis(millis), Box::new(good()))], Vec::new());
        let guard = tracing::subscriber::set_default(events.clone());
        world.engine.run("ask/answer", &input(), &NoopObserver).await.unwrap();
        drop(guard);
        let missed = events.named("target_missed");
        assert_eq!(missed.len(), warnings, "{missed:?}");
        assert!(missed.iter().all(|missed| missed["target_ms"] == "100" && missed["layer"] == "VOICE"));
    }
}

#[tokio::test]
async fn settings_of_the_policy_hold_in_recipes() {
    let used = |policy: RunPolicy| {
        let mut world = world(Vec::new(), Vec::new());
        world.engine.policy = policy;
        let text: String = (0..60).map(|at| format!("On day {at} the barge left at {}.\n", at * 7)).collect();
        let passage = InputDocument::whole("passages", "notes.md", text);
        let input = RunInput { documents: vec![passage], ..input() };
        let receipt = world.engine.explain("ask/answer", &input).unwrap().receipt;
        (receipt.budget.available, receipt.total, receipt.refused.is_some())
    };
    let usual = RunPolicy::default();
    let (available, whole, _) = used(usual);
    let floor = used(RunPolicy { emergency_floor: Some(300), ..usual });
    assert_eq!((floor.0, floor.2), (available - 300, false));
    let most = used(RunPolicy { prompt_budget_override: Some(whole - 200), ..usual });
    assert!(most.0 == whole - 200 && most.1 <= whole - 200 && !most.2, "{most:?}");
    assert!(used(RunPolicy { prompt_budget_override: Some(whole - 200), enabled: false, ..usual }).2);
}

#[test]
fn the_intervention_of_a_broken_recipe_says_that_it_is_broken() {
    let world = world(Vec::new(), Vec::new());
    let source = RecipeError::Invalid { name: "x/over".into(), path: "recipes/x/over.yaml".into() };
    world.engine.missing("x/over", source);
    let raised = world.engine.store.interventions().list(false).unwrap();
    assert!(raised[0].message.contains("x/over has errors in recipes/x/over.yaml"), "{raised:?}");
}

#[tokio::test(start_paused = true)]
async fn background_work_lets_others_go_first_for_a_minute() {
    use crate::background::LONGEST_WAIT;
    let world = world(vec![good()], Vec::new());
    let store = world.engine.store.store().clone();
    let engine = world.engine.in_background(std::time::Duration::ZERO);
    let someone = store.enter_foreground().unwrap();
    let began = tokio::time::Instant::now();
    engine.run("ask/answer", &input(), &NoopObserver).await.unwrap();
    let waited = began.elapsed();
    assert!(waited >= LONGEST_WAIT && waited < LONGEST_WAIT * 2, "{waited:?}");
    drop(someone);
}
