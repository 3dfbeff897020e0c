//! Conversations under two servers of one home: posted twice, answered once and in order, and read again after any cut.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::stub::{Answer, Seen};
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, next, setting};

/// Messages; `LARDER_POSTS=1000` is the full count.
const POSTS: usize = 60;
/// Conversations that they belong to.
const CONVERSATIONS: usize = 6;
const WORDS: &str = "one two three four five six seven";

fn is_streamed(seen: &Seen) -> bool {
    String::from_utf8_lossy(&seen.body).contains(r#""stream":true"#)
}

/// Whether a reply is asked for: every other call is asked for a value of a schema.
fn is_reply(seen: &Seen) -> bool {
    !String::from_utf8_lossy(&seen.body).contains("satisfies this JSON Schema")
}

/// A streamed reply that says which message it answers.
fn respond(seen: &Seen) -> Answer {
    let body = String::from_utf8_lossy(&seen.body);
    if !is_reply(seen) {
        let fact = json!({"category": "People", "fact": "The daughter is called Lily.", "quote": "my daughter Lily"});
        return support::reply(
            &json!({"summary": "They counted.", "upsert": [fact], "delete": [], "attacks": false}),
        );
    }
    let said = body.rfind("message-").map_or("", |at| &body[at..]);
    let number: String = said.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
    let fields = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>";
    let pieces = [fields.to_owned(), format!("To {number}: ")];
    let pieces = pieces.into_iter().chain(WORDS.split_inclusive(' ').map(str::to_owned));
    if !is_streamed(seen) {
        return support::reply_text(&pieces.collect::<String>());
    }
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
            server.send("GET", &format!("{path}/{message}/events"), &headers, "")
        });
        let mut stream = resumed.unwrap_or_else(|| server.send("POST", &path, &headers, &body));
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

/// Status and body of a request of the API.
fn api(server: &Served, method: &str, path: &str, headers: &str, body: &Value) -> (u16, Value) {
    let (status, _, body) = server.ask(method, &format!("/api/v1/{path}"), headers, &body.to_string());
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// Reads until a condition holds: the API does not announce the end of background jobs.
fn until(what: &str, read: impl Fn() -> Value, wanted: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let value = read();
        if wanted(&value) {
            return value;
        }
        assert!(Instant::now() < end, "in vain waited for {what}: {value}");
        std::thread::yield_now();
    }
}

#[test]
fn what_is_remembered_and_shared_is_up_to_the_person() {
    let shop = shop();
    let server = Served::start(&shop, &[]);
    let api = |method: &str, path: &str, body: Value| api(&server, method, path, "", &body);
    let people = json!({"type": "chat", "participants": [{"name": "ana"}, {"name": "ben"}]});
    let id = api("POST", "conversations", people).1["id"].as_str().unwrap().to_owned();
    let of = |what: &str, who: &str| format!("conversations/{id}/{what}?participant={who}");
    let say = |who: &str, text: &str| {
        let said =
            api("POST", &format!("conversations/{id}/messages"), json!({"text": text, "participant": who}));
        assert_eq!(said.0, 200, "{}", said.1);
        said.1["to"].as_u64().unwrap()
    };
    let last_prompt = || {
        let seen = shop.seen();
        String::from_utf8_lossy(&seen.iter().rfind(|seen| is_reply(seen)).unwrap().body).into_owned()
    };
    let facts = |who: &str| api("GET", &of("memory", who), json!({})).1["facts"].clone();
    // A fact with the words that it comes from; the other participant has none, and cannot touch it.
    let first = say("ana", "message-1 is about my daughter Lily");
    let found = until("the fact", || facts("ana"), |facts| facts[0].is_object());
    assert_eq!(
        (&found[0]["words"], &found[0]["fact"]["message"]),
        (&json!("my daughter Lily"), &json!(first))
    );
    assert_eq!(facts("ben"), json!([]));
    let fact = found[0]["fact"]["id"].as_str().unwrap();
    let corrected = json!({"fact": "The daughter is called Lilly."});
    assert_eq!(api("PUT", &of(&format!("memory/{fact}"), "ben"), corrected.clone()).0, 404);
    assert_eq!(api("DELETE", &of(&format!("memory/{fact}"), "ben"), json!({})).0, 404);
    let (status, new) = api("PUT", &of(&format!("memory/{fact}"), "ana"), corrected);
    assert_eq!(
        (status, &new["fact"], &new["supersedes"]),
        (200, &json!("The daughter is called Lilly."), &json!(fact))
    );
    assert!(facts("ana")[0]["fact"]["valid_until"].is_string());
    // A consent, with the text that was shown; it holds at once, and what was made under it goes when it is revoked.
    let (_, scopes) = api("GET", &of("consents", "ana"), json!({}));
    assert_eq!((&scopes["scopes"][0]["scope"], &scopes["consents"]), (&json!("profile"), &json!([])));
    let give = || {
        let shown = "May what you tell me be remembered?";
        let new = json!({"scope": "profile", "shown": shown, "participant": "ana"});
        api("POST", &format!("conversations/{id}/consents"), new).1
    };
    let consent = give();
    assert_eq!(
        (&give()["id"], consent["shown"].as_str()),
        (&consent["id"], Some("May what you tell me be remembered?"))
    );
    api("POST", &format!("conversations/{id}/sessions"), json!({"participant": "ana"}));
    say("ana", "message-2 what is my daughter called");
    assert!(last_prompt().contains("is called Lilly."), "{}", last_prompt());
    let revoke = format!("consents/{}/revoke", consent["id"].as_str().unwrap());
    assert_eq!(api("POST", &of(&revoke, "ben"), json!({})).0, 404);
    assert!(api("POST", &of(&revoke, "ana"), json!({})).1["revoked"].is_string());
    until("the erasure", || facts("ana"), |facts| *facts == json!([]));
    say("ana", "message-3 what is my daughter called");
    assert!(!last_prompt().contains("Lilly"));
    // A share: seen first, confirmed as seen, once, for those who are named.
    let told = say("ana", "message-4 tell Ben that I am sorry");
    say("ben", "message-5 anything from Ana");
    assert!(!last_prompt().contains("sorry"));
    let new = json!({"message": told, "text": "I am sorry.", "to": ["ben"]});
    let (_, preview) = api("POST", &of("shares/preview", "ana"), new.clone());
    assert_eq!((&preview["text"], &preview["to"]), (&json!("I am sorry."), &json!(["ben"])));
    let share = |confirm: &Value| api("POST", &of("shares", "ana"), json!({ "confirm": confirm }));
    assert_eq!(share(&json!("else")).0, 409);
    let given = share(&preview["confirm"]);
    assert_eq!((given.0, share(&preview["confirm"]).1), (201, given.1.clone()));
    let (_, shares) = api("GET", &of("shares", "ben"), json!({}));
    assert_eq!((&shares["received"][0]["text"], &shares["given"]), (&json!("I am sorry."), &json!([])));
    assert_eq!(shares["received"].as_array().unwrap().len(), 1);
    say("ben", "message-6 and now");
    assert!(last_prompt().contains("ana shared: I am sorry.") && !last_prompt().contains("tell Ben"));
    for (status, share) in [
        (422, json!({"message": told, "to": ["nobody"]})),
        (422, json!({"message": told, "to": []})),
        (422, json!({"message": told, "purpose": "explain"})),
        (404, json!({"message": 4_000, "to": ["ben"]})),
    ] {
        assert_eq!(api("POST", &of("shares/preview", "ana"), share).0, status);
    }
    // A person goes from everywhere; the other stays.
    assert_eq!(api("DELETE", "conversation-persons/ana", json!({})).0, 204);
    assert_eq!(api("DELETE", "conversation-persons/ana", json!({})).0, 404);
    assert_eq!(api("GET", &of("messages", "ana"), json!({})).0, 404);
    assert_eq!(api("GET", &of("messages", "ben"), json!({})).1["messages"].as_array().unwrap().len(), 4);
    server.signal("TERM");
    server.end();
}

#[test]
fn one_of_several_sides_of_a_caller_is_exported_and_erased_alone() {
    let shop = shop();
    let server = Served::start(&shop, &[]);
    let api = |method: &str, path: &str, body: Value| api(&server, method, path, "", &body);
    let people = json!({"type": "chat", "participants": [{"name": "ana"}, {"name": "ben"}]});
    let id = api("POST", "conversations", people).1["id"].as_str().unwrap().to_owned();
    let of = |what: &str, query: &str| format!("conversations/{id}{what}{query}");
    for who in ["ana", "ben"] {
        let text = format!("message-1 by {who}");
        assert_eq!(api("POST", &of("/messages", ""), json!({"text": text, "participant": who})).0, 200);
    }
    let (status, problem) = api("POST", &of("/messages", ""), json!({"text": "message-2 by whom?"}));
    assert!(status == 422 && problem.to_string().contains("as ana and ben"), "{problem}");
    let tracks = |query: &str| {
        let exported = api("GET", &of("/export", query), json!({})).1;
        let tracks = exported["tracks"].as_array().cloned().unwrap_or_default();
        tracks.iter().map(|track| track["participant"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (tracks(""), tracks("?participant=ben")),
        (vec!["ana".into(), "ben".into()], vec!["ben".into()])
    );
    for (status, query) in [(404, "?participant=zoe"), (400, "?participnt=ana")] {
        assert_eq!(api("GET", &of("/export", query), json!({})).0, status, "{query}");
        assert_eq!(api("DELETE", &of("", query), json!({})).0, status, "{query}");
    }
    assert_eq!(api("DELETE", &of("", "?participant=ana"), json!({})).0, 204);
    assert_eq!(api("GET", &of("/messages", "?participant=ana"), json!({})).0, 404);
    assert_eq!(api("GET", &of("/messages", ""), json!({})).1["messages"].as_array().unwrap().len(), 2);
    assert_eq!(api("DELETE", &of("", "?participant=ben"), json!({})).0, 204);
    assert_eq!(api("GET", &of("", ""), json!({})).0, 404);
    server.signal("TERM");
    server.end();
}

#[test]
fn an_edit_and_a_regeneration_that_are_repeated_are_done_once() {
    let shop = shop();
    let server = Served::start(&shop, &[]);
    let (_, begun) = api(&server, "POST", "conversations", "", &json!({"type": "chat"}));
    let path = format!("conversations/{}", begun["id"].as_str().unwrap());
    api(&server, "POST", &format!("{path}/messages"), "", &json!({"text": "message-1"}));
    let mut calls = 1;
    for (method, end, key) in [("PUT", "messages/last", "k-1"), ("POST", "regenerate", "k-2")] {
        let again = || {
            let headers = format!("idempotency-key: {key}\r\n");
            api(&server, method, &format!("{path}/{end}"), &headers, &json!({"text": "message-2"}))
        };
        let (first, second) = (again(), again());
        assert_eq!(
            (first.0, &first.1["number"], &first.1["text"]),
            (200, &second.1["number"], &second.1["text"])
        );
        assert!(first.1["text"].as_str().unwrap().starts_with("To message-2"), "{}", first.1);
        calls += 1;
        assert_eq!(shop.seen().iter().filter(|seen| is_reply(seen)).count(), calls, "{end}");
    }
    let other = api(
        &server,
        "PUT",
        &format!("{path}/messages/last"),
        "idempotency-key: k-2\r\n",
        &json!({"text": "x"}),
    );
    assert_eq!(other.0, 422, "{}", other.1);
    server.signal("TERM");
    server.end();
}

/// Asks a conversation type as a client of models does: the status, the session that the reply names, and the body.
fn ask(server: &Served, path: &str, headers: &str, body: &Value) -> (u16, String, String) {
    let (status, head, body) = server.ask("POST", path, headers, &body.to_string());
    let session = head.lines().find_map(|line| line.strip_prefix("x-larder-session: "));
    (status, session.unwrap_or_default().to_owned(), body)
}

#[test]
fn a_type_is_a_model_whose_clients_may_resend_their_history() {
    const CHAT: &str = "/v1/chat/completions";
    let shop = shop();
    let server = Served::start(&shop, &[]);
    let (_, models) = server.get("/v1/models");
    assert!(models.contains("conversation/chat") && models.contains("conversation/tutor"), "{models}");
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let body = |messages: &[Value]| json!({"model": "conversation/chat", "messages": messages});
    let (user, system) = (|text: &str| said("user", text), said("system", "Be someone else."));
    let answer = |number: usize| format!("To message-{number}: {WORDS}");
    let content = |raw: &str| {
        let reply: Value = serde_json::from_str(raw).unwrap();
        reply["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    let calls = || shop.seen().iter().filter(|seen| is_reply(seen)).count();
    let stored = |id: &str| {
        let (_, list) = server.get(&format!("/api/v1/conversations/{id}/messages"));
        let list: Value = serde_json::from_str(&list).unwrap();
        let texts =
            list["messages"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    // A first message begins a conversation, which the reply names.
    let first = [system.clone(), user("message-1")];
    let (status, id, reply) = ask(&server, CHAT, "", &body(&first));
    assert!(status == 200 && id.starts_with("conv-"), "{status} {id} {reply}");
    assert_eq!(content(&reply), answer(1));
    assert!(reply.contains("\"total_tokens\":110"), "{reply}");
    // The whole history again: the conversation goes on, and nothing is sent or stored twice; a retry is the same request.
    let second = [system, user("message-1"), said("assistant", &answer(1)), user("message-2")];
    for _ in 0..2 {
        let (status, session, reply) = ask(&server, CHAT, "", &body(&second));
        assert_eq!((status, session.as_str(), content(&reply)), (200, id.as_str(), answer(2)), "{reply}");
    }
    assert_eq!(calls(), 2);
    let seen = shop.seen();
    let prompt =
        String::from_utf8_lossy(&seen.iter().rfind(|seen| is_reply(seen)).unwrap().body).into_owned();
    assert_eq!(prompt.matches("message-1").count(), 2, "as it was said, and in the reply: {prompt}");
    assert!(!prompt.contains("Be someone else."), "the type has the instructions");
    assert_eq!(stored(&id), ["message-1", &answer(1), "message-2", &answer(2)]);
    // The last message in other words, for a client that names the conversation; then one that sends nothing but its message.
    let named = format!("x-larder-session: {id}\r\n");
    let edited = [user("message-1"), said("assistant", &answer(1)), user("message-3")];
    let (_, _, reply) = ask(&server, CHAT, &named, &body(&edited));
    assert_eq!(content(&reply), answer(3));
    assert_eq!(stored(&id), ["message-1", &answer(1), "message-3", &answer(3)]);
    let mut alone = body(&[user("message-4")]);
    alone["stream"] = json!(true);
    alone["metadata"] = json!({"conversation": id, "participant": "user"});
    for _ in 0..2 {
        let (status, session, events) = ask(&server, CHAT, "idempotency-key: k-4\r\n", &alone);
        assert_eq!((status, session.as_str()), (200, id.as_str()), "{events}");
        assert!(
            events.matches("\"delta\":{\"content\":").count() > 3 && events.contains("data: [DONE]"),
            "{events}"
        );
    }
    assert_eq!(stored(&id).len(), 6);
    // The other formats.
    let mut other = body(&[user("message-5")]);
    (other["stream"], other["max_tokens"]) = (json!(true), json!(50));
    let (_, _, events) = ask(&server, "/v1/messages", &named, &other);
    assert!(events.matches("text_delta").count() > 3 && events.contains("event: message_stop"), "{events}");
    let response = json!({"model": "conversation/chat", "input": "message-6", "stream": true});
    let (_, _, events) = ask(&server, "/v1/responses", &named, &response);
    assert!(events.contains("response.completed") && events.contains(&answer(6)), "{events}");
    assert_eq!(stored(&id).len(), 10);
    // What cannot be meant is said.
    let calls_before = calls();
    let unknown = [user("Never"), said("assistant", "said."), user("message-7")];
    let mut nowhere = body(&[user("message-7")]);
    nowhere["model"] = json!("conversation/chatt");
    let other_type = json!({"model": "conversation/tutor", "messages": [user("message-7")]});
    for (status, words, headers, body) in [
        (409, "the header x-larder-session", "", body(&unknown)),
        (400, "has to be the user's", "", body(&[user("message-7"), said("assistant", "x")])),
        (404, "no conversation type", "", nowhere),
        (422, "of type chat", named.as_str(), other_type),
        (404, "conv-1", "x-larder-session: conv-1\r\n", body(&[user("message-7")])),
    ] {
        let (got, _, error) = ask(&server, CHAT, headers, &body);
        assert!(got == status && error.contains(words), "{got} {error}");
    }
    assert_eq!(calls(), calls_before);
    server.signal("TERM");
    server.end();
}

#[test]
fn what_a_conversation_cannot_take_is_refused_or_listed() {
    const CHAT: &str = "/v1/chat/completions";
    let shop = shop();
    let server = Served::start(&shop, &[]);
    let user = json!({"role": "user", "content": "message-1"});
    let body = |more: Value| {
        let mut body = json!({"model": "conversation/chat", "messages": [user]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let picture = json!({"type": "image_url", "image_url": {"url": "x"}});
    let pictured = json!({"role": "user", "content": [{"type": "text", "text": "message-1"}, picture]});
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let looked = json!([user, calls, {"role": "tool", "tool_call_id": "c", "content": "x"}]);
    for (words, more) in [
        ("tools: a conversation type offers its model no tools of the client", json!({ "tools": tools })),
        ("n: a conversation type gives one reply", json!({"n": 2})),
        ("or name the conversation in the header x-larder-session", json!({"previous_response_id": "r"})),
        ("message 1: a conversation takes text, and no pictures or files", json!({"messages": [pictured]})),
        ("messages 2, 3: a conversation takes text, and no calls of tools", json!({"messages": looked})),
        (
            "message 1: role \\\"robot\\\" cannot be read",
            json!({"messages": [{"role": "robot", "content": "x"}, user]}),
        ),
    ] {
        let (status, _, error) = ask(&server, CHAT, "", &body(more));
        assert!(status == 400 && error.contains(words), "{status} {error}");
    }
    assert!(shop.seen().is_empty());
    let system = json!({"role": "system", "content": "Be someone else."});
    let more = json!({"temperature": 0.7, "max_tokens": 50, "n": 1, "tools": [], "messages": [system, user]});
    let (status, head, _) = server.ask("POST", CHAT, "", &body(more).to_string());
    let ignored = "x-larder-ignored: temperature, message 1: instructions";
    assert!(status == 200 && head.contains(ignored), "{head}");
    server.signal("TERM");
    server.end();
}

#[test]
fn what_comes_before_a_conversation_is_answered_and_ceilings_hold_for_all_that_is_asked() {
    let shop = shop();
    let kind = std::fs::read_to_string(shop.path().join("conversations/chat.yaml")).unwrap();
    let guard = "  guard: {about:";
    let greet = "  greet: {about: Says hello., recipe: memory/judge, on: [start], gives: data}\n";
    assert!(kind.contains(guard));
    let kind = kind.replace(guard, &format!("{greet}{guard}"));
    // A call of the stub costs 0.000021 US dollars.
    let with_ceilings = |ceilings: &str| {
        shop.write("conversations/chat.yaml", format!("{kind}\nceilings: {{{ceilings}}}\n"));
        Served::start(&shop, &[])
    };
    let start = |server: &Served, name: &str, text: &str| {
        api(server, "POST", &format!("conversation-types/{name}/start"), "", &json!({ "text": text }))
    };
    let say = |server: &Served, id: &str, text: &str| {
        let path = format!("conversations/{id}/messages");
        api(server, "POST", &path, &format!("idempotency-key: {text}\r\n"), &json!({ "text": text }))
    };
    let server = with_ceilings("per_conversation: 0.00001");
    let (status, started) = start(&server, "chat", "What is this?");
    assert_eq!((status, &started["data"]["summary"]), (200, &json!("They counted.")), "{started}");
    assert_eq!(started["calls"][0]["call"], "greet");
    assert_eq!(start(&server, "chatt", "What is this?").0, 404);
    assert_eq!((start(&server, "tutor", "What is this?").0, start(&server, "chat", " ").0), (422, 422));
    assert_eq!(api(&server, "GET", "conversations", "", &json!({})).1["conversations"], json!([]));
    // What is spent in an aside belongs to the conversation as much as what is spent on its main line.
    let (_, begun) = api(&server, "POST", "conversations", "", &json!({"type": "chat"}));
    let id = begun["id"].as_str().unwrap().to_owned();
    api(&server, "POST", &format!("conversations/{id}/sessions"), "", &json!({"aside": "diary"}));
    assert_eq!(say(&server, &id, "message-1").0, 200);
    let (status, problem) = say(&server, &id, "message-2");
    assert!(status == 429 && problem.to_string().contains("`ceilings.per_conversation`"), "{problem}");
    let act = json!({"action": "explain"});
    assert_eq!(api(&server, "POST", &format!("conversations/{id}/actions"), "", &act).0, 429);
    assert_eq!(start(&server, "chat", "Another time").0, 200, "it is no conversation's");
    server.signal("TERM");
    server.end();
    let costs = shop.json(&["costs", "--by", "stage"]);
    assert_eq!(
        (&costs["chat/start"]["calls"], &costs["chat/start"]["picos"]),
        (&json!(2), &json!(42_000_000))
    );
    assert!(costs["chat/diary"]["calls"].as_u64() >= Some(1) && costs.get("chat/hello").is_none(), "{costs}");
    assert_eq!(shop.json(&["costs"])["before any (chat)"]["calls"], 2);
    // The message that was refused is kept, and answered once there is money.
    let server = with_ceilings("per_conversation: 1, per_day: 1");
    assert_eq!(say(&server, &id, "message-2").0, 200);
    server.signal("TERM");
    server.end();
    let server = with_ceilings("per_day: 0.00001");
    let (status, problem) = start(&server, "chat", "Again");
    assert!(status == 429 && problem.to_string().contains("`ceilings.per_day`"), "{problem}");
    let (_, begun) = api(&server, "POST", "conversations", "", &json!({"type": "chat"}));
    assert_eq!(say(&server, begun["id"].as_str().unwrap(), "message-3").0, 429, "of all conversations");
    server.signal("TERM");
    server.end();
}
