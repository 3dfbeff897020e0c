//! Our own tool: offered, answered, hidden, remembered, within limits.

use larder_proxy::record::RoundTripFate;
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::support::{
    Gateway, after_tool, chat_events, completion, long_log, message, pointers, said, write_settings,
};

/// The call of our tool that a model makes, from what it was sent.
fn our_call(id: &str, arguments: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "larder_rehydrate", "arguments": arguments.to_string()}}]})
}

/// A provider that asks back what the first pointer in its prompt stands for, by `narrow`, until it has got an answer.
async fn asking(narrow: Value) -> StubServer {
    StubServer::responding(move |seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        let last = messages.last().unwrap();
        if last["tool_call_id"].as_str().is_some_and(|id| id.starts_with("ours")) {
            return said(&format!("it said: {}", last["content"].as_str().unwrap()));
        }
        let shown = messages.iter().filter_map(|message| message["content"].as_str()).collect::<String>();
        let id = first_pointer(&shown);
        let mut arguments = json!({"id": id});
        arguments.as_object_mut().unwrap().extend(narrow.as_object().unwrap().clone());
        Answer::json(200, &completion(our_call("ours_1", &arguments), "tool_calls"))
    })
    .await
}

fn first_pointer(text: &str) -> String {
    let at = text.find("lp1-").unwrap();
    larder_text::pointer::Pointer::parse_prefix(&text[at..]).unwrap().1.id.to_string()
}

#[tokio::test]
async fn the_model_gets_what_it_asks_back_and_the_client_sees_one_reply() {
    let gateway = Gateway::with(asking(json!({"pattern": "ERROR"})).await, "").await;
    let reply: Value = gateway.chat(&after_tool(&long_log())).await.json().await.unwrap();
    let error = "2026-11-22 10:05:21 ERROR request 321 took 16 ms\n";
    assert_eq!(reply["choices"][0]["message"]["content"], format!("it said: {error}"));
    assert!(reply["choices"][0]["message"].get("tool_calls").is_none());
    assert_eq!(reply["usage"]["prompt_tokens"], 200, "both rounds are billed");
    let seen = gateway.seen();
    assert_eq!(seen.len(), 2);
    let (first, second) = (seen[0].json(), seen[1].json());
    let (before, after) = (first["messages"].as_array().unwrap(), second["messages"].as_array().unwrap());
    assert_eq!(after[..before.len()], before[..], "the prompt is extended");
    assert_eq!(after.len(), before.len() + 2);
    let (records, _) = gateway.stop().await;
    let [record] = records.as_slice() else { panic!("one request") };
    assert_eq!(record.rehydrations.len(), 1);
    assert!(record.rehydrations[0].found && record.rehydrations[0].bytes == error.len() as u64);
    assert_eq!(record.rehydrations[0].tool, "read_log");
    assert!(record.rehydrations[0].spent_tokens >= 100, "the second prompt was sent for it");
    assert_eq!(record.summary.usage.unwrap().input, 200);
}

#[tokio::test]
async fn a_pointer_in_a_summary_of_the_client_can_be_opened() {
    let gateway = Gateway::with(asking(json!({"pattern": "ERROR"})).await, "").await;
    gateway.chat(&after_tool(&long_log())).await;
    let pointer = first_pointer(&gateway.last_sent().to_string());
    let say = |text: String| json!({"model": "mini", "messages": [{"role": "user", "content": text}]});
    let reply: Value =
        gateway.chat(&say(format!("So far: the log is {pointer}."))).await.json().await.unwrap();
    let said = reply["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(said.contains("ERROR request 321"), "{said}");
    // What only looks like a pointer is text.
    let sent = gateway.seen().len();
    let other = if pointer.ends_with('2') { '3' } else { '2' };
    let forged = format!("{}{other}", &pointer[..pointer.len() - 1]);
    gateway.chat(&say(format!("So far: the log is {forged}."))).await;
    assert!(gateway.seen()[sent].json().get("tools").is_none());
    gateway.stop().await;
}

#[tokio::test]
async fn a_conversation_that_the_provider_holds_gets_every_item_once() {
    let provider = StubServer::responding(|seen| {
        let sent = seen.json();
        let last = sent["input"].as_array().unwrap().last().unwrap().clone();
        let call = |id: &str, pointer: &str| {
            json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "larder_rehydrate",
                "arguments": json!({"id": pointer, "pattern": "ERROR"}).to_string()})
        };
        let output = match last["call_id"].as_str().unwrap() {
            "c" => call("ours_1", &first_pointer(last["output"].as_str().unwrap())),
            "ours_1" => call("ours_2", "lp1-unknown"),
            _ => json!({"id": "msg_1", "type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": "Line 321.", "annotations": []}]}),
        };
        Answer::json(200, &json!({"id": "resp", "object": "response", "status": "completed", "output": [output]}))
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let call = json!({"type": "function_call", "call_id": "c", "name": "read_log", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "c", "output": long_log()});
    for conversation in [json!("conv_9"), json!({"id": "conv_9"})] {
        let body = json!({"model": "mini", "conversation": conversation, "input": [call, result]});
        let before = gateway.seen().len();
        let reply = gateway.post("/v1/responses", body.to_string()).send().await.unwrap();
        assert!(reply.text().await.unwrap().contains("Line 321."));
        let rounds: Vec<Value> = gateway.seen()[before..].iter().map(|seen| seen.json()).collect();
        assert_eq!(rounds.len(), 3);
        for (round, id) in rounds[1..].iter().zip(["ours_1", "ours_2"]) {
            let input = round["input"].as_array().unwrap();
            assert_eq!(input.len(), 1, "{round}");
            assert_eq!(
                (&input[0]["type"], &input[0]["call_id"]),
                (&json!("function_call_output"), &json!(id))
            );
            assert_eq!((&round["conversation"], &round["tools"]), (&conversation, &rounds[0]["tools"]));
        }
        assert!(rounds[1]["input"][0]["output"].as_str().unwrap().contains("ERROR request 321"));
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_pattern_may_be_called_grep() {
    let gateway = Gateway::with(asking(json!({"grep": "ERROR"})).await, "").await;
    let reply: Value = gateway.chat(&after_tool(&long_log())).await.json().await.unwrap();
    let error = "2026-11-22 10:05:21 ERROR request 321 took 16 ms\n";
    assert_eq!(reply["choices"][0]["message"]["content"], format!("it said: {error}"));
    gateway.stop().await;
}

#[tokio::test]
async fn a_stream_hides_the_round_trip_as_well() {
    let provider = StubServer::responding(|seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        if messages.last().unwrap()["tool_call_id"] == "ours_1" {
            return Answer::events(chat_events(&[json!({"content": "Line 321."})], "stop")).byte_by_byte();
        }
        let id = first_pointer(messages[3]["content"].as_str().unwrap());
        let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
        let begin = json!({"role": "assistant", "tool_calls": [
            {"index": 0, "id": "ours_1", "type": "function", "function": {"name": "larder_rehydrate", "arguments": ""}}]});
        let deltas = [json!({"content": "Let me see. "}), begin, call("{\"id\": \""), call(&id), call("\"}")];
        Answer::events(chat_events(&deltas, "tool_calls")).byte_by_byte()
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let mut body = after_tool(&long_log());
    body["stream"] = json!(true);
    let text = gateway.chat(&body).await.text().await.unwrap();
    assert!(!text.contains("larder_rehydrate") && !text.contains("tool_calls"), "{text}");
    let said: String = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect();
    assert_eq!(said, "Let me see. Line 321.");
    assert!(text.ends_with("data: [DONE]\n\n"));
    let second = gateway.last_sent();
    assert!(second["messages"][5]["content"].as_str().unwrap().starts_with(&long_log()[..200]));
}

#[tokio::test]
async fn the_other_format_works_alike() {
    let provider = StubServer::responding(|seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        let last = &messages.last().unwrap()["content"][0];
        if last["tool_use_id"] == "ours_1" {
            let text = format!("got {}", last["content"]);
            return Answer::json(200, &message(json!([{"type": "text", "text": text}]), "end_turn"));
        }
        let id = first_pointer(&messages[2].to_string());
        let call = json!({"type": "tool_use", "id": "ours_1", "name": "larder_rehydrate", "input": {"id": id, "pattern": "ERROR"}});
        Answer::json(200, &message(json!([call]), "tool_use"))
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let body = json!({"model": "claude", "max_tokens": 100,
        "tools": [{"name": "read_log", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Which request failed?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read_log", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": long_log()}]}]});
    let reply: Value = gateway.messages(&body).await.json().await.unwrap();
    assert_eq!(reply["stop_reason"], "end_turn");
    let text = reply["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("ERROR request 321") && !text.contains("INFO"), "{text}");
    assert_eq!(reply["content"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_pointer_that_is_not_ours_is_text_and_nothing_more() {
    let gateway = Gateway::with(asking(json!({"id": "lp1-0000000000000-000000"})).await, "").await;
    let reply: Value = gateway.chat(&after_tool(&long_log())).await.json().await.unwrap();
    let words = reply["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(words.contains("not created in this store"), "{words}");
    let (records, _) = gateway.stop().await;
    assert!(!records[0].rehydrations[0].found);
}

#[tokio::test]
async fn a_large_answer_is_cut_at_a_line_and_says_how_to_read_on() {
    let settings = "[gateway]\nrehydrate_tokens = 1000\n";
    let gateway = Gateway::with(asking(json!({})).await, settings).await;
    let reply: Value = gateway.chat(&after_tool(&long_log())).await.json().await.unwrap();
    let words =
        reply["choices"][0]["message"]["content"].as_str().unwrap().strip_prefix("it said: ").unwrap();
    let (shown, note) = words.rsplit_once('\n').unwrap();
    assert!(long_log().starts_with(shown) && shown.ends_with('\n') && shown.len() > 1_000);
    assert!(note.contains(&format!("read on with bytes {}:{}", shown.len(), long_log().len())), "{note}");
}

#[tokio::test]
async fn rounds_end_even_if_the_model_never_does() {
    let provider = StubServer::responding(|seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        let id = first_pointer(messages[3]["content"].as_str().unwrap());
        let call = our_call(&format!("ours_{}", messages.len()), &json!({"id": id, "pattern": "ERROR"}));
        Answer::json(200, &completion(call, "tool_calls"))
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let response = gateway.chat(&after_tool(&long_log())).await;
    assert_eq!(response.status(), 200);
    let reply: Value = response.json().await.unwrap();
    let choice = &reply["choices"][0];
    assert!(choice["message"].get("tool_calls").is_none(), "{reply}");
    assert_eq!(choice["finish_reason"], "stop");
    let words = choice["message"]["content"].as_str().unwrap();
    assert!(words.contains("read back no further") && words.contains("rehydrate_rounds"), "{words}");
    assert_eq!(gateway.seen().len(), 5, "the request and four rounds");
    let last = gateway.last_sent();
    assert!(
        last["messages"].as_array().unwrap().last().unwrap()["content"]
            .as_str()
            .unwrap()
            .contains("last call")
    );
}

#[tokio::test]
async fn the_prompt_never_grows_over_its_budget_by_what_is_asked_back() {
    // BodyMemory for the conversation, and hardly anything else.
    let settings = "[policy]\nprompt_budget_override = 900\n[gateway]\nrehydrate_tokens = 4000\n";
    let gateway = Gateway::with(asking(json!({})).await, settings).await;
    let response = gateway.chat(&after_tool(&long_log())).await;
    assert_eq!(response.status(), 200);
    let counter = larder_text::tokens::Counter::o200k();
    for seen in gateway.seen() {
        let tokens: usize = seen.json()["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| counter.count(message["content"].as_str().unwrap_or_default()))
            .sum();
        assert!(tokens <= 900, "{tokens}");
    }
}

#[tokio::test]
async fn calls_beside_the_clients_own_are_answered_and_put_back_into_its_next_request() {
    let provider = StubServer::responding(|seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        if messages.len() > 4 {
            return said("done");
        }
        let id = first_pointer(messages[3]["content"].as_str().unwrap());
        let mut both = our_call("ours_1", &json!({"id": id, "pattern": "ERROR"}));
        both["tool_calls"].as_array_mut().unwrap().push(
            json!({"id": "call_2", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}),
        );
        Answer::json(200, &completion(both, "tool_calls"))
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let mut body = after_tool(&long_log());
    let reply: Value = gateway.chat(&body).await.json().await.unwrap();
    let told = &reply["choices"][0]["message"];
    assert_eq!(told["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(told["tool_calls"][0]["id"], "call_2");
    let gateway = gateway.restart().await;
    let history = body["messages"].as_array_mut().unwrap();
    history.push(told.clone());
    history.push(json!({"role": "tool", "tool_call_id": "call_2", "content": "short"}));
    gateway.chat(&body).await;
    let sent = gateway.last_sent();
    let ids: Vec<&str> = sent["messages"][4]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["ours_1", "call_2"]);
    let answered =
        sent["messages"].as_array().unwrap().iter().find(|m| m["tool_call_id"] == "ours_1").unwrap();
    assert!(answered["content"].as_str().unwrap().contains("ERROR request 321"));
}

/// What is recorded of the request behind one in which the model called with so many words, and its status. The provider
/// may refuse what it said before.
async fn after_words(words: usize, refuses: bool) -> (Option<RoundTripFate>, u16) {
    let provider = StubServer::responding(move |seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        if refuses && messages.len() == 8 {
            return Answer::json(400, &json!({"error": {"message": "no such call"}}));
        }
        if messages.len() > 4 {
            return said("Line 321.");
        }
        let id = first_pointer(messages[3]["content"].as_str().unwrap());
        let arguments = json!({"id": id, "pattern": "ERROR", "why": "word ".repeat(words)});
        Answer::json(200, &completion(our_call("ours_1", &arguments), "tool_calls"))
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let body = after_tool(&long_log());
    let reply: Value = gateway.chat(&body).await.json().await.unwrap();
    let mut next = asked_on(&body, &reply);
    next["messages"][5]["content"] = json!("word ".repeat(5_000));
    let status = gateway.chat(&next).await.status().as_u16();
    let (records, _) = gateway.stop().await;
    assert_eq!((records[0].summary.round_trips, records[1].summary.status), (None, status));
    (records[1].summary.round_trips, status)
}

#[tokio::test]
async fn a_stream_that_is_refused_in_a_further_round_says_whether_to_try_again() {
    for (status, words, class, kind) in [
        (429, "not now", "rate_limited", "rate_limit_error"),
        (429, "insufficient_quota", "upstream_failed", "api_error"),
        (503, "not now", "overloaded", "overloaded_error"),
        (529, "not now", "overloaded", "overloaded_error"),
        (500, "not now", "upstream_failed", "api_error"),
    ] {
        let provider = StubServer::responding(move |seen| {
            let messages = seen.json()["messages"].as_array().unwrap().clone();
            let last = messages.last().unwrap()["content"].to_string();
            if last.contains("ours_1") {
                return Answer::json(status, &json!({"error": {"message": words}}));
            }
            let id = first_pointer(&json!(messages).to_string());
            let call = json!({"type": "tool_use", "id": "ours_1", "name": "larder_rehydrate", "input": {}});
            let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [],
                "usage": {"input_tokens": 100, "output_tokens": 1}});
            let input = json!({"id": id}).to_string();
            let events = [
                json!({"type": "message_start", "message": message}),
                json!({"type": "content_block_start", "index": 0, "content_block": call}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "input_json_delta", "partial_json": input}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}}),
                json!({"type": "message_stop"}),
            ];
            let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
            Answer::events(events.iter().map(event).collect::<String>())
        })
        .await;
        let gateway = Gateway::with(provider, "").await;
        let body = json!({"model": "claude", "max_tokens": 100, "stream": true,
            "tools": [{"name": "read_log", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "What failed?"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "toolu_1", "name": "read_log", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": long_log()}]}]});
        let text = gateway.post("/v1/messages", body.to_string()).send().await.unwrap().text().await.unwrap();
        let error = text.split("event: error\ndata: ").nth(1).unwrap_or_else(|| panic!("{text}"));
        let error: Value = serde_json::from_str(error.trim()).unwrap();
        assert_eq!(error["error"]["type"], kind, "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(words), "{error}");
        let (records, _) = gateway.stop().await;
        assert_eq!(records[0].summary.error.as_deref(), Some(class));
    }
}

#[tokio::test]
async fn the_outcome_of_round_trips_is_recorded() {
    assert_eq!(after_words(1, false).await, (Some(RoundTripFate::Restored), 200));
    assert_eq!(after_words(1, true).await, (Some(RoundTripFate::Restored), 400));
    assert_eq!(after_words(12_000, false).await, (Some(RoundTripFate::LeftOut), 200), "they do not fit");
}

#[tokio::test]
async fn without_rounds_nothing_is_offered_and_nothing_is_pointed_at() {
    let gateway =
        Gateway::with(StubServer::start([said("ok")]).await, "[gateway]\nrehydrate_rounds = 0\n").await;
    gateway.chat(&after_tool(&long_log())).await;
    let sent = gateway.last_sent();
    assert_eq!(sent["tools"].as_array().unwrap().len(), 1);
    assert!(pointers(&gateway, &sent.to_string()).is_empty());
}

/// A provider that says something, asks an original back, and then says the same in every reply.
async fn looking() -> StubServer {
    StubServer::responding(|seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        if messages.len() > 4 {
            return said("Line 321.");
        }
        let id = first_pointer(messages[3]["content"].as_str().unwrap());
        let mut call = our_call("ours_1", &json!({"id": id, "pattern": "ERROR"}));
        call["content"] = json!("Let me look.");
        Answer::json(200, &completion(call, "tool_calls"))
    })
    .await
}

/// The next request of a client that got `reply`, and asks on.
fn asked_on(body: &Value, reply: &Value) -> Value {
    let mut body = body.clone();
    let history = body["messages"].as_array_mut().unwrap();
    history.push(reply["choices"][0]["message"].clone());
    history.push(json!({"role": "user", "content": "And why?"}));
    body
}

#[tokio::test]
async fn a_reply_that_ends_in_text_keeps_what_was_read_and_the_prefix() {
    let gateway = Gateway::with(looking().await, "").await;
    let body = after_tool(&long_log());
    let reply: Value = gateway.chat(&body).await.json().await.unwrap();
    assert_eq!(reply["choices"][0]["message"]["content"], "Let me look.\n\nLine 321.");
    let before = gateway.last_sent()["messages"].clone();
    let gateway = gateway.restart().await;
    let next = asked_on(&body, &reply);
    let again: Value = gateway.chat(&next).await.json().await.unwrap();
    let sent = gateway.last_sent()["messages"].clone();
    let (before, sent) = (before.as_array().unwrap(), sent.as_array().unwrap());
    assert_eq!(before.len(), 6);
    assert_eq!(sent[..6], before[..], "the prompt is extended");
    assert_eq!(sent[6]["content"], "Line 321.");
    assert_eq!(sent.len(), 8);
    // The turn after that, and then a client that changed what it was told.
    let mut last = asked_on(&next, &again);
    gateway.chat(&last).await;
    let longer = gateway.last_sent()["messages"].clone();
    assert_eq!(longer.as_array().unwrap()[..8], sent[..]);
    last["messages"][4]["content"] = json!("It was line 321.");
    gateway.chat(&last).await;
    assert_eq!(gateway.last_sent()["messages"].as_array().unwrap().len(), 8);
}

#[tokio::test]
async fn the_same_history_produces_the_same_bytes_for_any_process() {
    let gateway = Gateway::with(looking().await, "").await;
    let body = after_tool(&long_log());
    // Another agent of the session, whose history holds as many replies, was there first.
    let mut other = body.clone();
    other["messages"][3]["content"] = json!("nothing");
    let history = other["messages"].as_array_mut().unwrap();
    history.push(json!({"role": "assistant", "content": "So."}));
    history.push(json!({"role": "user", "content": "And?"}));
    gateway.chat(&other).await;
    let reply: Value = gateway.chat(&body).await.json().await.unwrap();
    gateway.chat(&other).await;
    let next = asked_on(&body, &reply);
    gateway.chat(&next).await;
    let first = gateway.last_sent();
    let gateway = gateway.restart().await;
    gateway.chat(&next).await;
    assert_eq!(gateway.last_sent(), first);
    assert_eq!(first["messages"].as_array().unwrap().len(), 8);
}

#[tokio::test]
async fn calls_are_put_back_only_where_the_tool_is_offered() {
    let gateway = Gateway::with(looking().await, "").await;
    let body = after_tool(&long_log());
    let reply: Value = gateway.chat(&body).await.json().await.unwrap();
    let next = asked_on(&body, &reply);
    let has_tool = |sent: &Value| {
        let tools = sent["tools"].as_array().unwrap();
        tools.iter().any(|tool| tool["function"]["name"] == "larder_rehydrate")
    };
    let mut gateway = gateway;
    for settings in
        ["[policy]\ndry_run = true\n", "[policy]\nenabled = false\n", "[gateway]\nrehydrate_rounds = 0\n"]
    {
        write_settings(gateway.dir.path(), &gateway.provider, settings);
        gateway = gateway.restart().await;
        assert_eq!(gateway.chat(&next).await.status(), 200);
        let sent = gateway.last_sent();
        assert!(!sent["messages"].to_string().contains("larder_rehydrate"), "{settings}");
        assert!(!has_tool(&sent), "{settings}");
    }
}
