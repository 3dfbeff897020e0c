//! The settings of tools. Knows no tool and no file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use larder_models::web::Network;

use super::spec::{list, positive, settings, url_or_unset};

/// The default timeout of MCP calls.
pub(crate) const MCP_TIMEOUT: Duration = Duration::from_secs(60);

/// What Git and Cargo read of a home folder, without the files that hold credentials.
const COMMAND_READ: [&str; 8] = [
    "~/.gitconfig",
    "~/.config/git/config",
    "~/.config/git/ignore",
    "~/.cargo/bin",
    "~/.cargo/config.toml",
    "~/.cargo/git",
    "~/.cargo/registry",
    "~/.rustup",
];

/// Paths that do not depend on where a program runs.
fn absolute(text: &str) -> Option<Vec<String>> {
    let is_absolute = |path: &String| path.starts_with("~/") || Path::new(path).is_absolute();
    list(text).filter(|paths| paths.iter().all(is_absolute))
}

/// Names of programs, which are looked up in `PATH`: a path or a whole command line would never be found.
fn program_names(text: &str) -> Option<Vec<String>> {
    let is_name = |name: &String| {
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '\\'))
    };
    list(text).filter(|names| names.iter().all(is_name))
}

settings! {
    /// What tools may do, and their limits.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ToolSettings {
        /// JSON endpoint of a search engine compatible with SearXNG. Unset: `web.search` fails.
        #[env("LARDER_SEARCH_URL")]
        #[like("http://127.0.0.1:8080/search")]
        #[accept(url_or_unset)]
        pub search_url: Option<String> = "tools.search_url", None;
        /// Private addresses and networks whose pages may be visited; all others are blocked.
        #[env("LARDER_PRIVATE_HOSTS")]
        #[like("10.0.0.0/8")]
        pub private_hosts: Vec<Network> = "tools.private_hosts", Vec::new();
        /// Obey the robots.txt of sites.
        #[env("LARDER_ROBOTS")]
        pub robots: bool = "tools.robots", true;
        /// Maximum bytes read of a page; the rest is ignored.
        #[env("LARDER_PAGE_MAX_BYTES")]
        #[accept(positive)]
        pub page_max_bytes: usize = "tools.page_max_bytes", 5_000_000;
        /// Seconds to load a page, including redirects.
        #[env("LARDER_PAGE_TIMEOUT")]
        #[accept(positive)]
        pub page_timeout: Duration = "tools.page_timeout_s", Duration::from_secs(30);
        /// Save a screenshot of each visited page, using a Chromium installed on this machine.
        #[env("LARDER_SCREENSHOTS")]
        pub screenshots: bool = "tools.screenshots", false;
        /// Path of the Chromium that takes screenshots. Unset: it is looked up in PATH.
        #[env("LARDER_BROWSER")]
        #[like("/usr/bin/chromium")]
        pub browser: Option<PathBuf> = "tools.browser", None;
        /// Maximum pages that one research task visits.
        #[env("LARDER_RESEARCH_PAGES")]
        #[accept(positive)]
        pub research_pages: usize = "tools.research_pages", 6;
        /// Maximum tokens of one research task, prompts and replies together.
        #[env("LARDER_RESEARCH_TOKENS")]
        #[accept(positive)]
        pub research_tokens: u64 = "tools.research_tokens", 60_000;
        /// Programs that turns in code mode may run, by name; each run must be confirmed. Unset: none.
        #[env("LARDER_COMMANDS")]
        #[like("[\"cargo\", \"git\"]")]
        #[accept(program_names)]
        pub commands: Vec<String> = "tools.commands", Vec::new();
        /// Files and folders outside the workspace that these programs may read, with everything below; those of the
        /// system are readable anyway. `~/` is the user's home folder.
        #[env("LARDER_COMMAND_READ")]
        #[accept(absolute)]
        pub command_read: Vec<String> = "tools.command_read", COMMAND_READ.map(str::to_owned).to_vec();
        /// Files and folders outside the workspace that these programs may change, with everything below.
        #[env("LARDER_COMMAND_WRITE")]
        #[like("~/.cache/sccache")]
        #[accept(absolute)]
        pub command_write: Vec<String> = "tools.command_write", Vec::new();
        /// Let these programs use the network.
        #[env("LARDER_COMMAND_NETWORK")]
        pub command_network: bool = "tools.command_network", false;
        /// Run these programs without a sandbox: they reach everything that this account reaches. Only needed where the
        /// system has none.
        #[env("LARDER_COMMAND_UNCONFINED")]
        pub command_unconfined: bool = "tools.command_unconfined", false;
        /// Environment variables, by name, that these programs see in addition to the usual ones.
        #[env("LARDER_COMMAND_ENV")]
        #[like("CARGO_HOME")]
        pub command_env: Vec<String> = "tools.command_env", Vec::new();
        /// Seconds after which such a program is killed, with the processes that it started in its group.
        #[env("LARDER_COMMAND_TIMEOUT")]
        #[accept(positive)]
        pub command_timeout: Duration = "tools.command_timeout_s", Duration::from_secs(120);
        /// Maximum bytes kept of the output of a program or of an MCP server's tool.
        #[env("LARDER_MAX_RESULT_BYTES")]
        #[accept(positive)]
        pub max_result_bytes: usize = "tools.max_result_bytes", 4_000_000;
    }
    with {
        /// MCP servers by name, each from a table of its own.
        pub mcp: BTreeMap<String, McpSettings>,
        /// Absolute paths that no tool reads or changes: settings, home folder, documents of all users.
        pub private: Vec<PathBuf>,
    }
}

/// One MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettings {
    /// How to connect to it.
    pub place: McpTransport,
    /// The timeout of a call.
    pub timeout: Duration,
}

/// How to connect to an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program of this machine, over its standard input and output.
    Program {
        /// Its name or path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables it receives in addition to the usual ones.
        env: Vec<String>,
    },
    /// A server, over streamable HTTP.
    Url {
        /// Its address.
        url: String,
        /// The environment variable that holds its bearer token.
        key_env: Option<String>,
    },
}
