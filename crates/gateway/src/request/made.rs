//! Replies that no provider wrote: a recipe's answer in the shape that the client expects. Knows what the formats look
//! like, and nothing of how answers come about.

use larder_models::chat::Usage;
use serde_json::{Value, json};

use larder_proxy::wire::ApiDialect;

/// An answer to be told in some format.
pub struct Answer<'a> {
    /// The id of the request.
    pub id: &'a str,
    /// Seconds since 1970.
    pub created: u64,
    /// The model as it was asked for.
    pub model: &'a str,
    /// What the model is to have said.
    pub text: &'a str,
    /// What it took.
    pub usage: Usage,
    /// Whether a stream of chat completions ends in a chunk with the usage.
    pub include_usage: bool,
}

impl Answer<'_> {
    /// The reply in one piece.
    pub fn whole(&self, format: ApiDialect) -> String {
        match format {
            ApiDialect::Chat => {
                let choice = json!({"index": 0, "message": {"role": "assistant", "content": self.text, "refusal": null},
                    "logprobs": null, "finish_reason": "stop"});
                self.chat("chat.completion", json!([choice]), Some(self.chat_usage()))
            }
            ApiDialect::Responses => self.response("completed", json!([self.output("completed")])),
            ApiDialect::Messages => self.message(json!([self.block(self.text)]), json!("end_turn"), self.usage.output),
        }
        .to_string()
    }

    /// The reply as a stream of events.
    pub fn events(&self, format: ApiDialect) -> String {
        match format {
            ApiDialect::Chat => self.chat_events(),
            ApiDialect::Responses => named(&self.response_events()),
            ApiDialect::Messages => named(&self.message_events()),
        }
    }

    fn chat(&self, object: &str, choices: Value, usage: Option<Value>) -> Value {
        let mut reply = json!({"id": format!("chatcmpl-{}", self.id), "object": object, "created": self.created,
            "model": self.model, "choices": choices});
        if let Some(usage) = usage {
            reply["usage"] = usage;
        }
        reply
    }

    fn chat_usage(&self) -> Value {
        let Usage { input, cached_input, output, reasoning, .. } = self.usage;
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input.saturating_add(output),
            "prompt_tokens_details": {"cached_tokens": cached_input},
            "completion_tokens_details": {"reasoning_tokens": reasoning}})
    }

    fn chat_events(&self) -> String {
        let choice = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        let mut chunks = vec![
            self.chat(
                "chat.completion.chunk",
                choice(json!({"role": "assistant", "content": ""}), Value::Null),
                None,
            ),
            self.chat("chat.completion.chunk", choice(json!({"content": self.text}), Value::Null), None),
            self.chat("chat.completion.chunk", choice(json!({}), json!("stop")), None),
        ];
        if self.include_usage {
            chunks.push(self.chat("chat.completion.chunk", json!([]), Some(self.chat_usage())));
        }
        let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        events + "data: [DONE]\n\n"
    }

    fn output(&self, status: &str) -> Value {
        let content = match status {
            "completed" => json!([self.part(self.text)]),
            _ => json!([]),
        };
        json!({"id": format!("msg_{}", self.id), "type": "message", "status": status, "role": "assistant",
            "content": content})
    }

    fn part(&self, text: &str) -> Value {
        json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
    }

    fn response(&self, status: &str, output: Value) -> Value {
        let Usage { input, cached_input, output: out, reasoning, .. } = self.usage;
        let usage = json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": cached_input},
            "output_tokens": out, "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": input.saturating_add(out)});
        let usage = if status == "completed" { usage } else { Value::Null };
        json!({"id": format!("resp_{}", self.id), "object": "response", "created_at": self.created, "status": status,
            "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null,
            "model": self.model, "output": output, "parallel_tool_calls": true, "previous_response_id": null,
            "reasoning": {"effort": null, "summary": null}, "store": false, "temperature": null,
            "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": null,
            "truncation": "disabled", "usage": usage, "user": null, "metadata": {}})
    }

    fn response_events(&self) -> Vec<Value> {
        let item = format!("msg_{}", self.id);
        let at = |kind: &str, more: Value| {
            let mut event = json!({"type": kind, "item_id": item, "output_index": 0, "content_index": 0});
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
            }
            event
        };
        let mut events = vec![
            json!({"type": "response.created", "response": self.response("in_progress", json!([]))}),
            json!({"type": "response.in_progress", "response": self.response("in_progress", json!([]))}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": self.output("in_progress")}),
            at("response.content_part.added", json!({"part": self.part("")})),
            at("response.output_text.delta", json!({"delta": self.text, "logprobs": []})),
            at("response.output_text.done", json!({"text": self.text, "logprobs": []})),
            at("response.content_part.done", json!({"part": self.part(self.text)})),
            json!({"type": "response.output_item.done", "output_index": 0, "item": self.output("completed")}),
            json!({"type": "response.completed",
                "response": self.response("completed", json!([self.output("completed")]))}),
        ];
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = json!(number);
        }
        events
    }

    fn block(&self, text: &str) -> Value {
        json!({"type": "text", "text": text, "citations": null})
    }

    fn message(&self, content: Value, stop: Value, output: u64) -> Value {
        let Usage { input, cached_input, cache_write, .. } = self.usage;
        let uncached = input.saturating_sub(cached_input).saturating_sub(cache_write);
        json!({"id": format!("msg_{}", self.id), "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": uncached, "cache_creation_input_tokens": cache_write,
                "cache_read_input_tokens": cached_input, "output_tokens": output}})
    }

    fn message_events(&self) -> Vec<Value> {
        vec![
            json!({"type": "message_start", "message": self.message(json!([]), Value::Null, 0)}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": self.text}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                "usage": {"output_tokens": self.usage.output}}),
            json!({"type": "message_stop"}),
        ]
    }
}

/// Events whose name is their type.
fn named(events: &[Value]) -> String {
    let event = |event: &Value| {
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}
