//! `larder archive`: moves old turns of a user to the archive.

use larder_agent::turn::TurnHost;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub async fn run(context: &CommandContext) -> Result<(), CliError> {
    let store = context.whole_store()?;
    let documents = TurnHost::documents(&store, &context.config)?;
    let report = documents.archive(&context.global.user, store.now().into())?;
    documents.roll_up()?;
    if context.global.format == Format::Json {
        return output::json(&report);
    }
    output::line(&format!(
        "{} turns and {} expired pieces of research moved to the archive; links in {} other documents were updated",
        report.turns.len(),
        report.research.len(),
        report.relinked
    ))
}
