//! A server of conversations that is killed at any moment, in replies and in what follows them: no message is lost or
//! doubled, no fact is without its source, and what a summary says agrees with how far it goes.
//!
//! `LARDER_CRASH_ROUNDS` says how many servers are killed, `LARDER_CRASH_SEED` when.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use larder_store::{
    ConversationMessage, LOCAL_USER, MemoryFilter, MemoryKind, MemoryRecord, Speaker, Store, StoreOptions,
    Track,
};
use larder_testkit::stub::{Answer, Seen};
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, ended_within, next, setting};

/// Servers that are killed when nobody asks for more.
const ROUNDS: usize = 10;
/// The longest that anything here may take; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);
/// Conversations that messages are posted to in turn.
const CONVERSATIONS: usize = 2;

/// The last `message-N` of a text.
fn last_message(text: &str) -> &str {
    let said = text.rfind("message-").map_or("", |at| &text[at..]);
    let end = said.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(said.len());
    &said[..end]
}

/// Replies say which message they answer, facts quote the newest message, and summaries say how far they go.
fn respond(seen: &Seen) -> Answer {
    let body = String::from_utf8_lossy(&seen.body);
    let message = last_message(&body).to_owned();
    if body.contains("Write the summary.") {
        return support::reply_text(&json!({"summary": format!("Up to {message}")}).to_string());
    }
    if body.contains("Update the facts.") {
        let fact = json!({"category": "People", "fact": format!("said {message}"), "quote": message});
        return support::reply_text(&json!({"upsert": [fact], "delete": []}).to_string());
    }
    let fields = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>".to_owned();
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    let pieces = [fields, "To ".to_owned(), message];
    let text: String = pieces.map(|piece| chunk(json!({ "content": piece }), Value::Null)).concat();
    let usage = json!({"id": "c", "object": "chat.completion.chunk", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}});
    Answer::events(format!("{text}{}data: {usage}\n\ndata: [DONE]\n\n", chunk(json!({}), json!("stop"))))
}

/// A project whose conversations are summarized early and often.
fn shop() -> Shop {
    let shop = Shop::responding(respond);
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base");
    larder_testkit::talks::copy_folder(&base, shop.path());
    let kind = std::fs::read_to_string(base.join("conversations/chat.yaml")).unwrap();
    let often = kind.replace(
        "after_messages: 30, after_tokens: 3500, again_after: 20, keep: 15",
        "after_messages: 14, again_after: 2, keep: 12",
    );
    assert_ne!(kind, often);
    shop.write("conversations/chat.yaml", often);
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "capabilities = [\"streaming\"]\n", "");
    shop
}

/// Posts a message under its own key; the reply if it came.
fn post(address: &str, conversation: &str, number: usize) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let body = json!({"text": format!("This is message-{number} of mine")}).to_string();
    let head = format!(
        "POST /api/v1/conversations/{conversation}/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\nidempotency-key: key-{number}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    let (head, body) = reply.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200"), "{reply}");
    let body: Value = serde_json::from_str(body).ok()?;
    Some(body["text"].as_str().unwrap().to_owned())
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
    let shop = shop();
    let told = Mutex::new(vec![BTreeMap::new(); CONVERSATIONS]);
    let posted = Mutex::new(0_usize);
    // One message after the other until the server is gone; the one that failed is posted again by the next.
    let talk = |address: &str, conversations: &[String], most: usize| {
        loop {
            let number = *posted.lock().unwrap();
            let place = number % CONVERSATIONS;
            let Some(reply) = (number < most).then(|| post(address, &conversations[place], number)).flatten()
            else {
                return;
            };
            assert_eq!(reply, format!("To message-{number}"));
            told.lock().unwrap()[place].insert(number, reply);
            *posted.lock().unwrap() += 1;
        }
    };
    // A first server that nobody kills says how long some messages take.
    let server = Served::start(&shop, &[]);
    let conversations: Vec<String> = (0..CONVERSATIONS)
        .map(|_| {
            let (_, begun) = server.post("/api/v1/conversations", &json!({"type": "chat"}));
            serde_json::from_str::<Value>(&begun).unwrap()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let started = Instant::now();
    talk(&server.address, &conversations, 16);
    let whole = started.elapsed();
    server.signal("KILL");
    server.end();
    for round in 1..=rounds {
        let mut server = Served::start(&shop, &[]);
        let delay = whole.mul_f64(4.0 * (next(&mut state) % 1_000) as f64 / 1_000.0);
        std::thread::scope(|scope| {
            let (address, conversations, talk) = (server.address.clone(), &conversations, &talk);
            scope.spawn(move || talk(&address, conversations, usize::MAX));
            assert!(!ended_within(&mut server.process, delay));
            server.process.kill().unwrap();
            server.process.wait().unwrap();
        });
        let context = format!("round {round}, killed after {delay:?} of {whole:?}");
        for (conversation, told) in conversations.iter().zip(told.lock().unwrap().iter()) {
            read(&shop, conversation).check(told, &context);
        }
    }
    // The next server goes on with what was interrupted, and does all that is left behind.
    let server = Served::start(&shop, &[]);
    let all = *posted.lock().unwrap() + CONVERSATIONS;
    talk(&server.address, &conversations, all);
    let end = Instant::now() + PATIENCE;
    let waits = |job: &Value| job["kind"].as_str().is_some_and(|kind| kind.starts_with("conversation_"));
    while shop.json(&["jobs"]).as_array().unwrap().iter().any(waits) {
        assert!(Instant::now() < end, "jobs are never done: {}", shop.json(&["jobs"]));
    }
    server.signal("TERM");
    server.end();
    let mut messages = 0;
    for (conversation, told) in conversations.iter().zip(told.lock().unwrap().iter()) {
        let track = read(&shop, conversation);
        track.check(told, "at the end");
        assert!(track.messages.iter().all(|one| !one.pending));
        assert_eq!(track.messages.len(), 2 * told.len());
        assert!(!track.facts.is_empty() && track.summary.is_some(), "there is nothing to check");
        messages += told.len();
    }
    assert_eq!((messages, shop.run(&["verify"]).code), (all, 0));
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "{rounds} servers killed, {messages} messages, none lost or doubled");
}
