//! A server of conversations that is killed at chosen points of replies and of what follows them: no message is lost or
//! doubled, no fact is without its source, and what a summary says agrees with how far it goes.
//!
//! `LARDER_CRASH_ROUNDS` says how many servers are killed, `LARDER_CRASH_SEED` varies how far each gets before.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use larder_store::{
    ConversationMessage, LOCAL_USER, MemoryFilter, MemoryKind, MemoryRecord, Speaker, Store, StoreOptions,
    Track,
};
use larder_testkit::stub::{Answer, Pusher, Seen};
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, next, setting};

/// Servers that are killed when nobody asks for more: each point several times.
const ROUNDS: usize = 30;
/// The longest that anything here may take; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);
/// Conversations that messages are posted to at the same time.
const CONVERSATIONS: usize = 2;
/// Messages of each conversation before the first kill: enough for a summary.
const BEFORE: usize = 8;

/// When a server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    /// A client has sent a message.
    Posted,
    /// The model has received the request for a reply, and does not answer.
    ReplyAsked,
    /// The model has written a part of a reply, which a client has read, and does not go on.
    ReplyBegun,
    /// The model sends a whole reply.
    ReplySent,
    /// A client has read the text of a reply to its end, and not yet that it is stored.
    ReplyRead,
    /// A client has read that a reply is stored.
    ReplyStored,
    /// The model is asked for facts, and does not answer.
    FactsAsked,
    /// The model sends facts.
    FactsSent,
    /// The model is asked for a summary, and does not answer.
    SummaryAsked,
    /// The model sends a summary.
    SummarySent,
}

impl Point {
    const ALL: [Self; 10] = [
        Self::Posted,
        Self::ReplyAsked,
        Self::ReplyBegun,
        Self::ReplySent,
        Self::ReplyRead,
        Self::ReplyStored,
        Self::FactsAsked,
        Self::FactsSent,
        Self::SummaryAsked,
        Self::SummarySent,
    ];

    /// Whether it is reached by what follows replies, which waits while the model is needed for one.
    const fn is_behind(self) -> bool {
        matches!(self, Self::FactsAsked | Self::FactsSent | Self::SummaryAsked | Self::SummarySent)
    }
}

/// Watches for the point at which the server of a round is killed.
struct Watch {
    /// The point, and how often it passes before.
    plan: Mutex<Option<(Point, u64)>>,
    /// The message whose reply has begun and does not go on.
    begun: Mutex<String>,
    /// Told with the message that the point belongs to.
    reached: Sender<String>,
    /// Answers that are not continued.
    held: Mutex<Vec<Pusher>>,
}

impl Watch {
    fn new() -> (Arc<Self>, Receiver<String>) {
        let (reached, point) = channel();
        let (plan, begun, held) = Default::default();
        (Arc::new(Self { plan, begun, reached, held }), point)
    }

    /// Whether this is the point.
    fn is_at(&self, point: Point) -> bool {
        let mut plan = self.plan.lock().unwrap();
        match plan.as_mut() {
            Some((planned, before)) if *planned == point && *before > 0 => *before -= 1,
            Some((planned, _)) if *planned == point => return plan.take().is_some(),
            _ => {}
        }
        false
    }

    fn tell_at(&self, point: Point, message: &str) {
        if self.is_at(point) {
            self.tell(message);
        }
    }

    fn tell(&self, message: &str) {
        self.reached.send(message.to_owned()).unwrap();
    }

    /// An answer that ends when the round does.
    fn hold(&self, answer: Answer) -> Answer {
        let (answer, pusher) = answer.pushed();
        self.held.lock().unwrap().push(pusher);
        answer
    }
}

/// The last `message-N` of a text.
fn last_message(text: &str) -> &str {
    let said = text.rfind("message-").map_or("", |at| &text[at..]);
    let end = said.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(said.len());
    &said[..end]
}

/// Replies say which message they answer, facts quote the newest message, and summaries say how far they go.
fn respond(watch: &Watch, seen: &Seen) -> Answer {
    let body = String::from_utf8_lossy(&seen.body);
    let message = last_message(&body).to_owned();
    let (asked, sent, whole) = if body.contains("Write the summary.") {
        let summary = json!({"summary": format!("Up to {message}")});
        (Point::SummaryAsked, Point::SummarySent, support::reply(&summary))
    } else if body.contains("Update the facts.") {
        let fact = json!({"category": "People", "fact": format!("said {message}"), "quote": message});
        (Point::FactsAsked, Point::FactsSent, support::reply(&json!({"upsert": [fact], "delete": []})))
    } else {
        return reply(watch, &message);
    };
    if watch.is_at(asked) {
        watch.tell(&message);
        return watch.hold(Answer::new(200, "application/json", ""));
    }
    watch.tell_at(sent, &message);
    whole
}

fn reply(watch: &Watch, message: &str) -> Answer {
    if watch.is_at(Point::ReplyAsked) {
        watch.tell(message);
        return watch.hold(Answer::events(""));
    }
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    let pieces = ["<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>", "To "];
    let begin: String = pieces.map(|piece| chunk(json!({ "content": piece }), Value::Null)).concat();
    if watch.is_at(Point::ReplyBegun) {
        message.clone_into(&mut watch.begun.lock().unwrap());
        return watch.hold(Answer::events(begin));
    }
    let usage = json!({"id": "c", "object": "chat.completion.chunk", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}});
    let end = chunk(json!({ "content": message }), Value::Null) + &chunk(json!({}), json!("stop"));
    watch.tell_at(Point::ReplySent, message);
    Answer::events(format!("{begin}{end}data: {usage}\n\ndata: [DONE]\n\n"))
}

/// A project whose conversations are summarized early and often.
fn shop(watch: &Arc<Watch>) -> Shop {
    let watch = Arc::clone(watch);
    let shop = Shop::responding(move |seen| respond(&watch, seen));
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base");
    larder_testkit::talks::copy_folder(&base, shop.path());
    let kind = std::fs::read_to_string(base.join("conversations/chat.yaml")).unwrap();
    let references = "references: {runs: behind, when: [undecided], recipe: memory/references, breaker: {failures: 3, pause_s: 60}}";
    let summary = "after_messages: 30, after_tokens: 3500, again_after: 20, keep: 15";
    assert!(kind.contains(references) && kind.contains(summary));
    let often = kind
        .replace(references, "references: {runs: \"off\"}")
        .replace(summary, "after_messages: 14, again_after: 2, keep: 12");
    shop.write("conversations/chat.yaml", often);
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "capabilities = [\"streaming\"]\n", "");
    shop
}

/// Posts a message under its own key; the reply if it came.
fn post(watch: &Watch, address: &str, conversation: &str, number: usize) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let (message, body) =
        (format!("message-{number}"), json!({ "text": format!("This is message-{number} of mine") }));
    let body = body.to_string();
    let head = format!(
        "POST /api/v1/conversations/{conversation}/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\naccept: text/event-stream\r\nidempotency-key: key-{number}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    watch.tell_at(Point::Posted, &message);
    let (mut event, mut text) = (String::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?;
        if let Some(kind) = line.strip_prefix("event: ") {
            kind.clone_into(&mut event);
        }
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let data: Value = serde_json::from_str(data).unwrap();
        match event.as_str() {
            "text" => {
                text.push_str(data["text"].as_str().unwrap());
                if *watch.begun.lock().unwrap() == message {
                    watch.tell(&message);
                }
                if text == format!("To {message}") {
                    watch.tell_at(Point::ReplyRead, &message);
                }
            }
            "done" => {
                watch.tell_at(Point::ReplyStored, &message);
                assert_eq!(data["text"], text);
                return Some(text);
            }
            other => panic!("{other}: {data}"),
        }
    }
    None
}

/// What is on the disk of one conversation.
struct OnDisk {
    messages: Vec<ConversationMessage>,
    facts: Vec<MemoryRecord>,
    summary: Option<MemoryRecord>,
}

fn read(shop: &Shop, conversation: &str) -> OnDisk {
    let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
    let user = store.user(LOCAL_USER).unwrap();
    let talks = user.conversations();
    let track = Track { conversation, participant: larder_conversation::ALONE };
    let of = |kind| {
        let filter =
            MemoryFilter { kind: Some(kind), conversation: Some(conversation), ..MemoryFilter::default() };
        talks.memory().list(&filter).unwrap()
    };
    OnDisk {
        messages: talks.messages(track, 1, 0..u64::MAX).unwrap(),
        facts: of(MemoryKind::Fact),
        summary: of(MemoryKind::Summary).pop(),
    }
}

impl OnDisk {
    /// No message is lost or doubled, every reply that a client received is stored, and facts and summary have their sources.
    fn check(&self, told: &BTreeMap<usize, String>, context: &str) {
        let said: Vec<&str> = self
            .messages
            .iter()
            .filter(|one| one.speaker == Speaker::Participant)
            .map(|one| one.text.as_str())
            .collect();
        let distinct: BTreeSet<&str> = said.iter().copied().collect();
        assert_eq!(said.len(), distinct.len(), "{context}: a message is doubled");
        for (number, reply) in told {
            let text = format!("This is message-{number} of mine");
            let asked: Vec<_> = self.messages.iter().filter(|one| one.text == text).collect();
            assert_eq!(asked.len(), 1, "{context}: message {number} is lost");
            let replies: Vec<_> =
                self.messages.iter().filter(|one| one.reply_to == Some(asked[0].number)).collect();
            assert_eq!((replies.len(), &replies[0].text), (1, reply), "{context}: message {number}");
        }
        let waiting = self.messages.iter().filter(|one| one.pending).count();
        assert!(waiting <= 1, "{context}: {waiting} messages wait");
        for fact in &self.facts {
            let number = |field: &str| fact.data[field].as_u64().unwrap();
            let source = self.messages.iter().find(|one| one.number == number("message"));
            let source = &source.unwrap_or_else(|| panic!("{context}: {fact:?} has no source")).text;
            let quoted = &source[number("start") as usize..number("end") as usize];
            assert_eq!(format!("said {quoted}"), fact.data["fact"].as_str().unwrap(), "{context}");
        }
        if let Some(summary) = &self.summary {
            let watermark = summary.data["watermark"].as_u64().unwrap();
            let last = self.messages.iter().find(|one| one.number == watermark).unwrap();
            let says = summary.data["summary"]["summary"].as_str().unwrap();
            assert_eq!(says, format!("Up to {}", last_message(&last.text)), "{context}");
        }
    }
}

#[test]
fn a_server_of_conversations_that_is_killed_loses_and_doubles_nothing() {
    let rounds = setting("LARDER_CRASH_ROUNDS", ROUNDS);
    let mut state = setting("LARDER_CRASH_SEED", 2026) as u64;
    let (watch, reached) = Watch::new();
    let shop = shop(&watch);
    let told = Mutex::new(vec![BTreeMap::new(); CONVERSATIONS]);
    // One message after the other until there are enough or the server is gone; the one that failed is posted again to the
    // next server.
    let talk = |address: &str, conversations: &[String], place: usize, most: usize| {
        let answered = told.lock().unwrap()[place].len();
        for at in answered..most {
            let number = at * CONVERSATIONS + place;
            let Some(reply) = post(&watch, address, &conversations[place], number) else { return };
            assert_eq!(reply, format!("To message-{number}"));
            told.lock().unwrap()[place].insert(number, reply);
        }
    };
    let server = Served::start(&shop, &[]);
    let conversations: Vec<String> = (0..CONVERSATIONS)
        .map(|_| {
            let (_, begun) = server.post("/api/v1/conversations", &json!({"type": "chat"}));
            serde_json::from_str::<Value>(&begun).unwrap()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    for place in 0..CONVERSATIONS {
        talk(&server.address, &conversations, place, BEFORE);
    }
    server.signal("TERM");
    server.end();
    let mut unanswered = BTreeMap::new();
    for round in 0..rounds {
        let point = Point::ALL[round % Point::ALL.len()];
        let (before, steps) = (next(&mut state), next(&mut state) % 300);
        // Behind two turns of each conversation there is at least one job of each kind.
        let (before, posts) = if point.is_behind() { (before % 2, 2) } else { (before % 3, usize::MAX / 2) };
        *watch.plan.lock().unwrap() = Some((point, before));
        let mut server = Served::start(&shop, &[]);
        let message = std::thread::scope(|scope| {
            for place in 0..CONVERSATIONS {
                let (address, conversations, talk) = (server.address.clone(), &conversations, &talk);
                let most = told.lock().unwrap()[place].len() + posts;
                scope.spawn(move || talk(&address, conversations, place, most));
            }
            let message = reached.recv_timeout(PATIENCE);
            for _ in 0..steps {
                std::thread::yield_now();
            }
            server.process.kill().unwrap();
            server.process.wait().unwrap();
            message.unwrap_or_else(|_| panic!("round {round}: {point:?} does not come"))
        });
        watch.held.lock().unwrap().clear();
        watch.begun.lock().unwrap().clear();
        let context = format!("round {round}, killed at {point:?} of {message}");
        let told = told.lock().unwrap();
        for (conversation, told) in conversations.iter().zip(told.iter()) {
            let track = read(&shop, conversation);
            track.check(told, &context);
            let said = format!("This is {message} of mine");
            let Some(asked) = track.messages.iter().find(|one| one.text == said) else { continue };
            *unanswered.entry(point).or_insert(0) += usize::from(asked.pending);
            match point {
                Point::ReplyAsked | Point::ReplyBegun => assert!(asked.pending, "{context}"),
                Point::ReplyStored | Point::SummaryAsked | Point::SummarySent => {
                    assert!(!asked.pending, "{context}");
                }
                _ => {}
            }
        }
    }
    // The next server goes on with what was interrupted, and does all that is left behind.
    let server = Served::start(&shop, &[]);
    let most = told.lock().unwrap().iter().map(BTreeMap::len).max().unwrap() + 1;
    for place in 0..CONVERSATIONS {
        talk(&server.address, &conversations, place, most);
    }
    let end = Instant::now() + PATIENCE;
    let waits = |job: &Value| job["kind"].as_str().is_some_and(|kind| kind.starts_with("conversation_"));
    while shop.json(&["jobs"]).as_array().unwrap().iter().any(waits) {
        assert!(Instant::now() < end, "jobs are never done: {}", shop.json(&["jobs"]));
    }
    server.signal("TERM");
    server.end();
    for (conversation, told) in conversations.iter().zip(told.lock().unwrap().iter()) {
        let track = read(&shop, conversation);
        track.check(told, "at the end");
        assert!(track.messages.iter().all(|one| !one.pending));
        assert_eq!((told.len(), track.messages.len()), (most, 2 * most));
        assert!(!track.facts.is_empty() && track.summary.is_some(), "there is nothing to check");
    }
    assert_eq!(shop.run(&["verify"]).code, 0);
    let mut stderr = std::io::stderr();
    let messages = CONVERSATIONS * most;
    let _ = writeln!(
        stderr,
        "{rounds} servers killed, {messages} messages, none lost or doubled; unanswered at the kill: {unanswered:?}"
    );
}
