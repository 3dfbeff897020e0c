//! Replies of `POST /chat/completions`, whole and streamed → [`ChatReply`]. Knows no HTTP.

use larder_text::message::ToolCall;
use larder_text::usage::Service;
use serde_json::Value;

use crate::chat::{ChatReply, ModelError, StopReason, Usage};
use crate::decode::{DecodeStep, Decoder};
use crate::http::HttpEndpoint;
use crate::sse::{SseParser, StreamEvent};

/// The event that ends a stream.
const DONE: &str = "[DONE]";
/// Calls one reply may ask for; a stream that names more is broken.
const MAX_TOOL_CALLS: usize = 1_024;

/// An unstreamed reply.
///
/// # Errors
/// [`ModelError::Protocol`] if it has no choice; the provider's own error if it contains one.
pub fn whole(json: &Value, from: &HttpEndpoint) -> Result<ChatReply, ModelError> {
    if json.get("error").is_some_and(|error| !error.is_null()) {
        return Err(from.late_failure(json));
    }
    let choice = json.pointer("/choices/0").ok_or_else(|| from.protocol("the reply has no `choices`"))?;
    let message = choice.get("message").ok_or_else(|| from.protocol("the choice has no `message`"))?;
    let mut draft = CompletionDraft {
        text: text(message.get("content")),
        refusal: text(message.get("refusal")),
        finish: choice.get("finish_reason").and_then(Value::as_str).map(str::to_owned),
        ..CompletionDraft::default()
    };
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let mut whole = CallFragments::default();
        whole.take(call);
        draft.calls.push(whole);
    }
    draft.take_usage(json);
    Ok(draft.into_reply())
}

/// The pieces of a stream so far.
#[derive(Debug, Default)]
pub struct CompletionsDecoder {
    draft: CompletionDraft,
}

impl Decoder for CompletionsDecoder {
    type Parser = SseParser;

    fn event(&mut self, event: StreamEvent, from: &HttpEndpoint) -> Result<DecodeStep, ModelError> {
        if event.data.trim() == DONE {
            return Ok(DecodeStep::End);
        }
        let json: Value = serde_json::from_str(&event.data)
            .map_err(|error| from.protocol(format!("an event of the stream is not JSON: {error}")))?;
        if event.event == "error" || json.get("error").is_some_and(|error| !error.is_null()) {
            return Err(from.late_failure(&json));
        }
        self.draft.take_usage(&json);
        let Some(choice) = json.pointer("/choices/0") else { return Ok(DecodeStep::More) };
        self.draft.take_usage(choice);
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.draft.finish = Some(finish.to_owned());
        }
        let Some(delta) = choice.get("delta") else { return Ok(DecodeStep::More) };
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.draft.take_fragment(call).map_err(|why| from.protocol(why))?;
        }
        self.draft.refusal.push_str(&text(delta.get("refusal")));
        let text = text(delta.get("content"));
        self.draft.text.push_str(&text);
        Ok(DecodeStep::Text(text))
    }

    /// Some servers leave out `[DONE]`; a finish reason ends a reply just as well.
    fn finish(&mut self, said_end: bool) -> Result<ChatReply, String> {
        if said_end || self.draft.finish.is_some() {
            Ok(std::mem::take(&mut self.draft).into_reply())
        } else {
            Err("the stream broke off before the reply was complete".to_owned())
        }
    }
}

#[derive(Debug, Default)]
struct CompletionDraft {
    text: String,
    refusal: String,
    calls: Vec<CallFragments>,
    finish: Option<String>,
    usage: Usage,
}

/// A tool call whose fragments are still arriving.
#[derive(Debug, Default)]
struct CallFragments {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl CallFragments {
    fn take(&mut self, fragment: &Value) {
        if let Some(id) = fragment.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) {
            id.clone_into(&mut self.id);
        }
        if let Some(name) = fragment.pointer("/function/name").and_then(Value::as_str) {
            self.name.push_str(name);
        }
        match fragment.pointer("/function/arguments") {
            Some(Value::String(arguments)) => self.arguments.push_str(arguments),
            Some(whole @ Value::Object(_)) => self.arguments = whole.to_string(),
            _ => {}
        }
    }
}

impl CompletionDraft {
    /// A fragment belongs to the call with its `index`. Some servers send none, or 0 for every call: a different id
    /// then starts a new call.
    fn take_fragment(&mut self, fragment: &Value) -> Result<(), String> {
        let index = fragment.get("index").and_then(Value::as_u64);
        let id = fragment.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let same = |call: &CallFragments| id.is_none_or(|id| call.id.is_empty() || call.id == id);
        let known = match index {
            Some(_) => {
                self.calls.iter().rposition(|call| call.index == index).filter(|&at| same(&self.calls[at]))
            }
            None => self.calls.len().checked_sub(1).filter(|&at| same(&self.calls[at])),
        };
        let at = known.unwrap_or(self.calls.len());
        if known.is_none() {
            if at == MAX_TOOL_CALLS {
                return Err(format!("the reply requests more than {MAX_TOOL_CALLS} tool calls"));
            }
            self.calls.push(CallFragments { index, ..CallFragments::default() });
        }
        self.calls[at].take(fragment);
        Ok(())
    }

    fn take_usage(&mut self, json: &Value) {
        let Some(usage) = json.get("usage").filter(|usage| usage.is_object()) else { return };
        let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        // OpenAI and vLLM, then Kimi, then DeepSeek.
        let cached = ["/prompt_tokens_details/cached_tokens", "/cached_tokens", "/prompt_cache_hit_tokens"];
        self.usage = Usage {
            input: number("/prompt_tokens").unwrap_or(0),
            cached_input: cached.into_iter().find_map(number).unwrap_or(0),
            cache_write: number("/prompt_tokens_details/cache_write_tokens").unwrap_or(0),
            output: number("/completion_tokens").unwrap_or(0),
            reasoning: number("/completion_tokens_details/reasoning_tokens").unwrap_or(0),
            service: json
                .get("service_tier")
                .and_then(Value::as_str)
                .map_or(self.usage.service, Service::from_name),
            ..Usage::default()
        };
    }

    fn into_reply(self) -> ChatReply {
        let stop = match self.finish.as_deref() {
            _ if !self.refusal.is_empty() => StopReason::Refusal,
            Some("length") => StopReason::Length,
            Some("content_filter") => StopReason::Refusal,
            // Several servers report `stop` although they request calls.
            _ if !self.calls.is_empty() => StopReason::ToolCalls,
            _ => StopReason::Stop,
        };
        let tool_calls = self.calls.into_iter().enumerate().map(|(at, call)| ToolCall {
            id: if call.id.is_empty() { format!("call_{at}") } else { call.id },
            name: call.name,
            arguments: if call.arguments.is_empty() { "{}".to_owned() } else { call.arguments },
        });
        let text = if self.text.is_empty() { self.refusal } else { self.text };
        ChatReply { text, tool_calls: tool_calls.collect(), stop, usage: self.usage }
    }
}

/// A string, the text of content parts, or nothing.
fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}
