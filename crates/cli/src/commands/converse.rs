//! `larder converse`: a conversation of a type in the terminal.

mod show;

use std::collections::BTreeSet;
use std::process::ExitCode;

use larder_conversation::actions::OPEN;
use larder_conversation::memory::{EVERYTHING, consent_text};
use larder_conversation::sharing::NewShare;
use larder_conversation::{ALONE, Conversation, Conversations, Reply};
use larder_core::output::OutputEvent;
use larder_engine::executor::{ProgressObserver, RunReceipt};
use larder_store::{ConversationMessage, Speaker};
use larder_text::tokens::Counter;

use super::jobs;
use crate::args::{ConverseArgs, Format};
use crate::context::{CommandContext, text_layers};
use crate::error::CliError;
use crate::keyboard::Keyboard;
use crate::{output, stop};

/// The commands besides messages.
const COMMANDS: &str =
    "/new, /edit, /again, /delete, /act, /share, /release, /confirm, /memory, /window, /help and /quit";

/// What they do.
const HELP: &str = "\
/new [ASIDE]          begins a session, in an aside if one is named
/edit TEXT            says TEXT in place of your last message
/again                has your last message answered once more
/delete               erases your last message with its reply
/act [NAME [TEXT]]    starts an action, or lists what can be started
/share [@NAME …] [TEXT]  previews a text to share, without one the newest draft
/release ACTION TEXT  previews a statement for an action that waits for everyone's
/confirm              gives what the newest preview shows
/memory [allow | revoke | forget ID]
                      lists what is remembered of you, lets it be used in later sessions or no
                      longer, or erases a fact
/window               prints what was sent for the last reply, and why
/quit                 ends the conversation, which can be continued";

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
        output::say("the reply begins anew:");
    }
    fn takes_restarts(&self) -> bool {
        true
    }
}

pub async fn run(context: &CommandContext, args: ConverseArgs) -> Result<ExitCode, CliError> {
    let embedding = context.config.conversation_embedding().map(str::to_owned);
    let all = Conversations::new(context.engine()?, embedding);
    let printer = Printer { is_plain: context.global.format == Format::Plain };
    if let (Some(kind), Some(text)) = (&args.kind, &args.start) {
        context.ensure_weights(args.yes, || Ok(text_layers())).await?;
        show::started(&all.start(kind, text, &printer).await?, printer.is_plain)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(conversation) = conversation(context, &all, &args)? else {
        list(context, &all)?;
        return Ok(ExitCode::SUCCESS);
    };
    context.ensure_weights(args.yes, || Ok(text_layers())).await?;
    context.note_on_layers(&all.engine);
    let is_plain = printer.is_plain;
    let interactive = output::is_interactive();
    let (id, name) = (conversation.id(), conversation.participant());
    if interactive {
        output::say(&format!("conversation {id} as {name}; {COMMANDS} are commands, Ctrl-D ends it"));
    } else if is_plain {
        let again = command_again(&conversation)?;
        output::say(&format!("conversation {id} as {name}; `{again}` continues it"));
    }
    let keyboard = Keyboard::default();
    let mut last: Option<Reply> = None;
    // Whether a message may wait because its model failed, now or when the conversation was left.
    let mut may_wait = true;
    let mut failure: Option<CliError> = None;
    // Among piped lines, the last failure is reported at the end, and decides the exit code.
    let mut failed = |error: CliError| {
        if interactive {
            output::error(&error.to_string());
        } else if let Some(earlier) = failure.replace(error) {
            output::error(&earlier.to_string());
        }
    };
    begin(&conversation, &printer).await.unwrap_or_else(&mut failed);
    let mut shown = BTreeSet::new();
    loop {
        show::received(&conversation, &mut shown, is_plain).unwrap_or_else(&mut failed);
        if interactive {
            output::say("\nyou:");
        }
        let line = tokio::select! {
            line = keyboard.line() => line?,
            () = stop::requested() => None,
        };
        let Some(line) = line else { break };
        let line = line.trim();
        match line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim())) {
            ("", _) => continue,
            ("/quit", _) => break,
            ("/new", aside) => new_session(&conversation, aside, &printer).await.unwrap_or_else(&mut failed),
            ("/help", _) => output::say(HELP),
            ("/window", _) => match &last {
                Some(reply) => show::window(&conversation, &conversation.record(reply.number)?, is_plain)?,
                None => output::say("there is no reply yet"),
            },
            ("/memory", rest) => memory(&conversation, rest, is_plain).unwrap_or_else(&mut failed),
            (command @ ("/edit" | "/again" | "/delete"), rest) => {
                match change_last(&conversation, command, rest, &printer).await {
                    Ok(reply) => last = reply,
                    Err(error) => {
                        may_wait = true;
                        failed(error);
                    }
                }
            }
            (command @ ("/act" | "/share" | "/release" | "/confirm"), rest) => {
                if let Err(error) = act(&conversation, command, rest, &printer).await {
                    failed(error);
                }
            }
            (command, _) if command.starts_with('/') => {
                failed(CliError::Usage(format!("there is no command {command}; use {COMMANDS}")));
            }
            _ => {
                let waiting = answer_waiting(&conversation, std::mem::take(&mut may_wait), &printer).await;
                waiting.unwrap_or_else(&mut failed);
                match conversation.say(line, &printer).await {
                    Ok(reply) => {
                        show::reply(&conversation, &reply, is_plain)?;
                        last = Some(reply);
                    }
                    Err(error) => {
                        may_wait = true;
                        failed(error.into());
                    }
                }
            }
        }
        jobs::take_up(&context.global);
    }
    if interactive && is_plain {
        output::say(&format!("`{}` continues this conversation", command_again(&conversation)?));
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The command that continues a conversation. A user may have other names in it, so the name is left out only for who is
/// alone.
fn command_again(conversation: &Conversation) -> Result<String, CliError> {
    let (id, name) = (conversation.id(), conversation.participant());
    let is_alone = name == ALONE && conversation.others()?.is_empty();
    let name = if is_alone { String::new() } else { format!(" --as {name}") };
    Ok(format!("larder converse --continue {id}{name}"))
}

/// Answers what waits for a reply before the next message, so that the person reads it, if anything may wait.
async fn answer_waiting(
    conversation: &Conversation,
    may_wait: bool,
    printer: &Printer,
) -> Result<(), CliError> {
    if !may_wait {
        return Ok(());
    }
    let waiting = conversation.messages(None)?.into_iter().filter(|message| message.pending);
    for message in waiting {
        if printer.is_plain {
            output::say(&format!("first, the reply to \"{}\":", output::visible(&message.text)));
        }
        show::reply(conversation, &conversation.answer(message.number, printer).await?, printer.is_plain)?;
    }
    Ok(())
}

/// Begins a session, in an aside if one is named.
async fn new_session(conversation: &Conversation, aside: &str, printer: &Printer) -> Result<(), CliError> {
    let session = conversation.begin_session(Some(aside).filter(|aside| !aside.is_empty())).await?;
    output::say(&format!("session {session}"));
    begin(conversation, printer).await
}

/// Says the last message in other words, has it answered once more, or erases it with its reply.
async fn change_last(
    conversation: &Conversation,
    command: &str,
    text: &str,
    printer: &Printer,
) -> Result<Option<Reply>, CliError> {
    if command == "/delete" {
        let (session, _) = conversation.standing()?;
        let messages = conversation.messages(Some(session))?;
        let is_own = |message: &&ConversationMessage| message.speaker == Speaker::Participant;
        let Some(last) = messages.iter().rfind(is_own) else {
            return Err(CliError::Usage("there is no message to erase in this session".to_owned()));
        };
        conversation.delete_message(last.number).await?;
        output::say(&format!("erased: {}", output::visible(&last.text)));
        return Ok(None);
    }
    if command == "/edit" && text.is_empty() {
        return Err(CliError::Usage("/edit needs the text to say instead".to_owned()));
    }
    let posted = conversation.revise(Some(text).filter(|_| command == "/edit"), None).await?;
    let reply = conversation.answer(posted.number, printer).await?;
    show::reply(conversation, &reply, printer.is_plain)?;
    Ok(Some(reply))
}

/// Lists what is remembered of the participant, or changes that.
fn memory(conversation: &Conversation, rest: &str, is_plain: bool) -> Result<(), CliError> {
    let counter = Counter::cl100k();
    let memory = conversation.memory(&counter);
    match rest.split_once(' ').map_or((rest, ""), |(what, id)| (what, id.trim())) {
        ("", _) => return show::memory(conversation, &memory, is_plain),
        ("allow", "") => {
            let consent = memory.grant(EVERYTHING, &consent_text(None))?;
            output::say(&format!("agreed: {}\n/memory revoke ends this", consent.shown));
        }
        ("revoke", "") => {
            let Some(id) = memory.consent_to_everything()? else {
                let help = "you have not agreed that everything may be used in later sessions; consents to single kinds of \
                            facts are on the page of the conversation";
                return Err(CliError::Usage(help.to_owned()));
            };
            memory.revoke(&id)?;
            output::say(
                "revoked: what was made under this consent is used no more, and is erased within a minute",
            );
        }
        ("forget", id) if !id.is_empty() => {
            if !memory.erase(id)? {
                let id = output::visible(id);
                return Err(CliError::Usage(format!("no fact {id} is remembered; /memory lists them")));
            }
            output::say("forgotten");
        }
        _ => {
            return Err(CliError::Usage(
                "use /memory, /memory allow, /memory revoke or /memory forget ID".to_owned(),
            ));
        }
    }
    Ok(())
}

/// Has the assistant speak first where the stage says so.
async fn begin(conversation: &Conversation, printer: &Printer) -> Result<(), CliError> {
    if conversation.actions()?.iter().any(|name| name == OPEN) {
        act(conversation, "/act", OPEN, printer).await?;
    }
    Ok(())
}

/// Does what a participant starts besides messages: actions, and sharing, which is previewed and then confirmed.
async fn act(
    conversation: &Conversation,
    command: &str,
    rest: &str,
    printer: &Printer,
) -> Result<(), CliError> {
    let is_plain = printer.is_plain;
    let (first, more) = rest.split_once(' ').map_or((rest, ""), |(first, more)| (first, more.trim()));
    let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    match command {
        "/act" if first.is_empty() => output::say(&show::actions(conversation)?),
        "/act" => {
            let result = conversation.act(first, said(more).as_deref(), printer).await?;
            show::result(conversation, &result, is_plain)?;
        }
        "/release" => {
            let new = NewShare { purpose: Some(first.to_owned()), text: said(more), ..NewShare::default() };
            show::preview(conversation, &conversation.preview_share(&new, printer).await?, is_plain)?;
        }
        "/share" => {
            let (to, text) = addressed(conversation, rest)?;
            let new = NewShare { to, text: said(&text), ..NewShare::default() };
            show::preview(conversation, &conversation.preview_share(&new, printer).await?, is_plain)?;
        }
        _ => {
            let Some(preview) = conversation.preview()? else {
                let help = "there is no preview to confirm; /share or /release makes one";
                return Err(CliError::Usage(help.to_owned()));
            };
            let shared = conversation.share(&preview.confirm, printer).await?;
            if !is_plain {
                return show::json(conversation, &shared);
            }
            let to = shared.share.to.join(", ");
            let what = shared
                .share
                .purpose
                .as_ref()
                .map_or(format!("given to {to}"), |purpose| format!("released for {purpose}"));
            output::say(&format!("{what} · stage {}", shared.stage));
            if let Some(result) = &shared.result {
                show::result(conversation, result, is_plain)?;
            }
        }
    }
    Ok(())
}

/// The participants that a text begins with, as `@NAME`, and the text behind; without names, all other participants.
fn addressed(conversation: &Conversation, text: &str) -> Result<(Vec<String>, String), CliError> {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some(named) = rest.strip_prefix('@') {
        let (name, behind) = named.split_once(' ').unwrap_or((named, ""));
        names.push(name.to_owned());
        rest = behind.trim_start();
    }
    if names.is_empty() {
        names = conversation.others()?;
    }
    if names.is_empty() {
        let help = "nobody else takes part; begin a conversation with --with NAME to share something";
        return Err(CliError::Usage(help.to_owned()));
    }
    Ok((names, rest.to_owned()))
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
