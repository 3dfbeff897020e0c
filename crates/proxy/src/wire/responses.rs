//! OpenAI's responses, but for their streams.

use std::borrow::Cow;

use larder_core::policy::ItemCall;
use larder_text::json::{Edit, Kind, Name, Value, encoded, splice};
use larder_text::message::Role;
use larder_text::provider::Provider;
use larder_text::usage::Usage;
use serde_json::{Value as Json, json};

use super::api_error::ApiError;
use super::chat::{openai_error, openai_model, openai_model_list, openai_too_long};
use super::format::WireFormat;
use super::hidden::{HiddenStep, HiddenSteps, answer_key, call_key, item_key, thought_key};
use super::read::{ReadError, fields};
use super::recipe_reply::{EVENTS_BEFORE_TEXT, RecipeReply, ReplyPart, named};
use super::reply::{ReplyClose, ReplyRound, Tally, length, parts_length, text};
use super::request::{Item, Request, ResultItem, Text, role};

/// The dialect of `POST /v1/responses`.
pub(super) struct ResponsesFormat;

impl WireFormat for ResponsesFormat {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn path(&self) -> Option<&'static str> {
        Some("/v1/responses")
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

    fn answer_marks(&self) -> &'static [&'static str] {
        // Calls and reasoning are separate elements here, and have no role.
        &["assistant", "\"type\""]
    }

    fn units_member(&self) -> Option<&'static str> {
        None
    }

    fn keys(&self, unit: Value<'_, '_>, answers: bool) -> Vec<String> {
        let member = |name: &str| Some(text(unit, name)).filter(|text| !text.is_empty());
        let (kind, mut keys) = (text(unit, "type"), Vec::new());
        if let Some(id) = member("call_id") {
            let arguments = member("arguments").or_else(|| member("input")).unwrap_or_default();
            if kind.ends_with("_call") {
                keys.push(call_key(&id, &text(unit, "name"), &arguments));
            }
            if kind.ends_with("_call") || answers {
                keys.push(answer_key(&id));
            }
        }
        keys.extend(member("id").map(|id| item_key(&id)));
        keys.extend(member("encrypted_content").map(|seal| thought_key(&seal)));
        keys
    }

    fn put_back(&self, _: &Request<'_>, hidden: &HiddenSteps, _: usize, unit: Value<'_, '_>) -> Vec<Edit> {
        let answers_only = unit.given("output").is_some();
        let steps = hidden.before.iter().filter(|_| !answers_only).flat_map(|step| &step.calls);
        let mut text = String::new();
        for answered in steps.chain(&hidden.beside) {
            if !answers_only {
                text += &format!("{},", answered.call);
            }
            text += &format!("{},", answered.result);
        }
        vec![Edit::insert(unit.span().start, text)]
    }

    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        // Strict is the default here, and would make every argument required.
        format!(
            r#"{{"type":"function","name":{name},"description":{description},"parameters":{parameters},"strict":false}}"#
        )
    }

    fn tool_reference(&self, name: &str) -> String {
        format!(r#"{{"type":"function","name":"{name}"}}"#)
    }

    fn tool_result(&self, id: &str, text: &str) -> String {
        format!(r#"{{"type":"function_call_output","call_id":{id},"output":{text}}}"#)
    }

    fn call(&self, unit: Value<'_, '_>) -> (bool, &'static str, &'static str) {
        let kind = text(unit, "type");
        let is_call = kind.ends_with("_call") && unit.given("call_id").is_some();
        (is_call || kind == "mcp_approval_request", "call_id", "arguments")
    }

    fn next_step(&self, step: &HiddenStep, said: &str) -> (&'static str, String) {
        ("input", format!("{said},{}", step.results()))
    }

    fn is_history_held(&self, request: Value<'_, '_>) -> bool {
        // Unlike `previous_response_id`, which names the state before this request in every round.
        request.given("conversation").is_some()
    }

    fn may_lack_history(&self) -> bool {
        true
    }

    fn may_be_said_again(&self, round: &ReplyRound, unit: Value<'_, '_>) -> bool {
        let is_unsealed = unit.given("encrypted_content").is_none();
        !(text(unit, "type") == "reasoning" && round.unstored && is_unsealed)
    }

    fn usage(&self, tally: &Tally) -> Usage {
        Usage {
            input: tally.first(&["input_tokens"]),
            cached_input: tally.first(&["input_tokens_details.cached_tokens"]),
            cache_write: tally.first(&["input_tokens_details.cache_write_tokens"]),
            output: tally.first(&["output_tokens"]),
            reasoning: tally.first(&["output_tokens_details.reasoning_tokens"]),
            ..Usage::default()
        }
    }

    fn read_reply<'d, 't>(&self, root: Value<'d, 't>, round: &mut ReplyRound) -> Option<Value<'d, 't>> {
        round.read_stop(root, "status");
        round.complete &= round.stop.as_deref().is_none_or(|status| status == "completed");
        round.unstored = root.given("store").is_some_and(|store| store.raw() == "false");
        round.id = text(root, "id").into_owned();
        root.given("output")
    }

    fn close_reply(&self, root: Value<'_, '_>, close: &ReplyClose<'_>) -> Vec<Edit> {
        let Some(list) = root.given("output") else { return Vec::new() };
        let mut edits = close.rounds.list_edits(list, root.given("usage"));
        edits.extend(close.note.as_ref().map(|note| note.behind(list, &note.item(&text(root, "id")))));
        edits
    }

    fn unoffered(&self, reply: Value<'_, '_>, tool: &str) -> Vec<Edit> {
        let allowed = reply.given("tool_choice").and_then(|choice| choice.given("tools"));
        let lists = [reply.given("tools"), allowed].into_iter().flatten();
        let edits = lists.flat_map(|list| {
            let is_ours: Vec<_> = list.items().map(|entry| text(entry, "name") == tool).collect();
            splice(list, "", |at| is_ours.get(at) == Some(&true))
        });
        edits.collect()
    }

    fn said_bytes(&self, root: Value<'_, '_>) -> usize {
        let items = root.given("output").into_iter().flat_map(Value::items);
        items.flat_map(Value::members).map(|(name, value)| said_in(name, value)).sum()
    }

    fn too_long(&self, tokens: usize, budget: usize) -> String {
        openai_too_long(tokens, budget)
    }

    fn error(&self, error: &ApiError) -> String {
        openai_error(error, "input")
    }

    fn error_event(&self, error: &ApiError, sequence: u64) -> String {
        let (message, code) = (encoded(&error.message), error.kind.openai().1);
        let code = code.map_or_else(|| "null".to_owned(), encoded);
        format!(
            "event: error\ndata: {{\"type\":\"error\",\"sequence_number\":{sequence},\"code\":{code},\
             \"message\":{message},\"param\":null}}\n\n"
        )
    }

    fn recipe_reply(&self, reply: &RecipeReply<'_>) -> String {
        let status = ended(reply);
        response(reply, status, json!([output(reply, status)])).to_string()
    }

    fn recipe_events(&self, reply: &RecipeReply<'_>, part: &ReplyPart<'_>) -> String {
        named(&response_events(reply, part))
    }
}

/// Bytes of text in a member of an item.
fn said_in(name: Name<'_>, value: Value<'_, '_>) -> usize {
    match &*name.text() {
        "content" | "summary" => parts_length(value, &["text", "refusal"]),
        "arguments" | "input" | "code" => length(Some(value)),
        _ => 0,
    }
}

/// The status of a reply and of its item at its end.
fn ended(reply: &RecipeReply<'_>) -> &'static str {
    if reply.is_cut { "incomplete" } else { "completed" }
}

fn output(reply: &RecipeReply<'_>, status: &str) -> Json {
    let content = match status {
        "in_progress" => json!([]),
        _ => json!([part(reply.text)]),
    };
    json!({"id": format!("msg_{}", reply.id), "type": "message", "status": status, "role": "assistant",
        "content": content})
}

fn part(text: &str) -> Json {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn response(reply: &RecipeReply<'_>, status: &str, output: Json) -> Json {
    let Usage { input, cached_input, output: out, reasoning, .. } = reply.usage;
    let usage = json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": cached_input},
        "output_tokens": out, "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input.saturating_add(out)});
    let usage = if status == "in_progress" { Json::Null } else { usage };
    let incomplete = match status {
        "incomplete" => json!({"reason": "max_output_tokens"}),
        _ => Json::Null,
    };
    reply.extend(json!({"id": format!("resp_{}", reply.id), "object": "response", "created_at": reply.created, "status": status,
        "error": null, "incomplete_details": incomplete, "instructions": null, "max_output_tokens": null,
        "model": reply.model, "output": output, "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null}, "store": false, "temperature": null,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": null,
        "truncation": "disabled", "usage": usage, "user": null, "metadata": {}}))
}

fn response_events(reply: &RecipeReply<'_>, of: &ReplyPart<'_>) -> Vec<Json> {
    let item = format!("msg_{}", reply.id);
    let at = |kind: &str, more: Json| {
        let mut event = json!({"type": kind, "item_id": item, "output_index": 0, "content_index": 0});
        if let (Some(event), Json::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        event
    };
    let (first, mut events) = match of {
        ReplyPart::Begin => (
            0,
            vec![
                json!({"type": "response.created", "response": response(reply, "in_progress", json!([]))}),
                json!({"type": "response.in_progress", "response": response(reply, "in_progress", json!([]))}),
                json!({"type": "response.output_item.added", "output_index": 0, "item": output(reply, "in_progress")}),
                at("response.content_part.added", json!({"part": part("")})),
            ],
        ),
        ReplyPart::Text { piece, at: before } => {
            let delta = at("response.output_text.delta", json!({"delta": piece, "logprobs": []}));
            (EVENTS_BEFORE_TEXT + before, vec![delta])
        }
        ReplyPart::End { pieces } => (
            EVENTS_BEFORE_TEXT + pieces,
            vec![
                at("response.output_text.done", json!({"text": reply.text, "logprobs": []})),
                at("response.content_part.done", json!({"part": part(reply.text)})),
                json!({"type": "response.output_item.done", "output_index": 0, "item": output(reply, ended(reply))}),
                json!({"type": format!("response.{}", ended(reply)),
                "response": response(reply, ended(reply), json!([output(reply, ended(reply))]))}),
            ],
        ),
    };
    for (number, event) in (first..).zip(&mut events) {
        event["sequence_number"] = json!(number);
    }
    events
}

fn read<'b>(root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
    let [model, input, instructions, tools, stream, max, choice, text, background] = fields(
        root,
        &String::new,
        [
            "model",
            "input",
            "instructions",
            "tools",
            "stream",
            "max_output_tokens",
            "tool_choice",
            "text",
            "background",
        ],
    )?;
    request.take_model(model)?;
    request.stream = stream.is_some_and(Value::is_true);
    request.max_output = max.and_then(Value::as_u64);
    request.take_fixed("text", text);
    if background.is_some_and(Value::is_true) {
        request.unofferable = Some("the reply is made in the background");
    }
    request.read_tools(tools)?;
    let allowed = choice.filter(|choice| choice.given("type").is_some_and(|kind| kind.is("allowed_tools")));
    let allowed = allowed.and_then(|choice| choice.given("tools"));
    request.allowed_at = allowed.filter(|tools| tools.kind() == Kind::Array).map(Value::id);
    let elsewhere = ["previous_response_id", "conversation", "prompt"];
    let elsewhere = elsewhere.into_iter().find(|name| root.given(name).is_some());
    request.history_elsewhere = elsewhere.is_some();
    let truncates = root.given("truncation").is_some_and(|truncation| truncation.is("auto"));
    let edits =
        [(root.given("context_management").is_some(), "context_management"), (truncates, "truncation")];
    let edits = edits.into_iter().find_map(|(is_there, name)| is_there.then_some(name));
    request.edited_elsewhere = elsewhere.or(edits);
    let named = |held: Value<'_, '_>| held.text().map(Cow::into_owned);
    request.continues = root.given("previous_response_id").and_then(named);
    request.conversation =
        root.given("conversation").and_then(|held| named(held.given("id").unwrap_or(held)));
    if instructions.is_some() {
        let mut item = Item::new(Role::System, None);
        item.read_content(instructions, "instructions")?;
        request.items.push(item);
    }
    match input {
        None if request.history_elsewhere => Ok(()),
        Some(text) if text.kind() == Kind::String => {
            request.list = Some(text.id());
            let mut item = Item::new(Role::User, None);
            item.texts.extend(Text::new(text));
            request.items.push(item);
            Ok(())
        }
        Some(list) if list.kind() == Kind::Array => {
            request.take_list("input", list)?;
            for (at, element) in list.items().enumerate() {
                let item = read_item(at, element, request)?;
                request.items.push(item);
            }
            Ok(())
        }
        other => Err(ReadError::shape("input", other.unwrap_or(root), "a string or an array of items")),
    }
}

fn read_item<'b>(
    at: usize,
    element: Value<'_, 'b>,
    request: &mut Request<'b>,
) -> Result<Item<'b>, ReadError> {
    let path = || format!("input[{at}]");
    let [kind, who, content, call_id, output, cache] =
        fields(element, &path, ["type", "role", "content", "call_id", "output", "cache_control"])?;
    let kind = kind.and_then(Value::text).unwrap_or(Cow::Borrowed("message"));
    let mut item = match &*kind {
        "message" => {
            let mut item = Item::new(role(who), Some(at));
            item.read_content(content, &format!("input[{at}].content"))?;
            item
        }
        _ if kind.ends_with("_call_output") => {
            let mut item = Item::new(Role::Tool, Some(at));
            item.read_content(output, &format!("input[{at}].output"))?;
            // Local shells name the call by `id`.
            let id = call_id.or_else(|| element.given("id")).and_then(Value::text).unwrap_or_default();
            let name = element.given("name").and_then(Value::text);
            let summarizable = request.take_own(element);
            item.result = Some(ResultItem { id, name, error: false, summarizable });
            item
        }
        // Calls that the provider answers itself have no `call_id`.
        _ if kind.ends_with("_call") && call_id.is_some() => {
            let mut item = Item::new(Role::Assistant, Some(at));
            item.calls.push(read_call(element, &kind));
            item
        }
        _ => {
            if kind == "item_reference" {
                request.history_elsewhere = true;
                request.edited_elsewhere = Some("item_reference");
            } else if kind == "compaction" {
                request.edited_elsewhere = Some("compaction");
            }
            let mut item = Item::new(Role::Assistant, Some(at));
            item.push_opaque(element);
            item
        }
    };
    item.cache_control |= cache.is_some();
    Ok(item)
}

fn read_call<'b>(element: Value<'_, 'b>, kind: &Cow<'b, str>) -> ItemCall<'b> {
    let arguments = ["arguments", "input", "action", "operation"].iter().find_map(|name| element.given(name));
    ItemCall {
        id: element.given("call_id").and_then(Value::text).unwrap_or_default(),
        name: element.given("name").and_then(Value::text).unwrap_or_else(|| kind.clone()),
        arguments: arguments.map_or(Cow::Borrowed(""), |a| a.text().unwrap_or(Cow::Borrowed(a.raw()))),
    }
}
