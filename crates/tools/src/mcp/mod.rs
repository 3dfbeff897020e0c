//! Tools of MCP servers that the settings name, through the official SDK's client.
//!
//! A server's descriptions of its tools are trusted, since its owner configured it; the results of its tools are data.
//! Connections are opened on demand and reopened after a failure.

mod connection;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use larder_vault::context::CallStatus;
use rmcp::model::{CallToolResult, ContentBlock, Tool as Listed};
use serde_json::Value;

use self::connection::Connection;
use super::context::ToolContext;
use super::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};
use larder_engine::settings::McpSettings;

/// Maximum number of tools of one server.
const MAX_TOOLS: usize = 200;
/// Characters of a tool's name and of its description.
const MAX_NAME: usize = 128;
const MAX_DESCRIPTION: usize = 2_000;
/// The key of a tool's `_meta` by which a server declares whether its results may be condensed.
const SUMMARIZABLE: &str = "summarizable";
/// Time for the transfer, in addition to the server's own.
const TRANSFER: std::time::Duration = std::time::Duration::from_secs(2);

/// The servers of the settings.
pub(super) struct Servers {
    connections: Vec<Arc<Connection>>,
    max_bytes: usize,
}

impl Servers {
    pub(super) fn new(settings: &BTreeMap<String, McpSettings>, max_bytes: usize) -> Self {
        let connection =
            |(name, settings): (&String, &McpSettings)| Arc::new(Connection::new(name, settings));
        Self { connections: settings.iter().map(connection).collect(), max_bytes }
    }

    /// The tools of all servers that answer, and a message about each problem.
    pub(super) async fn tools(&self) -> (Vec<Box<dyn Tool>>, Vec<String>) {
        let asked = self.connections.iter().map(|connection| connection.list());
        let answers = futures::future::join_all(asked).await;
        let (mut tools, mut problems) = (Vec::<Box<dyn Tool>>::new(), Vec::new());
        for (connection, answer) in self.connections.iter().zip(answers) {
            match answer {
                Err(error) => problems.push(error.to_string()),
                Ok(listed) => {
                    if listed.len() > MAX_TOOLS {
                        problems.push(format!(
                            "MCP server {} has {} tools; the first {MAX_TOOLS} are used",
                            connection.name(),
                            listed.len()
                        ));
                    }
                    for tool in listed.into_iter().take(MAX_TOOLS) {
                        match Remote::new(connection, &tool, self.max_bytes) {
                            Some(remote) => tools.push(Box::new(remote)),
                            None => problems.push(format!(
                                "MCP server {} has a tool whose name cannot be used: {:?}",
                                connection.name(),
                                tool.name.chars().take(60).collect::<String>()
                            )),
                        }
                    }
                }
            }
        }
        (tools, problems)
    }
}

/// One tool of a server.
struct Remote {
    connection: Arc<Connection>,
    /// Its name on the server.
    name: String,
    spec: ToolSpec,
}

impl Remote {
    fn new(connection: &Arc<Connection>, tool: &Listed, max_bytes: usize) -> Option<Self> {
        let fine = |char: char| char.is_ascii_alphanumeric() || "_-./".contains(char);
        let name = tool.name.to_string();
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fine) {
            return None;
        }
        let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let summarizable =
            tool.meta.as_ref().and_then(|meta| meta.0.get(SUMMARIZABLE)).and_then(Value::as_bool);
        let spec = ToolSpec {
            name: format!("mcp.{}.{name}", connection.name()),
            description: description.chars().take(MAX_DESCRIPTION).collect(),
            parameters: Value::Object((*tool.input_schema).clone()),
            class: class(tool),
            summarizable: summarizable.unwrap_or(true),
            timeout: connection.timeout() + TRANSFER,
            max_bytes,
            modes: ToolModes::Both,
        };
        Some(Self { connection: Arc::clone(connection), name, spec })
    }
}

/// A tool that is not declared harmless may do harm, as the protocol states.
fn class(tool: &Listed) -> ToolClass {
    let hints = tool.annotations.as_ref();
    match (hints.and_then(|hints| hints.read_only_hint), hints.and_then(|hints| hints.destructive_hint)) {
        (Some(true), _) => ToolClass::Read,
        (_, Some(false)) => ToolClass::Write,
        _ => ToolClass::Danger,
    }
}

impl Tool for Remote {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let limit = context.budget.time(self.connection.timeout());
            let result = self.connection.call(&self.name, arguments, limit).await?;
            Ok(output(&self.spec.name, &result))
        }
        .boxed()
    }
}

/// The result of a call: as text if possible, otherwise the whole result as JSON.
fn output(name: &str, result: &CallToolResult) -> ToolOutput {
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    let only_text = texts.len() == result.content.len();
    let (content, kind) = match (&result.structured_content, only_text) {
        (Some(value), _) if texts.is_empty() && only_text => (value.to_string(), ContentType::Json),
        (_, true) => (texts.join("\n"), ContentType::ToolResult),
        _ => (serde_json::to_string_pretty(result).unwrap_or_default(), ContentType::Json),
    };
    let failed = result.is_error == Some(true);
    let first: String = content.lines().next().unwrap_or_default().chars().take(160).collect();
    let summary = match (failed, only_text) {
        (true, _) => format!("{name} failed: {first}"),
        (false, true) => format!("{name} gave {} bytes: {first}", content.len()),
        (false, false) => format!("{name} gave {} blocks, not all of them text", result.content.len()),
    };
    let status = if failed { CallStatus::Error } else { CallStatus::Success };
    ToolOutput { status, ..ToolOutput::success(summary, content).typed(kind) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(value: Value) -> Listed {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_tool_that_is_not_declared_harmless_is_dangerous() {
        for (hints, expected) in [
            (json!(null), ToolClass::Danger),
            (json!({}), ToolClass::Danger),
            (json!({"readOnlyHint": true}), ToolClass::Read),
            (json!({"readOnlyHint": false, "destructiveHint": false}), ToolClass::Write),
            (json!({"destructiveHint": true}), ToolClass::Danger),
        ] {
            let tool = listed(json!({"name": "x", "inputSchema": {"type": "object"}, "annotations": hints}));
            assert_eq!(class(&tool), expected, "{hints}");
        }
    }

    #[test]
    fn results_are_text_or_the_whole_result() {
        let read = |value: Value| output("mcp.a.b", &serde_json::from_value(value).unwrap());
        let text = read(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}));
        assert_eq!((text.content.as_slice(), text.status), (&b"a\nb"[..], CallStatus::Success));
        let image = read(json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}));
        assert!(String::from_utf8(image.content).unwrap().contains("aGk="));
        let data = read(json!({"content": [], "structuredContent": {"x": 1}}));
        assert_eq!(data.content, br#"{"x":1}"#);
        assert_eq!(read(json!({"content": [], "isError": true})).status, CallStatus::Error);
    }
}
