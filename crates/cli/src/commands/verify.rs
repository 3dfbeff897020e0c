//! `larder verify`: checks that everything in the store is intact.

use larder_text::words::counted;
use std::process::ExitCode;

use serde_json::json;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(context: &CommandContext) -> Result<ExitCode, CliError> {
    context.note_missing_store();
    let report = context.user_to_read()?.store().verify()?;
    let problems: Vec<String> =
        report.problems.iter().map(|problem| format!("{}: {}", problem.what, problem.error)).collect();
    if context.global.format == Format::Json {
        output::json(&json!({
            "pointers": report.pointers,
            "tombstones": report.tombstones,
            "runs": report.runs,
            "blobs": report.blobs,
            "content_bytes": report.content_bytes,
            "problems": problems,
        }))?;
    } else {
        let (pointers, runs, blobs) = (report.pointers, report.runs, report.blobs);
        let expired = match report.tombstones {
            0 => String::new(),
            expired => format!(", {expired} expired originals"),
        };
        output::line(&format!(
            "{}, {}, {}{expired}: {}",
            counted(pointers, "pointer"),
            counted(runs, "run"),
            counted(blobs, "blob"),
            counted(problems.len() as u64, "problem")
        ))?;
        for problem in &problems {
            output::line(&format!("  {problem}"))?;
        }
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}
