//! Building indexes from the documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use larder_vault::layout::{UserPlace, is_research};
use larder_vault::{VaultPath, turn_number};

use super::archive::finish_moves;
use super::index::{IndexFile, Indexed, PathKind, Rows, is_indexed, name_of, put, rows_of, sweep, turn_user};
use super::types::ReindexReport;
use super::{Documents, UserDocuments, journal};
use crate::retention::holds;
use larder_disk::StoreError;
use larder_disk::tree::Tree;

/// Files that cannot be read and are named.
const MOST_NAMED: usize = 100;
/// Documents added to the index per transaction.
const BATCH: usize = 1_000;

impl Documents {
    /// Drops the index and rebuilds it from the documents; `progress` receives the number of turns done. Generated
    /// notes are rewritten. Vectors whose text still exists are kept.
    ///
    /// # Errors
    /// Reading or writing fails; [`Documents::recover`] then builds the rest.
    pub fn reindex(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<ReindexReport, StoreError> {
        let entries = self.store().index().read(|tx| journal::committed(tx, None))?;
        for (user, number) in &entries {
            self.user(user)?.writer().redo(*number)?;
        }
        finish_moves(self)?;
        let names = self.user_names()?;
        let mut report = ReindexReport::default();
        for name in &names {
            let before = report.turns;
            let one = self.build(name, &|turns| progress(before + turns))?;
            if let Some(documents) = self.owner(name)? {
                documents.notes().write_all()?;
            }
            report.users += 1;
            report.turns += one.turns;
            report.documents += one.documents;
            report.unreadable += one.unreadable;
            let room = MOST_NAMED.saturating_sub(report.unreadable_files.len());
            report.unreadable_files.extend(one.unreadable_files.into_iter().take(room));
        }
        clear_all_but(self, &names)?;
        self.set_known(names);
        Ok(report)
    }

    /// All users that have documents.
    ///
    /// # Errors
    /// Reading fails.
    pub fn users(&self) -> Result<Vec<UserDocuments>, StoreError> {
        let names = self.user_names()?;
        names.iter().filter_map(|name| self.owner(name).transpose()).collect()
    }

    /// The names of the folders of all users that have documents.
    pub(super) fn user_names(&self) -> Result<BTreeSet<String>, StoreError> {
        let mut names: BTreeSet<String> = self.tree().level("users")?.folders.into_iter().collect();
        for month in self.tree().level("archive")?.folders {
            names.extend(self.tree().level(&format!("archive/{month}"))?.folders);
        }
        // A folder that no user id maps to is not a user's folder.
        names.retain(|name| VaultPath::new(&format!("users/{name}/x")).is_some());
        Ok(names)
    }

    /// The user of the folder with this name: the one stated in its newest turn, or the one whose id is the name.
    /// `None` if no id maps to the folder.
    fn owner(&self, name: &str) -> Result<Option<UserDocuments>, StoreError> {
        let named = self.handles(name)?.index.read(turn_user)?;
        let ids = named.into_iter().chain([name.to_owned()]);
        let mut owners = ids.filter(|id| name_of(&UserPlace::new(id)) == name);
        owners.next().map(|id| self.user(&id)).transpose()
    }

    /// Rebuilds from scratch the index of the user with this folder name.
    pub(super) fn build(
        &self,
        name: &str,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<ReindexReport, StoreError> {
        let handles = self.handles(name)?;
        handles.index.clear()?;
        let mut builder = Builder {
            tree: self.tree(),
            index: &handles.index,
            waiting: Vec::new(),
            pointers: BTreeMap::new(),
            report: ReindexReport::default(),
        };
        let root = format!("users/{name}");
        let top = self.tree().level(&root)?;
        builder.take(top.files)?;
        for folder in top.folders.iter().filter(|folder| *folder != "turns") {
            builder.take(self.tree().list(&format!("{root}/{folder}"))?)?;
        }
        builder.turns(&format!("{root}/turns"), progress)?;
        for month in self.tree().level("archive")?.folders {
            builder.turns(&format!("archive/{month}/{name}"), progress)?;
        }
        builder.flush()?;
        let Builder { report, pointers, .. } = builder;
        handles.index.write(sweep)?;
        if let Some(documents) = self.owner(name)? {
            documents.hold_all(&pointers)?;
        }
        handles.index.set_built()?;
        Ok(report)
    }

    pub(super) fn set_known(&self, names: BTreeSet<String>) {
        *self.inner.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(names);
    }

    /// Whether the folder of a user is empty, as far as that can be determined without a request.
    pub(super) fn is_new(&self, name: &str) -> Result<bool, StoreError> {
        let known = self.inner.known.lock().unwrap_or_else(PoisonError::into_inner);
        match archived_now(self, name) {
            Some(archived) => {
                Ok(archived?.is_empty() && !self.tree().has_folder_now(&format!("users/{name}")))
            }
            None => Ok(known.as_ref().is_some_and(|known| !known.contains(name))),
        }
    }

    /// The highest turn number in a user's folders; `None` if determining it takes a request.
    pub(super) fn highest_standing_now(&self, name: &str) -> Option<Result<u32, StoreError>> {
        let highest = || -> Option<Result<u32, StoreError>> {
            let live = self.tree().folders_now(&format!("users/{name}/turns"))?;
            let archived = archived_now(self, name)?;
            Some(live.and_then(|live| {
                let numbers = live.iter().chain(&archived?).filter_map(|name| turn_number(name)).max();
                Ok(numbers.unwrap_or(0))
            }))
        };
        highest()
    }
}

/// Empties the indexes of users that have no documents any more.
fn clear_all_but(all: &Documents, names: &BTreeSet<String>) -> Result<(), StoreError> {
    for entry in larder_disk::files::entries(&all.inner.indexes)? {
        match entry.name.strip_suffix(".db") {
            Some(name) if !names.contains(name) => {
                let handles = all.handles(name)?;
                handles.index.clear()?;
                handles.index.write(sweep)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a document that is not searched may refer to originals.
fn is_record(path: &VaultPath) -> bool {
    [".md", ".json", ".jsonl", ".txt"].iter().any(|end| path.name().ends_with(end))
}

/// The folders of a user's turns in the archive; `None` if listing them takes a request.
fn archived_now(all: &Documents, name: &str) -> Option<Result<Vec<String>, StoreError>> {
    let months = match all.tree().folders_now("archive")? {
        Ok(months) => months,
        Err(error) => return Some(Err(error)),
    };
    let folders = months.iter().map(|month| format!("archive/{month}/{name}"));
    let turns = folders.filter_map(|folder| all.tree().folders_now(&folder));
    Some(turns.collect::<Result<Vec<_>, _>>().map(|turns| turns.concat()))
}

impl UserDocuments {
    /// Keeps the originals that documents refer to from expiring, by the documents' paths; those of documents that are no
    /// longer there may expire.
    fn hold_all(&self, pointers: &BTreeMap<VaultPath, BTreeSet<String>>) -> Result<(), StoreError> {
        let held = self.store.index().read(|tx| holds::documents(tx, self.user()))?;
        let mut gone = Vec::new();
        for path in held.iter().filter_map(|path| VaultPath::new(path)) {
            // Documents of drafts are not there yet.
            let is_draft = PathKind::parse(&path)
                .and_then(|spot| spot.turn)
                .is_some_and(|turn| self.drafts().get(turn).is_ok_and(|draft| draft.is_some()));
            if !pointers.contains_key(&path) && !is_draft && self.tree().read(&path)?.is_none() {
                gone.push(path);
            }
        }
        self.store.write(|tx| {
            gone.iter().try_for_each(|path| holds::release(tx, self.user(), path.as_str()))?;
            pointers
                .iter()
                .try_for_each(|(path, names)| holds::set_names(tx, self.user(), path.as_str(), names))
        })
    }
}

/// An index on its way.
struct Builder<'d> {
    tree: &'d dyn Tree,
    index: &'d IndexFile,
    waiting: Vec<Rows>,
    /// What each document refers to, where it refers to anything.
    pointers: BTreeMap<VaultPath, BTreeSet<String>>,
    report: ReindexReport,
}

impl Builder<'_> {
    /// Adds the turns in a folder, by number, and its other files.
    fn turns(&mut self, folder: &str, progress: &(dyn Fn(u64) + Sync)) -> Result<(), StoreError> {
        let level = self.tree.level(folder)?;
        self.take(level.files)?;
        let (turns, others): (Vec<_>, Vec<_>) =
            level.folders.into_iter().partition(|name| turn_number(name).is_some());
        let mut turns: Vec<_> = turns.iter().filter_map(|name| Some((turn_number(name)?, name))).collect();
        turns.sort();
        for name in others {
            self.take(self.tree.list(&format!("{folder}/{name}"))?)?;
        }
        for (_, name) in turns {
            let turn = format!("{folder}/{name}");
            let files = self.tree.list(&turn)?;
            // Without it the folder is not a turn, but an interrupted commit or a folder of the user's own.
            if files.iter().any(|file| file.as_str() == format!("{turn}/metadata.json")) {
                self.take(files)?;
                self.report.turns += 1;
                progress(self.report.turns);
            } else if let Some(user) =
                folder.strip_prefix("archive/").and_then(|rest| rest.split('/').next_back())
            {
                self.moved_research(&format!("users/{user}/turns/{name}"), files)?;
            }
        }
        Ok(())
    }

    /// Takes expired research that was moved ahead of its turn, which is in the folder `home`.
    fn moved_research(&mut self, home: &str, files: Vec<VaultPath>) -> Result<(), StoreError> {
        for file in files.into_iter().filter(|file| is_research(file.name())) {
            let old = VaultPath::new(&format!("{home}/{}", file.name()));
            // A move that was interrupted counts as not begun.
            if old.map(|old| self.tree.read(&old)).transpose()?.flatten().is_none() {
                self.take(vec![file])?;
            }
        }
        Ok(())
    }

    fn take(&mut self, files: Vec<VaultPath>) -> Result<(), StoreError> {
        for file in files.iter().filter(|file| is_indexed(file) || is_record(file)) {
            let Some(bytes) = self.tree.read(file)? else { continue };
            let names = holds::pointers_in(&bytes);
            if !names.is_empty() {
                self.pointers.insert(file.clone(), names);
            }
            if !is_indexed(file) {
                continue;
            }
            match rows_of(file, &bytes) {
                Indexed::Nothing => {}
                Indexed::Unreadable => {
                    self.report.unreadable += 1;
                    if self.report.unreadable_files.len() < MOST_NAMED {
                        self.report.unreadable_files.push(file.clone());
                    }
                }
                Indexed::Rows(rows) => self.waiting.push(*rows),
            }
        }
        if self.waiting.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let rows = std::mem::take(&mut self.waiting);
        self.report.documents += rows.len() as u64;
        self.index.write(|tx| rows.iter().try_for_each(|rows| put(tx, rows)))
    }
}
