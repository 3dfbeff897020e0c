//! Memory with consent: nothing crosses a session without one, and what was made under one that is revoked is in no file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

use std::path::Path;

use larder_conversation::kind::{Category, MemoryRules};
use larder_conversation::memory::{
    EVERYTHING, Eraser, FactDiff, FactScope, FactUpsert, PersonMemory, Sought,
};
use larder_store::{
    ERASE_JOB, MemoryFilter, MemoryKind, MemoryRecord, NewConversation, NewMessage, NewReply, NewRun,
    RunFacts, Store, StoreError, StoreOptions, Track, UserStore,
};
use larder_text::tokens::Counter;
use serde_json::{Value, json};

fn rules() -> MemoryRules {
    let category =
        |name: &str| Category { name: name.to_owned(), about: format!("about {name}"), keep_days: None };
    MemoryRules {
        categories: vec![category("People"), category("Other")],
        facts: "converse/facts".to_owned(),
        facts_again: 4,
        consolidate: "converse/consolidate".to_owned(),
        formatter: None,
        validator: None,
        people: None,
        per_session: 4,
        per_profile: 3,
        profile_tokens: 500,
        shown_facts: 2,
        shown_preferences: 2,
        shown_reflections: 2,
    }
}

struct Home {
    dir: tempfile::TempDir,
    user: UserStore,
    talk: String,
    rules: MemoryRules,
    counter: Counter,
}

impl Home {
    /// A conversation of `me`, a participant of user ada, and of `you`, one of user bob.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let user = Store::open(dir.path(), StoreOptions::default()).unwrap().user("ada").unwrap();
        let participants = [("me".to_owned(), "ada".to_owned()), ("you".to_owned(), "bob".to_owned())];
        let new = NewConversation {
            kind: "talk",
            title: "",
            participants: &participants,
            invited: &[],
            state: &Value::Null,
        };
        let talk = user.conversations().create(&new).unwrap().id;
        Self { dir, user, talk, rules: rules(), counter: Counter::cl100k() }
    }

    fn track(&self) -> Track<'_> {
        Track { conversation: &self.talk, participant: "me" }
    }

    fn memory(&self) -> PersonMemory<'_> {
        PersonMemory {
            store: &self.user,
            track: self.track(),
            rules: &self.rules,
            counter: &self.counter,
            since: None,
        }
    }

    fn begin_session(&self) -> u64 {
        self.user.conversations().begin_session(self.track(), &Value::Null, &Value::Null).unwrap()
    }

    /// A message and its reply, by a recorded run; returns the number of the message.
    fn turn(&self, text: &str, reply: &str, mut memory: Vec<MemoryRecord>) -> u64 {
        let talks = self.user.conversations();
        let new = NewMessage { text, key: None, data: &Value::Null, chars: 2_000 };
        let asked = talks.post(self.track(), &new).unwrap();
        let run = self.run(reply);
        memory.push(self.memory().ran(&run, asked.session, asked.number));
        let new = NewReply {
            to: Some(asked.number),
            text: reply,
            data: &json!({"fields": {"Strategy": reply}}),
            state: &json!({"notices": [reply]}),
            memory: &memory,
            jobs: &[],
            costs: &[larder_store::ConversationCost::default()],
            chars: 2_000,
        };
        talks.answer(self.track(), &new).unwrap();
        asked.number
    }

    /// The id of a run whose receipt and answer have this text.
    fn run(&self, text: &str) -> String {
        self.run_in(None, text)
    }

    /// One of a session.
    fn run_in(&self, session: Option<&str>, text: &str) -> String {
        let facts: RunFacts = serde_json::from_value(json!({
            "recipe": "r", "recipe_version": "1", "model_layer": "MIND", "model": "m", "session_id": session,
            "turn_id": null, "tokens": {"prompt": 1, "input": 1, "output": 1}, "latency_ms": 1, "success": true,
            "schema_valid": null, "confidence": null, "retries": 0, "compression_applied": false,
            "compression_savings": 0, "cost_usd": null, "status": "completed", "error": null
        }))
        .unwrap();
        let run_id = self.user.store().new_run_id().unwrap();
        let (receipt, output) =
            (format!("{{\"receipt\": \"{text}\"}}"), format!("{{\"answer\": \"{text}\"}}"));
        let new = NewRun {
            run_id: run_id.clone(),
            facts,
            receipt: receipt.as_bytes(),
            output: Some(output.as_bytes()),
            pointers: &[],
        };
        self.user.runs().record(new).unwrap();
        run_id.to_string()
    }

    fn learn(&self, session: u64, facts: &[(&str, &str)]) -> Vec<String> {
        let upsert = facts.iter().map(|(fact, quote)| upsert(fact, quote)).collect();
        let said = facts.iter().map(|(fact, _)| *fact).collect::<Vec<_>>().join(" ");
        let diff = FactDiff { upsert, delete: Vec::new() };
        self.memory().update_facts(session, &diff, &self.run(&said)).unwrap().written
    }

    fn shown(&self, session: u64, query: &str) -> Vec<String> {
        let shown = self.memory().facts_to_show(session, &Sought::words(query)).unwrap();
        shown.into_iter().map(|shown| shown.item.said.fact).collect()
    }

    /// Does the jobs that erase, as a worker does.
    fn work(&self) -> usize {
        let worker = self.user.store().job_queue().acquire().unwrap().unwrap();
        let mut done = 0;
        while let Some(job) = worker.claim().unwrap() {
            if job.kind == ERASE_JOB {
                Eraser { store: &self.user }.consent(job.payload["consent"].as_str().unwrap()).unwrap();
                done += 1;
            }
            worker.end(&job, &larder_store::JobEnd::Done).unwrap();
        }
        done
    }

    fn has(&self, marker: &str) -> bool {
        found(self.dir.path(), marker)
    }
}

fn upsert(fact: &str, quote: &str) -> FactUpsert {
    FactUpsert {
        id: None,
        category: "People".to_owned(),
        fact: fact.to_owned(),
        quote: quote.to_owned(),
        confidence: 1.0,
    }
}

/// Whether any file below a folder has these bytes, also inside compressed frames.
fn found(folder: &Path, marker: &str) -> bool {
    let has = |bytes: &[u8]| bytes.windows(marker.len()).any(|window| window == marker.as_bytes());
    let first_frame = |bytes: &[u8]| {
        let mut content = Vec::new();
        let mut decoder = zstd::stream::Decoder::with_buffer(bytes).ok()?.single_frame();
        std::io::Read::read_to_end(&mut decoder, &mut content).ok()?;
        Some(content)
    };
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return found(&path, marker);
        }
        let bytes = std::fs::read(&path).unwrap();
        let mut frames = bytes.windows(4).enumerate().filter(|(_, four)| *four == [0x28, 0xb5, 0x2f, 0xfd]);
        has(&bytes) || frames.any(|(at, _)| first_frame(&bytes[at..]).is_some_and(|content| has(&content)))
    })
}

#[test]
fn no_fact_is_without_words_of_a_message() {
    let home = Home::new();
    let number = home.turn("My  Daughter Lily\nsings.", "That is nice.", Vec::new());
    let diff = FactDiff {
        upsert: vec![upsert("has a daughter", "my daughter lily"), upsert("has a son", "my son Tom")],
        delete: vec!["fact-none".to_owned()],
    };
    let report = home.memory().update_facts(1, &diff, &home.run("x")).unwrap();
    assert_eq!((report.written.len(), &*report.refused[0].fact), (1, "has a son"));
    let fact = &home.memory().all_facts().unwrap()[0];
    assert_eq!((fact.said.message, fact.said.scope), (number, FactScope::Session));
    let text = home.user.conversations().get_message(home.track(), number).unwrap().text;
    assert_eq!(&text[fact.said.start..fact.said.end], "My  Daughter Lily");
    // The same once more is no new fact.
    assert!(home.learn(1, &[("Has a daughter.", "my daughter lily")]).is_empty());
}

#[test]
fn the_newer_of_contradicting_facts_wins_and_the_older_keeps_its_interval() {
    let home = Home::new();
    home.turn("We live in Rome. No, we moved to Oslo.", "I see.", Vec::new());
    let id = home.learn(1, &[("lives in Rome", "we live in rome")]).remove(0);
    let moved = FactUpsert { id: Some(id.clone()), ..upsert("lives in Oslo", "moved to Oslo") };
    let diff = FactDiff { upsert: vec![moved], delete: Vec::new() };
    home.memory().update_facts(1, &diff, &home.run("x")).unwrap();
    assert_eq!(home.shown(1, "where?"), ["lives in Oslo"]);
    let all = home.memory().all_facts().unwrap();
    assert_eq!((all[0].valid_until.is_some(), all[1].said.supersedes.as_deref()), (true, Some(&*id)));
}

#[test]
fn facts_are_limited_and_shown_by_relevance_then_the_newest() {
    let home = Home::new();
    home.turn("one two three four five six", "Yes.", Vec::new());
    home.learn(1, &[("likes tea", "one"), ("likes coffee", "two"), ("has a dog", "three")]);
    home.learn(1, &[("has a cat", "four"), ("has a boat", "five")]);
    assert_eq!(home.memory().session_facts(1).unwrap().len(), 4, "the most of a session");
    assert_eq!(home.shown(1, "what about the dog?")[0], "has a dog");
    assert_eq!(home.shown(1, "hello").len(), 2, "the most that are shown");
}

#[test]
fn a_profile_is_limited_and_the_rest_is_merged_by_a_model_behind_it() {
    let home = Home::new();
    home.memory().grant(EVERYTHING, "Remember me").unwrap();
    home.turn("one two three four", "Yes.", Vec::new());
    home.learn(1, &[("likes tea", "one"), ("has a dog", "two"), ("has a cat", "three")]);
    assert!(home.user.jobs().list().unwrap().is_empty());
    home.learn(1, &[("has a boat", "four")]);
    assert_eq!(
        (home.memory().profile_facts().unwrap().len(), home.memory().session_facts(1).unwrap().len()),
        (3, 4)
    );
    assert_eq!(home.user.jobs().list().unwrap()[0].kind, "conversation_consolidate");
}

#[test]
fn nothing_crosses_a_session_without_consent_and_granted_it_does_at_once() {
    let home = Home::new();
    home.turn("My daughter Lily sings.", "Nice.", Vec::new());
    home.learn(1, &[("the daughter is Lily", "daughter Lily")]);
    let second = home.begin_session();
    assert!(home.shown(second, "Lily").is_empty() && home.memory().profile_facts().unwrap().is_empty());
    assert_eq!(home.shown(1, "Lily").len(), 1);
    let refused = home.memory().grant("Weather", "");
    assert!(matches!(refused, Err(StoreError::InvalidName { .. })));
    let other = home.memory().grant("Other", "About other things").unwrap();
    assert!(home.shown(second, "Lily").is_empty(), "it is for another category");
    let consent = home.memory().grant("People", "May I remember the people you name?").unwrap();
    let shown = home.memory().facts_to_show(second, &Sought::words("Lily")).unwrap();
    assert_eq!(shown[0].consent.as_ref(), Some(&consent.id));
    assert_eq!(home.memory().grant("People", "again").unwrap(), consent);
    // Another participant of the same name is another person.
    let bob = home.user.store().user("bob").unwrap();
    let theirs = PersonMemory { store: &bob, ..home.memory() };
    assert!(theirs.all_facts().unwrap().is_empty() && theirs.consents().unwrap().is_empty());
    home.memory().revoke(&consent.id).unwrap().unwrap();
    assert!(home.shown(second, "Lily").is_empty(), "it stops with the next message");
    assert!(home.memory().consents().unwrap()[1].revoked.is_some());
    assert!(home.memory().revoke("consent-none").unwrap().is_none());
    assert_eq!(home.memory().consents().unwrap()[0], other);
}

#[test]
fn what_was_made_under_a_revoked_consent_is_in_no_file() {
    let home = Home::new();
    let consent = home.memory().grant(EVERYTHING, "May I remember this?").unwrap();
    let own = "My daughter Lily sings on Fridays.";
    home.turn(own, "Nice.", Vec::new());
    home.learn(
        1,
        &[("the daughter sings MARKER-fact-1 gladly", "daughter Lily"), ("MARKER-fact-2", "sings on")],
    );
    home.turn("And what else?", "You said the daughter sings MARKER-fact-1 gladly.", Vec::new());
    let second = home.begin_session();
    let shown = home.memory().facts_to_show(second, &Sought::words("daughter")).unwrap();
    let origins = home.memory().origins(&shown, |fact| fact.id.clone());
    assert_eq!(origins.len(), 2);
    let reply = "All I know: the daughter sings MARKER-fact-1 gladly; MARKER-fact-2. How is she?";
    let asked = home.turn("How is she?", reply, origins);
    let summary = MemoryRecord {
        kind: MemoryKind::Summary,
        id: "summary-1".to_owned(),
        data: json!({"summary": "MARKER-fact-1 was told", "watermark": asked + 1}),
        vector: Some(vec![1.0]),
        ..home.memory().ran("", second, asked)
    };
    let change = larder_store::MemoryChange { put: vec![summary], ..larder_store::MemoryChange::default() };
    home.user.conversations().memory().apply(&change).unwrap();
    for marker in ["MARKER-fact-1", "MARKER-fact-2"] {
        assert!(home.has(marker), "{marker} is there before");
    }
    home.memory().revoke(&consent.id).unwrap();
    assert_eq!(home.work(), 1);
    for marker in ["MARKER-fact-1", "MARKER-fact-2"] {
        assert!(!home.has(marker), "{marker} is erased");
    }
    assert!(home.has(own), "messages stay with their author");
    let said = home.user.conversations().messages(home.track(), second, 0..u64::MAX).unwrap();
    assert!(
        said[1].text.contains("[erased on ") && said[1].text.ends_with("How is she?"),
        "{}",
        said[1].text
    );
    let kept = home.user.conversations().memory().list(&MemoryFilter::default()).unwrap();
    assert!(
        kept.iter()
            .all(|record| matches!(record.kind, MemoryKind::Consent | MemoryKind::Run | MemoryKind::Erasure)),
        "{kept:?}"
    );
    assert!(
        home.user.jobs().list().unwrap().is_empty(),
        "the summary was asked for again, and the worker did it"
    );
    assert!(home.user.store().verify().unwrap().is_clean());
}

#[test]
fn a_reply_on_its_way_when_the_consent_is_revoked_is_erased_too() {
    let home = Home::new();
    let consent = home.memory().grant(EVERYTHING, "May I?").unwrap();
    home.turn("My code is secret.", "Fine.", Vec::new());
    home.learn(1, &[("the code is MARKER-late", "my code")]);
    let second = home.begin_session();
    let origins = home
        .memory()
        .origins(&home.memory().facts_to_show(second, &Sought::words("code")).unwrap(), |fact| {
            fact.id.clone()
        });
    home.memory().revoke(&consent.id).unwrap();
    assert_eq!(home.work(), 1);
    home.turn("What is it?", "the code is MARKER-late", origins);
    assert!(home.has("MARKER-late"));
    assert_eq!(home.work(), 1);
    assert!(!home.has("MARKER-late"));
}

#[test]
fn facts_messages_conversations_and_persons_are_deleted_from_every_file() {
    let home = Home::new();
    let eraser = Eraser { store: &home.user };
    let first = home.turn("I keep MARKER-message here.", "You keep MARKER-message.", Vec::new());
    let id = home.learn(1, &[("keeps a MARKER-fact", "I keep")]).remove(0);
    home.turn("And now?", "You said MARKER-message and keeps a MARKER-fact.", Vec::new());
    assert!(eraser.fact(&id).unwrap() && !eraser.fact(&id).unwrap());
    assert!(!home.has("MARKER-fact") && home.has("MARKER-message"));
    eraser.message(home.track(), first).unwrap();
    assert!(!home.has("MARKER-message"));
    let left = home.user.conversations().messages(home.track(), 1, 0..u64::MAX).unwrap();
    assert_eq!(left.iter().map(|message| &*message.text).next(), Some("And now?"));
    home.memory().grant(EVERYTHING, "MARKER-consent").unwrap();
    home.turn("MARKER-later", "MARKER-reply", Vec::new());
    eraser.conversation(&home.talk).unwrap();
    assert!(!home.has("MARKER-later") && !home.has("MARKER-reply") && home.has("MARKER-consent"));
    eraser.person("me").unwrap();
    assert!(!home.has("MARKER-consent"));
}

#[test]
fn what_is_shared_reaches_those_who_are_named_and_is_erased_from_what_they_were_told() {
    let home = Home::new();
    let consent = home.memory().grant(EVERYTHING, "May I?").unwrap();
    let number = home.turn("My code is secret.", "Fine.", Vec::new());
    home.learn(1, &[("the code is MARKER-shared", "my code")]);
    let strangers = home.memory().share(number, "x", &["nobody".to_owned()], None);
    assert!(matches!(strangers, Err(StoreError::InvalidName { .. })));
    home.memory().share(number, "For you: the code is MARKER-shared", &["you".to_owned()], None).unwrap();
    let bob = home.user.store().user("bob").unwrap();
    let you = Track { conversation: &home.talk, participant: "you" };
    let theirs = PersonMemory { store: &bob, track: you, ..home.memory() };
    assert_eq!(theirs.shared_with_me().unwrap()[0].from, "me");
    let new = NewMessage { text: "What is it?", key: None, data: &Value::Null, chars: 2_000 };
    let asked = bob.conversations().post(you, &new).unwrap().number;
    let new = NewReply {
        to: Some(asked),
        text: "They say the code is MARKER-shared",
        data: &Value::Null,
        state: &Value::Null,
        memory: &[],
        jobs: &[],
        costs: &[larder_store::ConversationCost::default()],
        chars: 2_000,
    };
    bob.conversations().answer(you, &new).unwrap();
    assert!(home.memory().released("compare").unwrap().is_empty());
    home.memory().share(number, "my side", &[], Some("compare")).unwrap();
    assert!(theirs.released("compare").unwrap().is_empty(), "both must release");
    theirs.share(asked, "their side", &[], Some("compare")).unwrap();
    assert_eq!(home.memory().released("compare").unwrap().len(), 2);
    home.memory().revoke(&consent.id).unwrap();
    assert_eq!(home.work(), 1);
    assert!(!home.has("MARKER-shared"));
    assert!(theirs.shared_with_me().unwrap()[0].text.starts_with("For you: "));
}

#[test]
fn runs_that_no_reply_commits_are_erased_with_their_message() {
    let home = Home::new();
    let new = NewMessage { text: "My secret is here.", key: None, data: &Value::Null, chars: 2_000 };
    let asked = home.user.conversations().post(home.track(), &new).unwrap();
    home.run_in(Some(&format!("{}/me/1", home.talk)), "MARKER-failed");
    assert!(home.has("MARKER-failed"));
    Eraser { store: &home.user }.message(home.track(), asked.number).unwrap();
    assert!(!home.has("MARKER-failed"));
}

#[test]
fn work_under_way_writes_nothing_of_what_was_erased_meanwhile() {
    let home = Home::new();
    home.turn("My code is secret.", "Fine.", Vec::new());
    let other = home.turn("And my dog is Rex.", "Nice.", Vec::new());
    let since = home.user.conversations().memory().erasures().unwrap();
    Eraser { store: &home.user }.message(home.track(), other).unwrap();
    let diff = FactDiff { upsert: vec![upsert("the code is secret", "my code")], delete: Vec::new() };
    let late = PersonMemory { since: Some(since), ..home.memory() };
    let refused = late.update_facts(1, &diff, &home.run("x"));
    assert!(matches!(refused, Err(StoreError::ErasedMeanwhile)), "{refused:?}");
    assert!(home.memory().all_facts().unwrap().is_empty());
    let again = PersonMemory { since: Some(home.user.conversations().memory().erasures().unwrap()), ..late };
    assert_eq!(again.update_facts(1, &diff, &home.run("x")).unwrap().written.len(), 1);
}

#[test]
fn facts_that_were_found_in_replies_go_with_what_these_repeat() {
    let home = Home::new();
    let consent = home.memory().grant(EVERYTHING, "May I?").unwrap();
    home.turn("My code is secret.", "Fine.", Vec::new());
    home.learn(1, &[("the code is MARKER-crossing", "my code")]);
    let second = home.begin_session();
    let shown = home.memory().facts_to_show(second, &Sought::words("code")).unwrap();
    let origins = home.memory().origins(&shown, |fact| fact.id.clone());
    home.turn("What is it?", "It worries you that the code is MARKER-crossing.", origins);
    home.memory().revoke(&consent.id).unwrap();
    home.learn(second, &[("worries about MARKER-derived", "It worries you")]);
    assert_eq!(home.work(), 1);
    assert!(!home.has("MARKER-crossing") && !home.has("MARKER-derived"));
}

#[test]
fn structure_stays_and_what_is_left_of_a_long_reply_can_be_read() {
    let home = Home::new();
    let talks = home.user.conversations();
    let number = home.turn("practice", "Well.", Vec::new());
    let long = format!("You said: my code is kept at the green door. {}", "And so on. ".repeat(300));
    let secret = home.turn("my code is kept at the green door", "Yes.", Vec::new());
    home.turn("And now?", &long, Vec::new());
    let state = json!({"stage": "practice", "fields": {"Topic": ["my code is kept at the green door", 1]}});
    talks.set_state(home.track(), &state).unwrap();
    let eraser = Eraser { store: &home.user };
    eraser.message(home.track(), number).unwrap();
    assert_eq!(talks.participant(home.track()).unwrap().state, state);
    eraser.message(home.track(), secret).unwrap();
    let state = talks.participant(home.track()).unwrap().state;
    assert_eq!(state["stage"], "practice");
    assert!(state["fields"]["Topic"][0].as_str().unwrap().starts_with("[erased on"), "{state}");
    let left = talks.messages(home.track(), 1, 0..u64::MAX).unwrap().pop().unwrap();
    assert!(left.text.starts_with("You said: [erased on"), "{}", left.text);
    let read = home.user.pointers().resolve(&left.pointer.unwrap()).unwrap();
    assert_eq!(read, left.text.as_bytes());
}

#[test]
fn a_conversation_that_its_owner_leaves_stays_with_the_others() {
    let home = Home::new();
    let bob = home.user.store().user("bob").unwrap();
    let (you, talks) = (Track { conversation: &home.talk, participant: "you" }, bob.conversations());
    let new = NewMessage { text: "BOBMARKER stays mine", key: None, data: &Value::Null, chars: 2_000 };
    talks.post(you, &new).unwrap();
    Eraser { store: &home.user }.conversation(&home.talk).unwrap();
    assert!(home.user.conversations().list().unwrap().is_empty());
    assert_eq!(talks.get(&home.talk).unwrap().owner, "bob");
    assert_eq!(talks.messages(you, 1, 0..u64::MAX).unwrap().len(), 1);
    Eraser { store: &bob }.person("you").unwrap();
    assert!(talks.list().unwrap().is_empty() && !home.has("BOBMARKER"));
}
