//! The arguments of `larder run` and `larder explain`: a recipe and what it reads.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use larder_models::price::Usd;

/// Inputs of a recipe.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Inputs")]
pub struct InputArgs {
    /// Recipe: category/name, or a name that is unique
    pub recipe: String,
    /// Fill the input INPUT with a document, or a picture for a model that sees; without INPUT=, the whole file name
    /// is the input's; - reads standard input
    #[arg(long = "doc", value_name = "[INPUT=]PATH")]
    pub docs: Vec<String>,
    /// The user's query, verbatim
    #[arg(long, short)]
    pub query: Option<String>,
    /// Set a variable of the recipe
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub values: Vec<String>,
    /// Choose the variant of recipes that differ by mode
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Choose the stage of recipes that have stages; ErrorFixing and error-fixing also mean error_fixing
    #[arg(long, value_name = "STAGE")]
    pub variant: Option<String>,
    /// Read a conversation: a JSON array of messages as OpenAI's or Anthropic's API writes them, or a request with messages
    #[arg(long, value_name = "PATH")]
    pub history: Option<PathBuf>,
    /// Session of the prompt, which templates know as session_id; a run is recorded under it
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ModeArg {
    /// Conversation; changes no files
    Chat,
    /// Work on code, with the tools for it
    Code,
}

/// The limits of `--until-done`.
#[derive(Debug, ClapArgs)]
pub struct RepeatArgs {
    /// Run at most N times
    #[arg(long, value_name = "N", default_value = "10", value_parser = super::positive, requires = "until_done")]
    pub max_rounds: u64,
    /// Start no round after N tokens, prompts and replies of all rounds together
    #[arg(long, value_name = "N", requires = "until_done")]
    pub max_tokens: Option<u64>,
    /// Start no round after X US dollars, such as 0.50
    #[arg(long, value_name = "X", requires = "until_done", allow_negative_numbers = true)]
    pub max_cost: Option<Usd>,
}

#[derive(Debug, ClapArgs)]
pub struct RunArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Print the layout of the prompt to standard error before sending it
    #[arg(long)]
    pub explain: bool,
    /// Run again, with the answers so far as history, until an answer contains <promise>COMPLETE</promise>
    #[arg(long)]
    pub until_done: bool,
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Folder that the tools of a recipe for code work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let the recipe's tools change files and run programs without asking, and fetch missing model weights
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Show which parts would grow with N more tokens
    #[arg(long, value_name = "N", default_value_t = 2000, help_heading = "Output")]
    pub extra: usize,
    /// Print the messages, too
    #[arg(long, help_heading = "Output")]
    pub messages: bool,
}
