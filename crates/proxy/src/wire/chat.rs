//! OpenAI's chat completions, but for their streams.

use std::borrow::Cow;

use larder_core::policy::ItemCall;
use larder_text::json::{self, Edit, Kind, Name, Value, encoded};
use larder_text::message::Role;
use larder_text::provider::Provider;
use larder_text::usage::Usage;
use serde_json::{Value as Json, json};

use super::api_error::{ApiError, ApiErrorKind};
use super::format::WireFormat;
use super::hidden::{HiddenStep, HiddenSteps, call_key};
use super::opaque::{Opaque, OpaqueKind};
use super::read::{ReadError, fields};
use super::recipe_reply::{RecipeReply, ReplyPart};
use super::reply::{
    ReplyClose, ReplyRound, Tally, inner, is_thought, length, parts_length, push_text, stop_edit,
};
use super::request::{Item, Request, ResultItem, role};

/// The dialect of `POST /v1/chat/completions`.
pub(super) struct ChatFormat;

impl WireFormat for ChatFormat {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn path(&self) -> Option<&'static str> {
        Some("/v1/chat/completions")
    }

    fn provider(&self) -> Provider {
        Provider::OpenAi
    }

    fn client_header(&self) -> Option<&'static str> {
        None
    }

    fn listed_model(&self, id: &str) -> Json {
        openai_model(id)
    }

    fn model_list(&self, models: Vec<Json>, _: bool) -> Json {
        openai_model_list(models)
    }

    fn read<'b>(&self, root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
        read(root, request)
    }

    fn units_member(&self) -> Option<&'static str> {
        Some("tool_calls")
    }

    fn keys(&self, unit: Value<'_, '_>, _: bool) -> Vec<String> {
        let inner = unit.given("function").or_else(|| unit.given("custom")).unwrap_or(unit);
        let name = inner.given("name").and_then(Value::text).unwrap_or_default();
        let arguments = inner.given("arguments").or_else(|| inner.given("input")).and_then(Value::text);
        let id = unit.given("id").and_then(Value::text).filter(|id| !id.is_empty());
        id.map(|id| call_key(&id, &name, &arguments.unwrap_or_default())).into_iter().collect()
    }

    fn put_back(
        &self,
        request: &Request<'_>,
        hidden: &HiddenSteps,
        at: usize,
        unit: Value<'_, '_>,
    ) -> Vec<Edit> {
        let message = request.element(at);
        let own = own_text(hidden, message);
        let text = |step: &HiddenStep| if own.is_some() { step.text.clone() } else { String::new() };
        let before: String =
            hidden.before.iter().map(|step| format!("{},", step_messages(step, &text(step)))).collect();
        let mut edits = vec![Edit::insert(message.span().start, before)];
        edits.extend(own);
        if !hidden.beside.is_empty() {
            edits.push(Edit::insert(unit.span().start, format!("{},", hidden.calls())));
            edits.push(Edit::insert(message.span().end, format!(",{}", hidden.results())));
        }
        edits
    }

    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        format!(
            r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{parameters}}}}}"#
        )
    }

    fn tool_reference(&self, name: &str) -> String {
        format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#)
    }

    fn tool_result(&self, id: &str, text: &str) -> String {
        format!(r#"{{"role":"tool","tool_call_id":{id},"content":{text}}}"#)
    }

    fn call(&self, _: Value<'_, '_>) -> (bool, &'static str, &'static str) {
        (true, "id", "arguments")
    }

    fn has_one_text(&self) -> bool {
        true
    }

    fn next_step(&self, step: &HiddenStep, _: &str) -> (&'static str, String) {
        ("messages", step_messages(step, &step.text))
    }

    fn may_be_said_again(&self, _: &ReplyRound, _: Value<'_, '_>) -> bool {
        true
    }

    fn usage(&self, tally: &Tally) -> Usage {
        Usage {
            input: tally.first(&["prompt_tokens"]),
            // OpenAI and vLLM, then Kimi, then DeepSeek.
            cached_input: tally.first(&[
                "prompt_tokens_details.cached_tokens",
                "cached_tokens",
                "prompt_cache_hit_tokens",
            ]),
            cache_write: tally.first(&["prompt_tokens_details.cache_write_tokens"]),
            output: tally.first(&["completion_tokens"]),
            reasoning: tally.first(&["completion_tokens_details.reasoning_tokens"]),
            ..Usage::default()
        }
    }

    fn read_reply<'d, 't>(&self, root: Value<'d, 't>, round: &mut ReplyRound) -> Option<Value<'d, 't>> {
        let choice = choice(root)?;
        round.read_stop(choice, "finish_reason");
        let message = choice.given("message")?;
        round.text = message.given("content").and_then(Value::text).unwrap_or_default().into_owned();
        for (key, value) in message.members() {
            if is_thought(&key.text()) && value.kind() != Kind::Null {
                round.members += &format!(",{}:{}", key.raw(), value.raw());
            }
        }
        message.given("tool_calls")
    }

    fn close_reply(&self, root: Value<'_, '_>, close: &ReplyClose<'_>) -> Vec<Edit> {
        let Some(choice) = choice(root) else { return Vec::new() };
        let mut edits = message_edits(choice, close);
        let usage = root.given("usage").into_iter();
        edits.extend(usage.flat_map(|usage| close.rounds.spent().edits(usage)));
        edits.extend(stop_edit(choice.get("finish_reason"), close.gave_up, "stop"));
        edits
    }

    fn said_bytes(&self, root: Value<'_, '_>) -> usize {
        let choices = root.given("choices").into_iter().flat_map(Value::items);
        let messages = choices.filter_map(|choice| choice.given("message"));
        messages.flat_map(Value::members).map(|(name, value)| said_in(name, value)).sum()
    }

    fn too_long(&self, tokens: usize, budget: usize) -> String {
        openai_too_long(tokens, budget)
    }

    fn error(&self, error: &ApiError) -> String {
        openai_error(error, "messages")
    }

    fn error_event(&self, error: &ApiError, _: u64) -> String {
        format!("data: {}\n\n", self.error(error))
    }

    fn recipe_reply(&self, reply: &RecipeReply<'_>) -> String {
        let message = json!({"role": "assistant", "content": reply.text, "refusal": null});
        let choice =
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply)});
        reply.extend(completion(reply, "chat.completion", json!([choice]), Some(usage(reply)))).to_string()
    }

    fn recipe_events(&self, reply: &RecipeReply<'_>, part: &ReplyPart<'_>) -> String {
        let chunk = |delta: Json, finish: Json| {
            let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
            completion(reply, "chat.completion.chunk", json!([choice]), None)
        };
        let event = |chunk: Json| format!("data: {chunk}\n\n");
        match part {
            ReplyPart::Begin => event(chunk(json!({"role": "assistant", "content": ""}), Json::Null)),
            ReplyPart::Text { piece, .. } => event(chunk(json!({"content": piece}), Json::Null)),
            ReplyPart::End { .. } => {
                let usage = || completion(reply, "chat.completion.chunk", json!([]), Some(usage(reply)));
                let usage = if reply.include_usage { event(usage()) } else { String::new() };
                event(reply.extend(chunk(json!({}), json!(finish(reply))))) + &usage + "data: [DONE]\n\n"
            }
        }
    }
}

/// OpenAI's words for a prompt that is too long.
pub(super) fn openai_too_long(tokens: usize, budget: usize) -> String {
    format!(
        "This model's maximum context length is {budget} tokens for the prompt. However, your messages resulted in \
         {tokens} tokens."
    )
}

/// A model in OpenAI's list of models.
pub(super) fn openai_model(id: &str) -> Json {
    json!({"id": id, "object": "model", "created": 0, "owned_by": "larder"})
}

/// OpenAI's list of models.
pub(super) fn openai_model_list(models: Vec<Json>) -> Json {
    json!({"object": "list", "data": models})
}

/// The body of an OpenAI error; `history` is the parameter with the history.
pub(super) fn openai_error(error: &ApiError, history: &str) -> String {
    let (kind, code) = error.kind.openai();
    let (message, code) = (encoded(&error.message), code.map_or_else(|| "null".to_owned(), encoded));
    let param = if error.kind == ApiErrorKind::ContextTooLong { encoded(history) } else { "null".to_owned() };
    format!(r#"{{"error":{{"message":{message},"type":"{kind}","param":{param},"code":{code}}}}}"#)
}

/// The messages of a step: the call, the results.
fn step_messages(step: &HiddenStep, text: &str) -> String {
    let text = if text.is_empty() { "null".to_owned() } else { encoded(text) };
    let (members, calls, results) = (&step.members, step.calls(), step.results());
    format!(r#"{{"role":"assistant","content":{text}{members},"tool_calls":[{calls}]}},{results}"#)
}

/// A chat completions client has the text of all steps as one, in the last message. If it is unchanged, each message
/// gets its own text back, as the provider knows them: this is the last one's.
fn own_text(hidden: &HiddenSteps, message: Value<'_, '_>) -> Option<Edit> {
    let content = message.given("content")?;
    let mut all = String::new();
    hidden.before.iter().for_each(|step| push_text(&mut all, &step.text));
    if all.is_empty() {
        return None;
    }
    push_text(&mut all, &hidden.last);
    content.text().filter(|given| **given == *all)?;
    let calls = message.given("tool_calls").is_some_and(|calls| calls.items().next().is_some());
    match hidden.last.as_str() {
        "" if calls => Some(Edit::replace(content.span(), "null")),
        // Providers reject an empty message.
        "" => None,
        last => Some(Edit::replace(content.span(), encoded(last))),
    }
}

fn choice<'d, 't>(root: Value<'d, 't>) -> Option<Value<'d, 't>> {
    root.given("choices")?.items().next()
}

/// The edits of the message, which contains the text of all rounds.
fn message_edits(choice: Value<'_, '_>, close: &ReplyClose<'_>) -> Vec<Edit> {
    let (last, note) = (close.last, close.note.as_ref());
    let mut edits = Vec::new();
    let Some(message) = choice.given("message") else { return edits };
    let before = close.rounds.text_before();
    let mut all = before.clone();
    push_text(&mut all, &last.text);
    let content = message.get("content").filter(|_| !before.is_empty());
    match content.map(|content| (content.kind(), content.span())) {
        Some((Kind::String, span)) => {
            edits.push(Edit::insert(span.start + 1, inner(&all[..all.len() - last.text.len()])));
        }
        Some((Kind::Null, span)) => edits.push(Edit::replace(span, encoded(&all))),
        _ => {}
    }
    let Some(calls) = message.given("tool_calls") else { return edits };
    // Content in parts is left unchanged.
    let in_parts = message.get("content").is_some_and(|content| content.kind() == Kind::Array);
    if let Some(note) = note.filter(|_| !in_parts) {
        edits = note.in_place_of_calls(message);
    } else if last.asks_us_alone() {
        edits.extend(json::without(message, &["tool_calls"]));
    } else {
        let is_ours = |at: usize| last.units.get(at).is_some_and(|unit| unit.ours.is_some());
        edits.extend(json::splice(calls, "", is_ours));
    }
    edits
}

/// Bytes of text in a member of a message.
fn said_in(name: Name<'_>, value: Value<'_, '_>) -> usize {
    match &*name.text() {
        "role" => 0,
        "tool_calls" => {
            let functions = value.items().filter_map(|call| call.given("function"));
            functions.map(|function| length(function.given("arguments"))).sum()
        }
        "content" if value.kind() == Kind::Array => parts_length(value, &["text"]),
        // Reasoning and refusals have members of their own, under many names.
        _ => length(Some(value)),
    }
}

fn completion(reply: &RecipeReply<'_>, object: &str, choices: Json, usage: Option<Json>) -> Json {
    let mut whole = json!({"id": format!("chatcmpl-{}", reply.id), "object": object, "created": reply.created,
        "model": reply.model, "choices": choices});
    if let Some(usage) = usage {
        whole["usage"] = usage;
    }
    whole
}

fn finish(reply: &RecipeReply<'_>) -> &'static str {
    if reply.is_cut { "length" } else { "stop" }
}

fn usage(reply: &RecipeReply<'_>) -> Json {
    let Usage { input, cached_input, output, reasoning, .. } = reply.usage;
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input.saturating_add(output),
        "prompt_tokens_details": {"cached_tokens": cached_input},
        "completion_tokens_details": {"reasoning_tokens": reasoning}})
}

fn read<'b>(root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
    let [model, messages, tools, stream, options, max_new, max_old, n, choice, format, functions, schema] =
        fields(
            root,
            &String::new,
            [
                "model",
                "messages",
                "tools",
                "stream",
                "stream_options",
                "max_completion_tokens",
                "max_tokens",
                "n",
                "tool_choice",
                "response_format",
                "functions",
                "guided_json",
            ],
        )?;
    request.take_model(model)?;
    request.stream = stream.is_some_and(Value::is_true);
    request.include_usage = options.and_then(|o| o.get("include_usage")).is_some_and(Value::is_true);
    request.max_output = max_new.or(max_old).and_then(Value::as_u64);
    request.choices = n.map_or(1, choices);
    request.take_fixed("response_format", format);
    request.take_fixed("functions", functions);
    request.take_fixed("guided_json", schema);
    if functions.is_some() {
        request.unofferable = Some("the request uses functions in place of tools");
    } else if request.choices > 1 {
        // A call of Larder's tool in one choice would keep the others waiting, and only one choice can be continued.
        request.unofferable = Some("the request asks for several choices");
    }
    request.read_tools(tools)?;
    let allowed = choice.and_then(|choice| choice.given("allowed_tools")?.given("tools"));
    request.allowed_at = allowed.filter(|tools| tools.kind() == Kind::Array).map(Value::id);
    let messages = messages.filter(|messages| messages.kind() == Kind::Array);
    let messages = messages.ok_or_else(|| ReadError::shape("messages", root, "an array of messages"))?;
    request.take_list("messages", messages)?;
    for (at, message) in messages.items().enumerate() {
        let item = read_message(at, message, request)?;
        request.items.push(item);
    }
    Ok(())
}

/// The number of requested choices; the provider judges anything that is not a number.
fn choices(n: Value<'_, '_>) -> u64 {
    n.raw().parse().map_or(1, |n: f64| n.ceil() as u64).max(1)
}

fn read_message<'b>(
    at: usize,
    message: Value<'_, 'b>,
    request: &mut Request<'b>,
) -> Result<Item<'b>, ReadError> {
    let path = || format!("messages[{at}]");
    let [who, content, calls, call, id, name, cache] = fields(
        message,
        &path,
        ["role", "content", "tool_calls", "function_call", "tool_call_id", "name", "cache_control"],
    )?;
    let role = role(who);
    let mut item = Item::new(role, Some(at));
    item.cache_control = cache.is_some();
    item.read_content(content, &format!("messages[{at}].content"))?;
    for call in calls.into_iter().flat_map(Value::items) {
        item.calls.push(read_call(call));
    }
    // The legacy form has no ids; the result that follows is its own.
    item.calls.extend(call.map(|call| ItemCall { id: Cow::Borrowed(""), ..function(call, call) }));
    if role == Role::Tool {
        item.result = Some(ResultItem {
            id: id.and_then(Value::text).unwrap_or_default(),
            name: name.and_then(Value::text),
            error: false,
            summarizable: request.take_own(message),
        });
    }
    for (key, value) in message.members().filter(|(_, value)| value.kind() != Kind::Null) {
        let thoughts = ["reasoning_content", "reasoning", "reasoning_details", "thinking", "refusal"];
        if thoughts.iter().any(|name| key.is(name)) {
            item.push_opaque(value);
        } else if key.is("audio") {
            // What the model said before, by its id.
            item.opaque.push(Opaque { kind: OpaqueKind::Audio, raw: value.raw(), counted: value.raw() });
        }
    }
    Ok(item)
}

fn read_call<'b>(call: Value<'_, 'b>) -> ItemCall<'b> {
    let inner = call.given("function").or_else(|| call.given("custom")).unwrap_or(call);
    function(call, inner)
}

fn function<'b>(call: Value<'_, 'b>, inner: Value<'_, 'b>) -> ItemCall<'b> {
    let text = |value: Option<Value<'_, 'b>>| value.and_then(Value::text).unwrap_or_default();
    let arguments = inner.given("arguments").or_else(|| inner.given("input"));
    ItemCall {
        id: text(call.given("id")),
        name: text(inner.given("name")),
        // Some servers send arguments as an object.
        arguments: arguments.map_or(Cow::Borrowed(""), |a| a.text().unwrap_or(Cow::Borrowed(a.raw()))),
    }
}
