//! Answers that are cut off or declined are none, and what is sent is what was counted.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;

use larder_engine::executor::{NoopObserver, RunError, RunOutcome};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_models::chat::{ChatModel, ChatReply, StopReason};
use larder_store::{DocumentPlace, Documents, Retention, Store, StoreOptions};
use larder_testkit::layers::every_layer;
use larder_testkit::scripted::{Act, ScriptedModel, text};
use larder_text::tokens::Counter;

async fn summarize(replies: Vec<ChatReply>) -> (Result<RunOutcome, RunError>, Arc<ScriptedModel>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap().user("tester").unwrap();
    let model = Arc::new(ScriptedModel::new(replies.into_iter().map(|reply| Act::Say(Ok(reply)))));
    let models = every_layer(Arc::clone(&model) as Arc<dyn ChatModel>, dir.path(), 8_000, 60_000);
    let project = Project::builtin(&Counter::cl100k());
    let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
    let notes = InputDocument::whole("document", "notes.md", "The barge came at nine. It left at noon.\n");
    let input =
        RunInput { query: Some("When did it leave?".into()), documents: vec![notes], ..RunInput::default() };
    (engine.run("summarize/summarize", &input, &NoopObserver).await, model)
}

fn ended(words: &str, stop: StopReason) -> ChatReply {
    ChatReply { stop, ..text(words) }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_asked_for_again_in_fewer_words() {
    let cut = ended("The barge left at", StopReason::Length);
    let (outcome, model) = summarize(vec![cut, text("At noon.")]).await;
    assert_eq!(outcome.unwrap().output, "At noon.");
    let asked = model.requests();
    let note = asked[1].messages.last().unwrap().joined_text();
    assert!(note.contains("was cut off at") && note.contains("fewer words"), "{note}");
}

#[tokio::test]
async fn an_answer_that_is_declined_is_none_and_is_not_asked_for_again() {
    let declined = ended("I cannot help with that.", StopReason::Refusal);
    let (outcome, model) = summarize(vec![declined]).await;
    assert!(
        matches!(&outcome, Err(RunError::Gates { failures, .. }) if failures.contains("declined")),
        "{outcome:?}"
    );
    assert_eq!(model.left(), 0);
}

#[tokio::test]
async fn an_answer_that_its_decoder_closed_is_taken_as_cut() {
    let closed = ended("The barge left at", StopReason::Closed);
    let (outcome, model) = summarize(vec![closed]).await;
    let outcome = outcome.unwrap();
    assert!(outcome.is_cut && outcome.failures.is_empty(), "{outcome:?}");
    assert_eq!((outcome.output, model.left()), ("The barge left at".into(), 0));
}

#[tokio::test]
async fn a_run_whose_record_cannot_be_stored_either_says_why_it_failed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    let user = store.user("tester").unwrap();
    user.pointers().insert(b"used today", "text", "").unwrap();
    let documents = Documents::open(&store, &DocumentPlace::Folder(dir.path().join("documents"))).unwrap();
    let tiny = Retention { max_bytes: Some(1), ..Retention::default() };
    assert!(documents.collect(&tiny, &|_| true).unwrap().over_limit);
    let model = Arc::new(ScriptedModel::new([Act::Say(Ok(text("At noon.")))]));
    let models = every_layer(Arc::clone(&model) as Arc<dyn ChatModel>, dir.path(), 8_000, 60_000);
    let project = Project::builtin(&Counter::cl100k());
    let engine = Engine::new(project, models, user, RunPolicy::default(), Box::new(|_| None)).unwrap();
    let log: String = (0..1_000).map(|n| format!("The barge {n} came at nine. It left at noon.\n")).collect();
    let documents = vec![InputDocument::whole("document", "notes.md", log)];
    let input = RunInput { query: Some("When?".into()), documents, ..RunInput::default() };
    let error = engine.run("summarize/summarize", &input, &NoopObserver).await.unwrap_err().to_string();
    assert!(error.contains("larger than retention.max_gb"), "{error}");
    assert_eq!(model.left(), 1, "nothing was asked");
}
