//! Moves old turns to the archive (R1-13.14) and updates the links to and in them. A move is recorded first, so that
//! `recover` can complete it: files are copied, `metadata.json` last; then `metadata.json` at the old location is
//! removed, followed by the other files.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use larder_vault::lifecycle::{ResearchAction, ResearchLife};
use larder_vault::links::{NoteRename, Vault};
use larder_vault::{DocumentTime, TurnStatus, VaultPath};
use rusqlite::params;

use super::commit::METADATA;
use super::index::{self, Indexed, Wanted, documents_of_turn, links_in, put, remove, rows_of};
use super::types::{ArchiveReport, ResearchRow, TurnRow};
use super::{Documents, UserDocuments, journal, refuse_last};
use crate::retention::holds;
use larder_disk::StoreError;

/// Age after which a turn is archived: 90 days. Questions about past conversations mostly concern younger ones.
const OLD_AFTER_MILLIS: i64 = 90 * 86_400 * 1_000;

/// Documents by path.
type Texts = BTreeMap<VaultPath, Vec<u8>>;

impl Documents {
    /// Moves turns older than 90 days to `archive/YYYY-MM/` (R1-13.14), except those with research that is still in
    /// use (R1-12.4). They stay in the index. Links to them and in them are rewritten.
    ///
    /// # Errors
    /// If reading or writing fails; completed moves remain, and [`Documents::recover`] completes the interrupted one.
    pub fn archive(&self, user: &str, now: DocumentTime) -> Result<ArchiveReport, StoreError> {
        refuse_last(now)?;
        let documents = self.user(user)?;
        // The journal would restore what is removed from its old location.
        let entries = self.store().index().read(|tx| journal::committed(tx, Some(user)))?;
        for (_, number) in &entries {
            documents.writer().redo(*number)?;
        }
        self.retire(entries)?;
        let mut report = ArchiveReport::default();
        let Some(before) = DocumentTime::from_millis(now.as_millis().saturating_sub(OLD_AFTER_MILLIS)) else {
            return Ok(report);
        };
        for turn in documents.index().read(|tx| index::old_turns(tx, before))? {
            if documents.archiver().is_wanted(&turn, now)? {
                continue;
            }
            documents.archiver().note_move(&turn)?;
            report.relinked += documents.archiver().move_turn(turn.number, turn.created_at)?;
            report.turns.push(turn.number);
        }
        documents.archiver().end_moves(&report.turns)?;
        let cleaned = documents.clean_up(now)?;
        report.research = cleaned.research;
        report.relinked += cleaned.relinked;
        Ok(report)
    }
}

impl UserDocuments {
    /// Moves expired research to the archive, whatever its turn's age (R1-12.4). The next call ends what a crash left.
    ///
    /// # Errors
    /// If reading or writing fails; completed moves remain.
    pub fn clean_up(&self, now: DocumentTime) -> Result<ArchiveReport, StoreError> {
        refuse_last(now)?;
        let mut report = ArchiveReport::default();
        for row in self.index().read(|tx| index::research(tx, Wanted::All, u64::MAX))? {
            let archived = row.document.as_str().starts_with("archive/");
            if life(&row, archived).state(now).action() != ResearchAction::Archive {
                continue;
            }
            // The journal would restore what is removed from its old location.
            let pending = self.store.index().read(|tx| journal::is_committed(tx, self.user(), row.turn))?;
            let Some(turn) = self.catalog().turn(row.turn)?.filter(|_| pending.is_none()) else { continue };
            let (moved, relinked) = self.archiver().move_research(&row, turn.created_at)?;
            report.research.extend(moved);
            report.relinked += relinked;
        }
        if !report.research.is_empty() {
            self.notes().write_all()?;
        }
        Ok(report)
    }
}

fn life(research: &ResearchRow, archived: bool) -> ResearchLife {
    ResearchLife {
        created: research.created_at,
        expires: research.expires_at,
        indexed: true,
        superseded: research.superseded_by.is_some(),
        archived,
    }
}

/// Finishes the moves that a crash interrupted.
pub(super) fn finish_moves(all: &Documents) -> Result<(), StoreError> {
    let moves: Vec<(String, u32, i64)> = all.store().index().read(|tx| {
        let mut query = tx.prepare("SELECT user, number, created FROM turn_moves ORDER BY user, number")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    })?;
    for (user, number, created) in moves {
        let documents = all.user(&user)?;
        if let Some(created) = DocumentTime::from_millis(created) {
            documents.archiver().move_turn(number, created)?;
            documents.archiver().end_moves(&[number])?;
        }
    }
    Ok(())
}

/// Moves turns of one user to the archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Archiver<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl Archiver<'_> {
    /// Whether a turn must not be moved.
    fn is_wanted(&self, turn: &TurnRow, now: DocumentTime) -> Result<bool, StoreError> {
        if matches!(turn.status, TurnStatus::Running | TurnStatus::Interrupted) {
            return Ok(true);
        }
        let row =
            self.docs.store.index().read(|tx| journal::is_committed(tx, self.docs.user(), turn.number))?;
        let research =
            self.docs.index().read(|tx| index::research(tx, Wanted::Turn(turn.number), u64::MAX))?;
        let wanted =
            |research: &ResearchRow| life(research, false).state(now).action() != ResearchAction::Archive;
        Ok(row.is_some() || research.iter().any(wanted))
    }

    fn note_move(&self, turn: &TurnRow) -> Result<(), StoreError> {
        self.docs.store.write(|tx| {
            tx.execute(
                "INSERT OR REPLACE INTO turn_moves (user, number, created) VALUES (?1, ?2, ?3)",
                params![self.docs.user(), turn.number, turn.created_at.as_millis()],
            )?;
            Ok(())
        })
    }

    /// Moves a turn, or what remains of it at its old location; returns how many other documents were rewritten.
    fn move_turn(&self, number: u32, created: DocumentTime) -> Result<u64, StoreError> {
        let (from, to) = (self.docs.place.turn(number), self.docs.place.archived_turn(number, created));
        let mut relinked = 0;
        if self.docs.tree().read(&from.metadata())?.is_some() {
            relinked = self.copy_turn(from.folder(), to.folder())?;
            self.docs.tree().remove(&from.metadata())?;
        }
        self.index_folders(from.folder(), to.folder())?;
        self.empty_folder(from.folder(), to.folder())?;
        self.docs.uses().rename_folder(from.folder(), to.folder())?;
        self.docs
            .store
            .write_unsynced(|tx| holds::rename_folder(tx, self.docs.user(), from.folder(), to.folder()))?;
        Ok(relinked)
    }

    /// Rewrites the notes, whose links then point to the archive, and marks these moves as complete.
    fn end_moves(&self, numbers: &[u32]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        self.docs.notes().write_all()?;
        self.docs.store.write(|tx| {
            let mut end = tx.prepare("DELETE FROM turn_moves WHERE user = ?1 AND number = ?2")?;
            numbers.iter().try_for_each(|number| end.execute(params![self.docs.user(), number]).map(drop))?;
            Ok(())
        })
    }

    /// Copies a turn, and rewrites the links to it and in it.
    fn copy_turn(&self, from: &str, to: &str) -> Result<u64, StoreError> {
        let _one_at_a_time = self.docs.handles.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let _one_process = self.docs.leases().lock_writes()?;
        let mut moved = self.texts(self.docs.tree().list(from)?)?;
        let mut others = self.texts(self.docs.index().read(|tx| index::links_into(tx, from))?)?;
        // Records of memory name the turn that they are from.
        let records = ["facts", "preferences"].map(|kind| self.docs.place.memory(kind));
        others.extend(self.texts(records.to_vec())?);
        let before = others.clone();
        relink(from, to, &mut moved, &mut others);
        repath(from, to, &mut moved, &mut others);
        let (last, first): (Vec<_>, Vec<_>) =
            moved.iter().partition(|(path, _)| path.as_str() == format!("{to}/{METADATA}"));
        for (path, bytes) in first.iter().chain(&last) {
            self.docs.tree().write(path, bytes)?;
        }
        self.docs.tree().sync(&moved.keys().cloned().collect::<Vec<_>>())?;
        let mut changed = Vec::new();
        for (path, bytes) in &others {
            if before.get(path) != Some(bytes) {
                self.docs.tree().write(path, bytes)?;
                changed.push(path.clone());
            }
            // Also if nothing changed: a crash may have happened between the write and this.
            self.docs.files().index_bytes(path, bytes)?;
        }
        self.docs.tree().sync(&changed)?;
        Ok(changed.len() as u64)
    }

    /// Moves research with its data and notes; returns its new place and how many other documents were rewritten.
    fn move_research(
        &self,
        row: &ResearchRow,
        created: DocumentTime,
    ) -> Result<(Option<VaultPath>, u64), StoreError> {
        let _one_at_a_time = self.docs.handles.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let _one_process = self.docs.leases().lock_writes()?;
        let (from, to) = (self.docs.place.turn(row.turn), self.docs.place.archived_turn(row.turn, created));
        let (from, to) = (from.folder(), to.folder());
        let data = row.document.name().replace(".md", ".json");
        let names = [row.document.name().to_owned(), data.clone(), format!("{data}.md")];
        let mut old: Vec<VaultPath> = names.iter().filter_map(|name| row.document.join(name)).collect();
        let mut moved = self.texts(old.clone())?;
        old.retain(|path| moved.contains_key(path));
        let mut others = self.docs.tree().list(from)?;
        others.extend(self.docs.index().read(|tx| index::links_into(tx, from))?);
        others.extend(["facts", "preferences"].map(|kind| self.docs.place.memory(kind)));
        others.retain(|path| {
            !moved.contains_key(path) && (path.name().ends_with(".md") || is_own_record(path, from))
        });
        let mut others = self.texts(others)?;
        let before = others.clone();
        relink(from, to, &mut moved, &mut others);
        for path in &old {
            let Some(new) = moved_path(path, from, to) else { continue };
            let records =
                moved.iter_mut().chain(others.iter_mut()).filter(|(at, _)| at.name().ends_with(".json"));
            for (_, bytes) in records {
                if let Ok(text) = str::from_utf8(bytes) {
                    let named = format!("\"{path}\"");
                    if text.contains(&named) {
                        *bytes = text.replace(&named, &format!("\"{new}\"")).into_bytes();
                    }
                }
            }
        }
        for (path, bytes) in &moved {
            self.docs.files().hold(path, bytes)?;
            self.docs.tree().write(path, bytes)?;
        }
        self.docs.tree().sync(&moved.keys().cloned().collect::<Vec<_>>())?;
        let mut changed = Vec::new();
        for (path, bytes) in others.iter().filter(|(path, bytes)| before.get(*path) != Some(*bytes)) {
            self.docs.tree().write(path, bytes)?;
            self.docs.files().index_bytes(path, bytes)?;
            changed.push(path.clone());
        }
        self.docs.tree().sync(&changed)?;
        for (path, bytes) in &moved {
            self.docs.files().index_bytes(path, bytes)?;
        }
        for path in &old {
            self.docs.index().write(|tx| remove(tx, path))?;
            self.docs.tree().remove(path)?;
            self.docs.files().hold(path, b"")?;
            if let Some(new) = moved_path(path, from, to) {
                self.docs.uses().rename(path, &new)?;
            }
        }
        Ok((moved_path(&row.document, from, to), changed.len() as u64))
    }

    fn texts(&self, paths: Vec<VaultPath>) -> Result<Texts, StoreError> {
        let mut texts = Texts::new();
        for path in paths {
            if let Some(bytes) = self.docs.tree().read(&path)? {
                texts.insert(path, bytes);
            }
        }
        Ok(texts)
    }

    /// Indexes the archived documents in place of those at the old place.
    fn index_folders(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let archived = self.texts(self.docs.tree().list(to)?)?;
        self.docs.index().write(|tx| {
            for path in documents_of_turn(tx, from)? {
                remove(tx, &path)?;
            }
            for (path, bytes) in &archived {
                if let Indexed::Rows(rows) = rows_of(path, bytes) {
                    put(tx, &rows)?;
                }
            }
            Ok(())
        })
    }

    /// Empties the old location; files added there meanwhile are moved to the archive too.
    fn empty_folder(&self, from: &str, to: &str) -> Result<(), StoreError> {
        for path in self.docs.tree().list(from)? {
            let target = moved_path(&path, from, to);
            if let Some(target) = target.filter(|_| path.name() != METADATA)
                && self.docs.tree().read(&target)?.is_none()
                && let Some(bytes) = self.docs.tree().read(&path)?
            {
                self.docs.tree().write(&target, &bytes)?;
                self.docs.tree().sync(&[target])?;
            }
            self.docs.tree().remove(&path)?;
        }
        self.docs.tree().remove_folder(from)
    }
}

/// Whether a file is a record of the turn in `folder` itself, and not of a captured page.
fn is_own_record(path: &VaultPath, folder: &str) -> bool {
    let own = path.as_str().strip_prefix(folder).is_none_or(|rest| !rest[1..].contains('/'));
    path.name().ends_with(".json") && own
}

fn moved_path(path: &VaultPath, from: &str, to: &str) -> Option<VaultPath> {
    VaultPath::new(&format!("{to}{}", path.as_str().strip_prefix(from)?))
}

/// Renames the documents of a folder, and rewrites every link to or from them.
fn relink(from: &str, to: &str, moved: &mut Texts, others: &mut Texts) {
    let is_note = |path: &VaultPath| path.name().ends_with(".md");
    let mut files: Vec<VaultPath> = moved.keys().chain(others.keys()).cloned().collect();
    for (path, bytes) in moved.iter().chain(others.iter()).filter(|(path, _)| is_note(path)) {
        files.extend(str::from_utf8(bytes).iter().flat_map(|text| links_in(path, text)));
    }
    let mut vault = Vault::new(files);
    for old in moved.keys().cloned().collect::<Vec<_>>() {
        let Some(new) = moved_path(&old, from, to) else { continue };
        let Ok(rename) = NoteRename::new(&vault, old.clone(), new.clone()) else { continue };
        for (path, bytes) in moved.iter_mut().chain(others.iter_mut()).filter(|(path, _)| is_note(path)) {
            if let Ok(text) = str::from_utf8(bytes) {
                let rewritten = rename.rewrite(path, text);
                if rewritten.changed > 0 {
                    *bytes = rewritten.text.into_bytes();
                }
            }
        }
        let after = rename.vault().clone();
        if let Some(bytes) = moved.remove(&old) {
            moved.insert(new, bytes);
        }
        vault = after;
    }
}

/// Rewrites the paths in records, which are JSON. Captured pages are quotations and stay unchanged.
fn repath(from: &str, to: &str, moved: &mut Texts, others: &mut Texts) {
    for (path, bytes) in moved.iter_mut().chain(others.iter_mut()).filter(|(path, _)| is_own_record(path, to))
    {
        if let Some(text) = str::from_utf8(bytes).ok().and_then(|text| repathed(text, from, to)) {
            tracing::debug!(%path, "its paths lead to the archive");
            *bytes = text.into_bytes();
        }
    }
}

/// The JSON with every string that is a path below `from` moved below `to`; `None` if there is none.
fn repathed(json: &str, from: &str, to: &str) -> Option<String> {
    let start = format!("\"{from}/");
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(&start) {
        // An escaped quote does not start a string.
        let quoted = rest[..at].ends_with('\\');
        text.push_str(&rest[..at]);
        text.push_str(&if quoted { start.clone() } else { format!("\"{to}/") });
        rest = &rest[at + start.len()..];
    }
    (!text.is_empty()).then(|| text + rest).filter(|text| text != json)
}
