//! What every store must do, whoever keeps the bytes: one suite over a factory of stores.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod common;

use common::{Home, facts, run};
use larder_core::hash::ContentHash;
use larder_core::pointer::{Pointer, PointerKey};
use larder_store::{NewPointer, RunFilter, StoreError, UserStore};
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
        let stored = open(&home).put(content, "document", "a document").unwrap();
        assert_eq!(open(&home).resolve(&stored.pointer_id).unwrap(), content);
        assert_eq!(open(&home).blob(stored.content).unwrap(), content);
        assert_eq!(open(&home).pointer(&stored.pointer_id).unwrap(), stored);
        assert!(stored.rehydrate_instructions.contains(stored.pointer_id.id.as_str()));
    }
    let items: Vec<_> =
        contents.iter().map(|content| NewPointer { content, kind: "k", display_text: "again" }).collect();
    let again = open(&home).put_all(&items).unwrap();
    assert!(again.iter().all(|stored| stored.display_text == "a document"), "the first words stay");
    assert!(open(&home).put_all(&[]).unwrap().is_empty());
}

fn fragments_are_cut_exactly(open: Factory) {
    let home = Home::new();
    let id = open(&home).put(b"one\r\ntwo\nthree", "text", "").unwrap().pointer_id.id;
    let cut = |pointer: Pointer| open(&home).resolve(&pointer);
    assert_eq!(cut(Pointer::lines(id.clone(), 1, 2)).unwrap(), b"one\r\ntwo\n");
    assert_eq!(cut(Pointer::lines(id.clone(), 3, 3)).unwrap(), b"three");
    assert_eq!(cut(Pointer::bytes(id.clone(), 3..6)).unwrap(), b"\r\nt");
    let error = cut(Pointer::lines(id.clone(), 2, 9)).unwrap_err();
    assert!(error.to_string().contains("ask for lines within 1:3"), "{error}");
    let error = cut(Pointer::bytes(id, 0..99)).unwrap_err();
    assert!(error.to_string().contains("ask for bytes within 0:14"), "{error}");
}

fn what_is_not_a_pointer_of_the_user_is_refused(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let stored = user.put(b"text", "text", "").unwrap();
    let forged = Pointer::whole(PointerKey::new([9; 32]).mint(stored.content));
    assert!(matches!(user.resolve(&forged), Err(StoreError::NotOurs { .. })));
    let never_put = Pointer::whole(user.key().mint(ContentHash::of(b"never put")));
    assert!(matches!(user.resolve(&never_put), Err(StoreError::UnknownPointer { .. })));
}

fn users_are_walls(open: Factory) {
    let home = Home::new();
    let ada = open(&home);
    let eve = home.user("eve");
    let stored = ada.put(b"a secret", "text", "").unwrap();
    let recorded = ada.record_run(run(ada.store(), "r", b"{}", &[])).unwrap();
    // Another user's pointer looks exactly like one that nobody ever minted.
    let invented = Pointer::whole(PointerKey::new([9; 32]).mint(stored.content));
    let (theirs, nobodys) = (eve.resolve(&stored.pointer_id), eve.resolve(&invented));
    let plain = |result: Result<Vec<u8>, StoreError>, pointer: &Pointer| {
        result.unwrap_err().to_string().replace(&pointer.to_string(), "P")
    };
    assert_eq!(plain(theirs, &stored.pointer_id), plain(nobodys, &invented));
    assert!(matches!(eve.blob(stored.content), Err(StoreError::MissingBlob { .. })));
    assert!(matches!(eve.run(&recorded.run_id), Err(StoreError::UnknownRun { .. })));
    assert!(eve.runs(&RunFilter::default()).unwrap().is_empty());
    assert!(eve.run_pointers(&recorded.run_id).unwrap().is_empty());
}

fn a_run_is_recorded_with_everything_it_names(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let id = user.put(b"one\ntwo\n", "text", "").unwrap().pointer_id.id;
    let pointers = [Pointer::whole(id.clone()), Pointer::lines(id, 2, 2)];
    let recorded =
        user.record_run(run(user.store(), "planner_chat", b"{\"budget\":12000}", &pointers)).unwrap();
    let read = open(&home).run(&recorded.run_id).unwrap();
    assert_eq!(read, recorded);
    assert_eq!(open(&home).blob(read.receipt).unwrap(), b"{\"budget\":12000}");
    assert_eq!(open(&home).blob(read.output.unwrap()).unwrap(), b"the answer");
    assert_eq!(open(&home).run_pointers(&read.run_id).unwrap(), pointers);
    let json = serde_json::to_value(&read).unwrap();
    assert_eq!(json["tokens"]["total"], 4570);
    assert_eq!(json["timestamp"], "2026-11-21T00:00:00.000Z");
    assert_eq!(json["turn_id"], "turn_000042");
}

fn a_run_that_names_what_is_not_there_is_not_recorded(open: Factory) {
    let home = Home::new();
    let user = open(&home);
    let nowhere = [Pointer::whole(user.key().mint(ContentHash::of(b"never put")))];
    let refused = user.record_run(run(user.store(), "r", b"{}", &nowhere));
    assert!(matches!(refused, Err(StoreError::UnknownPointer { .. })));
    assert!(user.runs(&RunFilter::default()).unwrap().is_empty());
    let mut twice = run(user.store(), "r", b"{}", &[]);
    user.record_run(twice.clone()).unwrap();
    twice.facts = facts("other");
    assert!(matches!(user.record_run(twice), Err(StoreError::RunExists { .. })));
    assert_eq!(user.runs(&RunFilter::default()).unwrap().len(), 1);
}

fn runs_are_listed_newest_first_and_filtered(open: Factory) {
    let home = Home::new();
    let mut ids = Vec::new();
    for (at, recipe) in ["a", "b", "a", "c"].into_iter().enumerate() {
        home.clock.set(1_000 * at as u64);
        let user = open(&home);
        ids.push(user.record_run(run(user.store(), recipe, b"{}", &[])).unwrap().run_id);
    }
    ids.reverse();
    let list = |filter: RunFilter| -> Vec<_> {
        open(&home).runs(&filter).unwrap().into_iter().map(|run| run.run_id).collect()
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
    let stored = user.put(b"kept", "text", "").unwrap();
    let recorded = user.record_run(run(user.store(), "r", b"{}", &[])).unwrap();
    let (name, key) = (user.user().to_owned(), user.key().clone());
    drop(user);
    let again = home.reopen().user(&name).unwrap();
    assert!(key.owns(&again.put(b"new", "text", "").unwrap().pointer_id.id), "the key stays");
    assert_eq!(again.resolve(&stored.pointer_id).unwrap(), b"kept");
    assert_eq!(again.run(&recorded.run_id).unwrap(), recorded);
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
            let stored = users[*owner].put(content, "text", "").unwrap();
            owned.insert((*owner, content.clone()));
            pointers.push((*owner, content, stored));
        }
        for (owner, content, stored) in &pointers {
            for (reader, user) in users.iter().enumerate() {
                let may = owned.contains(&(reader, (*content).clone()));
                prop_assert_eq!(user.resolve(&stored.pointer_id).is_ok(), reader == *owner);
                prop_assert_eq!(user.blob(stored.content).is_ok(), may);
                let own = Pointer::whole(user.key().mint(stored.content));
                prop_assert_eq!(user.resolve(&own).ok(), may.then(|| (*content).clone()));
            }
        }
    }
}
