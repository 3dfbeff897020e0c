//! What every store must do, whoever keeps the bytes: one suite over a factory of stores.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod common;

use common::{Home, facts, run};
use larder_store::{CompactionKey, NewIntervention, NewPointer, RunFilter, Selection, StoreError, UserStore};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerKey};
use proptest::prelude::*;

/// Opens the store of a home that may or may not have one.
type Factory = fn(&Home) -> UserStore;

fn contract(open: Factory) {
    content_comes_back_byte_for_byte(open);
    fragments_are_cut_exactly(open);
    what_is_not_a_pointer_of_the_user_is_refused(open);
    users_are_walls(open);
    a_run_is_recorded_with_everything_it_names(open);
    a_run_that_names_what_is_not_there_is_not_recorded(open);
    runs_are_listed_newest_first_and_filtered(open);
    everything_survives_reopening(open);
    parts_are_rehydrated(open);
    interventions_stay_until_they_are_resolved(open);
    compactions_are_kept_by_everything_they_depend_on(open);
    a_deleted_user_leaves_nothing(open);
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

fn content_comes_back_byte_for_byte(open: Factory) {
    let home = Home::new();
    let contents = [&b""[..], b"text\r\n", b"\0\xff\xfe", &[b'a'; 200_000]];
    for content in contents {
        let stored = open(&home).pointers().insert(content, "document", "a document").unwrap();
        assert_eq!(open(&home).pointers().resolve(&stored.pointer_id).unwrap(), content);
        assert_eq!(open(&home).contents().get(stored.content).unwrap(), content);
        assert_eq!(open(&home).pointers().get(&stored.pointer_id).unwrap(), stored);
        let told = &stored.rehydrate_instructions;
        assert!(told.contains(stored.pointer_id.id.as_str()) && told.contains("larder_rehydrate"), "{told}");
        assert!(told.contains("lines, bytes, pattern or path"), "as the tool calls them: {told}");
    }
    let items: Vec<_> = contents
        .iter()
        .map(|content| NewPointer { content: content[..].into(), kind: "k", display_text: "again" })
        .collect();
    let again = open(&home).pointers().insert_all(&items).unwrap();
    assert!(again.iter().all(|stored| stored.display_text == "a document"), "the first words stay");
    assert!(open(&home).pointers().insert_all(&[]).unwrap().is_empty());
}

fn fragments_are_cut_exactly(open: Factory) {
    let home = Home::new();
    let id = open(&home).pointers().insert(b"one\r\ntwo\nthree", "text", "").unwrap().pointer_id.id;
    let cut = |pointer: Pointer| open(&home).pointers().resolve(&pointer);
    assert_eq!(cut(Pointer::lines(id.clone(), 1, 2)).unwrap(), b"one\r\ntwo\n");
    assert_eq!(cut(Pointer::lines(id.clone(), 3, 3)).unwrap(), b"three");
    assert_eq!(cut(Pointer::bytes(id.clone(), 3..6)).unwrap(), b"\r\nt");
    assert_eq!(cut(Pointer::lines(id.clone(), 2, 9)).unwrap(), b"two\nthree");
    let error = cut(Pointer::lines(id.clone(), 4, 9)).unwrap_err();
    assert!(error.to_string().contains("ask for lines within 1:3"), "{error}");
    let error = cut(Pointer::bytes(id, 0..99)).unwrap_err();
    assert!(error.to_string().contains("ask for bytes within 0:14"), "{error}");
}

fn what_is_not_a_pointer_of_the_user_is_refused(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let stored = user.pointers().insert(b"text", "text", "").unwrap();
    let forged = Pointer::whole(PointerKey::new([9; 32]).mint(stored.content));
    assert!(matches!(user.pointers().resolve(&forged), Err(StoreError::NotOurs { .. })));
    let never_put = Pointer::whole(user.key().mint(ContentHash::new(b"never put")));
    assert!(matches!(user.pointers().resolve(&never_put), Err(StoreError::UnknownPointer { .. })));
}

fn users_are_walls(open: Factory) {
    let home = Home::new();
    let ada = open(&home);
    let eve = home.user("eve");
    let stored = ada.pointers().insert(b"a secret", "text", "").unwrap();
    let recorded = ada.runs().record(run(ada.store(), "r", b"{}", &[])).unwrap();
    // Another user's pointer looks exactly like one that nobody ever minted.
    let invented = Pointer::whole(PointerKey::new([9; 32]).mint(stored.content));
    let (theirs, nobodys) = (eve.pointers().resolve(&stored.pointer_id), eve.pointers().resolve(&invented));
    let plain = |result: Result<Vec<u8>, StoreError>, pointer: &Pointer| {
        result.unwrap_err().to_string().replace(&pointer.to_string(), "P")
    };
    assert_eq!(plain(theirs, &stored.pointer_id), plain(nobodys, &invented));
    assert!(matches!(eve.contents().get(stored.content), Err(StoreError::MissingBlob { .. })));
    assert!(matches!(eve.runs().get(&recorded.run_id), Err(StoreError::UnknownRun { .. })));
    assert!(eve.runs().list(&RunFilter::default()).unwrap().is_empty());
    assert!(eve.runs().pointers(&recorded.run_id).unwrap().is_empty());
}

fn a_run_is_recorded_with_everything_it_names(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let id = user.pointers().insert(b"one\ntwo\n", "text", "").unwrap().pointer_id.id;
    let pointers = [Pointer::whole(id.clone()), Pointer::lines(id, 2, 2)];
    let recorded =
        user.runs().record(run(user.store(), "planner_chat", b"{\"budget\":12000}", &pointers)).unwrap();
    let read = open(&home).runs().get(&recorded.run_id).unwrap();
    assert_eq!(read, recorded);
    assert_eq!(open(&home).contents().get(read.receipt).unwrap(), b"{\"budget\":12000}");
    assert_eq!(open(&home).contents().get(read.output.unwrap()).unwrap(), b"the answer");
    assert_eq!(open(&home).runs().pointers(&read.run_id).unwrap(), pointers);
    let json = serde_json::to_value(&read).unwrap();
    assert_eq!(json["tokens"]["total"], 4570);
    assert_eq!(json["timestamp"], "2026-11-21T00:00:00.000Z");
    assert_eq!(json["turn_id"], "turn_000042");
}

fn a_run_that_names_what_is_not_there_is_not_recorded(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let nowhere = [Pointer::whole(user.key().mint(ContentHash::new(b"never put")))];
    let refused = user.runs().record(run(user.store(), "r", b"{}", &nowhere));
    assert!(matches!(refused, Err(StoreError::UnknownPointer { .. })));
    assert!(user.runs().list(&RunFilter::default()).unwrap().is_empty());
    let mut twice = run(user.store(), "r", b"{}", &[]);
    user.runs().record(twice.clone()).unwrap();
    twice.facts = facts("other");
    assert!(matches!(user.runs().record(twice), Err(StoreError::RunExists { .. })));
    assert_eq!(user.runs().list(&RunFilter::default()).unwrap().len(), 1);
}

fn runs_are_listed_newest_first_and_filtered(open: Factory) {
    let home = Home::new();
    let mut ids = Vec::new();
    for (at, recipe) in ["a", "b", "a", "c"].into_iter().enumerate() {
        home.clock.set(1_000 * at as u64);
        let user = open(&home);
        ids.push(user.runs().record(run(user.store(), recipe, b"{}", &[])).unwrap().run_id);
    }
    ids.reverse();
    let list = |filter: RunFilter| -> Vec<_> {
        open(&home).runs().list(&filter).unwrap().into_iter().map(|run| run.run_id).collect()
    };
    assert_eq!(list(RunFilter::default()), ids);
    assert_eq!(list(RunFilter { limit: Some(2), ..RunFilter::default() }), ids[..2]);
    assert_eq!(
        list(RunFilter { recipe: Some("a".into()), ..RunFilter::default() }),
        [ids[1].clone(), ids[3].clone()]
    );
    let since = Some("1970-01-01T00:00:02Z".parse().unwrap());
    assert_eq!(list(RunFilter { since, ..RunFilter::default() }), ids[..2]);
    assert!(ids.is_sorted_by(|newer, older| newer > older), "ids sort by time");
}

fn everything_survives_reopening(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let stored = user.pointers().insert(b"kept", "text", "").unwrap();
    let recorded = user.runs().record(run(user.store(), "r", b"{}", &[])).unwrap();
    let (name, key) = (user.user().to_owned(), user.key().clone());
    drop(user);
    let again = home.reopen().user(&name).unwrap();
    assert!(key.owns(&again.pointers().insert(b"new", "text", "").unwrap().pointer_id.id), "the key stays");
    assert_eq!(again.pointers().resolve(&stored.pointer_id).unwrap(), b"kept");
    assert_eq!(again.runs().get(&recorded.run_id).unwrap(), recorded);
}

fn parts_are_rehydrated(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let whole = user.pointers().insert(b"{\n \"a\": 1.0,\n \"b\": [2]\n}\n", "json", "").unwrap().pointer_id;
    let part = |pointer: &Pointer, selection| user.pointers().rehydrate(pointer, &selection);
    assert_eq!(part(&whole, Selection::lines("2:2").unwrap()).unwrap(), b" \"a\": 1.0,\n");
    assert_eq!(part(&whole, Selection::bytes("0:1").unwrap()).unwrap(), b"{");
    assert_eq!(part(&whole, Selection::grep("b").unwrap()).unwrap(), b" \"b\": [2]\n");
    assert_eq!(part(&whole, Selection::path("$.a").unwrap()).unwrap(), b"1.0");
    assert!(matches!(part(&whole, Selection::path("/c").unwrap()), Err(StoreError::Select(_))));
    let lines = Pointer::lines(whole.id, 2, 3);
    assert_eq!(part(&lines, Selection::lines("2:2").unwrap()).unwrap(), b" \"b\": [2]\n");
    assert!(part(&lines, Selection::lines("3:3").unwrap()).is_err(), "a part of the part");
}

fn interventions_stay_until_they_are_resolved(open: Factory) {
    let home = Home::new();
    let raised = open(&home).interventions().raise(&NewIntervention::missing_recipe("planner_chat")).unwrap();
    assert_eq!((raised.id, raised.kind.as_str()), (1, "config_error"));
    assert_eq!(raised.message, "Missing recipe: planner_chat");
    let run_id = open(&home).store().new_run_id().unwrap();
    let second =
        NewIntervention { run_id: Some(run_id), recipe: None, ..NewIntervention::missing_recipe("x") };
    let second = open(&home).interventions().raise(&second).unwrap();
    assert_eq!(open(&home).interventions().list(true).unwrap(), [raised.clone(), second.clone()]);
    home.clock.set(1_000);
    let resolved = open(&home).interventions().resolve(1, "added the file").unwrap();
    assert_eq!(resolved.resolution.as_deref(), Some("added the file"));
    assert_eq!(resolved.resolved_at.unwrap().as_millis(), 1_000);
    assert_eq!(open(&home).interventions().list(true).unwrap(), std::slice::from_ref(&second));
    assert_eq!(open(&home).interventions().list(false).unwrap(), [resolved, second]);
    let again = open(&home).interventions().resolve(1, "no");
    assert!(matches!(again, Err(StoreError::InterventionResolved { id: 1 })));
    assert!(matches!(open(&home).interventions().get(9), Err(StoreError::UnknownIntervention { id: 9 })));
    let eve = home.user("eve");
    assert!(matches!(eve.interventions().get(1), Err(StoreError::UnknownIntervention { .. })));
    assert!(
        eve.interventions().resolve(2, "mine").is_err()
            && eve.interventions().list(false).unwrap().is_empty()
    );
    assert_eq!(eve.interventions().raise(&NewIntervention::missing_recipe("y")).unwrap().id, 1);
}

fn compactions_are_kept_by_everything_they_depend_on(open: Factory) {
    let home = Home::new();
    let key = CompactionKey {
        content: ContentHash::new(b"long"),
        content_type: "prose",
        target_tokens: 500,
        query: ContentHash::new(b""),
        condenser: "prose/1",
        tokenizer: "o200k_base",
    };
    open(&home).compactions().insert(&key, "{\"text\":\"short\"}").unwrap();
    open(&home).compactions().insert(&key, "another").unwrap();
    let cached = |key: CompactionKey<'_>| open(&home).compactions().get(&key).unwrap();
    assert_eq!(cached(key).as_deref(), Some("{\"text\":\"short\"}"));
    for other in [
        CompactionKey { content: ContentHash::new(b"other"), ..key },
        CompactionKey { content_type: "json", ..key },
        CompactionKey { target_tokens: 501, ..key },
        CompactionKey { query: ContentHash::new(b"q"), ..key },
        CompactionKey { condenser: "prose/2", ..key },
        CompactionKey { tokenizer: "cl100k_base", ..key },
    ] {
        assert_eq!(cached(other), None, "{other:?}");
    }
    assert_eq!(home.user("eve").compactions().get(&key).unwrap(), None);
    let start = home.store.now().as_millis();
    let other = CompactionKey { target_tokens: 1, ..key };
    home.clock.set(start + 300_000);
    open(&home).compactions().insert(&other, "x").unwrap();
    assert!(cached(key).is_some(), "within 300 s (R0-30.5)");
    home.clock.set(start + 300_001);
    assert!(cached(key).is_some(), "old is not wrong (C106)");
    open(&home).compactions().insert(&CompactionKey { target_tokens: 2, ..key }, "x").unwrap();
    assert_eq!((cached(key), cached(other).as_deref()), (None, Some("x")));
}

fn a_deleted_user_leaves_nothing(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let stored = user.pointers().insert(b"a secret that is searched for", "text", "MARK-7").unwrap();
    let recorded = user.runs().record(run(user.store(), "r", b"{}", &[])).unwrap();
    let kept = home.user("eve").pointers().insert(b"kept", "text", "").unwrap();
    home.store.delete_user(user.user()).unwrap();
    assert!(matches!(user.pointers().resolve(&stored.pointer_id), Err(StoreError::UnknownPointer { .. })));
    assert!(matches!(user.runs().get(&recorded.run_id), Err(StoreError::UnknownRun { .. })));
    assert!(matches!(user.contents().get(stored.content), Err(StoreError::MissingBlob { .. })));
    assert_eq!(home.user("eve").pointers().resolve(&kept.pointer_id).unwrap(), b"kept");
    for file in ["index.sqlite", "index.sqlite-wal"] {
        let bytes = std::fs::read(home.path().join(file)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|window| window == b"MARK-7"), "{file}");
    }
    assert!(home.store.verify().unwrap().is_clean());
    assert_eq!(user.pointers().insert(b"new", "text", "").unwrap().bytes, 3, "the id can be used again");
    home.store.delete_user(user.user()).unwrap();
    home.store.delete_user("nobody").unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(16), ..ProptestConfig::default() })]
    #[test]
    fn nothing_of_one_user_is_read_by_another(
        puts in prop::collection::vec((0usize..4, prop::collection::vec(any::<u8>(), 0..40)), 1..12),
    ) {
        let home = Home::new();
        let users = ["a", "A", "a/..", "ａ"].map(|user| home.user(user));
        let mut owned = std::collections::BTreeSet::new();
        let mut pointers = Vec::new();
        for (owner, content) in &puts {
            let stored = users[*owner].pointers().insert(content, "text", "").unwrap();
            owned.insert((*owner, content.clone()));
            pointers.push((*owner, content, stored));
        }
        for (owner, content, stored) in &pointers {
            for (reader, user) in users.iter().enumerate() {
                let may = owned.contains(&(reader, (*content).clone()));
                prop_assert_eq!(user.pointers().resolve(&stored.pointer_id).is_ok(), reader == *owner);
                prop_assert_eq!(user.contents().get(stored.content).is_ok(), may);
                let own = Pointer::whole(user.key().mint(stored.content));
                prop_assert_eq!(user.pointers().resolve(&own).ok(), may.then(|| (*content).clone()));
            }
        }
    }
}
