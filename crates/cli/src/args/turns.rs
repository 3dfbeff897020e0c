//! What can be typed for turns.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use larder_core::recipe::nearest;
use larder_models::price::Usd;

use super::ModeArg;

#[derive(Debug, Args)]
pub struct TurnArgs {
    #[command(subcommand)]
    pub command: Option<TurnCommand>,
    /// What is asked
    #[arg(required = true)]
    pub query: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub flags: TurnFlags,
}

/// What a turn belongs to.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// chat, or code, which may change the files of a workspace and run programs in it
    #[arg(long, value_enum, default_value_t = ModeArg::Chat)]
    pub mode: ModeArg,
    /// The conversation it belongs to
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The folder that mode code works in [default: this folder]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}

/// What a turn may do and spend.
#[derive(Debug, Clone, Args)]
pub struct TurnFlags {
    /// Allow tools that change files or run programs, and fetch missing model weights, without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Tokens it may take, prompts and replies of all models and tools [default: turn.max_tokens]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// US dollars it may cost, such as 0.50 [default: turn.max_cost]
    #[arg(long, value_name = "X")]
    pub max_cost: Option<Usd>,
    /// Seconds it may take [default: turn.max_time_s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_time: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub enum TurnCommand {
    /// Go on with a turn that was interrupted, from its last checkpoint
    Resume {
        /// Its number [default: the one there is]
        number: Option<u32>,
        #[command(flatten)]
        flags: TurnFlags,
    },
    /// Drop a turn that is not finished, for good; its number is not given out again
    Drop {
        /// Its number
        number: u32,
    },
    /// List the newest turns, and those that are not finished
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
        limit: u64,
    },
    /// Print a document of a turn
    Show {
        /// The turn's number
        number: u32,
        /// Which, by its path in the turn's folder
        #[arg(long, value_name = "NAME", default_value = "context.md")]
        file: String,
    },
}

/// What is wrong with the words after `larder turn` where one of them was meant for a command: without this it would be
/// asked as a question.
pub fn mistyped(word: &str) -> Option<String> {
    let is_plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let commands = TurnCommand::augment_subcommands(clap::Command::new("turn"));
    let names: Vec<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
    let near = nearest(word, names.iter().copied()).filter(|near| is_plain && *near != word)?;
    Some(format!(
        "there is no command `larder turn {word}`; did you mean `larder turn {near}`? A question of this one word needs a \
         question mark"
    ))
}

#[derive(Debug, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub flags: TurnFlags,
}
