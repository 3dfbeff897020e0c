//! `larder converse`: a conversation of a type in the terminal.

use std::process::ExitCode;

use larder_conversation::{ALONE, Conversation, Conversations, Reply};
use larder_core::output::OutputEvent;
use larder_engine::executor::{ProgressObserver, RunReceipt};

use super::jobs;
use crate::args::{ConverseArgs, Format};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::keyboard::Keyboard;
use crate::output;

/// Prints replies as they are written.
struct Printer {
    is_plain: bool,
}

impl ProgressObserver for Printer {
    fn stage(&self, text: &str) {
        tracing::info!("{text}");
    }
    fn packed(&self, _: &RunReceipt) {}
    fn wants_output(&self) -> bool {
        self.is_plain
    }
    fn output(&self, event: &OutputEvent) {
        if let OutputEvent::Reply(text) = event {
            // A closed pipe ends the program with the next line.
            let _ = output::bytes(output::visible(text).as_bytes());
        }
    }
    fn restarted(&self) {
        let _ = output::bytes(b"\n");
        output::say("the model was changed; the reply begins anew:");
    }
}

pub async fn run(context: &CommandContext, args: ConverseArgs) -> Result<ExitCode, CliError> {
    let embedding = context.config.embedding().map(str::to_owned);
    let all = Conversations::new(context.engine()?, embedding);
    let Some(conversation) = conversation(context, &all, &args)? else {
        list(context, &all)?;
        return Ok(ExitCode::SUCCESS);
    };
    context.ensure_weights(false).await?;
    let is_plain = context.global.format == Format::Plain;
    let interactive = output::is_interactive();
    if interactive {
        let (id, name) = (conversation.id(), conversation.participant());
        output::say(&format!(
            "conversation {id} as {name}; /new, /window and /quit are commands, Ctrl-D ends it"
        ));
    }
    let keyboard = Keyboard::default();
    let printer = Printer { is_plain };
    let mut last: Option<Reply> = None;
    loop {
        if interactive {
            output::say("\nyou:");
        }
        let line = tokio::select! {
            line = keyboard.line() => line?,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(line) = line else { break };
        let line = line.trim();
        match line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim())) {
            ("", _) => continue,
            ("/quit", _) => break,
            ("/new", aside) => {
                match conversation.begin_session(Some(aside).filter(|aside| !aside.is_empty())) {
                    Ok(session) => output::say(&format!("session {session}")),
                    Err(error) => output::error(&error.to_string()),
                }
            }
            ("/window", _) => match &last {
                Some(reply) => output::json(&conversation.record(reply.number)?.window)?,
                None => output::say("there is no reply yet"),
            },
            (command, _) if command.starts_with('/') => {
                output::error(&format!("there is no command {command}; use /new, /window or /quit"));
            }
            _ => match conversation.say(line, &printer).await {
                Ok(reply) => {
                    print(&conversation, &reply, is_plain)?;
                    last = Some(reply);
                    jobs::take_up(&context.global);
                }
                Err(error) if interactive => output::error(&error.to_string()),
                Err(error) => return Err(error.into()),
            },
        }
    }
    if interactive && is_plain {
        let (id, name) = (conversation.id(), conversation.participant());
        let name = if name == ALONE { String::new() } else { format!(" --as {name}") };
        output::say(&format!("`larder converse --continue {id}{name}` continues this conversation"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The conversation that the options name, or a new one of their type.
fn conversation(
    context: &CommandContext,
    all: &Conversations,
    args: &ConverseArgs,
) -> Result<Option<Conversation>, CliError> {
    let own = args.name.as_deref();
    if let Some(id) = &args.resume {
        return Ok(Some(all.open(id, own)?));
    }
    let Some(kind) = &args.kind else { return Ok(None) };
    let user = &context.global.user;
    let mut participants: Vec<(String, String)> = Vec::new();
    if own.is_some() || !args.with.is_empty() {
        participants.push((own.unwrap_or(ALONE).to_owned(), user.clone()));
    }
    for other in &args.with {
        let (name, of) = other.split_once('=').unwrap_or((other, user));
        participants.push((name.to_owned(), of.to_owned()));
    }
    let record = all.begin(kind, "", &participants)?;
    let name = participants.first().map(|(name, _)| name.as_str());
    Ok(Some(all.open(&record.id, name)?))
}

/// The rest of a reply that was printed as it was written, or the reply as an object.
fn print(conversation: &Conversation, reply: &Reply, is_plain: bool) -> Result<(), CliError> {
    if !is_plain {
        return output::json(reply);
    }
    output::bytes(b"\n")?;
    if let Some(draft) = &reply.draft {
        output::text(&format!("\nDraft to share:\n{}", output::visible(draft)))?;
    }
    let mut facts = vec![format!("stage {}", reply.next_stage), reply.model.clone()];
    facts.push(format!("{} tokens in, {} out", reply.usage.input, reply.usage.output));
    facts.extend(reply.cost.map(|cost| format!("${cost}")));
    facts.push(format!("{} ms", reply.latency_ms));
    let window = conversation.record(reply.number)?.window;
    if window.left_out > 0 {
        facts.push(format!("{} messages did not fit", window.left_out));
    }
    if window.withheld > 0 {
        facts.push(format!("{} messages withheld", window.withheld));
    }
    if window.summarized > 0 {
        facts.push(format!("{} messages summarized", window.summarized));
    }
    output::say(&output::dim(&facts.join(" · ")));
    for problem in &reply.problems {
        output::say(&format!("note: {problem}"));
    }
    Ok(())
}

/// The conversations of the user, and the types.
fn list(context: &CommandContext, all: &Conversations) -> Result<(), CliError> {
    let conversations = all.engine.store.conversations().list()?;
    if context.global.format == Format::Json {
        return output::json(&conversations);
    }
    for conversation in &conversations {
        let names: Vec<&str> = conversation.participants.iter().map(|one| one.name.as_str()).collect();
        let (id, kind) = (&conversation.id, &conversation.kind);
        output::text(&format!(
            "{id}  {kind}  {}  {}",
            conversation.created,
            output::visible(&names.join(", "))
        ))?;
    }
    let types: Vec<String> = all
        .types
        .iter()
        .map(|loaded| format!("  larder converse {}: {}", loaded.kind.name, loaded.kind.description.trim()))
        .collect();
    output::say(&format!("begin a conversation with one of\n{}", types.join("\n")));
    Ok(())
}
