//! Requests of OpenAI's responses. Knows no replies.

use std::borrow::Cow;

use larder_core::policy::ItemCall;
use larder_text::json::{Kind, Value};
use larder_text::message::Role;

use super::read::{ReadError, fields};
use super::request::{Item, Request, Text, ToolResult, role};

pub(super) fn read<'b>(root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
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
    request.history_elsewhere = elsewhere.iter().any(|name| root.given(name).is_some());
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
            item.texts.extend(Text::of(text));
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
        _ if kind.ends_with("_call_output") && call_id.is_some() => {
            let mut item = Item::new(Role::Tool, Some(at));
            item.read_content(output, &format!("input[{at}].output"))?;
            let id = call_id.and_then(Value::text).unwrap_or_default();
            let summarizable = request.take_own(element);
            item.result = Some(ToolResult { id, name: None, error: false, summarizable });
            item
        }
        // Calls that the provider answers itself have no `call_id`.
        _ if kind.ends_with("_call") && call_id.is_some() => {
            let mut item = Item::new(Role::Assistant, Some(at));
            item.calls.push(read_call(element, &kind));
            item
        }
        _ => {
            request.history_elsewhere |= kind == "item_reference";
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
