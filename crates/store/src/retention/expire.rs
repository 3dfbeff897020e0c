//! The kinds of items that expire: in which order, what rows go with them, and which contents they name.

use std::collections::{BTreeMap, BTreeSet};

use larder_text::hash::ContentHash;
use rusqlite::{OptionalExtension, Transaction, named_params};

use super::erase::each_namer;
use super::{Collected, RetentionClass, USE_STEP_MILLIS};
use crate::contents;
use crate::pointers::to_sql;
use crate::store::Store;
use larder_disk::StoreError;
use larder_disk::Timestamp;

/// Items removed in one transaction.
pub(super) const BATCH: usize = 64;
/// Rows after which no further item is added to a transaction.
const BATCH_ROWS: usize = 1_000;

/// A kind of item. The first three are in the order of the numbers that `each_namer` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Original,
    Conversation,
    Run,
    Request,
    Intervention,
    KeyDay,
    Tombstone,
}

/// What is done with a kind. In the statements, `:user` and `:id` are an item.
struct Rule {
    class: RetentionClass,
    /// Items by time: user, id, time; of times from `:from` on and before `:before`.
    oldest: &'static str,
    /// The hashes of the contents that an item names.
    contents: &'static str,
    /// The bytes of its rows, apart from contents.
    bytes: &'static str,
    /// What removes it. `:now` is the present moment.
    remove: &'static [&'static str],
}

impl Kind {
    /// All kinds, those first that may keep contents of the others, or whose pointers may have expired. Tombstones come
    /// after the runs that name them. Those that a conversation names go with the next collection, as a preview counts them.
    pub(super) const ALL: [Self; 7] = [
        Self::Request,
        Self::Intervention,
        Self::KeyDay,
        Self::Run,
        Self::Tombstone,
        Self::Conversation,
        Self::Original,
    ];
    /// Those that make room when the store is too large; the others are small.
    pub(super) const BY_SIZE: [Self; 5] =
        [Self::Request, Self::Run, Self::Tombstone, Self::Conversation, Self::Original];

    /// The kind of what names a content, by the number that `each_namer` gives.
    fn of_namer(number: u8) -> Option<Self> {
        [Self::Original, Self::Conversation, Self::Run].get(usize::from(number)).copied()
    }

    pub(super) const fn class(self) -> RetentionClass {
        self.rule().class
    }

    const fn rule(self) -> Rule {
        match self {
            Self::Original => Rule {
                class: RetentionClass::Originals,
                oldest: "SELECT user, name, used FROM pointers AS p
                         WHERE used >= :from AND used < :before AND NOT EXISTS
                             (SELECT 1 FROM document_pointers AS d WHERE d.user = p.user AND d.name = p.name)
                         AND NOT EXISTS
                             (SELECT 1 FROM conversation_messages AS m WHERE m.user = p.user AND m.pointer = p.name)
                         AND NOT EXISTS
                             (SELECT 1 FROM message_pointers AS m WHERE m.user = p.user AND m.name = p.name)
                         ORDER BY used, user, name LIMIT :limit",
                contents: "SELECT content FROM pointers WHERE user = :user AND name = :id",
                bytes: "SELECT length(display_text) + length(rehydrate_instructions) FROM pointers
                        WHERE user = :user AND name = :id",
                remove: &[
                    "INSERT OR REPLACE INTO tombstones (user, name, content, expired)
                     SELECT user, name, content, :now FROM pointers WHERE user = :user AND name = :id",
                    "DELETE FROM pointers WHERE user = :user AND name = :id",
                ],
            },
            Self::Conversation => Rule {
                class: RetentionClass::Transcripts,
                oldest: "SELECT user, session, used FROM sessions WHERE used >= :from AND used < :before
                         ORDER BY used, user, session LIMIT :limit",
                contents: "SELECT unhex(document ->> '$.raw.hash') FROM transcript_lines
                           WHERE user = :user AND session = :id AND json_valid(document)
                           UNION SELECT unhex(document ->> '$.sent.hash') FROM transcript_lines
                           WHERE user = :user AND session = :id AND json_valid(document)",
                bytes: "SELECT coalesce(sum(length(document)), 0) FROM transcript_lines
                        WHERE user = :user AND session = :id",
                remove: &[
                    "DELETE FROM transcript_pointers WHERE user = :user AND session = :id AND name IN
                         (SELECT substr(value, 5, 13) FROM transcript_lines,
                              json_each(iif(json_valid(document), document, '{}'), '$.pointers')
                          WHERE user = :user AND session = :id)",
                    "DELETE FROM transcript_lines WHERE user = :user AND session = :id",
                    "DELETE FROM round_trips WHERE user = :user AND session = :id",
                    "DELETE FROM session_revisions WHERE user = :user AND session = :id",
                    "DELETE FROM sessions WHERE user = :user AND session = :id",
                ],
            },
            Self::Run => Rule {
                class: RetentionClass::Records,
                oldest: "SELECT user, run_id, recorded FROM runs WHERE recorded >= :from AND recorded < :before
                         ORDER BY recorded, seq LIMIT :limit",
                contents: "SELECT receipt FROM runs WHERE user = :user AND run_id = :id
                           UNION SELECT output FROM runs WHERE user = :user AND run_id = :id",
                bytes: "SELECT length(record) FROM runs WHERE user = :user AND run_id = :id",
                remove: &[
                    "DELETE FROM run_pointers WHERE user = :user AND run_id = :id",
                    "DELETE FROM runs WHERE user = :user AND run_id = :id",
                ],
            },
            Self::Request => Rule {
                class: RetentionClass::Records,
                oldest: "SELECT user, id, time FROM exchanges WHERE time >= :from AND time < :before
                         ORDER BY time, seq LIMIT :limit",
                contents: "",
                bytes: "SELECT length(document) FROM exchanges WHERE user = :user AND id = :id",
                remove: &["DELETE FROM exchanges WHERE user = :user AND id = :id"],
            },
            Self::Intervention => Rule {
                class: RetentionClass::Records,
                oldest: "SELECT user, CAST(id AS TEXT), resolved_at FROM interventions
                         WHERE resolved_at >= :from AND resolved_at < :before ORDER BY resolved_at LIMIT :limit",
                contents: "",
                bytes: "SELECT length(message) FROM interventions
                        WHERE user = :user AND id = CAST(:id AS INTEGER)",
                remove: &["DELETE FROM interventions WHERE user = :user AND id = CAST(:id AS INTEGER)"],
            },
            Self::KeyDay => Rule {
                class: RetentionClass::Records,
                oldest: "SELECT user, key || '/' || day, day * 86400000 AS time FROM key_days
                         WHERE time >= :from AND time < :before ORDER BY time LIMIT :limit",
                contents: "",
                bytes: "SELECT 64 WHERE :user IS NOT NULL AND :id IS NOT NULL",
                remove: &["DELETE FROM key_days WHERE user = :user AND key || '/' || day = :id"],
            },
            Self::Tombstone => Rule {
                class: RetentionClass::Records,
                // Without it, what a transcript names would look lost.
                oldest: "SELECT user, name, expired FROM tombstones AS t
                         WHERE expired >= :from AND expired < :before AND NOT EXISTS
                             (SELECT 1 FROM transcript_pointers AS p WHERE p.user = t.user AND p.name = t.name)
                         ORDER BY expired, user, name LIMIT :limit",
                contents: "",
                bytes: "SELECT length(user) + length(name) + 40 FROM tombstones WHERE user = :user AND name = :id",
                remove: &["DELETE FROM tombstones WHERE user = :user AND name = :id"],
            },
        }
    }
}

/// One item: its kind, user and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    kind: Kind,
    user: String,
    id: String,
}

impl Item {
    fn hashes(&self, tx: &Transaction<'_>) -> Result<Vec<ContentHash>, StoreError> {
        if self.kind.rule().contents.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = tx.prepare_cached(self.kind.rule().contents)?;
        let rows = query.query_map(named_params! {":user": self.user, ":id": self.id}, |row| row.get(0))?;
        let hashes = rows.collect::<Result<Vec<Option<[u8; 32]>>, _>>()?;
        Ok(hashes.into_iter().flatten().map(ContentHash::from_bytes).collect())
    }

    fn row_bytes(&self, tx: &Transaction<'_>) -> Result<u64, StoreError> {
        let mut query = tx.prepare_cached(self.kind.rule().bytes)?;
        let params = named_params! {":user": self.user, ":id": self.id};
        let bytes: Option<i64> = query.query_row(params, |row| row.get(0)).optional()?;
        Ok(bytes.unwrap_or(0).unsigned_abs())
    }

    /// Removes its rows, notes its contents for erasure, and returns how many rows went.
    fn remove(&self, tx: &Transaction<'_>, now: Timestamp) -> Result<usize, StoreError> {
        let mut note =
            tx.prepare_cached("INSERT INTO erasures (user, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
        for hash in self.hashes(tx)? {
            note.execute((&self.user, hash.as_bytes()))?;
        }
        let mut rows = 0;
        for sql in self.kind.rule().remove {
            let mut statement = tx.prepare_cached(sql)?;
            for (name, value) in [(":user", &self.user), (":id", &self.id)] {
                if let Some(at) = statement.parameter_index(name)? {
                    statement.raw_bind_parameter(at, value)?;
                }
            }
            if let Some(at) = statement.parameter_index(":now")? {
                statement.raw_bind_parameter(at, to_sql(now.as_millis()))?;
            }
            rows += statement.raw_execute()?;
        }
        Ok(rows)
    }
}

/// Removes everything that names a content, as if it had expired.
pub(crate) fn remove_named(
    tx: &Transaction<'_>,
    user: &str,
    hash: ContentHash,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut items = Vec::new();
    each_namer(tx, user, hash, |kind, id| {
        let kind = Kind::of_namer(kind);
        items.extend(kind.map(|kind| Item { kind, user: user.to_owned(), id }));
        true
    })?;
    items.iter().try_for_each(|item| item.remove(tx, now).map(drop))
}

/// Removes the next items of a kind that were used before a moment. `from` is where to look, and is moved on.
pub(super) fn remove_batch(
    tx: &Transaction<'_>,
    kind: Kind,
    from: &mut i64,
    before: i64,
    now: Timestamp,
) -> Result<Collected, StoreError> {
    let (mut removed, mut rows) = (Collected::default(), 0);
    for (item, used) in oldest(tx, kind, *from, before, BATCH)? {
        if rows >= BATCH_ROWS {
            break;
        }
        removed.add(1, item.row_bytes(tx)?);
        rows += item.remove(tx, now)?;
        *from = used;
    }
    Ok(removed)
}

fn oldest(
    tx: &Transaction<'_>,
    kind: Kind,
    from: i64,
    before: i64,
    limit: usize,
) -> Result<Vec<(Item, i64)>, StoreError> {
    let mut query = tx.prepare_cached(kind.rule().oldest)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = query.query_map(named_params! {":from": from, ":before": before, ":limit": limit}, |row| {
        Ok((Item { kind, user: row.get(0)?, id: row.get(1)? }, row.get(2)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The end of the first hour in which something was used that makes room, of what each kind has from a moment on;
/// `None` if all of it is spared, which was used from `spared` on.
pub(super) fn oldest_hour(
    tx: &Transaction<'_>,
    from: &BTreeMap<Kind, i64>,
    spared: i64,
) -> Result<Option<i64>, StoreError> {
    let mut first: Option<i64> = None;
    for kind in Kind::BY_SIZE {
        let from = from.get(&kind).copied().unwrap_or_default();
        if let Some((_, used)) = oldest(tx, kind, from, spared, 1)?.into_iter().next() {
            first = Some(first.map_or(used, |first| first.min(used)));
        }
    }
    Ok(first.map(|first| first.saturating_add(to_sql(USE_STEP_MILLIS)).min(spared)))
}

/// Items that would go.
#[derive(Debug, Default)]
pub(super) struct Going {
    all: BTreeSet<Item>,
    /// Those whose sizes were not asked for yet, in the order in which they would go.
    new: Vec<Item>,
    /// Contents that are counted.
    counted: BTreeSet<(String, ContentHash)>,
    /// What is in of each kind: all that was used before this.
    pub(super) until: BTreeMap<Kind, i64>,
}

impl Going {
    /// Adds the items of a kind that were used before a moment.
    pub(super) fn add_before(
        &mut self,
        tx: &Transaction<'_>,
        kind: Kind,
        before: i64,
    ) -> Result<(), StoreError> {
        let from = self.until.get(&kind).copied().unwrap_or_default();
        if from < before {
            let items = oldest(tx, kind, from, before, usize::MAX)?;
            self.new.extend(items.into_iter().map(|(item, _)| item));
            self.until.insert(kind, before);
        }
        Ok(())
    }

    /// The items added since the last call, with the bytes on disk that each frees: of its rows, and of contents that
    /// only items which go name.
    pub(super) fn sizes(
        &mut self,
        store: &Store,
        tx: &Transaction<'_>,
    ) -> Result<Vec<(Kind, u64)>, StoreError> {
        let mut sizes = Vec::new();
        // One by one: a content goes with the last item that names it.
        for item in std::mem::take(&mut self.new) {
            self.all.insert(item.clone());
            let mut bytes = item.row_bytes(tx)?;
            for hash in item.hashes(tx)? {
                let base = contents::record(tx, &item.user, hash)?.and_then(|row| row.base);
                for hash in std::iter::once(hash).chain(base) {
                    let content = (item.user.clone(), hash);
                    if !self.counted.contains(&content) && self.frees(tx, &item.user, hash)? {
                        bytes =
                            bytes.saturating_add(store.user(&item.user)?.contents().bytes_on_disk(tx, hash)?);
                        self.counted.insert(content);
                    }
                }
            }
            sizes.push((item.kind, bytes));
        }
        Ok(sizes)
    }

    /// Whether nothing names a content but what goes.
    fn frees(&self, tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<bool, StoreError> {
        let (mut frees, mut based) = (true, Vec::new());
        each_namer(tx, user, hash, |kind, id| {
            match Kind::of_namer(kind) {
                Some(kind) => frees = self.all.contains(&Item { kind, user: user.to_owned(), id }),
                None => based.extend(id.parse::<ContentHash>()),
            }
            frees
        })?;
        for based in based {
            // One level: what has a base is the base of nothing.
            frees = frees && self.frees(tx, user, based)?;
        }
        Ok(frees)
    }
}
