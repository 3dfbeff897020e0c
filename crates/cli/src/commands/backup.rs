//! `larder backup`: a copy of the home while it is in use.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use larder_store::{BackupReport, DocumentPlace, Store};
use larder_text::words::counted;
use serde_json::json;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{output, progress};

pub fn run(context: &CommandContext, target: &Path) -> Result<ExitCode, CliError> {
    if !Store::exists(context.config.home()) {
        let home = context.config.home().display();
        return Err(CliError::Fixable(format!("there is no store in {home}; name its folder with --home")));
    }
    require_outside(context.config.home(), target)?;
    let store = context.store_to_read()?;
    let bar = progress::spinner();
    let made = store.backup(target, &|contents| bar.set_message(counted(contents, "content")));
    bar.finish_and_clear();
    let report = made?;
    match context.config.document_place() {
        DocumentPlace::Folder(folder) if folder == context.config.home().join("documents") => {}
        DocumentPlace::Folder(folder) => {
            output::say(&format!(
                "the documents in {} are not part of it; copy that folder too",
                folder.display()
            ));
        }
        DocumentPlace::Url(url) => output::say(&format!("the documents at {url} are not part of it")),
    }
    print(context, &report, "backed up to", target)
}

/// Fails if the folder for the backup is inside the home: what it protects against would take it along, and every later
/// backup would look at the key in it.
fn require_outside(home: &Path, target: &Path) -> Result<(), CliError> {
    let found = |path: &Path| std::path::absolute(path).ok().and_then(|path| existing(&path));
    match found(home).zip(found(target)) {
        Some((home, target)) if target.starts_with(&home) => Err(CliError::Fixable(format!(
            "{} is inside the home {}, and would be lost with it; name a folder outside of it",
            target.display(),
            home.display()
        ))),
        _ => Ok(()),
    }
}

/// A path of which a part may not exist yet, without links in the part that does.
fn existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    })
}

/// Prints what was copied; problems are a failure of storage.
pub fn print(
    context: &CommandContext,
    report: &BackupReport,
    done: &str,
    target: &Path,
) -> Result<ExitCode, CliError> {
    if context.global.format == Format::Json {
        output::json(&json!({"target": target, "report": report}))?;
    } else {
        output::line(&format!(
            "{}, {}, {} {done} {}",
            counted(report.pointers, "pointer"),
            counted(report.contents, "content"),
            counted(report.documents, "document"),
            target.display()
        ))?;
        for problem in &report.problems {
            output::line(&format!("  {problem}"))?;
        }
    }
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}
