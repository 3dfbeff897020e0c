//! Replies of `Converse` and `ConverseStream` → [`ChatReply`]. Knows no HTTP.

use std::collections::BTreeMap;

use larder_text::frames::{Frame, FrameSplitter};
use larder_text::message::ToolCall;
use larder_text::usage::Service;
use serde_json::{Value, json};

use crate::chat::{ChatReply, ModelError, StopReason, Usage};
use crate::decode::{DecodeStep, Decoder, EventParser};
use crate::http::HttpEndpoint;
use crate::sse::StreamEvent;

/// The name under which a frame that reports a failure is decoded.
const FAILURE: &str = "error";

/// An unstreamed reply.
///
/// # Errors
/// [`ModelError::Protocol`] if it has no message, or the model's output was malformed.
pub fn whole(json: &Value, from: &HttpEndpoint) -> Result<ChatReply, ModelError> {
    let blocks = json.pointer("/output/message/content").and_then(Value::as_array);
    let blocks = blocks.ok_or_else(|| from.protocol("the reply has no `output.message.content`"))?;
    let mut draft = ReplyDraft::default();
    for (index, block) in (0_u64..).zip(blocks) {
        if let Some(text) = block.get("text").and_then(Value::as_str) {
            draft.text.push_str(text);
        }
        draft.start(index, block);
    }
    draft.take_stop(json);
    draft.take_usage(json);
    draft.into_reply().map_err(|why| from.protocol(why))
}

/// Splits a stream of frames into events named by their type.
#[derive(Debug, Default)]
pub struct FrameParser(FrameSplitter);

impl EventParser for FrameParser {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), String> {
        self.0.push(bytes);
        while let Some(bytes) = self.0.next_frame().map_err(|error| error.to_string())? {
            events.push(event(&Frame::read(&bytes).map_err(|error| error.to_string())?));
        }
        Ok(())
    }

    fn finish(mut self, _: &mut Vec<StreamEvent>) -> Result<(), String> {
        if self.0.rest().is_empty() { Ok(()) } else { Err("the stream broke off within a frame".to_owned()) }
    }
}

fn event(frame: &Frame<'_>) -> StreamEvent {
    let (kind, data) = (frame.kind(), frame.text());
    if !frame.is_failure() {
        return StreamEvent { event: kind.to_owned(), data: data.into_owned() };
    }
    let message = serde_json::from_str::<Value>(&data).ok();
    let message = message.as_ref().and_then(|json| json.get("message")?.as_str()).unwrap_or(&data);
    let data = json!({ "type": kind, "message": message }).to_string();
    StreamEvent { event: FAILURE.to_owned(), data }
}

/// The pieces of a stream so far.
#[derive(Debug, Default)]
pub struct ConverseDecoder {
    draft: ReplyDraft,
}

impl Decoder for ConverseDecoder {
    type Parser = FrameParser;

    fn event(&mut self, event: StreamEvent, from: &HttpEndpoint) -> Result<DecodeStep, ModelError> {
        let json: Value = serde_json::from_str(&event.data)
            .map_err(|error| from.protocol(format!("an event of the stream is not JSON: {error}")))?;
        let index = json.get("contentBlockIndex").and_then(Value::as_u64).unwrap_or(0);
        let part = |key: &str| json.get(key).unwrap_or(&Value::Null);
        // Unknown events are skipped: the API may add some.
        match event.event.as_str() {
            FAILURE => return Err(from.late_failure(&json)),
            "contentBlockStart" => self.draft.start(index, part("start")),
            "contentBlockDelta" => {
                return Ok(DecodeStep::Text(self.draft.grow(index, part("delta"))));
            }
            "messageStop" => self.draft.take_stop(&json),
            "metadata" => {
                self.draft.take_usage(&json);
                return Ok(DecodeStep::End);
            }
            _ => {}
        }
        Ok(DecodeStep::More)
    }

    /// A stop reason ends a reply just as well as what follows it.
    fn finish(&mut self, said_end: bool) -> Result<ChatReply, String> {
        if said_end || !self.draft.stop.is_empty() {
            std::mem::take(&mut self.draft).into_reply()
        } else {
            Err("the stream broke off before the reply was complete".to_owned())
        }
    }
}

#[derive(Debug, Default)]
struct ReplyDraft {
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
    /// The input's JSON text, or the pieces of it so far.
    arguments: String,
}

impl ReplyDraft {
    /// Starts a block. Reasoning is neither shown nor kept, and what the provider's own tools do is not the caller's.
    fn start(&mut self, index: u64, block: &Value) {
        let Some(call) = block.get("toolUse").filter(|call| call.get("type").is_none()) else { return };
        let field = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = call.get("input").map(Value::to_string).unwrap_or_default();
        self.calls.insert(index, StreamedToolUse { id: field("toolUseId"), name: field("name"), arguments });
    }

    /// Extends a block; returns the new text.
    fn grow(&mut self, index: u64, delta: &Value) -> String {
        if let Some(text) = delta.get("text").and_then(Value::as_str) {
            self.text.push_str(text);
            return text.to_owned();
        }
        let input = delta.pointer("/toolUse/input").and_then(Value::as_str);
        // Pieces of a call by the provider's own tools belong to none.
        if let Some((call, json)) = self.calls.get_mut(&index).zip(input) {
            call.arguments.push_str(json);
        }
        String::new()
    }

    fn take_stop(&mut self, json: &Value) {
        if let Some(stop) = json.get("stopReason").and_then(Value::as_str) {
            stop.clone_into(&mut self.stop);
        }
    }

    /// The API counts cached tokens separately.
    fn take_usage(&mut self, json: &Value) {
        let number = |path: &str| json.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let (cached_input, cache_write) =
            (number("/usage/cacheReadInputTokens"), number("/usage/cacheWriteInputTokens"));
        let details = json.pointer("/usage/cacheDetails").and_then(Value::as_array);
        let hour =
            details.into_iter().flatten().filter(|detail| detail.get("ttl").is_some_and(|ttl| ttl == "1h"));
        self.usage = Usage {
            input: number("/usage/inputTokens").saturating_add(cached_input).saturating_add(cache_write),
            cached_input,
            cache_write,
            cache_write_1h: hour.filter_map(|detail| detail.get("inputTokens")?.as_u64()).sum(),
            output: number("/usage/outputTokens"),
            service: json
                .pointer("/serviceTier/type")
                .and_then(Value::as_str)
                .map_or(self.usage.service, Service::from_name),
            ..Usage::default()
        };
    }

    fn into_reply(self) -> Result<ChatReply, String> {
        let stop = match self.stop.as_str() {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "guardrail_intervened" | "content_filtered" => StopReason::Refusal,
            malformed @ ("malformed_model_output" | "malformed_tool_use") => {
                return Err(format!("what the model wrote cannot be read (stop reason `{malformed}`)"));
            }
            _ if !self.calls.is_empty() => StopReason::ToolCalls,
            _ => StopReason::Stop,
        };
        let tool_calls = self.calls.into_values().map(|call| ToolCall {
            id: call.id,
            name: call.name,
            arguments: if call.arguments.is_empty() { "{}".to_owned() } else { call.arguments },
        });
        Ok(ChatReply { text: self.text, tool_calls: tool_calls.collect(), stop, usage: self.usage })
    }
}
