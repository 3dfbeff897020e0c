//! Options of `larder policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use larder_proxy::wire::ApiDialect;

pub const EXAMPLES: &str = "Examples:\n  larder policy\n  larder policy --model claude --format json\n  \
                            larder policy request.json\n  larder policy - --wire anthropic < request.json\n  \
                            larder policy tune";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PolicyArgs {
    #[command(subcommand)]
    pub command: Option<PolicyCommand>,
    /// Body of a request, or - for standard input; without it, budgets are shown
    #[arg(value_name = "REQUEST.json")]
    pub request: Option<PathBuf>,
    /// Format of the request
    #[arg(long, value_enum, default_value_t = DialectArg::OpenaiChat)]
    pub wire: DialectArg,
    /// Show only this model; with a request, decide as if it named this model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Propose settings that cost your recorded conversations less and hide nothing that they needed
    ///
    /// Replays the transcripts of the user's conversations through the gateway's policy, under the settings in use and
    /// under others, turn by turn. The cost is a share of sending everything, at the prices of each model's cache, and includes
    /// reading back what a later message took from a result and did not see. Settings are proposed only if at least 99.5 %
    /// of such needs are in view and at most 0.3 % of the turns read back, on all conversations and on each half of them.
    /// First one setting for all tools is varied after the other, then policy.tool_caps for each tool that has 20 results
    /// and 2 % of their tokens. Each value is chosen on one half of the conversations and kept only if the other half
    /// confirms it; a cap for one tool must save 0.2 % of the cost on each half, and all changes together 0.5 %.
    /// What larder.toml, the environment or a flag sets is left as it is. Sends nothing. Takes seconds to minutes.
    ///
    /// With --conversation, budgets of a conversation type are proposed instead, by what its recorded replies used: twice
    /// the 95th percentile and at least the most, within what the type and its model allow, from 50 replies on. A session
    /// uses the revision that was newest when it began or when its last summary was written, and each reply's record names it.
    #[command(
        after_help = "Examples:\n  larder policy tune\n  larder policy tune --apply\n  larder policy tune --conversation support\n  \
                      larder revisions revert 0"
    )]
    Tune {
        /// Propose budgets of this conversation type
        #[arg(long, value_name = "TYPE")]
        conversation: Option<String>,
        /// Write the proposal as a new revision of the settings, which new conversations use
        #[arg(long)]
        apply: bool,
        /// The most conversations to read, newest first
        #[arg(long, value_name = "N", default_value_t = 200)]
        runs: usize,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum DialectArg {
    /// OpenAI chat completions
    OpenaiChat,
    /// OpenAI responses
    OpenaiResponses,
    /// Anthropic messages
    Anthropic,
}

impl From<DialectArg> for ApiDialect {
    fn from(wire: DialectArg) -> Self {
        match wire {
            DialectArg::OpenaiChat => Self::Chat,
            DialectArg::OpenaiResponses => Self::Responses,
            DialectArg::Anthropic => Self::Messages,
        }
    }
}
