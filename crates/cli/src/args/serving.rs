//! What can be typed to serve others: the gateway, its keys, the MCP server.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use larder_models::price::Usd;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Where requests in OpenAI's formats go whose model is not in larder.toml
    #[arg(long, value_name = "URL")]
    pub openai: Option<String>,
    /// Where requests in Anthropic's format go whose model is not in larder.toml
    #[arg(long, value_name = "URL")]
    pub anthropic: Option<String>,
}

/// How clients are told to start the server.
pub const MCP_EXAMPLES: &str = r#"An agent starts the command itself, often in a folder of its own, so name folders by their whole paths.

Claude Desktop (claude_desktop_config.json), Claude Code (.mcp.json), Cursor (.cursor/mcp.json) and most others:
  {
    "mcpServers": {
      "larder": {
        "command": "larder",
        "args": ["mcp", "--project", "/home/me/project", "--root", "/home/me/project/src", "--root", "/home/me/logs"]
      }
    }
  }

The same from the command line of Claude Code:
  claude mcp add larder -- larder mcp --project /home/me/project

VS Code (.vscode/mcp.json):
  {"servers": {"larder": {"type": "stdio", "command": "larder", "args": ["mcp", "--project", "${workspaceFolder}"]}}}

Where the gateway runs, it serves the same at /mcp, with pointers only: the gateway opens no files. With a key:
  claude mcp add --transport http larder http://127.0.0.1:8787/mcp --header "Authorization: Bearer lk-…"

Without a project or --home, originals are kept in .larder in the folder that the agent starts in."#;

#[derive(Debug, Args)]
pub struct McpArgs {
    /// A folder or file that tools may read; may be given several times. What is hidden in it stays closed
    /// [default: the project folder, or this folder]
    #[arg(long = "root", value_name = "PATH")]
    pub roots: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key for the user that --user names; it is shown this one time
    Create {
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        label: String,
        /// Tokens it may take a day (UTC), prompts and replies
        #[arg(long, value_name = "N")]
        tokens_per_day: Option<u64>,
        /// US dollars it may spend a day (UTC), such as 2.50
        #[arg(long, value_name = "X")]
        usd_per_day: Option<Usd>,
        /// Let it open what belongs to all users too: /metrics, and the settings on the dashboard and in the API
        #[arg(long)]
        operator: bool,
        /// Create the first key without asking, though everyone needs one from then on
        #[arg(long, short)]
        yes: bool,
    },
    /// Revoke a key, at once and for every process
    Revoke {
        /// Its id
        id: String,
    },
}
