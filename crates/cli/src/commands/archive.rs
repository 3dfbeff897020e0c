//! `larder archive`: moves old turns of a user to the archive.

use larder_agent::turn::TurnHost;
use larder_vault::Timestamp;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub async fn run(context: &CommandContext) -> Result<(), CliError> {
    let store = context.whole_store()?;
    let documents = TurnHost::documents(&store, &context.config)?;
    let now = i64::try_from(store.now().as_millis()).ok().and_then(Timestamp::from_millis);
    let now = now
        .ok_or_else(|| CliError::Fixable("the system clock is past the year 9999; correct it".to_owned()))?;
    let report = documents.archive(&context.global.user, now)?;
    if context.global.format == Format::Json {
        return output::json(&report);
    }
    output::line(&format!(
        "{} turns moved to the archive; links in {} other documents were updated",
        report.turns.len(),
        report.relinked
    ))
}
