//! What `larder turn` and `larder chat` share: opening, running until the end or Ctrl-C, confirming, printing.

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use larder_agent::turn::{AnswerSource, TurnError, TurnHost, TurnOutcome, TurnRequest, Turns};
use larder_store::DraftSummary;
use larder_vault::{Mode, TurnStatus};

use self::watch::Watch;
use crate::args::{Format, ModeArg, PlaceArgs, TurnFlags};
use crate::context::{CommandContext, text_layers};
use crate::error::CliError;
use crate::keyboard::Keyboard;
use crate::{files, output, stop};

pub mod confirm;
mod watch;

/// The exit code of programs that were asked to stop.
pub const STOPPED: u8 = 130;

/// How waiting for a turn ended.
pub enum Ended {
    Outcome(Box<TurnOutcome>),
    /// It was asked to; the turn is a draft.
    Stopped,
}

/// The turns of a user, with the keyboard for confirmations and the display of their progress.
pub struct TurnSession<'a> {
    context: &'a CommandContext,
    pub turns: Turns,
    pub keyboard: Arc<Keyboard>,
    watch: Watch,
}

impl<'a> TurnSession<'a> {
    pub async fn open(context: &'a CommandContext, flags: &TurnFlags) -> Result<Self, CliError> {
        context.require_tokenizers()?;
        context.ensure_weights(flags.yes, || Ok(text_layers())).await?;
        let store = context.whole_store()?;
        let user = store.user(&context.global.user)?.begun()?;
        let engine = context.engine_over(context.project()?, user, context.config.policy())?;
        context.note_on_layers(&engine);
        let (mut host, problems) = TurnHost::open(&store, &context.config).await?;
        for problem in problems {
            output::say(&format!("note: {problem}"));
        }
        let limits = &mut host.limits;
        limits.tokens = flags.max_tokens.or(limits.tokens);
        limits.cost = flags.max_cost.or(limits.cost);
        limits.time = flags.max_time.map(Duration::from_secs).or(limits.time);
        let (keyboard, watch) = (Arc::new(Keyboard::default()), Watch::new());
        let confirm = confirm::by(flags.yes, &keyboard, watch.clone());
        let turns = host.turns(engine, confirm)?;
        Ok(Self { context, turns, keyboard, watch })
    }

    /// Runs a turn until it ends or is stopped.
    pub async fn run(&self, request: &TurnRequest) -> Result<Ended, CliError> {
        self.until_stopped(self.turns.run(request, &self.watch)).await
    }

    /// Resumes a turn until it ends or is stopped.
    pub async fn resume(&self, number: u32) -> Result<Ended, CliError> {
        self.until_stopped(self.turns.resume(number, &self.watch)).await
    }

    async fn until_stopped(
        &self,
        turn: impl Future<Output = Result<TurnOutcome, TurnError>>,
    ) -> Result<Ended, CliError> {
        let ended = tokio::select! {
            outcome = turn => Some(outcome),
            () = stop::requested() => None,
        };
        self.watch.done();
        match ended {
            Some(outcome) => Ok(Ended::Outcome(Box::new(outcome?))),
            None => {
                let number = self.watch.turn();
                output::say(&format!("stopped; `larder turn resume {number}` resumes it"));
                Ok(Ended::Stopped)
            }
        }
    }

    /// Prints the answer and what its numbers lead to on standard output, and time and cost on standard error.
    pub fn print(&self, outcome: &TurnOutcome) -> Result<(), CliError> {
        if self.context.global.format == Format::Json {
            return output::json(outcome);
        }
        if let Some(text) = outcome.answer.as_ref().or(outcome.question.as_ref()) {
            output::text(text)?;
        }
        if !outcome.sources.is_empty() {
            let sources: Vec<String> = outcome.sources.iter().map(source).collect();
            output::text(&format!("\n{}", sources.join("\n")))?;
        }
        if let (TurnStatus::Failed, Some(reason)) = (outcome.status, &outcome.reason) {
            output::error(&format!("no answer: {}", output::visible(reason)));
        }
        output::say(&output::dim(&facts(outcome)));
        Ok(())
    }

    /// Prints the end of a turn, and returns the exit code.
    pub fn finish(&self, ended: Ended) -> Result<ExitCode, CliError> {
        let Ended::Outcome(outcome) = ended else { return Ok(ExitCode::from(STOPPED)) };
        self.print(&outcome)?;
        Ok(code(outcome.status))
    }

    /// Notes the turns that can be resumed, in one line.
    pub fn note_interrupted(&self) -> Result<(), CliError> {
        let drafts = self.turns.documents.drafts().interrupted()?;
        let Some(newest) = drafts.last() else { return Ok(()) };
        let number = newest.number;
        output::say(&match drafts.len() {
            1 => format!("note: {}; `larder turn resume {number}` resumes it", describe_interrupted(newest)),
            all => format!(
                "note: {all} turns were interrupted; `larder turn list` lists them, and `larder turn resume {number}` \
                 resumes the newest"
            ),
        });
        Ok(())
    }
}

/// An interrupted turn in words.
pub fn describe_interrupted(draft: &DraftSummary) -> String {
    let query: Vec<&str> = draft.query.split_whitespace().collect();
    let phase =
        draft.phase.map_or_else(|| "before phase 0".to_owned(), |phase| format!("after phase {phase}"));
    format!("turn {} was interrupted {phase}: {}", draft.number, shortened(&query.join(" ")))
}

/// The beginning of a text, up to the end of a word unless that is very long.
pub fn shortened(text: &str) -> String {
    /// Characters of the beginning.
    const SHOWN: usize = 80;
    /// Characters of it that are shown at least.
    const LEAST: usize = 60;
    let at = |characters: usize| text.char_indices().nth(characters).map(|(at, _)| at);
    let (Some(least), Some(end)) = (at(LEAST), at(SHOWN)) else { return text.to_owned() };
    let space = text[least..end].rfind(' ').filter(|_| !text[end..].starts_with(' '));
    let end = space.map_or(end, |space| least + space);
    format!("{}…", &text[..end])
}

/// The request for a turn.
pub fn request(query: String, place: &PlaceArgs) -> Result<TurnRequest, CliError> {
    let mode = match place.mode {
        ModeArg::Chat => Mode::Chat,
        ModeArg::Code => Mode::Code,
    };
    let workspace = match (&place.workspace, mode) {
        (Some(_), Mode::Chat) => {
            return Err(CliError::Usage("--workspace needs --mode code".to_owned()));
        }
        (None, Mode::Chat) => None,
        (folder, Mode::Code) => Some(folder.clone().unwrap_or_else(|| PathBuf::from("."))),
    };
    // A turn may be resumed from another folder.
    let workspace = workspace.map(files::folder).transpose()?;
    if let Some(folder) = workspace.as_ref().filter(|folder| folder.to_str().is_none()) {
        return Err(CliError::Usage(format!(
            "the workspace {} is not valid UTF-8, and the record of a turn can name no other; rename the folder",
            folder.display()
        )));
    }
    Ok(TurnRequest { query, mode, session: place.session.clone(), workspace })
}

fn code(status: TurnStatus) -> ExitCode {
    if status == TurnStatus::Failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// `[2] users/local/turns/turn_000001/research.md lp1-…`.
fn source(source: &AnswerSource) -> String {
    let pointer = source.pointer.as_ref().map(|pointer| format!(" {pointer}")).unwrap_or_default();
    format!("[{}] {}{pointer}", source.number, source.document)
}

fn facts(outcome: &TurnOutcome) -> String {
    let calls = match outcome.tool_calls {
        0 => String::new(),
        1 => " · 1 tool call".to_owned(),
        many => format!(" · {many} tool calls"),
    };
    let cost = outcome.cost.map(|cost| format!(", ${cost}")).unwrap_or_default();
    format!(
        "turn {} · {} · {}{calls} · {} tokens in, {} out{cost} · {:.1} s",
        outcome.turn,
        outcome.status,
        outcome.folder,
        outcome.usage.input,
        outcome.usage.output,
        outcome.latency_ms as f64 / 1000.0
    )
}
