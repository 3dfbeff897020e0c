//! `larder export`: writes everything of a user to a folder.

use std::path::Path;
use std::process::ExitCode;

use larder_text::words::counted;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(context: &CommandContext, who: &str, to: &Path) -> Result<ExitCode, CliError> {
    let report = context.documents_to_read()?.export(who, to)?;
    let code = if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) };
    if context.global.format == Format::Json {
        output::json(&report)?;
        return Ok(code);
    }
    output::line(&format!(
        "{}, {}, {} of {who} in {}; manifest.json lists them",
        counted(report.rows, "row"),
        counted(report.contents, "content"),
        counted(report.documents, "document"),
        to.display()
    ))?;
    for problem in &report.problems {
        output::line(&format!("  {problem}"))?;
    }
    Ok(code)
}
