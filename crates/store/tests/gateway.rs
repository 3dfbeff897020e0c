//! What every store must do for the gateway: keys and budgets, exchanges, transcripts, calibrations. One suite over a
//! factory of stores, like `contract.rs`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod common;

use std::collections::BTreeMap;

use common::{Home, exchange, facts, message};
use larder_store::{
    ExchangeFilter, ForkPoint, KeyId, KeyLimits, LearnedSettings, LineKind, NewExchange, NewKey, NewRun,
    NewTranscript, RESERVATION_LIFETIME, Reservation, ReserveOutcome, RunFacts, RunStatus, RunTokens,
    Shortage, Spend, Store, StoreError, StoreOptions, Timestamp, TranscriptMessage, UserStore,
};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerKey};
use proptest::prelude::*;

/// Opens the store of a home that may or may not have one.
type Factory = fn(&Home) -> UserStore;

const DAY: u64 = 86_400_000;

fn contract(open: Factory) {
    keys_open_until_they_are_revoked(open);
    that_a_key_was_created_outlives_its_user(open);
    budgets_hold_to_the_last_token(open);
    unsettled_reservations_expire(open);
    renewed_reservations_stay_held(open);
    a_budget_is_whole_again_at_midnight(open);
    sign_ins_end_with_their_time_or_their_key(open);
    exchanges_are_listed_newest_first_and_filtered(open);
    costs_are_summed_by_day_model_and_recipe(open);
    costs_hold_every_run_once(open);
    a_transcript_gives_every_original(open);
    only_what_is_new_is_added(open);
    a_changed_history_is_a_branch(open);
    compactions_are_lines_of_their_own(open);
    a_transcript_names_nothing_that_is_not_there(open);
    factors_are_learned_as_revisions(open);
    revisions_are_added_and_never_changed(open);
    many_revisions_are_read_in_pages_and_from_the_last_checkpoint(open);
    a_conversation_keeps_its_revision_until_it_is_moved_on(open);
    round_trips_come_back_by_session(open);
    users_are_walls(open);
    a_deleted_user_leaves_nothing(open);
}

fn round_trips_come_back_by_session(open: Factory) {
    let home = Home::new();
    let trip = |keys: &[&str], text: &str| {
        (keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>(), text.to_owned())
    };
    open(&home).round_trips().insert("s", &[trip(&["a", "b"], "1"), trip(&["c"], "2")]).unwrap();
    open(&home).round_trips().insert("s", &[trip(&["b"], "3")]).unwrap();
    open(&home).round_trips().insert("t", &[trip(&["a"], "4")]).unwrap();
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(open(&home).round_trips().list("s").unwrap(), pairs(&[("a", "1"), ("b", "3"), ("c", "2")]));
    assert_eq!(open(&home).round_trips().list("t").unwrap(), pairs(&[("a", "4")]));
    assert_eq!(open(&home).round_trips().list("u").unwrap(), []);
}

#[test]
fn one_handle_kept_open() {
    contract(|home| home.user("ada"));
}

#[test]
fn a_new_handle_for_every_use() {
    contract(|home| {
        drop(home.reopen());
        home.reopen().user("ada").unwrap()
    });
}

#[test]
fn a_user_whose_id_needs_encoding() {
    contract(|home| home.user("../../Ada Lovelace/ユーザー"));
}

fn add_key(user: &UserStore, limits: KeyLimits) -> KeyId {
    let id = KeyId::new(user.store().random().unwrap());
    let new =
        NewKey { id: id.clone(), user: user.user(), label: "laptop", hash: "$h$", limits, operator: false };
    assert_eq!(user.store().keys().add(&new).unwrap().limits, limits);
    id
}

fn tokens(limit: u64) -> KeyLimits {
    KeyLimits { tokens_per_day: Some(limit), picos_per_day: None }
}

fn spend(tokens: u64, picos: u64) -> Spend {
    Spend { tokens, picos }
}

fn hold(store: &Store, key: &KeyId, asked: Spend) -> Reservation {
    match store.keys().reserve(key, asked).unwrap() {
        ReserveOutcome::Held(reservation) => reservation,
        ReserveOutcome::Refused(shortage) => panic!("{shortage:?}"),
    }
}

fn refuse(store: &Store, key: &KeyId, asked: Spend) -> Shortage {
    match store.keys().reserve(key, asked).unwrap() {
        ReserveOutcome::Held(reservation) => panic!("{reservation:?}"),
        ReserveOutcome::Refused(shortage) => *shortage,
    }
}

fn keys_open_until_they_are_revoked(open: Factory) {
    let home = Home::new();
    assert!(!open(&home).store().keys().any_created().unwrap());
    let id = add_key(&open(&home), tokens(10));
    let (user, other) = (open(&home), home.user("eve"));
    let found = user.store().keys().get(&id).unwrap().unwrap();
    assert_eq!((found.record.user.as_str(), found.record.label.as_str()), (user.user(), "laptop"));
    assert_eq!(found.hash, "$h$");
    assert!(!format!("{found:?}").contains("$h$"), "hashes stay out of logs");
    let limits = KeyLimits::default();
    let twice = NewKey { id: id.clone(), user: "eve", label: "", hash: "x", limits, operator: true };
    assert!(matches!(user.store().keys().add(&twice), Err(StoreError::KeyExists { .. })));
    let bad = NewKey { label: "a\nb", ..twice };
    assert!(matches!(user.store().keys().add(&bad), Err(StoreError::InvalidName { what: "label", .. })));
    let second = add_key(&other, KeyLimits::default());
    let listed: Vec<_> = user.store().keys().list().unwrap().into_iter().map(|key| key.id).collect();
    assert!(listed.len() == 2 && listed.contains(&id) && listed.contains(&second));
    let revoked = user.store().keys().revoke(&id).unwrap();
    home.clock.set(1);
    assert_eq!(open(&home).store().keys().revoke(&id).unwrap(), revoked, "the first time stays");
    assert!(matches!(user.store().keys().reserve(&id, spend(1, 0)), Err(StoreError::KeyRevoked { .. })));
    assert!(open(&home).store().keys().any_created().unwrap(), "a revoked key still closes the door");
    assert!(!revoked.operator);
    let operators = NewKey {
        id: KeyId::new([0xee; 6]),
        user: "eve",
        label: "",
        hash: "x",
        limits: KeyLimits::default(),
        operator: true,
    };
    assert!(user.store().keys().add(&operators).unwrap().operator);
    assert!(open(&home).store().keys().get(&operators.id).unwrap().unwrap().record.operator);
    let nobody = KeyId::new([0xff; 6]);
    assert!(user.store().keys().get(&nobody).unwrap().is_none());
    assert!(matches!(user.store().keys().revoke(&nobody), Err(StoreError::UnknownKey { .. })));
    assert!(matches!(user.store().keys().reserve(&nobody, spend(1, 0)), Err(StoreError::UnknownKey { .. })));
}

fn that_a_key_was_created_outlives_its_user(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let name = user.user().to_owned();
    add_key(&user, KeyLimits::default());
    user.store().delete_user(&name).unwrap();
    drop(user);
    let store = open(&home).store().clone();
    assert_eq!(store.keys().list().unwrap(), []);
    assert!(store.keys().any_created().unwrap());
}

fn budgets_hold_to_the_last_token(open: Factory) {
    let home = Home::new();
    let key = add_key(&open(&home), KeyLimits { tokens_per_day: Some(100), picos_per_day: Some(1_000) });
    let first = hold(open(&home).store(), &key, spend(60, 100));
    let short = refuse(open(&home).store(), &key, spend(41, 0));
    assert_eq!((short.left_tokens(), short.left_picos()), (Some(40), Some(900)));
    assert_eq!(short.resets.as_millis(), home.store.now().as_millis() / DAY * DAY + DAY);
    let second = hold(open(&home).store(), &key, spend(40, 900));
    refuse(open(&home).store(), &key, spend(0, 1));
    open(&home).store().keys().settle(&first, spend(10, 5)).unwrap();
    let today = open(&home).store().keys().day_spend(&key).unwrap();
    assert_eq!((today.used, today.held), (spend(10, 5), spend(40, 900)));
    open(&home).store().keys().settle(&second, spend(500, u64::MAX)).unwrap();
    let short = refuse(open(&home).store(), &key, spend(1, 0));
    assert_eq!(
        (short.left_tokens(), short.left_picos()),
        (Some(0), Some(0)),
        "absurd numbers of a provider saturate"
    );
    let nothing = add_key(&open(&home), tokens(0));
    refuse(open(&home).store(), &nothing, spend(1, 0));
    let all =
        hold(open(&home).store(), &add_key(&open(&home), KeyLimits::default()), spend(u64::MAX, u64::MAX));
    assert_eq!(all.asked, spend(u64::MAX, u64::MAX));
}

fn unsettled_reservations_expire(open: Factory) {
    let home = Home::new();
    let key = add_key(&open(&home), tokens(100));
    let (start, lifetime) = (home.store.now().as_millis(), RESERVATION_LIFETIME.as_millis() as u64);
    let lost = hold(open(&home).store(), &key, spend(100, 0));
    home.clock.set(start + lifetime - 1);
    refuse(open(&home).store(), &key, spend(1, 0));
    home.clock.set(start + lifetime);
    assert_eq!(open(&home).store().keys().day_spend(&key).unwrap().held, Spend::default());
    let next = hold(open(&home).store(), &key, spend(70, 0));
    // The call was alive after all: what it used counts, and the reservation of another stays.
    open(&home).store().keys().settle(&lost, spend(30, 0)).unwrap();
    let today = open(&home).store().keys().day_spend(&key).unwrap();
    assert_eq!((today.used.tokens, today.held.tokens), (30, 70));
    open(&home).store().keys().settle(&next, Spend::default()).unwrap();
    drop(hold(open(&home).store(), &key, spend(70, 0)));
}

fn renewed_reservations_stay_held(open: Factory) {
    let home = Home::new();
    let key = add_key(&open(&home), tokens(100));
    let (start, lifetime) = (home.store.now().as_millis(), RESERVATION_LIFETIME.as_millis() as u64);
    let (long, lost) =
        (hold(open(&home).store(), &key, spend(60, 0)), hold(open(&home).store(), &key, spend(40, 0)));
    home.clock.set(start + lifetime - 1);
    open(&home).store().keys().renew(&[long.id()]).unwrap();
    home.clock.set(start + 2 * lifetime - 2);
    assert_eq!(open(&home).store().keys().day_spend(&key).unwrap().held.tokens, 60);
    refuse(open(&home).store(), &key, spend(41, 0));
    // Asking has cleared out the other one, which nothing brings back.
    open(&home).store().keys().renew(&[long.id(), lost.id()]).unwrap();
    assert_eq!(open(&home).store().keys().day_spend(&key).unwrap().held.tokens, 60);
}

fn a_budget_is_whole_again_at_midnight(open: Factory) {
    let home = Home::new();
    let key = add_key(&open(&home), tokens(100));
    let midnight = home.store.now().as_millis() / DAY * DAY + DAY;
    home.clock.set(midnight - 1);
    let late = hold(open(&home).store(), &key, spend(100, 0));
    assert_eq!(refuse(open(&home).store(), &key, spend(1, 0)).resets.as_millis(), midnight);
    home.clock.set(midnight);
    let early = hold(open(&home).store(), &key, spend(100, 0));
    open(&home).store().keys().settle(&late, spend(90, 0)).unwrap();
    open(&home).store().keys().settle(&early, spend(80, 0)).unwrap();
    assert_eq!(
        open(&home).store().keys().day_spend(&key).unwrap().used.tokens,
        80,
        "a call counts for the day it began"
    );
    home.clock.set(midnight - 1);
    assert_eq!(
        open(&home).store().keys().day_spend(&key).unwrap().used.tokens,
        90,
        "a clock set back finds the old day"
    );
}

fn sign_ins_end_with_their_time_or_their_key(open: Factory) {
    let home = Home::new();
    let store = open(&home).store().clone();
    let (key, other) = (add_key(&open(&home), tokens(1)), add_key(&home.user("eve"), tokens(2)));
    let tokens = [b"1", b"2", b"3"].map(|token| ContentHash::new(token));
    let now = home.store.now().as_millis();
    let soon = Timestamp::from_millis(now + 10);
    store.keys().add_sign_in(tokens[0], &key, soon).unwrap();
    store.keys().add_sign_in(tokens[1], &other, soon).unwrap();
    let who = |at: usize| open(&home).store().keys().sign_in(tokens[at]).unwrap().map(|key| key.id);
    assert_eq!((who(0), who(1), who(2)), (Some(key.clone()), Some(other.clone()), None));
    store.keys().remove_sign_in(tokens[0]).unwrap();
    store.keys().remove_sign_in(tokens[2]).unwrap();
    assert_eq!((who(0), who(1)), (None, Some(other.clone())));
    store.keys().revoke(&other).unwrap();
    assert_eq!(who(1), None);
    assert!(matches!(store.keys().add_sign_in(tokens[1], &other, soon), Err(StoreError::UnknownKey { .. })));
    store.keys().add_sign_in(tokens[2], &key, soon).unwrap();
    home.clock.set(now + 9);
    assert_eq!(who(2), Some(key));
    home.clock.set(now + 10);
    assert_eq!(who(2), None);
}

fn record(user: &UserStore, new: &[NewExchange<'_>]) -> usize {
    let batch: Vec<_> = new.iter().map(|new| (user, *new)).collect();
    user.store().record_exchanges(&batch).unwrap()
}

fn exchanges_are_listed_newest_first_and_filtered(open: Factory) {
    let home = Home::new();
    let (user, eve) = (open(&home), home.user("eve"));
    let at = |millis| Timestamp::from_millis(millis);
    let batch = [
        NewExchange { session: Some("s"), time: at(1_000), json: "a", ..exchange("a") },
        NewExchange { session: Some("t"), time: at(3_000), json: "b", ..exchange("b") },
        NewExchange { model: "other", time: at(2_000), json: "c", ..exchange("c") },
        NewExchange { session: Some("s"), time: at(3_000), json: "d", ..exchange("d") },
    ];
    assert_eq!(user.store().record_exchanges(&[]).unwrap(), 0);
    assert_eq!(record(&user, &batch), 4);
    let again = NewExchange { json: "changed", ..exchange("a") };
    assert_eq!(record(&user, &[again, NewExchange { json: "e", ..exchange("e") }]), 1, "what is there stays");
    assert_eq!(record(&eve, &[NewExchange { json: "eve's", ..exchange("a") }]), 1, "ids are a user's own");
    let list = |filter: ExchangeFilter| open(&home).exchanges().list(&filter).unwrap().concat();
    let all = ExchangeFilter::default;
    assert_eq!(list(all()), "edbca");
    assert_eq!(list(ExchangeFilter { limit: Some(2), ..all() }), "ed");
    assert_eq!(list(ExchangeFilter { session: Some("s".into()), ..all() }), "da");
    assert_eq!(list(ExchangeFilter { model: Some("other".into()), ..all() }), "c");
    assert_eq!(list(ExchangeFilter { since: Some(at(3_000)), ..all() }), "edb");
    assert_eq!(list(ExchangeFilter { before: Some("d".into()), limit: Some(2), ..all() }), "bc");
    assert_eq!(list(ExchangeFilter { before: Some("a".into()), ..all() }), "");
    assert_eq!(list(ExchangeFilter { before: Some("none".into()), ..all() }), "");
    assert_eq!(open(&home).exchanges().get("a").unwrap().as_deref(), Some("a"));
    assert_eq!(open(&home).exchanges().get("none").unwrap(), None);
    let sessions = open(&home).exchanges().sessions(9).unwrap();
    let named: Vec<_> = sessions.iter().map(|session| session.session.as_str()).collect();
    assert_eq!(named, ["s", "t"], "of two last used at the same time the one recorded later");
    let s = &sessions[0];
    assert_eq!((s.requests, s.first, s.last), (2, at(1_000), at(3_000)));
    assert_eq!((s.tokens_before, s.tokens_after, s.cost_picos, s.without_picos), (2_000, 600, 14, 40));
    assert_eq!(s.compactions, 4);
    assert_eq!(open(&home).exchanges().sessions(1).unwrap().len(), 1);
    record(&user, &[NewExchange { session: Some("counted"), tokens_before: 0, ..exchange("f") }]);
    let sent = ["s", "counted", "none"].map(|session| open(&home).exchanges().has_prompts(session).unwrap());
    assert_eq!(sent, [true, false, false]);
}

fn costs_are_summed_by_day_model_and_recipe(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let day = |n: u64| Timestamp::from_millis(20_000 * DAY + n * DAY + 5);
    record(
        &user,
        &[
            NewExchange { time: day(0), ..exchange("a") },
            NewExchange { time: day(0), cost_picos: None, without_picos: None, ..exchange("b") },
            NewExchange { time: day(0), recipe: Some("ask/answer"), ..exchange("c") },
            NewExchange { time: day(1), tokens_in: u64::MAX, ..exchange("d") },
            NewExchange { time: day(1), tokens_in: u64::MAX, cost_picos: Some(u64::MAX), ..exchange("e") },
        ],
    );
    let costs = open(&home).exchanges().costs(day(0)).unwrap();
    assert_eq!(costs.len(), 3);
    assert_eq!((costs[0].day.as_str(), costs[0].requests), ("2024-10-05", 2));
    assert!(
        costs[0].tokens_in > u64::MAX / 3 && costs[0].cost_picos > u64::MAX / 3,
        "absurd numbers do not fail"
    );
    let plain = &costs[1];
    assert_eq!((plain.day.as_str(), plain.model.as_str(), &plain.recipe), ("2024-10-04", "gpt", &None));
    assert_eq!((plain.requests, plain.unpriced, plain.tokens_in, plain.tokens_out), (2, 1, 600, 100));
    assert_eq!((plain.cost_picos, plain.without_picos), (7, 20));
    assert_eq!(costs[2].recipe.as_deref(), Some("ask/answer"));
    assert_eq!(open(&home).exchanges().costs(day(1)).unwrap().len(), 1);
}

fn costs_hold_every_run_once(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let record_run = |facts: RunFacts| {
        let run_id = user.store().new_run_id().unwrap();
        user.runs().record(NewRun { run_id, facts, receipt: b"{}", output: None, pointers: &[] }).unwrap();
    };
    let paid = RunFacts { cost_usd: Some(0.000_012), ..facts("answer") };
    record(&user, &[NewExchange { recipe: Some("ask/answer"), ..exchange("a") }]);
    record_run(RunFacts { request_id: Some("a".to_owned()), ..paid.clone() });
    record_run(paid.clone());
    record_run(paid.clone());
    let nothing = RunTokens { output: 0, ..paid.tokens };
    record_run(RunFacts { recipe: "plan".to_owned(), cost_usd: None, tokens: nothing, ..paid.clone() });
    record_run(RunFacts { status: RunStatus::Refused, ..paid.clone() });
    record_run(RunFacts { recipe: "old".to_owned(), ..paid });
    // As runs were recorded before they named their request.
    let raw = rusqlite::Connection::open(home.path().join("index.sqlite")).unwrap();
    let old = "UPDATE runs SET record = json_remove(record, '$.request_id') WHERE recipe = 'old'";
    assert_eq!(raw.execute(old, []).unwrap(), 1);
    let costs = open(&home).exchanges().costs(Timestamp::from_millis(0)).unwrap();
    let told: Vec<_> = costs
        .iter()
        .map(|row| {
            (row.recipe.as_deref().unwrap(), row.requests, row.unpriced, row.tokens_in, row.cost_picos)
        })
        .collect();
    assert_eq!(
        told,
        [("ask/answer", 1, 0, 300, 7), ("answer", 2, 0, 6_740, 24_000_000), ("plan", 1, 1, 0, 0)],
        "{costs:?}"
    );
    assert_eq!((costs[1].model.as_str(), costs[1].tokens_out), ("scripted", 2_400));
    assert_eq!(costs[1].without_picos, costs[1].cost_picos, "nothing is claimed to be saved");
    assert_eq!(home.user("eve").exchanges().costs(Timestamp::from_millis(0)).unwrap(), []);
}

fn lines(user: &UserStore, session: &str) -> Vec<(u32, u32, LineKind, String)> {
    let lines = user.transcripts().lines(session).unwrap();
    assert!(lines.iter().enumerate().all(|(at, line)| line.line == at as u64 + 1));
    lines.into_iter().map(|line| (line.branch, line.message, line.kind, line.role)).collect()
}

/// The originals of a branch.
fn originals(user: &UserStore, session: &str, branch: u32) -> Vec<Vec<u8>> {
    let lines = user.transcripts().branch(session, branch).unwrap();
    lines.iter().map(|line| user.contents().get(line.raw.hash).unwrap()).collect()
}

fn a_transcript_gives_every_original(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let large = vec![b'z'; 100_000];
    let pointer = [user.pointers().insert(&large, "tool_result", "z").unwrap().pointer_id];
    let tool = TranscriptMessage {
        sent: Some(b"{\"content\":\"short\"}"),
        pointers: &pointer,
        role: "tool",
        ..message(&large)
    };
    let history = [message(b"{ \"role\":\t\"user\"}\r\n"), message(b"\0\xff"), tool];
    let place = user.transcripts().append("s", &history, Some(b"data: reply\n\n")).unwrap();
    assert_eq!((place.branch, place.messages, place.added), (1, 3, 4));
    let kept = open(&home);
    assert_eq!(originals(&kept, "s", 1), [&b"{ \"role\":\t\"user\"}\r\n"[..], b"\0\xff", &large]);
    let lines = kept.transcripts().lines("s").unwrap();
    assert_eq!((lines[2].raw.bytes, lines[2].pointers.as_slice()), (100_000, &pointer[..]));
    assert_eq!(kept.contents().get(lines[2].sent.unwrap().hash).unwrap(), b"{\"content\":\"short\"}");
    assert_eq!(
        kept.pointers().resolve(&lines[2].pointers[0]).unwrap(),
        large,
        "pointer and payload (R3-4.35)"
    );
    assert_eq!((lines[3].kind, lines[3].message, lines[3].role.as_str()), (LineKind::Reply, 3, "assistant"));
    assert_eq!(kept.contents().get(lines[3].raw.hash).unwrap(), b"data: reply\n\n");
    let json = serde_json::to_string(&lines[0]).unwrap();
    assert!(
        !json.contains('\n') && json.contains("\"kind\":\"message\"") && !json.contains("sent"),
        "{json}"
    );
    assert!(kept.transcripts().lines("other").unwrap().is_empty());
    let report = home.store.verify().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!((report.transcript_lines, report.unreferenced), (4, 0));
    let nameless = user.transcripts().append("", &history, None);
    assert!(matches!(nameless, Err(StoreError::InvalidName { what: "session id", .. })));
    assert_eq!(user.transcripts().append("s", &[], Some(b"x")).unwrap().added, 0);
}

fn only_what_is_new_is_added(open: Factory) {
    let home = Home::new();
    let texts: Vec<String> = (0..40).map(|n| format!("message {n}")).collect();
    let all: Vec<_> = texts.iter().map(|text| message(text.as_bytes())).collect();
    for length in [1, 2, 5, 5, 3, 40] {
        open(&home).transcripts().append("s", &all[..length], None).unwrap();
    }
    let user = open(&home);
    assert_eq!(lines(&user, "s").len(), 40);
    assert_eq!(
        originals(&user, "s", 1),
        texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>()
    );
    // A cache breakpoint that moved on: other bytes, the same message.
    let mut moved = all.clone();
    moved[39].raw = b"message 39 without its breakpoint";
    let last = user.transcripts().append("s", &moved, Some(b"reply")).unwrap();
    assert_eq!((last.branch, last.added), (1, 1), "the reply only");
    assert_eq!(user.transcripts().append("t", &all[..3], None).unwrap().added, 3, "another session");
}

fn a_changed_history_is_a_branch(open: Factory) {
    let home = Home::new();
    let [a, b, c, d, x, y] = [b"a", b"b", b"c", b"d", b"x", b"y"].map(|text| message(text));
    let append = |history: &[TranscriptMessage<'_>]| {
        let place = open(&home).transcripts().append("s", history, None).unwrap();
        (place.branch, place.added)
    };
    assert_eq!(append(&[a, b, c]), (1, 3));
    assert_eq!(append(&[a, x]), (2, 1), "edited after the first message");
    assert_eq!(append(&[a, x, y]), (2, 1), "the branch goes on");
    assert_eq!(append(&[a, b, c, d]), (1, 1), "so does the first");
    assert_eq!(append(&[a, x, c]), (3, 1), "a branch of a branch");
    assert_eq!(append(&[y]), (4, 1), "nothing shared");
    assert_eq!(append(&[a, b]), (1, 0), "a known beginning");
    let user = open(&home);
    let text = |branch| String::from_utf8(originals(&user, "s", branch).concat()).unwrap();
    assert_eq!([1, 2, 3, 4, 5].map(text), ["abcd", "axy", "axc", "y", ""]);
    let forks: Vec<_> =
        user.transcripts().lines("s").unwrap().into_iter().filter_map(|line| line.forked_from).collect();
    assert_eq!(forks, [ForkPoint { branch: 1, message: 1 }, ForkPoint { branch: 2, message: 2 }]);
}

fn compactions_are_lines_of_their_own(open: Factory) {
    let home = Home::new();
    let pointers = ["b", "c"]
        .map(|text| [open(&home).pointers().insert(text.as_bytes(), "text", "").unwrap().pointer_id]);
    let [a, b, c, d, e] = [b"a", b"b", b"c", b"d", b"e"].map(|text| message(text));
    let short = |whole, at: usize| TranscriptMessage {
        sent: Some(if at == 0 { b"sb" } else { b"sc" }),
        pointers: &pointers[at],
        ..whole
    };
    let append = |history: &[TranscriptMessage<'_>]| {
        open(&home).transcripts().append("s", history, None).unwrap().added
    };
    let view = |branch| -> Vec<bool> {
        let lines = open(&home).transcripts().branch("s", branch).unwrap();
        lines.iter().map(|line| line.sent.is_some()).collect()
    };
    assert_eq!(append(&[a, short(b, 0)]), 2);
    assert_eq!(append(&[a, short(b, 0), c]), 1);
    assert_eq!(append(&[a, short(b, 0), short(c, 1), d]), 2, "an epoch: c is condensed, d is new");
    assert_eq!(append(&[a, short(b, 0), short(c, 1), d]), 0);
    assert_eq!(append(&[a, short(b, 0), c]), 0, "a beginning asked again changes nothing");
    assert_eq!(view(1), [false, true, true, false]);
    // The branch goes its own way: b whole again, while the first one keeps it condensed.
    assert_eq!(append(&[a, b, short(c, 1), e]), 2);
    assert_eq!((view(1), view(2)), (vec![false, true, true, false], vec![false, false, true, false]));
    assert_eq!(append(&[a, b, c, e]), 1, "whole again, in the branch only");
    assert_eq!(append(&[a, b, c, e]), 0);
    assert_eq!((view(1), view(2)), (vec![false, true, true, false], vec![false; 4]));
    assert_eq!(append(&[a, short(b, 0), short(c, 1), d, e]), 1, "the first branch as it was");
    let renditions = lines(&open(&home), "s").into_iter().filter(|line| line.2 == LineKind::Rendition);
    assert_eq!(renditions.map(|line| (line.0, line.1)).collect::<Vec<_>>(), [(1, 3), (2, 2), (2, 3)]);
    assert!(home.store.verify().unwrap().is_clean());
}

fn a_transcript_names_nothing_that_is_not_there(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let foreign = [Pointer::whole(PointerKey::new([9; 32]).mint(ContentHash::new(b"x")))];
    let wrong = TranscriptMessage { sent: Some(b"short"), pointers: &foreign, ..message(b"b") };
    let refused = user.transcripts().append("s", &[message(b"a"), wrong], None);
    assert!(matches!(refused, Err(StoreError::NotOurs { .. })));
    assert!(user.transcripts().lines("s").unwrap().is_empty(), "all or nothing");
}

fn factors_are_learned_as_revisions(open: Factory) {
    let home = Home::new();
    let observe_by = |model: &str, estimate: &str, estimated, reported| {
        let revise = |factor: u64| (format!("{model} {factor}"), changes(&[&format!("{model}={factor}")]));
        let correction = |factor: u64| factor.clamp(500_000, 1_000_000);
        let used =
            |learned: &LearnedSettings| learned.get(model).map_or(1_000_000, |text| text.parse().unwrap());
        let store = open(&home).store().clone();
        let counts = (estimated, reported);
        store.calibrations().observe((model, estimate), counts, correction, used, revise).unwrap()
    };
    let observe_of = |model: &str, estimated, reported| observe_by(model, "e", estimated, reported);
    let observe = |reported| observe_of("m", 1_000, reported);
    let learned = |number| open(&home).store().revisions().settings(number).unwrap();
    assert!((0..7).all(|_| observe(600).is_none()), "too few to go by");
    assert_eq!(observe(600), Some(1));
    assert_eq!(learned(1)["m"], "600000");
    assert!((0..32).all(|_| observe(590).is_none()), "a little further is not learned");
    assert_eq!((observe(0), observe(20), observe(900_000)), (None, None, None), "implausible");
    assert_eq!(open(&home).store().revisions().revert(0).unwrap(), 2);
    assert!((0..32).all(|_| observe(600).is_none()), "what was reverted is not learned again at once");
    let moved: Vec<_> = (0..40).filter_map(|_| observe(700)).collect();
    assert_eq!((moved, learned(3)["m"].as_str()), (vec![3], "700000"));
    assert_eq!((0..256).filter_map(|_| observe(100)).collect::<Vec<_>>(), [4]);
    assert_eq!(learned(4)["m"], "500000", "what takes effect");
    assert_eq!(open(&home).store().revisions().revert(1).unwrap(), 5);
    assert_eq!((observe(900), learned(6)["m"].as_str()), (Some(6), "900000"), "more than is charged now");
    assert!((0..7).all(|_| observe_by("m", "another", 1_000, 700).is_none()), "of another estimate");
    assert_eq!((observe_by("m", "another", 1_000, 700), learned(7)["m"].as_str()), (Some(7), "700000"));
    assert_eq!(observe_of("m", 0, 5), None);
    assert!((0..20).all(|_| observe_of("huge", u64::MAX, u64::MAX).is_none()), "sums saturate");
    for number in 0..1_100 {
        assert_eq!(observe_of(&format!("chosen-{number}"), 1_000, 600), None);
    }
    assert!((0..7).all(|_| observe_of("new", 1_000, 600).is_none()), "clients choose names");
    assert_eq!(observe_of("new", 1_000, 600), Some(8), "the least is forgotten to make room");
}

/// Changes of a revision: `key=value`, or a key alone that is learned no more.
fn changes(list: &[&str]) -> BTreeMap<String, Option<String>> {
    let pair = |text: &&str| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => ((*text).to_owned(), None),
    };
    list.iter().map(pair).collect()
}

fn revisions_are_added_and_never_changed(open: Factory) {
    let home = Home::new();
    let learned = |number| {
        let settings = open(&home).store().revisions().settings(number).unwrap();
        settings.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    let write = |cause, list: &[&str]| open(&home).store().revisions().write(cause, &changes(list)).unwrap();
    assert_eq!(open(&home).store().revisions().newest().unwrap(), 0);
    assert!(learned(0).is_empty() && open(&home).store().revisions().list(None).unwrap().is_empty());
    assert_eq!(write("first", &["a=1", "b=2", "never learned"]), 1);
    assert_eq!(write("second", &["a", "c=3", "b=2"]), 2);
    assert_eq!(write("nothing new", &["c=3", "a"]), 2, "no revision without a change");
    assert_eq!(
        (learned(0), learned(1), learned(2)),
        (vec![], vec!["a=1".to_owned(), "b=2".into()], vec!["b=2".to_owned(), "c=3".into()])
    );
    assert_eq!(open(&home).store().revisions().revert(1).unwrap(), 3);
    assert_eq!(learned(3), learned(1));
    assert_eq!(open(&home).store().revisions().revert(1).unwrap(), 3, "it is that already");
    assert_eq!(open(&home).store().revisions().revert(0).unwrap(), 4);
    assert!(learned(4).is_empty());
    let mut all = open(&home).store().revisions().list(None).unwrap();
    all.reverse();
    let told: Vec<_> = all.iter().map(|one| (one.number, one.cause.as_str(), one.changes.clone())).collect();
    assert_eq!(
        told,
        [
            (1, "first", changes(&["a=1", "b=2"])),
            (2, "second", changes(&["a", "c=3"])),
            (3, "back to revision 1", changes(&["a=1", "c"])),
            (4, "back to revision 0", changes(&["a", "b"])),
        ]
    );
    assert_eq!(all[0].created, home.store.now());
    for number in [5, u64::MAX] {
        let unknown = open(&home).store().revisions().settings(number).unwrap_err();
        assert!(
            unknown.to_string().contains("`larder revisions` lists the existing ones, 0 to 4"),
            "{unknown}"
        );
        assert!(open(&home).store().revisions().revert(number).is_err());
    }
}

fn many_revisions_are_read_in_pages_and_from_the_last_checkpoint(open: Factory) {
    let home = Home::new();
    let write = |number: u64| {
        let list = [format!("k{}={number}", number % 7), format!("k{}", (number + 3) % 7)];
        open(&home).store().revisions().write("c", &changes(&list.each_ref().map(String::as_str))).unwrap()
    };
    let mut expected = BTreeMap::new();
    for number in 1..=250 {
        assert_eq!(write(number), number);
        for (key, value) in open(&home).store().revisions().get(number).unwrap().unwrap().changes {
            match value {
                Some(value) => expected.insert(key, value),
                None => expected.remove(&key),
            };
        }
        assert_eq!(open(&home).store().revisions().settings(number).unwrap(), expected);
    }
    let page = |before| -> Vec<u64> {
        let page = open(&home).store().revisions().list(before).unwrap();
        page.iter().map(|revision| revision.number).collect()
    };
    assert_eq!(page(None), (151..=250).rev().collect::<Vec<_>>());
    assert_eq!(page(Some(151)), (51..=150).rev().collect::<Vec<_>>());
    assert_eq!(page(Some(51)), (1..=50).rev().collect::<Vec<_>>());
    assert_eq!((page(Some(1)), page(Some(0)), page(Some(u64::MAX))), (vec![], vec![], page(None)));
    assert_eq!(open(&home).store().revisions().get(251).unwrap(), None);
    // What lies before the last checkpoint is not looked at.
    let index = rusqlite::Connection::open(home.path().join("index.sqlite")).unwrap();
    index.execute("UPDATE revisions SET changes = '' WHERE number <= 192", []).unwrap();
    assert_eq!(open(&home).store().revisions().settings(250).unwrap(), expected);
    assert_eq!(write(251), 251);
}

fn a_conversation_keeps_its_revision_until_it_is_moved_on(open: Factory) {
    let home = Home::new();
    assert_eq!(open(&home).session_revisions().get("s").unwrap(), None);
    assert_eq!(open(&home).session_revisions().begin("s", 2).unwrap(), 2);
    assert_eq!(open(&home).session_revisions().begin("s", 3).unwrap(), 2, "it has one");
    assert_eq!(open(&home).session_revisions().begin("t", 0).unwrap(), 0);
    assert_eq!(open(&home).session_revisions().advance("s", 5).unwrap(), 5);
    assert_eq!(open(&home).session_revisions().advance("s", 4).unwrap(), 5, "never back");
    assert_eq!(open(&home).session_revisions().advance("new", 1).unwrap(), 1);
    let kept = ["s", "t", "new"].map(|session| open(&home).session_revisions().get(session).unwrap());
    assert_eq!(kept, [Some(5), Some(0), Some(1)]);
}

fn users_are_walls(open: Factory) {
    let home = Home::new();
    let (ada, eve) = (open(&home), home.user("eve"));
    record(&ada, &[NewExchange { session: Some("s"), ..exchange("a") }]);
    ada.transcripts().append("s", &[message(b"a secret")], None).unwrap();
    assert_eq!(eve.exchanges().get("a").unwrap(), None);
    assert!(eve.exchanges().list(&ExchangeFilter::default()).unwrap().is_empty());
    let before = ExchangeFilter { before: Some("a".into()), ..ExchangeFilter::default() };
    assert!(eve.exchanges().list(&before).unwrap().is_empty());
    assert!(
        eve.exchanges().sessions(9).unwrap().is_empty()
            && eve.exchanges().costs(Timestamp::from_millis(0)).unwrap().is_empty()
    );
    assert!(
        eve.transcripts().lines("s").unwrap().is_empty()
            && eve.transcripts().branch("s", 1).unwrap().is_empty()
    );
    assert!(matches!(eve.contents().get(ContentHash::new(b"a secret")), Err(StoreError::MissingBlob { .. })));
    assert_eq!(
        eve.transcripts().append("s", &[message(b"a secret")], None).unwrap().added,
        1,
        "a session of her own"
    );
    ada.session_revisions().begin("s", 1).unwrap();
    assert_eq!(eve.session_revisions().get("s").unwrap(), None);
}

fn a_deleted_user_leaves_nothing(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let key = add_key(&user, tokens(10));
    let held = hold(user.store(), &key, spend(5, 0));
    drop(hold(user.store(), &key, spend(5, 0)));
    let token = ContentHash::new(b"t");
    user.store().keys().add_sign_in(token, &key, Timestamp::from_millis(u64::MAX)).unwrap();
    record(&user, &[NewExchange { session: Some("MARK-7"), json: "MARK-7", ..exchange("MARK-7") }]);
    user.transcripts()
        .append("MARK-7", &[TranscriptMessage { role: "MARK-7", ..message(b"x") }], None)
        .unwrap();
    user.session_revisions().begin("MARK-7", 1).unwrap();
    home.store.delete_user(user.user()).unwrap();
    assert!(
        user.store().keys().get(&key).unwrap().is_none()
            && user.store().keys().sign_in(token).unwrap().is_none()
    );
    user.store().keys().settle(&held, spend(5, 0)).unwrap();
    assert_eq!(user.exchanges().get("MARK-7").unwrap(), None);
    assert!(user.transcripts().lines("MARK-7").unwrap().is_empty());
    for file in ["index.sqlite", "index.sqlite-wal"] {
        let bytes = std::fs::read(home.path().join(file)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|window| window == b"MARK-7"), "{file}");
    }
    assert!(home.store.verify().unwrap().is_clean());
}

#[test]
fn two_processes_together_never_go_over_a_budget() {
    let home = Home::new();
    let key = add_key(&home.user("ada"), tokens(1_000));
    let takers: Vec<_> = (0..4)
        .map(|_| {
            // Each with its own connection to the index, as another process has.
            let (store, key) = (home.reopen(), key.clone());
            std::thread::spawn(move || {
                let taken = (0..60).map(|_| match store.keys().reserve(&key, spend(10, 0)).unwrap() {
                    ReserveOutcome::Held(held) => {
                        store.keys().settle(&held, spend(7, 0)).unwrap();
                        7
                    }
                    ReserveOutcome::Refused(short) => {
                        assert!(short.left_tokens().unwrap() < 10);
                        0
                    }
                });
                taken.sum::<u64>()
            })
        })
        .collect();
    let taken: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    let today = home.store.keys().day_spend(&key).unwrap();
    assert_eq!((today.used.tokens, today.held.tokens), (taken, 0));
    assert!((960..=1_000).contains(&taken), "{taken}");
}

#[test]
fn two_processes_write_one_transcript() {
    let home = Home::new();
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let user = home.reopen().user("ada").unwrap();
            std::thread::spawn(move || {
                let texts: Vec<String> = (0..30).map(|n| n.to_string()).collect();
                let all: Vec<_> = texts.iter().map(|text| message(text.as_bytes())).collect();
                for n in 1..=30 {
                    user.transcripts().append("s", &all[..n], None).unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let user = home.user("ada");
    assert_eq!(lines(&user, "s").len(), 30);
    assert_eq!(originals(&user, "s", 1).len(), 30);
}

#[test]
fn a_record_of_a_user_who_is_going_is_left_out() {
    let home = Home::new();
    let (ada, eve) = (home.user("ada"), home.user("eve"));
    let batch = [(&ada, exchange("a")), (&eve, exchange("b"))];
    let raw = rusqlite::Connection::open(home.path().join("index.sqlite")).unwrap();
    raw.execute("INSERT INTO deletions VALUES ('u-ada')", []).unwrap();
    assert_eq!(home.store.record_exchanges(&batch).unwrap(), 1);
    assert!(ada.exchanges().get("a").unwrap().is_none() && eve.exchanges().get("b").unwrap().is_some());
}

#[test]
fn what_began_before_its_user_was_deleted_is_not_stored() {
    let home = Home::new();
    let began = |user| home.user(user).begun().unwrap();
    let (early, eve) = (began("ada"), began("eve"));
    let other = Store::open(home.path(), StoreOptions::default()).unwrap();
    other.delete_user("ada").unwrap();
    // Another process is believed to have changed nothing for 2 ms.
    std::thread::sleep(std::time::Duration::from_millis(5));
    let late = began("ada");
    let batch =
        [(&early, exchange("a")), (&late, exchange("b")), (&eve, exchange("c")), (&early, exchange("d"))];
    assert_eq!(home.store.record_exchanges(&batch).unwrap(), 2);
    let messages = [message(b"said")];
    let [said_late, said_early] =
        [&late, &early].map(|store| NewTranscript { store, session: "s", messages: &messages, reply: None });
    let places = home.store.append_transcripts(&[said_late, said_early]);
    assert!(matches!(&places[..], [Ok(_), Err(StoreError::BeingDeleted { .. })]), "{places:?}");
    assert_eq!(late.transcripts().lines("s").unwrap().len(), 1);
    let large = vec![b'x'; 100_000];
    let refused = early.pointers().insert(&large, "text", "");
    assert!(matches!(refused, Err(StoreError::BeingDeleted { .. })), "{refused:?}");
    assert!(early.session_revisions().begin("t", 1).is_err() && !home.path().join("blobs/u-ada").exists());
    late.pointers().insert(&large, "text", "").unwrap();
    assert!(home.store.verify().unwrap().is_clean());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(16), ..ProptestConfig::default() })]

    /// Whatever histories a session sees, each can be read back whole, in the form in which it went upstream last.
    #[test]
    fn any_histories_are_read_back(
        histories in prop::collection::vec(prop::collection::vec((0u8..3, any::<bool>()), 1..7), 1..14),
    ) {
        let home = Home::new();
        let user = home.user("ada");
        for history in &histories {
            let texts: Vec<([u8; 1], [u8; 2])> = history.iter().map(|(text, _)| ([*text], [*text, 0])).collect();
            let messages: Vec<_> = history.iter().zip(&texts).map(|((_, short), (raw, sent))| {
                TranscriptMessage { sent: short.then_some(&sent[..]), ..message(raw) }
            }).collect();
            let place = user.transcripts().append("s", &messages, None).unwrap();
            let branch = user.transcripts().branch("s", place.branch).unwrap();
            prop_assert!(branch.len() >= history.len());
            for (line, (text, _)) in branch.iter().zip(history) {
                prop_assert_eq!(line.raw.hash, ContentHash::new(&[*text]));
            }
            if branch.len() == history.len() {
                let forms: Vec<_> = branch.iter().map(|line| line.sent.is_some()).collect();
                let given: Vec<_> = history.iter().map(|(_, short)| *short).collect();
                prop_assert_eq!(&forms, &given);
            }
        }
        let lines = user.transcripts().lines("s").unwrap();
        let messages = lines.iter().filter(|line| line.kind == LineKind::Message).count();
        let distinct: std::collections::BTreeSet<Vec<u8>> = histories.iter().flat_map(|history| {
            (1..=history.len()).map(|n| history[..n].iter().map(|(text, _)| *text).collect())
        }).collect();
        prop_assert_eq!(messages, distinct.len(), "each beginning stands once");
        prop_assert!(home.store.verify().unwrap().is_clean());
    }
}
