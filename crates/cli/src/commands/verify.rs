//! `larder verify`: is everything in the store whole?

use std::process::ExitCode;

use crate::args::Format;
use crate::context::Context;
use crate::error::CliError;
use crate::output;

pub fn run(context: &Context) -> Result<ExitCode, CliError> {
    let report = context.store()?.store().verify()?;
    if context.global.format == Format::Json {
        output::json(&report)?;
    } else {
        output::line(&format!("{report}"))?;
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}
