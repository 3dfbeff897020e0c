//! Our tool: its definition, and how each format writes it. Knows no request.

use std::sync::LazyLock;

use larder_core::policy::{REHYDRATE, rehydrate_tool};
use larder_text::json::encoded;

use super::ApiDialect;

/// The definition as a format has it in `tools`: always the same bytes.
pub fn rehydrate_tool_json(format: ApiDialect) -> &'static str {
    // Every request counts it.
    static WRITTEN: LazyLock<[String; 3]> =
        LazyLock::new(|| [ApiDialect::Chat, ApiDialect::Responses, ApiDialect::Messages].map(written));
    let [chat, responses, messages] = &*WRITTEN;
    match format {
        ApiDialect::Chat => chat,
        ApiDialect::Responses => responses,
        ApiDialect::Messages => messages,
    }
}

fn written(format: ApiDialect) -> String {
    let tool = rehydrate_tool();
    let (name, description, parameters) =
        (encoded(&tool.name), encoded(&tool.description), tool.parameters.to_string());
    match format {
        ApiDialect::Chat => format!(
            r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{parameters}}}}}"#
        ),
        // Strict is the default here, and would make every argument a must.
        ApiDialect::Responses => format!(
            r#"{{"type":"function","name":{name},"description":{description},"parameters":{parameters},"strict":false}}"#
        ),
        ApiDialect::Messages => {
            format!(r#"{{"name":{name},"description":{description},"input_schema":{parameters}}}"#)
        }
    }
}

/// How a list of allowed tools names ours.
pub(super) fn reference(format: ApiDialect) -> String {
    match format {
        ApiDialect::Chat => format!(r#"{{"type":"function","function":{{"name":"{REHYDRATE}"}}}}"#),
        ApiDialect::Responses | ApiDialect::Messages => {
            format!(r#"{{"type":"function","name":"{REHYDRATE}"}}"#)
        }
    }
}

/// A result of our tool as the format has it.
pub(super) fn result(format: ApiDialect, id: &str, text: &str) -> String {
    let (id, text) = (encoded(id), encoded(text));
    match format {
        ApiDialect::Chat => format!(r#"{{"role":"tool","tool_call_id":{id},"content":{text}}}"#),
        ApiDialect::Responses => {
            format!(r#"{{"type":"function_call_output","call_id":{id},"output":{text}}}"#)
        }
        ApiDialect::Messages => format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{text}}}"#),
    }
}
