//! One file per command. Each reads its arguments, calls the library, prints.

mod archive;
mod ask;
mod backup;
mod catalogue;
mod chat;
mod check;
mod condense;
mod config;
mod converse;
mod costs;
mod count;
mod explain;
mod export;
mod forget;
mod gc;
mod init;
mod interventions;
pub mod jobs;
mod keys;
mod mcp;
mod models;
mod policy;
mod rehydrate;
mod reindex;
mod repair;
mod restore;
mod revisions;
mod route;
mod run;
mod runs;
mod serve;
mod share;
mod top;
mod transcript;
mod trends;
mod turn;
mod until_done;
mod verify;

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Args, Command, Format, Global, JobsCommand, ModelsCommand};
use crate::context::{CommandContext, note_on_project_above};
use crate::error::CliError;

/// Runs the command. Those that ask models take up background jobs that are due.
pub async fn run(args: Args) -> Result<ExitCode, CliError> {
    let takes_up = match &args.command {
        Command::Run(_) | Command::Ask(_) | Command::Turn(_) | Command::Chat(_) | Command::Converse(_) => {
            true
        }
        Command::Jobs { command } => matches!(command, Some(JobsCommand::Retry { .. })),
        _ => false,
    };
    require_utf8(&args.global)?;
    let is_about_projects = !matches!(args.command, Command::Init { .. } | Command::Completions { .. });
    if is_about_projects && args.global.format == Format::Plain {
        note_on_project_above(&args.global);
    }
    let global = takes_up.then(|| args.global.clone());
    let ended = dispatch(args).await;
    if let Some(global) = global {
        jobs::take_up(&global);
    }
    ended
}

/// Refuses folders whose names settings and the store cannot hold, which would silently use others.
fn require_utf8(global: &Global) -> Result<(), CliError> {
    for (option, path) in [("--home or LARDER_HOME", &global.home), ("--project", &global.project)] {
        if let Some(path) = path.as_ref().filter(|path| path.to_str().is_none()) {
            return Err(CliError::Usage(format!(
                "{option}: the name of the folder {} is not UTF-8; rename it, or name another",
                path.display()
            )));
        }
    }
    Ok(())
}

async fn dispatch(args: Args) -> Result<ExitCode, CliError> {
    let global = args.global;
    match args.command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "larder", &mut script);
            crate::output::bytes(&script)?;
        }
        Command::Init { dir } => init::run(&dir, global.format)?,
        Command::Check { dir, write_registry } => return check::run(&global, dir, write_registry),
        Command::Count { file, tokenizer, limit } => {
            count::run(&CommandContext::new(global)?, &file, &tokenizer, limit)?;
        }
        Command::Run(args) => run::run(&CommandContext::new(global)?, args).await?,
        Command::Explain(args) => return explain::run(&CommandContext::new(global)?, args).await,
        Command::Route(args) => route::run(&CommandContext::new(global)?, args)?,
        Command::Condense(args) => condense::run(&CommandContext::new(global)?, args).await?,
        Command::Ask(args) => ask::run(&CommandContext::new(global)?, args).await?,
        Command::Turn(args) => return turn::run(&CommandContext::new(global)?, args).await,
        Command::Converse(args) => return converse::run(&CommandContext::new(global)?, args).await,
        Command::Chat(args) => return chat::run(&CommandContext::new(global)?, args).await,
        Command::Reindex => reindex::run(&CommandContext::new(global)?).await?,
        Command::Archive => archive::run(&CommandContext::new(global)?).await?,
        Command::Forget { who, yes } => forget::run(&CommandContext::new(global)?, &who, yes).await?,
        Command::Export { who, to } => return export::run(&CommandContext::new(global)?, &who, &to),
        Command::Costs(args) => costs::run(&CommandContext::new(global)?, &args)?,
        Command::Trends { days } => trends::run(&CommandContext::new(global)?, days)?,
        Command::Share { command } => share::run(&CommandContext::new(global)?, command).await?,
        Command::Gc { dry_run } => gc::run(&CommandContext::new(global)?, dry_run)?,
        Command::Mcp(args) => mcp::run(&CommandContext::new(global)?, args).await?,
        Command::Rehydrate { id, select } => rehydrate::run(&CommandContext::new(global)?, &id, select)?,
        Command::Runs { command, recipe, limit } => {
            runs::run(&CommandContext::new(global)?, command, recipe, limit)?
        }
        Command::Transcript { session, branch, all } => {
            transcript::run(&CommandContext::new(global)?, session.as_deref(), branch, all)?
        }
        Command::Interventions { command, all } => {
            interventions::run(&CommandContext::new(global)?, command, all)?
        }
        Command::Jobs { command } => jobs::run(global, command).await?,
        Command::Keys { command } => keys::run(&CommandContext::new(global)?, command).await?,
        // Works where the stored catalogue is broken and no settings can be read.
        Command::Models { command: Some(ModelsCommand::Update { from, built_in: _ }) } => {
            catalogue::update(&global, from.as_deref())?;
        }
        Command::Models { command } => models::run(&CommandContext::new(global)?, command).await?,
        Command::Serve(args) => serve::run(global, &args).await?,
        Command::Config => config::run(&CommandContext::new(global)?)?,
        Command::Revisions(args) => revisions::run(&CommandContext::new(global)?, args)?,
        Command::Policy(args) => return policy::run(&CommandContext::new(global)?, &args),
        Command::Top { gateway, once } => top::run(global, gateway, once).await?,
        Command::Backup { target } => return backup::run(&CommandContext::new(global)?, &target),
        Command::Restore { backup } => return restore::run(&CommandContext::new(global)?, &backup),
        Command::Repair => return repair::run(&CommandContext::new(global)?),
        Command::Verify => return verify::run(&CommandContext::new(global)?),
    }
    Ok(ExitCode::SUCCESS)
}
