//! One connection to an MCP server: a local program on its standard input and output, or a server over streamable
//! HTTP. Opened on demand; dropped after a failure, so that the next call opens a new one.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult, Tool as Listed};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::process;
use crate::spec::ToolError;
use larder_engine::settings::{McpSettings, McpTransport};

/// Time for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(20);

type McpService = RunningService<RoleClient, ()>;

pub(super) struct Connection {
    name: String,
    settings: McpSettings,
    service: Mutex<Option<Arc<McpService>>>,
}

impl Connection {
    pub(super) fn new(name: &str, settings: &McpSettings) -> Self {
        Self { name: name.to_owned(), settings: settings.clone(), service: Mutex::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// The tools that the server offers.
    pub(super) async fn list(&self) -> Result<Vec<Listed>, ToolError> {
        let service = self.service().await?;
        let answer = tokio::time::timeout(HANDSHAKE, service.list_all_tools()).await;
        match answer {
            Ok(Ok(tools)) => Ok(tools),
            Ok(Err(error)) => Err(self.broken(&error).await),
            Err(_) => Err(self.late(HANDSHAKE)),
        }
    }

    /// Calls one of its tools.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        limit: Duration,
    ) -> Result<CallToolResult, ToolError> {
        let service = self.service().await?;
        let mut request = CallToolRequestParams::new(tool.to_owned());
        request.arguments = arguments.as_object().cloned();
        match tokio::time::timeout(limit, service.call_tool(request)).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(self.broken(&error).await),
            Err(_) => Err(self.late(limit)),
        }
    }

    /// The connection, which is opened if there is none.
    async fn service(&self) -> Result<Arc<McpService>, ToolError> {
        let mut slot = self.service.lock().await;
        if let Some(service) = slot.as_ref().filter(|service| !service.is_closed()) {
            return Ok(Arc::clone(service));
        }
        let made =
            tokio::time::timeout(HANDSHAKE, self.connect()).await.map_err(|_| self.late(HANDSHAKE))??;
        let made = Arc::new(made);
        *slot = Some(Arc::clone(&made));
        Ok(made)
    }

    async fn connect(&self) -> Result<McpService, ToolError> {
        match &self.settings.place {
            McpTransport::Program { command, args, env } => {
                let path = match Path::new(command).is_absolute() {
                    true => Path::new(command).to_owned(),
                    false => process::find(command)
                        .ok_or_else(|| self.failed(format!("there is no program {command:?} in PATH")))?,
                };
                let mut program = tokio::process::Command::new(path);
                program.args(args).env_clear().envs(process::environment(env));
                process::close_inherited(&mut program);
                let (child, _) = TokioChildProcess::builder(program)
                    .stderr(Stdio::null())
                    .spawn()
                    .map_err(|error| self.failed(format!("{command} cannot be started: {error}")))?;
                ().serve(child).await.map_err(|error| self.unopened(&error))
            }
            McpTransport::Url { url, key_env } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                if let Some(name) = key_env {
                    let key = process::variable(name)
                        .ok_or_else(|| self.failed(format!("the variable {name}, its key, is not set")))?;
                    config = config.auth_header(key);
                }
                let client = larder_models::web::client().map_err(|error| self.failed(error))?;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                ().serve(transport).await.map_err(|error| self.unopened(&error))
            }
        }
    }

    /// An error response leaves the connection intact; any other error may have broken it.
    async fn broken(&self, error: &ServiceError) -> ToolError {
        if let ServiceError::McpError(refused) = error {
            return self.failed(&refused.message);
        }
        *self.service.lock().await = None;
        match error {
            ServiceError::TransportSend(cause) => self.unreached(cause),
            error => self.unreached(error),
        }
    }

    /// A connection that could not be opened.
    fn unopened(&self, error: &ClientInitializeError) -> ToolError {
        match error {
            ClientInitializeError::JsonRpcError(refused) => self.failed(&refused.message),
            ClientInitializeError::TransportError { error: cause, .. } => self.unreached(cause),
            error => self.unreached(error),
        }
    }

    /// A server that does not answer, in words for the person who set it up: those of the library name its types.
    fn unreached(&self, error: &dyn std::error::Error) -> ToolError {
        let mut cause = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let (name, is_told) = (&self.name, error.source().is_some());
        self.failed(match &self.settings.place {
            McpTransport::Program { command, .. } => format!(
                "the program {command:?} ended, or does not speak MCP on its standard output; run it in a terminal to see \
                 why, or correct command and args under [tools.mcp.{name}] in larder.toml"
            ),
            McpTransport::Url { url, .. } => {
                let place = url.split('?').next().unwrap_or_default();
                let cause = if is_told { format!(" ({cause})") } else { String::new() };
                format!(
                    "no MCP server answers at {place}{cause}; start it, or correct url under [tools.mcp.{name}] in \
                     larder.toml"
                )
            }
        })
    }

    fn failed(&self, why: impl std::fmt::Display) -> ToolError {
        let why: String = why.to_string().chars().take(500).collect();
        ToolError::Failed(format!("MCP server {}: {why}", self.name))
    }

    fn late(&self, after: Duration) -> ToolError {
        ToolError::Timeout { what: format!("MCP server {}", self.name), after }
    }
}
