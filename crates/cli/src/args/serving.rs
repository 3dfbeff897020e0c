//! Options of the servers: the gateway, its keys, the MCP server.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use larder_models::price::Usd;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Listen on this address [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Forward requests in OpenAI's formats to URL if larder.toml does not have their model
    #[arg(long, value_name = "URL")]
    pub openai: Option<String>,
    /// Forward requests in Anthropic's format to URL if larder.toml does not have their model
    #[arg(long, value_name = "URL")]
    pub anthropic: Option<String>,
}

/// How clients start the server.
pub const MCP_EXAMPLES: &str = r#"Examples. The agent starts this command, often in a folder of its own, so use absolute paths.

Claude Desktop (claude_desktop_config.json), Claude Code (.mcp.json), Cursor (.cursor/mcp.json) and most others:
  {
    "mcpServers": {
      "larder": {
        "command": "larder",
        "args": ["mcp", "--project", "/home/me/project", "--root", "/home/me/project/src", "--root", "/home/me/logs"]
      }
    }
  }

With the command line of Claude Code:
  claude mcp add larder -- larder mcp --project /home/me/project

VS Code (.vscode/mcp.json):
  {"servers": {"larder": {"type": "stdio", "command": "larder", "args": ["mcp", "--project", "${workspaceFolder}"]}}}

A running gateway serves the same tools at /mcp, for pointers only: it opens no files. With a key:
  claude mcp add --transport http larder http://127.0.0.1:8787/mcp --header "Authorization: Bearer lk-…"

Without a project or --home, originals are stored in .larder in the folder in which the agent starts the command."#;

#[derive(Debug, Args)]
pub struct McpArgs {
    /// Let tools read this folder or file, except hidden files in it; repeatable [default: the project folder, or the
    /// current one]
    #[arg(long = "root", value_name = "PATH")]
    pub roots: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key for the user that --user names, and show it this one time
    ///
    /// Prints the key alone to standard output. Larder stores its id, the 12 digits after lk-, and an Argon2id hash.
    /// Until the first key exists, only programs on this machine may call the gateway, as user local. The first key
    /// changes that for everybody, so the command warns, prints the sign-in link and asks for confirmation; without a
    /// terminal it needs --yes. From then on every request needs a key, even after all keys are revoked or removed,
    /// until gateway.require_keys is set to false.
    #[command(
        after_help = "Examples:\n  larder keys create --user ada --label laptop --usd-per-day 5\n  larder keys create --user ops --operator"
    )]
    Create {
        /// Note what the key is for
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        label: String,
        /// Allow at most N tokens a day (UTC), prompts and replies
        #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::positive)]
        tokens_per_day: Option<u64>,
        /// Allow at most X US dollars a day (UTC), such as 2.50; 0 for models that cost nothing
        #[arg(long, value_name = "X", allow_negative_numbers = true)]
        usd_per_day: Option<Usd>,
        /// Also give access to what belongs to all users: /metrics, and the settings in the dashboard and the API
        #[arg(long)]
        operator: bool,
        /// Create the first key without asking, although all clients need a key from then on
        #[arg(long, short)]
        yes: bool,
    },
    /// Revoke a key, immediately and in every process
    #[command(after_help = "Example:\n  larder keys revoke 3f9a0c21b7d4")]
    Revoke {
        /// Id of the key
        id: String,
    },
}
