//! Requests of Anthropic's messages. Knows no replies.

use std::borrow::Cow;

use larder_core::policy::ItemCall;
use larder_text::json::{Kind, Value};
use larder_text::message::Role;

use super::read::{ReadError, fields};
use super::request::{Item, Request, ToolResult, role};

pub(super) fn read<'b>(root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError> {
    let [model, messages, system, tools, stream, max, config, dialect] = fields(
        root,
        &String::new,
        ["model", "messages", "system", "tools", "stream", "max_tokens", "output_config", "output_format"],
    )?;
    request.take_model(model)?;
    request.stream = stream.is_some_and(Value::is_true);
    request.max_output = max.and_then(Value::as_u64);
    request.take_fixed("output_config", config);
    request.take_fixed("output_format", dialect);
    request.read_tools(tools)?;
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

/// A message is one item, except that each result in it is an item of its own, before what else it says.
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
    item.result = Some(ToolResult {
        id: id.and_then(Value::text).unwrap_or_default(),
        name: None,
        error: error.is_some_and(Value::is_true),
        summarizable: request.take_own(block),
    });
    Ok(item)
}
