//! Conversations under two servers of one home: posted twice, answered once and in order, and read again after any cut.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use larder_testkit::stub::{Answer, Seen};
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, next, setting};

/// Messages; `LARDER_POSTS=1000` is the full count.
const POSTS: usize = 60;
/// Conversations that they belong to.
const CONVERSATIONS: usize = 6;
const WORDS: &str = "one two three four five six seven";

/// Whether a reply is asked for; everything behind one is asked for whole.
fn is_reply(seen: &Seen) -> bool {
    String::from_utf8_lossy(&seen.body).contains(r#""stream":true"#)
}

/// A streamed reply that says which message it answers.
fn respond(seen: &Seen) -> Answer {
    let body = String::from_utf8_lossy(&seen.body);
    if !is_reply(seen) {
        return support::reply_text(r#"{"summary": "They counted."}"#);
    }
    let said = body.rfind("message-").map_or("", |at| &body[at..]);
    let number: String = said.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
    let fields = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>";
    let pieces = [fields.to_owned(), format!("To {number}: ")];
    let pieces = pieces.into_iter().chain(WORDS.split_inclusive(' ').map(str::to_owned));
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    let text: String = pieces.map(|piece| chunk(json!({ "content": piece }), Value::Null)).collect();
    let usage = json!({"id": "c", "object": "chat.completion.chunk", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}});
    let end = chunk(json!({}), json!("stop"));
    Answer::events(format!("{text}{end}data: {usage}\n\ndata: [DONE]\n\n"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// A project with the type `chat`, whose stub answers.
fn shop() -> Shop {
    let shop = Shop::responding(respond);
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    let tables = "[gateway]\nmax_requests = 64\n";
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "capabilities = [\"streaming\"]\n", tables);
    shop
}

fn send(server: &Served, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// The text and the last id of what arrived of a stream, as a client reads it; `true` if it came to its end.
fn take(raw: &str, text: &mut String, last: &mut Option<String>) -> bool {
    let complete = raw.rfind("\n\n").map_or("", |end| &raw[..end]);
    for block in complete.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.split_once(name).map(|(_, value)| value));
        match field("event: ") {
            Some("restart") => (*text, *last) = Default::default(),
            Some("text") => {
                let data: Value = serde_json::from_str(field("data: ").unwrap()).unwrap();
                text.push_str(data["text"].as_str().unwrap());
                *last = field("id: ").map(str::to_owned);
            }
            Some("done") => return true,
            _ => {}
        }
    }
    false
}

/// Posts a message and reads its reply, cut off at random and resumed at either server.
fn told(servers: &[Served], conversation: &str, number: usize, seed: &mut u64) -> String {
    let path = format!("/api/v1/conversations/{conversation}/messages");
    let body = json!({"text": format!("message-{number}")}).to_string();
    let headers = format!("accept: text/event-stream\r\nidempotency-key: key-{number}\r\n");
    let (mut text, mut last) = (String::new(), None::<String>);
    loop {
        let server = &servers[usize::try_from(next(seed)).unwrap_or_default() % servers.len()];
        let resumed = last.as_ref().map(|id| {
            let message = id.split('.').next().unwrap();
            let headers = format!("accept: text/event-stream\r\nlast-event-id: {id}\r\n");
            send(server, "GET", &format!("{path}/{message}/events"), &headers, "")
        });
        let mut stream = resumed.unwrap_or_else(|| send(server, "POST", &path, &headers, &body));
        let most = usize::try_from(next(seed) % 1_200).unwrap() + 200;
        let (mut raw, mut buffer) = (Vec::new(), [0; 256]);
        while raw.len() < most {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                read => raw.extend_from_slice(&buffer[..read]),
            }
        }
        // A chunk of the transfer may begin before an event, but never within one.
        if take(&String::from_utf8_lossy(&raw).replace('\r', ""), &mut text, &mut last) {
            return text;
        }
    }
}

#[test]
fn messages_posted_twice_over_two_servers_are_answered_once_and_in_order() {
    let shop = shop();
    let servers = [Served::start(&shop, &[]), Served::start(&shop, &[])];
    let conversations: Vec<String> = (0..CONVERSATIONS)
        .map(|_| {
            let (status, body) = servers[0].post("/api/v1/conversations", &json!({"type": "chat"}));
            assert_eq!(status, 201, "{body}");
            serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let posts = setting("LARDER_POSTS", POSTS);
    let (at, replies) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<usize, Vec<String>>::new()));
    std::thread::scope(|scope| {
        for worker in 0..8_u64 {
            let (servers, conversations, at, replies) = (&servers, &conversations, &at, &replies);
            scope.spawn(move || {
                let mut seed = worker;
                loop {
                    // Every message is posted twice, by different clients.
                    let turn = at.fetch_add(1, Ordering::Relaxed);
                    if turn >= posts * 2 {
                        return;
                    }
                    let number = turn / 2;
                    let text = told(servers, &conversations[number % CONVERSATIONS], number, &mut seed);
                    replies.lock().unwrap().entry(number).or_default().push(text);
                }
            });
        }
    });
    let replies = replies.into_inner().unwrap();
    for number in 0..posts {
        let expected = format!("To message-{number}: {WORDS}");
        assert_eq!(replies[&number], [expected.clone(), expected], "{number}");
    }
    assert_eq!(shop.seen().iter().filter(|seen| is_reply(seen)).count(), posts, "one call for each message");
    for conversation in &conversations {
        let (_, list) = servers[1].get(&format!("/api/v1/conversations/{conversation}/messages"));
        let list: Value = serde_json::from_str(&list).unwrap();
        let messages = list["messages"].as_array().unwrap();
        let asked = messages.iter().filter(|message| message["speaker"] == "participant");
        let asked: Vec<&Value> = asked.map(|message| &message["number"]).collect();
        let answered = messages.iter().filter(|message| message["speaker"] == "assistant");
        let answered: Vec<&Value> = answered.map(|message| &message["reply_to"]).collect();
        assert_eq!(asked, answered, "{conversation}");
    }
    let costs = shop.json(&["costs", "--by", "call"]);
    assert_eq!(costs["reply"]["calls"], posts, "{costs}");
    for server in servers {
        server.signal("TERM");
        server.end();
    }
}
