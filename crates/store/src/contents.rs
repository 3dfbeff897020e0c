//! Where a content goes: small ones become rows of the index, large ones files. Nobody else knows the difference.
//!
//! A file costs a sync of its own, some milliseconds each; rows share the one sync of their transaction. Receipts
//! and the many small parts of a prompt are rows, so recording a run is one sync.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use larder_text::hash::ContentHash;
use rusqlite::{OptionalExtension, Transaction};

use crate::error::StoreError;
use crate::frame::{self, FrameReader, FrameWriter};
use crate::store::UserStore;

/// The longest content that becomes a row, in bytes before compression.
pub(crate) const MAX_ROW_BYTES: usize = 32 << 10;

/// Contents of which the large ones are on disk and synced; the small ones wait for their transaction.
pub(crate) struct Placed {
    /// The addresses, in the order in which the contents were given.
    pub(crate) hashes: Vec<ContentHash>,
    /// The frames of the small ones that are not there yet.
    rows: Vec<(ContentHash, Vec<u8>)>,
}

/// What writing many contents in one transaction uses again from one to the next.
#[derive(Default)]
pub(crate) struct Desk {
    reader: Option<FrameReader>,
    writer: Option<FrameWriter>,
    /// Contents known to be there and whole, with the folders of their users.
    whole: HashSet<(String, ContentHash)>,
}

impl UserStore {
    /// Stored bytes by their address: a receipt, an output, the content behind a pointer. The hash is checked.
    pub fn blob(&self, hash: ContentHash) -> Result<Vec<u8>, StoreError> {
        let mut content = Vec::new();
        self.read_blob(hash, |piece| content.extend_from_slice(piece))?;
        Ok(content)
    }

    /// As [`crate::blobs::Blobs::read`], wherever the content is.
    pub(crate) fn read_blob(
        &self,
        hash: ContentHash,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        let Some(frame) = self.index().read(|tx| self.row(tx, hash))? else {
            return self.blobs().read(self.folder(), hash, sink);
        };
        let content = self.decode_row(&mut FrameReader::new()?, hash, &frame)?;
        sink(&content);
        Ok(content.len() as u64)
    }

    fn row(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        let mut query = tx.prepare_cached("SELECT frame FROM contents WHERE user = ?1 AND hash = ?2")?;
        Ok(query.query_row((self.user(), hash.as_bytes()), |row| row.get(0)).optional()?)
    }

    /// The content of a row.
    pub(crate) fn decode_row(
        &self,
        reader: &mut FrameReader,
        hash: ContentHash,
        frame: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        reader.read(frame, MAX_ROW_BYTES, hash).map_err(|reason| StoreError::CorruptBlob {
            path: self.index().path().to_path_buf(),
            reason: format!("content {hash} of user {:?}: {reason}", self.user()),
        })
    }

    /// Writes the large contents; when this returns they survive a crash of the machine. What is there already and
    /// whole is not written again; what is there and damaged is replaced.
    pub(crate) fn place(&self, contents: &[&[u8]]) -> Result<Placed, StoreError> {
        let hashes: Vec<_> = contents.iter().map(|content| ContentHash::new(content)).collect();
        let all = || hashes.iter().copied().zip(contents.iter().copied());
        let large: BTreeMap<_, _> = all().filter(|(_, content)| content.len() > MAX_ROW_BYTES).collect();
        self.blobs().put_all(self.folder(), &large)?;
        let small: BTreeMap<_, _> = all().filter(|(_, content)| content.len() <= MAX_ROW_BYTES).collect();
        let held = self.index().read(|tx| self.whole_rows(tx, small.keys().copied()))?;
        let missing: Vec<_> = small.into_iter().filter(|(hash, _)| !held.contains(hash)).collect();
        let frames = frame::compress_all(missing.iter().map(|(_, content)| *content))
            .map_err(StoreError::io(self.index().path(), "compressing a content"))?;
        let rows = missing.into_iter().map(|(hash, _)| hash).zip(frames).collect();
        Ok(Placed { hashes, rows })
    }

    /// Those of the contents that are rows and undamaged.
    fn whole_rows(
        &self,
        tx: &Transaction<'_>,
        hashes: impl Iterator<Item = ContentHash>,
    ) -> Result<BTreeSet<ContentHash>, StoreError> {
        let (mut whole, mut desk) = (BTreeSet::new(), Desk::default());
        for hash in hashes {
            // Most contents are new, and making a reader costs more than looking for them.
            if self.is_whole(tx, hash, &mut desk)? {
                whole.insert(hash);
            }
        }
        Ok(whole)
    }

    /// Writes the small contents, in the transaction of the rows that name them.
    pub(crate) fn insert_contents(&self, tx: &Transaction<'_>, placed: &Placed) -> Result<(), StoreError> {
        let mut insert = tx.prepare_cached(
            "INSERT INTO contents (user, hash, frame) VALUES (?1, ?2, ?3)
             ON CONFLICT (user, hash) DO UPDATE SET frame = excluded.frame",
        )?;
        for (hash, frame) in &placed.rows {
            insert.execute((self.user(), hash.as_bytes(), frame))?;
        }
        Ok(())
    }

    /// Writes those small contents that are not there yet and whole, in the transaction of the rows that name them.
    pub(crate) fn keep_rows<'a>(
        &self,
        tx: &Transaction<'_>,
        contents: impl Iterator<Item = &'a [u8]>,
        desk: &mut Desk,
    ) -> Result<(), StoreError> {
        for content in contents {
            let hash = ContentHash::new(content);
            if !desk.whole.insert((self.folder().to_owned(), hash)) || self.is_whole(tx, hash, desk)? {
                continue;
            }
            let failed = StoreError::io(self.index().path(), "compressing a content");
            let frame = match &mut desk.writer {
                Some(writer) => writer.write(content),
                none => FrameWriter::new().and_then(|writer| none.insert(writer).write(content)),
            };
            let placed = Placed { hashes: vec![hash], rows: vec![(hash, frame.map_err(failed)?)] };
            self.insert_contents(tx, &placed)?;
        }
        Ok(())
    }

    /// Whether a content is a row and undamaged.
    fn is_whole(&self, tx: &Transaction<'_>, hash: ContentHash, desk: &mut Desk) -> Result<bool, StoreError> {
        let Some(frame) = self.row(tx, hash)? else { return Ok(false) };
        let reader = match &mut desk.reader {
            Some(reader) => reader,
            none => none.insert(FrameReader::new()?),
        };
        let read = self.decode_row(reader, hash, &frame);
        Ok(read.inspect_err(|error| tracing::warn!(%error, "replacing a damaged content")).is_ok())
    }

    /// Refuses to let a row name a content that is not there, whatever happened since it was placed.
    pub(crate) fn require_blob(&self, tx: &Transaction<'_>, hash: ContentHash) -> Result<(), StoreError> {
        let mut query = tx.prepare_cached("SELECT 1 FROM contents WHERE user = ?1 AND hash = ?2")?;
        if query.exists((self.user(), hash.as_bytes()))? || self.blobs().contains(self.folder(), hash) {
            return Ok(());
        }
        Err(StoreError::MissingBlob { path: self.blobs().path(self.folder(), hash) })
    }
}
