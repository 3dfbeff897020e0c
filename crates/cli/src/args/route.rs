//! The arguments of `larder route`: a request as the router sees it.

use clap::Args as ClapArgs;

pub const EXAMPLES: &str = "Examples:\n  larder route 'Is there any point in going on?' --explain\n  larder route 'yes' --stage witnessing --field intensity=8 --preset seed --task mediation --explain\n  larder route 'Review this' --document code:11000 --tools 13 --format json";

/// A request.
#[derive(Debug, ClapArgs)]
pub struct RouteArgs {
    /// What the user writes
    pub message: String,
    /// List every factor with its score
    #[arg(long)]
    pub explain: bool,
    /// Decide by this preset
    #[arg(long, value_name = "NAME", default_value = larder_core::route::DEFAULT_PRESET)]
    pub preset: String,
    /// A name of the task, such as that of a recipe or its category; may be repeated
    #[arg(long = "task", value_name = "NAME")]
    pub tasks: Vec<String>,
    /// The stage of the conversation
    #[arg(long, value_name = "NAME")]
    pub stage: Option<String>,
    /// A value that is known, such as intensity=8; may be repeated
    #[arg(long = "field", value_name = "NAME=VALUE")]
    pub fields: Vec<String>,
    /// An earlier message, oldest first; may be repeated
    #[arg(long = "history", value_name = "TEXT")]
    pub history: Vec<String>,
    /// An attached text by its content type and tokens; may be repeated
    #[arg(long = "document", value_name = "KIND:TOKENS")]
    pub documents: Vec<String>,
    /// Attached pictures
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub images: usize,
    /// Tools that the model may call
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub tools: usize,
    /// Form of the answer: json, yaml, markdown, text or tagged
    #[arg(long, value_name = "FORM")]
    pub output: Option<String>,
    /// Tokens that the answer may take
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub max_output: usize,
    /// The smallest tier that may answer
    #[arg(long, value_name = "TIER")]
    pub floor: Option<String>,
}
