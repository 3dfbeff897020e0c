//! Contents that get another place: into segments from older formats, out of segments that are mostly erased, and out of
//! records whose pointer has expired. A copy is appended and synced, then the entry of the index is changed, if it is
//! still as it was.

use std::collections::BTreeMap;

use larder_text::hash::ContentHash;
use larder_text::pointer::PointerId;
use rusqlite::Transaction;

use super::{Found, MAX_RECORD_BYTES, MAX_RECORD_FRAME, StoredContents, places};
use larder_disk::StoreError;
use larder_disk::frame::{self, FrameReader};
use larder_disk::segments::{PointerNote, Record};

impl StoredContents<'_> {
    /// Removes from a record what its pointer said, if the pointer has gone and the content has not.
    pub(crate) fn forget_pointer(&self, hash: ContentHash) -> Result<(), StoreError> {
        let user = self.store.user();
        let found = self.store.index().read(|tx| {
            let row = places::record(tx, user, hash)?.filter(|row| row.has_pointer);
            Ok(if row.is_some() && !has_pointer(tx, user, hash)? { row } else { None })
        })?;
        let Some(row) = found else { return Ok(()) };
        let record = match self.store.segments().read(self.store.folder(), row.place) {
            // Moved meanwhile, or damaged, which `verify` reports.
            Err(error) if error.is_damage() => return Ok(()),
            record => record?,
        };
        let moved = vec![(Some(Found::Record(row)), Record { pointer: None, ..record })];
        match self.move_all(moved, |tx, hash| Ok(!has_pointer(tx, user, hash)?)) {
            Err(StoreError::BeingDeleted { .. }) => Ok(()),
            moved => moved,
        }
    }

    /// Writes records in place of what the index has now, as long as that and `may_move` hold in the transaction.
    pub(crate) fn move_all(
        &self,
        moves: Vec<(Option<Found>, Record)>,
        may_move: impl Fn(&Transaction<'_>, ContentHash) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        if moves.is_empty() {
            return Ok(());
        }
        let (held, records): (Vec<_>, Vec<_>) = moves.into_iter().unzip();
        let appended = self.store.segments().append(self.store.folder(), &records)?;
        let user = self.store.user();
        let mut left = Vec::new();
        let written = self.store.write_unsynced(|tx| {
            if !appended.is_current() {
                return Err(StoreError::BeingDeleted { user: user.to_owned() });
            }
            for ((held, record), place) in held.iter().zip(&records).zip(&appended.places) {
                if places::find(tx, user, record.hash)? == *held && may_move(tx, record.hash)? {
                    places::insert_record(tx, user, record, *place)?;
                } else {
                    left.push(*place);
                }
            }
            Ok(())
        });
        match written {
            Ok(()) => {
                self.store.segments().erase(self.store.folder(), &left)?;
                self.store.index().sync()
            }
            Err(error) => {
                appended.discard(self.store.segments(), self.store.folder());
                Err(error)
            }
        }
    }

    /// Moves contents of older formats into segments: those of pointers, with what the pointers say, and files. Returns how
    /// many were moved. A damaged or missing one stays as it is, for `verify` to find.
    pub(crate) fn convert(
        &self,
        contents: BTreeMap<ContentHash, Option<PointerNote>>,
    ) -> Result<u64, StoreError> {
        let (mut moves, mut reader) = (Vec::new(), FrameReader::new()?);
        for (hash, pointer) in contents {
            let found = self.find(hash)?;
            if matches!(&found, Some(Found::Record(row)) if row.has_pointer || pointer.is_none()) {
                continue;
            }
            let mut bytes = Vec::new();
            match self
                .read_found(&mut reader, hash, found.as_ref(), &mut |piece| bytes.extend_from_slice(piece))
            {
                Ok(_) => {}
                Err(StoreError::MissingBlob { .. } | StoreError::CorruptBlob { .. }) => continue,
                Err(error) => return Err(error),
            }
            let frame = frame::compress(&bytes)
                .map_err(StoreError::io(self.store.index().path(), "compressing a content"))?;
            let is_file = bytes.len() > MAX_RECORD_BYTES || frame.len() > MAX_RECORD_FRAME;
            let frame = Some(frame).filter(|_| !is_file);
            if frame.is_some() || pointer.is_some() {
                let owner = self.store.user().to_owned();
                moves.push((found, Record { owner, hash, base: None, pointer, frame }));
            }
        }
        let moved = moves.len() as u64;
        self.move_all(moves, |tx, hash| {
            // Without a name it would be garbage in a new place.
            crate::retention::is_named(tx, self.store.user(), hash)
        })?;
        Ok(moved)
    }
}

fn has_pointer(tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<bool, StoreError> {
    let mut query =
        tx.prepare_cached("SELECT 1 FROM pointers WHERE user = ?1 AND name = ?2 AND content = ?3")?;
    Ok(query.exists((user, PointerId::name_of(hash), hash.as_bytes()))?)
}
