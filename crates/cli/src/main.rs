//! The `larder` command: reads what was typed, runs one command, turns its outcome into an exit code.

mod args;
mod commands;
mod context;
mod error;
mod files;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    output::start_logging(args.global.verbose);
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(error::CliError::Runtime)
        .and_then(|runtime| runtime.block_on(commands::run(args)));
    match outcome {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}
