//! What a prompt of a conversation consists of, as the model gets it: the blocks before the message, the pieces that only some
//! turns need, how much of the past is sent, and when a summary is due.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::path::Path;

use larder_conversation::sharing::NewShare;
use larder_engine::executor::NoopObserver;
use larder_testkit::layers::Outcome;
use larder_testkit::talks::Talks;
use serde_json::json;

fn base() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base")
}

/// A prompt file of the mediation.
fn piece(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cookbook/prompts/mediation").join(name);
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Replies whose intensity is the digit that the message ends with, one fact, and verdicts that let everything pass; an action
/// in place of a reply where the message asks for one.
fn answer(prompt: &str) -> Outcome {
    if prompt.contains("Update the facts.") {
        let fact = json!({"category": "People", "fact": "Ben is the brother", "quote": "my brother Ben", "confidence": 0.9});
        return json!({"upsert": [fact], "delete": []}).to_string().into();
    }
    if prompt.contains("Decide whether it attacks the") {
        return json!({"attacks": false, "spans": [], "suggestion": ""}).to_string().into();
    }
    if prompt.trim_end().ends_with("what is this for\"") {
        let fields = "Mode: DISPATCH\nUserIntensity: 2\nStrategy: explain";
        return format!("<thinking>\n{fields}\n</thinking><dispatch>explain_process</dispatch>").into();
    }
    let intensity = prompt.trim_end().trim_end_matches('"').chars().last().and_then(|c| c.to_digit(10));
    let fields = format!("Mode: WITNESS\nUserIntensity: {}\nStrategy: listen", intensity.unwrap_or(4));
    format!("<thinking>\n{fields}\n</thinking>I hear you.").into()
}

#[tokio::test]
async fn what_comes_before_a_message_is_in_its_order_below_its_labels_and_nothing_of_it_is_empty() {
    let world = Talks::new(&base(), answer);
    let people = [("Ann".to_owned(), "ann".to_owned()), ("Ben".to_owned(), "ben".to_owned())];
    let id = world.all.begin("mediation", "", &people).unwrap().id;
    let ann = world.all.open(&id, Some("Ann")).unwrap();
    let first = world.say(&ann, "This is about my brother Ben 4").await;
    let message = "Turn 1\nUser message: \"This is about my brother Ben 4\"\n";
    assert_eq!(&first[first.rfind("Turn 1").unwrap()..], message, "there is no intensity yet");
    ann.act("begin", None, &NoopObserver).await.unwrap();
    world.work().await;
    world.say(&ann, "He lied 4").await;
    world.say(&ann, "He lied again 7").await;
    let prompt = world.say(&ann, "What now 5").await;
    let before = &prompt[prompt.rfind("Intensity: ").unwrap()..];
    let mut at = 0;
    for part in [
        "Intensity: 7/10 (rising) | Turn 4\n",
        "--- Notable facts ---\n- [People] Ben is the brother\n",
        "--- Milestones ---\n- turn 1: Began to tell their side.\n",
        "User message: \"What now 5\"\n",
    ] {
        let found = before[at..].find(part).unwrap_or_else(|| panic!("{part} is not next in {before}"));
        at += found + part.len();
    }
    assert_eq!(at, before.len());
    for absent in ["Rolling summary", "preferences to honor", "Private reflections", "[Earlier", "[Related"] {
        assert!(!before.contains(absent), "{before}");
    }
}

#[tokio::test]
async fn pieces_come_in_the_turn_that_needs_them_and_in_no_other() {
    let world = Talks::new(&base(), answer);
    let people = [("Ann".to_owned(), "ann".to_owned()), ("Ben".to_owned(), "ben".to_owned())];
    let id = world.all.begin("mediation", "", &people).unwrap().id;
    let ann = world.all.open(&id, Some("Ann")).unwrap();
    let (process, shared, moved) =
        (piece("process_overview.md"), piece("post_share.md"), piece("transitions/witnessing.md"));
    let mut systems = Vec::new();
    let mut found = |prompt: &str| {
        systems.push(prompt[..prompt.find("Hello there").unwrap()].to_owned());
        [&process, &shared, &moved].map(|text| prompt.contains(text.as_str()))
    };
    assert_eq!(found(&world.say(&ann, "Hello there").await), [false, false, false]);
    assert_eq!(found(&world.say(&ann, "How does this work?").await), [true, false, false]);
    assert_eq!(found(&world.say(&ann, "I see").await), [false, false, false]);
    ann.act("begin", None, &NoopObserver).await.unwrap();
    assert_eq!(found(&world.say(&ann, "So").await), [false, false, true]);
    let new = NewShare { text: Some("I am sorry.".into()), to: vec!["Ben".into()], ..NewShare::default() };
    let preview = ann.preview_share(&new, &NoopObserver).await.unwrap();
    ann.share(&preview.confirm, &NoopObserver).await.unwrap();
    assert_eq!(found(&world.say(&ann, "Done").await), [false, true, false]);
    assert_eq!(found(&world.say(&ann, "And now").await), [false, false, false]);
    // Up to the first message there is the system prompt alone, from the second turn on.
    assert!(
        systems[1] == systems[2] && systems[0].starts_with(&systems[1]),
        "it never changes within a stage"
    );
    assert!(systems[3..].iter().all(|system| *system == systems[3]) && systems[3] != systems[1]);
}

#[tokio::test]
async fn a_reply_that_names_an_action_has_its_answer() {
    let world = Talks::new(&base(), |prompt| {
        if prompt.contains(&piece("dispatch.md")[..60]) {
            let numbered =
                "- Stage 0, onboarding (here): You say what brings you here.\n- Stage 0, invitation: ";
            if prompt.contains(numbered) { "It goes in stages." } else { "Nobody knows." }.into()
        } else {
            answer(prompt)
        }
    });
    let talk = world.begin("mediation");
    let reply = talk.say("Tell me, what is this for", &NoopObserver).await.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.action.as_deref()),
        ("It goes in stages.", Some("explain_process"))
    );
    let calls: Vec<String> =
        talk.turn(reply.to.unwrap()).unwrap().into_iter().map(|call| call.call).collect();
    assert_eq!(calls, ["reply", "explain_process"]);
    assert!(world.say(&talk, "I see 4").await.contains("It goes in stages."), "it is part of the history");
}

#[tokio::test]
async fn a_stage_sends_more_than_a_summary_leaves_where_its_buffer_is_larger_and_the_cap_limits_it() {
    // Buffers of 4, 7 and 10 turns next to 12 messages that the summary leaves out and a cap of 16.
    for (turns, sent) in [(4, 12), (7, 14), (10, 16)] {
        let changes = [
            ("conversations/chat.yaml", "buffer_turns: 5", format!("buffer_turns: {turns}")),
            ("conversations/chat.yaml", "again_after: 20, keep: 15", "again_after: 20, keep: 12".to_owned()),
        ];
        let changes: Vec<_> = changes.iter().map(|(path, from, to)| (*path, *from, to.as_str())).collect();
        let world = Talks::with_changes(&base(), &changes, |prompt| match prompt {
            prompt if prompt.contains("Write the summary.") => r#"{"summary": "They spoke."}"#.into(),
            prompt if prompt.contains("Update the facts.") => r#"{"upsert": [], "delete": []}"#.into(),
            _ => "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>I see.".into(),
        });
        let talk = world.begin("chat");
        for turn in 0..15 {
            let reply = talk.say(&format!("message {turn}"), &NoopObserver).await.unwrap();
            assert_eq!(
                talk.record(reply.number).unwrap().window.sent.len(),
                turn * 2,
                "nothing is covered yet"
            );
            world.work().await;
        }
        let reply = talk.say("the next", &NoopObserver).await.unwrap();
        let window = talk.record(reply.number).unwrap().window;
        assert_eq!((window.sent.len(), window.summarized), (sent, 30 - sent), "{turns}");
    }
}

#[tokio::test]
async fn tokens_that_the_kept_tail_holds_make_no_summary_due() {
    let world = Talks::new(&base(), |prompt: &str| match prompt {
        prompt if prompt.contains("Write the summary.") => r#"{"summary": "They spoke."}"#.into(),
        prompt if prompt.contains("Update the facts.") => r#"{"upsert": [], "delete": []}"#.into(),
        _ => "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>I see.".into(),
    });
    let talk = world.begin("chat");
    // Some 560 tokens each: 3,500 are reached in the seventh turn, but outside the newest 15 messages only in the fourteenth.
    let mut first = None;
    for turn in 1..=15 {
        let reply = talk.say(&"a word or two ".repeat(140), &NoopObserver).await.unwrap();
        let window = talk.record(reply.number).unwrap().window;
        if window.watermark.is_some() {
            first = first.or(Some(turn));
        }
        world.work().await;
    }
    assert_eq!(first, Some(15));
}

#[tokio::test]
async fn what_does_not_fit_is_shortened_to_a_pointer_then_summarized_then_left_out_and_each_is_recorded() {
    let world = Talks::new(&base(), |prompt: &str| match prompt {
        prompt if prompt.contains("Write the summary.") => r#"{"summary": "They spoke."}"#.into(),
        prompt if prompt.contains("Update the facts.") => r#"{"upsert": [], "delete": []}"#.into(),
        _ => "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>I see.".into(),
    });
    let talk = world.begin("chat");
    let long = format!("It began in spring. {}", "And so it went on, day by day. ".repeat(100));
    talk.say(&long, &NoopObserver).await.unwrap();
    assert!(world.last_prompt().contains(&long), "the message that is answered is whole");
    let mut steps = Vec::new();
    for turn in 1..=45 {
        let text = format!("On day {turn} {}", "there was rain and wind. ".repeat(60));
        let reply = talk.say(&text, &NoopObserver).await.unwrap();
        let window = talk.record(reply.number).unwrap().window;
        assert_eq!(window.sent.len() + window.summarized, turn * 2);
        let prompt = world.last_prompt();
        assert!(prompt.contains(&text) && (window.left_out == 0 || prompt.contains("lp1-")), "{window:?}");
        let step = (window.shortened.len(), window.left_out > 0, window.summarized > 0);
        if steps.last() != Some(&step) {
            steps.push(step);
        }
        // Later summaries are late.
        if turn < 20 {
            world.work().await;
        }
    }
    assert_eq!(steps, [(1, false, false), (0, false, true), (0, true, true)]);
}
