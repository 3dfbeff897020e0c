//! `larder share`: what may be published for all users, what is published, publishing and revoking.

use larder_agent::turn::TurnHost;
use larder_store::Publication;
use larder_text::words::counted;
use larder_tools::{ShareCandidate, ShareError, publish, share_candidates};
use serde_json::json;

use crate::args::{Format, ShareCommand};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::keyboard::Keyboard;
use crate::output;

pub async fn run(context: &CommandContext, command: Option<ShareCommand>) -> Result<(), CliError> {
    let store = context.whole_store()?;
    let documents = TurnHost::documents(&store, &context.config)?.user(&context.global.user)?;
    let fixable = |error: ShareError| match error {
        ShareError::Store(error) => error.into(),
        other => CliError::Fixable(other.to_string()),
    };
    let candidates = || share_candidates(&documents, store.now().into()).map_err(fixable);
    let changed = match command {
        Some(ShareCommand::List) | None => {
            return list(context, &candidates()?, &documents.store().publications().list()?);
        }
        Some(ShareCommand::Publish { id, yes }) => {
            let Some(candidate) = candidates()?.into_iter().find(|candidate| candidate.id == id) else {
                return Err(fixable(ShareError::NotOffered { id }));
            };
            output::say(&format!("all users will see, as published by {}:", context.global.user));
            statements(&candidate.statements).iter().for_each(|line| output::say(line));
            output::say(&format!("source: {}", output::visible(&candidate.source)));
            if !(yes || output::is_interactive() && confirm().await?) {
                return Err(CliError::Fixable("nothing was published; pass --yes to publish it".to_owned()));
            }
            publish(&documents, store.now().into(), &id, &candidate.statements).map_err(fixable)?
        }
        Some(ShareCommand::Revoke { id }) => {
            let revoked = documents.store().publications().revoke(id, false)?;
            output::say(&format!("revoked publication {id}"));
            return if context.global.format == Format::Json { output::json(&revoked) } else { Ok(()) };
        }
    };
    output::say(&format!("published; `larder share revoke {}` revokes it", changed.id));
    if context.global.format == Format::Json { output::json(&changed) } else { Ok(()) }
}

fn list(
    context: &CommandContext,
    candidates: &[ShareCandidate],
    published: &[Publication],
) -> Result<(), CliError> {
    if context.global.format == Format::Json {
        return output::json(&json!({"candidates": candidates, "published": published}));
    }
    if candidates.is_empty() && published.is_empty() {
        return output::line("nothing is published, and nothing may be");
    }
    for candidate in candidates {
        output::line(&format!(
            "may be published: {} ({})",
            candidate.id,
            counted(candidate.uses.into(), "use")
        ))?;
        statements(&candidate.statements).iter().try_for_each(|line| output::line(line))?;
    }
    for publication in published {
        let Publication { id, published_by, published_at, source, .. } = publication;
        output::line(&format!(
            "#{id} published by {published_by} at {published_at} (source: {})",
            output::visible(source)
        ))?;
        statements(&publication.statements).iter().try_for_each(|line| output::line(line))?;
    }
    Ok(())
}

/// Statements as lines in which nothing moves the cursor or hides other text.
fn statements(statements: &[String]) -> Vec<String> {
    statements.iter().map(|statement| format!("  {}", output::visible(statement))).collect()
}

async fn confirm() -> Result<bool, CliError> {
    output::say("Publish this? [y/N]");
    let line = Keyboard::default().line().await?;
    Ok(line.is_some_and(|line| matches!(line.trim(), "y" | "Y" | "yes")))
}
