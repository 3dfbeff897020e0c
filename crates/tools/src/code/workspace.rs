//! The folder that code mode works in, and which files of this machine are inside it.
//!
//! A path is refused if it leaves the folder by its names or by a symbolic link. Another program can replace a file
//! with a link between the check and its use: the workspace protects against requests of a model, not against the
//! user's other programs.

use std::path::{Component, Path, PathBuf};

use crate::context::ToolContext;
use crate::spec::ToolError;

/// What is Larder's own where it lies in a workspace: settings, which say what tools may do, and the store.
pub(crate) const OURS: [&str; 2] = ["larder.toml", ".larder"];

fn is_ours(inside: &Path) -> bool {
    let first = inside.components().next().map(|part| part.as_os_str().to_ascii_lowercase());
    first.is_some_and(|first| OURS.iter().any(|ours| first == **ours))
}

/// A folder by its canonical path.
pub(super) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// # Errors
    /// [`ToolError::Failed`] when the turn has no workspace, or it no longer exists.
    pub(super) fn of(context: &ToolContext<'_>) -> Result<Self, ToolError> {
        let folder = context.workspace.ok_or_else(|| {
            ToolError::Failed("this turn has no workspace; name a folder for it to work in".to_owned())
        })?;
        let root = folder
            .canonicalize()
            .map_err(|error| ToolError::Failed(format!("the workspace cannot be opened: {error}")))?;
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The file or folder that a path refers to; it need not exist, but its parent folder must.
    ///
    /// # Errors
    /// [`ToolError::Denied`] outside the workspace; [`ToolError::Failed`] when its folder does not exist.
    pub(super) fn place(&self, path: &str) -> Result<PathBuf, ToolError> {
        let outside = || ToolError::Denied(format!("{path:?} is outside the workspace"));
        let given = Path::new(path.trim());
        let inside =
            if given.is_absolute() { given.strip_prefix(&self.root).map_err(|_| outside())? } else { given };
        if inside.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(outside());
        }
        let full = self.root.join(inside);
        let missing =
            |error| ToolError::Failed(format!("{path:?} cannot be reached in the workspace: {error}"));
        // What exists is checked by its canonical path. Writing through a dangling link would follow it.
        let real = match full.symlink_metadata() {
            Ok(_) => full.canonicalize().map_err(missing)?,
            Err(_) => {
                let name = full.file_name().ok_or_else(outside)?;
                let folder = full.parent().ok_or_else(outside)?;
                folder.canonicalize().map_err(missing)?.join(name)
            }
        };
        match real.strip_prefix(&self.root) {
            Ok(inside) if is_ours(inside) => {
                Err(ToolError::Denied(format!("{path:?} is Larder's own: no tool reads or changes it")))
            }
            Ok(_) => Ok(real),
            Err(_) => Err(outside()),
        }
    }

    /// An existing file. Pipes and devices are refused: reading one could take forever.
    ///
    /// # Errors
    /// As [`place`](Self::place), and when it is not a plain file.
    pub(super) fn file(&self, path: &str) -> Result<PathBuf, ToolError> {
        let place = self.place(path)?;
        match place.metadata() {
            Ok(data) if data.is_file() => Ok(place),
            Ok(_) => Err(ToolError::Failed(format!("{path:?} is not a plain file"))),
            Err(error) => Err(ToolError::Failed(format!("{path:?} cannot be read: {error}"))),
        }
    }

    /// The path of a file relative to the workspace.
    pub(super) fn name<'p>(&self, place: &'p Path) -> std::borrow::Cow<'p, str> {
        place.strip_prefix(&self.root).unwrap_or(place).to_string_lossy()
    }
}
