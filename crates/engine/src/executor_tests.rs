//! What becomes of a run whose models fail: repairs, fallbacks, and the limits of both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use larder_models::chat::{ChatModel, EmbeddingModel, ModelError, Usage};
use larder_models::connect::{EmbeddedModels, Models};
use larder_models::price::Usd;
use larder_models::table::{ModelSpec, ModelTable};
use larder_store::{Store, StoreOptions};
use larder_testkit::scripted::{Act, ScriptedModel, text};
use larder_text::tokens::Counter;

use super::*;
use crate::inputs::InputDocument;
use crate::project::Project;
use crate::settings::RunPolicy;

const TABLE: &str = "
[models.layers]
VOICE = \"first\"
MIND = \"first\"

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
    assert_eq!(observer.0.into_inner().unwrap(), [Usage { input: 1_750, output: 250, ..Usage::default() }]);
}

#[tokio::test]
async fn an_answer_that_stays_wrong_becomes_an_intervention_unless_rules_can_take_over() {
    let answer = world(vec![bad(), bad()], Vec::new());
    let error = answer.engine.run("ask/answer", &input(), &NoopObserver).await.unwrap_err();
    assert!(matches!(error, RunError::Gates { .. }), "{error}");
    assert_eq!(answer.first.left(), 0, "one repair");

    let planning = world(vec![bad(), bad()], Vec::new());
    let recipe = planning.engine.find("ask/answer", None).unwrap();
    let run = planning.engine.run_recipe(recipe, &input(), &NoopObserver, RunKind::Planning).await;
    assert!(matches!(run, Err(RunError::Unusable { .. })), "{run:?}");
}

#[tokio::test]
async fn a_repair_needs_a_budget() {
    let world = world(vec![bad(), good()], Vec::new());
    let error = world.engine.run("ask/answer", &input(), &OneCall::default()).await.unwrap_err();
    assert!(matches!(error, RunError::Spent { .. }), "{error}");
    assert_eq!(world.first.left(), 1);
}
