//! Conversations through the public surface: what is sent, what is kept, and that nothing is forgotten.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::sync::Mutex;

use larder_conversation::ConversationError;
use larder_core::output::OutputEvent;
use larder_engine::executor::{NoopObserver, ProgressObserver, RunError, RunReceipt};
use larder_testkit::layers::Outcome;
use larder_testkit::talks::Talks;

/// Answers as a careful model would: replies with their fields, summaries with what they name.
fn answer(prompt: &str) -> Outcome {
    if prompt.contains("Write the summary.") {
        return r#"{"summary": "They spoke of numbers."}"#.into();
    }
    if prompt.contains("Update the facts.") {
        return r#"{"upsert": [], "delete": []}"#.into();
    }
    let last = prompt.rsplit('\n').next().unwrap_or_default();
    format!("<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: Y\n</thinking>You said: {last}").into()
}

fn world() -> Talks {
    Talks::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base"), answer)
}

#[tokio::test]
async fn a_reply_is_its_text_and_its_fields_move_the_participant_on() {
    let world = world();
    let talk = world.begin("chat");
    let first = talk.say("Hello", &NoopObserver).await.unwrap();
    assert_eq!((first.stage.as_str(), first.next_stage.as_str()), ("hello", "hello"));
    assert!(first.text.starts_with("You said:") && !first.text.contains("WITNESS"), "{}", first.text);
    let second = talk.say("Again", &NoopObserver).await.unwrap();
    assert_eq!((second.stage.as_str(), second.next_stage.as_str()), ("hello", "work"));
    let record = talk.record(second.number).unwrap();
    assert_eq!(record.fields["UserIntensity"], "4");
    let third = talk.say("On", &NoopObserver).await.unwrap();
    assert_eq!(third.stage, "work");
    let prompts = world.prompts.lock().unwrap();
    let last = prompts.last().unwrap();
    assert!(last.contains("Intensity: 4/10 (stable) | Turn 3"), "{last}");
    assert!(last.contains("Said to be ready."), "{last}");
}

#[tokio::test]
async fn fields_that_are_not_trusted_are_kept_and_move_nobody() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base");
    let small = ("conversations/chat.yaml", "{below: 16384,", "{trusts_fields: false, below: 300000,");
    let world = Talks::with_changes(&base, &[small], answer);
    let talk = world.begin("chat");
    for text in ["Hello", "Again", "On"] {
        let reply = talk.say(text, &NoopObserver).await.unwrap();
        assert_eq!((reply.stage.as_str(), reply.next_stage.as_str()), ("hello", "hello"));
        assert_eq!(talk.record(reply.number).unwrap().fields["UserIntensity"], "4");
    }
    let prompts = world.prompts.lock().unwrap();
    assert!(!prompts.last().unwrap().contains("Intensity"), "{}", prompts.last().unwrap());
}

#[tokio::test]
async fn every_message_is_sent_or_summarized_and_the_prefix_grows_between_summaries() {
    let world = world();
    let talk = world.begin("chat");
    let mut before: Option<(Option<u64>, String)> = None;
    let mut summaries = 0;
    for turn in 0..60 {
        let reply = talk.say(&format!("message number {turn}"), &NoopObserver).await.unwrap();
        let record = talk.record(reply.number).unwrap().window;
        let past = usize::try_from(turn * 2).unwrap();
        assert_eq!(record.sent.len() + record.summarized, past, "turn {turn}");
        assert!(record.sent.len() >= past.min(12), "turn {turn}");
        assert_eq!((record.withheld, record.left_out), (0, 0));
        let prompt = world.prompts.lock().unwrap().last().unwrap().clone();
        let history = prompt.split("<state").next().unwrap().to_owned();
        if let Some((watermark, earlier)) = &before {
            if *watermark == record.watermark && reply.stage == "work" && turn > 3 {
                assert!(history.starts_with(earlier.as_str()), "turn {turn}");
            } else if *watermark != record.watermark {
                summaries += 1;
            }
        }
        before = Some((record.watermark, history));
        world.work().await;
    }
    assert!(summaries >= 3, "{summaries}");
}

#[tokio::test]
async fn a_message_that_asks_for_it_takes_the_past_along_with_it() {
    let world = world();
    let talk = world.begin("chat");
    talk.say("Ben lied to me", &NoopObserver).await.unwrap();
    let reply = talk.say("Never mind the past. What now?", &NoopObserver).await.unwrap();
    let record = talk.record(reply.number).unwrap().window;
    assert_eq!((record.sent.len(), record.withheld), (0, 2));
    assert!(!world.prompts.lock().unwrap().last().unwrap().contains("Ben lied"));
    let next = talk.say("And then?", &NoopObserver).await.unwrap();
    assert_eq!(talk.record(next.number).unwrap().window.withheld, 0);
}

#[tokio::test]
async fn a_message_posted_twice_with_one_key_is_answered_once() {
    let world = world();
    let talk = world.begin("chat");
    let (one, two) = (talk.post("Hello", Some("k1")).unwrap(), talk.post("Hello", Some("k1")).unwrap());
    assert_eq!(one.number, two.number);
    let first = talk.answer(one.number, &NoopObserver).await.unwrap();
    let second = talk.answer(two.number, &NoopObserver).await.unwrap();
    assert_eq!((first.number, world.prompts.lock().unwrap().len()), (second.number, 1));
    assert!(talk.post("Other", Some("k1")).is_err());
}

#[tokio::test]
async fn messages_are_answered_in_the_order_in_which_they_were_posted() {
    let world = world();
    let talk = world.begin("chat");
    let (one, two) = (talk.post("one", None).unwrap(), talk.post("two", None).unwrap());
    let (late, early) =
        tokio::join!(talk.answer(two.number, &NoopObserver), talk.answer(one.number, &NoopObserver));
    assert!(early.unwrap().number < late.unwrap().number);
    assert_eq!(world.prompts.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn an_aside_is_a_session_of_its_own() {
    let world = world();
    let talk = world.begin("chat");
    talk.say("Ben lied to me", &NoopObserver).await.unwrap();
    assert_eq!(talk.begin_session(Some("diary")).await.unwrap(), 2);
    let reply = talk.say("Only for me", &NoopObserver).await.unwrap();
    assert_eq!((reply.stage.as_str(), talk.record(reply.number).unwrap().window.sent.len()), ("diary", 0));
    assert!(talk.begin_session(Some("work")).await.is_err());
    talk.begin_session(None).await.unwrap();
    assert_eq!(talk.say("Back", &NoopObserver).await.unwrap().stage, "hello");
}

#[tokio::test]
async fn what_was_remembered_from_an_edited_message_goes_with_it_and_at_once() {
    let fact =
        r#"{"upsert": [{"category": "People", "fact": "has a dog", "quote": "my dog"}], "delete": []}"#;
    let world = Talks::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base"), move |prompt| {
        if prompt.contains("Update the facts.") { fact.into() } else { answer(prompt) }
    });
    let talk = world.begin("chat");
    talk.say("This is my dog.", &NoopObserver).await.unwrap();
    world.work().await;
    let counter = larder_text::tokens::Counter::cl100k();
    assert_eq!(talk.memory(&counter).all_facts().unwrap().len(), 1);
    let posted = talk.revise(Some("This is my cat."), None).await.unwrap();
    assert_eq!(talk.memory(&counter).all_facts().unwrap(), []);
    let (_, state) = talk.standing().unwrap();
    assert_eq!((state.turns, posted.text.as_str()), (0, "This is my cat."));
    let reply = talk.answer(posted.number, &NoopObserver).await.unwrap();
    assert_eq!(talk.messages(None).unwrap().len(), 2, "{reply:?}");
}

/// Collects what is passed on, with a mark where it begins anew.
#[derive(Default)]
struct Passed(Mutex<String>);

impl ProgressObserver for Passed {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
    fn wants_output(&self) -> bool {
        true
    }
    fn output(&self, event: &OutputEvent) {
        if let OutputEvent::Reply(text) = event {
            self.0.lock().unwrap().push_str(text);
        }
    }
    fn restarted(&self) {
        self.0.lock().unwrap().push_str("[restart]");
    }
}

#[tokio::test]
async fn a_tag_that_the_type_does_not_read_is_text_in_its_place() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cookbook");
    let notes = "<notes>\nMode: ASK\nFrustration: 2\nUnderstanding: 1\nStrategy: ask\n</notes>";
    let world = Talks::new(&project, move |prompt| match prompt.contains("<notes>") {
        true => {
            format!("{notes}\n<exercise>\nCompute 1/2 + 1/3.\n</exercise>\n\nTake <b>your</b> time.").into()
        }
        false => r#"{"refers": false, "references": []}"#.into(),
    });
    let talk = world.begin("tutor");
    for observer in [&NoopObserver as &dyn ProgressObserver, &Passed::default()] {
        let reply = talk.say("A task, please", observer).await.unwrap();
        assert_eq!(reply.text, "Compute 1/2 + 1/3.\n\n\nTake <b>your</b> time.");
        assert_eq!(talk.message(reply.number).unwrap().text, reply.text);
    }
    let passed = Passed::default();
    let reply = talk.say("Another", &passed).await.unwrap();
    assert_eq!(passed.0.into_inner().unwrap(), reply.text);
    let prompt = world.last_prompt();
    assert!(prompt.contains("Compute 1/2 + 1/3.") && !prompt.contains("<exercise>\nCompute"), "{prompt}");
}

#[tokio::test]
async fn an_action_that_a_reply_names_takes_its_place() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cookbook");
    let thinking =
        "<thinking>\nMode: DISPATCH\nUserIntensity: 4\nFeelHeardCheck: N\nStrategy: s\n</thinking>";
    let world = Talks::new(&project, move |prompt| match prompt {
        _ if prompt.contains("guided meditation of about") => "Feel your feet.".into(),
        _ if prompt.contains("<thinking>") => {
            format!("{thinking}Let us sit.<draft>I am well.</draft><dispatch>meditation</dispatch>").into()
        }
        _ => r#"{"refers": false, "references": []}"#.into(),
    });
    let talk = world.begin("mediation");
    let passed = Passed::default();
    let reply = talk.say("A meditation, please", &passed).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.action.as_deref()), ("Feel your feet.", Some("meditation")));
    assert_eq!((reply.draft, reply.problems), (None, Vec::<String>::new()));
    assert_eq!(passed.0.into_inner().unwrap(), "Let us sit.[restart]Feel your feet.");
    assert_eq!(talk.message(reply.number).unwrap().text, "Feel your feet.");
}

#[tokio::test]
async fn a_message_that_cannot_fit_is_refused_once_and_waits_for_nothing() {
    let world = world();
    let talk = world.begin("chat");
    let error = talk.say(&"words and words ".repeat(100_000), &NoopObserver).await.unwrap_err();
    assert!(matches!(error, ConversationError::TooLong { .. }), "{error}");
    assert!(error.to_string().contains("send it in parts"), "{error}");
    assert!(talk.messages(None).unwrap().iter().all(|message| !message.pending));
    let reply = talk.say("In short: hello", &NoopObserver).await.unwrap();
    assert!(reply.notices.is_empty(), "{reply:?}");
    let prompts = world.prompts.lock().unwrap();
    assert!(prompts.len() == 1 && prompts[0].contains("In short: hello"), "{prompts:?}");
}

#[tokio::test]
async fn a_refusal_for_the_prompt_is_no_fault_of_the_message() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base");
    let world = Talks::with_changes(
        &base,
        &[
            ("recipes/converse/talk.yaml", "model_layer: VOICE", "model_layer: NERVES"),
            ("recipes/converse/talk_small.yaml", "model_layer: VOICE", "model_layer: NERVES"),
        ],
        answer,
    );
    let all = world.with_small_nerves(64);
    let talk = all.open(&all.begin("chat", "", &[]).unwrap().id, None).unwrap();
    let error = talk.say("Hi", &NoopObserver).await.unwrap_err();
    assert!(matches!(error, ConversationError::Run(RunError::Refused { .. })), "{error}");
    assert!(talk.messages(None).unwrap()[0].pending, "it waits for a larger model");
}
