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
