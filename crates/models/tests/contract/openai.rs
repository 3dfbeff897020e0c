//! How OpenAI-compatible servers say things.

use larder_models::chat::{ChatReply, ModelError, StopReason, Usage};
use larder_testkit::stub::Answer;
use serde_json::{Value, json};

use crate::support::{Class, KEY, Wire};

pub struct OpenAiModel;

impl Wire for OpenAiModel {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn whole(&self, reply: &ChatReply) -> Value {
        let calls: Vec<Value> = reply
            .tool_calls
            .iter()
            .map(|call| {
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments}})
            })
            .collect();
        let mut message = json!({"role": "assistant", "content": reply.text, "refusal": null});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "model-1",
            "choices": [{"index": 0, "message": message, "finish_reason": finish(reply.stop)}],
            "usage": usage(&reply.usage)})
    }

    fn streamed(&self, reply: &ChatReply) -> Vec<u8> {
        let mut body = begun(&reply.text);
        for (index, call) in reply.tool_calls.iter().enumerate() {
            let start = json!({"index": index, "id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": ""}});
            body.push_str(&chunk(json!({"tool_calls": [start]}), None));
        }
        // Fragments of parallel calls alternate.
        let fragments: Vec<Vec<char>> =
            reply.tool_calls.iter().map(|call| call.arguments.chars().collect()).collect();
        let longest = fragments.iter().map(Vec::len).max().unwrap_or(0);
        for at in (0..longest).step_by(3) {
            for (index, fragment) in fragments.iter().enumerate() {
                let piece: String = fragment.iter().skip(at).take(3).collect();
                if !piece.is_empty() {
                    let call = json!({"index": index, "function": {"arguments": piece}});
                    body.push_str(&chunk(json!({"tool_calls": [call]}), None));
                }
            }
        }
        body.push_str(&chunk(json!({}), Some(finish(reply.stop))));
        body.push_str(&format!("data: {}\n\n", json!({"choices": [], "usage": usage(&reply.usage)})));
        (body + "data: [DONE]\n\n").into_bytes()
    }

    fn unfinished(&self, text: &str) -> Vec<u8> {
        begun(text).into_bytes()
    }

    fn error(&self, kind: &str, message: &str) -> Value {
        json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
    }

    fn late_errors(&self) -> Vec<(Vec<u8>, Class)> {
        let event = |error: Value| format!("data: {error}\n\n").into_bytes();
        vec![
            (event(json!({"error": {"message": "m", "type": "server_error"}})), |error| {
                matches!(error, ModelError::Server { status: 500, .. })
            }),
            (event(json!({"error": {"message": "m", "code": 429}})), |error| {
                matches!(error, ModelError::RateLimited { .. })
            }),
            ([b"event: error\n".to_vec(), event(json!({"message": "m"}))].concat(), |error| {
                matches!(error, ModelError::Server { .. })
            }),
        ]
    }

    fn window_errors(&self) -> Vec<Answer> {
        let openai = json!({"error": {"type": "invalid_request_error", "code": "context_length_exceeded",
            "message": "This model's maximum context length is 1000 tokens."}});
        let vllm = json!({"object": "error", "code": 400, "type": "BadRequestError",
            "message": "This model's maximum context length is 1000 tokens. However, you requested 1100 tokens"});
        let llama_cpp = json!({"error": {"code": 400, "type": "exceed_context_size_error",
            "message": "the request exceeds the available context size, try increasing it"}});
        let kimi = json!({"error": {"type": "invalid_request_error",
            "message": "Invalid request: Your request exceeded model token limit: 1000"}});
        [openai, vllm, llama_cpp, kimi].iter().map(|body| Answer::json(400, body)).collect()
    }

    fn schema(&self, request: &Value) -> Option<Value> {
        request.pointer("/response_format/json_schema/schema").cloned()
    }

    fn key_header(&self) -> (&'static str, String) {
        ("authorization", format!("Bearer {KEY}"))
    }

    fn texts(&self, request: &Value) -> Vec<String> {
        let messages = request["messages"].as_array().expect("messages");
        messages.iter().map(|message| message["content"].as_str().expect("text").to_owned()).collect()
    }
}

/// The stream so far.
fn begun(text: &str) -> String {
    let mut body = chunk(json!({"role": "assistant", "content": ""}), None);
    for piece in text.chars().collect::<Vec<_>>().chunks(4) {
        body.push_str(&chunk(json!({"content": piece.iter().collect::<String>()}), None));
        body.push_str(": keep-alive\n\n");
    }
    body
}

fn chunk(delta: Value, finish: Option<&str>) -> String {
    let json = json!({"object": "chat.completion.chunk", "usage": null,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {json}\n\n")
}

fn finish(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Stop => "stop",
        StopReason::Length | StopReason::Closed => "length",
        StopReason::ToolCalls => "tool_calls",
        StopReason::Refusal => "content_filter",
    }
}

fn usage(usage: &Usage) -> Value {
    json!({"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning}})
}
