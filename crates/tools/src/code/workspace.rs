//! The folder that code mode works in, and which files of this machine lie in it.
//!
//! A path is refused if it leaves the folder by its names or by a symbolic link. Whoever else writes in the folder can
//! exchange a file for a link between the check and its use: the workspace guards against what a model asks for, not
//! against other programs of the user.

use std::path::{Component, Path, PathBuf};

use crate::context::ToolContext;
use crate::spec::ToolError;

/// A folder whose real place is known.
pub(super) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// # Errors
    /// [`ToolError::Failed`] when the turn has no workspace, or it is gone.
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

    /// The file or folder that a path leads to; it need not be there, but the folder it is in must.
    ///
    /// # Errors
    /// [`ToolError::Denied`] outside of the workspace; [`ToolError::Failed`] when its folder is not there.
    pub(super) fn place(&self, path: &str) -> Result<PathBuf, ToolError> {
        let outside = || ToolError::Denied(format!("{path:?} is outside of the workspace"));
        let given = Path::new(path.trim());
        let inside =
            if given.is_absolute() { given.strip_prefix(&self.root).map_err(|_| outside())? } else { given };
        if inside.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(outside());
        }
        let full = self.root.join(inside);
        let missing =
            |error| ToolError::Failed(format!("{path:?} cannot be reached in the workspace: {error}"));
        // What is there is taken by its real place. A link that leads nowhere would be followed when it is written to.
        let real = match full.symlink_metadata() {
            Ok(_) => full.canonicalize().map_err(missing)?,
            Err(_) => {
                let name = full.file_name().ok_or_else(outside)?;
                let folder = full.parent().ok_or_else(outside)?;
                folder.canonicalize().map_err(missing)?.join(name)
            }
        };
        if real.starts_with(&self.root) { Ok(real) } else { Err(outside()) }
    }

    /// A file that is there. Pipes and devices are none: reading one could take for ever.
    ///
    /// # Errors
    /// As [`place`](Self::place), and when it is no plain file.
    pub(super) fn file(&self, path: &str) -> Result<PathBuf, ToolError> {
        let place = self.place(path)?;
        match place.metadata() {
            Ok(data) if data.is_file() => Ok(place),
            Ok(_) => Err(ToolError::Failed(format!("{path:?} is no plain file"))),
            Err(error) => Err(ToolError::Failed(format!("{path:?} cannot be read: {error}"))),
        }
    }

    /// How a file of the workspace is called in it.
    pub(super) fn name<'p>(&self, place: &'p Path) -> std::borrow::Cow<'p, str> {
        place.strip_prefix(&self.root).unwrap_or(place).to_string_lossy()
    }
}
