//! `larder mcp`: serves tools to an agent on standard input and output. Prints nothing else to standard output.

use std::path::PathBuf;
use std::sync::Arc;

use larder_mcp::{McpCaller, Roots};

use crate::args::McpArgs;
use crate::context::{CommandContext, project_dir};
use crate::error::CliError;

pub async fn run(context: &CommandContext, args: McpArgs) -> Result<(), CliError> {
    let folders = if args.roots.is_empty() { vec![default_root(context)?] } else { args.roots };
    let roots = Roots::open(&folders).map_err(|error| CliError::Fixable(error.to_string()))?;
    let caller = McpCaller {
        engine: Arc::new(context.engine()?),
        asking: context.config.asking(),
        roots: Arc::new(roots),
        budget: None,
    };
    larder_mcp::stdio(caller).await.map_err(|error| CliError::Fixable(error.to_string()))
}

/// The project folder or the current one, but never a whole file system: some clients start servers in `/`.
fn default_root(context: &CommandContext) -> Result<PathBuf, CliError> {
    let folder = project_dir(&context.global).unwrap_or_else(|| PathBuf::from("."));
    let real = folder.canonicalize().map_err(|source| CliError::Read { path: folder.clone(), source })?;
    if real.parent().is_some() {
        return Ok(folder);
    }
    let words = format!(
        "this would open all of {} to tools; choose a folder with --root or --project",
        real.display()
    );
    Err(CliError::Usage(words))
}
