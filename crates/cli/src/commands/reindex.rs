//! `larder reindex`: the index over the documents, built anew from them.

use larder::turn::TurnHost;

use crate::args::Format;
use crate::context::Context;
use crate::error::CliError;
use crate::{output, progress};

pub async fn run(context: &Context) -> Result<(), CliError> {
    let documents = TurnHost::documents(&context.whole_store()?, &context.config).await?;
    let bar = progress::spinner();
    let report = documents.reindex(&|turns| bar.set_message(format!("{turns} turns"))).await;
    bar.finish_and_clear();
    let report = report?;
    if context.global.format == Format::Json {
        return output::json(&report);
    }
    output::line(&format!(
        "{} documents, {} turns, {} users; {} files could not be read",
        report.documents, report.turns, report.users, report.unreadable
    ))
}
