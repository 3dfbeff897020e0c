//! Settings, recipes and the like that a program makes or changes, and that the next command of Larder would take for the
//! user's: [`Project::deciding`] says which, as it does for that command. A sandbox cannot deny a name that does not exist, so what is new is moved aside when the program has ended. Nothing tells who
//! made it: what the user made meanwhile is moved, too, so that every note says where the bytes are. What existed below
//! the top may be changed, as any file of the workspace, and is named.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use larder_engine::config::DEFAULT_HOME;
use larder_engine::project::Project;

/// What the name of a file that was moved aside ends in.
const ASIDE: &str = "set-aside";
/// Files and folders of a workspace that are looked through; in a larger one, only the folders that are named.
const MOST_ENTRIES: usize = 50_000;
/// Folders for what programs make, which are not looked through where they are before a program runs.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];
/// Settings of more bytes are not compared.
const MOST_BYTES: u64 = 1 << 20;
/// Files that are named, each by a line; others are counted.
const MOST_NOTES: usize = 20;

/// What decides in folders; of files their text.
type Found = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// The settings, stores and projects that existed before a program ran. Moves aside what is new when it is dropped, too, so that
/// nothing remains of a call that is given up.
pub(super) struct PlantedSettings {
    folders: [PathBuf; 2],
    /// Those of the whole workspace, and the folders that were skipped; `None` if it is too large.
    all: Option<(Found, BTreeSet<PathBuf>)>,
    named: BTreeSet<PathBuf>,
    is_over: bool,
}

impl PlantedSettings {
    /// Watches a workspace, and in any case its top and the folder that the program runs in.
    pub(super) fn watch(folders: [&Path; 2]) -> Self {
        let folders = folders.map(Path::to_owned);
        let all = below(&folders[0], MOST_ENTRIES, |folder| {
            folder.file_name().is_some_and(|name| SKIPPED.iter().any(|skipped| name == *skipped))
        });
        let named = existing(&folders);
        Self { folders, all, named, is_over: false }
    }

    /// Moves aside what was made, and says so, a line for each.
    pub(super) fn set_aside(mut self) -> Vec<String> {
        self.moved()
    }

    fn moved(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.is_over, true) {
            return Vec::new();
        }
        let mut made: BTreeSet<PathBuf> =
            existing(&self.folders).into_iter().filter(|place| !self.named.contains(place)).collect();
        let mut changed = Vec::new();
        if let Some((before, skipped)) = &self.all {
            // However many files the program made.
            let after = below(&self.folders[0], usize::MAX, |folder| skipped.contains(folder));
            for (place, text) in after.into_iter().flat_map(|(found, _)| found) {
                match before.get(&place) {
                    None => _ = made.insert(place),
                    Some(earlier) if *earlier != text => changed.push(place),
                    Some(_) => {}
                }
            }
            changed.extend(before.keys().filter(|place| !exists(place)).cloned());
        }
        let changed = changed.into_iter().map(|place| {
            format!(
                "{} was changed or removed while it ran: look before you use Larder in its folder",
                place.display()
            )
        });
        let mut notes: Vec<String> = made.iter().map(|place| moved(place)).chain(changed).collect();
        if let Some(more @ 1..) = notes.len().checked_sub(MOST_NOTES) {
            notes.truncate(MOST_NOTES);
            notes.push(format!("the same holds of {more} more files: look for names that end in {ASIDE}"));
        }
        notes
    }
}

impl Drop for PlantedSettings {
    fn drop(&mut self) {
        for note in self.moved() {
            tracing::warn!("a program was ended: {note}");
        }
    }
}

/// What decides in these folders.
fn existing(folders: &[PathBuf]) -> BTreeSet<PathBuf> {
    folders.iter().flat_map(|folder| Project::deciding(folder)).collect()
}

/// What decides anywhere in a folder, and the folders that were skipped; `None` if there are more
/// entries than `most`. Links are not followed.
fn below(top: &Path, most: usize, is_skipped: impl Fn(&Path) -> bool) -> Option<(Found, BTreeSet<PathBuf>)> {
    let mut found = Found::new();
    let mut skipped = BTreeSet::new();
    let mut folders = VecDeque::from([top.to_owned()]);
    let mut entries = 0;
    while let Some(folder) = folders.pop_front() {
        let mut decides = false;
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > most {
                return None;
            }
            let name = entry.file_name();
            decides |= Project::may_decide(&name.to_string_lossy().to_lowercase());
            if name != DEFAULT_HOME && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let folder = entry.path();
                if is_skipped(&folder) {
                    skipped.insert(folder);
                } else {
                    folders.push_back(folder);
                }
            }
        }
        if decides {
            found.extend(Project::deciding(&folder).into_iter().map(|place| (place.clone(), text(&place))));
        }
    }
    Some((found, skipped))
}

/// The text of a file that is no link, pipe or the like.
fn text(place: &Path) -> Option<Vec<u8>> {
    let is_read = |file: std::fs::Metadata| file.is_file() && file.len() <= MOST_BYTES;
    place.symlink_metadata().is_ok_and(is_read).then(|| std::fs::read(place).ok()).flatten()
}

fn exists(place: &Path) -> bool {
    place.symlink_metadata().is_ok()
}

fn moved(place: &Path) -> String {
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = (1..).map(|number| format!("{name}.{ASIDE}-{number}"));
    let mut names = std::iter::once(format!("{name}.{ASIDE}")).chain(numbered);
    let aside = names.find(|aside| !exists(&place.with_file_name(aside))).unwrap_or_default();
    let aside = place.with_file_name(aside);
    let made = format!("{} was made while it ran, and Larder would read it as yours", place.display());
    match std::fs::rename(place, &aside) {
        Ok(()) => format!("{made}: it was renamed to {}; rename it back if it is yours", aside.display()),
        Err(error) => format!("{made}; it cannot be renamed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use larder_engine::config::FILE;

    use super::*;

    #[test]
    fn settings_are_found_in_new_folders_of_any_name_and_among_many_files() {
        let workspace = tempfile::tempdir().unwrap();
        let top = workspace.path();
        fs::create_dir_all(top.join("target/old")).unwrap();
        let watch = PlantedSettings::watch([top, top]);
        for folder in ["target/old", "node_modules/new", "many"] {
            fs::create_dir_all(top.join(folder)).unwrap();
            fs::write(top.join(folder).join(FILE), "").unwrap();
        }
        for number in 0..=MOST_ENTRIES {
            fs::File::create(top.join("many").join(number.to_string())).unwrap();
        }
        assert_eq!(watch.set_aside().len(), 2);
        assert!(top.join("target/old").join(FILE).exists(), "what is in there was not looked at before");
        for folder in ["node_modules/new", "many"] {
            assert!(!top.join(folder).join(FILE).exists(), "{folder}");
        }
    }

    #[test]
    fn settings_that_change_are_named_and_stay() {
        let workspace = tempfile::tempdir().unwrap();
        let top = workspace.path();
        for folder in ["same", "other", "gone"] {
            fs::create_dir(top.join(folder)).unwrap();
            fs::write(top.join(folder).join(FILE), "[gateway]\n").unwrap();
        }
        let watch = PlantedSettings::watch([top, top]);
        let changed = top.join("other").join(FILE);
        fs::write(&changed, "[policy]\n").unwrap();
        let gone = top.join("gone").join(FILE);
        fs::remove_file(&gone).unwrap();
        let notes = watch.set_aside();
        let names = |note: &str, place: &Path| note.starts_with(&place.display().to_string());
        assert!(matches!(&notes[..], [one, two] if names(one, &changed) && names(two, &gone)), "{notes:?}");
        assert_eq!(fs::read(&changed).unwrap(), b"[policy]\n");
    }
}
