//! Turns are run once, watched by many, stopped when nobody waits, and paid for by the key that asked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop and say why")]

use std::sync::Arc;
use std::time::Duration;

use larder_agent::turn::{TurnEvent, TurnRequest};
use larder_gateway::app::App;
use larder_gateway::auth::create_key;
use larder_gateway::turns::{TurnJob, start};
use larder_models::chat::ModelError;
use larder_testkit::gateway::{TestApp as Fake, caller};
use larder_testkit::scripted::Act;
use larder_testkit::turns::plain_turn;
use larder_vault::Mode;
use serde_json::json;

fn asking(query: &str) -> TurnJob {
    TurnJob::Ask(TurnRequest { query: query.to_owned(), mode: Mode::Chat, session: None, workspace: None })
}

/// A model that never says anything after its first two answers.
fn hanging() -> Vec<Act> {
    let mut acts: Vec<Act> = plain_turn().into_iter().take(2).collect();
    acts.push(Act::Hang);
    acts.extend(plain_turn().into_iter().skip(2));
    acts
}

fn shared(fake: &Fake) -> Arc<App> {
    Arc::clone(&fake.app)
}

/// Waits until something holds, which it does soon or never: what is done behind a reply has no event.
async fn until(condition: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("in vain waited for it");
}

/// The jobs of the user that do not come again.
fn left(fake: &Fake) -> Vec<String> {
    let jobs = fake.user("a").jobs().list().unwrap().into_iter();
    jobs.map(|job| job.kind).filter(|kind| kind != "clean_up").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_regular_jobs_are_done_and_come_again() {
    let fake = Fake::scripted(plain_turn());
    start(&shared(&fake), &caller(fake.user("a")), asking("What is it?")).unwrap().ended().await.unwrap();
    larder_gateway::jobs::work(shared(&fake), Duration::ZERO).await;
    let hours = |user: &str| -> Vec<(String, u64)> {
        let jobs = fake.user(user).jobs().list().unwrap().into_iter();
        jobs.map(|job| (job.kind, (job.due.as_millis() - job.created.as_millis()) / 3_600_000)).collect()
    };
    assert_eq!(hours("a"), [("clean_up".to_owned(), 6)]);
    let mut local = hours("local");
    local.sort();
    assert_eq!(local, [("collect".to_owned(), 1), ("roll_up".to_owned(), 24)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_tells_what_happens_and_is_summarized_behind_its_reply() {
    let fake = Fake::scripted(plain_turn());
    let who = caller(fake.user("a"));
    let mut started = start(&shared(&fake), &who, asking("What is it?")).unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = started.events.recv().await {
        kinds.push(serde_json::to_value(&event).unwrap()["event"].as_str().unwrap().to_owned());
    }
    let outcome = started.ended().await.unwrap();
    assert_eq!(outcome.turn, 1);
    assert!(outcome.answer.unwrap().contains("Here is the answer"));
    assert_eq!(kinds.first().map(String::as_str), Some("started"));
    assert_eq!(kinds.last().map(String::as_str), Some("finished"));
    let vault = fake.vault("a");
    let summary = || vault.catalog().turn(1).unwrap().unwrap().summary;
    assert_ne!(summary().as_deref(), Some("It was answered."), "the reply does not wait for it");
    larder_gateway::jobs::work(shared(&fake), Duration::ZERO).await;
    assert_eq!(summary().as_deref(), Some("It was answered."));
    assert_eq!(left(&fake), [""; 0]);
    assert!(fake.running_turns.get("a", 1).is_none(), "it is not under way any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_stops_the_turn_which_can_resume() {
    let fake = Fake::scripted(hanging());
    let who = caller(fake.user("a"));
    let mut started = start(&shared(&fake), &who, asking("What is it?")).unwrap();
    loop {
        let event = started.events.recv().await.expect("phase 2 begins before the turn ends");
        if matches!(event, TurnEvent::Phase { number: 2, .. }) {
            break;
        }
    }
    fake.model.asked(3).await;
    let course = fake.running_turns.get("a", 1).unwrap();
    let mut watch = course.watch();
    let (events, ended) = watch.next().await.unwrap();
    assert!(!ended && matches!(events[0], TurnEvent::Started { turn: 1, .. }));
    assert!(fake.running_turns.get("b", 1).is_none(), "it is nobody else's");

    let again = start(&shared(&fake), &who, TurnJob::Resume(1)).unwrap().ended().await.unwrap_err();
    assert_eq!(again.status, 409, "{again:?}");

    drop(started);
    while let Some((_, ended)) = watch.next().await {
        if ended {
            break;
        }
    }
    assert!(fake.running_turns.get("a", 1).is_none(), "it has stopped");
    assert!(watch.next().await.is_none(), "nothing comes after the end");
    let draft = fake.vault("a").drafts().get(1).unwrap().unwrap();
    assert_eq!(draft.phase, Some(1), "two phases are saved");

    let outcome = start(&shared(&fake), &who, TurnJob::Resume(1)).unwrap().ended().await.unwrap();
    assert!(outcome.answer.unwrap().contains("Here is the answer"));
    let missing = start(&shared(&fake), &who, TurnJob::Resume(1)).unwrap().ended().await.unwrap_err();
    assert_eq!(missing.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_few_and_come_back() {
    let fake = Fake::scripted([Act::Hang, Act::Hang, Act::Hang, Act::Hang]);
    let who = caller(fake.user("a"));
    let desk = shared(&fake);
    let held: Vec<_> = (0..4).map(|_| start(&desk, &who, asking("x")).unwrap()).collect();
    assert_eq!(start(&desk, &who, asking("x")).unwrap_err().status, 503);
    drop(held);
    until(|| desk.place().is_some()).await;
    let empty = start(&desk, &who, asking("")).unwrap().ended().await.unwrap_err();
    assert_eq!(empty.status, 422);
}

/// A caller whose key has these limits.
fn keyed(fake: &Fake, limits: larder_store::KeyLimits) -> larder_gateway::auth::Caller {
    let (_, record) = create_key(&fake.store, "a", "", limits).unwrap();
    larder_gateway::auth::Caller { store: fake.user("a"), key: Some(record.id), limits, operator: false }
}

fn tokens_a_day(tokens: u64) -> larder_store::KeyLimits {
    larder_store::KeyLimits { tokens_per_day: Some(tokens), picos_per_day: None }
}

fn day(fake: &Fake, who: &larder_gateway::auth::Caller) -> larder_store::DaySpend {
    fake.store.keys().day_spend(who.key.as_ref().unwrap()).unwrap()
}

/// Tokens of the scripted model's answers: ten of each prompt and a token a word.
fn price(acts: &[Act]) -> u64 {
    let words = |act: &Act| match act {
        Act::Say(Ok(reply)) => reply.usage.input + reply.usage.output,
        _ => 0,
    };
    acts.iter().map(words).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_pays_for_its_turns_and_their_summaries_and_no_more_than_they_took() {
    let fake = Fake::scripted(plain_turn());
    let who = keyed(&fake, tokens_a_day(100_000));
    let outcome = start(&shared(&fake), &who, asking("What is it?")).unwrap().ended().await.unwrap();
    let took = outcome.usage.input + outcome.usage.output;
    assert_eq!(took, price(&plain_turn()[..7]));
    larder_gateway::jobs::work(shared(&fake), Duration::ZERO).await;
    assert_eq!(day(&fake, &who).used.tokens, price(&plain_turn()));
    assert_eq!(day(&fake, &who).held.tokens, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_may_take_what_is_left_of_a_day_and_none_begins_without() {
    let fake = Fake::scripted(plain_turn());
    let who = keyed(&fake, tokens_a_day(100_000));
    let spent = fake.auth.reserve(&who, 90_000, Default::default()).unwrap();
    spent.settle(90_000, Default::default()).unwrap();
    let outcome = start(&shared(&fake), &who, asking("What is it?")).unwrap().ended().await.unwrap();
    assert!(outcome.answer.is_some(), "10,000 are left: {outcome:?}");
    let rest = fake.auth.reserve(&who, 100_000 - day(&fake, &who).used.tokens, Default::default()).unwrap();
    let refused = start(&shared(&fake), &who, asking("x")).unwrap().ended().await.unwrap_err();
    assert_eq!(refused.status, 429, "{refused:?}");
    rest.release().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_money_holds_within_a_turn() {
    let fake = Fake::scripted(plain_turn());
    // The first call may take more than this at the table's prices.
    let limits = larder_store::KeyLimits { tokens_per_day: None, picos_per_day: Some(30_000_000) };
    let who = keyed(&fake, limits);
    let outcome = start(&shared(&fake), &who, asking("What is it?")).unwrap().ended().await.unwrap();
    assert!(outcome.answer.is_none() && outcome.reason.unwrap().contains("US dollars"));
    assert_eq!(day(&fake, &who).used.picos, outcome.cost.unwrap_or_default().picos());
    assert!(fake.model.left() > 4, "the budget did not hold");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_begins_only_where_the_money_left_may_pay_for_it() {
    let fake = Fake::scripted(plain_turn());
    // A cent pays for the turn; the tokens of a summary may cost 2.4.
    let limits = larder_store::KeyLimits { tokens_per_day: None, picos_per_day: Some(10_000_000_000) };
    let who = keyed(&fake, limits);
    let outcome = start(&shared(&fake), &who, asking("What is it?")).unwrap().ended().await.unwrap();
    assert!(outcome.answer.is_some(), "{outcome:?}");
    larder_gateway::jobs::work(shared(&fake), Duration::ZERO).await;
    assert_eq!(left(&fake), [""; 0], "no day's budget would be enough");
    assert_eq!(fake.model.left(), 1, "the summary was not asked for");
    assert_eq!(
        (day(&fake, &who).used.picos, day(&fake, &who).held.picos),
        (outcome.cost.unwrap().picos(), 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_a_provider_stops_costs_what_was_answered() {
    let broken = ModelError::NotConfigured { provider: "script".into(), detail: "it is down".into() };
    let mut acts: Vec<Act> = plain_turn().into_iter().take(3).collect();
    acts.push(Act::Say(Err(broken)));
    acts.extend(plain_turn().into_iter().skip(2));
    let fake = Fake::scripted(acts);
    let who = keyed(&fake, tokens_a_day(100_000));
    start(&shared(&fake), &who, asking("What is it?")).unwrap().ended().await.unwrap_err();
    assert_eq!(day(&fake, &who).used.tokens, price(&plain_turn()[..3]), "the phase that failed is paid for");
    let outcome = start(&shared(&fake), &who, TurnJob::Resume(1)).unwrap().ended().await.unwrap();
    assert_eq!(
        outcome.usage.input + outcome.usage.output,
        price(&plain_turn()[..7]) + price(&plain_turn()[2..3])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_ends_when_the_gateway_stops() {
    let fake = Fake::scripted([Act::Hang]);
    let who = caller(fake.user("a"));
    let mut started = start(&shared(&fake), &who, asking("x")).unwrap();
    assert!(matches!(started.events.recv().await, Some(TurnEvent::Started { turn: 1, .. })));
    let mut watch = fake.running_turns.get("a", 1).unwrap().watch();
    assert!(watch.next().await.is_some());
    fake.stop.cancel();
    assert!(watch.next().await.is_none());
    drop(started);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_works_in_a_folder_does_not_go_on_over_http() {
    let fake = Fake::scripted(plain_turn());
    let fill = |draft: &mut larder_store::TurnDraft| draft.state = json!({"workspace": "/tmp"});
    fake.vault("a").drafts().begin_with(Mode::Code, None, "x", fill).unwrap();
    let who = caller(fake.user("a"));
    let refused = start(&shared(&fake), &who, TurnJob::Resume(1)).unwrap().ended().await.unwrap_err();
    assert_eq!(refused.status, 409);
    assert!(fake.model.requests().is_empty());
}
