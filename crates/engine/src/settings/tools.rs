//! The settings of tools, typed. Knows no file: `config` reads them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use larder_models::web::Network;

/// Bytes of one page that are read: 5 MB.
pub(crate) const PAGE_MAX_BYTES: usize = 5_000_000;
/// Bytes of a command's or a server's result that are kept.
pub(crate) const RESULT_MAX_BYTES: usize = 4_000_000;
/// Time for one page with its redirects.
pub(crate) const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for one command.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
/// Time for one call of an MCP server.
pub(crate) const MCP_TIMEOUT: Duration = Duration::from_secs(60);
/// Pages that one piece of research visits.
pub(crate) const RESEARCH_PAGES: usize = 6;
/// Tokens that one piece of research may take, prompts and replies.
pub(crate) const RESEARCH_TOKENS: u64 = 60_000;

/// What tools may do, and how far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSettings {
    /// The JSON endpoint of a search engine in the manner of SearXNG.
    pub search_url: Option<String>,
    /// Addresses that are not public and may be visited all the same.
    pub private_hosts: Vec<Network>,
    /// Whether robots.txt is heeded.
    pub robots: bool,
    /// Bytes of one page that are read.
    pub page_max_bytes: usize,
    /// Time for one page with its redirects.
    pub page_timeout: Duration,
    /// Whether pages are photographed.
    pub screenshots: bool,
    /// The Chromium to do it with; none looks for one.
    pub browser: Option<PathBuf>,
    /// Pages that one piece of research visits.
    pub research_pages: usize,
    /// Tokens that one piece of research may take.
    pub research_tokens: u64,
    /// Names of programs that code mode may run.
    pub commands: Vec<String>,
    /// Variables of the environment that they see besides the usual ones.
    pub command_env: Vec<String>,
    /// Time for one command.
    pub command_timeout: Duration,
    /// Bytes of a command's or a server's result that are kept.
    pub max_result_bytes: usize,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpSettings>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            search_url: None,
            private_hosts: Vec::new(),
            robots: true,
            page_max_bytes: PAGE_MAX_BYTES,
            page_timeout: PAGE_TIMEOUT,
            screenshots: false,
            browser: None,
            research_pages: RESEARCH_PAGES,
            research_tokens: RESEARCH_TOKENS,
            commands: Vec::new(),
            command_env: Vec::new(),
            command_timeout: COMMAND_TIMEOUT,
            max_result_bytes: RESULT_MAX_BYTES,
            mcp: BTreeMap::new(),
        }
    }
}

/// One MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettings {
    /// Where it is.
    pub place: McpTransport,
    /// Time for one call.
    pub timeout: Duration,
}

/// Where an MCP server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program of this machine, spoken to over its standard input and output.
    Program {
        /// Its name or path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of the environment that it sees besides the usual ones.
        env: Vec<String>,
    },
    /// A server, spoken to over streamable HTTP.
    Url {
        /// Its address.
        url: String,
        /// The variable of the environment that holds its bearer token.
        key_env: Option<String>,
    },
}
