//! Made-up requests and replies of each format. Knows what clients and providers write.

use larder_proxy::wire::{ApiDialect, REHYDRATE};
use serde_json::{Value as Json, json};

use crate::made::{self, Random, TYPES};

/// A word that may break readers of text.
const WORDS: [&str; 12] = [
    "go on",
    "caf\u{e9} \u{1f980}",
    "\u{0}\u{1f}\"\\/\u{8}\u{c}",
    "\u{2028}\u{feff}",
    "line\nline\r\n\ttab",
    "",
    "larder_rehydrate",
    "[\u{2026} L3-9]",
    "lp1-0000000000000-000000",
    "{\"a\": [1, 2.50, 1e3, null]}",
    "summarizable",
    super::super::case::OUR_POINTER,
];

/// A text of a few words, or a longer one of some type.
pub(super) fn some_text(random: &mut Random) -> String {
    match random.below(4) {
        0 => random.one(&WORDS).to_owned(),
        1 => format!("{} {}", random.one(&WORDS), random.one(&WORDS)),
        _ => made::text(random.one(&TYPES).1, random.next(), 1 << random.below(8)),
    }
}

/// A result of a tool, most of them longer than its cap.
fn some_result(random: &mut Random) -> String {
    made::text(random.one(&TYPES).1, random.next(), 1 << random.below(14))
}

/// The messages of a request in any format.
enum Said {
    System(String),
    User(String, bool),
    Assistant(String, bool),
    /// Calls in parallel, each with its result and whether it failed.
    Steps(Vec<(String, String, bool)>),
}

fn conversation(random: &mut Random) -> Vec<Said> {
    let mut said = Vec::new();
    if random.below(2) == 0 {
        said.push(Said::System(some_text(random)));
    }
    let mut last: Option<String> = None;
    for _ in 0..=random.below(5) {
        said.push(Said::User(some_text(random), random.below(5) == 0));
        for _ in 0..random.below(3) {
            let mut calls = Vec::new();
            for _ in 0..=random.below(3) {
                let arguments = json!({"path": some_text(random), "n": random.below(9)}).to_string();
                // Agents often read the same thing again.
                let again = last.clone().filter(|_| random.below(4) == 0);
                let result = again.unwrap_or_else(|| some_result(random));
                last = Some(result.clone());
                calls.push((arguments, result, random.below(8) == 0));
            }
            said.push(Said::Steps(calls));
        }
        if random.below(3) > 0 {
            said.push(Said::Assistant(some_text(random), random.below(3) == 0));
        }
    }
    said
}

/// A body of this format as a client may write it.
pub(super) fn request(dialect: ApiDialect, random: &mut Random) -> String {
    let said = conversation(random);
    let mut body = match dialect {
        ApiDialect::Chat => chat(&said, random),
        ApiDialect::Responses => responses(&said, random),
        ApiDialect::Messages | ApiDialect::Converse | ApiDialect::Invoke => messages(&said, random),
    };
    for (name, value) in [
        ("stream", json!(true)),
        ("temperature", json!(0.5)),
        ("x_unknown", json!({"kept": [1.5, "\u{e9}", null]})),
        ("summarizable", json!(false)),
        ("tool_choice", json!("auto")),
        ("max_tokens", json!(100)),
    ] {
        if random.below(4) == 0 {
            body[name] = value;
        }
    }
    if random.below(4) == 0 { format!("{body:#}") } else { body.to_string() }
}

/// A part with a cache breakpoint, now and then.
fn marked(mut part: Json, random: &mut Random) -> Json {
    if random.below(6) == 0 {
        part["cache_control"] = json!({"type": "ephemeral"});
    }
    part
}

/// A result's content: a string, or parts.
fn content(kind: &str, result: &str, random: &mut Random) -> Json {
    let text = |text: &str| json!({"type": kind, "text": text});
    match random.below(5) {
        0 => json!([marked(text(result), random)]),
        1 => {
            let (head, tail) = result.split_at(result.floor_char_boundary(result.len() / 2));
            let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
            json!([text(head), image, marked(text(tail), random)])
        }
        _ => json!(result),
    }
}

fn chat(said: &[Said], random: &mut Random) -> Json {
    let mut list = Vec::new();
    let mut number = 0;
    for said in said {
        match said {
            Said::System(text) => list.push(json!({"role": "system", "content": text})),
            Said::User(text, false) => list.push(json!({"role": "user", "content": text})),
            Said::User(text, true) => {
                let image =
                    json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}});
                let text = marked(json!({"type": "text", "text": text}), random);
                list.push(json!({"role": "user", "content": [text, image]}));
            }
            Said::Assistant(text, thinks) => {
                let mut message = json!({"role": "assistant", "content": text});
                if *thinks {
                    message["reasoning_content"] = json!("I think");
                }
                list.push(message);
            }
            Said::Steps(calls) => {
                let id = |at: usize| format!("call_{}", number + at);
                let call = |(at, (arguments, ..)): (usize, &(String, String, bool))| json!({"id": id(at), "type": "function", "function": {"name": "read", "arguments": arguments}});
                let asked: Vec<Json> = calls.iter().enumerate().map(call).collect();
                list.push(json!({"role": "assistant", "content": null, "tool_calls": asked}));
                for (at, (_, result, _)) in calls.iter().enumerate() {
                    let mut message = json!({"role": "tool", "tool_call_id": id(at), "content": content("text", result, random)});
                    if random.below(8) == 0 {
                        message["summarizable"] = json!(random.below(2) == 0);
                    }
                    list.push(message);
                }
                number += calls.len();
            }
        }
    }
    let mut body = json!({"model": "gpt-4o", "messages": list});
    if random.below(5) > 0 {
        body["tools"] =
            json!([{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]);
    }
    body
}

fn responses(said: &[Said], random: &mut Random) -> Json {
    let mut list = Vec::new();
    let mut number = 0;
    for said in said {
        match said {
            Said::System(text) => list.push(json!({"role": "developer", "content": text})),
            Said::User(text, image) => {
                let mut parts = vec![json!({"type": "input_text", "text": text})];
                if *image {
                    parts.push(
                        json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}),
                    );
                }
                list.push(json!({"role": "user", "content": parts}));
            }
            Said::Assistant(text, thinks) => {
                if *thinks {
                    list.push(json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": []}));
                }
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                list.push(json!({"type": "message", "role": "assistant", "content": [part]}));
            }
            Said::Steps(calls) => {
                let id = |at: usize| format!("call_{}", number + at);
                for (at, (arguments, ..)) in calls.iter().enumerate() {
                    let call = json!({"type": "function_call", "call_id": id(at), "name": "read", "arguments": arguments});
                    list.push(call);
                }
                for (at, (_, result, _)) in calls.iter().enumerate() {
                    let output = content("input_text", result, random);
                    list.push(json!({"type": "function_call_output", "call_id": id(at), "output": output}));
                }
                number += calls.len();
            }
        }
    }
    let mut body = json!({"model": "gpt-4o", "input": list});
    if random.below(5) > 0 {
        body["tools"] = json!([{"type": "function", "name": "read", "parameters": {"type": "object"}}]);
    }
    match random.below(9) {
        0 => body["previous_response_id"] = json!("resp_0"),
        1 => body["instructions"] = json!("Be brief."),
        2 => body["input"] = json!(some_text(random)),
        _ => {}
    }
    body
}

fn messages(said: &[Said], random: &mut Random) -> Json {
    let mut list = Vec::new();
    let mut number = 0;
    let mut body = json!({"model": "claude-sonnet-4", "max_tokens": 100});
    for said in said {
        match said {
            Said::System(text) => {
                body["system"] = json!([marked(json!({"type": "text", "text": text}), random)])
            }
            Said::User(text, false) => list.push(json!({"role": "user", "content": text})),
            Said::User(text, true) => {
                let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
                let text = marked(json!({"type": "text", "text": text}), random);
                list.push(json!({"role": "user", "content": [{"type": "image", "source": source}, text]}));
            }
            Said::Assistant(text, thinks) => {
                let mut blocks = Vec::new();
                if *thinks {
                    blocks.push(
                        json!({"type": "thinking", "thinking": "hm", "signature": format!("sig-{number}")}),
                    );
                }
                blocks.push(json!({"type": "text", "text": text}));
                list.push(json!({"role": "assistant", "content": blocks}));
            }
            Said::Steps(calls) => {
                let id = |at: usize| format!("toolu_{}", number + at);
                let call = |(at, (arguments, ..)): (usize, &(String, String, bool))| {
                    let input: Json = serde_json::from_str(arguments).unwrap_or_default();
                    json!({"type": "tool_use", "id": id(at), "name": "read", "input": input})
                };
                let asked: Vec<Json> = calls.iter().enumerate().map(call).collect();
                list.push(json!({"role": "assistant", "content": asked}));
                let mut blocks = Vec::new();
                for (at, (_, result, failed)) in calls.iter().enumerate() {
                    let mut block = json!({"type": "tool_result", "tool_use_id": id(at), "content": content("text", result, random)});
                    if *failed {
                        block["is_error"] = json!(true);
                    }
                    blocks.push(marked(block, random));
                }
                if random.below(3) == 0 {
                    blocks.push(json!({"type": "text", "text": some_text(random)}));
                }
                list.push(json!({"role": "user", "content": blocks}));
                number += calls.len();
            }
        }
    }
    body["messages"] = json!(list);
    if random.below(5) > 0 {
        body["tools"] = json!([marked(json!({"name": "read", "input_schema": {"type": "object"}}), random)]);
    }
    body
}

/// Something that a model says in a reply.
pub(super) enum ReplyPart {
    Think(String),
    Text(String),
    /// A call, with its id, name and arguments.
    Call(String, &'static str, String),
}

/// What one reply says.
pub(super) fn parts(random: &mut Random) -> Vec<ReplyPart> {
    let mut parts = Vec::new();
    for at in 0..random.below(5) {
        parts.push(match random.below(5) {
            0 => ReplyPart::Think(some_text(random)),
            1 | 2 => ReplyPart::Text(some_text(random)),
            3 => ReplyPart::Call(
                format!("call_{at}"),
                random.one(&["read", "larder", "larder_re"]),
                json!({"a": some_text(random)}).to_string(),
            ),
            _ => ReplyPart::Call(
                format!("call_{at}"),
                REHYDRATE,
                json!({"id": "lp1-0000000000000-000000"}).to_string(),
            ),
        });
    }
    parts
}

fn halves(text: &str) -> [&str; 2] {
    let (head, tail) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [head, tail]
}

fn event(name: &str, data: &Json) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// A reply as a stream of events.
pub(super) fn stream(dialect: ApiDialect, round: usize, parts: &[ReplyPart]) -> String {
    match dialect {
        ApiDialect::Chat => chat_stream(round, parts),
        ApiDialect::Responses => response_stream(round, parts),
        ApiDialect::Messages | ApiDialect::Converse | ApiDialect::Invoke => message_stream(round, parts),
    }
}

fn chat_stream(round: usize, parts: &[ReplyPart]) -> String {
    let chunk = |choices: Json, usage: Json| {
        let chunk = json!({"id": format!("chatcmpl-{round}"), "object": "chat.completion.chunk", "created": 1_000 + round,
            "model": "m", "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Json| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Json::Null);
    let mut out = delta(json!({"role": "assistant", "content": ""}));
    let mut calls = 0;
    for part in parts {
        match part {
            ReplyPart::Think(text) => out += &delta(json!({"reasoning_content": text})),
            ReplyPart::Text(text) => {
                halves(text).iter().for_each(|half| out += &delta(json!({"content": half})))
            }
            ReplyPart::Call(id, name, arguments) => {
                let function = json!({"name": name, "arguments": ""});
                let begin = json!({"index": calls, "id": id, "type": "function", "function": function});
                out += &delta(json!({"tool_calls": [begin]}));
                for half in halves(arguments) {
                    out += &delta(json!({"tool_calls": [{"index": calls, "function": {"arguments": half}}]}));
                }
                calls += 1;
            }
        }
    }
    let finish = if calls > 0 { "tool_calls" } else { "stop" };
    out += &chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Json::Null);
    let usage = json!({"prompt_tokens": 100 * (round + 1), "completion_tokens": 9, "total_tokens": 100 * (round + 1) + 9});
    out + &chunk(json!([]), usage) + "data: [DONE]\n\n"
}

fn response_stream(round: usize, parts: &[ReplyPart]) -> String {
    let (mut out, mut items) = (String::new(), Vec::new());
    let mut sequence = 0;
    let mut push = |kind: &str, mut data: Json| {
        (data["type"], data["sequence_number"]) = (json!(kind), json!(sequence));
        sequence += 1;
        out += &event(kind, &data);
    };
    let reply = |status: &str, output: &[Json]| {
        let usage = json!({"input_tokens": 100 * (round + 1), "output_tokens": 9, "total_tokens": 100 * (round + 1) + 9});
        json!({"id": format!("resp_{round}"), "object": "response", "status": status, "output": output, "usage": usage})
    };
    push("response.created", json!({"response": reply("in_progress", &[])}));
    for (index, part) in parts.iter().enumerate() {
        let id = format!("item_{round}_{index}");
        let (item, kind, text) = match part {
            ReplyPart::Think(text) => {
                let summary = json!([{"type": "summary_text", "text": text}]);
                (
                    json!({"id": id, "type": "reasoning", "summary": summary}),
                    "response.reasoning_summary_text",
                    text,
                )
            }
            ReplyPart::Text(text) => {
                let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                let item = json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": content});
                (item, "response.output_text", text)
            }
            ReplyPart::Call(call, name, arguments) => {
                let item = json!({"id": id, "type": "function_call", "status": "completed", "call_id": call, "name": name,
                    "arguments": arguments});
                (item, "response.function_call_arguments", arguments)
            }
        };
        push("response.output_item.added", json!({"output_index": index, "item": item}));
        for half in halves(text) {
            push(&format!("{kind}.delta"), json!({"item_id": id, "output_index": index, "delta": half}));
        }
        push(&format!("{kind}.done"), json!({"item_id": id, "output_index": index}));
        push("response.output_item.done", json!({"output_index": index, "item": item}));
        items.push(item);
    }
    push("response.completed", json!({"response": reply("completed", &items)}));
    out
}

fn message_stream(round: usize, parts: &[ReplyPart]) -> String {
    let usage = json!({"input_tokens": 100 * (round + 1), "cache_read_input_tokens": 7, "output_tokens": 1});
    let message = json!({"id": format!("msg_{round}"), "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    let mut out = event("message_start", &json!({"type": "message_start", "message": message}));
    out += &event("ping", &json!({"type": "ping"}));
    let mut asks = false;
    for (index, part) in parts.iter().enumerate() {
        let (block, kind, field, text) = match part {
            ReplyPart::Think(text) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                "thinking_delta",
                "thinking",
                text,
            ),
            ReplyPart::Text(text) => (json!({"type": "text", "text": ""}), "text_delta", "text", text),
            ReplyPart::Call(id, name, arguments) => {
                asks = true;
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                (block, "input_json_delta", "partial_json", arguments)
            }
        };
        let begin = json!({"type": "content_block_start", "index": index, "content_block": block});
        out += &event("content_block_start", &begin);
        for half in halves(text) {
            let delta = json!({"type": kind, field: half});
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            out += &event("content_block_delta", &delta);
        }
        if matches!(part, ReplyPart::Think(_)) {
            let delta = json!({"type": "signature_delta", "signature": format!("sig-{round}-{index}")});
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            out += &event("content_block_delta", &delta);
        }
        out += &event("content_block_stop", &json!({"type": "content_block_stop", "index": index}));
    }
    let stop = json!({"stop_reason": if asks { "tool_use" } else { "end_turn" }, "stop_sequence": null});
    let delta = json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 9}});
    out + &event("message_delta", &delta) + &event("message_stop", &json!({"type": "message_stop"}))
}

/// A reply in one piece.
pub(super) fn whole(dialect: ApiDialect, round: usize, parts: &[ReplyPart]) -> String {
    let calls = |part: &ReplyPart| matches!(part, ReplyPart::Call(..));
    let asks = parts.iter().any(calls);
    let input = |arguments: &str| serde_json::from_str::<Json>(arguments).unwrap_or_default();
    match dialect {
        ApiDialect::Chat => {
            let mut message = json!({"role": "assistant", "content": null});
            let mut asked = Vec::new();
            for part in parts {
                match part {
                    ReplyPart::Think(text) => message["reasoning_content"] = json!(text),
                    ReplyPart::Text(text) => message["content"] = json!(text),
                    ReplyPart::Call(id, name, arguments) => {
                        let function = json!({"name": name, "arguments": arguments});
                        asked.push(json!({"id": id, "type": "function", "function": function}));
                    }
                }
            }
            if asks {
                message["tool_calls"] = json!(asked);
            }
            let finish = if asks { "tool_calls" } else { "stop" };
            json!({"id": format!("chatcmpl-{round}"), "object": "chat.completion",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}})
        }
        ApiDialect::Responses => {
            let item = |(at, part): (usize, &ReplyPart)| match part {
                ReplyPart::Think(_) => json!({"id": format!("rs_{at}"), "type": "reasoning", "summary": []}),
                ReplyPart::Text(text) => json!({"id": format!("msg_{at}"), "type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": text}]}),
                ReplyPart::Call(id, name, arguments) => json!({"id": format!("fc_{at}"), "type": "function_call",
                    "call_id": id, "name": name, "arguments": arguments}),
            };
            let output: Vec<Json> = parts.iter().enumerate().map(item).collect();
            json!({"id": format!("resp_{round}"), "object": "response", "status": "completed", "output": output,
                "usage": {"input_tokens": 100, "output_tokens": 9, "total_tokens": 109}})
        }
        ApiDialect::Messages | ApiDialect::Converse | ApiDialect::Invoke => {
            let block = |part: &ReplyPart| match part {
                ReplyPart::Think(text) => json!({"type": "thinking", "thinking": text, "signature": "sig"}),
                ReplyPart::Text(text) => json!({"type": "text", "text": text}),
                ReplyPart::Call(id, name, arguments) => {
                    json!({"type": "tool_use", "id": id, "name": name, "input": input(arguments)})
                }
            };
            let content: Vec<Json> = parts.iter().map(block).collect();
            json!({"id": format!("msg_{round}"), "type": "message", "role": "assistant", "content": content,
                "stop_reason": if asks { "tool_use" } else { "end_turn" }, "usage": {"input_tokens": 100, "output_tokens": 9}})
        }
    }
    .to_string()
}
