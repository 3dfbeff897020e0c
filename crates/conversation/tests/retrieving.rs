//! What a conversation looks up in the past, through its public surface: in the session what is no longer sent, elsewhere
//! only with a consent; by words and by meaning from the threshold on, within the limits of the type.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use larder_conversation::memory::{EVERYTHING, Eraser};
use larder_conversation::{CallEnd, Conversation, Conversations, WindowRecord};
use larder_engine::executor::NoopObserver;
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_store::{Clock, MemoryFilter, MemoryKind, Speaker, Store, StoreOptions, Timestamp};
use larder_testkit::layers::{Answering, every_layer, with_vectors};
use larder_testkit::vectors::ScriptedVectors;
use larder_text::tokens::Counter;
use serde_json::json;
use tokio::sync::Notify;

/// What the first stage of the base type looks for …
const MINIMAL: &str = "retrieval: {depth: minimal, thresholds: {all-minilm-l6-v2: 0.4}}";
/// … and what it does here.
const EVERYWHERE: &str = "retrieval: {depth: light, across_sessions: true, thresholds: {vectors: 0.4}}";

/// A clock that is set to days, and moves on by a millisecond with each look.
struct SetClock(AtomicU64);

impl SetClock {
    /// Noon of a day.
    fn set(&self, day: &str) {
        let noon: Timestamp = format!("{day}T12:00:00Z").parse().unwrap();
        self.0.store(noon.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

struct World {
    home: tempfile::TempDir,
    clock: Arc<SetClock>,
    all: Conversations,
    prompts: Arc<Mutex<Vec<String>>>,
    vectors: Arc<ScriptedVectors>,
}

/// A short reply; of facts, one with the words that follow `my`.
fn answer(prompt: &str) -> String {
    if prompt.contains("Write the summary.") {
        return json!({"summary": "They talked."}).to_string();
    }
    if !prompt.contains("Update the facts.") {
        return "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>I see.".to_owned();
    }
    let facts: Vec<_> = ["my daughter Lily", "my old bicycle"]
        .into_iter()
        .filter(|quote| prompt.contains(quote))
        .map(|quote| json!({"category": "People", "fact": format!("it is about {quote}"), "quote": quote}))
        .collect();
    json!({"upsert": facts, "delete": []}).to_string()
}

/// Texts about a bed mean the same.
fn meaning(text: &str) -> String {
    let is_of_beds = ["mattress", "bedding", "sleep on"].iter().any(|word| text.contains(word));
    if is_of_beds { "bed".to_owned() } else { text.to_owned() }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            drop(std::fs::copy(entry.path(), target))
        }
    }
}

/// The base type with other lines.
fn world(changes: &[(&str, &str)], embedding: Option<&str>) -> World {
    world_of(tempfile::tempdir().unwrap(), changes, embedding, answer, ScriptedVectors::of(meaning))
}

/// The same in a home, with what answers and what makes vectors.
fn world_of(
    home: tempfile::TempDir,
    changes: &[(&str, &str)],
    embedding: Option<&str>,
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
    vectors: ScriptedVectors,
) -> World {
    let project = home.path().join("project");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base"), &project);
    let path = project.join("conversations/chat.yaml");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    std::fs::write(&path, text).unwrap();
    let clock = Arc::new(SetClock(AtomicU64::new(0)));
    clock.set("2026-04-16");
    let options = StoreOptions { clock: Arc::clone(&clock) as _, ..StoreOptions::default() };
    let store = Store::open(&home.path().join("home"), options).unwrap().user("ann").unwrap();
    let model = Answering::new(answer);
    let prompts = model.prompts();
    let vectors = Arc::new(vectors);
    let models = if embedding.is_some() {
        with_vectors(Arc::new(model), Arc::clone(&vectors) as _, home.path(), 200_000, 10_000)
    } else {
        every_layer(Arc::new(model), home.path(), 200_000, 10_000)
    };
    let project = Project::open(&project, &Counter::cl100k()).unwrap();
    let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
    let all = Conversations::new(engine, embedding.map(str::to_owned));
    assert!(all.types.find("chat").is_ok(), "{:?}", all.types.diagnostics());
    World { home, clock, all, prompts, vectors }
}

impl World {
    fn begin(&self) -> Conversation {
        let id = self.all.begin("chat", "A talk", &[]).unwrap().id;
        self.all.open(&id, None).unwrap()
    }

    /// Says something, and returns what was sent for the reply: the record, and the last prompt.
    async fn say(&self, talk: &Conversation, text: &str) -> (WindowRecord, String) {
        let reply = talk.say(text, &NoopObserver).await.unwrap();
        let prompt = self.prompts.lock().unwrap().last().unwrap().clone();
        (talk.record(reply.number).unwrap().window, prompt)
    }

    /// Does all jobs that wait, and those that they leave.
    async fn work(&self) {
        loop {
            let jobs = self.all.engine.store.jobs().list().unwrap();
            if jobs.is_empty() {
                return;
            }
            for job in jobs {
                let after = serde_json::from_value(job.payload.clone()).unwrap();
                self.all.work(&job.kind, &after, &NoopObserver).await.unwrap();
                self.all.engine.store.jobs().cancel(job.id).unwrap();
            }
        }
    }

    fn vectors_of(&self, prefix: &str) -> usize {
        let kind = Some(MemoryKind::Vector);
        let records = self
            .all
            .engine
            .store
            .conversations()
            .memory()
            .list(&MemoryFilter { kind, ..MemoryFilter::default() });
        records
            .unwrap()
            .iter()
            .filter(|record| record.id.starts_with(prefix) && record.vector.is_some())
            .count()
    }
}

fn numbers(record: &WindowRecord) -> Vec<u64> {
    record.retrieved.iter().map(|found| found.number).collect()
}

#[tokio::test]
async fn other_sessions_are_looked_up_only_with_a_consent_and_granted_it_works_at_once() {
    let world = world(&[(MINIMAL, EVERYWHERE)], None);
    let counter = Counter::cl100k();
    let earlier = world.begin();
    let told = earlier.post("The bicycle is in the shed behind the church.", None).unwrap();
    earlier.answer(told.number, &NoopObserver).await.unwrap();
    let talk = world.begin();
    let (record, prompt) = world.say(&talk, "Where did I put the bicycle?").await;
    assert!(record.retrieved.is_empty() && !prompt.contains("behind the church"));
    assert_eq!(record.blocked_by_consent, ["other sessions"]);
    let consent = talk.memory(&counter).grant(EVERYTHING, "May I?").unwrap();
    let (record, prompt) = world.say(&talk, "And where is the bicycle now?").await;
    assert!(record.blocked_by_consent.is_empty());
    let found = record.retrieved.iter().find(|found| found.number == told.number).unwrap();
    assert_eq!((found.consent.as_deref(), found.by_words), (Some(consent.id.as_str()), true));
    assert_eq!((found.conversation.as_str(), found.session), (earlier.id(), 1));
    // Named by its number, below the day, and read back by it.
    let line = format!("[{}] User: The bicycle is in the shed behind the church.", told.number);
    assert!(prompt.contains(&line) && prompt.contains(&format!("On {}:", told.created.date())), "{prompt}");
    let conversation = world.all.open(&found.conversation, None).unwrap();
    assert_eq!(conversation.message(found.number).unwrap().text, told.text);
    talk.memory(&counter).revoke(&consent.id).unwrap();
    let (record, prompt) = world.say(&talk, "So where is the bicycle?").await;
    assert!(record.retrieved.is_empty(), "revoked, nothing crosses");
    assert!(!prompt.contains("behind the church"), "{prompt}");
}

#[tokio::test]
async fn intents_and_great_distress_look_nothing_up() {
    let distress = "safety: {from_intensity: 9, text: prompts/talk/overview.md}";
    let phrases = "  avoid_recall: {phrases: [never mind the past], messages: 0}";
    let more = format!("{phrases}\n  high_distress: {{phrases: [can't go on], depth: none, intensity: 9}}");
    let world = world(&[(MINIMAL, EVERYWHERE), (phrases, &more), (distress, distress)], None);
    let earlier = world.begin();
    world.say(&earlier, "The bicycle is in the shed.").await;
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    for text in ["Never mind the past of the bicycle.", "I can't go on without my bicycle."] {
        let (record, prompt) = world.say(&talk, text).await;
        assert!(record.retrieved.is_empty() && !prompt.contains("in the shed"), "{text}");
    }
    let (record, _) = world.say(&talk, "Hello there, how are you?").await;
    assert!(record.retrieved.is_empty(), "nothing is asked for");
}

#[tokio::test]
async fn what_the_session_no_longer_sends_is_looked_up_in_it_within_the_limits() {
    let small = "from_this_session: 2";
    let world = world(
        &[
            (MINIMAL, EVERYWHERE),
            ("from_this_session: 5", small),
            ("after_messages: 30", "after_messages: 18"),
        ],
        None,
    );
    let talk = world.begin();
    for at in 0..4 {
        world.say(&talk, &format!("The bicycle number {at} is in the shed.")).await;
    }
    for at in 0..10 {
        world.say(&talk, &format!("It rains on day {at}.")).await;
        world.work().await;
    }
    let (record, prompt) = world.say(&talk, "Which bicycle is in the shed?").await;
    assert_eq!(record.retrieved.len(), 2, "{record:?}");
    assert!(
        record.retrieved.iter().all(|found| found.consent.is_none() && !record.sent.contains(&found.number))
    );
    assert!(numbers(&record).is_sorted() && prompt.contains("is in the shed."));
    // A message is either sent or looked up, never both.
    assert!(
        record.blocks.iter().any(|(name, tokens)| name == "earlier" && *tokens > 0),
        "{:?}",
        record.blocks
    );
    assert!(!record.blocks.iter().any(|(name, _)| name == "related"));
}

#[tokio::test]
async fn a_yes_brings_the_question_that_it_answers() {
    let asks =
        |_: &str| "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>Is it tall?".to_owned();
    let changes = [(MINIMAL, EVERYWHERE), ("from_other_sessions: 10", "from_other_sessions: 2")];
    for (opening, found) in [("Yep, and", [2, 3]), ("It was", [1, 3])] {
        let vectors = ScriptedVectors::of(meaning);
        let world = world_of(tempfile::tempdir().unwrap(), &changes, None, asks, vectors);
        let earlier = world.begin();
        world.say(&earlier, "I planted a cherry tree in the garden.").await;
        world.say(&earlier, &format!("{opening} planted by myself behind the garden gate.")).await;
        let talk = world.begin();
        talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
        let (record, prompt) = world.say(&talk, "What did I plant by myself behind the garden gate?").await;
        assert_eq!(numbers(&record), found, "{record:?}");
        let has_question = prompt.contains("[2] Assistant: Is it tall?\nUser: Yep, and planted");
        assert_eq!(has_question, found[0] == 2, "{prompt}");
    }
}

#[tokio::test]
async fn limits_in_tokens_hold_for_lines_and_their_headings() {
    let world = world(
        &[(MINIMAL, EVERYWHERE), ("from_other_sessions: 10", "from_other_sessions: {tokens: 60}")],
        None,
    );
    let counter = Counter::cl100k();
    for at in 0..6 {
        let earlier = world.begin();
        world.say(&earlier, &format!("The bicycle number {at} is in the shed behind the old church.")).await;
    }
    let talk = world.begin();
    talk.memory(&counter).grant(EVERYTHING, "May I?").unwrap();
    let (record, prompt) = world.say(&talk, "Which bicycle is in the shed?").await;
    assert!((1..=3).contains(&record.retrieved.len()), "{record:?}");
    let lines =
        prompt.lines().filter(|line| line.starts_with("On 2") || line.contains("behind the old church"));
    let shown: String = lines.flat_map(|line| [line, "\n"]).collect();
    assert!((20..=60).contains(&counter.count(&shown)), "{shown}");
}

#[tokio::test]
async fn long_messages_are_their_beginning_and_a_pointer_to_every_byte() {
    let world = world(&[(MINIMAL, EVERYWHERE)], None);
    let earlier = world.begin();
    let long = format!("The bicycle is in the shed.\n\n{}", "It rains.  ".repeat(400));
    let told = earlier.post(&long, None).unwrap();
    earlier.answer(told.number, &NoopObserver).await.unwrap();
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    let (record, prompt) = world.say(&talk, "Where is the bicycle?").await;
    assert_eq!(numbers(&record)[0], told.number);
    let pointer = told.pointer.unwrap();
    assert!(prompt.contains(&format!("the rest of this message: {pointer}#B")), "{prompt}");
    let read = world.all.engine.store.pointers().resolve(&pointer).unwrap();
    assert_eq!(read, long.as_bytes());
    assert_eq!(earlier.message(told.number).unwrap().text, long);
}

#[tokio::test]
async fn the_vector_of_a_message_is_made_while_its_plan_is_waited_for() {
    let calls: Arc<Mutex<Vec<&str>>> = Arc::default();
    let planned = Arc::new(Notify::new());
    let (asked, made, plan) = (Arc::clone(&calls), Arc::clone(&calls), Arc::clone(&planned));
    let plan_first = move |prompt: &str| {
        let mut calls = asked.lock().unwrap();
        let is_plan = calls.is_empty();
        calls.push("call");
        plan.notify_one();
        if is_plan { json!({"searches": []}).to_string() } else { answer(prompt) }
    };
    let vectors = ScriptedVectors::of(move |text| {
        made.lock().unwrap().push("vector");
        meaning(text)
    });
    let vectors = vectors.after(async move { planned.notified().await });
    let full = EVERYWHERE.replace("light", "full");
    let changes =
        [(MINIMAL, full.as_str()), ("when: [full_depth, reference_detected]", "when: [full_depth]")];
    let world = world_of(tempfile::tempdir().unwrap(), &changes, Some("vectors"), plan_first, vectors);
    let talk = world.begin();
    let said = world.say(&talk, "Where does the bedding come from?");
    let (record, _) = tokio::time::timeout(Duration::from_secs(60), said).await.unwrap();
    assert_eq!(record.calls, [("planning".to_owned(), CallEnd::Made)]);
    assert_eq!(record.without_vectors, None);
    assert_eq!(*calls.lock().unwrap(), ["call", "vector", "call"]);
}

#[tokio::test]
async fn meaning_finds_what_words_do_not_from_the_threshold_on_and_changing_the_model_makes_vectors_anew() {
    let world = world(&[(MINIMAL, EVERYWHERE)], Some("vectors"));
    let earlier = world.begin();
    world.say(&earlier, "We bought a mattress in Ghent.").await;
    world.say(&earlier, "It rains.").await;
    world.work().await;
    assert_eq!(world.vectors_of("message:"), 4);
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    let (record, prompt) = world.say(&talk, "Where does the bedding come from?").await;
    assert!(prompt.contains("We bought a mattress in Ghent."), "{prompt}");
    let found: Vec<_> = record.retrieved.iter().filter(|found| found.cosine.is_some()).collect();
    assert!(found.len() == 1 && !found[0].by_words && found[0].cosine.unwrap() > 0.99, "{record:?}");
    assert_eq!(record.without_vectors, None);
    // The query's own vector is the only one that a reply waits for.
    let asked = world.vectors.texts();
    assert_eq!(asked.last().unwrap(), "Where does the bedding come from?");
    world.work().await;
    let before = world.vectors.texts().len();
    world.work().await;
    assert_eq!(world.vectors.texts().len(), before, "nothing is made twice");
    let store = &world.all.engine.store;
    let kind = Some(MemoryKind::Vector);
    let memory = store.conversations();
    let memory = memory.memory();
    let mut records = memory.list(&MemoryFilter { kind, ..MemoryFilter::default() }).unwrap();
    for record in &mut records {
        record.data["model"] = "another".into();
    }
    memory.apply(&larder_store::MemoryChange { put: records, ..Default::default() }).unwrap();
    let (record, _) = world.say(&talk, "And the bedding?").await;
    assert!(
        record.retrieved.iter().all(|found| found.cosine.is_none()),
        "vectors of another model say nothing"
    );
    world.work().await;
    let (record, _) = world.say(&talk, "Again, what of the bedding?").await;
    assert!(record.retrieved.iter().any(|found| found.cosine.is_some()), "they are made anew");
}

#[tokio::test]
async fn without_the_model_or_a_threshold_for_it_words_are_enough() {
    let missing = world(&[(MINIMAL, EVERYWHERE)], None);
    let unlisted = world(&[(MINIMAL, "retrieval: {depth: light, across_sessions: true}")], Some("vectors"));
    for (world, embedding) in [(missing, Some("gone".to_owned())), (unlisted, Some("vectors".to_owned()))] {
        let all = Conversations { embedding, ..world.all.clone() };
        let world = World { all, ..world };
        let earlier = world.begin();
        world.say(&earlier, "The mattress is in the shed.").await;
        world.work().await;
        let talk = world.begin();
        talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
        let (record, _) = world.say(&talk, "Where is the mattress?").await;
        assert!(record.retrieved.iter().any(|found| found.by_words && found.cosine.is_none()));
        assert!(world.home.path().exists());
    }
}

#[tokio::test]
async fn vectors_go_with_what_they_are_of() {
    let world = world(&[(MINIMAL, EVERYWHERE)], Some("vectors"));
    let counter = Counter::cl100k();
    let talk = world.begin();
    world.say(&talk, "This is about my daughter Lily.").await;
    let consent = talk.memory(&counter).grant(EVERYTHING, "May I?").unwrap();
    world.work().await;
    assert_eq!(
        (world.vectors_of("fact:"), world.vectors_of("session:"), world.vectors_of("message:")),
        (1, 1, 2)
    );
    talk.memory(&counter).revoke(&consent.id).unwrap();
    // The job that erases, and nothing behind it yet.
    Eraser { store: &world.all.engine.store }.consent(&consent.id).unwrap();
    assert_eq!(world.vectors_of(""), 0, "with the facts go the vectors of the session");
    world.work().await;
    assert_eq!((world.vectors_of("fact:"), world.vectors_of("session:")), (0, 0));
    assert_eq!(world.vectors_of("message:"), 2, "those of what remains are made again");
    let said = talk.messages(None).unwrap();
    let first = said.iter().find(|message| message.speaker == Speaker::Participant).unwrap();
    talk.delete_message(first.number).await.unwrap();
    world.work().await;
    assert_eq!(world.vectors_of(""), 0);
}

#[tokio::test]
async fn a_question_about_a_time_finds_what_was_said_then_or_about_it() {
    let limit = ("from_before: {tokens: 1000}", "from_before: 1");
    let world = world(&[(MINIMAL, EVERYWHERE), limit], None);
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    for (day, text) in [
        ("2026-02-10", "Last Tuesday I met Lena at the station."),
        ("2026-03-20", "We painted the kitchen blue."),
        ("2026-03-28", "The budget of the garden is 400 euros."),
        (
            "2026-04-07",
            "The budget of the garden grew to 600 euros after all, since we need a shed and a fence.",
        ),
        ("2026-04-14", "I ran into Oskar from the choir at the market. My sister moves house this weekend."),
        ("2026-04-15", "It rains."),
    ] {
        world.clock.set(day);
        world.say(&talk, text).await;
        talk.begin_session(None).await.unwrap();
    }
    world.clock.set("2026-04-16");
    let questions = [
        ("Whom did I meet last Tuesday?", "I ran into Oskar"),
        ("What did I tell you on 20 March?", "We painted the kitchen"),
        ("What did we do between March 18 and 22?", "We painted the kitchen"),
        ("When did we last talk about the budget?", "grew to 600 euros"),
        ("What happens on 18 April?", "My sister moves house"),
        ("Was there anything about the budget in March?", "is 400 euros"),
        ("Whom did I meet in the first week of February 2026?", "I met Lena"),
    ];
    for (at, (question, found)) in questions.into_iter().enumerate() {
        // One question takes the place of the other, so that none is found in the past of the next.
        let posted = match at {
            0 => talk.post(question, None).unwrap(),
            _ => talk.revise(Some(question), None).await.unwrap(),
        };
        talk.answer(posted.number, &NoopObserver).await.unwrap();
        let prompt = world.prompts.lock().unwrap().last().unwrap().clone();
        assert!(prompt.contains(found), "{question}: {prompt}");
    }
}

#[tokio::test]
async fn an_action_finds_what_was_said_on_the_days_that_its_text_names() {
    let world = world(&[(MINIMAL, EVERYWHERE)], None);
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    for (day, text) in [("2026-04-14", "I ran into Oskar at the market."), ("2026-04-15", "It rains.")] {
        world.clock.set(day);
        world.say(&talk, text).await;
        talk.begin_session(None).await.unwrap();
    }
    world.clock.set("2026-04-16");
    let done = talk.act("explain", Some("Whom did I meet last Tuesday?"), &NoopObserver).await.unwrap();
    let window = talk.record(done.reply.unwrap().number).unwrap().window;
    let first = talk.messages(Some(1)).unwrap()[0].number;
    assert!(window.retrieved.iter().any(|found| found.number == first && found.by_words), "{window:?}");
    assert!(window.retrieved.iter().all(|found| found.session == 1), "{window:?}");
}

#[tokio::test]
async fn a_statement_that_names_a_day_looks_up_what_it_shares_words_with() {
    let world = world(&[(MINIMAL, EVERYWHERE)], None);
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    for text in ["It rains.", "The bicycle is in the shed.", "Lena called."] {
        world.say(&talk, text).await;
    }
    talk.begin_session(None).await.unwrap();
    let (record, _) = world.say(&talk, "I feel tired today.").await;
    assert!(record.retrieved.is_empty(), "{record:?}");
    let (record, _) = world.say(&talk, "What have I said today?").await;
    assert!(record.retrieved.len() >= 3, "{record:?}");
}

#[tokio::test]
async fn a_linked_session_is_preferred() {
    let changes = [(MINIMAL, EVERYWHERE), ("from_before: {tokens: 1000}", "from_before: 1")];
    let boosted = "retrieval: {depth: light, linked_boost: 0.3}";
    let everywhere = "retrieval: {depth: light, across_sessions: true, linked_boost: 0.3}";
    let world = world(&[changes[0], changes[1], (boosted, everywhere)], None);
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    let text = "The bicycle is in the shed.";
    world.say(&talk, text).await;
    let linked = talk.begin_session(None).await.unwrap();
    world.say(&talk, text).await;
    talk.begin_session(Some("diary")).await.unwrap();
    let (record, _) = world.say(&talk, "Where is the bicycle?").await;
    assert_eq!(record.retrieved.len(), 1, "{record:?}");
    assert_eq!(record.retrieved[0].session, linked, "of two that are equal otherwise");
}

#[tokio::test]
async fn a_commitment_looks_across_sessions_only_with_a_consent() {
    let phrases = "  avoid_recall: {phrases: [never mind the past], messages: 0}";
    let more = format!(
        "{phrases}\n  commitment_reference: {{phrases: [we agreed], depth: full, across_sessions: true}}"
    );
    let world = world(&[(phrases, &more)], None);
    let earlier = world.begin();
    world.say(&earlier, "The bicycle goes to Ben on Sunday.").await;
    let talk = world.begin();
    let (record, _) = world.say(&talk, "But we agreed on the bicycle!").await;
    assert!(record.retrieved.is_empty());
    assert_eq!(record.blocked_by_consent, ["other sessions"]);
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    let (record, _) = world.say(&talk, "And yet we agreed on the bicycle!").await;
    assert!(record.retrieved.iter().any(|found| found.conversation == earlier.id()), "{record:?}");
    let (record, _) = world.say(&talk, "Where is the bicycle?").await;
    assert!(record.retrieved.is_empty(), "the stage itself looks at facts alone");
}

#[tokio::test]
async fn what_is_looked_up_stands_below_its_guidance_and_label() {
    let piece = "pieces: {process_overview: prompts/talk/overview.md}";
    let more = "pieces: {process_overview: prompts/talk/overview.md, memory_guidance: prompts/talk/hello.md}";
    let world = world(&[(MINIMAL, EVERYWHERE), (piece, more)], None);
    let earlier = world.begin();
    world.say(&earlier, "The bicycle is in the shed.").await;
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    let (record, _) = world.say(&talk, "Where is the bicycle?").await;
    let names: Vec<&str> = record.blocks.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.ends_with(&["guidance", "related"]), "{names:?}");
    let (record, _) = world.say(&talk, "Hello there, how are you?").await;
    assert!(
        !record.blocks.iter().any(|(name, _)| ["guidance", "related", "earlier"].contains(&name.as_str()))
    );
}

/// Tokens of the block of other sessions, of the history, and what there is for both.
fn shares(record: &WindowRecord) -> (usize, usize, usize) {
    let related = record.blocks.iter().filter(|(name, _)| name == "related").map(|(_, tokens)| tokens).sum();
    (related, record.history_tokens, record.available_tokens)
}

#[tokio::test]
async fn history_and_what_is_looked_up_share_the_window_and_each_may_have_what_the_other_leaves() {
    let world = world(&[(MINIMAL, EVERYWHERE)], None);
    let filler =
        |word: &str| format!("{word} {}", "and so it went on, day by day, with rain and wind. ".repeat(35));
    for at in 0..10 {
        let earlier = world.begin();
        world.say(&earlier, &filler(&format!("The bicycle number {at} was in the shed."))).await;
    }
    let talk = world.begin();
    talk.memory(&Counter::cl100k()).grant(EVERYTHING, "May I?").unwrap();
    let (record, _) = world.say(&talk, "Which bicycle was in the shed?").await;
    let (related, _, available) = shares(&record);
    assert_eq!(record.retrieved.len(), 10);
    assert!(related * 10 > available * 5, "alone it has more than its 40 %: {related} of {available}");
    for at in 0..8 {
        world.say(&talk, &filler(&format!("It rained on day {at}."))).await;
    }
    let (record, _) = world.say(&talk, "And which bicycle was in the shed?").await;
    let (related, history, available) = shares(&record);
    assert!(related + history <= available, "{record:?}");
    assert!(related * 100 <= available * 45, "next to a long history, 40 %: {related} of {available}");
    assert!(history * 100 >= available * 45, "{history} of {available}");
}

#[tokio::test]
async fn what_is_kept_in_memory_changes_no_answer_and_follows_the_store() {
    let world = world(&[(MINIMAL, EVERYWHERE)], Some("vectors"));
    let counter = Counter::cl100k();
    let earlier = world.begin();
    earlier.memory(&counter).grant(EVERYTHING, "Everything may be remembered.").unwrap();
    let told = earlier.post("My old bicycle is in the shed behind the church.", None).unwrap();
    earlier.answer(told.number, &NoopObserver).await.unwrap();
    world.say(&earlier, "We bought a mattress for my daughter Lily.").await;
    world.work().await;
    let talk = world.begin();
    let anew = || Conversations { past: Arc::default(), ..world.all.clone() }.open(talk.id(), None).unwrap();
    for question in ["Where is the bicycle?", "What do I sleep on?", "What is my daughter called?"] {
        let (kept, _) = world.say(&talk, question).await;
        assert!(!kept.retrieved.is_empty() && !kept.facts.is_empty(), "{question}: {kept:?}");
        let other = anew();
        let again = other.revise(None, None).await.unwrap();
        let reply = other.answer(again.number, &NoopObserver).await.unwrap();
        let read = other.record(reply.number).unwrap().window;
        assert_eq!((&read.retrieved, &read.facts), (&kept.retrieved, &kept.facts), "{question}");
        world.work().await;
    }
    let (kept, _) = world.say(&talk, "Where is the bicycle?").await;
    assert!(numbers(&kept).contains(&told.number));
    // Erased by somebody else, it is not found any more.
    let other = Conversations { past: Arc::default(), ..world.all.clone() }.open(earlier.id(), None).unwrap();
    other.delete_message(told.number).await.unwrap();
    let (kept, prompt) = world.say(&talk, "Where is the old bicycle?").await;
    assert!(!numbers(&kept).contains(&told.number) && !prompt.contains("behind the church"), "{prompt}");
}

/// The store is written before a message is embedded, and next with its reply: nothing between waits for another writer.
#[tokio::test]
async fn between_the_vector_of_a_message_and_its_reply_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("home");
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let (log, folder) = (Arc::clone(&log), folder.clone());
        move || {
            let written = std::fs::metadata(folder.join("index.sqlite-wal")).unwrap().len();
            log.lock().unwrap().push((what, written));
        }
    };
    let (embedded, asked) = (note("embedded"), note("asked"));
    let changes = [(MINIMAL, EVERYWHERE)];
    let world = world_of(
        home,
        &changes,
        Some("vectors"),
        move |prompt| {
            asked();
            answer(prompt)
        },
        ScriptedVectors::of(move |text| {
            embedded();
            meaning(text)
        }),
    );
    let talk = world.begin();
    world.say(&talk, "The hedgehog sleeps in the shed").await;
    world.work().await;
    log.lock().unwrap().clear();
    world.say(&talk, "Where does the hedgehog sleep?").await;
    let log = log.lock().unwrap();
    let [("embedded", before), ("asked", then)] = log.as_slice() else { panic!("{log:?}") };
    assert_eq!(before, then);
    let costs = talk.costs().unwrap();
    assert!(costs.iter().any(|row| row.call == "query_vector" && row.calls == 2), "{costs:?}");
}
