//! The `larder` command: reads what was typed, runs one command, turns its outcome into an exit code.

mod args;
mod commands;
mod context;
mod error;
mod files;
mod keyboard;
mod memory;
mod output;
mod progress;
mod recipe_tools;
mod stop;
mod turns;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};

/// A server allocates and frees many small objects on all its threads; the system's allocator then contends for locks
/// and returns memory that it needs again immediately.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long an idle blocking thread waits for more work: less than until the process counts as idle, because the memory that
/// a thread keeps for itself is free only after its end.
const IDLE_THREAD: Duration = Duration::from_millis(200);

/// The same error as if no variable of the environment were set: clap takes an option that is set by a variable for one that
/// was typed, and lists it in the usage of an error like a required one.
fn without_environment(refused: clap::Error, typed: &[OsString]) -> clap::Error {
    if refused.get(clap::error::ContextKind::Usage).is_none() {
        return refused;
    }
    let command = args::Args::command().mut_args(|arg| arg.env(None::<&str>));
    command.try_get_matches_from(typed).err().unwrap_or(refused)
}

/// Reports an invalid command line, or prints the requested help or version.
fn explain(refused: &clap::Error, typed: &[OsString]) -> ExitCode {
    let shown: Vec<String> = typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let is_invalid = |word: &&OsString| word.to_str().is_none();
    if let (clap::error::ErrorKind::InvalidUtf8, Some(word)) = (refused.kind(), typed.iter().find(is_invalid))
    {
        return error::CliError::Usage(format!(
            "{} is not valid UTF-8; this command accepts only UTF-8 names and texts; rename the file or folder, for example with \
             mv or convmv",
            output::visible(&word.to_string_lossy())
        ))
        .report();
    }
    if refused.kind() == clap::error::ErrorKind::DisplayVersion
        && shown.iter().any(|arg| version::is_verbose(arg))
    {
        return match output::line(&version::details()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => error.report(),
        };
    }
    let words = shown.iter().map(String::as_str).skip_while(|word| *word != "turn").skip(1);
    let first = words.clone().next();
    let hint = first.and_then(args::mistyped).or_else(|| {
        let after_options = first.is_some_and(|word| word.starts_with('-'));
        args::misplaced(words).filter(|_| after_options)
    });
    match hint.filter(|_| refused.use_stderr()) {
        Some(hint) => error::CliError::Usage(hint).report(),
        None => refused.exit(),
    }
}

fn main() -> ExitCode {
    let typed = args::reordered(std::env::args_os());
    let args = match args::Args::try_parse_from(&typed) {
        Ok(args) => args,
        Err(refused) => return explain(&without_environment(refused, &typed), &typed),
    };
    let is_gateway = matches!(args.command, args::Command::Serve(_));
    output::start_logging(args.global.verbose, is_gateway || args.global.format == args::Format::Plain);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if is_gateway {
        memory::keep_small();
        memory::serving_threads().map(|threads| runtime.worker_threads(threads));
    }
    let format = args.global.format;
    let outcome = runtime
        .enable_all()
        .thread_keep_alive(IDLE_THREAD)
        .build()
        .map_err(error::CliError::Runtime)
        .and_then(|runtime| runtime.block_on(commands::run(args)));
    match outcome {
        Ok(code) => code,
        Err(error) => error.report_as(format),
    }
}
