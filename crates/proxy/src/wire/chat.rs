//! Requests of OpenAI's chat completions. Knows no replies.

use std::borrow::Cow;

use larder_core::policy::ItemCall;
use larder_text::json::{Kind, Value};
use larder_text::message::Role;

use super::read::{ReadError, fields};
use super::request::{Item, Request, ToolResult, role};

pub(super) fn read<'b>(root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
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
        // A call of ours in one of them would keep the others waiting, and only one can be gone on with.
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

/// How many replies are asked for: whatever is no number of them, the provider judges.
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
        item.result = Some(ToolResult {
            id: id.and_then(Value::text).unwrap_or_default(),
            name: name.and_then(Value::text),
            error: false,
            summarizable: request.take_own(message),
        });
    }
    for (key, value) in message.members().filter(|(_, value)| value.kind() != Kind::Null) {
        let thoughts =
            ["reasoning_content", "reasoning", "reasoning_details", "thinking", "refusal", "audio"];
        if thoughts.iter().any(|name| key.is(name)) {
            item.push_opaque(value);
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
        // Some servers take arguments as an object.
        arguments: arguments.map_or(Cow::Borrowed(""), |a| a.text().unwrap_or(Cow::Borrowed(a.raw()))),
    }
}
