//! Anthropic's messages, but for their streams.

use std::borrow::Cow;

use larder_core::policy::ItemCall;
use larder_text::json::{self, Edit, Kind, Name, Value, encoded};
use larder_text::message::Role;
use larder_text::provider::Provider;
use larder_text::usage::Usage;
use serde_json::{Value as Json, json};

use super::api_error::ApiError;
use super::converse;
use super::format::WireFormat;
use super::framing::Framing;
use super::hidden::{HiddenStep, HiddenSteps, call_key, thought_key};
use super::place::{is_text, said_in_content};
use super::read::{ReadError, fields};
use super::recipe_reply::{RecipeReply, ReplyPart, named};
use super::reply::{ReplyClose, ReplyRound, ReplyRounds, Tally, length, stop_edit, text};
use super::request::{Item, Request, ResultItem, role};

/// The dialect of `POST /v1/messages`, and of Bedrock's `InvokeModel` for models of Anthropic.
pub(super) struct MessagesFormat {
    /// Whether it is the latter: its path says what is not in its body, and its errors and streams are Bedrock's.
    pub invokes: bool,
}

impl WireFormat for MessagesFormat {
    fn name(&self) -> &'static str {
        if self.invokes { "invoke" } else { "messages" }
    }

    fn path(&self) -> Option<&'static str> {
        (!self.invokes).then_some("/v1/messages")
    }

    fn provider(&self) -> Provider {
        if self.invokes { Provider::Bedrock } else { Provider::Anthropic }
    }

    fn client_header(&self) -> Option<&'static str> {
        (!self.invokes).then_some("anthropic-version")
    }

    fn framing(&self) -> Framing {
        if self.invokes { Framing::Chunks } else { Framing::Events }
    }

    fn listed_model(&self, id: &str) -> Json {
        json!({"type": "model", "id": id, "display_name": id, "created_at": "1970-01-01T00:00:00Z"})
    }

    fn pages_models(&self) -> bool {
        !self.invokes
    }

    fn model_list(&self, models: Vec<Json>, has_more: bool) -> Json {
        let id = |model: Option<&Json>| model.and_then(|model| model.get("id")).cloned();
        json!({"first_id": id(models.first()), "last_id": id(models.last()), "has_more": has_more, "data": models})
    }

    fn read<'b>(&self, root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
        read(root, request)
    }

    fn units_member(&self) -> Option<&'static str> {
        Some("content")
    }

    fn said(&self, unit: Value<'_, '_>) -> Option<String> {
        match is_text(unit) {
            true => Some(unit.given("text")?.text()?.into_owned()),
            false => said_in_content(unit),
        }
    }

    fn keys(&self, unit: Value<'_, '_>, _: bool) -> Vec<String> {
        let kind = text(unit, "type");
        let (id, mut keys) = (text(unit, "id"), Vec::new());
        if kind == "tool_use" && !id.is_empty() {
            let input = unit.given("input").map_or("{}", Value::raw);
            keys.push(call_key(&id, &text(unit, "name"), input));
        }
        let seal = if kind == "thinking" { text(unit, "signature") } else { text(unit, "data") };
        if kind.ends_with("thinking") && !seal.is_empty() {
            keys.push(thought_key(&seal));
        }
        keys
    }

    fn put_back(
        &self,
        request: &Request<'_>,
        hidden: &HiddenSteps,
        at: usize,
        unit: Value<'_, '_>,
    ) -> Vec<Edit> {
        put_back(request, hidden, at, unit)
    }

    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        format!(r#"{{"name":{name},"description":{description},"input_schema":{parameters}}}"#)
    }

    fn tool_reference(&self, name: &str) -> String {
        format!(r#"{{"type":"function","name":"{name}"}}"#)
    }

    fn tool_result(&self, id: &str, text: &str) -> String {
        format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{text}}}"#)
    }

    fn call(&self, unit: Value<'_, '_>) -> (bool, &'static str, &'static str) {
        (text(unit, "type") == "tool_use", "id", "input")
    }

    fn next_step(&self, step: &HiddenStep, said: &str) -> (&'static str, String) {
        next_step(step, said)
    }

    fn may_be_said_again(&self, _: &ReplyRound, unit: Value<'_, '_>) -> bool {
        !(text(unit, "type") == "text" && unit.given("text").is_some_and(|text| text.is("")))
    }

    fn usage(&self, tally: &Tally) -> Usage {
        let cached_input = tally.first(&["cache_read_input_tokens"]);
        let cache_write = tally.first(&["cache_creation_input_tokens"]);
        let uncached = tally.first(&["input_tokens"]);
        Usage {
            input: uncached.saturating_add(cached_input).saturating_add(cache_write),
            cached_input,
            cache_write,
            cache_write_1h: tally.first(&["cache_creation.ephemeral_1h_input_tokens"]),
            output: tally.first(&["output_tokens"]),
            reasoning: tally.first(&["output_tokens_details.thinking_tokens"]),
            ..Usage::default()
        }
    }

    fn read_reply<'d, 't>(&self, root: Value<'d, 't>, round: &mut ReplyRound) -> Option<Value<'d, 't>> {
        round.read_stop(root, "stop_reason");
        root.given("content")
    }

    fn close_reply(&self, root: Value<'_, '_>, close: &ReplyClose<'_>) -> Vec<Edit> {
        let Some(list) = root.given("content") else { return Vec::new() };
        let mut edits = close.rounds.list_edits(list, root.given("usage"));
        if let Some(usage) = root.given("usage").filter(|_| !close.rounds.done.is_empty()) {
            let mut absent = Vec::new();
            edits.extend(iterations(usage, close.rounds, &close.last.tally, &mut absent));
            edits.extend(absent.first().map(|list| json::add_members(usage, list)));
        }
        edits.extend(close.note.as_ref().map(|note| note.behind(list, &note.block())));
        edits.extend(stop_edit(root.get("stop_reason"), close.gave_up, "end_turn"));
        edits
    }

    fn said_bytes(&self, root: Value<'_, '_>) -> usize {
        let blocks = root.given("content").into_iter().flat_map(Value::items);
        blocks.flat_map(Value::members).map(|(name, value)| said_in(name, value)).sum()
    }

    fn too_long(&self, tokens: usize, budget: usize) -> String {
        if self.invokes {
            return converse::too_long(tokens, budget);
        }
        format!("prompt is too long: {tokens} tokens > {budget} maximum.")
    }

    fn error(&self, error: &ApiError) -> String {
        if self.invokes {
            return converse::error_body(error);
        }
        let (kind, message) = (error.kind.anthropic(), encoded(&error.message));
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
    }

    fn error_event(&self, error: &ApiError, _: u64) -> String {
        if self.invokes {
            return converse::error_event(error);
        }
        format!("event: error\ndata: {}\n\n", self.error(error))
    }

    fn recipe_reply(&self, reply: &RecipeReply<'_>) -> String {
        let block = json!({"type": "text", "text": reply.text, "citations": null});
        reply.extend(message(reply, json!([block]), json!(stop(reply)), reply.usage.output)).to_string()
    }

    fn recipe_events(&self, reply: &RecipeReply<'_>, part: &ReplyPart<'_>) -> String {
        match part {
            ReplyPart::Begin => named(&[
                json!({"type": "message_start", "message": message(reply, json!([]), Json::Null, 0)}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ]),
            ReplyPart::Text { piece, .. } => named(&[json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": piece}})]),
            ReplyPart::End { .. } => named(&[
                json!({"type": "content_block_stop", "index": 0}),
                reply.extend(json!({"type": "message_delta",
                    "delta": {"stop_reason": stop(reply), "stop_sequence": null},
                    "usage": usage(reply, reply.usage.output)})),
                json!({"type": "message_stop"}),
            ]),
        }
    }
}

/// Lists the usage of each round beside their sum, as the provider does for the rounds of its own tools: from the last one
/// clients know how full the window is. The whole member goes to `absent` if the report has none.
pub(super) fn iterations(
    usage: Value<'_, '_>,
    earlier: &ReplyRounds,
    last: &Tally,
    absent: &mut Vec<String>,
) -> Vec<Edit> {
    let before: Vec<String> = earlier.done.iter().map(|round| round.tally.iteration()).collect();
    let (before, all) = (before.join(","), format!("[{},{}]", before.join(","), last.iteration()));
    match usage.get("iterations") {
        Some(list) if list.kind() == Kind::Array => json::splice(list, &before, |_| false),
        Some(other) => vec![Edit::replace(other.span(), all)],
        None => {
            absent.push(format!(r#""iterations":{all}"#));
            Vec::new()
        }
    }
}

/// Puts hidden steps back into a history of messages whose content are blocks.
pub(super) fn put_back(
    request: &Request<'_>,
    hidden: &HiddenSteps,
    at: usize,
    unit: Value<'_, '_>,
) -> Vec<Edit> {
    let (here, message) = (unit.span().start, request.element(at));
    // A text alone, without blocks.
    if unit.id() == message.id() {
        let step = |step: &HiddenStep| {
            format!(r#"{{"role":"assistant","content":[{}]}},{},"#, step.calls(), results(step))
        };
        return vec![Edit::insert(here, hidden.before.iter().map(step).collect::<String>())];
    }
    let (end, begin) = halves(message);
    let step = |step: &HiddenStep| format!("{}{end},{},{begin}", step.calls(), results(step));
    let before: String = hidden.before.iter().map(step).collect();
    let mut edits = vec![Edit::insert(here, before)];
    // Results must be in the very next message, before all else.
    let next = request.elements.get(at + 1).and_then(|&next| request.doc.value(next).get("content"));
    let next = next.filter(|next| next.kind() == Kind::Array && !hidden.beside.is_empty());
    if let Some(next) = next {
        edits.push(Edit::insert(here, format!("{},", hidden.calls())));
        edits.extend(json::splice(next, &hidden.results(), |_| false));
    }
    edits
}

/// What is appended to such a history to continue it.
pub(super) fn next_step(step: &HiddenStep, said: &str) -> (&'static str, String) {
    ("messages", format!(r#"{{"role":"assistant","content":[{said}]}},{}"#, results(step)))
}

/// The message with the results of a step.
fn results(step: &HiddenStep) -> String {
    format!(r#"{{"role":"user","content":[{}]}}"#, step.results())
}

/// How an Anthropic message is ended and restarted in the middle of its content: with its role in both halves,
/// wherever the client wrote it.
fn halves(message: Value<'_, '_>) -> (&'static str, &'static str) {
    let places = |name: &str| message.members().position(|(key, _)| key.is(name));
    if places("role") < places("content") {
        ("]}", r#"{"role":"assistant","content":["#)
    } else {
        (r#"],"role":"assistant"}"#, r#"{"content":["#)
    }
}

/// Bytes of text in a member of a block.
fn said_in(name: Name<'_>, value: Value<'_, '_>) -> usize {
    match &*name.text() {
        "text" | "thinking" => length(Some(value)),
        "input" => value.raw().len(),
        _ => 0,
    }
}

/// Why a reply ended; Bedrock's `Converse` has the same words.
pub(super) fn stop(reply: &RecipeReply<'_>) -> &'static str {
    if reply.is_cut { "max_tokens" } else { "end_turn" }
}

fn message(reply: &RecipeReply<'_>, content: Json, stop: Json, output: u64) -> Json {
    json!({"id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": reply.model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage(reply, output)})
}

fn usage(reply: &RecipeReply<'_>, output: u64) -> Json {
    let Usage { input, cached_input, cache_write, .. } = reply.usage;
    let uncached = input.saturating_sub(cached_input).saturating_sub(cache_write);
    json!({"input_tokens": uncached, "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cached_input, "output_tokens": output})
}

fn read<'b>(root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
    let [model, messages, system, tools, stream, max, config, format] = fields(
        root,
        &String::new,
        ["model", "messages", "system", "tools", "stream", "max_tokens", "output_config", "output_format"],
    )?;
    request.take_model(model)?;
    request.stream = stream.is_some_and(Value::is_true);
    request.max_output = max.and_then(Value::as_u64);
    request.take_fixed("output_config", config);
    request.take_fixed("output_format", format);
    request.edited_elsewhere = root.given("context_management").map(|_| "context_management");
    request.read_tools(tools)?;
    if let Some(thread) = root.given("thread") {
        // The provider would hold the thread as it is before the model is answered.
        request.unofferable = Some("the provider holds the conversation (thread)");
        request.history_elsewhere = !thread.given("type").is_some_and(|kind| kind.is("create"));
        request.edited_elsewhere = Some("thread");
    }
    if system.is_some() {
        let mut item = Item::new(Role::System, None);
        item.read_content(system, "system")?;
        request.items.push(item);
    }
    let messages = messages.filter(|messages| messages.kind() == Kind::Array);
    let messages = messages.ok_or_else(|| ReadError::shape("messages", root, "an array of messages"))?;
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
        if block.given("type").is_some_and(|kind| kind.is("tool_result")) {
            let result = read_result(at, block, &path, request)?;
            request.items.push(result);
            continue;
        }
        others.push(block.id());
        if block.given("type").is_some_and(|kind| kind.is("compaction")) {
            request.edited_elsewhere = Some("compaction");
        }
        if block.given("type").is_some_and(|kind| kind.is("tool_use")) {
            let [id, name, input, cache] = fields(block, &path, ["id", "name", "input", "cache_control"])?;
            rest.cache_control |= cache.is_some();
            let text = |value: Option<Value<'_, 'b>>| value.and_then(Value::text).unwrap_or_default();
            let arguments = Cow::Borrowed(input.map_or("{}", Value::raw));
            rest.calls.push(ItemCall { id: text(id), name: text(name), arguments });
        } else {
            rest.read_part(block, &path)?;
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
    block: Value<'_, 'b>,
    path: &dyn Fn() -> String,
    request: &mut Request<'b>,
) -> Result<Item<'b>, ReadError> {
    let [id, content, error, cache] =
        fields(block, path, ["tool_use_id", "content", "is_error", "cache_control"])?;
    let mut item = Item::new(Role::Tool, Some(at));
    item.blocks = Some(vec![block.id()]);
    item.cache_control = cache.is_some();
    item.read_content(content, &format!("{}.content", path()))?;
    item.result = Some(ResultItem {
        id: id.and_then(Value::text).unwrap_or_default(),
        name: None,
        error: error.is_some_and(Value::is_true),
        summarizable: request.take_own(block),
    });
    Ok(item)
}
