//! The folder that code mode works in, and which files of this machine are inside it.
//!
//! A path is refused if it leaves the folder by its names or by a symbolic link. Another program can replace a file
//! with a link between the check and its use: the workspace protects against requests of a model, not against the
//! user's other programs.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use larder_engine::config::{DEFAULT_HOME, FILE};
use larder_engine::project::Project;

use crate::context::ToolContext;
use crate::private::{PrivatePaths, PrivatePlaces};
use crate::spec::ToolError;

/// A folder by its canonical path.
pub(super) struct Workspace {
    root: PathBuf,
    private: Arc<PrivatePlaces>,
}

impl Workspace {
    /// # Errors
    /// [`ToolError::Failed`] when the turn has no workspace, or it no longer exists; [`ToolError::Denied`] when it is
    /// private.
    pub(super) fn of(context: &ToolContext<'_>, private: &PrivatePaths) -> Result<Self, ToolError> {
        let folder = context.workspace.ok_or_else(|| {
            ToolError::Failed("this turn has no workspace; name a folder for it to work in".to_owned())
        })?;
        let root = folder
            .canonicalize()
            .map_err(|error| ToolError::Failed(format!("the workspace cannot be opened: {error}")))?;
        let private = Arc::new(private.resolve(&root));
        if private.cover(&root) {
            return Err(denied("the workspace"));
        }
        Ok(Self { root, private })
    }

    /// What is out of reach in it.
    pub(super) fn private(&self) -> &Arc<PrivatePlaces> {
        &self.private
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The file or folder that a path refers to; it need not exist, but its parent folder must.
    ///
    /// # Errors
    /// [`ToolError::Denied`] outside the workspace and where it is private; [`ToolError::Failed`] when its folder does not exist.
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
        if !real.starts_with(&self.root) {
            return Err(outside());
        }
        if self.private.cover(&real) { Err(denied(&format!("{path:?}"))) } else { Ok(real) }
    }

    /// The place of a file that is about to be made, after the folders on the way to it are made.
    ///
    /// # Errors
    /// As [`place`](Self::place), and when a folder cannot be made.
    pub(super) fn new_place(&self, path: &str) -> Result<PathBuf, ToolError> {
        let inside = Path::new(path.trim());
        let inside = inside.strip_prefix(&self.root).unwrap_or(inside);
        // A path that leaves the workspace further on must leave no folder behind.
        if inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            let mut folder = PathBuf::new();
            for part in inside.parent().into_iter().flat_map(Path::components) {
                folder.push(part);
                let place = self.place(&folder.to_string_lossy())?;
                if !place.exists() {
                    let failed =
                        |error| ToolError::Failed(format!("the folder {folder:?} cannot be made: {error}"));
                    std::fs::create_dir(&place).map_err(failed)?;
                }
            }
        }
        self.place(path)
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

    /// Refuses a change that would affect later work in the folder: of the settings, stores and projects of
    /// Larder, and of what git runs. The path is in the workspace, or relative to it.
    ///
    /// # Errors
    /// [`ToolError::Denied`].
    pub(super) fn check_change(&self, path: &Path) -> Result<(), ToolError> {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Vec<_> = inside.components().filter(|part| *part != Component::CurDir).collect();
        let names: Vec<String> =
            parts.iter().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
        let mut folder = self.root.clone();
        let decides = (0..names.len()).any(|at| {
            let decides = names[at] == ".git" || Project::would_decide(&folder, &names[at..]);
            folder.push(parts[at]);
            decides
        });
        if !decides {
            return Ok(());
        }
        Err(ToolError::Denied(format!(
            "{path:?} would take effect beyond this task: no tool makes or changes a {FILE}, anything in \
             {DEFAULT_HOME} or .git, or recipes, conversation types and prompts of a project of Larder; say what \
             should be changed there instead"
        )))
    }

    /// The path of a file relative to the workspace.
    pub(super) fn name<'p>(&self, place: &'p Path) -> std::borrow::Cow<'p, str> {
        place.strip_prefix(&self.root).unwrap_or(place).to_string_lossy()
    }
}

fn denied(what: &str) -> ToolError {
    ToolError::Denied(format!("{what} is Larder's own: no tool reads or changes it"))
}
