//! What code checks in a turn whatever models say: values of an answer, goals, and sections that stay what they are when
//! they are condensed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod turn_support;

use std::sync::Arc;

use larder_agent::turn::background::Background;
use larder_engine::RunPolicy;
use larder_engine::executor::NoopObserver;
use larder_engine::settings::ToolSettings;
use larder_tools::ToolBox;
use larder_vault::context::{self, CallStatus, GatheredContext, GoalStatus, Sufficiency, TaskPlan, ToolLog};
use larder_vault::links::NoteOutline;
use larder_vault::{Mode, TurnStatus, VaultPath};
use serde_json::{Value, json};
use turn_support::tools::Given;
use turn_support::{World, answers};

const NOW: &str = "2026-01-05T10:00:00Z";

fn world() -> World {
    World::new("ann", NOW, Mode::Chat)
}

fn changed(mut value: Value, changes: Value) -> Value {
    for (name, change) in changes.as_object().unwrap() {
        value[name] = change.clone();
    }
    value
}

/// Phases 0 to 3 for a plan that goes to `next`.
fn planned(next: &str) -> Vec<String> {
    let mut all = answers::opening();
    all.push(answers::plan(next).to_string());
    all
}

#[tokio::test]
async fn an_invented_price_is_never_delivered_as_verified() {
    let invented = || "It costs $599.00 at Bobs Boats in Reykjavik. [context.md§0]".to_owned();
    let approved = || answers::verdict("APPROVE", 0.95).to_string();
    let world = world();
    world.says(planned("synthesis"));
    world.says([invented(), approved(), answers::answer(), approved()]);
    let outcome = world.ask("What does the boat cost?").await;
    assert_eq!((outcome.status, outcome.unverified), (TurnStatus::Complete, false));
    assert_eq!(outcome.answer, Some(answers::answer()), "it was revised");
    let prompts = world.model.prompts.lock().unwrap().clone();
    assert!(prompts[7].contains("Leave out \"$599.00\""), "{}", prompts[7]);
    // The price that an earlier attempt invented does not become known by that.
    world.says(planned("synthesis"));
    world.says((0..2).flat_map(|_| [invented(), approved()]));
    let outcome = world.ask("What does the boat cost?").await;
    assert_eq!((outcome.status, outcome.unverified), (TurnStatus::Complete, true), "{outcome:?}");
    let answer = outcome.answer.unwrap();
    assert!(answer.contains("\"$599.00\" is in none of the answer's documents"), "{answer}");
}

/// A comma without a space separates the fields of pasted rows; it makes no number of them.
#[tokio::test]
async fn the_fields_of_pasted_rows_are_numbers_of_their_own() {
    const ROWS: &str = "sku,name,price_eur,stock\n1300,Gadget cc,378.00,77\n1301,Gadget dd,378,177\n";
    let approved = || answers::verdict("APPROVE", 0.95).to_string();
    for (said, is_true) in [
        ("Gadget cc costs 378.00 EUR and 77 are in stock, 177 of Gadget dd. [context.md§0]", true),
        ("There are 378,177 of Gadget dd. [context.md§0]", false),
    ] {
        let world = world();
        world.says(planned("synthesis"));
        world.says((0..2).flat_map(|_| [said.to_owned(), approved()]));
        let outcome = world.ask(&format!("What do the gadgets cost?\n\n{ROWS}")).await;
        assert_eq!((outcome.status, outcome.unverified), (TurnStatus::Complete, !is_true), "{outcome:?}");
    }
}

/// What a turn invented does not become known by being read in a later one, by any way to it.
#[tokio::test]
async fn what_an_earlier_turn_invented_is_no_evidence() {
    let world = world();
    let invented = || "The LOQ costs $612.50 at Bobs Boats. [context.md§0]".to_owned();
    let approved = || answers::verdict("APPROVE", 0.95).to_string();
    world.says(planned("synthesis"));
    world.says((0..2).flat_map(|_| [invented(), approved()]));
    let first = world.ask("What does the LOQ cost?").await;
    assert!(first.unverified, "{first:?}");
    let answer = format!("{}/response.md", first.folder);
    let said = world.text(&first.folder, "response.md");
    let hits = json!([{"document": answer, "snippet": "The LOQ costs $612.50 at Bobs Boats."}]).to_string();
    for (at, result) in [said, hits].into_iter().enumerate() {
        world.says(planned("coordinator"));
        let path = if at == 0 { answer.clone() } else { "the LOQ".to_owned() };
        let read = if at == 0 { format!("{answer}\n{result}") } else { result };
        world.tools.given.lock().unwrap().push_back(Given::text("doc.search", "1 hit", read));
        world.says([
            answers::call(&[("doc.search", json!({"query": path}))]).to_string(),
            answers::done().to_string(),
        ]);
        world.says((0..2).flat_map(|_| ["It costs $612.50. [1]".to_owned(), approved()]));
        let outcome = world.ask("What does the LOQ cost?").await;
        assert!(outcome.unverified, "way {at}: {outcome:?}");
        let answer = outcome.answer.unwrap();
        assert!(answer.contains("\"$612.50\" is in none of the answer's documents"), "{answer}");
    }
}

/// Nor is it known in another notation, or with a title.
#[tokio::test]
async fn what_an_earlier_turn_invented_is_no_evidence_in_another_notation() {
    let world = world();
    let approved = || answers::verdict("APPROVE", 0.95).to_string();
    world.says(planned("synthesis"));
    let invented = || "It has been run by Jane Doe since 3 May 2031. [context.md§0]".to_owned();
    world.says((0..2).flat_map(|_| [invented(), approved()]));
    let first = world.ask("Who runs the shop?").await;
    assert!(first.unverified, "{first:?}");
    let answer = format!("{}/response.md", first.folder);
    world.says(planned("coordinator"));
    let read = format!("{answer}\nMrs. Doe (JANE DOE) has run it since 2031-05-03.");
    world.tools.given.lock().unwrap().push_back(Given::text("doc.read", "1 document", read));
    world.says([
        answers::call(&[("doc.read", json!({"path": answer}))]).to_string(),
        answers::done().to_string(),
    ]);
    world.says((0..2).flat_map(|_| ["**Jane Doe** runs it since 2031-05-03. [1]".to_owned(), approved()]));
    let outcome = world.ask("Who runs the shop?").await;
    assert!(outcome.unverified, "{outcome:?}");
    let answer = outcome.answer.unwrap();
    for value in ["Jane Doe", "2031-05-03"] {
        assert!(answer.contains(&format!("{value:?} is in none of the answer's documents")), "{answer}");
    }
}

/// §2 is evidence, so it says nothing that the gatherer was not shown.
#[tokio::test]
async fn a_price_that_gathering_invents_is_not_known() {
    let world = world();
    let mut opening = answers::opening();
    let gathered: Value = serde_json::from_str(&opening[3]).unwrap();
    let lines = "It is about a boat.\nThe boat costs $777.70.";
    opening[3] = changed(gathered, json!({"information": lines})).to_string();
    world.says(opening);
    world.says([answers::plan("synthesis").to_string()]);
    let stated = || "It costs $777.70. [context.md§2]".to_owned();
    world.says((0..2).flat_map(|_| [stated(), answers::verdict("APPROVE", 0.95).to_string()]));
    let outcome = world.ask("What does the boat cost?").await;
    assert!(outcome.unverified, "{outcome:?}");
    let context = world.text(&outcome.folder, "context.md");
    assert!(
        context.contains("It is about a boat.") && !context.contains("The boat costs $777.70."),
        "{context}"
    );
}

/// Names of §2 are those that the gatherer was shown.
#[tokio::test]
async fn a_name_that_gathering_invents_is_not_known() {
    for (info, answer, found) in [
        (
            "Egbert Winterbottom sells the boat.",
            "The boat is sold by Egbert Winterbottom.",
            "Egbert Winterbottom",
        ),
        ("Winterbottom sells the boat.", "You can ask Mr. Winterbottom.", "Mr. Winterbottom"),
        ("E. Winterbottom sells the boat.", "The boat is sold by E. Winterbottom.", "E. Winterbottom"),
    ] {
        let world = world();
        let mut opening = answers::opening();
        let gathered: Value = serde_json::from_str(&opening[3]).unwrap();
        opening[3] = changed(gathered, json!({"information": info})).to_string();
        world.says(opening);
        world.says([answers::plan("synthesis").to_string()]);
        let stated = || format!("{answer} [context.md§2]");
        world.says((0..2).flat_map(|_| [stated(), answers::verdict("APPROVE", 0.95).to_string()]));
        let outcome = world.ask("Who sells the boat?").await;
        let text = outcome.answer.clone().unwrap();
        assert!(outcome.unverified, "{outcome:?}");
        assert!(text.contains(&format!("{found:?} is in none of the answer's documents")), "{text}");
    }
}

/// The time of a turn is no evidence for numbers, nor its day for other days than today.
#[tokio::test]
async fn the_clock_is_no_evidence() {
    for (answer, is_known) in [
        ("It supports 10 plugins. [1]", false),
        ("It was published on 5 January 2026. [1]", false),
        ("As of today, 5 January 2026, it supports plugins. [1]", true),
    ] {
        let world = world();
        world.says(planned("coordinator"));
        let page = Given::text("doc.search", "1 hit", "It supports plugins, and was published.");
        world.tools.gives([page]);
        world.says([
            answers::call(&[("doc.search", json!({"query": "plugins"}))]).to_string(),
            answers::done().to_string(),
        ]);
        world.says((0..2).flat_map(|_| [answer.to_owned(), answers::verdict("APPROVE", 0.95).to_string()]));
        let outcome = world.ask("What does it support?").await;
        assert_eq!(outcome.unverified, !is_known, "{answer}: {outcome:?}");
    }
}

/// What a model writes of pages may name whom they do not.
#[tokio::test]
async fn a_name_of_research_is_one_of_its_pages() {
    for (answer, is_known) in
        [("It was designed by Norbert Hollowell. [1]", false), ("It is sold by Matilda Greenwood. [1]", true)]
    {
        let world = world();
        world.says(planned("coordinator"));
        let written = "Norbert Hollowell designed the Vela, and Matilda Greenwood sells it.";
        let mut research = Given::text("internet.research", "Found 1 claim", written);
        let page = "---\nid: x\n---\nThe Vela has 16 GB. Sold by Matilda Greenwood.";
        research.files.insert("webpage_cache/vela_1/page_content.md".to_owned(), page.into());
        world.tools.gives([research]);
        world.says([
            answers::call(&[("internet.research", json!({"query": "Vela"}))]).to_string(),
            answers::done().to_string(),
        ]);
        world.says((0..2).flat_map(|_| [answer.to_owned(), answers::verdict("APPROVE", 0.95).to_string()]));
        let outcome = world.ask("Who designed it?").await;
        assert_eq!(outcome.unverified, !is_known, "{answer}: {outcome:?}");
    }
}

/// A fact is stored for later turns, which take it for evidence.
#[tokio::test]
async fn a_fact_that_nobody_stated_is_not_remembered() {
    let mut world = world();
    world.turns.tools = Arc::new(ToolBox::new(&ToolSettings::default()).unwrap());
    world.says(planned("coordinator"));
    let remember =
        |fact: &str| ("memory.create", json!({"kind": "fact", "fact": fact, "category": "Things"}));
    world.says([
        answers::call(&[remember("The boat costs $999.90"), remember("The budget is $800")]).to_string(),
        answers::done().to_string(),
        answers::answer(),
        answers::verdict("APPROVE", 0.9).to_string(),
    ]);
    let outcome = world.ask("Remember that my budget is 800 dollars. What does the boat cost?").await;
    let results = world.text(&outcome.folder, "toolresults.md");
    assert!(results.contains("\"$999.90\" is neither said by the user nor stated by a result"), "{results}");
    let facts = world.text("users/ann", "memory/facts.json");
    assert!(facts.contains("The budget is $800") && !facts.contains("999.90"), "{facts}");
}

/// A validator whose replies cannot be read takes no answer away.
#[tokio::test]
async fn an_answer_that_nobody_could_judge_is_delivered_with_a_mark() {
    let world = world();
    world.says(planned("synthesis"));
    world.says([answers::answer()]);
    world.says((0..20).map(|_| "No idea.".to_owned()));
    let outcome = world.ask("What does the boat cost?").await;
    assert_eq!((outcome.status, outcome.unverified), (TurnStatus::Complete, true), "{outcome:?}");
    let answer = outcome.answer.unwrap();
    assert!(
        answer.contains("no verdict that can be read") && answer.contains(&answers::answer()),
        "{answer}"
    );
}

/// What a model asks for is no evidence, whether the call succeeds or fails.
#[tokio::test]
async fn a_price_in_the_arguments_of_a_call_is_not_known() {
    let world = world();
    let invented = || "It costs $778.88. [1]".to_owned();
    world.says(planned("coordinator"));
    world.tools.given.lock().unwrap().push_back(Given::text("doc.search", "1 hit", "The boats are here."));
    world.says([
        answers::call(&[("doc.search", json!({"query": "boat $778.88"}))]).to_string(),
        answers::done().to_string(),
    ]);
    world.says((0..2).flat_map(|_| [invented(), answers::verdict("APPROVE", 0.95).to_string()]));
    let outcome = world.ask("What does the boat cost?").await;
    assert!(outcome.unverified, "{outcome:?}");
    let answer = outcome.answer.unwrap();
    assert!(answer.contains("\"$778.88\" is in none of the answer's documents"), "{answer}");
}

/// The second call has the number 1 among the sources, since the first failed.
#[tokio::test]
async fn each_result_is_shown_once_with_the_number_to_cite() {
    let world = world();
    world.says(planned("coordinator"));
    let given = [
        Given {
            status: CallStatus::Error,
            ..Given::text("doc.read", "no such document", "There is no such document.")
        },
        Given::text("doc.search", "1 hit", "The boat costs $450."),
    ];
    world.tools.given.lock().unwrap().extend(given);
    world.says([
        answers::call(&[("doc.read", json!({"path": "x"})), ("doc.search", json!({"query": "boat"}))])
            .to_string(),
        answers::done().to_string(),
        "It costs $450. [1]".to_owned(),
        answers::verdict("APPROVE", 0.9).to_string(),
    ]);
    let outcome = world.ask("What does the boat cost?").await;
    assert!(!outcome.unverified, "{outcome:?}");
    let prompts = world.model.prompts.lock().unwrap().clone();
    let prompt = prompts.iter().find(|prompt| prompt.contains("(evidence p1")).unwrap();
    let (_, list) = prompt.split_once("## Result 1").unwrap();
    assert!(list.contains("There is no such document."), "{prompt}");
    assert!(list.contains("(evidence p1, cited as [1])") && !list.contains("$450"), "{prompt}");
}

#[tokio::test]
async fn numbers_in_an_answer_lead_somewhere() {
    let world = world();
    world.says(planned("coordinator"));
    world.tools.given.lock().unwrap().push_back(Given::text("doc.search", "1 hit", "The boat costs $450."));
    let claim = json!({"claim": "The boat: $450", "confidence": 0.9, "source": "doc.search", "ttl": "6h"});
    world.says([
        answers::call(&[("doc.search", json!({"query": "boat"}))]).to_string(),
        changed(answers::done(), json!({"claims": [claim]})).to_string(),
        "It costs $450. [1]".to_owned(),
        answers::verdict("APPROVE", 0.9).to_string(),
    ]);
    let outcome = world.ask("What does the boat cost?").await;
    let [source] = outcome.sources.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(source.number, 1);
    assert_eq!(source.document, format!("{}/toolresults.md#^result-001", outcome.folder));
    let pointer = source.pointer.clone().unwrap().parse().unwrap();
    let bytes = world.turns.engine.store.pointers().resolve(&pointer).unwrap();
    assert_eq!(bytes, b"The boat costs $450.");
    let response = world.text(&outcome.folder, "response.md");
    assert!(
        response.contains("- [1] [turn_000001/toolresults.md](toolresults.md#^result-001)"),
        "{response}"
    );
    // A block is what it names: the claim, and the content of the result that states it.
    let block = |file: &str, name: &str| {
        let text = world.text(&outcome.folder, file);
        let range = NoteOutline::parse(&text).find(name).unwrap();
        text[range].to_owned()
    };
    let claim = block("context.md", "^claim-001");
    assert!(claim.contains(": The boat: $450 ^claim-001"), "{claim}");
    assert!(block("toolresults.md", "^result-001").contains("The boat costs $450."));
    // Each document says what it holds (R1-9.11).
    for (file, holds) in [
        ("context.md", "content_types: [context, pricing]"),
        ("ticket.md", "content_types: [context]"),
        ("response.md", "content_types: [context, pricing]"),
        ("toolresults.md", "content_types: [context, pricing]"),
    ] {
        let text = world.text(&outcome.folder, file);
        assert!(text.contains(holds), "{file}: {text}");
    }
    assert_eq!(world.broken_links(), Vec::<String>::new());
}

/// Phases 0 to 3 for a boat and an oar.
fn planned_for_two() -> Vec<String> {
    let goals = json!([{"id": 1, "description": "A boat", "dependencies": []},
        {"id": 2, "description": "An oar", "dependencies": []}]);
    let tasks = json!([{"goal": 1, "text": "Find a boat"}, {"goal": 2, "text": "Find an oar"}]);
    let mut all = answers::opening();
    all.push(changed(answers::plan("coordinator"), json!({"goals": goals, "tasks": tasks})).to_string());
    all
}

/// An answer and its revision, of which the validator says that both goals are addressed.
fn approved_twice() -> Vec<String> {
    let verdict = |goal: u32| json!({"goal": goal, "addressed": true, "quality": 0.8, "notes": ""});
    let verdicts = json!({"goals": [verdict(1), verdict(2)]});
    let approved = || changed(answers::verdict("APPROVE", 0.9), verdicts.clone()).to_string();
    vec![answers::answer(), approved(), answers::answer(), approved()]
}

/// The reason why the loop of phase 4 ended.
fn termination(world: &World, folder: &str) -> String {
    let at = VaultPath::new(&format!("{folder}/context.md")).unwrap();
    let log: ToolLog = context::read_newest(&world.text(folder, "context.md"), &at).unwrap().value.unwrap();
    log.termination.unwrap().reason
}

#[tokio::test]
async fn a_goal_is_not_reached_by_searches_that_found_nothing() {
    for empty in ["[]", "", " {}\n"] {
        let world = world();
        world.says(planned_for_two());
        for goal in [1, 2] {
            for _ in 0..2 {
                let none = Given::text("doc.search", "No document contains these words", empty);
                world.tools.given.lock().unwrap().push_back(none);
                let call = answers::call(&[("doc.search", json!({"query": "zzz"}))]);
                world.says([changed(call, json!({"goal": goal, "goal_confidence": 0.95})).to_string()]);
            }
        }
        world.says([answers::done().to_string()]);
        world.says(approved_twice());
        let outcome = world.ask("Find me a boat and an oar").await;
        assert_eq!(termination(&world, &outcome.folder), "DONE; not reached: GOAL_1, GOAL_2");
        assert!(outcome.unverified, "{outcome:?}");
    }
}

#[tokio::test]
async fn a_goal_that_was_never_worked_on_is_not_addressed_whatever_the_validator_says() {
    let world = world();
    world.says(planned_for_two());
    world.tools.given.lock().unwrap().push_back(Given::text("doc.search", "1 hit", "The boat is here."));
    let call = answers::call(&[("doc.search", json!({"query": "boat"}))]);
    world.says([changed(call, json!({"goal": 1})).to_string(), answers::done().to_string()]);
    world.says(approved_twice());
    let outcome = world.ask("Find me a boat and an oar").await;
    assert_eq!(termination(&world, &outcome.folder), "DONE; not reached: GOAL_2");
    assert!(
        outcome.unverified && outcome.answer.unwrap().contains("The calls of the turn did not reach GOAL_2")
    );
    let prompts = world.model.prompts.lock().unwrap().join("\n");
    assert!(prompts.contains("Say plainly that GOAL_2 could not be reached"), "{prompts}");
}

#[tokio::test]
async fn the_limit_of_iterations_names_the_goals_that_are_open() {
    let mut world = world();
    world.turns.limits.iterations = 2;
    world.says(planned_for_two());
    for confidence in [json!(null), json!(0.9)] {
        let call = answers::call(&[("test.echo", json!({}))]);
        world.says([changed(call, json!({"goal": 1, "goal_confidence": confidence})).to_string()]);
    }
    world.says(approved_twice());
    let outcome = world.ask("Find me a boat and an oar").await;
    let reason = termination(&world, &outcome.folder);
    assert_eq!(reason, "the limit of 2 iterations is reached; not reached: GOAL_2");
    assert!(outcome.unverified, "{outcome:?}");
}

#[tokio::test]
async fn what_a_failed_call_says_is_no_evidence_and_reaches_no_goal() {
    let world = world();
    world.says(planned("coordinator"));
    let wrong =
        Given { status: CallStatus::Error, ..Given::text("memory.create", "no fact", "fact is missing") };
    world.tools.given.lock().unwrap().push_back(wrong);
    let cited = || "The boat is remembered. [1]".to_owned();
    let approved = || answers::verdict("APPROVE", 0.9).to_string();
    world.says([answers::call(&[("memory.create", json!({}))]).to_string(), answers::done().to_string()]);
    // What cites nothing that is there is asked for again.
    world.says([cited(), answers::answer(), approved(), answers::answer(), approved()]);
    let outcome = world.ask("Remember the boat").await;
    assert_eq!(termination(&world, &outcome.folder), "DONE; not reached: the goal");
    assert_eq!((outcome.status, outcome.unverified), (TurnStatus::Complete, true), "{outcome:?}");
    assert!(outcome.sources.iter().all(|source| source.number != 1), "{outcome:?}");
    assert!(!outcome.answer.unwrap().contains("[1]"));
}

/// An answer that says only what could not be reached contradicts no goal.
#[tokio::test]
async fn an_honest_answer_after_a_failed_call_bears_no_mark() {
    let world = world();
    world.says(planned("coordinator"));
    let missing = Given { status: CallStatus::Error, ..Given::text("web.visit", "404", "404 not found") };
    world.tools.given.lock().unwrap().push_back(missing);
    world.says([answers::call(&[("web.visit", json!({"url": "https://x.example"}))]).to_string()]);
    world.says([answers::done().to_string()]);
    let honest = "The page could not be opened: 404 not found. [context.md§0]";
    world.says([honest.to_owned(), answers::verdict("APPROVE", 0.9).to_string()]);
    let outcome = world.ask("What is on the page https://x.example?").await;
    assert_eq!(
        (outcome.answer.as_deref(), outcome.unverified),
        (Some(honest), false),
        "{:?}",
        outcome.reason
    );
}

/// Of research, the findings are evidence: not what it says of itself, nor its prices once it is stale.
#[tokio::test]
async fn of_research_only_the_findings_that_still_hold_are_evidence() {
    let research = |expires: &str| {
        format!(
            "# Research Document\n\n**ID:** research_1_ab\n**Turn:** 1\n**Session:** ann\n**Query:** boats\n\n\
             ## Metadata\n\n**Topic:** boat\n**Intent:** informational\n**Quality:** 0.50\n\
             **Created:** 2026-01-05T01:00:00Z\n**Expires:** {expires}\n\n## Evergreen Knowledge\n\n\
             ### General Facts\n\n- Boats have oars.\n\n## Time-Sensitive Data\n\n### Current Listings\n\n\
             | Product | Price | Vendor | In Stock | URL |\n|---|---|---|---|---|\n\
             | Boat | $697 | Acme | yes | https://acme.example |\n\n## Claims\n\n\
             | Claim | Confidence | Source | TTL |\n|---|---|---|---|\n| Boat @ $697 | 0.90 | acme | 6h |\n"
        )
    };
    let (fresh, stale) = ("2026-01-06T01:00:00Z", "2026-01-05T07:00:00Z");
    for (expires, answer, is_marked) in [
        (fresh, "The boat costs $697. [1]", false),
        (fresh, "The boat costs $0.50. [1]", true),
        (fresh, "The boat costs $0.90. [1]", true),
        (stale, "The boat costs $697. [1]", true),
        (stale, "Boats have oars. [1]", false),
    ] {
        let world = world();
        world.says(planned("coordinator"));
        world.tools.given.lock().unwrap().push_back(Given::text("doc.read", "1", research(expires)));
        world.says([
            answers::call(&[("doc.read", json!({"path": "research.md"}))]).to_string(),
            answers::done().to_string(),
        ]);
        world.says((0..2).flat_map(|_| [answer.to_owned(), answers::verdict("APPROVE", 0.9).to_string()]));
        let outcome = world.ask("What does the boat cost?").await;
        assert_eq!(outcome.unverified, is_marked, "{answer} {expires}: {outcome:?}");
    }
}

/// A section or a result that says that there is nothing supports no answer.
#[tokio::test]
async fn what_holds_nothing_is_no_evidence() {
    for (next, cited) in
        [("synthesis", "context.md§2"), ("coordinator", "1"), ("coordinator", "context.md§4")]
    {
        let world = world();
        world.says(planned(next));
        if next == "coordinator" {
            world.tools.given.lock().unwrap().push_back(Given::text("doc.search", "no hits", "[]"));
            let call = answers::call(&[("doc.search", json!({"query": "boat"}))]);
            world.says([call.to_string(), answers::done().to_string()]);
        }
        // A negation alone says nothing of what was looked for.
        let stated = || format!("It is not blue, it is red. [{cited}]");
        world.says([stated(), stated()]);
        let outcome = world.ask("What is the boat like?").await;
        assert_eq!(
            (outcome.status, outcome.unverified),
            (TurnStatus::Complete, true),
            "{cited}: {outcome:?}"
        );
        let reason = format!("it cites [{cited}], which holds nothing");
        assert_eq!(outcome.reason.as_deref(), Some(reason.as_str()));
        assert!(outcome.sources.is_empty(), "{outcome:?}");
        let prompts = world.model.prompts.lock().unwrap().clone();
        assert!(prompts.last().unwrap().contains(&format!("[{cited}] holds nothing")), "it was told");
    }
    // What was told is followed.
    let world = world();
    world.says(planned("synthesis"));
    world.says(["The boat is red. [context.md§2]".to_owned(), answers::answer()]);
    world.says([answers::verdict("APPROVE", 0.9).to_string()]);
    let outcome = world.ask("What is the boat like?").await;
    assert_eq!((outcome.answer, outcome.unverified), (Some(answers::answer()), false));
}

#[tokio::test]
async fn advice_about_the_embedded_model_names_the_layer_that_failed() {
    let world = world();
    world.says((0..12).map(|_| "no JSON at all".to_owned()));
    let reason = world.ask("What is it?").await.reason.unwrap();
    assert!(reason.ends_with("too small for turns: bind REFLEX to a better model"), "{reason}");
    // A verdict is no failure of a model.
    let world = self::world();
    world.says(planned("synthesis"));
    world.says([answers::answer(), answers::verdict("FAIL", 0.9).to_string()]);
    let reason = world.ask("What is it?").await.reason.unwrap();
    assert!(!reason.contains("better model"), "{reason}");
}

#[tokio::test]
async fn an_attempt_of_a_job_leaves_no_intervention() {
    let world = world();
    world.says(answers::plain_turn());
    let outcome = world.ask("What is it?").await;
    let background = Background {
        engine: world.turns.engine.clone().in_background(std::time::Duration::ZERO),
        documents: world.turns.documents.clone(),
        embedding: None,
    };
    world.says((0..12).map(|_| "no JSON at all".to_owned()));
    for _ in 0..2 {
        let ended = background.summarize(outcome.turn, None, &NoopObserver).await;
        assert!(ended.unwrap_err().to_string().contains("returned nothing useful"));
    }
    assert_eq!(world.turns.engine.store.interventions().list(false).unwrap(), []);
}

#[tokio::test]
async fn goals_without_a_result_are_not_reached() {
    let world = world();
    world.says(planned_for_two());
    for goal in [1, 2] {
        let missing = Given { status: CallStatus::Error, ..Given::text("web.visit", "404 not found", "") };
        world.tools.given.lock().unwrap().push_back(missing);
        let call = answers::call(&[("web.visit", json!({"url": "https://example.org"}))]);
        world.says([changed(call, json!({"goal": goal, "goal_confidence": 0.9})).to_string()]);
        world.says([changed(answers::done(), json!({"goal": goal})).to_string()]);
    }
    world.says(approved_twice());
    let outcome = world.ask("Find me a boat and an oar").await;
    assert_eq!((outcome.status, outcome.unverified), (TurnStatus::Complete, true), "{outcome:?}");
    let answer = outcome.answer.unwrap();
    assert!(answer.contains("validation: GOAL_1, GOAL_2 not reached."), "{answer}");
    let at = VaultPath::new(&format!("{}/context.md", outcome.folder)).unwrap();
    let text = world.text(&outcome.folder, "context.md");
    let log: ToolLog = context::read_newest(&text, &at).unwrap().value.unwrap();
    assert_eq!(log.termination.unwrap().reason, "DONE; not reached: GOAL_1, GOAL_2");
    let prompts = world.model.prompts.lock().unwrap().join("\n");
    assert!(prompts.contains("GOAL_1 was given up"), "{prompts}");
    let plan: TaskPlan = context::read_newest(&text, &at).unwrap().value.unwrap();
    assert_eq!(plan.goals[0].status, GoalStatus::InProgress, "§3 is as it was planned");
}

#[tokio::test]
async fn sections_keep_their_structure_when_they_are_condensed() {
    let world = world();
    let information = "ψ7 ω3 ξ9 λ2 φ5. ".repeat(280);
    let gathered = json!({"information": information.trim(), "preferences": [], "prior_turns": [], "references": [],
        "sufficiency": "NEEDS_MORE"});
    let long = |what: &str| format!("{what} {}", "ψ7 ω3 ξ9 λ2 φ5 ".repeat(11));
    let goals: Vec<Value> =
        (1..=6).map(|id| json!({"id": id, "description": long("Find boat"), "dependencies": []})).collect();
    let tasks: Vec<Value> = (1..=8)
        .map(|id| json!({"goal": (id - 1) % 6 + 1, "text": format!("{} {id}", long("Ask for boat"))}))
        .collect();
    let changes =
        json!({"goals": goals, "tasks": tasks, "focus": "The first boat", "intent": "commerce_search"});
    let plan = changed(answers::plan("synthesis"), changes);
    world.says([answers::analysis(), answers::proceed(0.9), answers::retrieval(), gathered.to_string()]);
    let verdicts: Vec<Value> =
        (1..=6).map(|goal| json!({"goal": goal, "addressed": true, "quality": 0.8, "notes": ""})).collect();
    world.says([
        plan.to_string(),
        answers::answer(),
        changed(answers::verdict("APPROVE", 0.9), json!({"goals": verdicts})).to_string(),
    ]);
    let outcome = world.ask("Which boats are for sale?").await;
    assert_eq!(outcome.status, TurnStatus::Complete, "{outcome:?}");
    let prompts = world.model.prompts.lock().unwrap().clone();
    assert!(prompts[4].contains("**Sufficiency:** NEEDS_MORE"), "the planner routes by it: {}", prompts[4]);
    for kept in [
        "**Goal:** Answer the query.",
        "**Intent:** commerce_search",
        "**Route To:** synthesis",
        "| GOAL_6 |",
    ] {
        assert!(prompts[5].contains(kept), "{kept}: {}", prompts[5]);
    }
    let text = world.text(&outcome.folder, "context.md");
    assert_eq!(text.matches("### Compaction 1").count(), 2, "§2 and §3: {text}");
    let at = VaultPath::new(&format!("{}/context.md", outcome.folder)).unwrap();
    let gathered: GatheredContext = context::read_newest(&text, &at).unwrap().value.unwrap();
    assert_eq!(gathered.sufficiency, Some(Sufficiency::NeedsMore));
}

/// A turn that gathers more than §2 holds, with a model that condenses to `retold`; §2 as later phases read it, and what
/// the receipts say of condensing it.
async fn gathered_by_model(retold: &str) -> (String, Value) {
    let mut world = world();
    world.turns.engine.policy = RunPolicy { use_llm_summarizer: true, ..RunPolicy::default() };
    *world.model.retells.lock().unwrap() = Some(retold.to_owned());
    let gathered = json!({"information": "ψω ξλ φχ. ".repeat(440).trim(), "preferences": [], "prior_turns": [],
        "references": [], "sufficiency": "NEEDS_MORE"});
    world.says([answers::analysis(), answers::proceed(0.9), answers::retrieval(), gathered.to_string()]);
    world.says([
        answers::plan("synthesis").to_string(),
        answers::answer(),
        answers::verdict("APPROVE", 0.9).to_string(),
    ]);
    let outcome = world.ask("Which boats are for sale?").await;
    assert_eq!(outcome.status, TurnStatus::Complete, "{outcome:?}");
    let text = world.text(&outcome.folder, "context.md");
    let compaction = text.split("### Compaction 1").nth(1).unwrap().split("\n## 3.").next().unwrap();
    let receipts: Value = serde_json::from_str(&world.text(&outcome.folder, "receipts.json")).unwrap();
    let runs = receipts["runs"].as_array().unwrap();
    let note = runs.iter().find(|run| run["condensed"] == "§2").unwrap().clone();
    (compaction.to_owned(), note)
}

#[tokio::test]
async fn a_model_condenses_what_was_gathered_where_the_policy_allows_it() {
    let (section, note) = gathered_by_model(&"ψω ξλ φχ. ".repeat(18)).await;
    assert!(section.contains("[Retold") && section.contains("NEEDS_MORE"), "it keeps its labels: {section}");
    assert_eq!((&note["author"]["recipe"], &note["failures"]), (&json!("compress/generic"), &json!([])));
    assert!(note["to"].as_u64() < note["from"].as_u64() && note["calls"].as_u64() > Some(1), "{note}");

    // What states something that the text does not is replaced by the extract by rule, and the receipt says why.
    let (section, note) = gathered_by_model(&"See https://example.org/4711 for it. ".repeat(12)).await;
    assert!(section.contains("[Condensed") && section.contains("NEEDS_MORE"), "{section}");
    assert_eq!(note["author"], Value::Null);
    assert!(note["failures"][0].as_str().unwrap().contains("which the text does not say"), "{note}");
}
