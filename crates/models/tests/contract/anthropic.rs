//! How servers that speak the Messages API say things.

use larder_models::chat::{ChatReply, ModelError, StopReason, Usage};
use larder_testkit::stub::Answer;
use serde_json::{Value, json};

use crate::support::{Class, KEY, Wire};

pub struct Anthropic;

impl Wire for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn whole(&self, reply: &ChatReply) -> Value {
        let mut content = vec![json!({"type": "thinking", "thinking": "hidden", "signature": "s"})];
        content.push(json!({"type": "text", "text": reply.text}));
        content.extend(reply.tool_calls.iter().map(|call| {
            let input: Value = serde_json::from_str(&call.arguments).expect("sample arguments are JSON");
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
        }));
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "model-1", "content": content,
            "stop_reason": stop_reason(reply.stop), "stop_sequence": null, "usage": usage(&reply.usage)})
    }

    fn streamed(&self, reply: &ChatReply) -> Vec<u8> {
        let mut start = usage(&reply.usage);
        start["output_tokens"] = json!(1);
        let mut body = begin(&start) + &blocks(&reply.text);
        body.push_str(&event(json!({"type": "content_block_stop", "index": 1})));
        for (index, call) in reply.tool_calls.iter().enumerate() {
            let index = index + 2;
            let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
            body.push_str(&event(
                json!({"type": "content_block_start", "index": index, "content_block": block}),
            ));
            for piece in call.arguments.chars().collect::<Vec<_>>().chunks(3) {
                let delta =
                    json!({"type": "input_json_delta", "partial_json": piece.iter().collect::<String>()});
                body.push_str(&event(json!({"type": "content_block_delta", "index": index, "delta": delta})));
            }
            body.push_str(&event(json!({"type": "content_block_stop", "index": index})));
        }
        let delta = json!({"stop_reason": stop_reason(reply.stop), "stop_sequence": null});
        let last = json!({"output_tokens": reply.usage.output,
            "output_tokens_details": {"thinking_tokens": reply.usage.reasoning}});
        body.push_str(&event(json!({"type": "message_delta", "delta": delta, "usage": last})));
        (body + &event(json!({"type": "message_stop"}))).into_bytes()
    }

    fn unfinished(&self, text: &str) -> Vec<u8> {
        (begin(&usage(&Usage::default())) + &blocks(text)).into_bytes()
    }

    fn error(&self, kind: &str, message: &str) -> Value {
        json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
    }

    fn late_errors(&self) -> Vec<(Vec<u8>, Class)> {
        vec![
            (event(self.error("overloaded_error", "Overloaded")).into_bytes(), |error| {
                matches!(error, ModelError::Server { status: 529, .. })
            }),
            (event(self.error("rate_limit_error", "slow down")).into_bytes(), |error| {
                matches!(error, ModelError::RateLimited { .. })
            }),
            (event(self.error("api_error", "oops")).into_bytes(), |error| {
                matches!(error, ModelError::Server { status: 500, .. })
            }),
        ]
    }

    fn window_errors(&self) -> Vec<Answer> {
        let messages = [
            "prompt is too long: 1100 tokens > 1000 maximum",
            "input length and `max_tokens` exceed context limit: 950 + 100 > 1000, decrease input length or `max_tokens`",
        ];
        let anthropic = messages.map(|message| self.error("invalid_request_error", message));
        let bedrock = json!({"message": "Input is too long for requested model."});
        anthropic.iter().chain([&bedrock]).map(|body| Answer::json(400, body)).collect()
    }

    fn schema(&self, request: &Value) -> Option<Value> {
        request.pointer("/output_config/format/schema").cloned()
    }

    fn key_header(&self) -> (&'static str, String) {
        ("x-api-key", KEY.to_owned())
    }

    fn texts(&self, request: &Value) -> Vec<String> {
        let texts = |blocks: &Value| {
            let blocks = blocks.as_array().cloned().unwrap_or_default();
            blocks
                .into_iter()
                .filter_map(|block| block["text"].as_str().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let messages = request["messages"].as_array().expect("messages");
        texts(&request["system"])
            .into_iter()
            .chain(messages.iter().flat_map(|message| texts(&message["content"])))
            .collect()
    }
}

fn begin(usage: &Value) -> String {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "model-1", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    event(json!({"type": "message_start", "message": message})) + &event(json!({"type": "ping"}))
}

/// A thinking block, which must not show, and the text so far.
fn blocks(text: &str) -> String {
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let mut body = event(json!({"type": "content_block_start", "index": 0, "content_block": thinking}));
    for delta in [
        json!({"type": "thinking_delta", "thinking": "hidden"}),
        json!({"type": "signature_delta", "signature": "s"}),
    ] {
        body.push_str(&event(json!({"type": "content_block_delta", "index": 0, "delta": delta})));
    }
    body.push_str(&event(json!({"type": "content_block_stop", "index": 0})));
    let block = json!({"type": "text", "text": ""});
    body.push_str(&event(json!({"type": "content_block_start", "index": 1, "content_block": block})));
    for piece in text.chars().collect::<Vec<_>>().chunks(4) {
        let delta = json!({"type": "text_delta", "text": piece.iter().collect::<String>()});
        body.push_str(&event(json!({"type": "content_block_delta", "index": 1, "delta": delta})));
        body.push_str(&event(json!({"type": "ping"})));
        body.push_str(&event(json!({"type": "a_kind_of_tomorrow"})));
    }
    body
}

fn event(json: Value) -> String {
    format!("event: {}\ndata: {json}\n\n", json["type"].as_str().expect("every event has a type"))
}

fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Stop => "end_turn",
        StopReason::Length | StopReason::Closed => "max_tokens",
        StopReason::ToolCalls => "tool_use",
        StopReason::Refusal => "refusal",
    }
}

/// The API counts cached tokens apart from the rest.
fn usage(usage: &Usage) -> Value {
    json!({"input_tokens": usage.input - usage.cached_input - usage.cache_write,
        "cache_read_input_tokens": usage.cached_input, "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output, "output_tokens_details": {"thinking_tokens": usage.reasoning}})
}
