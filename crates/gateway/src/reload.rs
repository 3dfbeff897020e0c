//! Reloading: when files change or on SIGHUP, everything is reread, checked, and swapped atomically. Invalid files
//! are rejected with their diagnostics while the previous state stays in effect. Knows no file format, and no key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use larder_engine::blocking;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::key_files::FileState;

/// How often files are checked for changes.
const EVERY: Duration = Duration::from_secs(1);
/// Checks that find another state each, after which files are read although they may be half written.
const PATIENCE: usize = 10;
/// Maximum number of watched files.
const MAX_FILES: usize = 20_000;
/// Maximum folder depth watched.
const MAX_DEPTH: usize = 8;

type Marks = BTreeMap<PathBuf, FileState>;

/// What was read, and what was there at the last check.
#[derive(Debug)]
struct Changes {
    read: Marks,
    checked: Marks,
    /// Checks in a row that found another state.
    unsteady: usize,
}

impl Changes {
    /// Whether what is there `now` was not read yet, and stays as it was at the check before, or never stays. It is then
    /// read.
    fn are_complete(&mut self, now: Marks) -> bool {
        self.unsteady = if now == self.checked { 0 } else { self.unsteady + 1 };
        self.checked = now;
        let are_complete = self.unsteady.is_multiple_of(PATIENCE) && self.checked != self.read;
        if are_complete {
            self.read.clone_from(&self.checked);
        }
        are_complete
    }
}

/// Files and folders, and their state when last checked.
#[derive(Debug)]
pub struct WatchedFiles {
    paths: Vec<PathBuf>,
    changes: Changes,
    hang_up: HangUp,
}

impl WatchedFiles {
    /// Looks at everything below `paths`, and listens for SIGHUP, which would otherwise end the process. To miss no
    /// change, look before anything is read.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let read = marks(&paths);
        Self { paths, changes: Changes { checked: read.clone(), read, unsteady: 0 }, hang_up: HangUp::new() }
    }
}

/// Reloads `app` whenever a file that is watched has changed and stays as it is until the next check, so that none is
/// read while it is written. Ends when `stop` is cancelled.
pub async fn watch(app: Arc<App>, watched: WatchedFiles, stop: CancellationToken) {
    let WatchedFiles { paths, mut changes, mut hang_up } = watched;
    loop {
        let asked = tokio::select! {
            () = tokio::time::sleep(EVERY) => false,
            () = hang_up.came() => true,
            () = stop.cancelled() => return,
        };
        let (now, has_new_keys) = look(paths.clone(), Arc::clone(&app)).await;
        if changes.are_complete(now) || asked || has_new_keys {
            let app = Arc::clone(&app);
            // Reads files and compiles schemas.
            let _ = blocking::run(move || app.reload()).await;
        }
    }
}

/// The marks of all files below `paths`, and whether a key file has changed.
async fn look(paths: Vec<PathBuf>, app: Arc<App>) -> (Marks, bool) {
    let looking = blocking::run(move || (marks(&paths), app.has_new_keys()));
    looking.await.unwrap_or_default()
}

/// The marks of all files below `paths`. Links are not followed.
fn marks(paths: &[PathBuf]) -> Marks {
    let mut marks = Marks::new();
    for path in paths {
        mark(path, 0, &mut marks);
    }
    marks
}

fn mark(path: &Path, depth: usize, marks: &mut Marks) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
    if metadata.is_file() && marks.len() < MAX_FILES {
        marks.insert(path.to_owned(), (metadata.modified().ok(), metadata.len()));
    } else if metadata.is_dir() && depth < MAX_DEPTH {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| mark(&entry.path(), depth + 1, marks));
    }
}

/// SIGHUP, on systems that have it.
#[derive(Debug)]
struct HangUp {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl HangUp {
    fn new() -> Self {
        Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    async fn came(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_it_stays_as_it_is() {
        let marks = |len| Marks::from([(PathBuf::from("larder.toml"), (None, len))]);
        let mut changes = Changes { read: marks(9), checked: marks(9), unsteady: 0 };
        // An editor empties it, writes half of it, and the rest.
        let complete = [9, 0, 5, 12, 12, 12].map(|len| changes.are_complete(marks(len)));
        assert_eq!(complete, [false, false, false, false, true, false]);
        let never_steady = (0..PATIENCE as u64).filter(|len| changes.are_complete(marks(100 + len)));
        assert_eq!(never_steady.count(), 1);
    }

    #[test]
    fn a_file_that_changes_comes_or_goes_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let recipes = dir.path().join("recipes/a");
        std::fs::create_dir_all(&recipes).unwrap();
        let paths = [dir.path().join("larder.toml"), dir.path().join("recipes")];
        let mut seen = vec![marks(&paths)];
        std::fs::write(&paths[0], "1").unwrap();
        seen.push(marks(&paths));
        std::fs::write(recipes.join("x.yaml"), "name: x").unwrap();
        seen.push(marks(&paths));
        std::fs::write(recipes.join("x.yaml"), "name: xy").unwrap();
        seen.push(marks(&paths));
        std::fs::write(dir.path().join("else"), "unwatched").unwrap();
        assert_eq!(seen[3], marks(&paths));
        seen.dedup();
        assert_eq!(seen.len(), 4);
    }
}
