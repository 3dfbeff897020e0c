//! The calls of a turn besides its reply, through the public surface: references and planning, requests to remember, and
//! the merging of a profile. None of them may stop a reply.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use larder_conversation::memory::{EVERYTHING, FactScope};
use larder_conversation::{CallEnd, Conversation};
use larder_engine::executor::NoopObserver;
use larder_testkit::layers::Outcome;
use larder_testkit::talks::Talks;
use larder_text::tokens::Counter;
use serde_json::json;

/// Stages that look into the past, and calls for it.
const FULL: (&str, &str, &str) = (
    "conversations/chat.yaml",
    "retrieval: {depth: minimal, thresholds: {all-minilm-l6-v2: 0.4}}",
    "retrieval: {depth: full, across_sessions: true}",
);
const PHRASE: (&str, &str, &str) = (
    "conversations/chat.yaml",
    "  memory_request: {",
    "  past_reference: {phrases: [last time]}\n  memory_request: {",
);
/// Each recipe says which it is.
const NAMED: [(&str, &str, &str); 6] = [
    ("recipes/memory/references.yaml", "talk/base.md", "talk/references.md"),
    ("prompts/talk/references.md", "", "Find references."),
    ("recipes/memory/plan.yaml", "talk/base.md", "talk/plan.md"),
    ("prompts/talk/plan.md", "", "Plan the search."),
    ("recipes/memory/note.yaml", "talk/base.md", "talk/note.md"),
    ("prompts/talk/note.md", "", "Put it into a sentence."),
];

fn reply(text: &str) -> Outcome {
    format!("<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>{text}").into()
}

fn talks(
    changes: &[(&str, &str, &str)],
    answer: impl Fn(&str) -> Option<Outcome> + Send + Sync + 'static,
) -> Talks {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base");
    let changes: Vec<_> = NAMED.iter().chain(changes).copied().collect();
    Talks::with_changes(&base, &changes, move |prompt| {
        let other = || match prompt {
            prompt if prompt.contains("Write the summary.") => r#"{"summary": "They spoke."}"#.into(),
            prompt if prompt.contains("Update the facts.") => r#"{"upsert": [], "delete": []}"#.into(),
            _ => reply("I see."),
        };
        answer(prompt).unwrap_or_else(other)
    })
}

async fn ends(talk: &Conversation, text: &str) -> Vec<(String, CallEnd)> {
    let reply = talk.say(text, &NoopObserver).await.unwrap();
    talk.record(reply.number).unwrap().window.calls
}

#[tokio::test]
async fn a_reference_that_rules_miss_is_found_behind_the_reply_and_planned_for_in_the_next() {
    let world = talks(&[FULL, PHRASE], |prompt| match prompt {
        prompt if prompt.contains("Find references.") => Some(
            json!({"refers": true, "references": [{"words": "she", "search": "sister Ana garden"}]})
                .to_string()
                .into(),
        ),
        prompt if prompt.contains("Plan the search.") => {
            Some(json!({"searches": [{"text": "Ana keys", "scope": "session"}]}).to_string().into())
        }
        _ => None,
    });
    let talk = world.begin("chat");
    // In a first session everything is in view, so that there is nothing to detect.
    assert_eq!(ends(&talk, "Hello").await, []);
    world.work().await;
    assert_eq!(world.prompts_with("Find references."), Vec::<String>::new());
    talk.begin_session(None).await.unwrap();
    assert_eq!(ends(&talk, "She did it again").await, [], "the reply does not wait for a detection");
    world.work().await;
    assert_eq!(world.prompts_with("Find references.").len(), 1);
    assert_eq!(talk.standing().unwrap().1.references, ["sister Ana garden"]);
    let reply = talk.say("What should I do?", &NoopObserver).await.unwrap();
    let record = talk.record(reply.number).unwrap();
    assert_eq!(record.window.calls, [("planning".to_owned(), CallEnd::Made)]);
    assert_eq!(record.window.searches, ["sister Ana garden", "Ana keys"]);
    assert_eq!(talk.standing().unwrap().1.references, Vec::<String>::new(), "it serves one turn");
    // All calls of the turn are in one record, those behind it included.
    world.work().await;
    let calls = talk.turn(reply.to.unwrap()).unwrap();
    let names: Vec<&str> = calls.iter().map(|call| call.call.as_str()).collect();
    assert_eq!(names, ["planning", "reply", "conversation_references", "conversation_facts"]);
    assert!(calls.iter().all(|call| call.usage.output > 0 && call.cost.is_some()));
    assert_eq!(reply.usage.output, calls[0].usage.output + calls[1].usage.output);
    // Rules find a phrase at once; then no model is asked whether there is one.
    let before = world.prompts_with("Find references.").len();
    assert_eq!(ends(&talk, "As last time").await, [("planning".to_owned(), CallEnd::Made)]);
    world.work().await;
    assert_eq!(world.prompts_with("Find references.").len(), before);
}

#[tokio::test]
async fn a_planning_call_that_is_late_or_fails_leaves_the_decision_to_rules_and_is_left_out_for_a_while() {
    let asked = AtomicUsize::new(0);
    let limits = (
        "conversations/chat.yaml",
        "timeout_ms: 2000}",
        "timeout_ms: 40, breaker: {failures: 2, pause_s: 60}}",
    );
    let world = talks(&[FULL, PHRASE, limits], move |prompt| {
        let plans = prompt.contains("Plan the search.");
        plans
            .then(|| if asked.fetch_add(1, Ordering::Relaxed) == 0 { Outcome::Never } else { Outcome::Fails })
    });
    let talk = world.begin("chat");
    let plan = |end| vec![("planning".to_owned(), end)];
    assert_eq!(ends(&talk, "last time").await, plan(CallEnd::Failed), "it never answers");
    assert_eq!(ends(&talk, "last time").await, plan(CallEnd::Failed));
    assert_eq!(ends(&talk, "last time").await, plan(CallEnd::Skipped));
    assert_eq!(world.prompts_with("Plan the search.").len(), 2);
    // Another process sees that it failed.
    let again = world.of("ann").open(talk.id(), None).unwrap();
    assert_eq!(ends(&again, "last time").await, plan(CallEnd::Skipped));
    assert_eq!(talk.messages(None).unwrap().len(), 8, "every message has its reply");
}

/// Answers requests to remember: what follows "remember that", unless it is about a secret.
fn remembers(prompt: &str) -> Option<Outcome> {
    let line = |mark: &str| {
        let at = prompt.rfind(mark)? + mark.len();
        Some(prompt[at..].lines().next().unwrap_or_default().to_owned())
    };
    if prompt.contains("Put it into a sentence.") {
        let words = line("remember that ")?;
        if prompt.rfind("Do you remember that?") > prompt.rfind("remember that ") {
            return Some(json!({"action": "none", "text": "", "quote": ""}).to_string().into());
        }
        return Some(json!({"action": "remember", "text": words, "quote": words}).to_string().into());
    }
    prompt.contains("Decide whether this may be remembered.").then(|| {
        let is_secret = prompt.contains("password");
        json!({"valid": !is_secret, "reason": "Secrets cannot be kept."}).to_string().into()
    })
}

#[tokio::test]
async fn what_a_person_asks_to_remember_is_judged_kept_with_its_source_and_said() {
    let world = talks(&[], remembers);
    let talk = world.begin("chat");
    let counter = Counter::cl100k();
    talk.say("Please remember that I take tea at four", &NoopObserver).await.unwrap();
    world.work().await;
    let fact = talk.memory(&counter).all_facts().unwrap().remove(0);
    let source = talk.message(fact.said.message).unwrap().text;
    assert_eq!(&source[fact.said.start..fact.said.end], "I take tea at four");
    assert!(fact.said.preference && fact.said.scope == FactScope::Session && fact.consent.is_none());
    let next = talk.say("Go on", &NoopObserver).await.unwrap();
    assert_eq!(next.notices.len(), 1);
    assert!(next.notices[0].starts_with("Remembered in this session only"), "{:?}", next.notices);
    let prompt = world.prompts_with("Go on").remove(0);
    assert!(prompt.contains("Remembered in this session only"), "{prompt}");
    // A job that is done again remembers nothing again.
    assert_eq!(talk.memory(&counter).all_facts().unwrap().len(), 1);

    talk.say("And remember that my password is hamster", &NoopObserver).await.unwrap();
    world.work().await;
    assert_eq!(talk.memory(&counter).all_facts().unwrap().len(), 1, "what is refused is not kept");
    let next = talk.say("Go on", &NoopObserver).await.unwrap();
    assert_eq!(next.notices, [r#"Not remembered: "my password is hamster". Secrets cannot be kept."#]);
    assert!(talk.say("Go on", &NoopObserver).await.unwrap().notices.is_empty(), "it is said once");

    // A wish that the model does not see as one is answered, too.
    talk.say("Do you remember that?", &NoopObserver).await.unwrap();
    world.work().await;
    let next = talk.say("Go on", &NoopObserver).await.unwrap();
    assert!(next.notices[0].starts_with("Nothing was remembered or forgotten: "), "{:?}", next.notices);

    talk.memory(&counter).grant(EVERYTHING, "May I remember what you tell me?").unwrap();
    talk.say("Also remember that I prefer mornings", &NoopObserver).await.unwrap();
    world.work().await;
    let profile = talk.memory(&counter).profile_facts().unwrap();
    assert!(profile.iter().any(|fact| fact.said.fact == "I prefer mornings"), "{profile:?}");
    let next = talk.say("Go on", &NoopObserver).await.unwrap();
    assert_eq!(next.notices, [r#"Remembered: "I prefer mornings""#]);
    talk.begin_session(None).await.unwrap();
    assert!(world.say(&talk, "When shall we meet?").await.contains("I prefer mornings"));
}

#[tokio::test]
async fn people_that_a_request_names_lead_to_what_is_remembered_of_them() {
    let people = (
        "conversations/chat.yaml",
        "  validator: memory/judge",
        "  validator: memory/judge\n  people: memory/people",
    );
    let recipe = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base/recipes/memory/note.yaml"),
    )
    .unwrap();
    let recipe = recipe.replace("name: note", "name: people").replace("talk/base.md", "talk/people.md");
    let one = ("conversations/chat.yaml", "shown_preferences: 5", "shown_preferences: 1");
    let files = [
        people,
        one,
        ("recipes/memory/people.yaml", "", &recipe),
        ("prompts/talk/people.md", "", "List the people."),
    ];
    let world = talks(&files, |prompt| {
        let names = prompt.contains("List the people.") && prompt.contains("Ana");
        let found = || json!({"people": [{"name": "Ana", "relation": "sister"}]}).to_string().into();
        if names {
            Some(found())
        } else if prompt.contains("List the people.") {
            Some(json!({"people": []}).to_string().into())
        } else {
            remembers(prompt)
        }
    });
    let talk = world.begin("chat");
    for text in ["Please remember that Ana comes on Sundays", "Please remember that I take tea at four"] {
        talk.say(text, &NoopObserver).await.unwrap();
        world.work().await;
    }
    let facts = talk.memory(&Counter::cl100k()).all_facts().unwrap();
    assert_eq!(facts[0].said.people, ["Ana (sister)"]);
    let reply = talk.say("When do I see my sister?", &NoopObserver).await.unwrap();
    assert_eq!(talk.record(reply.number).unwrap().window.facts, [facts[0].id.clone()]);
}

#[tokio::test]
async fn a_profile_with_too_many_facts_is_merged_by_a_model_within_its_limits_and_by_rule_if_that_fails() {
    for fails in [false, true] {
        let limit = ("conversations/chat.yaml", "per_profile: 50", "per_profile: 3");
        let doc = (
            "recipes/memory/merge.yaml",
            "{name: messages, required: false}",
            "{name: facts, required: false}",
        );
        let world = talks(&[limit, doc], move |prompt| {
            if prompt.contains("Merge the facts.") {
                let ids: Vec<&str> = prompt
                    .split_whitespace()
                    .filter(|word| word.starts_with("fact-"))
                    .map(|word| word.trim_start_matches(|c: char| !c.is_alphanumeric()))
                    .collect();
                assert_eq!(ids.len(), 4, "{prompt}");
                let facts = json!([
                    {"category": "People", "fact": "has three dogs", "from": &ids[..3]},
                    {"category": "Other", "fact": "from nowhere", "from": ["fact-0"]},
                ]);
                return Some(if fails {
                    Outcome::Fails
                } else {
                    json!({ "facts": facts }).to_string().into()
                });
            }
            let at = prompt.contains("Update the facts.").then(|| prompt.rfind("dog number "))??;
            let words: String = prompt[at..].chars().take(12).collect();
            let upsert = json!([{"category": "People", "fact": format!("has {words}"), "quote": words}]);
            Some(json!({"upsert": upsert, "delete": []}).to_string().into())
        });
        let talk = world.begin("chat");
        let counter = Counter::cl100k();
        let consent = talk.memory(&counter).grant(EVERYTHING, "May I?").unwrap();
        for number in 0..4 {
            talk.say(&format!("I have dog number {number}"), &NoopObserver).await.unwrap();
            world.work().await;
        }
        world.work().await;
        let profile = talk.memory(&counter).profile_facts().unwrap();
        assert_eq!(world.prompts_with("Merge the facts.").len(), 1);
        let held: Vec<&str> = profile.iter().map(|fact| fact.said.fact.as_str()).collect();
        if fails {
            assert_eq!(held.len(), 3, "{held:?}");
            continue;
        }
        assert_eq!(held, ["has three dogs"]);
        let merged = &profile[0];
        assert_eq!((merged.said.merged.len(), merged.consent.as_deref()), (3, Some(consent.id.as_str())));
        let source = talk.message(merged.said.message).unwrap().text;
        assert!(source[merged.said.start..merged.said.end].starts_with("dog number"), "{source}");
        let all = talk.memory(&counter).all_facts().unwrap();
        let ended = all.iter().filter(|fact| fact.valid_until.is_some()).count();
        assert_eq!((all.len(), ended), (5, 3), "what was merged keeps its interval");
        // What is merged goes with what it was merged from.
        let first = &merged.said.merged[0];
        let eraser = larder_conversation::memory::Eraser { store: &world.all.engine.store };
        assert!(eraser.fact(first).unwrap());
        assert_eq!(talk.memory(&counter).profile_facts().unwrap(), []);
    }
}
