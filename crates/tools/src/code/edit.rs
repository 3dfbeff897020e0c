//! `file.edit`: exchanges one piece of a text file for another. The file is replaced as a whole or not at all.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use serde::Deserialize;
use serde_json::{Value, json};
use similar::TextDiff;

use super::workspace::Workspace;
use crate::arguments;
use crate::context::ToolContext;
use crate::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};

/// Bytes of a file that can be edited.
const LARGEST: u64 = 5_000_000;
/// Lines around a change that its diff shows.
const AROUND: usize = 3;
/// Time for making the diff; what is not done then is shown less finely.
const DIFFING: Duration = Duration::from_secs(5);

pub(super) struct Edit {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

impl Edit {
    pub(super) fn new() -> Self {
        let plain =
            |description: &str| json!({"type": "string", "maxLength": 1_000_000, "description": description});
        let fields = json!({
            "path": arguments::text("the file, from the root of the workspace", 4_096),
            "old": plain("the text to replace, byte for byte as file.read shows it; it must stand there exactly once. \
                          Empty makes a new file"),
            "new": plain("the text to put there"),
            "all": {"type": "boolean", "description": "replace every place where old stands"},
        });
        let spec = ToolSpec {
            name: "file.edit".to_owned(),
            description:
                "Replace a piece of text in a file of the workspace, or make a new file. Gives the diff."
                    .to_owned(),
            parameters: arguments::object(&["path", "old", "new"], fields),
            class: ToolClass::Write,
            summarizable: true,
            timeout: Duration::from_secs(30),
            max_bytes: 400_000,
            modes: ToolModes::Code,
        };
        Self { spec }
    }
}

impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let arguments: Arguments = arguments::read(arguments)?;
            let workspace = Workspace::of(context)?;
            if arguments.old.is_empty() {
                create(&workspace, &arguments)
            } else {
                edit(&workspace, &arguments)
            }
        }
        .boxed()
    }
}

fn create(workspace: &Workspace, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let place = workspace.place(&arguments.path)?;
    let folder = place.parent().unwrap_or(workspace.root());
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            ToolError::Failed(format!("{:?} is there already; say in old what to replace", arguments.path))
        }
        _ => ToolError::Failed(format!("{:?} cannot be written: {error}", arguments.path)),
    };
    let file = written(folder, &arguments.new).map_err(failed)?;
    file.persist_noclobber(&place).map_err(|error| failed(error.error))?;
    Ok(told("Made", &workspace.name(&place), "", &arguments.new))
}

fn edit(workspace: &Workspace, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let Arguments { path, old, new, all } = arguments;
    let place = workspace.file(path)?;
    let failed = |error: std::io::Error| ToolError::Failed(format!("{path:?} cannot be edited: {error}"));
    let data = place.metadata().map_err(failed)?;
    if data.len() > LARGEST {
        return Err(ToolError::Failed(format!("{path:?} has {} bytes; {LARGEST} can be edited", data.len())));
    }
    let bytes = std::fs::read(&place).map_err(failed)?;
    let before = String::from_utf8(bytes)
        .map_err(|_| ToolError::Failed(format!("{path:?} is no UTF-8 text, so it is not edited")))?;
    let found = before.matches(old.as_str()).count();
    match found {
        0 => {
            return Err(ToolError::Failed(format!(
                "old does not stand in {path:?}; read the file again and copy it byte for byte"
            )));
        }
        1 => {}
        _ if *all => {}
        _ => {
            return Err(ToolError::Failed(format!(
                "old stands {found} times in {path:?}; give more of what is around it, or set all"
            )));
        }
    }
    let after = before.replace(old.as_str(), new);
    let folder = place.parent().unwrap_or(workspace.root());
    let file = written(folder, &after).map_err(failed)?;
    std::fs::set_permissions(file.path(), data.permissions()).map_err(failed)?;
    // Somebody may have saved the file meanwhile; their work is not overwritten.
    if std::fs::read(&place).map_err(failed)? != before.as_bytes() {
        return Err(ToolError::Failed(format!("{path:?} was changed meanwhile; read it again")));
    }
    file.persist(&place).map_err(|error| failed(error.error))?;
    Ok(told("Edited", &workspace.name(&place), &before, &after))
}

/// The text in a file beside its place, safe on disk.
fn written(folder: &Path, text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn told(verb: &str, name: &str, before: &str, after: &str) -> ToolOutput {
    let diff = TextDiff::configure().timeout(DIFFING).diff_lines(before, after);
    let text = diff
        .unified_diff()
        .context_radius(AROUND)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string();
    let count = |sign: &str, head: &str| {
        text.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
    };
    let summary = format!("{verb} {name} (+{} -{} lines)", count("+", "+++"), count("-", "---"));
    ToolOutput::success(summary, text).typed(ContentType::Diff)
}
