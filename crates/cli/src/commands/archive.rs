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
    let counted = |count: u64, one: &str, many: &str| {
        if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
    };
    output::line(&format!(
        "{} and {} moved to the archive; links were updated in {}",
        counted(report.turns.len() as u64, "turn", "turns"),
        counted(report.research.len() as u64, "expired piece of research", "expired pieces of research"),
        counted(report.relinked, "other document", "other documents")
    ))
}
