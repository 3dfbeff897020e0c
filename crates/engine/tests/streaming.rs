//! Answers that are passed on while a model writes them, and prompts whose parts are labelled.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::{Arc, Mutex};

use larder_core::output::OutputEvent;
use larder_core::recipe::Severity;
use larder_engine::Engine;
use larder_engine::executor::{ProgressObserver, RunReceipt};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_engine::project::Project;
use larder_engine::settings::RunPolicy;
use larder_store::{Store, StoreOptions};
use larder_testkit::layers::every_layer;
use larder_testkit::scripted::ScriptedModel;
use larder_text::message::{Message, Role};
use larder_text::tokens::Counter;

const RECIPE: &str = "
name: talk
description: Answer in a conversation.
model_layer: VOICE
token_budget: {total: 2000, prompt: 200, input: 1200, output: 300, response_reserve: 200}
query_format: 'User message: \"{query}\"'
variants:
  listening: {prompt_files: [prompts/talk/listening.md]}
default_variant: listening
input_docs:
  - {name: state, required: false, label: 'Where we are:'}
  - {name: facts, required: false, label: '--- Notable facts ---'}
slots:
  - {name: system, from: variant, cap: 200}
  - {name: history, from: messages, cap: flexible}
  - {name: context, from: documents, cap: flexible, docs: [state, facts]}
output_format: tagged
output_tags:
  - {name: thinking, hidden: true, required: true}
quality_gates: {max_retries: 1}
";

/// What a user reads, with the marks of a new start.
#[derive(Default)]
struct Reader {
    text: Mutex<String>,
    takes_restarts: bool,
}

impl ProgressObserver for Reader {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
    fn wants_output(&self) -> bool {
        true
    }
    fn output(&self, event: &OutputEvent) {
        if let OutputEvent::Reply(text) = event {
            self.text.lock().unwrap().push_str(text);
        }
    }
    fn restarted(&self) {
        self.text.lock().unwrap().push('|');
    }
    fn takes_restarts(&self) -> bool {
        self.takes_restarts
    }
}

struct World {
    _home: tempfile::TempDir,
    engine: Engine,
    model: Arc<ScriptedModel>,
}

fn world(answers: &[&str]) -> World {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    for (path, text) in [("recipes/talk/talk.yaml", RECIPE), ("prompts/talk/listening.md", "Listen.\n")] {
        let path = project.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let store = Store::open(home.path(), StoreOptions::default()).unwrap().user("tester").unwrap();
    let model = Arc::new(ScriptedModel::saying(answers.iter().copied()));
    let models = every_layer(Arc::clone(&model) as _, home.path(), 8_000, 10_000);
    let project = Project::open(&project, &Counter::cl100k()).unwrap();
    let found = &project.check().diagnostics;
    assert!(found.iter().all(|found| found.severity != Severity::Error), "{found:?}");
    let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
    World { _home: home, engine, model }
}

fn input() -> RunInput {
    RunInput {
        query: Some("He said \"no\" again.".into()),
        documents: vec![InputDocument::whole("facts", "facts", "- [People] Ben is her brother")],
        history: vec![Message::text(Role::User, "Hello"), Message::text(Role::Assistant, "Hello, Ann.")],
        session_id: Some("s1".into()),
        ..RunInput::default()
    }
}

#[tokio::test]
async fn what_a_user_reads_is_passed_on_and_what_is_hidden_is_not() {
    let world = world(&["<thinking>Mode: WITNESS</thinking>That hurts."]);
    let reader = Reader::default();
    let outcome = world.engine.run("talk", &input(), &reader).await.unwrap();
    assert_eq!(
        (reader.text.into_inner().unwrap().as_str(), outcome.reply.as_str()),
        ("That hurts.", "That hurts.")
    );
    assert_eq!(outcome.output["thinking"], "Mode: WITNESS");
    assert!(outcome.failures.is_empty());
}

#[tokio::test]
async fn a_prompt_is_what_was_said_then_labelled_blocks_and_the_query_last_and_whole() {
    let world = world(&["<thinking>a: b</thinking>Yes."]);
    world.engine.run("talk", &input(), &Reader::default()).await.unwrap();
    let [request] = world.model.requests().try_into().unwrap();
    let texts: Vec<String> = request.messages.iter().map(Message::joined_text).collect();
    let last =
        "--- Notable facts ---\n- [People] Ben is her brother\nUser message: \"He said \"no\" again.\"";
    assert_eq!(texts.last().unwrap().trim_end(), last);
    assert_eq!(texts[texts.len() - 3..texts.len() - 1], ["Hello", "Hello, Ann."]);
    assert_eq!(request.stable_messages, texts.len() - 1, "all but the newest message comes again");
}

#[tokio::test]
async fn what_was_read_is_not_asked_for_again_and_what_is_wrong_with_it_is_reported() {
    for (answer, shown) in [
        ("That hurts.", "That hurts."),
        ("That hurts.<thinking>Mode: WITNESS", "That hurts."),
        ("<thinking>a: b</thinking>That hurts.<thinking>c: d</thinking>", "That hurts."),
        ("That </thinking>hurts.", "That hurts."),
    ] {
        let world = world(&[answer]);
        let outcome = world.engine.run("talk", &input(), &Reader::default()).await.unwrap();
        assert_eq!((outcome.reply.as_str(), outcome.failures.len()), (shown, 1), "{answer}");
    }
}

#[tokio::test]
async fn an_answer_without_a_required_tag_begins_anew_where_its_reader_can_take_it_back() {
    let good = "<thinking>a: b</thinking>That hurts.";
    for (answers, read, failures) in [
        (["Oh.", good].as_slice(), "Oh.|That hurts.", 0),
        (&["Oh.<thinking>Mode: WITNESS", good], "Oh.|That hurts.", 0),
        (&["Oh.", "Oh no."], "Oh.|Oh no.", 1),
        (&["That </thinking>hurts."], "That hurts.", 1),
    ] {
        let world = world(answers);
        let reader = Reader { takes_restarts: true, ..Reader::default() };
        let outcome = world.engine.run("talk", &input(), &reader).await.unwrap();
        assert_eq!(reader.text.into_inner().unwrap(), read);
        assert_eq!((outcome.failures.len(), world.model.left()), (failures, 0), "{answers:?}");
        assert!(read.ends_with(&outcome.reply), "the last one is kept: {}", outcome.reply);
    }
}

#[tokio::test]
async fn an_answer_of_which_nothing_was_read_is_asked_for_again() {
    let world = world(&["<thinking>Mode: WITNESS", "<thinking>a: b</thinking>That hurts."]);
    let reader = Reader::default();
    let outcome = world.engine.run("talk", &input(), &reader).await.unwrap();
    assert_eq!((outcome.reply.as_str(), world.model.left()), ("That hurts.", 0));
    assert_eq!(reader.text.into_inner().unwrap(), "That hurts.");
}
