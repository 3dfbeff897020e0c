//! Amazon Bedrock's `Converse`, but for its streams, and its errors.

use std::borrow::Cow;

use larder_core::policy::ItemCall;
use larder_text::json::{Edit, Kind, Value, encoded};
use larder_text::message::Role;
use larder_text::provider::Provider;
use larder_text::usage::Usage;
use serde_json::{Value as Json, json};

use super::api_error::ApiError;
use super::format::WireFormat;
use super::framing::Framing;
use super::hidden::{HiddenStep, HiddenSteps, call_key, thought_key};
use super::messages;
use super::opaque::OpaqueKind;
use super::read::{ReadError, fields};
use super::recipe_reply::{EXTENSION, RecipeReply, ReplyPart};
use super::reply::{ReplyClose, ReplyRound, Tally, length, stop_edit, text};
use super::request::{Item, Request, ResultItem, role};

/// The dialect of `POST /model/ID/converse` and `converse-stream`.
pub(super) struct ConverseFormat;

impl WireFormat for ConverseFormat {
    fn name(&self) -> &'static str {
        "converse"
    }

    fn path(&self) -> Option<&'static str> {
        None
    }

    fn provider(&self) -> Provider {
        Provider::Bedrock
    }

    fn client_header(&self) -> Option<&'static str> {
        None
    }

    fn framing(&self) -> Framing {
        Framing::Frames
    }

    fn listed_model(&self, id: &str) -> Json {
        json!({"id": id, "modelId": id, "modelName": id})
    }

    fn model_list(&self, models: Vec<Json>, _: bool) -> Json {
        json!({"data": models})
    }

    fn read<'b>(&self, root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
        read(root, request)
    }

    fn units_member(&self) -> Option<&'static str> {
        Some("content")
    }

    fn said(&self, unit: Value<'_, '_>) -> Option<String> {
        Some(unit.given("text")?.text()?.into_owned())
    }

    fn keys(&self, unit: Value<'_, '_>, _: bool) -> Vec<String> {
        let mut keys = Vec::new();
        if let Some(call) = unit.given("toolUse") {
            let (id, input) = (text(call, "toolUseId"), call.given("input").map_or("{}", Value::raw));
            if !id.is_empty() {
                keys.push(call_key(&id, &text(call, "name"), input));
            }
        }
        let thought = unit.given("reasoningContent").and_then(|thought| thought.given("reasoningText"));
        let seal = thought.map(|thought| text(thought, "signature")).filter(|seal| !seal.is_empty());
        keys.extend(seal.map(|seal| thought_key(&seal)));
        keys
    }

    fn put_back(
        &self,
        request: &Request<'_>,
        hidden: &HiddenSteps,
        at: usize,
        unit: Value<'_, '_>,
    ) -> Vec<Edit> {
        messages::put_back(request, hidden, at, unit)
    }

    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        format!(
            r#"{{"toolSpec":{{"name":{name},"description":{description},"inputSchema":{{"json":{parameters}}}}}}}"#
        )
    }

    fn tools_member(&self, tools: &str) -> String {
        format!(r#""toolConfig":{{"tools":{tools}}}"#)
    }

    fn tool_reference(&self, name: &str) -> String {
        encoded(name)
    }

    fn tool_result(&self, id: &str, text: &str) -> String {
        format!(r#"{{"toolResult":{{"toolUseId":{id},"content":[{{"text":{text}}}]}}}}"#)
    }

    fn text_block(&self, text: &str) -> String {
        format!(r#"{{"text":{text}}}"#)
    }

    fn call(&self, unit: Value<'_, '_>) -> (bool, &'static str, &'static str) {
        // What the provider's own tools do has a type.
        let asks = unit.given("toolUse").is_some_and(|call| call.given("type").is_none());
        (asks, "toolUseId", "input")
    }

    fn next_step(&self, step: &HiddenStep, said: &str) -> (&'static str, String) {
        messages::next_step(step, said)
    }

    fn may_be_said_again(&self, _: &ReplyRound, unit: Value<'_, '_>) -> bool {
        unit.given("text").and_then(Value::text).is_none_or(|text| !text.trim().is_empty())
    }

    fn usage(&self, tally: &Tally) -> Usage {
        let cached_input = tally.first(&["cacheReadInputTokens"]);
        let cache_write = tally.first(&["cacheWriteInputTokens"]);
        let uncached = tally.first(&["inputTokens"]);
        Usage {
            input: uncached.saturating_add(cached_input).saturating_add(cache_write),
            cached_input,
            cache_write,
            cache_write_1h: tally.first(&["cacheDetails.1h.inputTokens"]),
            output: tally.first(&["outputTokens"]),
            ..Usage::default()
        }
    }

    fn read_reply<'d, 't>(&self, root: Value<'d, 't>, round: &mut ReplyRound) -> Option<Value<'d, 't>> {
        round.read_stop(root, "stopReason");
        blocks(root)
    }

    fn close_reply(&self, root: Value<'_, '_>, close: &ReplyClose<'_>) -> Vec<Edit> {
        let Some(list) = blocks(root) else { return Vec::new() };
        let mut edits = close.rounds.list_edits(list, root.given("usage"));
        let note = close.note.as_ref().map(|note| note.behind(list, &self.text_block(&note.literal())));
        edits.extend(note);
        edits.extend(stop_edit(root.get("stopReason"), close.gave_up, "end_turn"));
        edits
    }

    fn said_bytes(&self, root: Value<'_, '_>) -> usize {
        let said = |block: Value<'_, '_>| {
            let thought = block.given("reasoningContent").and_then(|thought| thought.given("reasoningText"));
            let input = block.given("toolUse").and_then(|call| call.given("input"));
            length(block.given("text"))
                + length(thought.and_then(|thought| thought.given("text")))
                + input.map_or(0, |input| input.raw().len())
        };
        blocks(root).into_iter().flat_map(Value::items).map(said).sum()
    }

    fn too_long(&self, tokens: usize, budget: usize) -> String {
        too_long(tokens, budget)
    }

    fn error(&self, error: &ApiError) -> String {
        error_body(error)
    }

    fn error_event(&self, error: &ApiError, _: u64) -> String {
        error_event(error)
    }

    fn recipe_reply(&self, reply: &RecipeReply<'_>) -> String {
        let whole = json!({"output": {"message": {"role": "assistant", "content": [{"text": reply.text}]}},
            "stopReason": messages::stop(reply), "usage": usage(&reply.usage), "metrics": {"latencyMs": 0}});
        with_more(reply, whole).to_string()
    }

    fn recipe_events(&self, reply: &RecipeReply<'_>, part: &ReplyPart<'_>) -> String {
        let events = match part {
            ReplyPart::Begin => vec![("messageStart", json!({"role": "assistant"}))],
            ReplyPart::Text { piece, .. } => {
                vec![("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": piece}}))]
            }
            ReplyPart::End { .. } => vec![
                ("contentBlockStop", json!({"contentBlockIndex": 0})),
                ("messageStop", with_more(reply, json!({"stopReason": messages::stop(reply)}))),
                ("metadata", json!({"usage": usage(&reply.usage), "metrics": {"latencyMs": 0}})),
            ],
        };
        events.iter().map(|(kind, data)| format!("event: {kind}\ndata: {data}\n\n")).collect()
    }
}

/// Adds what the format has no place for where its clients keep it: they drop members that they do not know.
fn with_more(reply: &RecipeReply<'_>, mut object: Json) -> Json {
    if let Some(extension) = reply.extension() {
        object["additionalModelResponseFields"] = json!({ EXTENSION: extension });
    }
    object
}

/// The words by which Bedrock's clients recognise that a prompt is too long.
pub(super) fn too_long(tokens: usize, budget: usize) -> String {
    format!("Input is too long for requested model: {tokens} tokens > {budget} maximum.")
}

/// The body of an error, whose type clients look for here where no header names it.
pub(super) fn error_body(error: &ApiError) -> String {
    json!({"__type": error.kind.bedrock(), "message": error.message}).to_string()
}

/// An error as the exception that ends a stream.
pub(super) fn error_event(error: &ApiError) -> String {
    format!("event: {}\ndata: {}\n\n", error.kind.bedrock_stream(), json!({"message": error.message}))
}

/// The blocks of a complete reply.
fn blocks<'d, 't>(root: Value<'d, 't>) -> Option<Value<'d, 't>> {
    root.given("output")?.given("message")?.given("content")
}

fn usage(usage: &Usage) -> Json {
    let uncached = usage.input.saturating_sub(usage.cached_input).saturating_sub(usage.cache_write);
    json!({"inputTokens": uncached, "outputTokens": usage.output, "totalTokens": usage.input + usage.output,
        "cacheReadInputTokens": usage.cached_input, "cacheWriteInputTokens": usage.cache_write})
}

fn read<'b>(root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
    let [messages, system, inference, tools, output, prompt] = fields(
        root,
        &String::new,
        ["messages", "system", "inferenceConfig", "toolConfig", "outputConfig", "promptVariables"],
    )?;
    request.max_output = inference.and_then(|config| config.given("maxTokens")?.as_u64());
    request.take_fixed("outputConfig", output.and_then(|config| config.given("textFormat")));
    if let Some(config) = tools {
        let list = config.given("tools").filter(|list| list.kind() == Kind::Array);
        request.read_tools(list)?;
        if list.is_none() {
            request.unofferable = Some("toolConfig has no list of tools");
        }
    }
    // Claude's own fields are given here as they are.
    let edits = root.given("additionalModelRequestFields").and_then(|own| own.given("context_management"));
    request.edited_elsewhere = edits.map(|_| "additionalModelRequestFields.context_management");
    if prompt.is_some() {
        // The path names a prompt that the provider keeps.
        request.unofferable = Some("the provider holds the prompt (promptVariables)");
        request.history_elsewhere = true;
    }
    if let Some(system) = system.filter(|system| system.kind() == Kind::Array) {
        let mut item = Item::new(Role::System, None);
        item.content = Some(system.id());
        for (at, block) in system.items().enumerate() {
            read_block(&mut item, block, &|| format!("system[{at}]"))?;
        }
        request.items.push(item);
    }
    let Some(messages) = messages.filter(|messages| messages.kind() == Kind::Array) else {
        return if prompt.is_some() {
            Ok(())
        } else {
            Err(ReadError::shape("messages", root, "an array of messages"))
        };
    };
    request.take_list("messages", messages)?;
    for (at, message) in messages.items().enumerate() {
        read_message(at, message, request)?;
    }
    Ok(())
}

/// A message is one item, except that each result in it is a separate item before the rest.
fn read_message<'b>(at: usize, message: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
    let [who, content] = fields(message, &|| format!("messages[{at}]"), ["role", "content"])?;
    let mut rest = Item::new(role(who), Some(at));
    let Some(blocks) = content.filter(|content| content.kind() == Kind::Array) else {
        rest.read_content(content, &format!("messages[{at}].content"))?;
        request.items.push(rest);
        return Ok(());
    };
    rest.content = Some(blocks.id());
    let mut others = Vec::new();
    let before = request.items.len();
    for (index, block) in blocks.items().enumerate() {
        let path = || format!("messages[{at}].content[{index}]");
        if let Some(result) = block.given("toolResult") {
            let result = read_result(at, (block, result), &path, request)?;
            request.items.push(result);
            continue;
        }
        if block.given("cachePoint").is_some() && others.is_empty() && request.items.len() > before {
            // It is behind a result, and stays where that was.
            rest.cache_control = true;
            continue;
        }
        others.push(block.id());
        match block.given("toolUse") {
            Some(call) => {
                let [id, name, input] =
                    fields(call, &|| format!("{}.toolUse", path()), ["toolUseId", "name", "input"])?;
                let text = |value: Option<Value<'_, 'b>>| value.and_then(Value::text).unwrap_or_default();
                let arguments = Cow::Borrowed(input.map_or("{}", Value::raw));
                rest.calls.push(ItemCall { id: text(id), name: text(name), arguments });
            }
            None => read_block(&mut rest, block, &path)?,
        }
    }
    let alone = request.items.len() == before;
    if alone || !others.is_empty() {
        rest.blocks = (!alone).then_some(others);
        request.items.push(rest);
    }
    Ok(())
}

fn read_result<'b>(
    at: usize,
    (block, result): (Value<'_, 'b>, Value<'_, 'b>),
    path: &dyn Fn() -> String,
    request: &mut Request<'b>,
) -> Result<Item<'b>, ReadError> {
    let [id, content, status] =
        fields(result, &|| format!("{}.toolResult", path()), ["toolUseId", "content", "status"])?;
    let mut item = Item::new(Role::Tool, Some(at));
    item.blocks = Some(vec![block.id()]);
    item.content = content.map(Value::id);
    for (index, part) in content.into_iter().flat_map(Value::items).enumerate() {
        read_block(&mut item, part, &|| format!("{}.toolResult.content[{index}]", path()))?;
    }
    item.result = Some(ResultItem {
        id: id.and_then(Value::text).unwrap_or_default(),
        name: None,
        error: status.is_some_and(|status| status.is("error")),
        summarizable: request.take_own(result),
    });
    Ok(item)
}

/// Reads a block of content, which has one member that says what it is.
fn read_block<'b>(
    item: &mut Item<'b>,
    block: Value<'_, 'b>,
    path: &dyn Fn() -> String,
) -> Result<(), ReadError> {
    if block.kind() != Kind::Object {
        item.push(OpaqueKind::Other, block, block);
        return Ok(());
    }
    let [text, mark, thought] = fields(block, path, ["text", "cachePoint", "reasoningContent"])?;
    if mark.is_some() {
        item.cache_control = true;
        return Ok(());
    }
    if item.push_text(text, block) {
        return Ok(());
    }
    if let Some(thought) = thought {
        match (
            thought.given("reasoningText").and_then(|thought| thought.given("text")),
            thought.given("redactedContent"),
        ) {
            (None, Some(seal)) => item.push(OpaqueKind::Sealed, block, seal),
            (said, _) => item.push(OpaqueKind::Reasoning, block, said.unwrap_or(block)),
        }
        return Ok(());
    }
    // A document may be text, whole or in blocks.
    let source = block.given("document").and_then(|document| document.given("source"));
    let is_text =
        source.is_some_and(|source| source.given("bytes").is_none() && source.given("s3Location").is_none());
    let kind = match () {
        () if block.given("image").is_some() => OpaqueKind::Image,
        () if block.given("audio").is_some() => OpaqueKind::Audio,
        () if block.given("video").is_some() => OpaqueKind::File,
        () if block.given("document").is_some() && !is_text => OpaqueKind::File,
        () => OpaqueKind::Other,
    };
    item.push(kind, block, block);
    Ok(())
}

#[cfg(test)]
#[path = "converse_tests.rs"]
mod tests;
