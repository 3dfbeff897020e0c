//! What a conversation remembers, through its public surface: found behind a reply, shown in the next, kept within its
//! session without a consent, and gone from prompts, replies and files after one is revoked.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;

use larder_conversation::memory::EVERYTHING;
use larder_engine::executor::NoopObserver;
use larder_testkit::layers::Outcome;
use larder_testkit::talks::Talks;
use larder_text::tokens::Counter;
use serde_json::json;

const MARKER: &str = "MARKER-4711";

/// Repeats its whole prompt, so that whatever reaches it is seen; finds one fact, whose marker is in no message.
fn answer(prompt: &str) -> Outcome {
    if !prompt.contains("Update the facts.") {
        return format!(
            "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>Told: {}",
            plain(prompt)
        )
        .into();
    }
    let fact = json!({
        "category": "People", "fact": format!("the daughter is called Lily {MARKER}"), "quote": "my daughter Lily",
        "confidence": 0.9
    });
    json!({"upsert": [fact], "delete": []}).to_string().into()
}

fn plain(prompt: &str) -> String {
    prompt.replace(['<', '>'], " ")
}

fn world() -> Talks {
    Talks::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base"), answer)
}

/// Whether any file below a folder has the marker, also inside compressed frames.
fn is_found(folder: &Path) -> bool {
    let has = |bytes: &[u8]| bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes());
    let first_frame = |bytes: &[u8]| {
        let mut content = Vec::new();
        let mut decoder = zstd::stream::Decoder::with_buffer(bytes).ok()?.single_frame();
        std::io::Read::read_to_end(&mut decoder, &mut content).ok()?;
        Some(content)
    };
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_found(&path);
        }
        let bytes = std::fs::read(&path).unwrap();
        let mut frames = bytes.windows(4).enumerate().filter(|(_, four)| *four == [0x28, 0xb5, 0x2f, 0xfd]);
        has(&bytes) || frames.any(|(at, _)| first_frame(&bytes[at..]).is_some_and(|content| has(&content)))
    })
}

#[tokio::test]
async fn facts_stay_in_their_session_cross_with_a_consent_and_are_erased_when_it_is_revoked() {
    let world = world();
    let id = world.all.begin("chat", "A talk", &[]).unwrap().id;
    let talk = world.all.open(&id, None).unwrap();
    let counter = Counter::cl100k();
    world.say(&talk, "This is about my daughter Lily.").await;
    world.work().await;
    assert!(world.say(&talk, "What do you know?").await.contains(MARKER), "in its own session");
    let second = talk.begin_session(None).await.unwrap();
    assert!(!world.say(&talk, "What do you know of my daughter?").await.contains(MARKER), "without consent");
    let consent = talk.memory(&counter).grant(EVERYTHING, "May I remember what you tell me?").unwrap();
    let reply = talk.say("And now?", &NoopObserver).await.unwrap();
    assert!(world.prompts.lock().unwrap().last().unwrap().contains(MARKER), "granted, it works at once");
    assert_eq!(talk.record(reply.number).unwrap().window.facts.len(), 1);
    world.say(&talk, "Go on.").await;
    assert!(is_found(world.home.path()));
    talk.memory(&counter).revoke(&consent.id).unwrap();
    world.work().await;
    assert!(!is_found(world.home.path()), "no file has it");
    assert!(!world.say(&talk, "What do you know of my daughter?").await.contains(MARKER), "nor has a prompt");
    let said = talk.messages(Some(second)).unwrap();
    assert!(said.iter().any(|message| message.text.contains("[erased on ")));
    assert!(talk.messages(Some(1)).unwrap()[0].text.contains("my daughter Lily"), "messages stay");
}

/// The base with recipes whose prompts say what they are, and facts for those that read them.
const CHANGES: [(&str, &str, &str); 6] = [
    ("conversations/chat.yaml", "phrases: [remember that]", "phrases: [remember that, forget what i]"),
    ("recipes/memory/note.yaml", "{name: draft, required: false}", "{name: facts, required: false}"),
    ("recipes/memory/note.yaml", "talk/base.md", "talk/note.md"),
    ("prompts/talk/note.md", "", "Put it into a sentence."),
    ("recipes/memory/merge.yaml", "{name: messages, required: false}", "{name: facts, required: false}"),
    ("conversations/chat.yaml", "per_profile: 50", "per_profile: 1"),
];

/// The ids of facts in a prompt, of the lines that have these words.
fn ids<'p>(prompt: &'p str, words: &str) -> Vec<&'p str> {
    let lines = prompt.lines().filter(|line| line.contains(words));
    lines.filter_map(|line| Some(line[line.find("fact-")?..].split(' ').next().unwrap_or_default())).collect()
}

#[tokio::test]
async fn what_a_person_asks_to_forget_is_erased_from_every_file_and_nothing_else_is() {
    let world = Talks::with_changes(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base"),
        &CHANGES[..4],
        |prompt| {
            if prompt.contains("Put it into a sentence.") {
                // A model may name what there is not.
                let facts = [ids(prompt, MARKER), vec!["fact-0123456789abcdef"]].concat();
                return json!({"action": "forget", "text": "Lily", "quote": "forget what I said", "facts": facts})
                    .to_string()
                    .into();
            }
            if prompt.contains("Update the facts.") && prompt.contains("my dog") {
                let fact = json!({"category": "People", "fact": "has a dog", "quote": "my dog"});
                return json!({"upsert": [fact], "delete": []}).to_string().into();
            }
            if prompt.contains("forget what I") && prompt.contains("Update the facts.") {
                return json!({"upsert": [], "delete": []}).to_string().into();
            }
            answer(prompt)
        },
    );
    let talk = world.begin("chat");
    let counter = Counter::cl100k();
    talk.memory(&counter).grant(EVERYTHING, "May I remember what you tell me?").unwrap();
    talk.say("This is about my daughter Lily.", &NoopObserver).await.unwrap();
    world.work().await;
    talk.begin_session(None).await.unwrap();
    talk.say("What do you know of my daughter, and of my dog?", &NoopObserver).await.unwrap();
    world.work().await;
    assert_eq!(talk.memory(&counter).all_facts().unwrap().len(), 2);
    assert!(is_found(world.home.path()));
    talk.begin_session(None).await.unwrap();
    talk.say("Please forget what I said about Lily.", &NoopObserver).await.unwrap();
    world.work().await;
    let left = talk.memory(&counter).all_facts().unwrap();
    assert_eq!(left.iter().map(|fact| fact.said.fact.as_str()).collect::<Vec<_>>(), ["has a dog"]);
    assert!(!is_found(world.home.path()), "no file has it, the run that was asked what to forget included");
    let next = talk.say("Go on.", &NoopObserver).await.unwrap();
    assert!(next.notices[0].starts_with("One fact was forgotten, as asked."), "{:?}", next.notices);
    assert!(talk.messages(Some(1)).unwrap()[0].text.contains("my daughter Lily"), "messages stay");
}

#[tokio::test]
async fn facts_that_a_model_merged_in_a_later_session_go_with_the_consent_from_its_run_too() {
    let world = Talks::with_changes(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base"),
        &CHANGES,
        |prompt| {
            if prompt.contains("Merge the facts.") {
                let fact = json!({"category": "People", "fact": format!("has two {MARKER}"), "from": ids(prompt, "has ")});
                return json!({"facts": [fact]}).to_string().into();
            }
            if let Some(at) = prompt.rfind("dog number ").filter(|_| prompt.contains("Update the facts.")) {
                let words = &prompt[at..at + 12];
                let fact = json!({"category": "People", "fact": format!("has {words}"), "quote": words});
                return json!({"upsert": [fact], "delete": []}).to_string().into();
            }
            "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>I see.".into()
        },
    );
    let talk = world.begin("chat");
    let counter = Counter::cl100k();
    let consent = talk.memory(&counter).grant(EVERYTHING, "May I?").unwrap();
    for number in 0..2 {
        talk.say(&format!("I have dog number {number}"), &NoopObserver).await.unwrap();
        world.work().await;
    }
    talk.begin_session(None).await.unwrap();
    world.work().await;
    assert!(is_found(world.home.path()), "the facts are merged");
    talk.memory(&counter).revoke(&consent.id).unwrap();
    world.work().await;
    assert!(!is_found(world.home.path()), "no file has it");
}
