//! Abandoned turns and what they spend: every answer of a model is paid for once, whatever its result, and no call
//! that may have changed something is made twice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod turn_support;

use std::time::Duration;

use larder_agent::turn::{TurnError, TurnOutcome};
use larder_engine::RunPolicy;
use larder_vault::context::{self, CallStatus, ToolLog};
use larder_vault::{Mode, TurnStatus, VaultPath};
use serde_json::{Value, json};
use turn_support::tools::Given;
use turn_support::{Events, Say, World, answers, request};

/// Time after which a caller leaves what hangs.
const LEAVES: Duration = Duration::from_millis(200);

fn world() -> World {
    World::new("ann", "2026-01-05T10:00:00Z", Mode::Chat)
}

fn tokens(outcome: &TurnOutcome) -> u64 {
    outcome.usage.input + outcome.usage.output
}

fn state(world: &World) -> Value {
    world.turns.documents.drafts().get(1).unwrap().unwrap().state
}

fn saved_tokens(world: &World) -> u64 {
    let usage = &state(world)["usage"];
    usage["input"].as_u64().unwrap() + usage["output"].as_u64().unwrap()
}

fn texts(answers: &[String]) -> Vec<Say> {
    answers.iter().cloned().map(Say::Text).collect()
}

/// Runs a turn whose caller leaves while it hangs.
async fn left(world: &World) {
    let request = request("what is it?");
    let mut turn = Box::pin(world.turns.run(&request, &world.events));
    tokio::select! {
        ended = &mut turn => panic!("it hangs: {ended:?}"),
        () = world.model.hangs.notified() => {}
    }
    assert!(tokio::time::timeout(LEAVES, turn).await.is_err(), "it hangs");
}

#[tokio::test]
async fn failed_and_abandoned_phases_are_charged() {
    for end in [Say::Fail, Say::Hang] {
        let world = world();
        // Phase 2 asks twice; it is stopped before its second answer.
        let mut script = texts(&answers::opening()[..3]);
        script.push(end.clone());
        world.script(script);
        match end {
            Say::Hang => left(&world).await,
            _ => {
                let ended = world.turns.run(&request("what is it?"), &world.events).await;
                assert!(matches!(ended, Err(TurnError::Stopped { phase: 2, .. })), "{ended:?}");
            }
        }
        assert_eq!(saved_tokens(&world), world.took(), "{end:?}");
        assert_eq!(state(&world)["step"], "gather", "it goes on from phase 2");
        world.script(texts(&answers::plain_turn()[2..]));
        let outcome = world.turns.resume(1, &Events::default()).await.unwrap();
        assert_eq!((outcome.status, tokens(&outcome)), (TurnStatus::Complete, world.took()));
    }
}

#[tokio::test]
async fn answers_that_cannot_be_used_are_paid_for_and_the_ceiling_holds_among_them() {
    let mut world = world();
    world.script(vec![Say::Text("no JSON at all".into()); 12]);
    let outcome = world.ask("hello").await;
    assert_eq!((outcome.status, tokens(&outcome)), (TurnStatus::Failed, world.took()));
    let asked = world.model.prompts.lock().unwrap().len();
    assert!(asked > 2 && world.took() == 14 * asked as u64, "each prompt takes ten tokens, each answer four");

    // Two long answers leave too little for a third call, which is not made.
    world.turns.limits.tokens = Some(40_100);
    world.model.prompts.lock().unwrap().clear();
    world.script(vec![Say::Text("none ".repeat(20_000)); 12]);
    let outcome = world.ask("hello").await;
    assert_eq!((outcome.status, tokens(&outcome)), (TurnStatus::Failed, 40_020));
    let reason = outcome.reason.unwrap();
    assert!(reason.contains("turn.max_tokens") && reason.contains("was not made"), "{reason}");
    assert_eq!(world.model.prompts.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn condensing_is_charged_to_its_turn() {
    let mut world = world();
    world.turns.engine.policy = RunPolicy { use_llm_summarizer: true, ..RunPolicy::default() };
    *world.model.retells.lock().unwrap() = Some("Many lines say the same of the flood.".to_owned());
    let flood: String =
        (0..2_000).map(|line| format!("line {line} says of the flood what others say\n")).collect();
    world.tools.gives([Given::text("test.echo", "A flood", flood)]);
    let rounds = [answers::call(&[("test.echo", json!({}))]), answers::done()].map(|round| round.to_string());
    let mut script = answers::opening();
    script.push(answers::plan("coordinator").to_string());
    script.extend(rounds);
    script.extend([answers::answer(), answers::verdict("APPROVE", 0.9).to_string()]);
    world.says(script);
    let outcome = world.ask("flood me").await;
    assert_eq!(outcome.status, TurnStatus::Complete);
    let asked = world.model.prompts.lock().unwrap().len() as u64;
    assert!(
        outcome.usage.input > 10 * asked,
        "nothing was condensed: {:?} for {asked} prompts",
        outcome.usage
    );
    assert_eq!(tokens(&outcome), world.took());
    let metrics: Value = serde_json::from_str(&world.text(&outcome.folder, "metrics.json")).unwrap();
    assert_eq!(metrics["total_tokens"], world.took());
}

/// Phases 0 to 3, and a round with these calls.
fn up_to(calls: &[(&str, Value)]) -> Vec<String> {
    let mut script = answers::opening();
    script.push(answers::plan("coordinator").to_string());
    script.push(answers::call(calls).to_string());
    script
}

fn rest() -> Vec<Say> {
    texts(&[answers::done().to_string(), answers::answer(), answers::verdict("APPROVE", 0.9).to_string()])
}

fn log(world: &World, folder: &str) -> ToolLog {
    let at = VaultPath::new(&format!("{folder}/context.md")).unwrap();
    context::read_newest::<ToolLog>(&world.text(folder, "context.md"), &at).unwrap().value.unwrap()
}

#[tokio::test]
async fn calls_of_an_interrupted_round_are_not_made_again() {
    let world = world();
    let calls = ["memory.create", "test.echo", "doc.search"].map(|tool| (tool, json!({})));
    world.tools.gives([
        Given::text("memory.create", "Remembered", "It is written down.\nIn two lines."),
        Given::hanging("test.echo"),
        Given::text("test.echo", "Echoed", "echo"),
        Given::text("doc.search", "Found", "found"),
    ]);
    world.script(texts(&up_to(&calls)));
    left(&world).await;
    assert_eq!(saved_tokens(&world), world.took());
    let asked = world.model.prompts.lock().unwrap().len();
    world.script(rest());
    let outcome = world.turns.resume(1, &Events::default()).await.unwrap();
    // What only looks is looked at again; what was done is not done again, and the model is not asked again what to do.
    let called = world.tools.called.lock().unwrap().clone();
    assert_eq!(called, ["memory.create", "test.echo", "test.echo", "doc.search"]);
    assert_eq!(world.model.prompts.lock().unwrap().len(), asked + 3);
    assert_eq!(
        (outcome.status, outcome.tool_calls, tokens(&outcome)),
        (TurnStatus::Complete, 3, world.took())
    );
    let log = log(&world, &outcome.folder);
    assert_eq!(log.iterations.len(), 2);
    let results = &log.iterations[0].results;
    assert!(results.iter().all(|result| result.status == CallStatus::Success), "{results:?}");
    assert!(results[0].text.contains("In two lines."), "what came of it before is shown: {results:?}");
    assert_eq!(world.text(&outcome.folder, "toolresults.md").matches("It is written down.").count(), 1);
    assert_eq!(world.broken_links(), Vec::<String>::new());
}

#[tokio::test]
async fn a_call_that_may_have_changed_something_is_not_made_again_when_its_end_is_not_known() {
    let world = world();
    let calls = ["memory.create", "test.echo"].map(|tool| (tool, json!({})));
    world.tools.gives([Given::hanging("memory.create"), Given::text("test.echo", "Echoed", "echo")]);
    world.script(texts(&up_to(&calls)));
    left(&world).await;
    world.script(rest());
    let outcome = world.turns.resume(1, &Events::default()).await.unwrap();
    assert_eq!(*world.tools.called.lock().unwrap(), ["memory.create", "test.echo"]);
    assert_eq!((outcome.status, outcome.tool_calls), (TurnStatus::Complete, 2));
    let log = log(&world, &outcome.folder);
    let results = &log.iterations[0].results;
    assert_eq!(
        results.iter().map(|result| result.status).collect::<Vec<_>>(),
        [CallStatus::Error, CallStatus::Success]
    );
    assert!(results[0].text.contains("whether it was carried out is not known"), "{results:?}");
}

#[tokio::test]
async fn sites_are_judged_by_whether_claims_of_theirs_held() {
    let world = world();
    let turn = |sites: [&str; 2], verdict: Value| {
        let text = "HP Victus costs $649\nLenovo LOQ costs $697\n";
        world.tools.gives([Given::text("test.echo", "Found 2", text)]);
        let mut done = answers::done();
        let claim = |claim: &str, source: &str| json!({"claim": claim, "confidence": 0.9, "source": source, "ttl": "6h"});
        done["claims"] = json!([claim("HP Victus @ $649", sites[0]), claim("Lenovo LOQ @ $697", sites[1])]);
        let mut script = up_to(&[("test.echo", json!({}))]);
        script.push(done.to_string());
        for _ in 0..3 {
            script.extend([answers::answer(), verdict.to_string()]);
        }
        world.script(texts(&script));
    };
    turn(["https://www.Shop.example/a", "turn 7"], answers::verdict("APPROVE", 0.9));
    assert_eq!(world.ask("how much?").await.status, TurnStatus::Complete);
    let site =
        |name: &str| world.turns.documents.uses().source(name).unwrap().map(|row| (row.ok, row.failed));
    assert_eq!(site("shop.example"), Some((1, 0)));
    let mut failed = answers::verdict("REVISE", 0.9);
    failed["checks"]["claims_supported"] = json!(false);
    turn(["https://shop.example/b", "https://other.example/"], failed);
    assert_eq!(world.ask("how much now?").await.status, TurnStatus::Failed);
    assert_eq!((site("shop.example"), site("other.example")), (Some((1, 1)), Some((0, 1))));
    // An answer that is not verified for another reason says nothing of the sites.
    turn(["https://shop.example/c", "https://third.example/"], answers::verdict("REVISE", 0.9));
    assert!(world.ask("how much then?").await.unverified);
    assert_eq!((site("shop.example"), site("third.example")), (Some((1, 1)), None));
}
