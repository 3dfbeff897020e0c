//! What expires when, what stays, and that neither a crash nor a collection under way loses anything else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use common::{Home, exchange, message, run};
use larder_store::{
    Collected, DocumentPlace, Documents, Erasure, NewConversation, NewExchange, NewMessage, NewReply,
    ReplacedMessage, Retention, RetentionClass, Store, StoreError, StoredPointer, Timestamp, Track,
    TranscriptMessage,
};
use larder_text::hash::ContentHash;
use larder_vault::Mode;
use serde_json::Value;

const START: u64 = 1_795_219_200_000;
const DAY: u64 = 86_400_000;
/// The defaults of the settings.
const RETENTION: Retention = Retention {
    originals: Some(Duration::from_millis(30 * DAY)),
    transcripts: Some(Duration::from_millis(30 * DAY)),
    records: Some(Duration::from_millis(90 * DAY)),
    conversations: None,
    max_bytes: Some(20_000_000_000),
};
const FOR_EVER: Retention =
    Retention { originals: None, transcripts: None, records: None, conversations: None, max_bytes: None };

fn documents(home: &Home) -> Documents {
    let place = DocumentPlace::Folder(home.dir.path().join("documents"));
    let documents = Documents::open(&home.store, &place).unwrap();
    documents.recover().unwrap();
    documents
}

fn collect(home: &Home, retention: &Retention) -> BTreeMap<RetentionClass, Collected> {
    let documents = documents(home);
    let preview = documents.preview_collection(retention).unwrap();
    let report = documents.collect(retention, &|_| true).unwrap();
    assert_eq!((&preview.by_age, &preview.by_size), (&report.by_age, &report.by_size), "as previewed");
    assert!(home.store.verify().unwrap().is_clean());
    let mut all = report.by_age;
    for (class, size) in report.by_size {
        let sum = all.entry(class).or_default();
        (sum.items, sum.bytes) = (sum.items + size.items, sum.bytes + size.bytes);
    }
    all
}

/// Text that does not compress, of `bytes` bytes.
fn noise(seed: u64, bytes: usize) -> String {
    let digests = (0_u64..).map(|at| blake3_hex(seed, at));
    let mut text: String = digests.take(bytes / 64 + 1).collect();
    text.truncate(bytes);
    text
}

fn blake3_hex(seed: u64, at: u64) -> String {
    ContentHash::new(format!("{seed}/{at}").as_bytes()).to_hex()
}

fn insert(home: &Home, content: &str) -> StoredPointer {
    home.user("ada").pointers().insert(content.as_bytes(), "tool_result", "a log").unwrap()
}

fn uses(home: &Home, id: &str, session: Option<&str>, used: &[&str]) {
    let time = home.store.now();
    let new = NewExchange { time, session, used, ..exchange(id) };
    home.store.record_exchanges(&[(&home.user("ada"), new)]).unwrap();
}

/// The files of contents.
fn files(home: &Home) -> Vec<PathBuf> {
    let mut folders = vec![home.path().join("blobs")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// Bytes in the files of contents that were not overwritten.
fn bytes_left(home: &Home) -> usize {
    let left = |path: &PathBuf| std::fs::read(path).unwrap().iter().filter(|byte| **byte != 0).count();
    files(home).iter().map(left).sum()
}

#[test]
fn an_original_expires_after_its_last_use_and_its_pointer_says_when() {
    let home = Home::new();
    let large = [insert(&home, &noise(1, 80_000)), insert(&home, &noise(2, 80_000))];
    let small = [insert(&home, &noise(3, 800)), insert(&home, &noise(4, 800))];
    home.clock.set(START + 29 * DAY);
    let used = [large[0].pointer_id.id.name(), small[0].pointer_id.id.name()];
    uses(&home, "r1", None, &used);
    assert!(collect(&home, &RETENTION).is_empty(), "none is 30 days old");
    home.clock.set(START + 31 * DAY);
    let gone = collect(&home, &RETENTION);
    let Collected { items, bytes } = gone[&RetentionClass::Originals];
    assert!(items == 2 && bytes > 30_000, "{gone:?}");
    let user = home.user("ada");
    for at in 0..2 {
        let expired = [&large[1], &small[1]][at];
        let error = user.pointers().resolve(&expired.pointer_id).unwrap_err();
        assert!(matches!(error, StoreError::Expired { .. }));
        assert!(error.to_string().contains("expired on 2026-12-22"), "{error}");
        assert!(matches!(user.contents().get(expired.content), Err(StoreError::MissingBlob { .. })));
        user.pointers().resolve(&[&large[0], &small[0]][at].pointer_id).unwrap();
    }
    assert_eq!(files(&home).len(), 1);
    assert!(
        (40_000..46_000).contains(&bytes_left(&home)),
        "one of 80 kB and one of 800 B: {}",
        bytes_left(&home)
    );
    assert_eq!(home.store.verify().unwrap().tombstones, 2);
    let again = insert(&home, &noise(2, 80_000));
    assert_eq!(again.pointer_id, large[1].pointer_id);
    user.pointers().resolve(&again.pointer_id).unwrap();
    assert_eq!(home.store.verify().unwrap().tombstones, 1);
    assert!(home.store.user("eve").unwrap().pointers().resolve(&large[1].pointer_id).is_err());
}

#[test]
fn the_date_of_expiry_is_kept_as_long_as_records_and_transcripts_that_name_it() {
    let home = Home::new();
    let user = home.user("ada");
    let [stored, unnamed] = [1, 2].map(|seed| insert(&home, &noise(seed, 800)));
    let named = TranscriptMessage { pointers: std::slice::from_ref(&stored.pointer_id), ..message(b"raw") };
    user.transcripts().append("s", &[named], None).unwrap();
    let retention = Retention { transcripts: None, ..RETENTION };
    home.clock.set(START + 31 * DAY);
    collect(&home, &retention);
    home.clock.set(START + 120 * DAY);
    assert!(collect(&home, &retention).is_empty());
    let resolve = |stored: &StoredPointer| user.pointers().resolve(&stored.pointer_id).unwrap_err();
    assert!(matches!(resolve(&unnamed), StoreError::Expired { .. }));
    home.clock.set(START + 122 * DAY);
    assert_eq!(collect(&home, &retention)[&RetentionClass::Records].items, 1);
    assert!(matches!(resolve(&unnamed), StoreError::UnknownPointer { .. }));
    assert!(matches!(resolve(&stored), StoreError::Expired { .. }));
    collect(&home, &RETENTION);
    assert_eq!(collect(&home, &RETENTION)[&RetentionClass::Records].items, 1, "once the transcript has gone");
    assert_eq!(home.store.verify().unwrap().tombstones, 0);
    // A line that is written now must name what is known.
    let named = TranscriptMessage { pointers: std::slice::from_ref(&stored.pointer_id), ..message(b"more") };
    let refused = user.transcripts().append("t", &[named], None);
    assert!(matches!(refused, Err(StoreError::UnknownPointer { .. })), "{refused:?}");
}

#[test]
fn a_lost_original_is_no_expired_one_where_records_are_kept_for_a_shorter_time() {
    let home = Home::new();
    let days = |days| Some(Duration::from_millis(days * DAY));
    let retention = Retention { originals: days(90), records: days(30), ..FOR_EVER };
    insert(&home, "expires");
    home.clock.set(START + 60 * DAY);
    let stored = insert(&home, "is lost");
    let named = TranscriptMessage { pointers: std::slice::from_ref(&stored.pointer_id), ..message(b"raw") };
    home.user("ada").transcripts().append("s", &[named], None).unwrap();
    for (day, class) in [(91, RetentionClass::Originals), (122, RetentionClass::Records)] {
        home.clock.set(START + day * DAY);
        assert_eq!(collect(&home, &retention)[&class].items, 1);
    }
    let index = rusqlite::Connection::open(home.path().join("index.sqlite")).unwrap();
    index.execute("DELETE FROM pointers", []).unwrap();
    let problems = home.store.verify().unwrap().problems;
    assert!(
        problems.len() == 1 && problems[0].to_string().contains("nothing is stored under it"),
        "{problems:?}"
    );
    index.execute("DELETE FROM transcript_pointers", []).unwrap();
    assert!(home.store.verify().unwrap().is_clean(), "as an earlier version forgot it");
}

#[test]
fn at_the_size_limit_dates_of_expiry_make_room() {
    let home = Home::new();
    insert(&home, &noise(1, 800));
    home.clock.set(START + 31 * DAY);
    collect(&home, &RETENTION);
    home.clock.set(START + 33 * DAY);
    documents(&home).collect(&Retention { max_bytes: Some(1), ..FOR_EVER }, &|_| true).unwrap();
    assert_eq!(home.store.verify().unwrap().tombstones, 0);
}

#[test]
fn what_a_document_refers_to_stays_as_long_as_the_document_does() {
    let home = Home::new();
    let written = insert(&home, &noise(1, 40_000));
    let restored = insert(&home, &noise(2, 40_000));
    let drafted = insert(&home, &noise(3, 400));
    insert(&home, &noise(4, 400));
    let all = documents(&home);
    let ada = all.user("ada").unwrap();
    let memo = |pointer: &StoredPointer| format!("The log is at {}#L1-2.\n", pointer.pointer_id);
    let preferences = ada.place().preferences();
    ada.files().write(&preferences, memo(&written).as_bytes(), None).unwrap();
    let draft = ada
        .drafts()
        .begin_with(larder_vault::Mode::Chat, None, "why?", |draft| {
            draft.files.insert("context.md".to_owned(), memo(&drafted).into_bytes());
        })
        .unwrap();
    // Another program restores a document from a backup.
    let folder = home.dir.path().join("documents").join(ada.place().preferences().folder());
    std::fs::write(folder.join("facts.md"), memo(&restored)).unwrap();
    all.reindex(&|_| {}).unwrap();
    home.clock.set(START + 400 * DAY);
    assert_eq!(collect(&home, &RETENTION)[&RetentionClass::Originals].items, 1);
    let tiny = Retention { max_bytes: Some(1), ..RETENTION };
    assert!(documents(&home).collect(&tiny, &|_| true).unwrap().over_limit, "the rest may not go");
    for held in [&written, &restored, &drafted] {
        home.user("ada").pointers().resolve(&held.pointer_id).unwrap();
    }
    ada.drafts().discard(draft.number).unwrap();
    let seen = ContentHash::new(memo(&written).as_bytes());
    ada.files().write(&preferences, b"Nothing.\n", Some(seen)).unwrap();
    assert_eq!(collect(&home, &RETENTION)[&RetentionClass::Originals].items, 2);
    home.user("ada").pointers().resolve(&restored.pointer_id).unwrap();
    std::fs::remove_file(folder.join("facts.md")).unwrap();
    all.reindex(&|_| {}).unwrap();
    assert_eq!(collect(&home, &RETENTION)[&RetentionClass::Originals].items, 1);
}

#[test]
fn a_conversation_expires_whole_and_shared_contents_stay_while_they_are_named() {
    let home = Home::new();
    let user = home.user("ada");
    let (shared, own) = (noise(1, 50_000), noise(2, 50_000));
    let history = [message(shared.as_bytes()), message(own.as_bytes())];
    user.transcripts().append("old", &history, Some(b"a reply")).unwrap();
    user.transcripts().append("used", &history[..1], None).unwrap();
    user.round_trips().insert("old", &[(vec!["key".to_owned()], "{}".to_owned())]).unwrap();
    home.clock.set(START + 20 * DAY);
    uses(&home, "r1", Some("used"), &[]);
    home.clock.set(START + 31 * DAY);
    let gone = collect(&home, &RETENTION);
    assert_eq!(gone[&RetentionClass::Transcripts].items, 1);
    assert!(user.transcripts().lines("old").unwrap().is_empty());
    assert!(user.round_trips().list("old").unwrap().is_empty());
    assert_eq!(user.transcripts().lines("used").unwrap().len(), 1);
    assert_eq!(user.contents().get(ContentHash::new(shared.as_bytes())).unwrap(), shared.as_bytes());
    assert!(user.contents().get(ContentHash::new(own.as_bytes())).is_err());
    assert!((25_000..30_000).contains(&bytes_left(&home)), "{}", bytes_left(&home));
}

#[test]
fn a_transcript_outlives_the_originals_it_points_to() {
    let home = Home::new();
    let stored = insert(&home, &noise(1, 50_000));
    let pointers = [stored.pointer_id.clone()];
    let raw = b"a message";
    let sent = TranscriptMessage {
        identity: ContentHash::new(raw),
        role: "user",
        raw,
        sent: Some(b"condensed"),
        pointers: &pointers,
    };
    home.user("ada").transcripts().append("s", &[sent], None).unwrap();
    home.clock.set(START + 31 * DAY);
    let gone = collect(&home, &Retention { transcripts: None, ..RETENTION });
    assert_eq!(gone.keys().collect::<Vec<_>>(), [&RetentionClass::Originals]);
    assert_eq!(home.user("ada").transcripts().lines("s").unwrap().len(), 1);
}

#[test]
fn records_expire_with_their_receipts_and_hold_no_original_back() {
    let home = Home::new();
    let stored = insert(&home, &noise(1, 50_000));
    let user = home.user("ada");
    let receipt = noise(2, 50_000);
    let recorded = user
        .runs()
        .record(run(&home.store, "r", receipt.as_bytes(), std::slice::from_ref(&stored.pointer_id)))
        .unwrap();
    uses(&home, "r1", None, &[]);
    home.clock.set(START + 40 * DAY);
    let gone = collect(&home, &RETENTION);
    assert_eq!(gone.keys().collect::<Vec<_>>(), [&RetentionClass::Originals]);
    assert_eq!(user.runs().pointers(&recorded.run_id).unwrap().len(), 1, "the record still names it");
    home.clock.set(START + 91 * DAY);
    assert_eq!(collect(&home, &RETENTION)[&RetentionClass::Records].items, 2);
    assert!(matches!(user.runs().get(&recorded.run_id), Err(StoreError::UnknownRun { .. })));
    assert!(user.exchanges().get("r1").unwrap().is_none());
    assert!(bytes_left(&home) < 100, "only lengths");
}

#[test]
fn at_the_size_limit_the_least_recently_used_goes_but_nothing_of_a_day() {
    let home = Home::new();
    let stored: Vec<_> = (0..8)
        .map(|day| {
            home.clock.set(START + day * DAY);
            insert(&home, &noise(day, 100_000))
        })
        .collect();
    uses(&home, "r1", None, &[stored[0].pointer_id.id.name()]);
    home.clock.set(START + 8 * DAY);
    let before = documents(&home).preview_collection(&FOR_EVER).unwrap().bytes;
    let some = Retention { max_bytes: Some(before - 150_000), ..FOR_EVER };
    let gone = collect(&home, &some);
    let items = gone[&RetentionClass::Originals].items;
    assert!((2..6).contains(&items), "{gone:?}");
    let user = home.user("ada");
    let kept: Vec<_> = (0..8).filter(|at| user.pointers().resolve(&stored[*at].pointer_id).is_ok()).collect();
    assert!(kept.contains(&0) && !kept.contains(&1) && kept.contains(&7), "{kept:?}");
    let report = documents(&home).collect(&Retention { max_bytes: Some(1), ..FOR_EVER }, &|_| true).unwrap();
    assert!(report.over_limit);
    home.clock.set(START + 8 * DAY);
    user.pointers().resolve(&stored[0].pointer_id).unwrap();
    user.pointers().resolve(&stored[7].pointer_id).unwrap();
}

#[test]
fn a_preview_counts_at_the_size_limit_what_goes_at_once() {
    for (originals, gone) in [(8, 8), (70, 64)] {
        let home = Home::new();
        for seed in 0..originals {
            insert(&home, &noise(seed, 5_000));
        }
        home.clock.set(START + 8 * DAY);
        let before = documents(&home).preview_collection(&FOR_EVER).unwrap().bytes;
        let some = Retention { max_bytes: Some(before - 3_000), ..FOR_EVER };
        assert_eq!(collect(&home, &some)[&RetentionClass::Originals].items, gone);
    }
}

#[test]
fn above_the_size_limit_nothing_new_is_taken_until_there_is_room() {
    let home = Home::new();
    insert(&home, "used today");
    let tiny = Retention { max_bytes: Some(1), ..FOR_EVER };
    assert!(documents(&home).collect(&tiny, &|_| true).unwrap().over_limit);
    let owned = home.store.user("ada").unwrap();
    let refused = owned.pointers().insert(b"more", "text", "").unwrap_err();
    assert!(matches!(refused, StoreError::OverLimit) && refused.is_unwritable(), "{refused}");
    collect(&home, &FOR_EVER);
    insert(&home, "more");
}

#[test]
fn above_the_size_limit_no_run_turn_or_message_is_added_and_what_is_under_way_ends() {
    fn refused<T: std::fmt::Debug>(done: Result<T, StoreError>) {
        assert!(matches!(done, Err(StoreError::OverLimit)), "{done:?}");
    }
    let home = Home::new();
    let (ada, documents) = (home.user("ada"), documents(&home));
    let own = documents.user("ada").unwrap();
    let talks = ada.conversations();
    let participants = [("me".to_owned(), "ada".to_owned())];
    let new = NewConversation {
        kind: "talk",
        title: "",
        participants: &participants,
        invited: &[],
        state: &Value::Null,
    };
    let id = talks.create(&new).unwrap().id;
    let track = Track { conversation: &id, participant: "me" };
    let said = NewMessage { text: "hello", key: None, data: &Value::Null, chars: 100 };
    let keyed = NewMessage { key: Some("k"), ..said };
    let posted = talks.post(track, &keyed).unwrap();
    let draft = own.drafts().begin(Mode::Chat, None, "begun").unwrap();
    let tiny = Retention { max_bytes: Some(1), ..FOR_EVER };
    assert!(documents.collect(&tiny, &|_| true).unwrap().over_limit);

    refused(talks.create(&new));
    refused(talks.begin_session(track, &Value::Null, &Value::Null));
    refused(talks.post(track, &said));
    let none = Erasure::default();
    refused(talks.replace_last(track, posted.number, (Some("hi"), None), &Value::Null, 100, &none));
    refused(own.drafts().begin(Mode::Chat, None, "another"));
    refused(ada.runs().record(run(&home.store, "a/r", b"{}", &[])));

    assert_eq!(talks.post(track, &keyed).unwrap().number, posted.number, "it was posted before");
    let reply = NewReply {
        to: Some(posted.number),
        // Longer than what is kept without an original of its own.
        text: &"hello to you ".repeat(20),
        data: &Value::Null,
        state: &Value::Null,
        memory: &[],
        jobs: &[],
        costs: &[],
        chars: 100,
    };
    let answered = talks.answer(track, &reply).unwrap();
    let left = ReplacedMessage { number: answered.number, text: "hello".to_owned(), data: Value::Null };
    talks.erase(&Erasure { replace: vec![left], ..Erasure::default() }).unwrap();
    own.drafts().checkpoint(&draft).unwrap();

    documents.collect(&FOR_EVER, &|_| true).unwrap();
    talks.post(track, &said).unwrap();
    ada.runs().record(run(&home.store, "a/r", b"{}", &[])).unwrap();
    own.drafts().begin(Mode::Chat, None, "another").unwrap();
}

#[test]
fn a_collection_that_stops_anywhere_is_clean_and_the_next_one_goes_on() {
    let home = Home::new();
    let user = home.user("ada");
    for at in 0..150 {
        insert(&home, &noise(at, if at % 3 == 0 { 40_000 } else { 100 }));
    }
    user.transcripts().append("s", &[message(noise(0, 40_000).as_bytes())], None).unwrap();
    home.clock.set(START + 31 * DAY);
    let mut steps = 0;
    for allowed in 0.. {
        let left = std::cell::Cell::new(allowed);
        let go_on = |_: Duration| {
            left.set(left.get() - 1);
            left.get() >= 0
        };
        documents(&home).collect(&RETENTION, &go_on).unwrap();
        let report = home.store.verify().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        if left.get() >= 0 {
            break;
        }
        steps += 1;
    }
    assert!(steps > 1);
    assert!(bytes_left(&home) < 151 * 24, "only lengths");
    assert_eq!(home.store.verify().unwrap().tombstones, 150);
}

#[test]
fn a_content_that_gets_a_new_name_before_its_bytes_are_erased_stays() {
    let home = Home::new();
    let content = noise(1, 50_000);
    let stored = insert(&home, &content);
    home.clock.set(START + 31 * DAY);
    let store: &Store = &home.store;
    let go_on = |_: Duration| {
        store.user("ada").unwrap().pointers().insert(content.as_bytes(), "text", "").unwrap();
        true
    };
    documents(&home).collect(&RETENTION, &go_on).unwrap();
    assert_eq!(home.user("ada").pointers().resolve(&stored.pointer_id).unwrap(), content.as_bytes());
    assert!(store.verify().unwrap().is_clean());
    assert_eq!(store.now(), Timestamp::from_millis(START + 31 * DAY));
}

#[test]
fn a_segment_that_is_mostly_erased_is_rewritten_once_nobody_appends_to_it() {
    let home = Home::new();
    let first = home.reopen();
    let put = |store: &Store, seed: u64| {
        let content = noise(seed, 40_000);
        store.user("ada").unwrap().pointers().insert(content.as_bytes(), "tool_result", "a log").unwrap()
    };
    let stored: Vec<_> = (0..40).map(|seed| put(&first, seed)).collect();
    home.clock.set(START + 29 * DAY);
    uses(&home, "r1", None, &[stored[7].pointer_id.id.name(), stored[30].pointer_id.id.name()]);
    home.clock.set(START + 31 * DAY);
    assert_eq!(collect(&home, &RETENTION)[&RetentionClass::Originals].items, 38);
    assert_eq!(files(&home).len(), 1, "its process may append to it");
    drop(first);
    collect(&home, &RETENTION);
    let left = files(&home);
    assert!(left.len() == 1 && std::fs::metadata(&left[0]).unwrap().len() < 50_000, "{left:?}");
    for kept in [7, 30] {
        let content = home.user("ada").pointers().resolve(&stored[kept].pointer_id).unwrap();
        assert_eq!(content, noise(kept as u64, 40_000).as_bytes());
    }
    put(&home.store, 99);
    assert!(home.store.verify().unwrap().is_clean());
}

#[test]
fn an_expired_pointer_says_nothing_more_while_a_transcript_keeps_its_content() {
    let home = Home::new();
    let content = noise(1, 50_000);
    let stored = home.user("ada").pointers().insert(content.as_bytes(), "text", "MARK-7 is secret").unwrap();
    home.user("ada").transcripts().append("s", &[message(content.as_bytes())], None).unwrap();
    let marked = || {
        let has = |path: &PathBuf| std::fs::read(path).unwrap().windows(6).any(|bytes| bytes == b"MARK-7");
        files(&home).iter().any(has)
    };
    assert!(marked());
    home.clock.set(START + 31 * DAY);
    collect(&home, &Retention { transcripts: None, ..RETENTION });
    assert!(matches!(
        home.user("ada").pointers().resolve(&stored.pointer_id),
        Err(StoreError::Expired { .. })
    ));
    assert_eq!(home.user("ada").contents().get(stored.content).unwrap(), content.as_bytes());
    assert!(!marked());
}
