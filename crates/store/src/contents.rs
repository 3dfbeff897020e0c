//! The storage of contents: originals and large ones as records of segments, other small ones as rows of the index, very
//! large ones as files. No other module depends on the distinction.
//!
//! A segment takes one sync for all records of a call, and rows share the sync of their transaction. So storing originals
//! takes two syncs, and recording a run one. Originals of any size are records, which say what their pointers say: the
//! index can be rebuilt from them.

mod moves;
mod places;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use larder_text::hash::ContentHash;
use rusqlite::Transaction;

use crate::deletion::count_early_erasure;
use crate::store::UserStore;
use larder_disk::StoreError;
use larder_disk::based;
use larder_disk::frame::{self, FrameReader, FrameWriter, NewBytes};
use larder_disk::segments::{Appended, PointerNote, Record};

pub(crate) use self::places::{COLUMNS, Found, RecordRow, enter_record, find, record, record_row};

/// The longest content that becomes a row, in bytes before compression.
pub(crate) const MAX_ROW_BYTES: usize = 32 << 10;
/// The longest content in a segment, before and after compression; a longer one is a file of its own.
const MAX_RECORD_BYTES: usize = 8 << 20;
const MAX_RECORD_FRAME: usize = 1 << 20;
/// Attempts to name contents that a collection keeps erasing, or to read one that is moved.
pub(crate) const MAX_TRIES: usize = 3;

/// A content to be stored.
#[derive(Debug, Clone)]
pub(crate) struct NewContent<'a> {
    pub(crate) bytes: NewBytes<'a>,
    /// What its pointer says, for an original.
    pub(crate) pointer: Option<PointerNote>,
    /// An original that may say most of it, with its length in bytes.
    pub(crate) base: Option<(ContentHash, u64)>,
}

impl<'a> NewContent<'a> {
    /// Contents without pointers.
    pub(crate) fn plain(contents: &[&'a [u8]]) -> Vec<Self> {
        contents.iter().map(|&bytes| Self { bytes: bytes.into(), pointer: None, base: None }).collect()
    }
}

/// Contents on their way into the store: records and files are on disk and synced; all wait for their transaction.
pub(crate) struct Placed {
    /// The addresses, in the order of the contents.
    pub(crate) hashes: Vec<ContentHash>,
    /// The frames of rows that are not stored yet.
    rows: Vec<(ContentHash, Vec<u8>)>,
    /// Records that no row names yet, and where they are.
    records: Vec<Record>,
    appended: Option<Appended>,
}

/// State shared by the writes of one transaction, so that many contents need one reader and one writer.
#[derive(Default)]
pub(crate) struct InsertBatch {
    reader: Option<FrameReader>,
    writer: Option<FrameWriter>,
    /// Contents already found intact or written, with the folders of their users.
    whole: HashSet<(String, ContentHash)>,
}

/// The contents of one user by their hash; from [`UserStore::contents`].
#[derive(Debug, Clone, Copy)]
pub struct StoredContents<'s> {
    pub(crate) store: &'s UserStore,
}

impl StoredContents<'_> {
    /// Stored bytes by their address: a receipt, an output, the content behind a pointer. The hash is checked.
    pub fn get(&self, hash: ContentHash) -> Result<Vec<u8>, StoreError> {
        let mut content = Vec::new();
        self.read(hash, |piece| content.extend_from_slice(piece))?;
        Ok(content)
    }

    /// Passes the content to `sink` piece by piece and returns its length. Discard what `sink` received unless this
    /// returns `Ok`.
    pub(crate) fn read(&self, hash: ContentHash, sink: impl FnMut(&[u8])) -> Result<u64, StoreError> {
        let mut found = self.find(hash)?;
        let read = self.read_moving(hash, &mut found, sink);
        let is_damage = matches!(&read, Err(error) if error.is_damage());
        if is_damage && found.is_some() {
            // Who has the bytes stores them again. Where that cannot be noted, the error still says what is wrong.
            self.store.index().write(count_early_erasure).ok();
        }
        read
    }

    /// Reads a content that may be moved meanwhile; `found` is its entry of the index.
    fn read_moving(
        &self,
        hash: ContentHash,
        found: &mut Option<Found>,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        let mut reader = FrameReader::new()?;
        for _ in 1..MAX_TRIES {
            match self.read_found(&mut reader, hash, found.as_ref(), &mut sink) {
                Err(error) if error.is_damage() => {
                    // It may have been moved, or erased, since its place was looked up.
                    let now = self.find(hash)?;
                    if now == *found {
                        return Err(error);
                    }
                    *found = now;
                }
                read => return read,
            }
        }
        self.read_found(&mut reader, hash, found.as_ref(), &mut sink)
    }

    fn find(&self, hash: ContentHash) -> Result<Option<Found>, StoreError> {
        self.store.index().read(|tx| places::find(tx, self.store.user(), hash))
    }

    /// The entry of a content that is a record.
    pub(crate) fn record(&self, hash: ContentHash) -> Result<Option<RecordRow>, StoreError> {
        self.store.index().read(|tx| places::record(tx, self.store.user(), hash))
    }

    /// The content of an entry of the index. `sink` gets all at once, or pieces of a file.
    fn read_found(
        &self,
        reader: &mut FrameReader,
        hash: ContentHash,
        found: Option<&Found>,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        let content = match found {
            Some(Found::Row(frame)) => self.decode_row(reader, hash, frame)?,
            Some(Found::Record(row)) if !row.is_external => self.decode_record(reader, hash, row)?,
            _ => return self.store.blobs().read(self.store.folder(), hash, sink),
        };
        sink(&content);
        Ok(content.len() as u64)
    }

    /// The content of a row.
    pub(crate) fn decode_row(
        &self,
        reader: &mut FrameReader,
        hash: ContentHash,
        frame: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        reader.read(frame, MAX_ROW_BYTES, hash).map_err(|reason| StoreError::CorruptBlob {
            path: self.store.index().path().to_path_buf(),
            reason: format!("content {hash} of user {:?}: {reason}", self.store.user()),
        })
    }

    /// The content of a record in a segment.
    fn decode_record(
        &self,
        reader: &mut FrameReader,
        hash: ContentHash,
        row: &RecordRow,
    ) -> Result<Vec<u8>, StoreError> {
        let record = self.store.segments().read(self.store.folder(), row.place)?;
        let corrupt = |reason: String| StoreError::CorruptBlob {
            path: self.store.segments().path(self.store.folder(), row.place.segment),
            reason: format!("content {hash} at byte {}: {reason}", row.place.at),
        };
        let frame = record.frame.filter(|_| record.hash == hash);
        let frame = frame.ok_or_else(|| corrupt("the record is of another content".to_owned()))?;
        match row.base {
            None => reader.read(&frame, MAX_RECORD_BYTES, hash).map_err(corrupt),
            Some(base) => {
                let base = self.plain(reader, base)?;
                based::decompress(&frame, &base, MAX_RECORD_BYTES, hash).map_err(corrupt)
            }
        }
    }

    /// A content that another one is based on; it has no base itself.
    fn plain(&self, reader: &mut FrameReader, hash: ContentHash) -> Result<Vec<u8>, StoreError> {
        let found = self.find(hash)?;
        let mut content = Vec::new();
        match &found {
            Some(Found::Record(RecordRow { base: Some(_), .. })) => {
                let path = self.store.segments().root().join(self.store.folder());
                return Err(StoreError::CorruptBlob { path, reason: format!("content {hash} has a base") });
            }
            found => {
                self.read_found(reader, hash, found.as_ref(), &mut |piece| content.extend_from_slice(piece))?
            }
        };
        Ok(content)
    }

    /// Writes records and files; when this returns, they survive a crash of the machine. Intact contents are not
    /// rewritten, damaged ones are replaced.
    pub(crate) fn place(&self, contents: &[NewContent<'_>]) -> Result<Placed, StoreError> {
        let hashes: Vec<_> = contents.iter().map(|content| content.bytes.hash()).collect();
        let mut missing = BTreeMap::new();
        for (hash, content) in hashes.iter().copied().zip(contents) {
            missing.entry(hash).or_insert(content);
        }
        let found = self.store.index().read(|tx| {
            // Files of a transaction that is refused would stay.
            self.store.require_staying(tx)?;
            let find = |hash: &ContentHash| Ok((*hash, places::find(tx, self.store.user(), *hash)?));
            missing.keys().map(find).collect::<Result<BTreeMap<_, _>, StoreError>>()
        })?;
        let mut reader = None;
        let mut held = BTreeSet::new();
        for (hash, content) in &missing {
            let found = found.get(hash).and_then(Option::as_ref);
            if self.is_held(*hash, content, found, &mut reader)? {
                held.insert(*hash);
            }
        }
        missing.retain(|hash, _| !held.contains(hash));
        self.write_missing(hashes, missing, &found)
    }

    /// Whether a content need not be written: it is intact, and an original is a record.
    fn is_held(
        &self,
        hash: ContentHash,
        content: &NewContent<'_>,
        found: Option<&Found>,
        reader: &mut Option<FrameReader>,
    ) -> Result<bool, StoreError> {
        let fits = match found {
            Some(Found::Record(row)) => row.has_pointer || content.pointer.is_none(),
            Some(Found::Row(_)) => content.pointer.is_none(),
            None => content.pointer.is_none() && self.store.blobs().contains(self.store.folder(), hash),
        };
        if !fits {
            return Ok(false);
        }
        // Most contents are new, and creating a reader costs more than looking for them.
        let reader = match reader {
            Some(reader) => reader,
            none => none.insert(FrameReader::new()?),
        };
        match self.read_found(reader, hash, found, &mut |_| ()) {
            Ok(_) => Ok(true),
            Err(StoreError::MissingBlob { .. }) => Ok(false),
            Err(error @ StoreError::CorruptBlob { .. }) => {
                tracing::warn!(%error, "replacing a damaged content");
                Ok(false)
            }
            Err(other) => Err(other),
        }
    }

    fn write_missing(
        &self,
        hashes: Vec<ContentHash>,
        missing: BTreeMap<ContentHash, &NewContent<'_>>,
        found: &BTreeMap<ContentHash, Option<Found>>,
    ) -> Result<Placed, StoreError> {
        let folder = self.store.folder();
        let mut placed = Placed { hashes, rows: Vec::new(), records: Vec::new(), appended: None };
        let mut compressor = frame::Compressor::default();
        let mut files = BTreeMap::new();
        for (hash, content) in missing {
            // What replaces a damaged content depends on nothing else.
            let based = if let Some(Some(_)) = found.get(&hash) { None } else { self.on_base(content)? };
            let pointer = match found.get(&hash) {
                // It is damaged, but may still say this.
                Some(Some(Found::Record(row))) => content.pointer.clone().or_else(|| self.note_of(row)),
                _ if based.is_none()
                    && content.pointer.is_none()
                    && content.bytes.bytes() <= MAX_ROW_BYTES =>
                {
                    placed.rows.push((hash, compressor.frame(content.bytes)?));
                    continue;
                }
                _ => content.pointer.clone(),
            };
            let (base, frame) = match based.filter(|_| pointer.is_none()) {
                Some((base, frame)) => (Some(base), Some(frame)),
                None => {
                    let frame = compressor.frame(content.bytes)?;
                    if content.bytes.bytes() > MAX_RECORD_BYTES || frame.len() > MAX_RECORD_FRAME {
                        files.insert(hash, frame);
                        (None, None)
                    } else {
                        (None, Some(frame))
                    }
                }
            };
            if frame.is_some() || pointer.is_some() {
                let owner = self.store.user().to_owned();
                placed.records.push(Record { owner, hash, base, pointer, frame });
            }
        }
        self.store.blobs().put_all(folder, &files)?;
        if !placed.records.is_empty() {
            placed.appended = Some(self.store.segments().append(folder, &placed.records)?);
        }
        Ok(placed)
    }

    /// The frame of a content on its base, if that is there and helps.
    fn on_base(&self, content: &NewContent<'_>) -> Result<Option<(ContentHash, Vec<u8>)>, StoreError> {
        let (Some(base), NewBytes::Plain(content)) = (content.base, content.bytes) else { return Ok(None) };
        let is_there = match self.find(base.0)? {
            Some(Found::Row(_)) => true,
            Some(Found::Record(row)) if row.base.is_none() => match row.is_external {
                true => self.store.blobs().contains(self.store.folder(), base.0),
                false => self.store.segments().read(self.store.folder(), row.place).is_ok(),
            },
            _ => false,
        };
        if !is_there {
            return Ok(None);
        }
        let read = || match self.plain(&mut FrameReader::new()?, base.0) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_damage() => Ok(None),
            Err(error) => Err(error),
        };
        Ok(based::frame(content, base, MAX_RECORD_BYTES, read)?.map(|frame| (base.0, frame)))
    }

    /// What a record says of its pointer, if that is intact.
    fn note_of(&self, row: &RecordRow) -> Option<PointerNote> {
        self.store.segments().read(self.store.folder(), row.place).ok()?.pointer
    }

    /// As [`UserStore::write`], of rows that name contents, which are placed first. They are placed again if a collection
    /// erased one before the rows named it.
    pub(crate) fn write_placed<T>(
        &self,
        contents: &[NewContent<'_>],
        mut work: impl FnMut(&Transaction<'_>, &Placed) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tries = 1;
        loop {
            let placed = self.place(contents)?;
            let written = self.store.write_unsynced(|tx| {
                self.insert(tx, &placed)?;
                work(tx, &placed)
            });
            match written {
                Ok(done) => {
                    self.store.index().sync()?;
                    return Ok(done);
                }
                Err(error) => {
                    self.discard(placed);
                    if !matches!(error, StoreError::MissingBlob { .. }) || tries == MAX_TRIES {
                        return Err(error);
                    }
                    tries += 1;
                }
            }
        }
    }

    /// Takes back what was placed for a transaction that failed.
    pub(crate) fn discard(&self, placed: Placed) {
        if let Some(appended) = placed.appended {
            appended.discard(self.store.segments(), self.store.folder());
        }
    }

    /// Erases a content, bytes and not only its entry, and returns the bytes freed on disk. Those of a record follow:
    /// see `retention::erase`. The caller makes sure that nothing names it, in the same transaction, which must be one that
    /// writes: only then can no one name it meanwhile.
    pub(crate) fn erase(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<u64, StoreError> {
        let bytes = self.bytes_on_disk(tx, hash)?;
        places::delete(tx, self.store.user(), hash)?;
        self.store.blobs().remove(self.store.folder(), hash)?;
        Ok(bytes)
    }

    /// Bytes that a content takes; 0 if there is none.
    pub(crate) fn bytes_on_disk(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<u64, StoreError> {
        let row = places::row_bytes(tx, self.store.user(), hash)?;
        let record = places::record(tx, self.store.user(), hash)?.map_or(0, |row| row.place.length);
        let file = self.store.blobs().path(self.store.folder(), hash).metadata().map_or(0, |file| file.len());
        Ok(row.saturating_add(record).saturating_add(file))
    }

    /// Writes rows and the places of records, in the transaction of the rows that name the contents.
    pub(crate) fn insert(&self, tx: &Transaction<'_>, placed: &Placed) -> Result<(), StoreError> {
        for (hash, frame) in &placed.rows {
            // Another process may have stored it as an original meanwhile.
            if places::record(tx, self.store.user(), *hash)?.is_none() {
                places::insert_row(tx, self.store.user(), *hash, frame)?;
            }
        }
        let Some(appended) = &placed.appended else { return Ok(()) };
        if !appended.is_current() {
            return Err(StoreError::MissingBlob {
                path: self.store.segments().root().join(self.store.folder()),
            });
        }
        for (record, place) in placed.records.iter().zip(&appended.places) {
            if let Some(base) = record.base {
                self.require(tx, base)?;
            }
            places::insert_record(tx, self.store.user(), record, *place)?;
        }
        Ok(())
    }

    /// Writes those small contents that are missing or damaged, in the transaction of the rows that name them. Returns
    /// their hashes.
    pub(crate) fn insert_missing(
        &self,
        tx: &Transaction<'_>,
        contents: &[&[u8]],
        batch: &mut InsertBatch,
    ) -> Result<Vec<ContentHash>, StoreError> {
        let hashes: Vec<_> = contents.iter().copied().map(ContentHash::new).collect();
        for (&hash, &bytes) in hashes.iter().zip(contents) {
            if !batch.whole.insert((self.store.folder().to_owned(), hash)) {
                continue;
            }
            let found = places::find(tx, self.store.user(), hash)?;
            let content = NewContent { bytes: bytes.into(), pointer: None, base: None };
            if self.is_held(hash, &content, found.as_ref(), &mut batch.reader)? {
                continue;
            }
            let failed = StoreError::io(self.store.index().path(), "compressing a content");
            let frame = match &mut batch.writer {
                Some(writer) => writer.write(bytes),
                none => FrameWriter::new().and_then(|writer| none.insert(writer).write(bytes)),
            };
            places::delete(tx, self.store.user(), hash)?;
            places::insert_row(tx, self.store.user(), hash, &frame.map_err(failed)?)?;
        }
        Ok(hashes)
    }

    /// Fails if a content that a row is about to name does not exist, such as when it was deleted after it was placed.
    pub(crate) fn require(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<(), StoreError> {
        let record = places::record(tx, self.store.user(), hash)?;
        if record.is_some_and(|row| !row.is_external)
            || places::is_row(tx, self.store.user(), hash)?
            || self.store.blobs().contains(self.store.folder(), hash)
        {
            return Ok(());
        }
        Err(StoreError::MissingBlob { path: self.store.blobs().path(self.store.folder(), hash) })
    }
}
