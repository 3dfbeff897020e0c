//! The order of turns through the public surface: messages that are posted while a reply is written, those that were left
//! without one, edits, sessions that begin meanwhile, and what failed turns cost.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use larder_conversation::resume::Remembered;
use larder_conversation::{Conversation, ConversationError};
use larder_engine::executor::NoopObserver;
use larder_store::{Speaker, StoreError, Track};
use larder_testkit::layers::Outcome;
use larder_testkit::talks::Talks;

fn said(text: &str) -> Outcome {
    format!("<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>{text}").into()
}

fn answer(prompt: &str) -> Outcome {
    if prompt.contains("Write the summary.") {
        return r#"{"summary": "They spoke."}"#.into();
    }
    if prompt.contains("Update the facts.") {
        return r#"{"upsert": [], "delete": []}"#.into();
    }
    said(&format!("Reply to {}", prompt.trim_end().rsplit('\n').next().unwrap_or_default()))
}

fn talks(changes: &[(&str, &str, &str)], answer: impl Fn(&str) -> Outcome + Send + Sync + 'static) -> Talks {
    Talks::with_changes(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base"), changes, answer)
}

fn texts(talk: &Conversation) -> Vec<String> {
    talk.messages(None).unwrap().into_iter().map(|message| message.text).collect()
}

/// The texts of the messages that were sent for a reply.
fn sent(talk: &Conversation, reply: u64) -> Vec<String> {
    let sent = talk.record(reply).unwrap().window.sent;
    sent.into_iter().map(|number| talk.message(number).unwrap().text).collect()
}

async fn reply(talk: &Conversation, number: u64) -> larder_conversation::Reply {
    talk.answer(number, &NoopObserver).await.unwrap()
}

/// Posts "two" while the reply to "one" is written, and answers both; returns their numbers.
async fn overlapping() -> (Talks, Conversation, [u64; 2]) {
    let slot: Arc<OnceLock<Conversation>> = Arc::default();
    let (inside, posted) = (Arc::clone(&slot), AtomicBool::new(false));
    let world = talks(&[], move |prompt| {
        if !posted.swap(true, Ordering::SeqCst) {
            inside.get().unwrap().post("two", None).unwrap();
        }
        answer(prompt)
    });
    let talk = world.begin("chat");
    assert!(slot.set(talk.clone()).is_ok());
    let one = talk.post("one", None).unwrap().number;
    reply(&talk, one).await;
    let two = talk.messages(None).unwrap().into_iter().find(|message| message.pending).unwrap().number;
    let second = reply(&talk, two).await;
    assert_eq!(sent(&talk, second.number), ["one", "Reply to one"]);
    (world, talk, [one, two])
}

#[tokio::test]
async fn a_message_posted_while_a_reply_is_written_comes_after_that_reply() {
    let (world, talk, _) = overlapping().await;
    let all = ["one", "Reply to one", "two", "Reply to two"];
    assert_eq!(texts(&talk), all);
    let before = world.last_prompt();
    let third = talk.say("three", &NoopObserver).await.unwrap();
    assert_eq!(sent(&talk, third.number), all);
    let history = |prompt: &str| prompt.split("<state").next().unwrap().trim_end().to_owned();
    assert!(world.last_prompt().starts_with(&history(&before)), "the history grows at its end only");
}

#[tokio::test]
async fn a_message_that_was_left_without_a_reply_comes_last_when_it_is_posted_again() {
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let world = talks(&[], move |prompt| {
        let is_meant = prompt.trim_end().ends_with("\nfirst");
        if is_meant && failing.load(Ordering::SeqCst) { Outcome::Fails } else { answer(prompt) }
    });
    let talk = world.begin("chat");
    let first = talk.post("first", Some("k")).unwrap();
    assert!(talk.answer(first.number, &NoopObserver).await.is_err());
    let second = talk.say("second", &NoopObserver).await.unwrap();
    assert_eq!(second.text, "Reply to second");
    fails.store(false, Ordering::SeqCst);
    assert_eq!(talk.post("first", Some("k")).unwrap().number, first.number);
    let late = reply(&talk, first.number).await;
    assert_eq!(sent(&talk, late.number), ["second", "Reply to second"]);
    assert_eq!(texts(&talk), ["second", "Reply to second", "first", "Reply to first"]);
}

#[tokio::test]
async fn an_edit_takes_only_the_last_turn_back() {
    let (_world, talk, [one, _]) = overlapping().await;
    let edited = talk.revise(Some("other"), None).await.unwrap();
    reply(&talk, edited.number).await;
    assert_eq!(texts(&talk), ["one", "Reply to one", "other", "Reply to other"]);
    assert_eq!(talk.written(one).unwrap().unwrap().text, "Reply to one");
}

#[tokio::test]
async fn an_edit_that_was_overtaken_by_another_message_changes_nothing() {
    let world = talks(&[], answer);
    let talk = world.begin("chat");
    talk.say("one", &NoopObserver).await.unwrap();
    let track = Track { conversation: talk.id(), participant: talk.participant() };
    let held = world.all.engine.store.conversations().take_lease(track).unwrap().unwrap();
    let editing = talk.revise(Some("other"), None);
    tokio::pin!(editing);
    // It is asked for, and waits for the reply that is being written.
    tokio::select! {
        biased;
        _ = &mut editing => panic!("it has to wait"),
        () = std::future::ready(()) => {}
    }
    let posted = talk.post("two", Some("k")).unwrap();
    drop(held);
    let refused = editing.await.unwrap_err();
    assert!(matches!(refused, ConversationError::Store(StoreError::NotLast { .. })), "{refused}");
    reply(&talk, posted.number).await;
    assert_eq!(texts(&talk), ["one", "Reply to one", "two", "Reply to two"]);
}

#[tokio::test]
async fn a_late_repetition_of_a_post_finds_what_became_of_its_message() {
    let world = talks(&[], answer);
    let talk = world.begin("chat");
    let one = talk.post("one", Some("k1")).unwrap();
    reply(&talk, one.number).await;
    let two = talk.revise(Some("two"), Some("k2")).await.unwrap();
    reply(&talk, two.number).await;
    assert_eq!(talk.post("one", Some("k1")).unwrap().number, two.number);
    let three = talk.revise(Some("three"), Some("k3")).await.unwrap();
    reply(&talk, three.number).await;
    for (text, key) in [("one", "k1"), ("two", "k2"), ("three", "k3")] {
        assert_eq!(talk.post(text, Some(key)).unwrap().number, three.number, "{key}");
    }
    assert_eq!(texts(&talk), ["three", "Reply to three"]);
    talk.delete_message(three.number).await.unwrap();
    for (text, key) in [("one", "k1"), ("two", "k2"), ("three", "k3")] {
        let refused = talk.post(text, Some(key)).unwrap_err().to_string();
        assert!(refused.contains("was deleted"), "{refused}");
    }
    assert_eq!(texts(&talk), Vec::<String>::new());
}

#[tokio::test]
async fn a_session_that_begins_during_a_reply_keeps_its_aside_and_the_reply_its_stage() {
    let world = talks(&[], answer);
    let talk = world.begin("chat");
    let (said, begun) = tokio::join!(talk.say("one", &NoopObserver), talk.begin_session(Some("diary")));
    assert_eq!((said.unwrap().stage.as_str(), begun.unwrap()), ("hello", 2));
    assert_eq!(talk.standing().unwrap().1.aside.as_deref(), Some("diary"));
    // A message of before is answered in its own session, wherever the participant is now.
    talk.begin_session(None).await.unwrap();
    let waiting = talk.post("two", None).unwrap();
    talk.begin_session(Some("diary")).await.unwrap();
    let late = reply(&talk, waiting.number).await;
    assert_eq!((late.stage.as_str(), late.next_stage.as_str()), ("hello", "hello"));
    assert_eq!(talk.standing().unwrap().1.aside.as_deref(), Some("diary"));
    assert_eq!(talk.say("three", &NoopObserver).await.unwrap().stage, "diary");
}

#[tokio::test]
async fn facts_are_looked_for_in_every_message_however_long_the_job_waited() {
    let world = talks(&[], answer);
    let talk = world.begin("chat");
    let text = |turn: usize| format!("turn {turn}: {}", format!("word{turn} ").repeat(60));
    for turn in 0..12 {
        talk.say(&text(turn), &NoopObserver).await.unwrap();
    }
    world.work().await;
    let prompts = world.prompts_with("Update the facts.");
    assert!(prompts.len() > 1, "one call does not hold them all");
    for message in talk.messages(None).unwrap() {
        assert!(prompts.iter().any(|prompt| prompt.contains(message.text.trim())), "{}", message.text);
    }
    talk.say("the last", &NoopObserver).await.unwrap();
    world.work().await;
    let next = world.prompts_with("Update the facts.").pop().unwrap();
    let [before, past] = [10, 9].map(|turn| next.contains(&format!("User: turn {turn}:")));
    assert!(next.contains("the last") && before && !past, "only what is new, with some before it: {next}");
}

#[tokio::test]
async fn a_summary_covers_only_what_the_summarizer_read() {
    let world = talks(&[], answer);
    let talk = world.begin("chat");
    for turn in 0..40 {
        talk.say(&format!("turn {turn}: {}", format!("word{turn} ").repeat(40)), &NoopObserver)
            .await
            .unwrap();
    }
    world.work().await;
    let reply = talk.say("and now?", &NoopObserver).await.unwrap();
    let watermark = talk.record(reply.number).unwrap().window.watermark.unwrap();
    let prompts = world.prompts_with("Write the summary.");
    assert!(prompts.len() > 1, "one call does not hold them all");
    let messages = talk.messages(None).unwrap();
    let covered: Vec<_> = messages.iter().filter(|message| message.number <= watermark).collect();
    assert!(covered.len() >= 40, "all steps that were due are done: {}", covered.len());
    for message in covered {
        assert!(prompts.iter().any(|prompt| prompt.contains(message.text.trim())), "{}", message.text);
    }
}

#[tokio::test]
async fn what_a_failed_turn_spends_counts_and_trips_the_ceiling_of_replies_and_jobs() {
    let ceiling =
        ("conversations/chat.yaml", "safety: {", "ceilings: {per_conversation: 0.00001}\nsafety: {");
    // The action that the reply names has no recipe.
    let world = talks(&[ceiling], |prompt| match prompt.contains("explain it") {
        true => said("<dispatch>explain</dispatch>"),
        false => answer(prompt),
    });
    let talk = world.begin("chat");
    talk.post("explain it", None).unwrap();
    assert!(talk.say("explain it", &NoopObserver).await.is_err());
    let costs = talk.costs().unwrap();
    assert!(costs.iter().map(|row| row.picos).sum::<u64>() > 0, "{costs:?}");
    let refused = talk.say("hello", &NoopObserver).await.unwrap_err();
    assert!(matches!(refused, ConversationError::Ceiling { .. }), "{refused}");
    // Jobs ask, too.
    let cheap = talks(
        &[("conversations/chat.yaml", "safety: {", "ceilings: {per_conversation: 0.0000001}\nsafety: {")],
        answer,
    );
    cheap.begin("chat").say("hello", &NoopObserver).await.unwrap();
    cheap.work().await;
    assert_eq!(cheap.prompts_with("Update the facts."), Vec::<String>::new());
}

#[tokio::test]
async fn a_first_message_sent_again_goes_to_the_conversation_that_it_began() {
    let world = talks(&[], answer);
    let before = |texts: &[&str]| -> Vec<Remembered> {
        let speakers = [Speaker::Participant, Speaker::Assistant].into_iter().cycle();
        let pairs = texts.iter().zip(speakers);
        pairs.map(|(text, speaker)| Remembered { speaker, text: (*text).to_owned() }).collect()
    };
    let post = async |had: &[&str], text: &str, key: Option<&str>| {
        let found = world.all.resume("chat", None, &before(had), (text, key)).await.unwrap();
        found.map(|(talk, number)| (talk.id().to_owned(), number))
    };
    // Two at once, and one that comes after the reply.
    let (one, same) = tokio::join!(post(&[], "one", Some("k1")), post(&[], "one", Some("k1")));
    let one = one.unwrap();
    assert_eq!(Some(&one), same.as_ref());
    let talk = world.all.open(&one.0, None).unwrap();
    reply(&talk, one.1).await;
    assert_eq!(post(&[], "one", Some("k1")).await.as_ref(), Some(&one));
    assert!(
        world.all.resume("chat", None, &[], ("two", Some("k1"))).await.is_err(),
        "the key is of another text"
    );
    // With another key, or with none, it begins another; without one, it is sent again while it waits.
    let twin = post(&[], "one", Some("k2")).await.unwrap();
    assert_ne!(twin.0, one.0);
    let waiting = post(&[], "three", None).await.unwrap();
    assert_eq!(post(&[], "three", None).await.unwrap(), waiting);
    reply(&world.all.open(&waiting.0, None).unwrap(), waiting.1).await;
    assert_ne!(post(&[], "three", None).await.unwrap().0, waiting.0);
    // Of two equal conversations the one with the message has it, with a key and without.
    reply(&world.all.open(&twin.0, None).unwrap(), twin.1).await;
    for key in [Some("k3"), None] {
        let had = ["one", "Reply to one"];
        let second = post(&had, "four", key).await.unwrap();
        assert_eq!(post(&had, "four", key).await.unwrap(), second);
        reply(&world.all.open(&second.0, None).unwrap(), second.1).await;
        assert_eq!(post(&had, "four", key).await.unwrap(), second);
    }
    assert_eq!(post(&["never", "said"], "x", None).await, None);
}

#[tokio::test]
async fn the_small_prompts_are_for_the_model_that_the_router_chooses() {
    const ROUTES: &str = "description: By a word.
single_factor: allowed
tiers:
  - {name: small, layer: NERVES}
  - {name: large, layer: MIND, from: 1}
factors:
  - {name: it is hard, weight: 2, when: {says: [hard]}}
";
    let changes = [
        ("routes/sizes.yaml", "", ROUTES),
        (
            "conversations/chat.yaml",
            "safety: {",
            "router: sizes
safety: {",
        ),
    ];
    let world = talks(&changes, answer);
    let all = world.with_small_nerves(8_000);
    let talk = all.open(&all.begin("chat", "", &[]).unwrap().id, None).unwrap();
    let mut recipes = Vec::new();
    for text in ["an easy one", "a hard one"] {
        let reply = talk.say(text, &NoopObserver).await.unwrap();
        recipes.push(talk.record(reply.number).unwrap().recipe);
    }
    assert_eq!(recipes, ["converse/talk_small", "converse/talk"]);
}

/// Without a number of its own, an intent that keeps the summary back sends `window.without_summary` messages (R4-3.11,
/// R4-5.5), and one that leaves the past alone sends none.
#[tokio::test]
async fn an_intent_without_a_number_sends_as_many_messages_as_may_be_sent_without_a_summary() {
    let file = "conversations/chat.yaml";
    let both =
        "avoid_recall: {phrases: [never mind the past]}\n  stage_enforcement: {phrases: [skip this step]}";
    let changes = [
        (file, "avoid_recall: {phrases: [never mind the past], messages: 0}", both),
        (file, "with_summary: 16\n  without_summary: 24", "with_summary: 12\n  without_summary: 13"),
    ];
    let world = talks(&changes, answer);
    let talk = world.begin("chat");
    for number in 0..8 {
        world.say(&talk, &format!("message {number}")).await;
    }
    for (words, kept) in [("Can we skip this step", 13), ("Never mind the past", 0)] {
        let before = talk.messages(None).unwrap().len();
        let number = talk.say(words, &NoopObserver).await.unwrap().number;
        let window = talk.record(number).unwrap().window;
        assert_eq!((window.sent.len(), window.withheld), (kept, before - kept), "{words}");
    }
}

/// A reply starts an action only in the stages that the action has.
#[tokio::test]
async fn a_reply_starts_no_action_of_another_stage() {
    let action = "recipe: converse/lacking, on: [request, dispatch]";
    let elsewhere = "recipe: converse/lacking, stages: [work], on: [request, dispatch]";
    let world = talks(&[("conversations/chat.yaml", action, elsewhere)], |_| {
        let fields = "Mode: WITNESS\nUserIntensity: 4\nReady: N";
        format!("<thinking>\n{fields}\n</thinking><dispatch>explain</dispatch>Hello.").into()
    });
    let talk = world.begin("chat");
    let reply = talk.say("How does it go on?", &NoopObserver).await.unwrap();
    assert_eq!((reply.action, reply.text.as_str(), &*reply.stage), (None, "Hello.", "hello"));
    assert!(
        reply.problems.iter().any(|problem| problem.contains("cannot start here")),
        "{:?}",
        reply.problems
    );
}
