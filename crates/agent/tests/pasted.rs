//! Queries with pasted mails, logs and listings: a turn takes them at any length, in an empty vault and in one with
//! turns in it, and every phase sees what bears on the question.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod turn_support;

use std::fmt::Write as _;

use larder_agent::turn::TurnEvent;
use larder_vault::{Attachments, Document, Mode, TurnStatus, VaultPath};
use serde_json::{Value, json};
use turn_support::answers::{analysis, done, gathered, plain_turn, plan, proceed, retrieval, verdict};
use turn_support::{World, answers};

/// What is pasted, the question about it, and the words that answer it.
struct Paste<'t> {
    ask: &'t str,
    bulk: String,
    answer: &'static str,
}

fn mail(language: &str, words: usize) -> Paste<'static> {
    let (ask, greeting, answer, line) = match language {
        "de" => (
            "Bis wann soll die Rechnung bezahlt sein?",
            "Sehr geehrte Frau Krause,",
            "Die Rechnung soll bis zum 14. März bezahlt sein.",
            "Der Speicher am alten Hafen wurde im Herbst gestrichen, und niemand weiß genau, wer es bestellt hat.",
        ),
        _ => (
            "When must the invoice be paid?",
            "Dear Ms Krause,",
            "The invoice must be paid by 14 March.",
            "The granary by the old harbour was painted last autumn, and nobody knows who had ordered it.",
        ),
    };
    let mut bulk = format!("{greeting}\n\n");
    let lines = words / line.split_whitespace().count();
    for at in 0..lines {
        write!(bulk, "{line}{}", if at % 5 == 4 { "\n\n" } else { " " }).unwrap();
        if at == lines * 3 / 5 {
            write!(bulk, "{answer} ").unwrap();
        }
    }
    Paste { ask, bulk: bulk.trim_end().to_owned(), answer }
}

fn log(lines: usize) -> Paste<'static> {
    let answer = "ERROR payment of order 4711 was declined: card expired";
    let mut bulk = String::new();
    for at in 0..lines {
        let (minute, second) = (at / 60 % 60, at % 60);
        let what = if at == lines * 3 / 5 { answer } else { "INFO request served from the cache" };
        writeln!(bulk, "2026-01-05T10:{minute:02}:{second:02}Z {what}").unwrap();
    }
    Paste { ask: "Why was the payment declined?", bulk: bulk.trim_end().to_owned(), answer }
}

fn listing(lines: usize) -> Paste<'static> {
    let answer = "- 4711; copper kettle; 3 left";
    let mut bulk = String::new();
    for at in 0..lines {
        let what =
            if at == lines * 3 / 5 { answer.to_owned() } else { format!("- {at}; oak board; 40 left") };
        writeln!(bulk, "{what}").unwrap();
    }
    Paste { ask: "How many copper kettles are left?", bulk: bulk.trim_end().to_owned(), answer }
}

/// A vault in which a year of turns stands, and after it eight turns with long queries.
async fn lived_in() -> World {
    let world = World::lived_in("ann", "2026-01-05T10:00:00Z", Mode::Chat);
    for number in 0..8 {
        let query =
            format!("What did the invoice for the granary {number} say, {}?", "and who sent it ".repeat(15));
        world.says(plain_turn());
        assert_eq!(world.ask(&query).await.status, TurnStatus::Complete);
    }
    world.model.prompts.lock().unwrap().clear();
    world
}

async fn takes(world: &World, paste: &Paste<'_>) {
    takes_typed(world, paste, &format!("{}\n\n{}", paste.ask, paste.bulk)).await;
}

/// Asks a query of a paste and what the person asks, which stands before it, behind it, or on both sides.
async fn takes_typed(world: &World, paste: &Paste<'_>, typed: &str) {
    world.says([analysis(), proceed(0.95), retrieval(), gathered(), plan("coordinator").to_string()]);
    world.says([done().to_string(), answers::answer(), verdict("APPROVE", 0.9).to_string()]);
    let outcome = world.ask(typed).await;
    assert_eq!(outcome.status, TurnStatus::Complete, "{outcome:?}");
    let at = VaultPath::new(&format!("{}/attachments.md", outcome.folder)).unwrap();
    let text = world.text(&outcome.folder, "attachments.md");
    let read = Document::<Attachments>::read(&text, &at).value.unwrap().value.attachments;
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].content, paste.bulk);
    let pointers = world.turns.engine.store.pointers();
    let original = pointers.resolve(read[0].original.as_ref().unwrap()).unwrap();
    assert_eq!(original, paste.bulk.as_bytes());
    let context = world.text(&outcome.folder, "context.md");
    let asked = larder_vault::original_query(&context).unwrap();
    assert_eq!(asked, format!("{}\n\n{}", paste.ask, read[0].line()));
    let prompts = std::mem::take(&mut *world.model.prompts.lock().unwrap());
    assert_eq!(prompts.len(), 8);
    for (phase, prompt) in prompts.iter().enumerate() {
        assert_eq!(prompt.matches(&asked).count(), 1, "the query appears once: {prompt}");
        assert!(prompt.contains(paste.answer), "run {phase} lacks {:?}: {prompt}", paste.answer);
    }
    assert_eq!(world.broken_links(), Vec::<String>::new());
}

#[tokio::test]
async fn mails_logs_and_listings_of_any_length_are_asked_about() {
    let pastes = || {
        let mails = [360, 5_000, 20_000].into_iter().flat_map(|words| [mail("en", words), mail("de", words)]);
        mails.chain([log(1_000), log(5_000), listing(1_000), listing(5_000)])
    };
    for paste in pastes() {
        takes(&World::new("ann", "2026-01-05T10:00:00Z", Mode::Chat), &paste).await;
    }
    let world = lived_in().await;
    for paste in pastes() {
        takes(&world, &paste).await;
    }
}

#[tokio::test]
async fn a_request_behind_what_is_pasted_reaches_every_phase() {
    let headers = "From: Clara Holm <clara@granary.example>\nTo: office@harbour.example\nSubject: Granary";
    for words in [360, 20_000] {
        let paste = mail("en", words);
        let bulk = format!("{headers}\n\n{}\n\nBest regards\nClara Holm\nGranary Ltd", paste.bulk);
        for (first, last) in [
            ("", "Tell me when the invoice must be paid. Use formal German."),
            ("Hi! See below.", "Tell me when the invoice must be paid."),
            ("When must the invoice be paid?", "Answer in one sentence, and do not mention the granary."),
        ] {
            let ask = format!("{first}\n\n{last}");
            // A request behind a mail stays in the attachment, too.
            let bulk = format!("{bulk}\n\n---\n\n{last}");
            let typed = format!("{first}\n\n{bulk}\n");
            let paste = Paste { ask: ask.trim_start(), bulk, answer: paste.answer };
            let world = World::new("ann", "2026-01-05T10:00:00Z", Mode::Chat);
            takes_typed(&world, &paste, &typed).await;
        }
    }
}

#[tokio::test]
async fn a_later_question_sees_what_bears_on_it_in_a_long_mail() {
    let world = World::new("ann", "2026-01-05T10:00:00Z", Mode::Chat);
    let paste = mail("en", 20_000);
    world.says(plain_turn());
    let first = world.ask(&format!("Who wrote this?\n\n{}", paste.bulk)).await;
    assert_eq!(first.status, TurnStatus::Complete);
    world.model.prompts.lock().unwrap().clear();
    let path = format!("{}/attachments.md", first.folder);
    let link = json!({"path": path, "sections_to_extract": []});
    let mut retrieval: Value = serde_json::from_str(&retrieval()).unwrap();
    retrieval["links_to_follow"] = json!([link]);
    let mut gathered: Value = serde_json::from_str(&gathered()).unwrap();
    gathered["information"] = json!(paste.answer);
    gathered["references"] = json!([path]);
    gathered["sufficiency"] = json!("SUFFICIENT");
    world.says([analysis(), proceed(0.95), retrieval.to_string(), gathered.to_string()]);
    world.says([plan("synthesis").to_string(), format!("{} [1]", paste.answer)]);
    world.says([verdict("APPROVE", 0.9).to_string()]);
    let outcome = world.ask(paste.ask).await;
    assert_eq!(outcome.status, TurnStatus::Complete, "{outcome:?}");
    let prompts = world.model.prompts.lock().unwrap().clone();
    let shows = |at: usize| prompts[at].matches(paste.answer).count();
    assert!(shows(2) == 1 && shows(3) == 1, "phase 2: {}", prompts[3]);
    // §2 states it, and the cited document does.
    assert!(shows(5) == 2 && shows(6) >= 2, "phases 5 and 6: {}", prompts[5]);
    let warned = world.events.all().into_iter().any(|event| matches!(event, TurnEvent::Warning { .. }));
    assert!(!warned, "{:?}", world.events.all());
}

#[tokio::test]
async fn a_long_query_of_own_words_appears_once_in_each_prompt() {
    let world = World::new("ann", "2026-01-05T10:00:00Z", Mode::Chat);
    let query = format!("Which of these matters most: {}?", "the roof and the old wall and ".repeat(35));
    world.says(plain_turn());
    assert_eq!(world.ask(&query).await.status, TurnStatus::Complete);
    for prompt in world.model.prompts.lock().unwrap().iter() {
        assert_eq!(prompt.matches(&query).count(), 1, "{prompt}");
    }
}
