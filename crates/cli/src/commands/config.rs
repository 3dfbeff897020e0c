//! `larder config`: every setting and where it comes from.

use crate::args::Format;
use crate::context::Context;
use crate::error::CliError;
use crate::output;

pub fn run(context: &Context) -> Result<(), CliError> {
    let settings = context.config.settings();
    if context.global.format == Format::Json {
        return output::json(&settings);
    }
    for setting in &settings {
        output::line(&format!("{:<32} {:<24} {}", setting.key, setting.value, setting.origin))?;
    }
    Ok(())
}
