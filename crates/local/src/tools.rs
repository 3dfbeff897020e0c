//! Tool calls of a model that was never taught any: the reply is bound to the shape `{"tool": …, "arguments": …}`.
//! Knows schemas and calls; the grammar that enforces the shape is elsewhere.

use larder_text::hash::ContentHash;
use larder_text::message::{Message, Role, ToolCall, ToolDef};
use serde_json::{Map, Value, json};

/// Levels of a tool's schema in which references are rewritten.
const DEEPEST: usize = 128;

/// Whether the reply must be a call: there are tools, and the last word was not the result of one. A model this small
/// cannot be trusted to know when to stop calling.
pub(super) fn must_call(messages: &[Message], tools: &[ToolDef]) -> bool {
    !tools.is_empty() && messages.last().is_none_or(|message| message.role != Role::Tool)
}

/// The schema of a call to one of `tools`.
pub(super) fn schema(tools: &[ToolDef]) -> Value {
    let mut definitions = Map::new();
    let calls: Vec<Value> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            let definition = format!("tool{index}");
            let mut parameters = tool.parameters.clone();
            move_references(&mut parameters, &format!("#/$defs/{definition}"), 0);
            let arguments = json!({"$ref": format!("#/$defs/{definition}")});
            definitions.insert(definition, parameters);
            json!({
                "type": "object",
                "properties": {"tool": {"const": tool.name}, "arguments": arguments},
                "required": ["tool", "arguments"],
                "additionalProperties": false,
            })
        })
        .collect();
    json!({"anyOf": calls, "$defs": definitions})
}

/// References inside a tool's schema start at its own root, which is now at `root`.
fn move_references(schema: &mut Value, root: &str, depth: usize) {
    match schema {
        _ if depth > DEEPEST => {}
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        if let Some(path) = reference.strip_prefix('#') {
                            *reference = format!("{root}{path}");
                        }
                    }
                    value => move_references(value, root, depth + 1),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| move_references(value, root, depth + 1)),
        _ => {}
    }
}

/// The call that a reply of that shape is. Its id follows from the reply and `seed`, so it is the same each time.
pub(super) fn call(reply: &str, seed: u64) -> Option<ToolCall> {
    let reply_value: Value = serde_json::from_str(reply).ok()?;
    let digest = ContentHash::new(format!("{seed} {reply}").as_bytes()).to_hex();
    Some(ToolCall {
        id: format!("call_{}", digest.get(..16)?),
        name: reply_value.get("tool")?.as_str()?.to_owned(),
        arguments: reply_value.get("arguments")?.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_a_tool_still_resolve() {
        let tools = [ToolDef {
            name: "find".to_owned(),
            description: String::new(),
            parameters: json!({"$ref": "#/$defs/query", "$defs": {"query": {"type": "object"}}}),
        }];
        let schema = schema(&tools);
        let reference = schema["$defs"]["tool0"]["$ref"].as_str().unwrap();
        assert_eq!(schema.pointer(reference.trim_start_matches('#')), Some(&json!({"type": "object"})));
    }

    #[test]
    fn a_reply_becomes_a_call_and_a_call_is_not_asked_for_twice() {
        let call = call(r#"{"tool":"find","arguments":{"q":"x"}}"#, 7).unwrap();
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("find", r#"{"q":"x"}"#));
        let tools = [ToolDef { name: "find".to_owned(), description: String::new(), parameters: json!({}) }];
        assert!(must_call(&[Message::text(Role::User, "find x")], &tools));
        assert!(!must_call(&[Message::text(Role::Tool, "found")], &tools));
        assert!(!must_call(&[Message::text(Role::User, "find x")], &[]));
    }
}
