//! `larder ask`: a question over files and folders of any size.

use std::path::PathBuf;

use larder::ask;

use crate::args::AskArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::progress::Spinner;
use crate::{commands, output};

pub async fn run(context: &Context, args: AskArgs) -> Result<(), CliError> {
    let Some((question, paths)) = args.inputs.split_last().filter(|(_, paths)| !paths.is_empty()) else {
        return Err(CliError::Usage("expected files or folders, then the question".to_owned()));
    };
    context.ensure_weights(args.yes).await?;
    let engine = context.engine()?;
    let spinner = Spinner::new(false);
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let found = ask::gather(&engine, &args.recipe, &paths, question, &spinner);
    let outcome = match found {
        Ok(found) => {
            for note in &found.skipped {
                tracing::warn!("{note}");
            }
            output::say(&found.summary());
            engine.run(&args.recipe, &found.input, &spinner).await.map_err(CliError::from)
        }
        Err(error) => Err(CliError::Fixable(error.to_string())),
    };
    spinner.done();
    commands::run::print(context, &outcome?, args.explain)
}
