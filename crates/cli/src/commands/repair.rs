//! `larder repair`: rebuilds a lost or damaged index from the originals.

use std::process::ExitCode;

use larder_agent::turn::TurnHost;
use larder_store::{Store, StoreOptions};
use larder_text::words::counted;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{output, progress};

pub fn run(context: &CommandContext) -> Result<ExitCode, CliError> {
    let home = context.config.home();
    if !home.is_dir() {
        let home = home.display();
        return Err(CliError::Fixable(format!("there is no store in {home}; name its folder with --home")));
    }
    let bar = progress::spinner();
    bar.set_message("reading the contents");
    let repaired = Store::repair(home, StoreOptions::default());
    bar.finish_and_clear();
    let report = repaired?;
    if !report.intact {
        // What documents refer to does not expire: the new index has to know it.
        TurnHost::documents(&context.whole_store()?, &context.config)?.reindex(&|_| {})?;
    }
    let code = if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) };
    if context.global.format == Format::Json {
        output::json(&report)?;
        return Ok(code);
    }
    if report.intact {
        output::line("the index is intact; nothing was changed")?;
        return Ok(code);
    }
    output::line(&format!(
        "the new index has {} and {} of {}",
        counted(report.pointers, "pointer"),
        counted(report.contents, "content"),
        counted(report.users, "user")
    ))?;
    output::line("lost, as only the old index had it:")?;
    for lost in &report.lost {
        output::line(&format!("  {lost}"))?;
    }
    output::line(
        "requests need a key from now on: `larder keys create` makes one; if there was none before, set \
         `require_keys = false` under [gateway] in larder.toml",
    )?;
    if let Some(path) = &report.damaged_index {
        output::line(&format!(
            "the damaged index is now {}; delete it when nobody needs it",
            path.display()
        ))?;
    }
    for problem in &report.problems {
        output::line(&format!("  {problem}"))?;
    }
    Ok(code)
}
