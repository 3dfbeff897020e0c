//! Pointers and the contents behind them: insert, look up, resolve. Does not know how contents are kept.

use larder_text::hash::ContentHash;
use larder_text::pointer::{Fragment, Pointer, PointerId};
use rusqlite::{OptionalExtension, Row, Transaction};
use serde::{Deserialize, Serialize};

use crate::contents::NewContent;
use crate::retention::{
    USE_STEP_MILLIS,
    limit::{self, RoomCheck},
};
use crate::store::UserStore;
use larder_disk::StoreError;
use larder_disk::Timestamp;
use larder_disk::frame::NewBytes;
use larder_disk::segments::PointerNote;
use larder_text::select::{Cutter, Selection};

/// Content to be stored behind a pointer.
#[derive(Debug, Clone, Copy)]
pub struct NewPointer<'a> {
    /// The original, of any kind; it need not be text.
    pub content: NewBytes<'a>,
    /// What kind of content it is, as callers name it (`tool_result`, `document` …).
    pub kind: &'a str,
    /// One line that describes it, shown in its place.
    pub display_text: &'a str,
}

/// A stored pointer, which replaces its content in a prompt (R3-4.23 to R3-4.26).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StoredPointer {
    /// The pointer to the whole content; fragments may be added to it.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub pointer_id: Pointer,
    /// What kind of content it is.
    pub kind: String,
    /// One line that describes the content.
    pub display_text: String,
    /// How to get the original back.
    pub rehydrate_instructions: String,
    /// The address of the content.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub content: ContentHash,
    /// The length of the content in bytes.
    pub bytes: u64,
    /// When it was first stored.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
}

pub(crate) fn instructions(id: &PointerId) -> String {
    format!(
        "To read the original, call larder_rehydrate with id {id}, or run `larder rehydrate {id}`; \
         lines, bytes, pattern or path narrow it to a part."
    )
}

/// What is left of an original that expired.
struct Tombstone {
    content: ContentHash,
    expired: Timestamp,
}

/// The pointers of one user and the contents behind them; from [`UserStore::pointers`].
#[derive(Debug, Clone, Copy)]
pub struct Pointers<'s> {
    pub(crate) store: &'s UserStore,
}

impl Pointers<'_> {
    /// Stores content and returns the pointer to it. When this returns, the content survives a crash of the machine.
    ///
    /// Inserting the same content again is harmless: the original kind and display text are kept. See
    /// [`Pointers::insert_all`].
    pub fn insert(
        &self,
        content: &[u8],
        kind: &str,
        display_text: &str,
    ) -> Result<StoredPointer, StoreError> {
        self.insert_checked(content, kind, display_text, limit::require_room)
    }

    /// As [`Pointers::insert`], with the room for it checked in this way.
    pub(crate) fn insert_checked(
        &self,
        content: &[u8],
        kind: &str,
        display_text: &str,
        check: RoomCheck,
    ) -> Result<StoredPointer, StoreError> {
        let new = NewPointer { content: content.into(), kind, display_text };
        let stored = self.insert_all_checked(&[new], check)?;
        stored.into_iter().next().ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
    }

    /// Stores many contents at the price of two syncs: one of the records of the contents, one of their rows.
    ///
    /// Fails with [`StoreError::NameTaken`] if another content already has the pointer's name.
    pub fn insert_all(&self, items: &[NewPointer<'_>]) -> Result<Vec<StoredPointer>, StoreError> {
        self.insert_all_checked(items, limit::require_room)
    }

    fn insert_all_checked<'a>(
        &self,
        items: &[NewPointer<'a>],
        check: RoomCheck,
    ) -> Result<Vec<StoredPointer>, StoreError> {
        // Most prompts are sent whole: nothing is written for them, nor waited for.
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let created = self.store.now();
        let with_note = |item: &NewPointer<'a>| NewContent {
            bytes: item.content,
            base: None,
            pointer: Some(PointerNote {
                kind: item.kind.to_owned(),
                display_text: item.display_text.to_owned(),
                bytes: item.content.bytes() as u64,
                created: created.as_millis(),
            }),
        };
        let contents: Vec<_> = items.iter().map(with_note).collect();
        self.store.contents().write_placed(&contents, |tx, placed| {
            let rows = items.iter().zip(placed.hashes.iter().copied()).map(|(item, content)| {
                let id = self.store.key().mint(content);
                let new = StoredPointer {
                    rehydrate_instructions: instructions(&id),
                    pointer_id: Pointer::whole(id),
                    kind: item.kind.to_owned(),
                    display_text: item.display_text.to_owned(),
                    content,
                    bytes: item.content.bytes() as u64,
                    created,
                };
                self.insert_row(tx, &new, check)
            });
            rows.collect()
        })
    }

    /// Inserts the row, or returns the existing one, which counts as used.
    pub(crate) fn insert_row(
        &self,
        tx: &Transaction<'_>,
        new: &StoredPointer,
        check: RoomCheck,
    ) -> Result<StoredPointer, StoreError> {
        let id = &new.pointer_id.id;
        let taken = |held: ContentHash| StoreError::NameTaken {
            name: id.name().to_owned(),
            held: held.to_hex(),
            refused: new.content.to_hex(),
        };
        if let Some(held) = self.row(tx, id)? {
            if held.content != new.content {
                return Err(taken(held.content));
            }
            self.touch(tx, id.name(), new.created)?;
            return Ok(held);
        }
        check(tx)?;
        if let Some(tombstone) = self.tombstone(tx, id)? {
            if tombstone.content != new.content {
                return Err(taken(tombstone.content));
            }
            tx.prepare_cached("DELETE FROM tombstones WHERE user = ?1 AND name = ?2")?
                .execute((self.store.user(), id.name()))?;
        }
        self.store.contents().require(tx, new.content)?;
        tx.prepare_cached(
            "INSERT INTO pointers (user, name, content, bytes, kind, display_text, rehydrate_instructions, created, used)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute((
            self.store.user(),
            id.name(),
            new.content.as_bytes(),
            to_sql(new.bytes),
            &new.kind,
            &new.display_text,
            // They follow from the id.
            "",
            to_sql(new.created.as_millis()),
            // A repair enters what is older.
            to_sql(self.store.now().as_millis()),
        ))?;
        Ok(new.clone())
    }

    /// Notes that an original was used, unless that was noted within the hour; one that does not exist is skipped.
    pub(crate) fn touch(&self, tx: &Transaction<'_>, name: &str, now: Timestamp) -> Result<(), StoreError> {
        let now = now.as_millis();
        tx.prepare_cached("UPDATE pointers SET used = ?3 WHERE user = ?1 AND name = ?2 AND used <= ?4")?
            .execute((self.store.user(), name, to_sql(now), to_sql(now.saturating_sub(USE_STEP_MILLIS))))?;
        Ok(())
    }

    fn tombstone(&self, tx: &Transaction<'_>, id: &PointerId) -> Result<Option<Tombstone>, StoreError> {
        let mut query =
            tx.prepare_cached("SELECT content, expired FROM tombstones WHERE user = ?1 AND name = ?2")?;
        let read = |row: &Row<'_>| {
            Ok(Tombstone {
                content: ContentHash::from_bytes(row.get(0)?),
                expired: Timestamp::from_millis(row.get::<_, i64>(1)?.unsigned_abs()),
            })
        };
        Ok(query.query_row((self.store.user(), id.name()), read).optional()?)
    }

    pub(crate) fn row(
        &self,
        tx: &Transaction<'_>,
        id: &PointerId,
    ) -> Result<Option<StoredPointer>, StoreError> {
        let mut query = tx.prepare_cached(
            "SELECT kind, display_text, rehydrate_instructions, content, bytes, created
             FROM pointers WHERE user = ?1 AND name = ?2",
        )?;
        let read = |row: &Row<'_>| {
            // Older versions stored them.
            let stored = row.get::<_, String>(2)?;
            Ok(StoredPointer {
                pointer_id: Pointer::whole(id.clone()),
                kind: row.get(0)?,
                display_text: row.get(1)?,
                rehydrate_instructions: if stored.is_empty() { instructions(id) } else { stored },
                content: ContentHash::from_bytes(row.get(3)?),
                bytes: row.get::<_, i64>(4)?.unsigned_abs(),
                created: Timestamp::from_millis(row.get::<_, i64>(5)?.unsigned_abs()),
            })
        };
        Ok(query.query_row((self.store.user(), id.name()), read).optional()?)
    }

    /// The metadata of a pointer of this user. A pointer of another user is treated like a forged one.
    pub fn get(&self, pointer: &Pointer) -> Result<StoredPointer, StoreError> {
        self.store.index().read(|tx| self.require(tx, pointer))
    }

    pub(crate) fn require(
        &self,
        tx: &Transaction<'_>,
        pointer: &Pointer,
    ) -> Result<StoredPointer, StoreError> {
        if !self.store.key().owns(&pointer.id) {
            return Err(StoreError::NotOurs { pointer: Box::new(pointer.clone()) });
        }
        if let Some(held) = self.row(tx, &pointer.id)? {
            return Ok(held);
        }
        let pointer = Box::new(pointer.clone());
        Err(match self.tombstone(tx, &pointer.id)? {
            Some(Tombstone { expired, .. }) => StoreError::Expired { pointer, expired },
            None => StoreError::UnknownPointer { pointer },
        })
    }

    /// The original bytes behind a pointer, with its fragment applied and the hash verified (R3-2.3: one hop).
    pub fn resolve(&self, pointer: &Pointer) -> Result<Vec<u8>, StoreError> {
        let hash = self.get(pointer)?.content;
        let Some(fragment) = pointer.fragment else { return self.store.contents().get(hash) };
        self.cut(hash, fragment)
    }

    /// A part of the content behind a pointer; if the pointer has a fragment, a part of that fragment.
    pub fn rehydrate(&self, pointer: &Pointer, selection: &Selection) -> Result<Vec<u8>, StoreError> {
        match (pointer.fragment, selection.fragment()) {
            (None, Some(fragment)) => self.cut(self.get(pointer)?.content, fragment),
            _ => Ok(selection.apply(&self.resolve(pointer)?)?),
        }
    }

    fn cut(&self, hash: ContentHash, fragment: Fragment) -> Result<Vec<u8>, StoreError> {
        let mut cutter = Cutter::new(fragment);
        self.store.contents().read(hash, |piece| cutter.feed(piece))?;
        Ok(cutter.finish()?)
    }
}

/// SQLite's integers are signed; no length or time here reaches the sign bit.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreOptions};

    #[test]
    fn a_name_is_never_shared_by_two_contents() {
        let dir = tempfile::tempdir().unwrap();
        let user = Store::open(dir.path(), StoreOptions::default()).unwrap().user("a").unwrap();
        let held = user.pointers().insert(b"content", "text", "").unwrap();
        let mut digest = *held.content.as_bytes();
        digest[31] ^= 1;
        let refused = ContentHash::from_bytes(digest);
        let twin = StoredPointer { content: refused, ..held.clone() };
        assert_eq!(
            user.key().mint(refused),
            held.pointer_id.id,
            "the digits that differ are not in the name"
        );
        let error = user.write(|tx| user.pointers().insert_row(tx, &twin, limit::require_room)).unwrap_err();
        assert!(matches!(error, StoreError::NameTaken { .. }));
        assert!(error.to_string().contains(&refused.to_hex()), "{error}");
        assert_eq!(user.pointers().resolve(&held.pointer_id).unwrap(), b"content");
    }
}
