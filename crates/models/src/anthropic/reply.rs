//! Replies of `POST /v1/messages`, whole and streamed → [`ChatReply`]. Knows no HTTP.

use std::collections::BTreeMap;

use larder_text::message::ToolCall;
use larder_text::usage::Service;
use serde_json::Value;

use crate::chat::{ChatReply, ModelError, StopReason, Usage};
use crate::decode::{DecodeStep, Decoder};
use crate::http::HttpEndpoint;
use crate::sse::{SseParser, StreamEvent};

/// An unstreamed reply.
///
/// # Errors
/// [`ModelError::Protocol`] if it has no content; the provider's own error if it contains one.
pub fn whole(json: &Value, from: &HttpEndpoint) -> Result<ChatReply, ModelError> {
    if json.get("type").is_some_and(|kind| kind == "error") {
        return Err(from.late_failure(json));
    }
    let blocks = json.get("content").and_then(Value::as_array);
    let blocks = blocks.ok_or_else(|| from.protocol("the reply has no `content`"))?;
    let mut draft = MessageDraft::default();
    for (index, block) in (0_u64..).zip(blocks) {
        draft.start(index, block);
    }
    draft.take_stop(json);
    draft.take_usage(json);
    Ok(draft.into_reply())
}

/// The pieces of a stream so far.
#[derive(Debug, Default)]
pub struct MessagesDecoder {
    draft: MessageDraft,
}

impl Decoder for MessagesDecoder {
    type Parser = SseParser;

    fn event(&mut self, event: StreamEvent, from: &HttpEndpoint) -> Result<DecodeStep, ModelError> {
        let json: Value = serde_json::from_str(&event.data)
            .map_err(|error| from.protocol(format!("an event of the stream is not JSON: {error}")))?;
        let part = |key: &str| json.get(key).unwrap_or(&Value::Null);
        let index = part("index").as_u64().unwrap_or(0);
        // Unknown kinds are skipped: the API announces that it will add some.
        match part("type").as_str().unwrap_or_default() {
            "error" => return Err(from.late_failure(&json)),
            "message_stop" => return Ok(DecodeStep::End),
            "message_start" => self.draft.take_usage(part("message")),
            "content_block_start" => {
                return Ok(DecodeStep::Text(self.draft.start(index, part("content_block"))));
            }
            "content_block_delta" => {
                return self
                    .draft
                    .grow(index, part("delta"))
                    .map(DecodeStep::Text)
                    .map_err(|why| from.protocol(why));
            }
            "message_delta" => {
                self.draft.take_stop(part("delta"));
                self.draft.take_usage(&json);
            }
            _ => {}
        }
        Ok(DecodeStep::More)
    }

    fn finish(&mut self, said_end: bool) -> Result<ChatReply, String> {
        if said_end {
            Ok(std::mem::take(&mut self.draft).into_reply())
        } else {
            Err("the stream broke off before the reply was complete".to_owned())
        }
    }
}

#[derive(Debug, Default)]
struct MessageDraft {
    text: String,
    /// By content block, so the order is that of the reply.
    calls: BTreeMap<u64, StreamedToolUse>,
    stop: String,
    usage: Usage,
}

#[derive(Debug, Default)]
struct StreamedToolUse {
    id: String,
    name: String,
    /// The input at the start of the block: whole when not streamed, else an empty object.
    input: Value,
    /// Pieces of the input's JSON text.
    fragments: String,
}

impl MessageDraft {
    /// Starts a block; returns its initial text. Thinking blocks are neither shown nor kept.
    fn start(&mut self, index: u64, block: &Value) -> String {
        let field = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match field("type").as_str() {
            "text" => {
                self.text.push_str(&field("text"));
                return field("text");
            }
            "tool_use" => {
                let input = block.get("input").cloned().unwrap_or_default();
                let call =
                    StreamedToolUse { id: field("id"), name: field("name"), input, fragments: String::new() };
                self.calls.insert(index, call);
            }
            _ => {}
        }
        String::new()
    }

    /// Extends a block; returns the new text.
    fn grow(&mut self, index: u64, delta: &Value) -> Result<String, &'static str> {
        if let Some(text) = delta.get("text").and_then(Value::as_str) {
            self.text.push_str(text);
            return Ok(text.to_owned());
        }
        if let Some(json) = delta.get("partial_json").and_then(Value::as_str) {
            let call = self.calls.get_mut(&index).ok_or("a piece of tool input belongs to no tool call")?;
            call.fragments.push_str(json);
        }
        Ok(String::new())
    }

    fn take_stop(&mut self, json: &Value) {
        if let Some(stop) = json.get("stop_reason").and_then(Value::as_str) {
            stop.clone_into(&mut self.stop);
        }
    }

    /// Counts are cumulative, so the last value wins. The API counts cached tokens separately.
    fn take_usage(&mut self, json: &Value) {
        let Some(usage) = json.get("usage") else { return };
        let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        let known = self.usage;
        let cached_input = number("/cache_read_input_tokens").unwrap_or(known.cached_input);
        let cache_write = number("/cache_creation_input_tokens").unwrap_or(known.cache_write);
        let rest = known.input.saturating_sub(known.cached_input).saturating_sub(known.cache_write);
        let rest = number("/input_tokens").unwrap_or(rest);
        self.usage = Usage {
            input: rest.saturating_add(cached_input).saturating_add(cache_write),
            cached_input,
            cache_write,
            cache_write_1h: number("/cache_creation/ephemeral_1h_input_tokens")
                .unwrap_or(known.cache_write_1h),
            output: number("/output_tokens").unwrap_or(known.output),
            reasoning: number("/output_tokens_details/thinking_tokens").unwrap_or(known.reasoning),
            service: usage
                .get("service_tier")
                .and_then(Value::as_str)
                .map_or(known.service, Service::from_name),
        };
    }

    fn into_reply(self) -> ChatReply {
        let stop = match self.stop.as_str() {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::Refusal,
            _ if !self.calls.is_empty() => StopReason::ToolCalls,
            _ => StopReason::Stop,
        };
        let tool_calls = self.calls.into_values().map(|call| ToolCall {
            id: call.id,
            name: call.name,
            arguments: match (call.fragments.is_empty(), call.input) {
                (false, _) => call.fragments,
                (true, Value::Null) => "{}".to_owned(),
                (true, input) => input.to_string(),
            },
        });
        ChatReply { text: self.text, tool_calls: tool_calls.collect(), stop, usage: self.usage }
    }
}
