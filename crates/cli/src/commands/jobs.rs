//! `larder jobs`: what is to be done in the background, and the process that does it.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use larder_gateway::app::App;
use larder_gateway::{jobs, serve};
use larder_store::{Job, JobState, Store};
use larder_text::words::counted;
use serde_json::json;

use crate::args::{Format, Global, JobsCommand};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

/// Seconds that a detached worker waits for a job: for the first repetition of one that failed, which is due after ten, and
/// for one whose model is in use. It ends as soon as nothing is due within them, so that it never stays for the regular jobs;
/// what is due later is taken up by the next command.
const LINGERS: u64 = 15;

pub async fn run(global: Global, command: Option<JobsCommand>) -> Result<(), CliError> {
    let context = CommandContext::new(global.clone())?;
    let lists = matches!(command, Some(JobsCommand::List) | None);
    let found = match command {
        Some(JobsCommand::Work { wait }) => return work(global, &context, Duration::from_secs(wait)).await,
        Some(JobsCommand::Show { id }) => {
            let job = context.user_to_read()?.jobs().get(id)?;
            if context.global.format == Format::Plain {
                print(std::slice::from_ref(&job))?;
                return output::line(&format!("{:#}", job.payload));
            }
            vec![job]
        }
        Some(JobsCommand::Retry { id }) => {
            context.require_writable()?;
            vec![context.user_to_read()?.jobs().retry(id)?]
        }
        Some(JobsCommand::Cancel { id }) => {
            context.require_writable()?;
            let job = context.user_to_read()?.jobs().cancel(id)?;
            output::say(&format!("job {id} is cancelled"));
            vec![job]
        }
        Some(JobsCommand::List) | None => context.user_to_read()?.jobs().list()?,
    };
    if context.global.format == Format::Json {
        return if lists { output::json(&found) } else { output::json(&found.first()) };
    }
    if found.is_empty() {
        output::say("no background jobs");
    }
    print(&found)
}

fn print(jobs: &[Job]) -> Result<(), CliError> {
    for job in jobs {
        let state = match job.state {
            JobState::Waiting => format!("due {}", job.due),
            JobState::Running => "running".to_owned(),
            JobState::Failed => format!("failed {}", counted(job.attempts, "time")),
        };
        let reason = job.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        // Most keys begin with the kind.
        let repeated = job.key.starts_with(&job.kind);
        let name = if repeated { job.key.clone() } else { format!("{} {}", job.kind, job.key) };
        output::line(&format!("#{} {name} ({state}){reason}", job.id))?;
    }
    Ok(())
}

/// Does what is due, with the settings and models of a server.
async fn work(global: Global, context: &CommandContext, wait: Duration) -> Result<(), CliError> {
    let store = context.whole_store()?;
    let app = App::new(store.clone(), super::serve::loader(global, Vec::new(), store))?;
    app.documents.recover()?;
    let stop = app.stop.clone();
    tokio::select! {
        taken = jobs::work(Arc::clone(&app), wait) => {
            output::say(&match taken {
                None => "another process does the jobs".to_owned(),
                Some(0) => "no job is due; `larder jobs` lists those that wait".to_owned(),
                Some(taken) => format!("{} taken up; `larder jobs` lists what is left", counted(taken as u64, "job")),
            });
            if context.global.format == Format::Json {
                output::json(&json!({ "taken": taken }))?;
            }
        }
        () = async {
            serve::asked_to_stop().await;
            stop.cancel();
            // What is being done is put back into the queue.
            std::future::pending().await
        } => {}
    }
    Ok(())
}

/// Starts a process that does the jobs which are due, unless there are none, the settings forbid it, or another process
/// does them. Nobody waits for it, and what it cannot do stays in the queue.
pub fn take_up(global: &Global) {
    let started = CommandContext::new(global.clone()).and_then(|context| {
        let home = context.config.home();
        if !context.config.detaches_jobs() || !Store::exists(home) {
            return Ok(());
        }
        let store = context.whole_store()?;
        let queue = store.job_queue();
        if queue.next_due()?.is_none_or(|due| due > store.now()) || queue.acquire()?.is_none() {
            return Ok(());
        }
        let mut command = Command::new(std::env::current_exe().map_err(CliError::Runtime)?);
        command.args(["jobs", "work", "--wait", &LINGERS.to_string()]).arg("--home").arg(home);
        if let Some(project) = &global.project {
            command.arg("--project").arg(project);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in the terminal is not meant for it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().map(drop).map_err(CliError::Runtime)
    });
    if let Err(error) = started {
        tracing::warn!("background jobs were not taken up: {error}");
    }
}
