//! Answers that are sound and not sure enough (C67): roles with a rule of their own get them back, others do not.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;

use larder_engine::executor::{NoopObserver, RunError, RunOutcome};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_store::{Store, StoreOptions};
use larder_testkit::layers::every_layer;
use larder_testkit::scripted::ScriptedModel;
use larder_text::tokens::Counter;

const CONTEXT: &str = "## 0. User Query\n\n**Original:** Which lamp?\n";
const UNSURE: &str = r#"{"decision": "PROCEED", "confidence": 0.4, "is_action": false, "is_follow_up": false,
    "reasoning": "A guess.", "question": null}"#;

async fn run(project: Project, replies: &[&str]) -> Result<RunOutcome, RunError> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap().user("tester").unwrap();
    let model = Arc::new(ScriptedModel::saying(replies.iter().copied()));
    let models = every_layer(model, dir.path(), 8_000, 60_000);
    let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
    let context = InputDocument::whole("context.md", "users/u/turns/turn_000001/context.md", CONTEXT);
    let input = RunInput { documents: vec![context], ..RunInput::default() };
    engine.run("reflection", &input, &NoopObserver).await
}

#[tokio::test]
async fn reflection_gets_an_unsure_answer_back_and_it_is_named_by_its_section() {
    let outcome = run(Project::builtin(&Counter::cl100k()), &[UNSURE]).await.unwrap();
    assert_eq!(outcome.output["confidence"], 0.4);
    let ids: Vec<&str> = outcome.receipt.receipt.parts.iter().map(|part| &*part.id).collect();
    assert!(ids.contains(&"context.md§0"), "{ids:?}");
}

#[tokio::test]
async fn an_answer_of_another_role_that_is_unsure_is_none() {
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in Project::builtin(&Counter::cl100k()).files() {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let recipe = dir.path().join("recipes/pipeline/phase1_reflection.yaml");
    let text = std::fs::read_to_string(&recipe).unwrap();
    std::fs::write(&recipe, text.replace("role: reflection\n", "role: gate\n")).unwrap();
    let project = Project::open(dir.path(), &Counter::cl100k()).unwrap();
    assert!(matches!(run(project, &[UNSURE]).await, Err(RunError::Gates { .. })));
}
