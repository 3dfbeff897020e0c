//! `file.edit`: replaces one piece of a text file. The file is replaced as a whole or not at all.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use larder_condense::ContentType;
use schemars::JsonSchema;
use serde::Deserialize;
use similar::TextDiff;

use super::workspace::Workspace;
use crate::context::ToolContext;
use crate::private::PrivatePaths;
use crate::spec::{ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};
use crate::typed::TypedTool;

/// Bytes of a file that can be edited.
const MAX_BYTES: u64 = 5_000_000;
/// Lines around a change that its diff shows.
const CONTEXT_LINES: usize = 3;
/// Time limit for the diff; the rest is then shown as one coarse change.
const DIFF_TIME: Duration = Duration::from_secs(5);

pub(super) struct FileEdit(pub(super) PrivatePaths);

/// Replace a piece of text in a file of the workspace, or make a new file. Gives the diff.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileEditArgs {
    /// the file, from the root of the workspace
    #[schemars(length(min = 1, max = 4_096))]
    path: String,
    /// the text to replace, byte for byte as file.read shows it; it must occur exactly once. Empty makes a new file
    #[schemars(length(max = 1_000_000))]
    old: String,
    /// the text to put there
    #[schemars(length(max = 1_000_000))]
    new: String,
    /// replace every occurrence of old
    #[serde(default)]
    all: bool,
}

impl TypedTool for FileEdit {
    type Args = FileEditArgs;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            class: ToolClass::Write,
            modes: ToolModes::Code,
            ..ToolSpec::from_args::<FileEditArgs>("file.edit")
        }
    }

    async fn run(&self, args: FileEditArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let workspace = Workspace::of(context, &self.0)?;
        workspace.check_change(Path::new(args.path.trim()))?;
        if args.old.is_empty() { create(&workspace, &args) } else { edit(&workspace, &args) }
    }
}

fn create(workspace: &Workspace, args: &FileEditArgs) -> Result<ToolOutput, ToolError> {
    let place = workspace.new_place(&args.path)?;
    workspace.check_change(&place)?;
    let folder = place.parent().unwrap_or(workspace.root());
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            ToolError::Failed(format!("{:?} is there already; give the text to replace in old", args.path))
        }
        _ => ToolError::Failed(format!("{:?} cannot be written: {error}", args.path)),
    };
    let file = temporary(folder, &args.new).map_err(failed)?;
    file.persist_noclobber(&place).map_err(|error| failed(error.error))?;
    Ok(diff_output("Made", &workspace.name(&place), "", &args.new))
}

fn edit(workspace: &Workspace, args: &FileEditArgs) -> Result<ToolOutput, ToolError> {
    let FileEditArgs { path, old, new, all } = args;
    let place = workspace.file(path)?;
    workspace.check_change(&place)?;
    let failed = |error: std::io::Error| ToolError::Failed(format!("{path:?} cannot be edited: {error}"));
    let data = place.metadata().map_err(failed)?;
    if data.len() > MAX_BYTES {
        return Err(ToolError::Failed(format!(
            "{path:?} has {} bytes; {MAX_BYTES} can be edited",
            data.len()
        )));
    }
    let bytes = std::fs::read(&place).map_err(failed)?;
    let before = String::from_utf8(bytes)
        .map_err(|_| ToolError::Failed(format!("{path:?} is not UTF-8 text, so it cannot be edited")))?;
    let found = before.matches(old.as_str()).count();
    match found {
        0 => {
            return Err(ToolError::Failed(format!(
                "old does not occur in {path:?}; read the file again and copy it byte for byte"
            )));
        }
        1 => {}
        _ if *all => {}
        _ => {
            return Err(ToolError::Failed(format!(
                "old occurs {found} times in {path:?}; include more of the text around it, or set all"
            )));
        }
    }
    let after = before.replace(old.as_str(), new);
    let folder = place.parent().unwrap_or(workspace.root());
    let file = temporary(folder, &after).map_err(failed)?;
    std::fs::set_permissions(file.path(), data.permissions()).map_err(failed)?;
    // Somebody may have saved the file in the meantime; their work is not overwritten.
    if std::fs::read(&place).map_err(failed)? != before.as_bytes() {
        return Err(ToolError::Failed(format!("{path:?} has changed in the meantime; read it again")));
    }
    file.persist(&place).map_err(|error| failed(error.error))?;
    Ok(diff_output("Edited", &workspace.name(&place), &before, &after))
}

/// The text in a temporary file next to its destination, synced to disk.
fn temporary(folder: &Path, text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn diff_output(verb: &str, name: &str, before: &str, after: &str) -> ToolOutput {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after);
    let text = diff
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string();
    let count = |sign: &str, head: &str| {
        text.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
    };
    let summary = format!("{verb} {name} (+{} -{} lines)", count("+", "+++"), count("-", "---"));
    ToolOutput::success(summary, text).typed(ContentType::Diff)
}
