//! Segment files: append-only, each with the contents of one user, many to a file. Knows positions, not which of them
//! are in use.
//!
//! A process appends to a segment that it holds locked, and syncs it before it returns. Records never move within a
//! file; an erased one is overwritten with zeros, and its blocks are returned to the file system.

mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::record::{ALIGNMENT, Found, decode, erasable};
pub use self::record::{PointerNote, Record};
use crate::StoreError;
use crate::files;
use crate::group_sync::GroupSync;

/// A segment that has reached this size takes no more records.
const FULL: u64 = 16 << 20;
/// Segments that a process holds open for appending, each of another user.
const MAX_OPEN: usize = 64;
/// Segments that are considered for appending: those with room are among the newest.
const MAX_LOOKED_AT: usize = 8;
/// Attempts to append while others fill or remove segments.
const MAX_TRIES: usize = 16;
/// The ending of the files' names.
const SUFFIX: &str = ".seg";

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordPlace {
    /// The number of the segment.
    pub segment: u32,
    /// Its first byte.
    pub at: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// The segments of a home folder: `<user folder>/<6 digits or more>.seg`.
#[derive(Debug)]
pub struct Segments {
    root: PathBuf,
    open: Mutex<OpenSegments>,
}

/// Those that this process appends to.
#[derive(Debug, Default)]
struct OpenSegments {
    /// By the user's folder, with the number of their last use.
    all: BTreeMap<String, (u64, Arc<Segment>)>,
    uses: u64,
}

/// A segment that this process alone appends to, as long as this exists.
#[derive(Debug)]
struct Segment {
    number: u32,
    path: PathBuf,
    file: File,
    end: Mutex<u64>,
    syncs: GroupSync,
}

/// Records that were appended and synced. While this exists, no other process takes the segment over or rewrites it.
#[derive(Debug)]
pub struct Appended {
    segment: Arc<Segment>,
    /// In the order of the records.
    pub places: Vec<RecordPlace>,
}

impl Segments {
    /// The segments below a folder.
    pub fn new(root: PathBuf) -> Self {
        Self { root, open: Mutex::default() }
    }

    /// The folder below which they are.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a segment is.
    pub fn path(&self, folder: &str, number: u32) -> PathBuf {
        self.root.join(folder).join(format!("{number:06}{SUFFIX}"))
    }

    /// The segment files of a user, in the order of their numbers.
    pub fn list(&self, folder: &str) -> Result<Vec<u32>, StoreError> {
        let entries = files::entries(&self.root.join(folder))?;
        let mut numbers: Vec<u32> = entries.iter().filter_map(|entry| number_of(&entry.name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Appends records of a user to one segment; when it returns, they survive a crash of the machine. There must be at
    /// least one.
    pub fn append(&self, folder: &str, records: &[Record]) -> Result<Appended, StoreError> {
        for _ in 0..MAX_TRIES {
            let segment = self.open(folder)?;
            let Some(places) = segment.write(records)? else {
                self.close(folder, &segment);
                continue;
            };
            let write = segment.syncs.written();
            if let Err(error) = segment.syncs.sync(write, &segment.file) {
                self.close(folder, &segment);
                return Err(StoreError::io(&segment.path, "syncing a segment")(error));
            }
            let appended = Appended { segment, places };
            // Also when the user's folder was moved away meanwhile.
            if appended.is_current() {
                return Ok(appended);
            }
            self.close(folder, &appended.segment);
        }
        Err(StoreError::Locked { path: self.root.join(folder) })
    }

    /// The segment that this process appends to.
    fn open(&self, folder: &str) -> Result<Arc<Segment>, StoreError> {
        let mut open = lock(&self.open);
        open.uses += 1;
        let now = open.uses;
        if let Some((used, segment)) = open.all.get_mut(folder) {
            *used = now;
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(self.take_over(folder)?);
        if open.all.len() >= MAX_OPEN
            && let Some(oldest) =
                open.all.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone())
        {
            open.all.remove(&oldest);
        }
        open.all.insert(folder.to_owned(), (now, Arc::clone(&segment)));
        Ok(segment)
    }

    fn close(&self, folder: &str, segment: &Arc<Segment>) {
        let mut open = lock(&self.open);
        if open.all.get(folder).is_some_and(|(_, held)| Arc::ptr_eq(held, segment)) {
            open.all.remove(folder);
        }
    }

    /// Locks a segment that has room and that no process appends to, or creates one.
    fn take_over(&self, folder: &str) -> Result<Segment, StoreError> {
        let dir = self.root.join(folder);
        if files::create_dir(&dir)? {
            files::sync_dir(&self.root)?;
        }
        let numbers = self.list(folder)?;
        for number in numbers.iter().rev().take(MAX_LOOKED_AT).copied() {
            if let Some(segment) = self.lock_segment(folder, number)?
                && *lock(&segment.end) < FULL
            {
                return Ok(segment);
            }
        }
        let mut number = numbers.last().map_or(1, |last| last.saturating_add(1));
        loop {
            let path = self.path(folder, number);
            match files::create_private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number = number.saturating_add(1);
                    continue;
                }
                created => created.map_err(StoreError::io(&path, "creating a segment"))?,
            };
            files::sync_dir(&dir)?;
            // Another process may have been quicker.
            if let Some(segment) = self.lock_segment(folder, number)? {
                return Ok(segment);
            }
        }
    }

    fn lock_segment(&self, folder: &str, number: u32) -> Result<Option<Segment>, StoreError> {
        let path = self.path(folder, number);
        let Some(file) = self.lock_file(&path)? else { return Ok(None) };
        let end = file.metadata().map_err(StoreError::io(&path, "reading a segment"))?.len();
        // What a crash left incomplete is skipped.
        let end = Mutex::new(end.next_multiple_of(ALIGNMENT));
        let segment = Segment { number, path, file, end, syncs: GroupSync::default() };
        Ok(segment.is_current().then_some(segment))
    }

    fn lock_file(&self, path: &Path) -> Result<Option<File>, StoreError> {
        let opened = File::options().read(true).write(true).open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(StoreError::io(path, "opening a segment"))?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(std::fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(Some(file))
            }
            Err(std::fs::TryLockError::Error(error)) => Err(StoreError::io(path, "locking a segment")(error)),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        }
    }

    /// Locks a segment, so that no one appends to it while the file exists; `None` if it is in use or gone.
    pub fn lock(&self, folder: &str, number: u32) -> Result<Option<File>, StoreError> {
        self.lock_file(&self.path(folder, number))
    }

    /// The record at a place. Its frame is not checked.
    pub fn read(&self, folder: &str, place: RecordPlace) -> Result<Record, StoreError> {
        let path = self.path(folder, place.segment);
        let mut bytes = vec![0; usize::try_from(place.length).unwrap_or(0)];
        let read = File::open(&path).and_then(|mut file| {
            file.seek(SeekFrom::Start(place.at))?;
            file.read_exact(&mut bytes)
        });
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StoreError::MissingBlob { path }),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(StoreError::CorruptBlob {
                path,
                reason: format!("it ends before byte {}", place.at + place.length),
            }),
            Err(error) => Err(StoreError::io(&path, "reading a segment")(error)),
            Ok(()) => match decode(&bytes, place.at) {
                Found::Record(record, _) => Ok(record),
                _ => Err(StoreError::CorruptBlob {
                    path,
                    reason: format!("no intact record at byte {}", place.at),
                }),
            },
        }
    }

    /// Overwrites records with zeros, and returns their blocks to the file system. What is gone already is skipped.
    pub fn erase(&self, folder: &str, places: &[RecordPlace]) -> Result<(), StoreError> {
        for place in places {
            let path = self.path(folder, place.segment);
            let mut file = match File::options().read(true).write(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(StoreError::io(&path, "erasing from a segment"))?,
            };
            overwrite(&mut file, *place).map_err(StoreError::io(&path, "erasing from a segment"))?;
            punch(&file, *place);
        }
        Ok(())
    }

    /// Makes what was erased from segments stay so after a crash of the machine.
    pub fn sync(&self, folder: &str, places: &[RecordPlace]) -> Result<(), StoreError> {
        let numbers: BTreeSet<u32> = places.iter().map(|place| place.segment).collect();
        for number in numbers {
            let path = self.path(folder, number);
            match File::open(&path).and_then(|file| file.sync_data()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io(&path, "syncing a segment")(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Every record of a segment that is whole, with its place. Between records, anything is skipped.
    pub fn scan(&self, folder: &str, number: u32) -> Result<Vec<(RecordPlace, Record)>, StoreError> {
        let path = self.path(folder, number);
        let bytes = std::fs::read(&path).map_err(StoreError::io(&path, "reading a segment"))?;
        let (mut found, mut at) = (Vec::new(), 0_usize);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let length = match decode(rest, at as u64) {
                Found::Record(record, length) => {
                    found.push((RecordPlace { segment: number, at: at as u64, length }, record));
                    length
                }
                Found::Dead(length) if length <= rest.len() as u64 => length,
                _ => ALIGNMENT,
            };
            at = at.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        }
        Ok(found)
    }

    /// The size of a segment with what was erased of it; 0 if there is none.
    pub fn size(&self, folder: &str, number: u32) -> u64 {
        self.path(folder, number).metadata().map_or(0, |file| file.len())
    }

    /// Removes a segment with all that is in it. Lock it first. Its number is not used again: notes of what to erase may
    /// still name it.
    pub fn remove(&self, folder: &str, number: u32) -> Result<(), StoreError> {
        if self.list(folder)?.last() == Some(&number) {
            let next = self.path(folder, number.saturating_add(1));
            match files::create_private(&next) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(StoreError::io(&next, "creating a segment")(error));
                }
                _ => files::sync_dir(&self.root.join(folder))?,
            }
        }
        let path = self.path(folder, number);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io(&path, "removing a segment")(error))
            }
            _ => files::sync_dir(&self.root.join(folder)),
        }
    }
}

impl Appended {
    /// Whether the segment is still where it was. Ask in the transaction that commits the records: the folder of a user
    /// who is deleted is moved away in one, too.
    pub fn is_current(&self) -> bool {
        self.segment.is_current()
    }

    /// Takes the records back, of which no row may have been committed. What fails here leaves bytes that nothing names.
    pub fn discard(self, segments: &Segments, folder: &str) {
        let (Some(first), Some(last)) = (self.places.first(), self.places.last()) else { return };
        {
            let mut end = lock(&self.segment.end);
            if last.at + last.length == *end && self.segment.file.set_len(first.at).is_ok() {
                *end = first.at;
                return;
            }
        }
        if let Err(error) = segments.erase(folder, &self.places) {
            tracing::warn!(%error, "records that were not committed are left behind");
        }
    }
}

impl Segment {
    /// Writes the records at the end; `None` if the segment is full. If writing fails, none of them is left.
    fn write(&self, records: &[Record]) -> Result<Option<Vec<RecordPlace>>, StoreError> {
        let mut end = lock(&self.end);
        if *end >= FULL {
            return Ok(None);
        }
        let (mut places, mut bytes) = (Vec::with_capacity(records.len()), Vec::new());
        for record in records {
            let at = *end + bytes.len() as u64;
            let encoded = record.encode(at);
            places.push(RecordPlace { segment: self.number, at, length: encoded.len() as u64 });
            bytes.extend_from_slice(&encoded);
        }
        let mut file = &self.file;
        let written = file.seek(SeekFrom::Start(*end)).and_then(|_| file.write_all(&bytes));
        if let Err(error) = written {
            let _ = self.file.set_len(*end);
            return Err(StoreError::io(&self.path, "writing a segment")(error));
        }
        *end += bytes.len() as u64;
        Ok(Some(places))
    }

    /// Whether the file is still at its place: not if its user's folder was moved away to be deleted.
    fn is_current(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let (here, held) = (self.path.metadata(), self.file.metadata());
            here.is_ok_and(|here| held.is_ok_and(|held| (here.dev(), here.ino()) == (held.dev(), held.ino())))
        }
        #[cfg(not(unix))]
        self.path.is_file()
    }
}

fn number_of(name: &str) -> Option<u32> {
    name.strip_suffix(SUFFIX)?.parse().ok()
}

/// Whether a file of a user's folder is a segment.
pub fn is_segment(name: &str) -> bool {
    number_of(name).is_some()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn overwrite(file: &mut File, place: RecordPlace) -> io::Result<()> {
    let (from, length) = erasable(place.at, place.length);
    file.seek(SeekFrom::Start(from))?;
    io::copy(&mut io::repeat(0).take(length), file)?;
    Ok(())
}

/// Returns the blocks of a record to the file system, if it can take them.
#[cfg(target_os = "linux")]
fn punch(file: &File, place: RecordPlace) {
    use rustix::fs::{FallocateFlags, fallocate};
    let (from, length) = erasable(place.at, place.length);
    let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, length);
}

#[cfg(not(target_os = "linux"))]
fn punch(_: &File, _: RecordPlace) {}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
