//! For tests only: replies written as a list of parts, in each format, whole and streamed, and what a client makes of
//! them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{ApiDialect, REHYDRATE};

/// The formats whose streams are server-sent events.
pub(super) const FORMATS: [ApiDialect; 3] = [ApiDialect::Chat, ApiDialect::Responses, ApiDialect::Messages];

/// Something a model says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Think(String),
    Text(String),
    Call { id: String, name: String, arguments: Json },
}

impl Part {
    pub fn call(id: &str, name: &str, arguments: Json) -> Self {
        Self::Call { id: id.into(), name: name.into(), arguments }
    }

    pub fn ours(id: &str) -> Self {
        Self::call(id, REHYDRATE, json!({"id": "lp1-0000000000000-000000"}))
    }

    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Call { name, .. } if name == REHYDRATE)
    }
}

fn asks(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Call { .. }))
}

/// One reply, whole. `round` makes its ids and counts.
pub(super) fn whole(dialect: ApiDialect, round: usize, parts: &[Part]) -> String {
    let units: Vec<Json> =
        parts.iter().enumerate().map(|(at, part)| unit(dialect, round, at, part)).collect();
    let (input, output) = (100 * (round + 1), 10 + round);
    let reply = match dialect {
        ApiDialect::Converse => json!({
            "output": {"message": {"role": "assistant", "content": units}},
            "stopReason": if asks(parts) { "tool_use" } else { "end_turn" },
            "usage": {"inputTokens": input, "cacheWriteInputTokens": 5, "cacheReadInputTokens": 7,
                      "outputTokens": output, "totalTokens": input + output + 12},
            "metrics": {"latencyMs": 1},
        }),
        ApiDialect::Messages | ApiDialect::Invoke => json!({
            "id": format!("msg_{round}"), "type": "message", "role": "assistant", "model": "m",
            "content": units,
            "stop_reason": if asks(parts) { "tool_use" } else { "end_turn" }, "stop_sequence": null,
            "usage": {"input_tokens": input, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7,
                      "output_tokens": output},
        }),
        ApiDialect::Responses => json!({
            "id": format!("resp_{round}"), "object": "response", "status": "completed", "output": units,
            "usage": {"input_tokens": input, "input_tokens_details": {"cached_tokens": 7},
                      "output_tokens": output, "total_tokens": input + output},
        }),
        ApiDialect::Chat => {
            let text = text_of(parts);
            let calls: Vec<Json> = units.into_iter().filter(|unit| unit.get("function").is_some()).collect();
            let mut message = json!({"role": "assistant", "content": text.clone(), "refusal": null});
            if text.is_empty() {
                message["content"] = Json::Null;
            }
            if !calls.is_empty() {
                message["tool_calls"] = Json::from(calls);
            }
            json!({
                "id": format!("chatcmpl-{round}"), "object": "chat.completion", "created": 1000 + round, "model": "m",
                "choices": [{"index": 0, "message": message, "logprobs": null,
                             "finish_reason": if asks(parts) { "tool_calls" } else { "stop" }}],
                "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                          "prompt_tokens_details": {"cached_tokens": 7}},
            })
        }
    };
    reply.to_string()
}

pub(super) fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
        .collect()
}

fn unit(dialect: ApiDialect, round: usize, at: usize, part: &Part) -> Json {
    match (dialect, part) {
        (ApiDialect::Converse, Part::Think(text)) => {
            let thought = json!({"text": text, "signature": format!("sig-{round}-{at}")});
            json!({"reasoningContent": {"reasoningText": thought}})
        }
        (ApiDialect::Converse, Part::Text(text)) => json!({"text": text}),
        (ApiDialect::Converse, Part::Call { id, name, arguments }) => {
            json!({"toolUse": {"toolUseId": id, "name": name, "input": arguments}})
        }
        (ApiDialect::Messages | ApiDialect::Invoke, Part::Think(text)) => {
            json!({"type": "thinking", "thinking": text, "signature": format!("sig-{round}-{at}")})
        }
        (ApiDialect::Messages | ApiDialect::Invoke, Part::Text(text)) => {
            json!({"type": "text", "text": text})
        }
        (ApiDialect::Messages | ApiDialect::Invoke, Part::Call { id, name, arguments }) => {
            json!({"type": "tool_use", "id": id, "name": name, "input": arguments})
        }
        (ApiDialect::Responses, Part::Think(text)) => {
            json!({"id": format!("rs_{round}_{at}"), "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
        }
        (ApiDialect::Responses, Part::Text(text)) => {
            json!({"id": format!("msg_{round}_{at}"), "type": "message",
            "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
        }
        (ApiDialect::Responses, Part::Call { id, name, arguments }) => {
            json!({"id": format!("fc_{round}_{at}"),
            "type": "function_call", "status": "completed", "call_id": id, "name": name,
            "arguments": arguments.to_string()})
        }
        (ApiDialect::Chat, Part::Call { id, name, arguments }) => {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
        }
        (ApiDialect::Chat, _) => json!({}),
    }
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}

fn event(name: &str, data: &Json) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// The same reply as a stream.
pub(super) fn streamed(dialect: ApiDialect, round: usize, parts: &[Part]) -> String {
    let reply: Json = serde_json::from_str(&whole(dialect, round, parts)).unwrap();
    match dialect {
        ApiDialect::Messages | ApiDialect::Invoke => streamed_messages(reply),
        ApiDialect::Converse => streamed_converse(&reply),
        ApiDialect::Responses => streamed_responses(reply),
        ApiDialect::Chat => streamed_chat(&reply, parts),
    }
}

fn streamed_messages(mut reply: Json) -> String {
    let (blocks, stop) = (reply["content"].take(), reply["stop_reason"].take());
    reply["content"] = json!([]);
    let output = reply["usage"]["output_tokens"].take();
    reply["usage"]["output_tokens"] = json!(1);
    let mut out = event("message_start", &json!({"type": "message_start", "message": reply}));
    out += &event("ping", &json!({"type": "ping"}));
    for (index, block) in blocks.as_array().unwrap().iter().enumerate() {
        let mut start = block.clone();
        let mut deltas = Vec::new();
        let mut cut = |field: &str, kind: &str, name: &str, text: &str| {
            let (first, second) = halves(text);
            start[field] = if field == "input" { json!({}) } else { json!("") };
            deltas.push(json!({"type": kind, name: first}));
            deltas.push(json!({"type": kind, name: second}));
        };
        match block["type"].as_str().unwrap() {
            "text" => cut("text", "text_delta", "text", block["text"].as_str().unwrap()),
            "thinking" => {
                cut("thinking", "thinking_delta", "thinking", block["thinking"].as_str().unwrap());
                start["signature"] = json!("");
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
            _ => cut("input", "input_json_delta", "partial_json", &block["input"].to_string()),
        }
        let begin = json!({"type": "content_block_start", "index": index, "content_block": start});
        out += &event("content_block_start", &begin);
        for delta in deltas {
            let more = json!({"type": "content_block_delta", "index": index, "delta": delta});
            out += &event("content_block_delta", &more);
        }
        out += &event("content_block_stop", &json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
                       "usage": {"output_tokens": output}});
    out + &event("message_delta", &delta) + &event("message_stop", &json!({"type": "message_stop"}))
}

fn streamed_converse(reply: &Json) -> String {
    let mut out = event("messageStart", &json!({"role": "assistant"}));
    for (index, block) in reply["output"]["message"]["content"].as_array().unwrap().iter().enumerate() {
        let thought = &block["reasoningContent"]["reasoningText"];
        let call = &block["toolUse"];
        let mut deltas: Vec<Json> = Vec::new();
        if let Some(text) = block["text"].as_str() {
            deltas.extend([halves(text).0, halves(text).1].map(|half| json!({"text": half})));
        } else if let Some(text) = thought["text"].as_str() {
            let half = |half: &str| json!({"reasoningContent": {"text": half}});
            deltas.extend([half(halves(text).0), half(halves(text).1)]);
            deltas.push(json!({"reasoningContent": {"signature": thought["signature"]}}));
        } else {
            let start = json!({"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}});
            out += &event("contentBlockStart", &json!({"contentBlockIndex": index, "start": start}));
            let input = call["input"].to_string();
            let half = |half: &str| json!({"toolUse": {"input": half}});
            deltas.extend([half(halves(&input).0), half(halves(&input).1)]);
        }
        for delta in deltas {
            out += &event("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta}));
        }
        out += &event("contentBlockStop", &json!({"contentBlockIndex": index}));
    }
    out += &event("messageStop", &json!({"stopReason": reply["stopReason"]}));
    out + &event("metadata", &json!({"usage": reply["usage"], "metrics": reply["metrics"], "p": "abc"}))
}

fn streamed_responses(reply: Json) -> String {
    let mut out = String::new();
    let mut sequence = 0;
    let mut push = |kind: &str, mut data: Json| {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(sequence);
        sequence += 1;
        out += &event(kind, &data);
    };
    let mut begun = reply.clone();
    (begun["status"], begun["output"], begun["usage"]) = (json!("in_progress"), json!([]), Json::Null);
    push("response.created", json!({"response": begun}));
    push("response.in_progress", json!({"response": begun}));
    for (index, item) in reply["output"].as_array().unwrap().iter().enumerate() {
        let mut start = item.clone();
        let id = &item["id"];
        match item["type"].as_str().unwrap() {
            "message" => start["content"] = json!([]),
            "reasoning" => start["summary"] = json!([]),
            _ => start["arguments"] = json!(""),
        }
        push("response.output_item.added", json!({"output_index": index, "item": start}));
        let (kind, text) = match item["type"].as_str().unwrap() {
            "message" => ("response.output_text", item["content"][0]["text"].as_str()),
            "reasoning" => ("response.reasoning_summary_text", item["summary"][0]["text"].as_str()),
            _ => ("response.function_call_arguments", item["arguments"].as_str()),
        };
        let (first, second) = halves(text.unwrap());
        for half in [first, second] {
            push(&format!("{kind}.delta"), json!({"item_id": id, "output_index": index, "delta": half}));
        }
        push(&format!("{kind}.done"), json!({"item_id": id, "output_index": index}));
        push("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    push("response.completed", json!({"response": reply}));
    out
}

fn streamed_chat(reply: &Json, parts: &[Part]) -> String {
    let choice = &reply["choices"][0];
    let chunk = |choices: Json, usage: Json| {
        let chunk = json!({"id": reply["id"], "object": "chat.completion.chunk", "created": reply["created"],
                           "model": "m", "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Json| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Json::Null);
    let mut out = delta(json!({"role": "assistant", "content": ""}));
    let (first, second) = (text_of(parts), String::new());
    for text in [halves(&first).0, halves(&first).1, &second] {
        if !text.is_empty() {
            out += &delta(json!({"content": text}));
        }
    }
    for (index, call) in choice["message"]["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let (first, second) = halves(call["function"]["arguments"].as_str().unwrap());
        let function = json!({"name": call["function"]["name"], "arguments": ""});
        out += &delta(
            json!({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}),
        );
        for half in [first, second] {
            out += &delta(json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]}));
        }
    }
    out += &chunk(json!([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]), Json::Null);
    out + &chunk(json!([]), reply["usage"].clone()) + "data: [DONE]\n\n"
}

/// What a client has of a reply.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Thoughts, texts and calls; of a chat the text first.
    pub parts: Vec<Part>,
    pub stop: String,
    pub usage: Json,
    /// Units as the client will send them back.
    pub units: Vec<Json>,
}

pub(super) fn seen_whole(dialect: ApiDialect, body: &str) -> Seen {
    let reply: Json = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let (units, stop) = match dialect {
        ApiDialect::Messages | ApiDialect::Invoke => (reply["content"].clone(), &reply["stop_reason"]),
        ApiDialect::Converse => (reply["output"]["message"]["content"].clone(), &reply["stopReason"]),
        ApiDialect::Responses => (reply["output"].clone(), &reply["status"]),
        ApiDialect::Chat => {
            let choice = &reply["choices"][0];
            (json!([choice["message"]]), &choice["finish_reason"])
        }
    };
    let units = units.as_array().unwrap().clone();
    let parts = units.iter().flat_map(|unit| parts_of(dialect, unit)).collect();
    Seen { parts, stop: stop.as_str().unwrap_or_default().into(), usage: reply["usage"].clone(), units }
}

fn parts_of(dialect: ApiDialect, unit: &Json) -> Vec<Part> {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let arguments = |value: &Json| serde_json::from_str(value.as_str().unwrap()).unwrap();
    match (dialect, unit["type"].as_str().unwrap_or_default()) {
        (ApiDialect::Chat, _) => {
            let mut parts = Vec::new();
            if let Some(text) = unit["content"].as_str().filter(|text| !text.is_empty()) {
                parts.push(Part::Text(text.into()));
            }
            for call in unit["tool_calls"].as_array().into_iter().flatten() {
                let arguments = arguments(&call["function"]["arguments"]);
                parts.push(Part::Call {
                    id: text(&call["id"]),
                    name: text(&call["function"]["name"]),
                    arguments,
                });
            }
            parts
        }
        (ApiDialect::Converse, _) => {
            let (call, thought) = (&unit["toolUse"], &unit["reasoningContent"]["reasoningText"]["text"]);
            vec![match (unit["text"].as_str(), thought.as_str()) {
                (Some(said), _) => Part::Text(said.to_owned()),
                (_, Some(thought)) => Part::Think(thought.to_owned()),
                _ => Part::Call {
                    id: text(&call["toolUseId"]),
                    name: text(&call["name"]),
                    arguments: call["input"].clone(),
                },
            }]
        }
        (_, "thinking") => vec![Part::Think(text(&unit["thinking"]))],
        (_, "reasoning") => vec![Part::Think(text(&unit["summary"][0]["text"]))],
        (_, "text") => vec![Part::Text(text(&unit["text"]))],
        (_, "message") => vec![Part::Text(text(&unit["content"][0]["text"]))],
        (_, "tool_use") => {
            let (id, name) = (text(&unit["id"]), text(&unit["name"]));
            vec![Part::Call { id, name, arguments: unit["input"].clone() }]
        }
        _ => {
            let (id, name) = (text(&unit["call_id"]), text(&unit["name"]));
            vec![Part::Call { id, name, arguments: arguments(&unit["arguments"]) }]
        }
    }
}

/// What a client makes of a stream. It is strict: one beginning, one end, places and numbers without gaps.
pub(super) fn seen_streamed(dialect: ApiDialect, bytes: &[u8]) -> Seen {
    let bytes = dialect.format().framing().readable(bytes);
    let text = std::str::from_utf8(&bytes).unwrap();
    let mut events = Vec::new();
    let mut names = Vec::new();
    for event in text.split("\n\n").filter(|event| !event.is_empty()) {
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        names.push(event.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or_default());
        events.push(if data == "[DONE]" { json!("[DONE]") } else { serde_json::from_str(data).unwrap() });
    }
    match dialect {
        ApiDialect::Messages | ApiDialect::Invoke => seen_messages(&events),
        ApiDialect::Converse => seen_converse(&names, &events),
        ApiDialect::Responses => seen_responses(&events),
        ApiDialect::Chat => seen_chat(&events),
    }
}

fn count(events: &[Json], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

fn append(text: &mut Json, more: &Json) {
    *text = json!(format!("{}{}", text.as_str().unwrap_or_default(), more.as_str().unwrap_or_default()));
}

fn seen_messages(events: &[Json]) -> Seen {
    for kind in ["message_start", "message_delta", "message_stop"] {
        assert_eq!(count(events, kind), 1, "{kind}");
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    let mut seen = Seen { usage: events[0]["message"]["usage"].clone(), ..Seen::default() };
    let mut input = String::new();
    for event in events {
        let index = event["index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(index, seen.units.len(), "blocks are numbered without a gap");
                seen.units.push(event["content_block"].clone());
                input.clear();
            }
            "content_block_delta" => {
                assert_eq!(index + 1, seen.units.len());
                let block = &mut seen.units[index];
                for (name, value) in event["delta"].as_object().unwrap() {
                    match name.as_str() {
                        "type" => {}
                        "partial_json" => input += value.as_str().unwrap(),
                        name => append(&mut block[name], value),
                    }
                }
            }
            "content_block_stop" if !input.is_empty() => {
                seen.units[index]["input"] = serde_json::from_str(&input).unwrap();
            }
            "message_delta" => {
                seen.stop = event["delta"]["stop_reason"].as_str().unwrap().into();
                for (name, value) in event["usage"].as_object().unwrap() {
                    seen.usage[name] = value.clone();
                }
            }
            _ => {}
        }
    }
    seen.parts = seen.units.iter().flat_map(|unit| parts_of(ApiDialect::Messages, unit)).collect();
    seen
}

fn seen_converse(names: &[&str], events: &[Json]) -> Seen {
    for kind in ["messageStart", "messageStop", "metadata"] {
        assert_eq!(names.iter().filter(|name| **name == kind).count(), 1, "{kind}");
    }
    assert_eq!((names[0], names[names.len() - 1]), ("messageStart", "metadata"));
    let mut seen = Seen { usage: events.last().unwrap()["usage"].clone(), ..Seen::default() };
    let mut input = String::new();
    for (name, event) in names.iter().zip(events) {
        let index = event["contentBlockIndex"].as_u64().unwrap_or_default() as usize;
        if ["contentBlockStart", "contentBlockDelta"].contains(name) && index == seen.units.len() {
            seen.units.push(event.get("start").cloned().unwrap_or_else(|| json!({})));
            input.clear();
        }
        match *name {
            "contentBlockDelta" => {
                assert_eq!(index + 1, seen.units.len(), "blocks are numbered without a gap");
                let (block, delta) = (&mut seen.units[index], &event["delta"]);
                if delta["text"].is_string() {
                    append(&mut block["text"], &delta["text"]);
                }
                for (name, piece) in delta["reasoningContent"].as_object().into_iter().flatten() {
                    append(&mut block["reasoningContent"]["reasoningText"][name], piece);
                }
                input += delta["toolUse"]["input"].as_str().unwrap_or_default();
            }
            "contentBlockStop" if !input.is_empty() => {
                seen.units[index]["toolUse"]["input"] = serde_json::from_str(&input).unwrap();
                input.clear();
            }
            "messageStop" => seen.stop = event["stopReason"].as_str().unwrap().into(),
            _ => {}
        }
    }
    seen.parts = seen.units.iter().flat_map(|unit| parts_of(ApiDialect::Converse, unit)).collect();
    seen
}

fn seen_responses(events: &[Json]) -> Seen {
    for kind in ["response.created", "response.in_progress", "response.completed"] {
        assert_eq!(count(events, kind), 1, "{kind}");
    }
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], at, "events are numbered without a gap");
    }
    let mut items: Vec<Json> = Vec::new();
    for event in events {
        let index = event["output_index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                assert_eq!(index, items.len(), "items are numbered without a gap");
                items.push(Json::Null);
            }
            "response.output_item.done" => items[index] = event["item"].clone(),
            kind if kind.ends_with(".delta") => assert_eq!(index + 1, items.len()),
            _ => {}
        }
    }
    let seen = seen_whole(ApiDialect::Responses, &events.last().unwrap()["response"].to_string());
    assert_eq!(seen.units, items, "the end lists the items that came");
    seen
}

fn seen_chat(events: &[Json]) -> Seen {
    assert_eq!(events.iter().filter(|event| **event == "[DONE]").count(), 1);
    assert_eq!(events.last().unwrap(), "[DONE]");
    let mut seen = Seen::default();
    let mut message = json!({"content": ""});
    let mut calls: BTreeMap<u64, Json> = BTreeMap::new();
    for chunk in &events[..events.len() - 1] {
        assert_eq!((&chunk["id"], &chunk["created"]), (&events[0]["id"], &events[0]["created"]));
        if !chunk["usage"].is_null() {
            seen.usage = chunk["usage"].clone();
        }
        let Some(choice) = chunk["choices"].get(0) else { continue };
        if let Some(stop) = choice["finish_reason"].as_str() {
            assert!(seen.stop.is_empty(), "one end");
            seen.stop = stop.into();
        }
        for name in ["role", "content"] {
            if let Some(more) = choice["delta"].get(name) {
                append(&mut message[name], more);
            }
        }
        for entry in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = entry["index"].as_u64().unwrap();
            assert!(index <= calls.len() as u64, "calls are numbered without a gap");
            let call = calls.entry(index).or_insert_with(|| json!({"function": {}}));
            for name in ["id", "type"] {
                if entry.get(name).is_some() {
                    call[name] = entry[name].clone();
                }
            }
            for name in ["name", "arguments"] {
                append(&mut call["function"][name], &entry["function"][name]);
            }
        }
    }
    assert_eq!(message["role"], "assistant");
    if !calls.is_empty() {
        message["tool_calls"] = Json::Array(calls.into_values().collect());
    }
    seen.parts = parts_of(ApiDialect::Chat, &message);
    seen.units = vec![message];
    seen
}

/// Rounds of a reply: all but the last ask us alone; the last may ask us beside the client.
pub(super) fn any_rounds() -> impl Strategy<Value = Vec<Vec<Part>>> {
    let said = || {
        let part = prop_oneof![
            "[a-zé ]{1,12}".prop_map(Part::Think),
            "[a-z\n\"\\\\😀 ]{1,12}".prop_map(Part::Text),
        ];
        prop::collection::vec(part, 0..3)
    };
    let asks_us = (said(), 1..3_usize);
    let last = (said(), prop::collection::vec(any::<bool>(), 0..4));
    (prop::collection::vec(asks_us, 0..3), last).prop_map(|(rounds, (said, calls))| {
        let mut all: Vec<Vec<Part>> = Vec::new();
        for (round, (mut parts, ours)) in rounds.into_iter().enumerate() {
            parts.extend((0..ours).map(|at| Part::ours(&format!("our_{round}_{at}"))));
            all.push(parts);
        }
        let mut parts = said;
        // Calls of ours alone would be another round.
        let mixed = calls.contains(&false);
        for (at, ours) in calls.into_iter().enumerate().filter(|_| mixed) {
            let id = format!("last_{at}");
            parts.push(if ours {
                Part::ours(&id)
            } else {
                Part::call(&id, "read", json!({"n": 1.0, "a": at}))
            });
        }
        all.push(parts);
        all
    })
}
