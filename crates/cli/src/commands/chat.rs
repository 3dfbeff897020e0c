//! `larder chat`: a conversation in which each line is a turn.

use std::process::ExitCode;

use larder_vault::TurnStatus;

use super::jobs;
use crate::args::{ChatArgs, Format};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::turns::{Ended, TurnSession, request};
use crate::{output, stop};

pub async fn run(context: &CommandContext, args: ChatArgs) -> Result<ExitCode, CliError> {
    let mut request = request(String::new(), &args.place)?;
    let turns = TurnSession::open(context, &args.flags).await?;
    let session = request.session.get_or_insert_with(|| new_session(&turns)).clone();
    turns.note_interrupted()?;
    let interactive = output::is_interactive();
    if interactive {
        output::say(&format!("session {session}; Ctrl-D ends it, Ctrl-C stops a turn"));
    }
    // Among piped questions, the last failure is reported at the end, and decides the exit code.
    let mut failure: Option<Result<ExitCode, CliError>> = None;
    let mut failed = |how: Result<ExitCode, CliError>| {
        if let Some(Err(earlier)) = failure.replace(how) {
            output::error(&earlier.to_string());
        }
    };
    loop {
        if interactive {
            output::say("\nyou:");
        }
        let line = tokio::select! {
            line = turns.keyboard.line() => line?,
            () = stop::requested() => None,
        };
        let Some(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        request.query = line;
        match turns.run(&request).await {
            Ok(Ended::Outcome(ended)) => {
                turns.print(&ended)?;
                if ended.status == TurnStatus::Failed && !interactive {
                    failed(Ok(ExitCode::FAILURE));
                }
                // The turn is summarized while the user types the next question.
                jobs::take_up(&context.global);
            }
            Ok(Ended::Stopped) => {}
            // The provider may have recovered by the next question; the turn can be resumed later.
            Err(error) if interactive => output::error(&error.to_string()),
            Err(error) => failed(Err(error)),
        }
    }
    if interactive && context.global.format == Format::Plain {
        output::say(&format!("`larder chat --session {session}` continues this conversation"));
    }
    failure.unwrap_or(Ok(ExitCode::SUCCESS))
}

/// A session name that is new for this user.
fn new_session(turns: &TurnSession<'_>) -> String {
    format!("chat-{}", turns.turns.engine.store.store().now().as_millis())
}
