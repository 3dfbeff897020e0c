//! Larder over the Model Context Protocol: tools, recipes as prompts, pointers as resources; on standard input and
//! output, or at `/mcp` of the gateway. Knows the protocol and the engine, but not how callers are authenticated.
//!
//! Errors that a caller can fix are results with `isError`, so that a model reads them. Protocol errors are for unknown
//! tools, prompts and resources only.
//!
//! Tools read files only within [`Roots`], and pointers only of the caller's own store. What they show in part is
//! stored first, so every pointer they return resolves. They change nothing outside the store.

mod http;
mod progress;
mod prompts;
mod resources;
mod roots;
mod schema;
mod sources;
mod tools;

use std::sync::Arc;

use axum::http::request::Parts;
use larder_engine::Engine;
use larder_engine::executor::ModelSet;
use larder_engine::settings::AskSettings;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, ServiceExt};
use rmcp::{ServerHandler, transport};
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::http::{HttpOptions, ResolveCaller, router};
use self::progress::CallProgress;
pub use self::roots::{RootError, Roots};

/// Instructions for the client's model.
const INSTRUCTIONS: &str = "Larder keeps large texts out of the window without losing them. A pointer such \
    as lp1-… is a text that is stored whole: `rehydrate` returns it, or the lines, bytes, \
    matches or JSON value you need of it (where a text says larder_rehydrate, that is this tool). Do not \
    read a large file or log into the window: `search` finds the relevant passages or lines, `ask` \
    answers a question over files and folders with citations, `condense` condenses a text to a number of tokens. \
    A source is a pointer, or the path of a file or folder.";

/// Characters of a caller's input that an error repeats.
const BRIEF_CHARS: usize = 200;

/// The caller of a request, and what they work on. Cheap to clone.
#[derive(Clone)]
pub struct McpCaller {
    /// The project and its models, over the caller's own store.
    pub engine: Arc<Engine>,
    /// How `ask` answers, and its limits.
    pub asking: AskSettings,
    /// Files and folders that tools may read.
    pub roots: Arc<Roots>,
    /// What `ask` is charged to; `None` if calls are not charged.
    pub budget: Option<Arc<dyn AskBudget>>,
}

/// What `ask` is charged to, which the caller of this crate keeps: a key of the gateway.
pub trait AskBudget: Send + Sync {
    /// Reserves `tokens`, and their highest cost at a model of `reach`, before a model is called. If the reservation is dropped
    /// without being settled, all of it counts as used, because the outcome is unknown. May block.
    ///
    /// # Errors
    /// If the budget is too small, or is in money and a model has no price. The message says what to do.
    fn reserve(&self, tokens: u64, reach: &ModelSet) -> Result<Box<dyn AskReservation>, String>;
}

/// The tokens and money that one `ask` has reserved.
pub trait AskReservation: Send {
    /// Charges what was used instead of what was reserved. May block.
    fn settle(self: Box<Self>, usage: Usage, cost: Option<Usd>);
}

/// A connection that failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client did not start with the handshake of the protocol.
    #[error("the client did not start with the handshake of the Model Context Protocol: {0}")]
    Begin(Box<ServerInitializeError>),
    /// The task that served it was aborted.
    #[error("serving was aborted: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves one client on standard input and output, until it closes them. Nothing else may write to standard output.
///
/// # Errors
/// When the client does not speak the protocol.
pub async fn stdio(caller: McpCaller) -> Result<(), ServeError> {
    let (input, output) = transport::stdio_pipes();
    serve(caller, input, output).await
}

/// Serves one client on any pair of streams, one JSON message a line, until `input` ends.
///
/// # Errors
/// As [`stdio`].
pub async fn serve(
    caller: McpCaller,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    match (Server { caller: Some(caller) }).serve((input, output)).await {
        Ok(running) => Ok(running.waiting().await.map(drop)?),
        // The client left before the handshake: it wanted nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(ServeError::Begin(Box::new(error))),
    }
}

/// The beginning of a caller's input, enough to recognise it by.
fn brief(text: &str) -> String {
    text.chars().take(BRIEF_CHARS).collect()
}

/// Answers requests of one connection.
struct Server {
    /// The caller of all requests; `None` if each request brings its own.
    caller: Option<McpCaller>,
}

impl Server {
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<McpCaller, ErrorData> {
        let brought = || context.extensions.get::<Parts>()?.extensions.get::<McpCaller>();
        if let Some(caller) = &self.caller {
            let store = caller.engine.store.clone().begun();
            let store = store.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            let engine = Arc::new(caller.engine.for_user(store));
            return Ok(McpCaller { engine, ..caller.clone() });
        }
        brought()
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("a bug in larder: a request without a caller", None))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_prompts().enable_resources().enable_tools().build();
        let larder = Implementation::new("larder", env!("CARGO_PKG_VERSION")).with_title("Larder");
        ServerConfig::new(capabilities).with_server_info(larder).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let call = tools::find(&request.name)?;
        let arguments = request.arguments.unwrap_or_default();
        let work =
            move |progress: CallProgress| async move { call(arguments, &caller, &progress).await.into() };
        progress::run(&context, work).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(&self.caller(&context)?)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let arguments = request.arguments.unwrap_or_default();
        let get = move |_: CallProgress| async move { prompts::get(&caller, &request.name, arguments) };
        Ok(progress::run(&context, get).await??.into())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let read = move |_: CallProgress| async move { resources::read(&caller, &request.uri) };
        Ok(progress::run(&context, read).await??.into())
    }
}
