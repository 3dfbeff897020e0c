//! Tools of code mode: files of one workspace, and programs that the settings permit. Nothing outside the workspace
//! is read or written, wherever links point.

mod command;
mod edit;
mod read;
mod search;
mod workspace;

use super::private::PrivatePaths;
use super::spec::Tool;
use super::typed::typed;
use larder_engine::settings::ToolSettings;

/// The tools of code mode.
pub(super) fn tools(settings: &ToolSettings) -> Vec<Box<dyn Tool>> {
    let private = PrivatePaths::new(&settings.private);
    vec![
        typed(read::FileRead(private.clone())),
        typed(search::FileSearch(private.clone())),
        typed(edit::FileEdit(private.clone())),
        typed(command::CommandRun::new(settings, private)),
    ]
}
