//! Requests in which a pointer cannot be opened as usual: each is condensed as far as it safely can be, and its record
//! says what was left alone and why.

use larder_proxy::record::RequestRecord;
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::support::{Gateway, after_tool, completion, long_log, pointers, said};

/// Larder's tool over MCP, as clients offer it.
fn mcp_tool(name: &str) -> Value {
    let description = "Returns the original bytes behind a pointer (lp1-…)";
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": {"type": "object"}}})
}

fn tool_names(sent: &Value) -> Vec<String> {
    let name = |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap().to_owned();
    sent["tools"].as_array().into_iter().flatten().map(name).collect()
}

fn left_alone(record: &RequestRecord) -> String {
    let lines = record.summary.left_alone.iter().map(|left| format!("{}: {}", left.what, left.why));
    lines.collect::<Vec<_>>().join("\n")
}

/// A reply of the responses format with these items.
fn response(id: &str, output: Value) -> Answer {
    Answer::json(
        200,
        &json!({"id": id, "object": "response", "status": "completed", "model": "gpt-4o-mini", "output": output,
            "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}}),
    )
}

fn spoken(id: &str, text: &str) -> Answer {
    response(
        id,
        json!([{"id": format!("msg_{id}"), "type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}]),
    )
}

fn called(id: &str, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

async fn ask(gateway: &Gateway, body: &Value) -> Value {
    let reply = gateway.post("/v1/responses", body.to_string()).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    reply.json().await.unwrap()
}

/// A change of a request.
type Change<'a> = &'a dyn Fn(&mut Value);

/// A log of two days, of which no line repeats another.
fn two_days_log() -> String {
    long_log() + &long_log().replace("2026-11-22", "2026-11-23")
}

/// What was sent of a request whose result fits and of one whose result does not, and what was left alone.
async fn fitting_and_not(settings: &str, change: impl Fn(&mut Value)) -> (Vec<Value>, Vec<String>) {
    let gateway = Gateway::with(StubServer::responding(|_| said("ok")).await, settings).await;
    for log in [long_log(), two_days_log()] {
        let mut body = after_tool(&log);
        change(&mut body);
        assert_eq!(gateway.chat(&body).await.status(), 200, "{settings}");
    }
    let sent: Vec<Value> = gateway.seen().iter().map(|seen| seen.json()).collect();
    let shown = sent[1]["messages"][3]["content"].as_str().unwrap();
    assert!(!pointers(&gateway, shown).is_empty(), "{shown}");
    for pointer in pointers(&gateway, shown) {
        assert!(!gateway.store().pointers().resolve(&pointer).unwrap().is_empty());
    }
    let (records, _) = gateway.stop().await;
    assert!(records.iter().all(|record| record.summary.tokens.after <= record.summary.tokens.before));
    (sent, records.iter().map(left_alone).collect())
}

#[tokio::test]
async fn what_the_model_could_not_open_is_hidden_only_where_the_prompt_would_not_fit() {
    let several = |body: &mut Value| body["n"] = json!(2);
    let functions = |body: &mut Value| {
        let tool = body.as_object_mut().unwrap().remove("tools").unwrap();
        body["functions"] = json!([tool[0]["function"]]);
    };
    let cases: [(&str, Change<'_>, &str); 3] = [
        ("", &several, "several choices"),
        ("", &functions, "functions"),
        ("[gateway]\nrehydrate_rounds = 0\n", &|_| (), "rehydrate_rounds"),
    ];
    for (settings, change, why) in cases {
        let (sent, left) = fitting_and_not(settings, change).await;
        assert_eq!(sent[0]["messages"][3]["content"], long_log(), "{why}");
        assert!(!sent.iter().any(|sent| sent["tools"].to_string().contains("larder_rehydrate")), "{why}");
        assert!(left.iter().all(|left| left.contains(why) && left.contains("as long as")), "{left:?}");
    }
}

#[tokio::test]
async fn a_tool_of_the_clients_that_opens_pointers_does_for_ours() {
    let (sent, left) = fitting_and_not("", |body| {
        body["n"] = json!(2);
        body["tools"].as_array_mut().unwrap().push(mcp_tool("mcp__larder__rehydrate"));
    })
    .await;
    assert!(sent[0]["messages"][3]["content"].as_str().unwrap().len() < long_log().len() / 2);
    assert_eq!(tool_names(&sent[0]), ["read_log", "mcp__larder__rehydrate"]);
    assert!(left[0].contains("opens pointers with mcp__larder__rehydrate"), "{left:?}");
}

#[tokio::test]
async fn what_a_client_read_back_over_mcp_is_never_condensed_again() {
    let gateway = Gateway::new([said("ok")]).await;
    for name in ["mcp__larder__rehydrate", "larder_rehydrate"] {
        let mut body = after_tool(&long_log());
        body["tools"].as_array_mut().unwrap().push(mcp_tool(name));
        body["messages"][2]["tool_calls"][0]["function"]["name"] = json!(name);
        gateway.chat(&body).await;
        body["model"] = json!("gpt-4o-mini");
        assert_eq!(gateway.last_sent(), body, "{name}");
    }
    let (records, _) = gateway.stop().await;
    assert!(left_alone(&records[0]).contains("1 tool result: the model or the client read them back"));
}

#[tokio::test]
async fn where_the_client_has_a_tool_of_that_name_ours_takes_another() {
    let provider = StubServer::responding(|seen| {
        let sent = seen.json();
        let messages = sent["messages"].as_array().unwrap();
        if let Some(last) = messages.last().filter(|last| last["tool_call_id"] == "ours_1") {
            return said(last["content"].as_str().unwrap());
        }
        let shown = messages[3]["content"].as_str().unwrap();
        let at = shown.find("lp1-").unwrap();
        let id = larder_text::pointer::Pointer::parse_prefix(&shown[at..]).unwrap().1.id.to_string();
        let call = |id: &str, name: &str, arguments: Value| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
        };
        let ours = call("ours_1", "larder_rehydrate_2", json!({"id": id, "pattern": "ERROR"}));
        let theirs = call("theirs_1", "larder_rehydrate", json!({"water": true}));
        let calls = if sent["user"] == "both" { json!([ours, theirs]) } else { json!([ours]) };
        let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
        Answer::json(200, &completion(message, "tool_calls"))
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let mut body = after_tool(&long_log());
    let tool = json!({"type": "function", "function": {"name": "larder_rehydrate", "parameters": {"type": "object"}}});
    body["tools"].as_array_mut().unwrap().push(tool);
    let reply: Value = gateway.chat(&body).await.json().await.unwrap();
    assert!(reply["choices"][0]["message"]["content"].as_str().unwrap().contains("ERROR request 321"));
    assert_eq!(tool_names(&gateway.last_sent()), ["read_log", "larder_rehydrate", "larder_rehydrate_2"]);
    body["user"] = json!("both");
    let reply: Value = gateway.chat(&body).await.json().await.unwrap();
    let calls = reply["choices"][0]["message"]["tool_calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["id"]), (1, &json!("theirs_1")), "the client's own is its own");
    gateway.stop().await;
}

#[tokio::test]
async fn a_reply_made_in_the_background_is_shortened_only_to_fit() {
    let gateway = Gateway::with(StubServer::responding(|_| spoken("r1", "ok")).await, "").await;
    for log in [long_log(), two_days_log()] {
        let call = json!({"type": "function_call", "call_id": "c", "name": "read_log", "arguments": "{}"});
        ask(&gateway, &json!({"model": "mini", "background": true, "input": [call, called("c", &log)]}))
            .await;
    }
    let sent: Vec<Value> = gateway.seen().iter().map(|seen| seen.json()).collect();
    assert_eq!(sent[0]["input"][1]["output"], long_log());
    assert!(!pointers(&gateway, &sent[1].to_string()).is_empty());
    assert!(sent.iter().all(|sent| sent.get("tools").is_none()));
    gateway.stop().await;
}

#[tokio::test]
async fn what_continues_from_a_reply_that_the_provider_holds_keeps_its_pointers_readable() {
    let provider = StubServer::responding(|seen| {
        let sent = seen.json();
        let last = sent["input"].as_array().unwrap().last().unwrap().clone();
        match sent["previous_response_id"].as_str() {
            None => {
                let shown = last["output"].as_str().unwrap();
                let at = shown.find("lp1-").unwrap();
                let id = larder_text::pointer::Pointer::parse_prefix(&shown[at..]).unwrap().1.id.to_string();
                let call = |id: &str, name: &str, arguments: Value| {
                    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
                        "arguments": arguments.to_string()})
                };
                let ours = call("ours_1", "larder_rehydrate", json!({"id": id, "pattern": "ERROR"}));
                response("resp_1", json!([ours, call("theirs_1", "read_log", json!({"page": 2}))]))
            }
            Some("resp_1") => spoken("resp_2", "done"),
            _ => spoken("resp_3", "done"),
        }
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let tools = json!([{"type": "function", "name": "read_log", "parameters": {"type": "object"}}]);
    let call = json!({"type": "function_call", "call_id": "c", "name": "read_log", "arguments": "{}"});
    let user = json!({"role": "user", "content": "Which request failed?"});
    let body = json!({"model": "mini", "tools": tools, "input": [user, call, called("c", &long_log())]});
    let reply = ask(&gateway, &body).await;
    assert_eq!(reply["output"].as_array().unwrap().len(), 1, "{reply}");
    let gateway = gateway.restart().await;
    let next = json!({"model": "mini", "tools": tools, "previous_response_id": "resp_1",
        "input": [called("theirs_1", &long_log())]});
    ask(&gateway, &next).await;
    let sent = gateway.last_sent();
    let outputs = sent["input"].as_array().unwrap();
    assert_eq!((outputs.len(), &outputs[0]["call_id"]), (2, &json!("ours_1")), "the provider waits for both");
    assert!(outputs[0]["output"].as_str().unwrap().contains("ERROR request 321"));
    assert_eq!(outputs[1]["output"], long_log(), "its tool is not known, and it fits");
    assert_eq!(tool_names(&sent), ["read_log", "larder_rehydrate"]);
    // What it continues from has pointers, although the request has none.
    let third = json!({"model": "mini", "tools": tools, "previous_response_id": "resp_2",
        "input": [{"role": "user", "content": "And why?"}]});
    ask(&gateway, &third).await;
    assert_eq!(tool_names(&gateway.last_sent()), ["read_log", "larder_rehydrate"]);
    // One that does not fit is shortened, and never by what may no longer be above.
    let flood = json!({"model": "mini", "tools": tools, "previous_response_id": "elsewhere",
        "input": [called("x", &long_log().repeat(2))]});
    ask(&gateway, &flood).await;
    let sent = gateway.last_sent();
    let shown = sent["input"][0]["output"].as_str().unwrap();
    assert!(!pointers(&gateway, shown).is_empty() && !shown.contains("as above"), "{shown}");
    assert_eq!(tool_names(&sent), ["read_log", "larder_rehydrate"]);
    let (records, _) = gateway.stop().await;
    assert!(
        left_alone(&records[1]).contains("the provider holds their calls"),
        "{}",
        left_alone(&records[1])
    );
}

#[tokio::test]
async fn a_stream_in_rounds_is_continued_from_its_last_one() {
    let events = |id: &str, item: &Value| {
        let response = |status: &str, output: Value| json!({"id": id, "object": "response", "status": status, "output": output});
        let event = |kind: &str, more: Value| {
            let mut event = json!({"type": kind, "output_index": 0});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            format!("event: {kind}\ndata: {event}\n\n")
        };
        event("response.created", json!({"response": response("in_progress", json!([]))}))
            + &event("response.output_item.added", json!({"item": item}))
            + &event("response.output_item.done", json!({"item": item}))
            + &event("response.completed", json!({"response": response("completed", json!([item]))}))
    };
    let provider = StubServer::responding(move |seen| {
        let sent = seen.json();
        let input = sent["input"].as_array().unwrap();
        if input.last().unwrap()["call_id"] == "ours_1" {
            let said = json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Line 321.", "annotations": []}]});
            return Answer::events(events("resp_2", &said));
        }
        if sent["stream"] != true {
            return spoken("resp_3", "done");
        }
        let shown = input.last().unwrap()["output"].as_str().unwrap();
        let at = shown.find("lp1-").unwrap();
        let id = larder_text::pointer::Pointer::parse_prefix(&shown[at..]).unwrap().1.id.to_string();
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "ours_1", "name": "larder_rehydrate",
            "arguments": json!({"id": id, "pattern": "ERROR"}).to_string()});
        Answer::events(events("resp_1", &call))
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let call = json!({"type": "function_call", "call_id": "c", "name": "read_log", "arguments": "{}"});
    let body = json!({"model": "mini", "stream": true, "input": [call, called("c", &long_log())]});
    let reply = gateway.post("/v1/responses", body.to_string()).send().await.unwrap().text().await.unwrap();
    assert!(reply.contains("resp_1") && !reply.contains("resp_2") && reply.contains("Line 321."), "{reply}");
    let gateway = gateway.restart().await;
    let next = json!({"model": "mini", "previous_response_id": "resp_1", "input": [{"role": "user", "content": "Why?"}]});
    ask(&gateway, &next).await;
    assert_eq!(gateway.last_sent()["previous_response_id"], "resp_2", "where the call has its result");
    gateway.stop().await;
}

#[tokio::test]
async fn text_that_the_provider_may_remove_is_not_referred_to() {
    let gateway = Gateway::with(StubServer::responding(|_| spoken("r", "ok")).await, "").await;
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "read_log", "arguments": "{}"});
    let page: String = (0..8).map(|at| format!("gate {at} of depot {} is closed today\n", at * 7)).collect();
    let input = json!([{"role": "user", "content": "go"}, call("a"), called("a", &page), call("b"),
        called("b", &format!("{page}and one more line of it that is new"))]);
    for field in ["user", "truncation", "context_management"] {
        let mut body = json!({"model": "mini", "input": input});
        body[field] =
            if field == "context_management" { json!([{"type": "compaction"}]) } else { json!("auto") };
        ask(&gateway, &body).await;
        let sent = gateway.last_sent().to_string();
        let refers = ["[… above: L", " as above]"].iter().any(|mark| sent.contains(mark));
        assert_eq!(refers, field == "user", "{field}: {sent}");
    }
    let (records, _) = gateway.stop().await;
    assert!(left_alone(&records[0]).is_empty());
    assert!(left_alone(&records[1]).contains("(truncation)"));
    assert!(left_alone(&records[2]).contains("(context_management)"));
}

#[tokio::test]
async fn texts_with_a_picture_between_them_stay_where_they_are() {
    let gateway = Gateway::with(StubServer::responding(|_| spoken("r", "ok")).await, "").await;
    let picture = json!({"type": "input_image", "file_id": "file_1", "detail": "low"});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "read_log", "arguments": "{}"});
    let called =
        |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let log = long_log();
    let start: String = log.lines().take(40).flat_map(|line| [line, "\n"]).collect();
    let between = json!([text(&start), picture, text("after the change:")]);
    let below = json!([text(&log), text("after the change:"), picture]);
    let input = json!([{"role": "user", "content": "go"}, call("a"), called("a", between.clone()), call("b"),
        called("b", below.clone())]);
    ask(&gateway, &json!({"model": "mini", "input": input})).await;
    let sent = gateway.last_sent();
    assert_eq!(sent["input"][2]["output"], between);
    assert_ne!(sent["input"][4]["output"], below, "whose texts are next to each other");
    let (records, _) = gateway.stop().await;
    let left = left_alone(&records[0]);
    assert!(left.contains("1 tool result: something else, such as a picture, stands between"), "{left}");
}
