//! Tools of code mode: files of one workspace, and programs that the settings permit. Nothing outside the workspace
//! is read or written, wherever links point.

mod command;
mod edit;
mod read;
mod search;
mod workspace;

pub(super) use self::workspace::OURS;
use super::spec::Tool;
use super::typed::typed;
use larder_engine::settings::ToolSettings;

/// The tools of code mode.
pub(super) fn tools(settings: &ToolSettings) -> Vec<Box<dyn Tool>> {
    vec![
        typed(read::FileRead),
        typed(search::FileSearch),
        typed(edit::FileEdit),
        typed(command::CommandRun::new(settings)),
    ]
}
