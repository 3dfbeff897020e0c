//! A server of conversations that is killed while messages are edited, answered anew or deleted, while facts and
//! conversations are deleted, and while consents are given and revoked: each act is done whole or not at all, and what
//! the client was told is done stays done.
//!
//! `LARDER_CRASH_ROUNDS` says how many servers are killed, `LARDER_CRASH_SEED` varies when.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use larder_store::{
    ConversationMessage, LOCAL_USER, MemoryFilter, MemoryKind, MemoryRecord, Speaker, Store, StoreOptions,
    Track,
};
use larder_testkit::stub::{Answer, Seen};
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, next, setting};

/// Servers that are killed when nobody asks for more: each act several times.
const ROUNDS: usize = 28;
/// The longest that jobs may take at the end; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(300);
/// Messages that a conversation is filled up to before an act.
const FULL: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Edit,
    Regenerate,
    DeleteMessage,
    DeleteFact,
    Grant,
    Revoke,
    DeleteConversation,
}

impl Act {
    const ALL: [Self; 7] = [
        Self::Edit,
        Self::Regenerate,
        Self::DeleteMessage,
        Self::DeleteFact,
        Self::Grant,
        Self::Revoke,
        Self::DeleteConversation,
    ];
}

/// The last `message-N` of a text.
fn last_message(text: &str) -> &str {
    let said = text.rfind("message-").map_or("", |at| &text[at..]);
    let end = said.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(said.len());
    &said[..end]
}

/// Replies say which message they answer; facts quote the newest.
fn respond(seen: &Seen) -> Answer {
    let body = String::from_utf8_lossy(&seen.body);
    let message = last_message(&body);
    if body.contains("Write the summary.") {
        return support::reply(&json!({"summary": format!("Up to {message}")}));
    }
    if body.contains("Update the facts.") {
        let fact = json!({"category": "People", "fact": format!("said {message}"), "quote": message});
        return support::reply(&json!({"upsert": [fact], "delete": []}));
    }
    let thinking = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>";
    support::reply_text(&format!("{thinking}To {message}"))
}

fn shop() -> Shop {
    let shop = Shop::responding(respond);
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base");
    larder_testkit::talks::copy_folder(&base, shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    shop
}

/// Status and body of the reply, if all of it came.
fn ask(address: &str, method: &str, path: &str, body: &Value) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} /api/v1/conversations{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    let (head, body) = reply.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let is_whole = length.is_none_or(|length| length.parse() == Ok(body.len()));
    is_whole.then(|| (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned()))
}

/// What is on the disk of one conversation.
struct OnDisk {
    exists: bool,
    messages: Vec<ConversationMessage>,
    facts: Vec<MemoryRecord>,
    consents: Vec<MemoryRecord>,
}

impl OnDisk {
    fn read(shop: &Shop, conversation: &str) -> Self {
        let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
        let user = store.user(LOCAL_USER).unwrap();
        let talks = user.conversations();
        let track = Track { conversation, participant: larder_conversation::ALONE };
        let of = |kind, conversation| {
            let filter = MemoryFilter { kind: Some(kind), conversation, ..MemoryFilter::default() };
            talks.memory().list(&filter).unwrap()
        };
        Self {
            exists: talks.get(conversation).is_ok(),
            messages: talks.messages(track, 1, 0..u64::MAX).unwrap_or_default(),
            facts: of(MemoryKind::Fact, Some(conversation)),
            consents: of(MemoryKind::Consent, None),
        }
    }

    fn said(&self) -> Vec<&ConversationMessage> {
        self.messages.iter().filter(|one| one.speaker == Speaker::Participant).collect()
    }

    fn replies(&self, number: u64) -> Vec<&ConversationMessage> {
        self.messages.iter().filter(|one| one.reply_to == Some(number)).collect()
    }

    /// Nothing is half there.
    fn check(&self, context: &str) {
        let said = self.said();
        let texts: BTreeSet<&str> = said.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(said.len(), texts.len(), "{context}: a message is doubled");
        for one in &said {
            let replies = self.replies(one.number);
            assert!(replies.len() <= 1, "{context}: {} has {} replies", one.text, replies.len());
            assert_eq!(replies.is_empty(), one.pending, "{context}: {}", one.text);
            for reply in replies {
                assert_eq!(reply.text, format!("To {}", last_message(&one.text)), "{context}");
            }
        }
        for reply in self.messages.iter().filter(|one| one.speaker == Speaker::Assistant) {
            let asked = reply.reply_to.unwrap();
            assert!(said.iter().any(|one| one.number == asked), "{context}: a reply to nothing");
        }
        for fact in &self.facts {
            let number = |field: &str| fact.data[field].as_u64().unwrap();
            let source = said.iter().find(|one| one.number == number("message"));
            let source = &source.unwrap_or_else(|| panic!("{context}: {fact:?} has no source")).text;
            let quoted = &source[number("start") as usize..number("end") as usize];
            assert_eq!(format!("said {quoted}"), fact.data["fact"].as_str().unwrap(), "{context}");
        }
        assert!(self.exists || self.messages.is_empty() && self.facts.is_empty(), "{context}");
    }

    fn is_granted(&self) -> bool {
        self.consents.iter().any(|consent| consent.ended.is_none())
    }
}

/// Whether an act was done.
type Done = Box<dyn Fn(&OnDisk) -> bool>;

/// What a round does, and how one sees that it was done.
struct Plan {
    method: &'static str,
    path: String,
    body: Value,
    done: Done,
}

/// The act on a conversation as it is, if it has what the act needs.
fn plan(act: Act, id: &str, before: &OnDisk, text: String) -> Option<Plan> {
    let last = before.said().last()?.number;
    let (method, path, body, done): (_, _, _, Done) = match act {
        Act::Edit => {
            let body = json!({"text": text});
            let is_new = move |disk: &OnDisk| {
                let place = disk.said().last().is_some_and(|one| one.text == text);
                place && disk.said().iter().all(|one| one.number != last)
            };
            ("PUT", "/messages/last".to_owned(), body, Box::new(is_new))
        }
        Act::Regenerate => {
            let reply = before.replies(last).first()?.number;
            let is_new = move |disk: &OnDisk| disk.messages.iter().all(|one| one.number != reply);
            ("POST", "/regenerate".to_owned(), Value::Null, Box::new(is_new))
        }
        Act::DeleteMessage => {
            let number = before.said().first()?.number;
            let is_gone = move |disk: &OnDisk| {
                let quotes = |fact: &MemoryRecord| fact.data["message"].as_u64() == Some(number);
                let is_there =
                    |one: &ConversationMessage| one.number == number || one.reply_to == Some(number);
                !disk.messages.iter().any(is_there) && !disk.facts.iter().any(quotes)
            };
            ("DELETE", format!("/messages/{number}"), Value::Null, Box::new(is_gone))
        }
        Act::DeleteFact => {
            let fact = before.facts.first()?.id.clone();
            let path = format!("/memory/{fact}");
            let is_gone = move |disk: &OnDisk| disk.facts.iter().all(|one| one.id != fact);
            ("DELETE", path, Value::Null, Box::new(is_gone))
        }
        Act::Grant => {
            let body = json!({"scope": "profile", "shown": "What you say is remembered."});
            ("POST", "/consents".to_owned(), body, Box::new(OnDisk::is_granted))
        }
        Act::Revoke => {
            let consent = before.consents.iter().find(|consent| consent.ended.is_none())?;
            let path = format!("/consents/{}/revoke", consent.id);
            ("POST", path, Value::Null, Box::new(|disk: &OnDisk| !disk.is_granted()))
        }
        Act::DeleteConversation => {
            ("DELETE", String::new(), Value::Null, Box::new(|disk: &OnDisk| !disk.exists))
        }
    };
    Some(Plan { method, path: format!("/{id}{path}"), body, done })
}

#[test]
fn an_act_on_a_conversation_whose_server_is_killed_is_whole_or_not_done() {
    let rounds = setting("LARDER_CRASH_ROUNDS", ROUNDS);
    let mut state = setting("LARDER_CRASH_SEED", 2026) as u64;
    let shop = shop();
    let (mut id, mut number) = (String::new(), 0);
    // By act: told that it is done; done and not told; not done.
    let mut ends = [[0; 3]; Act::ALL.len()];
    for round in 0..rounds {
        let act = Act::ALL[round % Act::ALL.len()];
        let mut server = Served::start(&shop, &[]);
        if id.is_empty() {
            let begun = ask(&server.address, "POST", "", &json!({"type": "chat"})).unwrap().1;
            serde_json::from_str::<Value>(&begun).unwrap()["id"].as_str().unwrap().clone_into(&mut id);
        }
        let there = OnDisk::read(&shop, &id).said().len();
        for _ in there..FULL.max(there + 1) {
            number += 1;
            let body = json!({"text": format!("This is message-{number} of mine")});
            let (status, said) = ask(&server.address, "POST", &format!("/{id}/messages"), &body).unwrap();
            assert!(status == 200 && said.contains(&format!("To message-{number}")), "{status} {said}");
        }
        let end = Instant::now() + PATIENCE;
        let is_ready = |disk: &OnDisk| act != Act::DeleteFact || !disk.facts.is_empty();
        let mut before = OnDisk::read(&shop, &id);
        while !is_ready(&before) {
            assert!(Instant::now() < end, "there is no fact");
            before = OnDisk::read(&shop, &id);
        }
        number += 1;
        let Some(plan) = plan(act, &id, &before, format!("This is message-{number} of mine")) else {
            server.signal("TERM");
            server.end();
            continue;
        };
        // A third of the servers die after they have answered, the others at any moment before.
        let waits = round % 3 == 0;
        let steps = next(&mut state) % 4_000;
        let told = std::thread::scope(|scope| {
            let asking = scope.spawn(|| ask(&server.address, plan.method, &plan.path, &plan.body));
            if waits {
                while !asking.is_finished() {
                    std::thread::yield_now();
                }
            } else {
                (0..steps).for_each(|_| std::thread::yield_now());
            }
            server.process.kill().unwrap();
            server.process.wait().unwrap();
            asking.join().unwrap()
        });
        let context = format!("round {round}, {act:?}, told {told:?}");
        if let Some((status, body)) = &told {
            assert!((200..300).contains(status), "{context}: {body}");
        }
        assert!(told.is_some() || !waits, "{context}");
        let after = OnDisk::read(&shop, &id);
        after.check(&context);
        let is_done = (plan.done)(&after);
        assert!(is_done || told.is_none(), "{context}: it is not done");
        ends[round % Act::ALL.len()][usize::from(told.is_none()) + usize::from(!is_done)] += 1;
        if !after.exists {
            id.clear();
        }
    }
    // The next server does what is left behind.
    let server = Served::start(&shop, &[]);
    let end = Instant::now() + PATIENCE;
    let waits = |job: &Value| job["kind"].as_str().is_some_and(|kind| kind.starts_with("conversation_"));
    while shop.json(&["jobs"]).as_array().unwrap().iter().any(waits) {
        assert!(Instant::now() < end, "jobs are never done: {}", shop.json(&["jobs"]));
    }
    server.signal("TERM");
    server.end();
    if !id.is_empty() {
        OnDisk::read(&shop, &id).check("at the end");
    }
    assert_eq!(shop.run(&["verify"]).code, 0);
    // Few rounds may all miss one of these.
    if rounds >= 4 * ROUNDS {
        let sum = |end: usize| ends.iter().map(|ends| ends[end]).sum::<usize>();
        assert!([0, 1, 2].iter().all(|&end| sum(end) > 0), "servers are killed at one moment only: {ends:?}");
    }
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "{rounds} servers killed; [told, done and not told, not done] of each act:");
    for (act, ends) in Act::ALL.iter().zip(ends) {
        let _ = writeln!(stderr, "{act:?}: {ends:?}");
    }
}
