//! Options of `larder converse`.

use clap::Args;

#[derive(Debug, Args)]
pub struct ConverseArgs {
    /// The type of a new conversation: a file in conversations/, or one that ships [mediation, support, tutor]
    #[arg(value_name = "TYPE")]
    pub kind: Option<String>,
    /// Answer TEXT before a conversation of the type is open, and say what it asks for
    #[arg(long, value_name = "TEXT", requires = "kind")]
    pub start: Option<String>,
    /// Continue this conversation
    #[arg(long = "continue", value_name = "ID", conflicts_with = "kind")]
    pub resume: Option<String>,
    /// Take part under this name
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    /// Name another participant of a new conversation, who is you under another name unless a user follows
    #[arg(long = "with", value_name = "NAME[=USER]")]
    pub with: Vec<String>,
    /// Fetch missing model weights without asking
    #[arg(long, short)]
    pub yes: bool,
}
