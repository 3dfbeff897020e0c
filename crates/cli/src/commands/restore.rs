//! `larder restore`: a home from a backup.

use std::path::Path;
use std::process::ExitCode;

use larder_store::{Store, StoreOptions};

use super::backup::print;
use crate::context::CommandContext;
use crate::error::CliError;

pub fn run(context: &CommandContext, backup: &Path) -> Result<ExitCode, CliError> {
    let home = context.config.home();
    let report = Store::restore(backup, home, StoreOptions::default())?;
    print(context, &report, "restored to", home)
}
