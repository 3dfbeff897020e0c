//! What turns learn and look up: a fact proves right in turns, is published by a person, and is offered to other users until
//! it is revoked; and what tools read is in the receipt.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod turn_support;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use larder_engine::settings::ToolSettings;
use larder_tools::{ToolBox, publish, share_candidates};
use larder_vault::{DocumentTime, FactRecord, FactRecords, Mode, Scope, read_json};
use serde_json::{Value, json};
use turn_support::story::{self, Reply};
use turn_support::{World, answers, millis};

const START: &str = "2026-01-05T10:00:00Z";
const FACT: &str = "Syrian hamsters live alone";
const SECRET: &str = "The key to the shed is under the third pot";
const QUESTION: &str = "Can Syrian hamsters share a cage in the shed?";

fn after(minutes: u64) -> DocumentTime {
    START.parse::<DocumentTime>().unwrap().plus_seconds(minutes * 60)
}

/// A user's vault with the tools that are built in, so many minutes after the start.
fn world() -> World {
    let mut world = World::new("ann", START, Mode::Chat);
    world.turns.tools = Arc::new(ToolBox::new(&ToolSettings::default()).unwrap());
    world
}

fn knowing(words: &str) -> String {
    json!({"information": words, "preferences": [], "prior_turns": [], "references": [],
        "sufficiency": "SUFFICIENT"})
    .to_string()
}

/// A turn that remembers both statements.
fn learning() -> Vec<String> {
    let remember = |fact: &str| ("memory.create", json!({"kind": "fact", "fact": fact, "category": "Pets"}));
    let mut all = answers::opening();
    all.extend([
        answers::plan("coordinator").to_string(),
        answers::call(&[remember(FACT), remember(SECRET)]).to_string(),
        answers::done().to_string(),
        answers::answer(),
        answers::verdict("APPROVE", 0.9).to_string(),
    ]);
    all
}

/// A turn whose §2 says these words; it is approved or fails.
fn using(words: &str, is_right: bool) -> Vec<String> {
    let mut all = vec![answers::analysis(), answers::proceed(0.95), answers::retrieval(), knowing(words)];
    let verdict = answers::verdict(if is_right { "APPROVE" } else { "FAIL" }, 0.9);
    all.extend([answers::plan("synthesis").to_string(), answers::answer(), verdict.to_string()]);
    all
}

/// The fact as memory has it.
fn fact(world: &World) -> FactRecord {
    let records = std::fs::read_to_string(world.vault().join("users/ann/memory/facts.json")).unwrap();
    let facts = read_json::<FactRecords>(&records).value.unwrap().facts;
    facts.into_iter().find(|fact| fact.fact == FACT).unwrap()
}

async fn ask_at(world: &World, minutes: u64, says: Vec<String>) -> String {
    world.clock.0.store(millis(after(minutes)), Ordering::SeqCst);
    world.model.script.lock().unwrap().clear();
    world.model.prompts.lock().unwrap().clear();
    world.says(says);
    let outcome = world.ask(QUESTION).await;
    world.cancel_jobs();
    outcome.folder
}

/// A turn of another user, with this number; the prompts it sent, its §2 and what it considered.
async fn of_bob(world: World, number: u32, minutes: u64) -> (World, String, String, Vec<Value>) {
    let world = world.later("bob", &after(minutes).to_string(), Mode::Chat);
    let folder = ask_at(&world, minutes, using(FACT, true)).await;
    assert_eq!(folder, format!("users/bob/turns/turn_{number:06}"), "turns are numbered per user");
    let prompts = world.model.prompts.lock().unwrap().join("\n");
    let context = world.text(&folder, "context.md");
    let receipts: Value = serde_json::from_str(&world.text(&folder, "receipts.json")).unwrap();
    let considered = receipts["considered"].as_array().unwrap().clone();
    assert!(!prompts.contains(SECRET) && !context.contains(SECRET), "the prompt has what was not published");
    assert_eq!(world.broken_links(), Vec::<String>::new());
    (world, prompts, context, considered)
}

#[tokio::test]
async fn what_proves_right_in_turns_is_published_by_a_person_and_told_to_others_until_it_is_revoked() {
    let world = world();
    ask_at(&world, 0, learning()).await;
    let documents = world.turns.documents.clone();
    let candidates = |minutes| share_candidates(&documents, after(minutes)).unwrap();
    assert_eq!((fact(&world).uses, fact(&world).scope), (0, Scope::New));
    // Turns that do not state it, and one that was not approved, count nothing.
    ask_at(&world, 5, using("Nothing is known.", true)).await;
    ask_at(&world, 6, using(FACT, false)).await;
    assert_eq!(fact(&world).uses, 0);
    for (minutes, uses, scope) in
        [(10, 1, Scope::New), (20, 2, Scope::New), (59, 3, Scope::New), (60, 4, Scope::User)]
    {
        ask_at(&world, minutes, using(FACT, true)).await;
        assert_eq!((fact(&world).uses, fact(&world).scope), (uses, scope), "after {minutes} minutes");
    }
    for uses in 5..=10 {
        assert_eq!(candidates(24 * 60), [], "after {} uses", uses - 1);
        ask_at(&world, 60 + u64::from(uses), using(FACT, true)).await;
        assert_eq!(fact(&world).uses, uses);
    }
    let newest = documents.catalog().recent_turns(1, None, None).unwrap()[0].number;
    assert_eq!(newest, 13);
    assert_eq!(candidates(24 * 60 - 1), [], "a minute before it is a day old");
    let candidate = candidates(24 * 60).remove(0);
    assert_eq!(
        (candidate.id.as_str(), candidate.statements.as_slice()),
        ("fact-001", &[FACT.to_owned()][..])
    );
    assert_eq!(candidate.source, "fact-001 of ann, learned in turn 1");
    // It is a candidate and no more.
    let day = 24 * 60;
    let (world, prompts, context, _) = of_bob(world, 1, day).await;
    assert!(!prompts.contains("published by") && !context.contains("published by"), "{context}");
    drop(documents);

    let ann = world.documents.user("ann").unwrap();
    let seen = [FACT.to_owned()];
    publish(&ann, after(day), "fact-001", &["Hamsters live together".to_owned()]).unwrap_err();
    publish(&ann, after(day), "fact-002", &[SECRET.to_owned()]).unwrap_err();
    let published = publish(&ann, after(day), "fact-001", &seen).unwrap();
    publish(&ann, after(day), "fact-001", &seen).unwrap_err();
    drop(ann);
    let line = format!("- {FACT} (Pets, global, published by ann: fact-001 of ann, learned in turn 1)");
    let (world, prompts, context, considered) = of_bob(world, 2, day + 1).await;
    assert!(prompts.contains(&line), "{prompts}");
    assert!(context.contains(&line), "{context}");
    let found = considered.iter().find(|entry| entry["document"] == "publication 1 by ann").unwrap();
    assert_eq!((&found["kind"], &found["used"]), (&json!("fact"), &json!(true)));

    let bob = world.store.user("bob").unwrap();
    bob.publications().revoke(published.id, false).unwrap_err();
    world.store.user("ann").unwrap().publications().revoke(published.id, false).unwrap();
    let (world, prompts, context, _) = of_bob(world, 3, day + 2).await;
    assert!(!prompts.contains("Facts that other users published"), "{prompts}");
    assert!(!context.contains("published by"), "{context}");

    let ann = world.documents.user("ann").unwrap();
    publish(&ann, after(day + 2), "fact-001", &seen).unwrap();
    drop(ann);
    world.documents.forget("ann").unwrap();
    assert_eq!(bob.publications().list().unwrap(), []);
    let (_, prompts, _, _) = of_bob(world, 4, day + 3).await;
    assert!(!prompts.contains("Facts that other users published"), "{prompts}");
}

/// What the receipt of a turn says was considered as this, and used.
fn used(world: &World, folder: &str, kind: &str) -> Vec<String> {
    let receipts: Value = serde_json::from_str(&world.text(folder, "receipts.json")).unwrap();
    let all = receipts["considered"].as_array().unwrap().iter();
    let used = all.filter(|entry| entry["kind"] == kind && entry["used"] == true);
    used.inspect(|entry| assert!(entry["tokens"].as_u64() > Some(0), "{entry}"))
        .map(|entry| entry["document"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn what_tools_look_up_goes_through_retrieval_and_is_in_the_receipt() {
    let world = world();
    let first = ask_at(&world, 0, learning()).await;
    let context = format!("{first}/context.md");
    let calls = answers::call(&[
        ("doc.search", json!({"query": "cage shed"})),
        ("doc.read", json!({"path": context, "section": "§0"})),
        ("doc.read", json!({"path": "users/bob/facts.md"})),
        ("memory.query", json!({"query": "hamsters"})),
    ]);
    let mut says = answers::opening();
    says.extend([
        answers::plan("coordinator").to_string(),
        calls.to_string(),
        answers::done().to_string(),
        answers::answer(),
        answers::verdict("APPROVE", 0.9).to_string(),
    ]);
    let folder = ask_at(&world, 60, says).await;
    let documents = used(&world, &folder, "document");
    assert!(documents.iter().filter(|document| **document == context).count() == 2, "{documents:?}");
    assert!(!documents.iter().any(|document| document.contains("bob")), "{documents:?}");
    let results = world.text(&folder, "toolresults.md");
    assert!(results.contains(FACT) && results.contains("there is no document"), "{results}");
    let receipts = world.text(&folder, "receipts.json");
    assert!(receipts.contains("a tool asked memory for it"), "{receipts}");
    assert!(receipts.contains("it holds no words of what a tool asked for"), "{receipts}");
}

#[tokio::test]
async fn research_that_turns_use_leads_back_to_them_and_counts_for_its_user_after_three_uses() {
    let (story, replies) = story::read("cached_research");
    let world = story.world().await;
    let documents = &world.turns.documents;
    let research = || documents.catalog().research(None, 9).unwrap().remove(0);
    let folder = research().document.folder().to_owned();
    assert_eq!((research().use_count, research().scope), (0, Scope::New));
    for (uses, scope) in [(1, Scope::New), (2, Scope::New), (3, Scope::User), (4, Scope::User)] {
        world.says(replies.iter().filter(|reply| reply.recipe != "phase7_summarizer").map(Reply::text));
        let outcome = world.turns.run(&story.request(&world), &world.events).await.unwrap();
        world.cancel_jobs();
        assert_eq!((research().use_count, research().scope), (uses, scope), "{outcome:?}");
        let text = world.text(&folder, "research.md");
        let turn = outcome.folder.rsplit('/').next().unwrap();
        let backlink = format!(
            "- [{turn}/context.md](../{turn}/context.md) | [[{}/context|{turn}]] - \"§2 Gathered Context\"",
            outcome.folder
        );
        assert_eq!(text.matches(&backlink).count(), 1, "{text}");
        assert!(text.contains(&format!("scope: {scope}")), "{text}");
        assert!(world.text(&folder, "research.json").contains(&format!("{}/context.md", outcome.folder)));
    }
    assert_eq!(world.broken_links(), Vec::<String>::new());
}
