//! What of a request its provider bills apart from tokens of text: sound, other output than text, and tools that the
//! provider runs. Neither the catalogue nor the table has prices of these. Knows the fields of all formats.

use larder_proxy::record::Endpoint;
use larder_proxy::wire::{OpaqueKind, Request};
use serde_json::Value;

use crate::error::RequestError;
use crate::request::active::ActiveRequest;
use crate::request::fields;
use crate::request::passthrough::forbidden;

/// How the types of tools begin that cost their tokens only: clients run them, or providers run them for nothing.
const FREE_TOOLS: [&str; 14] = [
    "apply_patch",
    "bash_",
    "browser_toolset_",
    "computer",
    "custom",
    "function",
    "local_shell",
    "mcp",
    "memory_",
    "namespace",
    "shell",
    "text_editor_",
    "tool_search",
    "web_fetch_",
];
/// Parts of the names of models that search the web for every request.
const SEARCHING: [&str; 3] = ["-search-preview", "-search-api", "sonar"];

/// Records what the cost of the request will not contain.
///
/// # Errors
/// If there is something, and the caller has a budget in money.
pub fn note(active: &mut ActiveRequest, request: &Request<'_>, model: &str) -> Result<(), RequestError> {
    if active.record.summary.endpoint == Endpoint::CountTokens {
        return Ok(());
    }
    let found = fields::capped(of(request, model));
    if !found.is_empty() && active.caller.limits.picos_per_day.is_some() {
        return Err(forbidden(&format!(
            "this key has a budget in dollars, and the provider bills apart from tokens, at prices that are not known \
             here, for: {}. Leave this out, or use a key without a budget in dollars",
            found.join(", ")
        )));
    }
    active.record.summary.unpriced = found;
    Ok(())
}

fn of(request: &Request<'_>, model: &str) -> Vec<String> {
    let mut found = Vec::new();
    if SEARCHING.iter().any(|part| model.contains(part)) {
        found.push(fields::shown(model));
    }
    for (name, raw) in request.fields() {
        let read = || serde_json::from_str(raw).unwrap_or(Value::Null);
        let is_billed = match &*name {
            "web_search_options" => raw != "null",
            "modalities" => read().as_array().is_some_and(|all| all.iter().any(|kind| kind != "text")),
            // Both multiply the prices of tokens.
            "speed" => !matches!(read().as_str(), None | Some("standard")),
            "inference_geo" => !matches!(read().as_str(), None | Some("global")),
            _ => false,
        };
        found.extend(is_billed.then(|| name.into_owned()));
    }
    let is_free = |tool: &str| tool.is_empty() || FREE_TOOLS.iter().any(|free| tool.starts_with(free));
    // A shell may run in a container of the provider's.
    let billed = request
        .tools
        .iter()
        .filter(|tool| !is_free(&tool.kind) || (tool.kind == "shell" && tool.raw.contains("\"container")));
    found.extend(billed.map(|tool| fields::shown(&tool.kind)));
    if request.items.iter().flat_map(|item| &item.opaque).any(|part| part.kind == OpaqueKind::Audio) {
        found.push("sound".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_proxy::wire::{self, ApiDialect};

    #[test]
    fn what_is_billed_apart_from_text_is_found_in_every_format() {
        let input = r#""input": "hi""#;
        let messages = r#""messages": [{"role": "user", "content": "hi"}]"#;
        let converse = r#""messages": [{"role": "user", "content": [{"text": "hi"}]}]"#;
        let sound = r#""messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]}]"#;
        for (dialect, body, expected) in [
            (ApiDialect::Chat, format!(r#"{{{messages}, "modalities": ["text", "audio"]}}"#), "modalities"),
            (
                ApiDialect::Chat,
                format!(r#"{{{messages}, "modalities": ["text"], "audio": {{"voice": "x"}}}}"#),
                "",
            ),
            (
                ApiDialect::Chat,
                format!(r#"{{{messages}, "web_search_options": {{}}}}"#),
                "web_search_options",
            ),
            (
                ApiDialect::Chat,
                format!(
                    r#"{{{messages}, "tools": [{{"type": "function", "function": {{"name": "web_search"}}}}]}}"#
                ),
                "",
            ),
            (ApiDialect::Chat, format!("{{{sound}}}"), "sound"),
            (
                ApiDialect::Responses,
                format!(
                    r#"{{{input}, "tools": [{{"type": "web_search"}}, {{"type": "code_interpreter", "container": "c"}}]}}"#
                ),
                "web_search, code_interpreter",
            ),
            (
                ApiDialect::Responses,
                format!(
                    r#"{{{input}, "tools": [{{"type": "shell"}}, {{"type": "mcp"}}, {{"type": "custom", "name": "x"}}]}}"#
                ),
                "",
            ),
            (
                ApiDialect::Responses,
                format!(
                    r#"{{{input}, "tools": [{{"type": "shell", "environment": {{"type": "container_auto"}}}}]}}"#
                ),
                "shell",
            ),
            (
                ApiDialect::Messages,
                format!(
                    r#"{{{messages}, "tools": [{{"type": "web_search_20250305", "name": "web_search"}}]}}"#
                ),
                "web_search_20250305",
            ),
            (
                ApiDialect::Messages,
                format!(r#"{{{messages}, "speed": "fast", "inference_geo": "us"}}"#),
                "speed, inference_geo",
            ),
            (
                ApiDialect::Messages,
                format!(
                    r#"{{{messages}, "speed": "standard", "tools": [{{"name": "web_search", "input_schema": {{}}}}, {{"type": "bash_20250124", "name": "bash"}}]}}"#
                ),
                "",
            ),
            (
                ApiDialect::Converse,
                format!(
                    r#"{{{converse}, "toolConfig": {{"tools": [{{"systemTool": {{"name": "nova_grounding"}}}}, {{"toolSpec": {{"name": "x"}}}}]}}}}"#
                ),
                "systemTool",
            ),
        ] {
            let request = wire::read(dialect, &body).unwrap();
            assert_eq!(of(&request, "gpt-5").join(", "), expected, "{body}");
        }
        let plain = format!("{{{messages}}}");
        let plain = wire::read(ApiDialect::Chat, &plain).unwrap();
        assert_eq!(of(&plain, "gpt-4o-search-preview"), ["gpt-4o-search-preview"]);
    }
}
