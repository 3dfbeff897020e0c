//! Conversations: posted and answered once, in order, by any process; seen by their users only; erased from every file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod common;

use std::path::Path;

use common::{Home, facts};
use larder_store::{
    ConversationCost, Conversations, Erasure, MemoryChange, MemoryFilter, MemoryKind, MemoryRecord,
    NewConversation, NewMessage, NewReply, NewRun, ReplacedMessage, Speaker, StoreError, Timestamp, Track,
    UserStore,
};
use serde_json::{Value, json};

/// A conversation of `me`, whose user is `user`, and of `you`, whose user is `other`.
fn begin(user: &UserStore, other: &str) -> String {
    let participants = [("me".to_owned(), user.user().to_owned()), ("you".to_owned(), other.to_owned())];
    let new = NewConversation {
        kind: "talk",
        title: "about us",
        participants: &participants,
        invited: &[],
        state: &json!({"n": 0}),
    };
    user.conversations().create(&new).unwrap().id
}

fn me(conversation: &str) -> Track<'_> {
    Track { conversation, participant: "me" }
}

fn post(user: &UserStore, track: Track<'_>, text: &str, key: Option<&str>) -> Result<u64, StoreError> {
    let new = NewMessage { text, key, data: &Value::Null, chars: 40 };
    user.conversations().post(track, &new).map(|message| message.number)
}

fn answer(
    user: &UserStore,
    track: Track<'_>,
    to: u64,
    text: &str,
    memory: &[MemoryRecord],
) -> Result<u64, StoreError> {
    let new = NewReply {
        to: Some(to),
        text,
        data: &json!({"mode": "calm"}),
        state: &json!({"n": 1}),
        memory,
        jobs: &[],
        chars: 40,
        costs: &[ConversationCost::default()],
    };
    user.conversations().answer(track, &new).map(|message| message.number)
}

fn record(kind: MemoryKind, id: &str, consent: Option<&str>, data: Value) -> MemoryRecord {
    MemoryRecord {
        number: 0,
        kind,
        id: id.to_owned(),
        participant: "me".to_owned(),
        conversation: None,
        session: None,
        consent: consent.map(str::to_owned),
        data,
        vector: None,
        created: Timestamp::from_millis(0),
        ended: None,
    }
}

fn put(talks: Conversations<'_>, records: &[MemoryRecord]) {
    talks.memory().apply(&MemoryChange { put: records.to_vec(), ..MemoryChange::default() }).unwrap();
}

fn kept(talks: Conversations<'_>, kind: MemoryKind) -> Vec<String> {
    let filter = MemoryFilter { kind: Some(kind), participant: Some("me"), ..MemoryFilter::default() };
    talks.memory().list(&filter).unwrap().into_iter().map(|record| record.id).collect()
}

#[test]
fn a_message_is_posted_once_and_answered_once() {
    let home = Home::new();
    let ada = home.user("ada");
    let id = begin(&ada, "ada");
    let first = post(&ada, me(&id), "hello", Some("k1")).unwrap();
    assert_eq!(post(&home.reopen().user("ada").unwrap(), me(&id), "hello", Some("k1")).unwrap(), first);
    let taken = post(&ada, me(&id), "another", Some("k1")).unwrap_err();
    assert!(matches!(&taken, StoreError::KeyTaken { .. }) && taken.to_string().contains("k1"), "{taken}");
    let second = post(&ada, me(&id), "are you there?", None).unwrap();
    let talks = ada.conversations();
    let waiting: Vec<_> = talks.pending(me(&id)).unwrap().iter().map(|message| message.number).collect();
    assert_eq!(waiting, [first, second]);
    let reply = answer(&ada, me(&id), first, "hello to you", &[]).unwrap();
    assert!(matches!(answer(&ada, me(&id), first, "again", &[]), Err(StoreError::Answered { .. })));
    assert!(matches!(answer(&ada, me(&id), reply, "to itself", &[]), Err(StoreError::Answered { .. })));
    assert_eq!(talks.reply_to(me(&id), first).unwrap().unwrap().number, reply);
    assert_eq!(talks.participant(me(&id)).unwrap().state, json!({"n": 1}));
    let said = talks.messages(me(&id), 1, 0..u64::MAX).unwrap();
    assert_eq!(
        said.iter().map(|message| &*message.text).collect::<Vec<_>>(),
        ["hello", "hello to you", "are you there?"]
    );
    assert_eq!(said[1].speaker, Speaker::Assistant);
    assert_eq!(talks.messages(me(&id), 1, second..reply).unwrap().len(), 1);
}

#[test]
fn a_long_message_is_an_original_that_does_not_expire() {
    let home = Home::new();
    let ada = home.user("ada");
    let id = begin(&ada, "ada");
    let long = "word ".repeat(20);
    let number = post(&ada, me(&id), &long, None).unwrap();
    let message = ada.conversations().get_message(me(&id), number).unwrap();
    let pointer = message.pointer.unwrap();
    home.clock.set(1_795_219_200_000 + 400 * 86_400_000);
    let documents = larder_store::Documents::open(
        &home.store,
        &larder_store::DocumentPlace::Folder(home.path().join("documents")),
    )
    .unwrap();
    let day = std::time::Duration::from_secs(86_400);
    let retention = larder_store::Retention { originals: Some(day), ..larder_store::Retention::default() };
    documents.collect(&retention, &|_| true).unwrap();
    assert_eq!(ada.pointers().resolve(&pointer).unwrap(), long.as_bytes());
}

#[test]
fn what_the_text_of_a_message_names_lives_as_long_as_the_message() {
    let home = Home::new();
    let ada = home.user("ada");
    let id = begin(&ada, "ada");
    let insert = |text: &[u8]| ada.pointers().insert(text, "text", "").unwrap().pointer_id;
    let named = [insert(b"asked for"), insert(b"answered with"), insert(b"no longer named")];
    let asked = post(&ada, me(&id), &format!("What does {} say?", named[0]), None).unwrap();
    let said = format!("See larder://{}#L2, and {}.", named[1], named[2]);
    let reply = answer(&ada, me(&id), asked, &said, &[]).unwrap();
    let text = format!("See larder://{}#L2.", named[1]);
    let replaced = ReplacedMessage { number: reply, text, data: Value::Null };
    ada.conversations().erase(&Erasure { replace: vec![replaced], ..Erasure::default() }).unwrap();
    // A run that made one of them is erased; the text of another message refers to it still.
    let run = ada.runs().record(common::run(&home.store, "a/r", b"{}", &named[..1])).unwrap();
    ada.conversations().erase(&Erasure { runs: vec![run.run_id], ..Erasure::default() }).unwrap();
    let day = |day: u64| home.clock.set(1_795_219_200_000 + day * 86_400_000);
    let left = || {
        let place = larder_store::DocumentPlace::Folder(home.path().join("documents"));
        let documents = larder_store::Documents::open(&home.store, &place).unwrap();
        let keep = Some(std::time::Duration::from_hours(48));
        let retention = larder_store::Retention { originals: keep, ..larder_store::Retention::default() };
        documents.collect(&retention, &|_| true).unwrap();
        [0, 1, 2].map(|at: usize| ada.pointers().get(&named[at]).is_ok())
    };
    day(400);
    assert_eq!(left(), [true, true, false]);
    ada.conversations().erase(&Erasure { messages: vec![asked, reply], ..Erasure::default() }).unwrap();
    assert_eq!(left(), [false; 3]);
}

#[test]
fn nothing_of_a_track_is_seen_by_another_user() {
    let home = Home::new();
    let (ada, eve) = (home.user("ada"), home.user("eve"));
    let id = begin(&ada, "eve");
    let number = post(&ada, me(&id), "a secret", Some("k")).unwrap();
    let foreign = eve.conversations();
    let unknown = |error: StoreError| matches!(error, StoreError::UnknownConversation { .. });
    assert!(unknown(post(&eve, me(&id), "I am Ada", Some("k")).unwrap_err()));
    assert!(unknown(foreign.set_state(me(&id), &Value::Null).unwrap_err()));
    assert!(unknown(foreign.begin_session(me(&id), &Value::Null, &Value::Null).unwrap_err()));
    assert!(unknown(answer(&eve, me(&id), number, "no", &[]).unwrap_err()));
    assert!(foreign.messages(me(&id), 1, 0..u64::MAX).unwrap().is_empty());
    assert!(foreign.pending(me(&id)).unwrap().is_empty() && foreign.sessions(me(&id)).unwrap().is_empty());
    assert!(matches!(foreign.get_message(me(&id), number), Err(StoreError::UnknownMessage { .. })));
    let you = Track { conversation: &id, participant: "you" };
    assert!(matches!(foreign.get_message(you, number), Err(StoreError::UnknownMessage { .. })));
    foreign
        .erase(&Erasure {
            messages: vec![number],
            tracks: vec![(id.clone(), "me".into())],
            ..Erasure::default()
        })
        .unwrap();
    assert_eq!(ada.conversations().messages(me(&id), 1, 0..u64::MAX).unwrap().len(), 1);
    // That the conversation exists is known to those who take part, and nothing of what others do in it.
    let seen = foreign.get(&id).unwrap();
    assert_eq!((seen.participants[0].session, &seen.participants[0].state), (0, &Value::Null));
    let (none, missing) = (home.user("bob").conversations().get(&id), foreign.get("conv-none"));
    let text = |error: StoreError| error.to_string().replace(&id, "ID").replace("conv-none", "ID");
    assert_eq!(text(none.unwrap_err()), text(missing.unwrap_err()));
}

#[test]
fn sessions_begin_explicitly_and_the_last_message_can_be_replaced() {
    let home = Home::new();
    let ada = home.user("ada");
    let talks = ada.conversations();
    let id = begin(&ada, "ada");
    let first = post(&ada, me(&id), "one", None).unwrap();
    answer(&ada, me(&id), first, "reply to one", &[]).unwrap();
    assert_eq!(talks.begin_session(me(&id), &json!({"stage": "inner"}), &json!({"n": 5})).unwrap(), 2);
    let second = post(&ada, me(&id), "two", Some("k")).unwrap();
    answer(&ada, me(&id), second, "reply to two", &[]).unwrap();
    let reply = talks.reply_to(me(&id), second).unwrap().unwrap().number;
    let turn = Erasure { messages: vec![second, reply], ..Erasure::default() };
    // What jobs find in the messages after that goes, too.
    let found = |id, message: u64| record(MemoryKind::Fact, id, None, json!({"message": message}));
    put(talks, &[found("f1", first), found("f2", second)]);
    let again = talks
        .replace_last(me(&id), second, (Some("two, rather"), None), &json!({"n": 5}), 40, &turn)
        .unwrap();
    assert!(again.pending && again.number > second && again.session == 2);
    let said = |session| -> Vec<String> {
        talks
            .messages(me(&id), session, 0..u64::MAX)
            .unwrap()
            .into_iter()
            .map(|message| message.text)
            .collect()
    };
    assert_eq!(kept(talks, MemoryKind::Fact), ["f1"]);
    assert_eq!(said(2), ["two, rather"]);
    assert_eq!(said(1), ["one", "reply to one"]);
    assert_eq!(talks.sessions(me(&id)).unwrap()[1].opening, json!({"stage": "inner"}));
    assert_eq!(talks.participant(me(&id)).unwrap().state, json!({"n": 5}));
}

#[test]
fn one_handle_at_a_time_answers_in_a_track() {
    let home = Home::new();
    let ada = home.user("ada");
    let id = begin(&ada, "ada");
    let held = ada.conversations().take_lease(me(&id)).unwrap();
    let other = home.reopen().user("ada").unwrap();
    assert!(held.is_some() && other.conversations().take_lease(me(&id)).unwrap().is_none());
    let you = Track { conversation: &id, participant: "you" };
    assert!(other.conversations().take_lease(you).unwrap().is_some());
    drop(held);
    assert!(other.conversations().take_lease(me(&id)).unwrap().is_some());
}

#[test]
fn a_record_keeps_the_moment_of_its_first_writing() {
    let home = Home::new();
    let ada = home.user("ada");
    let talks = ada.conversations();
    let at = |millis| MemoryRecord {
        created: Timestamp::from_millis(millis),
        ..record(MemoryKind::Fact, "f", None, Value::Null)
    };
    let kept = || talks.memory().list(&MemoryFilter::default()).unwrap()[0].created;
    put(talks, &[at(5)]);
    put(talks, &[at(7)]);
    assert_eq!(kept(), Timestamp::from_millis(5));
}

#[test]
fn what_is_made_under_a_consent_that_ended_is_not_kept() {
    let home = Home::new();
    let ada = home.user("ada");
    let talks = ada.conversations();
    let id = begin(&ada, "ada");
    put(talks, &[record(MemoryKind::Fact, "f0", Some("c1"), Value::Null)]);
    put(talks, &[record(MemoryKind::Consent, "c1", None, Value::Null)]);
    put(talks, &[record(MemoryKind::Fact, "f1", Some("c1"), Value::Null)]);
    let ended = MemoryRecord {
        ended: Some(home.store.now()),
        ..record(MemoryKind::Consent, "c1", None, Value::Null)
    };
    put(talks, &[ended]);
    put(talks, &[record(MemoryKind::Fact, "f2", Some("c1"), Value::Null)]);
    assert_eq!(kept(talks, MemoryKind::Fact), ["f1"]);
    // A reply that was on its way says that it was made under it, and the erasure is done once more.
    let number = post(&ada, me(&id), "hello", None).unwrap();
    let reply = answer(
        &ada,
        me(&id),
        number,
        "hi",
        &[record(MemoryKind::Origin, "f1", Some("c1"), json!({"item": "f1"}))],
    )
    .unwrap();
    assert_eq!(kept(talks, MemoryKind::Origin), [format!("{reply}/f1")]);
    let jobs = ada.jobs().list().unwrap();
    assert_eq!(
        jobs.iter().map(|job| (&*job.kind, &job.payload)).collect::<Vec<_>>(),
        [("conversation_erase", &json!({"consent": "c1"}))]
    );
}

#[test]
fn only_those_who_are_named_are_given_what_is_shared() {
    let home = Home::new();
    let (ada, eve) = (home.user("ada"), home.user("eve"));
    let id = begin(&ada, "eve");
    let you = Track { conversation: &id, participant: "you" };
    let share = |id_of: &str, data: Value| MemoryRecord {
        conversation: Some(id.clone()),
        ..record(MemoryKind::Share, id_of, None, data)
    };
    put(ada.conversations(), &[share("s1", json!({"text": "for you", "to": ["you"]}))]);
    put(ada.conversations(), &[share("s2", json!({"text": "for nobody", "to": []}))]);
    let given: Vec<_> =
        eve.conversations().shared_with(you).unwrap().into_iter().map(|given| given.id).collect();
    assert_eq!(given, ["s1"]);
    assert!(ada.conversations().shared_with(me(&id)).unwrap().is_empty());
    assert!(home.user("bob").conversations().shared_with(you).is_err());
    // A purpose needs all of them.
    put(ada.conversations(), &[share("r1", json!({"text": "mine", "to": [], "purpose": "compare"}))]);
    assert!(eve.conversations().released(you, "compare").unwrap().is_empty());
    let theirs = MemoryRecord {
        participant: "you".to_owned(),
        ..share("r2", json!({"text": "theirs", "to": [], "purpose": "compare"}))
    };
    put(eve.conversations(), &[theirs]);
    assert_eq!(eve.conversations().released(you, "compare").unwrap().len(), 2);
}

/// Whether any file below a folder has these bytes, also inside compressed frames.
fn found(folder: &Path, marker: &str) -> bool {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let has = |bytes: &[u8]| bytes.windows(marker.len()).any(|window| window == marker.as_bytes());
            let frame =
                |at: usize| zstd::stream::decode_all(&bytes[at..]).ok().or_else(|| first_frame(&bytes[at..]));
            let frames = bytes.windows(4).enumerate().filter(|(_, four)| *four == [0x28, 0xb5, 0x2f, 0xfd]);
            if has(&bytes) || frames.filter_map(|(at, _)| frame(at)).any(|content| has(&content)) {
                return true;
            }
        }
    }
    false
}

/// The content of a frame that other bytes follow.
fn first_frame(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let mut decoder = zstd::stream::Decoder::with_buffer(bytes).ok()?.single_frame();
    std::io::Read::read_to_end(&mut decoder, &mut content).ok()?;
    Some(content)
}

#[test]
fn what_is_erased_is_in_no_file() {
    let home = Home::new();
    let ada = home.user("ada");
    let talks = ada.conversations();
    let id = begin(&ada, "ada");
    let filler = "An ordinary sentence that says nothing in particular. ".repeat(40);
    let said = |what: &str| format!("MARKER-{what} {filler}");
    let asked = post(&ada, me(&id), &said("message"), None).unwrap();
    let run_id = home.store.new_run_id().unwrap();
    let kept_run = home.store.new_run_id().unwrap();
    let omitted = ada.pointers().insert(said("omitted").as_bytes(), "omitted", "parts").unwrap().pointer_id;
    for (run_id, what, pointers) in [(&run_id, "run", vec![omitted.clone()]), (&kept_run, "other", vec![])] {
        let (receipt, output) = (said(&format!("{what}-receipt")), said(&format!("{what}-output")));
        let run = NewRun {
            run_id: run_id.clone(),
            facts: facts("r"),
            receipt: receipt.as_bytes(),
            output: Some(output.as_bytes()),
            pointers: &pointers,
        };
        ada.runs().record(run).unwrap();
    }
    let reply = answer(&ada, me(&id), asked, &said("reply"), &[]).unwrap();
    put(talks, &[record(MemoryKind::Fact, "f1", None, json!({"fact": "MARKER-fact"}))]);
    let gone = ["message", "run-receipt", "run-output", "omitted", "reply", "fact"];
    for what in gone.iter().chain(&["other-receipt", "other-output"]) {
        assert!(found(home.path(), &format!("MARKER-{what}")), "{what} is there before");
    }
    let replaced = ReplacedMessage { number: reply, text: "Hello. [erased]".to_owned(), data: Value::Null };
    let erasure = Erasure {
        messages: vec![asked],
        replace: vec![replaced],
        records: vec![(MemoryKind::Fact, "f1".to_owned())],
        runs: vec![run_id.clone()],
        ..Erasure::default()
    };
    talks.erase(&erasure).unwrap();
    for what in gone {
        assert!(!found(home.path(), &format!("MARKER-{what}")), "{what} is erased");
    }
    for what in ["other-receipt", "other-output"] {
        assert!(found(home.path(), &format!("MARKER-{what}")), "{what} stays");
    }
    let left = talks.messages(me(&id), 1, 0..u64::MAX).unwrap();
    assert_eq!(left.iter().map(|message| &*message.text).collect::<Vec<_>>(), ["Hello. [erased]"]);
    let run = ada.runs().get(&run_id).unwrap();
    let notice: Value = serde_json::from_slice(&ada.contents().get(run.receipt).unwrap()).unwrap();
    assert!(notice["erased_on"].is_string() && notice["blake3"].is_string(), "{notice}");
    assert!(matches!(ada.pointers().resolve(&omitted), Err(StoreError::UnknownPointer { .. })));
    let erasures = ada.store().early_erasures().unwrap();
    assert!(erasures > 0, "another process must not believe that it is stored");
    assert!(home.store.verify().unwrap().is_clean());
    // And everything of a track, and of a conversation.
    post(&ada, me(&id), &said("second"), None).unwrap();
    talks.erase(&Erasure { conversations: vec![id.clone()], ..Erasure::default() }).unwrap();
    assert!(
        !found(home.path(), "MARKER-second") && talks.get(&id).is_err() && talks.list().unwrap().is_empty()
    );
}
