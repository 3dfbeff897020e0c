//! What `larder condense`, `larder ask` and `larder rehydrate` accept. Knows nothing of what they run.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

/// Tokens that a condensed text may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenTarget {
    /// At most this many.
    Tokens(usize),
    /// The fewest that keep one unit of every kind.
    Auto,
}

impl std::str::FromStr for TokenTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => {
                text.parse().map(Self::Tokens).map_err(|_| "expected a number of tokens, or auto".to_owned())
            }
        }
    }
}

#[derive(Debug, ClapArgs)]
pub struct CondenseArgs {
    /// File to condense, or - for standard input
    pub file: PathBuf,
    /// Condense to at most N tokens; `auto` is the fewest that keep every kind of log line or every file of a diff
    #[arg(long, value_name = "N|auto")]
    pub to: TokenTarget,
    /// Skip detection and condense as this type: prose, markdown, context_doc, generic, chat …
    #[arg(long = "type", value_name = "TYPE")]
    pub content_type: Option<String>,
    /// Keep what answers this question first
    #[arg(long, short)]
    pub query: Option<String>,
    /// Keep this text byte for byte; repeatable
    #[arg(long = "pin", value_name = "TEXT")]
    pub pins: Vec<String>,
    /// Print why each unit is shown or left out, instead of the text
    #[arg(long)]
    pub explain: bool,
    /// With --explain: also show what N more tokens would add
    #[arg(long, value_name = "N", default_value_t = 200, requires = "explain")]
    pub more: usize,
    /// Count with this tokenizer, named as for `larder count`
    #[arg(long, value_name = "NAME|PATH", default_value = "cl100k_base")]
    pub tokenizer: String,
    /// Let the model of layer NERVES rewrite the text; its output is verified, and rules condense instead if it fails
    #[arg(long)]
    pub by_model: bool,
    /// Fetch missing model weights without asking
    #[arg(long, short, requires = "by_model")]
    pub yes: bool,
}

#[derive(Debug, ClapArgs)]
pub struct AskArgs {
    /// Files, folders and pointers, then the question
    #[arg(required = true, num_args = 2.., value_names = ["PATH", "QUESTION"])]
    pub inputs: Vec<String>,
    /// Answer with this recipe
    #[arg(long, default_value = "ask/answer")]
    pub recipe: String,
    /// Print the best passages instead of an answer; calls no model
    #[arg(long, conflicts_with = "generate")]
    pub quote: bool,
    /// Have the model write the answer, even the embedded one, which quotes by default
    #[arg(long)]
    pub generate: bool,
    /// Choose what plans the reading: rules, a model, or a model only if layer MIND has one that is able to
    /// [default: auto]
    #[arg(long, value_enum)]
    pub planner: Option<PlannerArg>,
    /// Nest sub-questions at most N deep [default: 1]
    #[arg(long, value_name = "N")]
    pub max_depth: Option<usize>,
    /// Run at most N recipes [default: 10]
    #[arg(long, value_name = "N")]
    pub max_calls: Option<usize>,
    /// Use at most N tokens for prompts and replies of all calls [default: 60000]
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Print the layout of the prompt, too
    #[arg(long)]
    pub explain: bool,
    /// Fetch missing model weights without asking
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PlannerArg {
    Auto,
    Rules,
    Model,
}

/// A part of an original.
#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub struct SelectArgs {
    /// Print lines A to B, counted from 1, both included, or one line, such as 7
    #[arg(long, value_name = "A:B")]
    pub lines: Option<String>,
    /// Print bytes A to B, counted from 0, B excluded
    #[arg(long, value_name = "A:B")]
    pub bytes: Option<String>,
    /// Print lines that match a regular expression
    #[arg(long, value_name = "REGEX", alias = "pattern")]
    pub grep: Option<String>,
    /// Print the value at a JSONPath or JSON pointer
    #[arg(long, value_name = "JSONPATH")]
    pub path: Option<String>,
}
