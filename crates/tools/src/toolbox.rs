//! The box of tools: every call passes through it, and every problem becomes an output that helps the model.
//!
//! It enforces schema, mode, class, time and size. Knows no tool.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_core::output::Schemas;
use larder_vault::Mode;
use larder_vault::context::CallStatus;
use serde_json::{Value, json};

use super::context::ToolContext;
use super::mcp::Servers;
use super::spec::{Tool, ToolClass, ToolError, ToolOutput, ToolSpec, whole_call_text};
use super::web::Web;
use super::{code, doc, memory, research, web};
use larder_engine::settings::ToolSettings;

/// With less time than this, a call is not started.
const SHORTEST: Duration = Duration::from_millis(1);

/// The tools of a turn.
pub struct ToolBox {
    tools: BTreeMap<String, Box<dyn Tool>>,
    schemas: Schemas,
    servers: Servers,
}

impl ToolBox {
    /// Creates a box with the built-in tools. Those of MCP servers are added by [`ToolBox::connect`].
    ///
    /// # Errors
    /// [`ToolError::Settings`] when a setting cannot be used.
    pub fn new(settings: &ToolSettings) -> Result<Self, ToolError> {
        let mut toolbox = Self {
            tools: BTreeMap::new(),
            schemas: Schemas::default(),
            servers: Servers::new(&settings.mcp, settings.max_result_bytes),
        };
        let web = Arc::new(Web::new(settings)?);
        for tool in memory::tools().into_iter().chain(doc::tools()).chain(code::tools(settings)) {
            toolbox.register(tool);
        }
        for tool in web::tools(&web, settings).into_iter().chain([research::tool(&web, settings)]) {
            toolbox.register(tool);
        }
        Ok(toolbox)
    }

    /// Connects to the configured MCP servers and adds their tools. Returns a message for each problem; if a server
    /// is unreachable, only its own tools are missing.
    pub fn connect<'a>(&'a mut self) -> BoxFuture<'a, Vec<String>> {
        async move {
            let (tools, problems) = self.servers.tools().await;
            for tool in tools {
                self.register(tool);
            }
            problems
        }
        .boxed()
    }

    /// Adds a tool, replacing one with the same name.
    pub fn register(&mut self, tool: Box<dyn Tool>) {
        self.tools.insert(tool.spec().name.clone(), tool);
    }

    /// The tools offered to turns of this mode, in order of their names: those that are named, or all if none is. A
    /// name ending in `.*` matches every tool with that prefix.
    pub fn specs(&self, mode: Mode, named: &[String]) -> Vec<&ToolSpec> {
        let wanted = |name: &str| {
            named.is_empty()
                || named.iter().any(|wanted| match wanted.strip_suffix('*') {
                    Some(start) if start.ends_with('.') => name.starts_with(start),
                    _ => wanted == name,
                })
        };
        let specs = self.tools.values().map(|tool| tool.spec());
        specs.filter(|spec| spec.modes.include(mode) && wanted(&spec.name)).collect()
    }

    /// Calls a tool. Never fails: unknown tools, invalid arguments, refusals, timeouts and oversized results become
    /// outputs whose text helps the model to correct its call.
    pub fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, ToolOutput> {
        async move {
            let empty = json!({});
            let arguments = if arguments.is_null() { &empty } else { arguments };
            let Some(tool) = self.tools.get(name) else { return self.unknown(name, context.mode) };
            match self.guarded(tool.as_ref(), arguments, context).await {
                Ok(output) => capped(output, tool.spec()),
                Err(error) => ToolOutput::failure(error.status(), error.to_string()),
            }
        }
        .boxed()
    }

    async fn guarded(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let spec = tool.spec();
        if !spec.modes.include(context.mode) {
            return Err(ToolError::Denied(format!("{} is not offered in {} mode", spec.name, context.mode)));
        }
        self.check(spec, arguments)?;
        let asks =
            spec.class == ToolClass::Danger || spec.class == ToolClass::Write && context.mode == Mode::Code;
        if asks && !context.confirm.confirm(&spec.name, &whole_call_text(&spec.name, arguments)).await {
            return Err(ToolError::Denied(format!(
                "{} was not allowed by the user; find another way, or say what you would need it for",
                spec.name
            )));
        }
        let limit = context.budget.time(spec.timeout);
        if limit < SHORTEST {
            return Err(ToolError::Timeout {
                what: "the turn, before this call began,".to_owned(),
                after: limit,
            });
        }
        if spec.class != ToolClass::Read {
            (context.begun)()?;
        }
        tokio::time::timeout(limit, tool.call(arguments, context))
            .await
            .unwrap_or_else(|_| Err(ToolError::Timeout { what: spec.name.clone(), after: limit }))
    }

    /// A schema of an MCP server that cannot be compiled is not checked: the server checks its arguments itself.
    fn check(&self, spec: &ToolSpec, arguments: &Value) -> Result<(), ToolError> {
        let Ok(schema) = self.schemas.compile(&spec.parameters) else { return Ok(()) };
        let violations = schema.violations(arguments);
        if violations.is_empty() {
            return Ok(());
        }
        let lines = violations.iter().map(|violation| match violation.path.trim_start_matches('/') {
            "" => format!("- {}", violation.message),
            argument => format!("- {argument}: {}", violation.message),
        });
        Err(ToolError::Arguments(format!(
            "the arguments of {} do not fit; nothing was done\n{}\nCorrect them and call it again. expected: {}",
            spec.name,
            lines.collect::<Vec<_>>().join("\n"),
            spec.parameters
        )))
    }

    fn unknown(&self, name: &str, mode: Mode) -> ToolOutput {
        let offered = self.specs(mode, &[]);
        let help = larder_core::recipe::suggest(name, offered.iter().map(|spec| spec.name.as_str()));
        let shown: String = name.chars().take(100).collect();
        ToolOutput::failure(CallStatus::Error, format!("there is no tool {shown:?}; {help}"))
    }
}

/// The output truncated to the tool's limit, with a note about the rest.
fn capped(mut output: ToolOutput, spec: &ToolSpec) -> ToolOutput {
    let whole = output.content.len();
    if whole <= spec.max_bytes {
        return output;
    }
    let mut end = spec.max_bytes;
    // Text is not cut within a character; other bytes have none.
    while end > spec.max_bytes.saturating_sub(4)
        && output.content.get(end).is_some_and(|byte| byte & 0xC0 == 0x80)
    {
        end -= 1;
    }
    output.content.truncate(end);
    let note = format!(
        "\n[{} gave {whole} bytes; the first {end} are kept, which is its limit. Ask for less, or for a part.]\n",
        spec.name
    );
    output.content.extend_from_slice(note.as_bytes());
    output.summary = format!("{} (cut: {end} of {whole} bytes)", output.summary);
    output
}

#[cfg(test)]
#[path = "toolbox_tests.rs"]
mod tests;
