//! The storage of contents: small ones as rows of the index, large ones as files. No other module depends on the
//! distinction.
//!
//! Every file needs a sync of its own, which takes some milliseconds; rows share the one sync of their transaction.
//! Receipts and the many small parts of a prompt are rows, so recording a run takes one sync.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use larder_text::hash::ContentHash;
use rusqlite::{OptionalExtension, Transaction};

use crate::error::StoreError;
use crate::frame::{self, FrameReader, FrameWriter};
use crate::store::UserStore;

/// The longest content that becomes a row, in bytes before compression.
pub(crate) const MAX_ROW_BYTES: usize = 32 << 10;
/// Attempts to name contents that a collection keeps erasing.
pub(crate) const MAX_TRIES: usize = 3;

/// Contents on their way into the store: the large ones are on disk and synced, the small ones wait for their
/// transaction.
pub(crate) struct Placed {
    /// The addresses, in the order of the contents.
    pub(crate) hashes: Vec<ContentHash>,
    /// The frames of the small ones that are not stored yet.
    rows: Vec<(ContentHash, Vec<u8>)>,
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

    /// As [`crate::blobs::Blobs::read`], for both rows and files.
    pub(crate) fn read(&self, hash: ContentHash, mut sink: impl FnMut(&[u8])) -> Result<u64, StoreError> {
        let Some(frame) = self.store.index().read(|tx| self.row(tx, hash))? else {
            return self.store.blobs().read(self.store.folder(), hash, sink);
        };
        let content = self.decode_row(&mut FrameReader::new()?, hash, &frame)?;
        sink(&content);
        Ok(content.len() as u64)
    }

    fn row(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        let mut query = tx.prepare_cached("SELECT frame FROM contents WHERE user = ?1 AND hash = ?2")?;
        Ok(query.query_row((self.store.user(), hash.as_bytes()), |row| row.get(0)).optional()?)
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

    /// Writes the large contents; when this returns, they survive a crash of the machine. Intact contents are not
    /// rewritten, damaged ones are replaced.
    pub(crate) fn place(&self, contents: &[&[u8]]) -> Result<Placed, StoreError> {
        let hashes: Vec<_> = contents.iter().map(|content| ContentHash::new(content)).collect();
        let all = || hashes.iter().copied().zip(contents.iter().copied());
        let large: BTreeMap<_, _> = all().filter(|(_, content)| content.len() > MAX_ROW_BYTES).collect();
        self.store.blobs().put_all(self.store.folder(), &large)?;
        let small: BTreeMap<_, _> = all().filter(|(_, content)| content.len() <= MAX_ROW_BYTES).collect();
        let held = self.store.index().read(|tx| self.whole_rows(tx, small.keys().copied()))?;
        let missing: Vec<_> = small.into_iter().filter(|(hash, _)| !held.contains(hash)).collect();
        let frames = frame::compress_all(missing.iter().map(|(_, content)| *content))
            .map_err(StoreError::io(self.store.index().path(), "compressing a content"))?;
        let rows = missing.into_iter().map(|(hash, _)| hash).zip(frames).collect();
        Ok(Placed { hashes, rows })
    }

    /// As [`UserStore::write`], of rows that name contents, which are placed first. They are placed again if a collection
    /// erased one before the rows named it.
    pub(crate) fn write_placed<T>(
        &self,
        contents: &[&[u8]],
        mut work: impl FnMut(&Transaction<'_>, &Placed) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tries = 1;
        loop {
            let placed = self.place(contents)?;
            let written = self.store.write(|tx| {
                self.insert(tx, &placed)?;
                work(tx, &placed)
            });
            match written {
                Err(StoreError::MissingBlob { .. }) if tries < MAX_TRIES => tries += 1,
                done => return done,
            }
        }
    }

    /// Erases a content, bytes and not only its entry, and returns the bytes freed on disk. The caller makes sure that
    /// nothing names it, in the same transaction, which must be one that writes: only then can no one name it meanwhile.
    pub(crate) fn erase(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<u64, StoreError> {
        let bytes = self.bytes_on_disk(tx, hash)?;
        tx.prepare_cached("DELETE FROM contents WHERE user = ?1 AND hash = ?2")?
            .execute((self.store.user(), hash.as_bytes()))?;
        self.store.blobs().remove(self.store.folder(), hash)?;
        Ok(bytes)
    }

    /// Bytes that a content takes; 0 if there is none.
    pub(crate) fn bytes_on_disk(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<u64, StoreError> {
        let mut query =
            tx.prepare_cached("SELECT length(frame) FROM contents WHERE user = ?1 AND hash = ?2")?;
        let row: Option<i64> =
            query.query_row((self.store.user(), hash.as_bytes()), |row| row.get(0)).optional()?;
        let file = self.store.blobs().path(self.store.folder(), hash).metadata().map_or(0, |file| file.len());
        Ok(row.unwrap_or(0).unsigned_abs().saturating_add(file))
    }

    /// Those of the contents that are intact rows.
    fn whole_rows(
        &self,
        tx: &Transaction<'_>,
        hashes: impl Iterator<Item = ContentHash>,
    ) -> Result<BTreeSet<ContentHash>, StoreError> {
        let (mut whole, mut batch) = (BTreeSet::new(), InsertBatch::default());
        for hash in hashes {
            // Most contents are new, and creating a reader costs more than looking for them.
            if self.is_whole(tx, hash, &mut batch)? {
                whole.insert(hash);
            }
        }
        Ok(whole)
    }

    /// Writes the small contents, in the transaction of the rows that name them.
    pub(crate) fn insert(&self, tx: &Transaction<'_>, placed: &Placed) -> Result<(), StoreError> {
        let mut insert = tx.prepare_cached(
            "INSERT INTO contents (user, hash, frame) VALUES (?1, ?2, ?3)
             ON CONFLICT (user, hash) DO UPDATE SET frame = excluded.frame",
        )?;
        for (hash, frame) in &placed.rows {
            insert.execute((self.store.user(), hash.as_bytes(), frame))?;
        }
        Ok(())
    }

    /// Writes those small contents that are missing or damaged, in the transaction of the rows that name them.
    pub(crate) fn insert_missing<'a>(
        &self,
        tx: &Transaction<'_>,
        contents: impl Iterator<Item = &'a [u8]>,
        batch: &mut InsertBatch,
    ) -> Result<(), StoreError> {
        for content in contents {
            let hash = ContentHash::new(content);
            if !batch.whole.insert((self.store.folder().to_owned(), hash))
                || self.is_whole(tx, hash, batch)?
            {
                continue;
            }
            let failed = StoreError::io(self.store.index().path(), "compressing a content");
            let frame = match &mut batch.writer {
                Some(writer) => writer.write(content),
                none => FrameWriter::new().and_then(|writer| none.insert(writer).write(content)),
            };
            let placed = Placed { hashes: vec![hash], rows: vec![(hash, frame.map_err(failed)?)] };
            self.insert(tx, &placed)?;
        }
        Ok(())
    }

    /// Whether a content is an intact row.
    fn is_whole(
        &self,
        tx: &Transaction<'_>,
        hash: ContentHash,
        batch: &mut InsertBatch,
    ) -> Result<bool, StoreError> {
        let Some(frame) = self.row(tx, hash)? else { return Ok(false) };
        let reader = match &mut batch.reader {
            Some(reader) => reader,
            none => none.insert(FrameReader::new()?),
        };
        let read = self.decode_row(reader, hash, &frame);
        Ok(read.inspect_err(|error| tracing::warn!(%error, "replacing a damaged content")).is_ok())
    }

    /// Fails if a content that a row is about to name does not exist, such as when it was deleted after it was placed.
    pub(crate) fn require(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<(), StoreError> {
        let mut query = tx.prepare_cached("SELECT 1 FROM contents WHERE user = ?1 AND hash = ?2")?;
        if query.exists((self.store.user(), hash.as_bytes()))?
            || self.store.blobs().contains(self.store.folder(), hash)
        {
            return Ok(());
        }
        Err(StoreError::MissingBlob { path: self.store.blobs().path(self.store.folder(), hash) })
    }
}
