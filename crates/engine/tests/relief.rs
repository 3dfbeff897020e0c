//! What becomes of prompts that fit and take more than the threshold, where more than one prompt is made.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;

use larder_core::pack::Rendition;
use larder_engine::executor::{NoopObserver, RunReceipt};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_models::chat::{ChatReply, StopReason};
use larder_store::{Store, StoreOptions};
use larder_testkit::layers::every_layer;
use larder_testkit::scripted::{Act, ScriptedModel, text};
use larder_text::tokens::Counter;
use tempfile::TempDir;

const RECIPE: &str = "summarize/summarize";

/// An engine that condenses to half of what a prompt may have.
fn engine(replies: Vec<ChatReply>) -> (Engine, Arc<ScriptedModel>, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap().user("tester").unwrap();
    let model = Arc::new(ScriptedModel::new(replies.into_iter().map(|reply| Act::Say(Ok(reply)))));
    let models = every_layer(model.clone(), dir.path(), 32_000, 2_000);
    let project = Project::builtin(&Counter::cl100k());
    let policy = RunPolicy { compression_threshold: 0.5, min_compression_savings: 0, ..RunPolicy::default() };
    let engine = Engine::new(project, models, store, policy, Box::new(|_| None)).unwrap();
    (engine, model, dir)
}

fn notes(lines: usize) -> String {
    (0..lines).map(|at| format!("On day {at} the council talked about bridge {}.\n", at * 7)).collect()
}

fn input(lines: usize) -> RunInput {
    let documents = vec![InputDocument::whole("document", "minutes.txt", notes(lines))];
    RunInput { query: Some("What was it about?".to_owned()), documents, ..RunInput::default() }
}

fn is_whole(receipt: &RunReceipt) -> bool {
    receipt.receipt.parts.iter().all(|part| part.rendition == Rendition::Whole)
}

#[test]
fn more_tokens_never_show_less() {
    let (engine, _model, _dir) = engine(Vec::new());
    let input = input(250);
    assert!(!is_whole(&engine.explain(RECIPE, &input).unwrap()));
    assert!(is_whole(&engine.explain_with(RECIPE, &input, 1).unwrap()));
}

#[tokio::test]
async fn a_document_that_was_asked_about_whole_is_whole_when_it_is_asked_about_again() {
    let cut = ChatReply { stop: StopReason::Length, ..text(&"It was about bridges. ".repeat(40)) };
    let (engine, model, _dir) = engine(vec![cut, text("It was about bridges.")]);
    let stands = |lines: &usize| is_whole(&engine.explain(RECIPE, &input(*lines)).unwrap());
    // A line less than what just stands whole: the note, of ten times that, would be too much for the threshold.
    let lines = (100..1_000).take_while(stands).last().unwrap() - 1;
    engine.run(RECIPE, &input(lines), &NoopObserver).await.unwrap();
    let asked = model.requests();
    assert_eq!(asked.len(), 2);
    for request in asked {
        let prompt: String = request.messages.iter().map(|message| message.joined_text()).collect();
        assert!(prompt.contains(notes(lines).trim_end()), "{prompt}");
    }
}
