//! Options of `larder turn` and `larder chat`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Subcommand};
use larder_core::recipe::nearest;
use larder_models::price::Usd;

use super::{ModeArg, positive};

#[derive(Debug, Args)]
pub struct TurnArgs {
    #[command(subcommand)]
    pub command: Option<TurnCommand>,
    /// The question, or - for standard input
    #[arg(required = true)]
    pub query: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub flags: TurnFlags,
}

/// The mode, conversation and workspace of a turn.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// Choose the tools: code may change files in the workspace and run programs there
    #[arg(long, value_enum, default_value_t = ModeArg::Chat)]
    pub mode: ModeArg,
    /// Continue or start this conversation
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Folder that mode code works in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}

/// Limits and permissions of a turn.
#[derive(Debug, Clone, Args)]
pub struct TurnFlags {
    /// Let tools change files and run programs without asking, and fetch missing model weights
    #[arg(long, short)]
    pub yes: bool,
    /// Use at most N tokens, prompts and replies of all models and tools [default: turn.max_tokens]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_tokens: Option<u64>,
    /// Spend at most X US dollars, such as 0.50 [default: turn.max_cost]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub max_cost: Option<Usd>,
    /// Run for at most N seconds [default: turn.max_time_s]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_time: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub enum TurnCommand {
    /// Resume an interrupted turn from its last checkpoint
    #[command(after_help = "Examples:\n  larder turn resume\n  larder turn resume 12 --max-time 600")]
    Resume {
        /// Number of the turn [default: the only interrupted one]
        #[arg(value_parser = super::number::<u32>)]
        number: Option<u32>,
        #[command(flatten)]
        flags: TurnFlags,
    },
    /// Delete an unfinished turn; its number is not used again
    ///
    /// Refuses if a process is running the turn. With --format json: dropped.
    #[command(after_help = "Example:\n  larder turn drop 12")]
    Drop {
        /// Number of the turn
        #[arg(value_parser = super::number::<u32>)]
        number: u32,
    },
    /// List the newest turns and all unfinished ones
    ///
    /// With --format json: turns, `has_older`, which says whether there are more than --limit, and unfinished with `running`,
    /// which says whether a process is running the turn.
    #[command(after_help = "Example:\n  larder turn list --limit 5")]
    List {
        /// List at most N finished turns
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = positive)]
        limit: u64,
    },
    /// Print a document of a turn
    ///
    /// For an unfinished turn, prints the document of its last checkpoint. With --format json: turn, folder, files (the
    /// names of all documents), file, text.
    #[command(after_help = "Examples:\n  larder turn show 12\n  larder turn show 12 --file response.md")]
    Show {
        /// Number of the turn
        #[arg(value_parser = super::number::<u32>)]
        number: u32,
        /// Path of the document in the turn's folder
        #[arg(long, value_name = "NAME", default_value = "context.md")]
        file: String,
    },
}

/// The command line with the global options that follow `turn` or `policy` before that word: after an option, clap takes
/// no word for a subcommand any more.
pub fn reordered(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut typed: Vec<OsString> = typed.collect();
    let is_affected = |word: &OsString| word == "turn" || word == "policy";
    if !typed.iter().any(is_affected) {
        return typed;
    }
    let global: Vec<clap::Arg> =
        super::Args::command().get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    // The words that a global option takes; none if this word is none.
    let taken = |word: &OsString| {
        let word = word.to_str()?;
        let (name, is_joined) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
        let long = name.strip_prefix("--").filter(|long| !long.is_empty());
        let short = name
            .strip_prefix('-')
            .filter(|short| !short.starts_with('-'))
            .and_then(|name| name.chars().next());
        let found = global.iter().find(|arg| {
            long.is_some() && arg.get_long() == long || short.is_some() && arg.get_short() == short
        })?;
        Some(if found.get_action().takes_values() && !is_joined { 2 } else { 1 })
    };
    let options = |from: usize| {
        let mut at = from;
        while let Some(len) = typed.get(at).and_then(taken) {
            at += len;
        }
        at.min(typed.len())
    };
    let command = options(1);
    if typed.get(command).is_some_and(is_affected) {
        let end = options(command + 1);
        typed[command..end].rotate_left(1);
    }
    typed
}

/// An error for a command of `larder turn` that follows an option of a question, and would be asked as one itself.
pub fn misplaced<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<String> {
    let commands = TurnCommand::augment_subcommands(clap::Command::new("turn"));
    let is_command = |word: &&str| commands.get_subcommands().any(|command| command.get_name() == *word);
    let word = words.into_iter().find(is_command)?;
    Some(format!(
        "`{word}` is a command and follows an option of a question: write `larder turn {word}` first, then its options. To \
         ask this word as a question, end it with a question mark"
    ))
}

/// An error for a word after `larder turn` that is almost a command: without it, the typo would be asked as a question.
pub fn mistyped(word: &str) -> Option<String> {
    let is_plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let commands = TurnCommand::augment_subcommands(clap::Command::new("turn"));
    let names: Vec<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
    let near = nearest(word, names.iter().copied()).filter(|near| is_plain && *near != word)?;
    Some(format!(
        "there is no command `larder turn {word}`; did you mean `larder turn {near}`? To ask this word as a question, end it with a \
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
