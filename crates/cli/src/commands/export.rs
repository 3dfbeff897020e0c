//! `larder export`: writes everything of a user to a folder.

use std::path::Path;

use larder_text::words::counted;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(context: &CommandContext, who: &str, to: &Path) -> Result<(), CliError> {
    let report = context.documents_to_read()?.export(who, to)?;
    if context.global.format == Format::Json {
        return output::json(&report);
    }
    output::line(&format!(
        "{}, {}, {} of {who} in {}; manifest.json lists them",
        counted(report.rows, "row"),
        counted(report.contents, "content"),
        counted(report.documents, "document"),
        to.display()
    ))
}
