//! `larder turn`: answers a question in all phases; resumes, drops, lists and shows turns.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use larder_agent::turn::TurnError;
use larder_store::{TurnRow, UserDocuments};
use larder_vault::VaultPath;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{Format, TurnArgs, TurnCommand, TurnFlags, misplaced, mistyped};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::files::read_text;
use crate::output;
use crate::turns::{TurnSession, describe_interrupted, request, shortened};

/// Characters of `archived` and the longest status in a list.
const STATUS: usize = 8;

pub async fn run(context: &CommandContext, args: TurnArgs) -> Result<ExitCode, CliError> {
    match (args.command, args.query) {
        (Some(TurnCommand::Resume { number, flags }), _) => resume(context, number, &flags).await,
        (Some(TurnCommand::Drop { number }), _) => drop_draft(context, number).await,
        (Some(TurnCommand::List { limit }), _) => list(context, limit).await,
        (Some(TurnCommand::Show { number, file }), _) => show(context, number, &file).await,
        (None, Some(query)) => {
            if let Some(hint) = mistyped(&query).or_else(|| misplaced([query.as_str()])) {
                return Err(CliError::Usage(hint));
            }
            let query = if query == "-" { piped()? } else { query };
            let request = request(query, &args.place)?;
            let turns = TurnSession::open(context, &args.flags).await?;
            turns.note_interrupted()?;
            let ended = turns.run(&request).await?;
            turns.finish(ended)
        }
        (None, None) => Err(CliError::Usage("expected a question".to_owned())),
    }
}

/// The query on standard input, without the line break with which programs end what they print.
fn piped() -> Result<String, CliError> {
    let mut query = read_text(Path::new("-"))?;
    if query.ends_with('\n') {
        query.pop();
        query.truncate(query.strip_suffix('\r').map_or(query.len(), str::len));
    }
    Ok(query)
}

async fn resume(
    context: &CommandContext,
    number: Option<u32>,
    flags: &TurnFlags,
) -> Result<ExitCode, CliError> {
    let documents = documents(context).await?;
    let number = match number {
        Some(number) => number,
        None => match documents.drafts().interrupted()?.as_slice() {
            [] => {
                // Those that are left are leased.
                let running = documents.drafts().list()?;
                for draft in &running {
                    output::say(&format!("turn {} is running: {}", draft.number, draft.query));
                }
                if running.is_empty() {
                    output::say("no turn was interrupted");
                }
                if context.global.format == Format::Json {
                    let numbers: Vec<u32> = running.iter().map(|draft| draft.number).collect();
                    output::json(&json!({"resumed": null, "running": numbers}))?;
                }
                return Ok(ExitCode::SUCCESS);
            }
            [draft] => draft.number,
            drafts => {
                let lines: Vec<String> =
                    drafts.iter().map(|draft| format!("\n  {}", describe_interrupted(draft))).collect();
                return Err(CliError::Usage(format!(
                    "several turns were interrupted; give the number of the one to resume:{}",
                    lines.concat()
                )));
            }
        },
    };
    let turns = TurnSession::open(context, flags).await?;
    let ended = turns.resume(number).await?;
    turns.finish(ended)
}

async fn drop_draft(context: &CommandContext, number: u32) -> Result<ExitCode, CliError> {
    context.require_writable()?;
    let documents = documents(context).await?;
    let draft = documents.drafts().get(number)?.ok_or(TurnError::NoDraft(number))?;
    // The lease keeps other processes from resuming it meanwhile.
    let Some(_lease) = documents.leases().acquire(number)? else {
        return Err(TurnError::Running(number).into());
    };
    // What the turn remembered stays, and would link to a document that will never be written.
    let context_of_turn = documents.place().turn(number).context();
    if let Err(error) = larder_tools::forget_source(&documents, draft.created_at, &context_of_turn) {
        tracing::warn!(%error, "memory still links to the dropped turn");
    }
    documents.drafts().discard(number)?;
    output::say(&format!("turn {number} was dropped"));
    if context.global.format == Format::Json {
        output::json(&json!({"dropped": number}))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(context: &CommandContext, limit: u64) -> Result<ExitCode, CliError> {
    let documents = documents(context).await?;
    let drafts = documents.drafts().list()?;
    let mut turns = documents.catalog().recent_turns(limit.saturating_add(1), None, None)?;
    let has_older = turns.len() as u64 > limit;
    if has_older {
        turns.pop();
    }
    // The catalog has the query with its references resolved.
    let asked = |turn: &TurnRow| -> Result<String, CliError> {
        let context = documents.files().read(&turn.context)?.unwrap_or_default();
        let asked = larder_vault::original_query(&String::from_utf8_lossy(&context));
        Ok(asked.unwrap_or_else(|| turn.query.clone()))
    };
    if context.global.format == Format::Json {
        let draft = |draft: &larder_store::DraftSummary| {
            json!({
                "number": draft.number, "query": draft.query, "phase": draft.phase, "created_at": draft.created_at,
                "running": documents.leases().is_held(draft.number),
            })
        };
        let drafts: Vec<Value> = drafts.iter().map(draft).collect();
        let turns = turns.iter().map(|turn| Ok(AskedTurn { asked: asked(turn)?, turn }));
        let turns: Vec<AskedTurn<'_>> = turns.collect::<Result<_, CliError>>()?;
        output::json(&json!({"unfinished": drafts, "turns": turns, "has_older": has_older}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for draft in drafts {
        if documents.leases().is_held(draft.number) {
            output::text(&format!("turn {} is running: {}", draft.number, shortened(&draft.query)))?;
        } else {
            output::text(&format!(
                "{}; `larder turn resume {}` resumes it",
                describe_interrupted(&draft),
                draft.number
            ))?;
        }
    }
    if turns.is_empty() {
        output::say("there are no turns yet");
    }
    for turn in turns {
        output::text(&line(&turn, &asked(&turn)?))?;
    }
    if has_older {
        output::say(&format!("there are older turns; --limit {} lists more", limit.saturating_mul(2)));
    }
    Ok(ExitCode::SUCCESS)
}

/// A turn in JSON.
#[derive(Serialize)]
struct AskedTurn<'t> {
    /// What the user asked, before references were resolved.
    asked: String,
    #[serde(flatten)]
    turn: &'t TurnRow,
}

fn line(turn: &TurnRow, asked: &str) -> String {
    let status = if turn.archived { "archived".to_owned() } else { turn.status.to_string() };
    let query: Vec<&str> = asked.split_whitespace().collect();
    let query = shortened(&query.join(" "));
    format!("{:>6} {} {status:<STATUS$} {query}", turn.number, turn.created_at)
}

/// A document of a committed turn, or of an unfinished one as of its last checkpoint.
async fn show(context: &CommandContext, number: u32, file: &str) -> Result<ExitCode, CliError> {
    let documents = documents(context).await?;
    let (folder, files, bytes) = match documents.catalog().turn(number)? {
        Some(turn) => committed(&documents, &turn, file).await?,
        None => match documents.drafts().get(number)? {
            Some(mut draft) => {
                let files = draft.files.keys().cloned().collect();
                (draft.place.folder().to_owned(), files, draft.files.remove(file))
            }
            None => {
                return Err(CliError::Fixable(format!("there is no turn {number}; see `larder turn list`")));
            }
        },
    };
    let Some(bytes) = bytes else {
        let words = if files.is_empty() {
            format!(
                "turn {number} has no documents in {folder}; if they were moved, or `documents.place` was changed, run \
                 `larder reindex`"
            )
        } else {
            format!("turn {number} has no {file}; it has {}", files.join(", "))
        };
        return Err(CliError::Fixable(words));
    };
    if context.global.format == Format::Json {
        let text = String::from_utf8(bytes).ok();
        output::json(&json!({"turn": number, "folder": folder, "files": files, "file": file, "text": text}))?;
    } else if std::io::stdout().is_terminal() {
        output::text(&String::from_utf8_lossy(&bytes))?;
    } else {
        output::bytes(&bytes)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn committed(
    documents: &UserDocuments,
    turn: &TurnRow,
    file: &str,
) -> Result<(String, Vec<String>, Option<Vec<u8>>), CliError> {
    let folder = turn.context.folder().to_owned();
    let inside = |path: VaultPath| path.as_str().strip_prefix(&folder).map(|name| name[1..].to_owned());
    let files: Vec<String> = documents.files().list(&folder)?.into_iter().filter_map(inside).collect();
    let path = VaultPath::new(&format!("{folder}/{file}")).filter(|_| files.iter().any(|name| name == file));
    let bytes = match path {
        Some(path) => documents.files().read(&path)?,
        None => None,
    };
    Ok((folder, files, bytes))
}

async fn documents(context: &CommandContext) -> Result<UserDocuments, CliError> {
    let documents = context.documents_to_read()?;
    Ok(documents.user(&context.global.user)?)
}
