//! Options of `larder policy`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use larder_proxy::wire::ApiDialect;

pub const EXAMPLES: &str = "Examples:\n  larder policy\n  larder policy --model claude --format json\n  \
                            larder policy request.json\n  larder policy - --wire anthropic < request.json";

#[derive(Debug, Args)]
pub struct PolicyArgs {
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
