//! `larder forget`: deletes everything of a user.

use larder_agent::turn::TurnHost;
use larder_store::StoreError;
use serde_json::json;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::keyboard::Keyboard;
use crate::output;

pub async fn run(context: &CommandContext, who: &str, yes: bool) -> Result<(), CliError> {
    let store = context.whole_store()?;
    let documents = TurnHost::documents(&store, &context.config)?;
    if !documents.knows(who)? {
        return Err(StoreError::UnknownUser { user: who.to_owned() }.into());
    }
    let agreed = yes || (output::is_interactive() && confirm(who).await?);
    if !agreed {
        let words = format!(
            "nothing was deleted: the data of {who} cannot be restored afterwards; pass --yes to delete it"
        );
        return Err(CliError::Fixable(words));
    }
    documents.forget(who)?;
    let is_overwritten = store.empty_log()?;
    if context.global.format == Format::Json {
        return output::json(&json!({"forgotten": who, "overwritten": is_overwritten}));
    }
    output::say(&format!("deleted everything of {who}"));
    if !is_overwritten {
        output::say(
            "note: bytes of it stay in the log of writes until the processes that read the store now end: \
             `larder gc` empties it then, or a server within the hour",
        );
    }
    Ok(())
}

async fn confirm(who: &str) -> Result<bool, CliError> {
    output::say(&format!("Delete every document, turn, run, pointer and key of {who}? [y/N]"));
    let line = Keyboard::default().line().await?;
    Ok(line.is_some_and(|line| matches!(line.trim(), "y" | "Y" | "yes")))
}
