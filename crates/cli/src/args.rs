//! The command line: commands, options and their help. Knows nothing of what they run.

mod converse;
mod costs;
mod models;
mod policy;
mod recipes;
mod revisions;
mod route;
mod serving;
mod sharing;
mod texts;
mod turns;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use larder_store::LOCAL_USER;

pub use self::converse::ConverseArgs;
pub use self::costs::{CostKey, CostsArgs};
pub use self::models::ModelsCommand;
pub use self::policy::{PolicyArgs, PolicyCommand};
pub use self::recipes::{ExplainArgs, InputArgs, ModeArg, RepeatArgs, RunArgs};
pub use self::revisions::{RevisionsArgs, RevisionsCommand};
pub use self::route::RouteArgs;
pub use self::serving::{KeysCommand, MCP_EXAMPLES, McpArgs, ServeArgs};
pub use self::sharing::ShareCommand;
pub use self::texts::{AskArgs, CondenseArgs, PlannerArg, SelectArgs, TokenTarget};
pub use self::turns::{
    ChatArgs, PlaceArgs, TurnArgs, TurnCommand, TurnFlags, misplaced, mistyped, reordered,
};

/// Context engine for LLM applications: packs prompts under a hard token budget and condenses them without loss.
#[derive(Debug, Parser)]
#[command(name = "larder", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Examples:\n  larder ask docs 'When does version 2.4 ship?'\n  larder init my-project\n  larder serve\n\n`larder COMMAND --help` describes a command with examples."
)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// The number of a turn, job or request.
fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a number, such as 7".to_owned())
}

/// A limit.
fn positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err("expected a whole number from 1".to_owned()),
    }
}

/// What a person decided.
fn decision(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("say what was decided, such as 'Added the missing recipe'".to_owned());
    }
    Ok(text.to_owned())
}

/// Options of every command.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Store originals, runs and documents in DIR [default: .larder in the project folder]
    #[arg(long, global = true, env = "LARDER_HOME", hide_env_values = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Use the project in DIR, with its larder.toml, recipes/ and prompts/ [default: the current folder if it has them, else the nearest above]
    #[arg(long, global = true, env = "LARDER_PROJECT", hide_env_values = true, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Work on the documents, pointers and runs of this user
    #[arg(long, global = true, env = "LARDER_USER", hide_env_values = true, value_name = "ID", default_value = LOCAL_USER)]
    pub user: String,
    /// Choose how to print data
    #[arg(long, global = true, value_enum, default_value_t = Format::Plain)]
    pub format: Format,
    /// Log more to standard error; repeat for even more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    #[value(alias = "text")]
    Plain,
    /// One JSON value
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a project with a larder.toml, a recipe and a prompt to start from
    ///
    /// Adds notes.md to try the recipe on, and a .gitignore for the store, unless they exist. Overwrites nothing.
    #[command(after_help = "Examples:\n  larder init\n  larder init my-project")]
    Init {
        /// Folder of the project; created if it does not exist
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Check every recipe, prompt and setting of a project
    ///
    /// Reports all problems at once, each with its place, a code and a fix. Checks the built-in recipes if there is no
    /// project.
    #[command(
        after_help = "Examples:\n  larder check\n  larder check my-project --format json\n  larder check --write-registry"
    )]
    Check {
        /// Project folder [default: the current one]
        dir: Option<PathBuf>,
        /// Update registry.yaml with the recipes of the project
        #[arg(long)]
        write_registry: bool,
    },
    /// Run a recipe: pack its prompt, call its model, check and record the answer
    #[command(
        after_help = "Examples:\n  larder run summarize/summarize --doc document=notes.md --query 'What was decided?'\n  larder run extract/extract --doc document=invoice.txt --query 'All line items' --format json\n  larder run card/card_agent --variant coding --doc notes=notes.md --query 'Add the header row' --until-done"
    )]
    Run(RunArgs),
    /// Show the prompt of a run without sending it: every part with its rendition, tokens and reason
    #[command(
        after_help = "Examples:\n  larder explain summarize/summarize --doc document=notes.md --query 'What was decided?'\n  larder explain card/card_agent --doc notes=notes.md --variant coding --query 'Fix the build' --extra 8000"
    )]
    Explain(ExplainArgs),
    /// Show which tier of models the router would ask for a message, and why; sends nothing
    ///
    /// Decides by a preset of the project (routes/NAME.yaml) or one that ships, with the models of larder.toml. With
    /// --explain every factor is listed with what it adds to the score.
    #[command(after_help = route::EXAMPLES)]
    Route(RouteArgs),
    /// Count the tokens of a text
    #[command(
        after_help = "Examples:\n  larder count notes.md\n  git diff | larder count - --tokenizer o200k_base --limit 8000"
    )]
    Count {
        /// File to count, or - for standard input
        file: PathBuf,
        /// Count with this tokenizer: cl100k_base, o200k_base, claude, bytes, smollm2, the name or id of a
        /// model, or the path of a tokenizer.json or .gguf file
        #[arg(long, value_name = "NAME|PATH", default_value = "cl100k_base")]
        tokenizer: String,
        /// Stop counting at N tokens and print `more than N`
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Condense a text to a number of tokens
    ///
    /// Stores the original first; every gap names the pointer with which `larder rehydrate` restores it.
    #[command(
        after_help = "Examples:\n  larder condense report.md --to 500\n  larder condense build.log --to 800 --query 'why did it fail?' --format json\n  larder condense src/lib.rs --to 900 --explain"
    )]
    Condense(CondenseArgs),
    /// Answer a question over files and folders of any size, with citations
    #[command(
        override_usage = "larder ask [OPTIONS] <PATH>... <QUESTION>",
        after_help = "Examples:\n  larder ask docs src 'Where is the budget enforced?'\n  larder ask book.txt 'Who is Pierre?' --explain\n  larder ask logs 'Why did the build fail?' --quote"
    )]
    Ask(AskArgs),
    /// Answer a question in a turn of eight phases; resume, list and show turns
    ///
    /// Prints the answer, or the question that the turn asks back; with --format json the outcome: turn, folder, status
    /// (complete, clarify, failed), answer, question, reason, unverified, usage, cost, tool_calls, latency_ms. Progress
    /// is shown on standard error if it is a terminal, and logged with -v. An interrupted turn can be resumed from its
    /// last checkpoint.
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        after_help = "Examples:\n  larder turn 'What did we decide about the granary?'\n  larder turn 'Make the tests pass' --mode code --workspace . --max-time 600\n  larder turn resume"
    )]
    Turn(TurnArgs),
    /// Hold a conversation: each line is a turn that knows the turns before it
    ///
    /// Starts a new conversation unless --session names one. Ctrl-C stops a turn, which can be resumed; Ctrl-D ends the
    /// conversation. With --format json, each turn prints its outcome.
    #[command(
        after_help = "Examples:\n  larder chat\n  larder chat --session granary\n  printf '%s\\n' 'Who is Ada?' 'And her team?' | larder chat"
    )]
    Chat(ChatArgs),
    /// Hold a conversation of a type, such as mediation, tutor or support
    ///
    /// A type says which stages there are, what of a long conversation is sent and what is remembered. Each line is a
    /// message; the reply is printed as it is written. Lines that begin with / are commands: /new begins a session (/new
    /// NAME one in an aside), /act NAME starts an action (with the text after it, if there is any), /act lists them,
    /// /edit TEXT says your last message in other words, /again has it answered once more, /delete erases it, /memory lists
    /// what is remembered of you, /window shows what was sent for the last reply and why, /help lists them all, /quit ends.
    /// /share previews a text for the others (/share @NAME TEXT for one of them), /release ACTION TEXT a statement for an
    /// action, and /confirm gives what was previewed. With --format json, each reply is an object that names its `conversation`. Without a type, lists conversations.
    #[command(
        after_help = "Examples:\n  larder converse\n  larder converse tutor\n  larder converse --continue conv-0123456789abcdef --as ann\n  printf '%s\\n' 'My order is late' | larder converse support"
    )]
    Converse(ConverseArgs),
    /// Rebuild the search index over the documents of all users
    ///
    /// Also computes missing embeddings, if gather.embedding names a model. Needed only after other programs changed or
    /// restored documents, never after a crash.
    #[command(after_help = "Example:\n  larder reindex")]
    Reindex,
    /// Move turns older than 90 days, and expired research, to the archive
    ///
    /// Archived turns stay in the index and in `larder turn list`, and links to them are updated. A turn whose research
    /// is valid stays; expired research moves whatever its turn's age. Sums the figures of `larder trends` anew.
    #[command(after_help = "Examples:\n  larder archive\n  larder archive --user ada --format json")]
    Archive,
    /// Show what turns took by day, and the last week against the one before
    ///
    /// Sums over all users, from observability/ in the documents; nobody is named.
    #[command(after_help = "Examples:\n  larder trends\n  larder trends --days 30 --format json")]
    Trends {
        /// Show the last N days that have turns
        #[arg(long, value_name = "N", default_value_t = 14)]
        days: usize,
    },
    /// Show what conversations cost, with everything that followed their replies
    #[command(after_help = "Examples:\n  larder costs\n  larder costs --by stage --days 7 --format json")]
    Costs(CostsArgs),
    /// Publish what proved right for all users, and revoke it
    ///
    /// What may be published was right in at least 10 approved answers over a day, with a trust of 0.8, and stays true.
    /// Nothing is published by itself: you see the text first, and only that text is copied, with its source and your
    /// name. Turns of other users are offered it from the next one on, until it is revoked or you are forgotten.
    #[command(
        after_help = "Examples:\n  larder share list\n  larder share publish fact-001\n  larder share revoke 3"
    )]
    Share {
        #[command(subcommand)]
        command: Option<ShareCommand>,
    },
    /// Remove data that has expired by the settings of retention
    ///
    /// A background job does this every hour. Prints items and bytes on disk by class; with --format json, `by_age` and
    /// `by_size`. A server may run at the same time.
    #[command(after_help = "Examples:\n  larder gc --dry-run\n  larder gc --format json")]
    Gc {
        /// Only print what would be removed
        #[arg(long)]
        dry_run: bool,
    },
    /// Write everything of a user to a folder: documents, originals, transcripts, records
    ///
    /// Writes tables/*.jsonl, contents/, documents/, drafts/ and manifest.json, which lists them. Secrets of keys are left
    /// out.
    #[command(after_help = "Example:\n  larder export ada --to ada-2026-11-24")]
    Export {
        /// User whose data to write
        #[arg(value_name = "USER")]
        who: String,
        /// Folder to write to, empty or not there yet
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Delete everything of a user: documents, turns, memory, runs, pointers, keys
    #[command(after_help = "Example:\n  larder forget ada --yes")]
    Forget {
        /// User whose data to delete
        #[arg(value_name = "USER")]
        who: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Serve tools, recipes and pointers to an agent over the Model Context Protocol, on standard input and output
    #[command(after_long_help = MCP_EXAMPLES)]
    Mcp(McpArgs),
    /// Print the original bytes behind a pointer, or a part of them
    #[command(
        after_help = "Examples:\n  larder rehydrate lp1-…\n  larder rehydrate lp1-… --lines 10:40\n  larder rehydrate lp1-… --path '$.orders[0].id'"
    )]
    Rehydrate {
        /// The pointer, as it appears in a prompt
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
        /// List only runs of this recipe
        #[arg(long)]
        recipe: Option<String>,
        /// List at most N runs, newest first
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = positive)]
        limit: u64,
    },
    /// Print the messages of a conversation through the gateway, or list conversations
    ///
    /// Prints each message as the model read it, with pointers to what it did not read; with --format json also its
    /// bytes as they came in, as `original`. A history that does not continue a known one, such as that of a second
    /// agent with the same session name, is a branch. Reads the store, so no gateway needs to run.
    #[command(
        after_help = "Examples:\n  larder transcript\n  larder transcript s-0c1f7a9b23d4e5f60718\n  larder transcript s-0c1f7a9b23d4e5f60718 --all --format json > audit.json"
    )]
    Transcript {
        /// Session, as named by the header x-larder-session; without it, sessions are listed
        session: Option<String>,
        /// Print the history of this branch [default: the newest]
        #[arg(long, value_name = "N", requires = "session", conflicts_with = "all")]
        branch: Option<u32>,
        /// Print every line in the order written: earlier renditions, all branches and all replies
        #[arg(long, requires = "session")]
        all: bool,
    },
    /// List, show and resolve requests for a human
    #[command(
        after_help = "Examples:\n  larder interventions\n  larder interventions show 3\n  larder interventions resolve 3 'Added the missing recipe'"
    )]
    Interventions {
        #[command(subcommand)]
        command: Option<InterventionsCommand>,
        /// List resolved requests, too
        #[arg(long)]
        all: bool,
    },
    /// List background jobs, repeat or cancel them, or do those that are due
    ///
    /// A job is, for example, the summary of a turn. `larder serve` does them; without a server, the command that adds one
    /// starts a process that does, and later commands take up what is left. One that keeps failing becomes a request for a
    /// human, see `larder interventions`.
    #[command(
        after_help = "Examples:\n  larder jobs\n  larder jobs retry 7\n  larder jobs work\n  larder jobs list --format json"
    )]
    Jobs {
        #[command(subcommand)]
        command: Option<JobsCommand>,
    },
    /// List keys with what of their budgets is spent today, create and revoke them
    #[command(
        after_help = "Examples:\n  larder keys\n  larder keys create --user ada --label laptop --tokens-per-day 2000000 --usd-per-day 5\n  larder keys revoke 3f9a0c21b7d4"
    )]
    Keys {
        #[command(subcommand)]
        command: Option<KeysCommand>,
    },
    /// List models, or fetch the weights of an embedded one
    ///
    /// Lists the model of each layer, or its alternative if that is in use, then the models that no layer uses.
    #[command(
        after_help = "Examples:\n  larder models\n  larder models show claude-sonnet-4-5\n  larder models pull"
    )]
    Models {
        #[command(subcommand)]
        command: Option<ModelsCommand>,
    },
    /// Serve the gateway: OpenAI's and Anthropic's APIs in front of any provider, recipes as models, MCP, a dashboard
    ///
    /// Runs until it is stopped. Prints at start where it listens, which models and recipes it serves, and where it
    /// forwards requests for other models.
    #[command(
        after_help = "Examples:\n  larder serve\n  larder serve --openai https://api.openai.com/v1 --anthropic https://api.anthropic.com\n  OPENAI_BASE_URL=http://127.0.0.1:8787/v1 my-agent"
    )]
    Serve(ServeArgs),
    /// Show every setting with its value, origin and meaning
    #[command(after_help = "Examples:\n  larder config\n  larder config --format json")]
    Config,
    /// Show the prompt budget of each model, or what the gateway would do with a request; sends nothing
    ///
    /// Without a request: the window of each model, its reply reserve, emergency floor, prompt budget, and the threshold
    /// from which older tool results are compacted, each with the setting or rule behind it. With a request: the decision
    /// (exit code 1 if it would be rejected), the largest parts, and every part with its rendition. --format json prints
    /// what POST /api/v1/policy/inspect returns. Stores and records nothing.
    #[command(after_help = policy::EXAMPLES)]
    Policy(PolicyArgs),
    /// List, show, compare and revert what is learned at run time: numbered revisions of the settings
    ///
    /// A server uses the newest revision for new conversations, without a restart; a conversation under way keeps the one
    /// that it began with until its prompt is next compacted. What larder.toml, the environment or a flag sets is never
    /// overridden by a learned value. Revisions are never changed or removed: reverting adds one.
    #[command(after_help = revisions::EXAMPLES)]
    Revisions(RevisionsArgs),
    /// Copy the home to a folder while it is in use: index, originals, documents, key
    ///
    /// The copy is checked, and gets its name once it is complete. It contains the key: keep it as safe as the home.
    #[command(after_help = "Example:\n  larder backup /backups/larder-2026-11-25")]
    Backup {
        /// Folder to write to, empty or not there yet
        target: PathBuf,
    },
    /// Copy a backup to the home, which must be empty or missing, and verify it
    #[command(after_help = "Example:\n  larder restore /backups/larder-2026-11-25 --home ~/.larder")]
    Restore {
        /// Folder that `larder backup` has written
        backup: PathBuf,
    },
    /// Rebuild a lost or damaged index from the originals
    ///
    /// Stop all processes that use the home first. Every intact original comes back by its pointer; what only the index
    /// had, such as transcripts and keys, is lost and listed. An intact index is left alone.
    #[command(after_help = "Example:\n  larder repair")]
    Repair,
    /// Verify that every pointer, blob and run in the store is intact
    ///
    /// Exits with 3 if anything is damaged or missing.
    #[command(after_help = "Examples:\n  larder verify\n  larder verify --format json")]
    Verify,
    /// Watch a running gateway in the terminal
    ///
    /// With --format json, prints its totals and last requests once.
    #[command(
        after_help = "Examples:\n  larder top\n  LARDER_KEY=lk-… larder top --gateway https://larder.example.com\n  larder top --once"
    )]
    Top {
        /// Address of the gateway; a key for it is read from $LARDER_KEY [default: where gateway.listen says]
        #[arg(long, env = "LARDER_GATEWAY", hide_env_values = true, value_name = "URL")]
        gateway: Option<String>,
        /// Print once instead of watching
        #[arg(long)]
        once: bool,
    },
    /// Print a shell completion script
    #[command(
        after_help = "Example:\n  larder completions bash > ~/.local/share/bash-completion/completions/larder"
    )]
    Completions {
        /// Shell to complete in
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Show a run with its receipt and answer
    #[command(after_help = "Example:\n  larder runs show 019abc12-3456-7def-8901-23456789abcd")]
    Show {
        /// Id of the run
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum InterventionsCommand {
    /// Show a request
    #[command(after_help = "Example:\n  larder interventions show 3")]
    Show {
        /// Number of the request
        #[arg(value_parser = number::<u64>)]
        id: u64,
    },
    /// Resolve a request
    #[command(after_help = "Example:\n  larder interventions resolve 3 'Added the missing recipe'")]
    Resolve {
        /// Number of the request
        #[arg(value_parser = number::<u64>)]
        id: u64,
        /// What was decided
        #[arg(value_parser = decision)]
        resolution: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// List the jobs that wait, run or have failed
    #[command(after_help = "Example:\n  larder jobs list --format json")]
    List,
    /// Show a job with what its worker knows
    #[command(after_help = "Example:\n  larder jobs show 7")]
    Show {
        /// Number of the job
        #[arg(value_parser = number::<u64>)]
        id: u64,
    },
    /// Make a job due now that waits or has failed
    #[command(after_help = "Example:\n  larder jobs retry 7")]
    Retry {
        /// Number of the job
        #[arg(value_parser = number::<u64>)]
        id: u64,
    },
    /// Remove a job that waits or has failed
    #[command(after_help = "Example:\n  larder jobs cancel 7")]
    Cancel {
        /// Number of the job
        #[arg(value_parser = number::<u64>)]
        id: u64,
    },
    /// Do the jobs of all users that are due, unless another process does them
    #[command(after_help = "Examples:\n  larder jobs work\n  larder jobs work --wait 600")]
    Work {
        /// Go on while a job becomes due within N seconds
        #[arg(long, value_name = "N", default_value_t = 0)]
        wait: u64,
    },
}
