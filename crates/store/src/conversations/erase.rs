//! Erasing at once: rows, the originals of messages, receipts and answers of runs. When it returns, no file of the home
//! has the bytes any more: records are overwritten, and so are pages of the index and the log of its writes.

use std::collections::BTreeSet;

use larder_disk::StoreError;
use larder_disk::index_files;
use larder_disk::run_id::RunId;
use larder_text::hash::ContentHash;
use larder_text::pointer::PointerId;
use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::{Value, json};

use super::{Conversations, MemoryKind, Track};
use crate::contents::NewContent;
use crate::deletion::count_early_erasure;
use crate::jobs::{self, NewJob};
use crate::pointers::to_sql;
use crate::retention::{holds, limit};
use crate::runs::RunRecord;
use crate::store::UserStore;

/// What is erased together. Numbers and ids that do not exist are skipped.
#[derive(Debug, Clone, Default)]
pub struct Erasure {
    /// Messages that say something else from now on.
    pub replace: Vec<ReplacedMessage>,
    /// Messages that go.
    pub messages: Vec<u64>,
    /// States of participants, with the conversation and the name.
    pub states: Vec<(String, String, Value)>,
    /// Records of memory that go.
    pub records: Vec<(MemoryKind, String)>,
    /// Records whose data is other data from now on.
    pub redacted: Vec<(MemoryKind, String, Value)>,
    /// Runs whose receipts and answers go; what is recorded of them stays.
    pub runs: Vec<RunId>,
    /// Participants who leave, with all of their tracks: the conversation and the name.
    pub tracks: Vec<(String, String)>,
    /// Conversations that go from their owner, with tracks of the owner only. One in which others take part passes to the
    /// first of them, without its title.
    pub conversations: Vec<String>,
    /// What is to be done behind it.
    pub jobs: Vec<NewJob>,
}

/// A message in which something was erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedMessage {
    /// Its number.
    pub number: u64,
    /// What it says now.
    pub text: String,
    /// What is kept of it now.
    pub data: Value,
}

impl Erasure {
    /// Whether nothing is to be erased.
    pub fn is_empty(&self) -> bool {
        self.is_of_runs() && self.runs.is_empty() && self.jobs.is_empty()
    }

    /// Whether nothing goes but what runs left.
    fn is_of_runs(&self) -> bool {
        let Self { replace, messages, states, records, redacted, tracks, conversations, .. } = self;
        let lists = [replace.len(), messages.len(), states.len(), records.len(), redacted.len()];
        lists.iter().all(|&many| many == 0) && tracks.is_empty() && conversations.is_empty()
    }
}

impl Conversations<'_> {
    /// Erases things of this user: all or nothing, and completely when it returns. The caches of the user go, too.
    ///
    /// # Errors
    /// The store fails; if that is after the transaction, what is left goes with the next erasure or collection.
    pub fn erase(&self, erasure: &Erasure) -> Result<(), StoreError> {
        self.erase_after(erasure, |_| Ok(()))
    }

    /// Erases things in one transaction with `first`, which comes before.
    pub(super) fn erase_after<T>(
        &self,
        erasure: &Erasure,
        first: impl Fn(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if erasure.is_empty() {
            return self.store.write(|tx| first(tx));
        }
        let today = self.store.now().date();
        let notice = |hash: ContentHash| json!({"erased_on": today.to_string(), "blake3": hash}).to_string();
        let runs: Vec<RunRecord> =
            erasure.runs.iter().filter_map(|id| self.store.runs().get(id).ok()).collect();
        let mut notices = Vec::new();
        for run in &runs {
            notices.extend([Some(run.receipt), run.output].into_iter().flatten().map(notice));
        }
        let notices: Vec<_> = notices.iter().map(String::as_bytes).collect();
        // What is left of a text may be as long as those that are read by their pointers.
        for new in &erasure.replace {
            self.original(&new.text, 0, limit::exempt)?;
        }
        let done = self.store.contents().write_placed(&NewContent::plain(&notices), |tx, _| {
            let done = first(tx)?;
            self.erase_messages(tx, erasure)?;
            for (kind, id) in &erasure.records {
                self.memory().remove(tx, *kind, id)?;
            }
            for (kind, id, data) in &erasure.redacted {
                self.memory().redact(tx, *kind, id, data)?;
            }
            for (conversation, participant, state) in &erasure.states {
                self.put_state(tx, Track { conversation, participant }, state)?;
            }
            for run in &runs {
                erase_run(self.store, tx, run, &notice)?;
            }
            tx.execute("DELETE FROM compactions WHERE user = ?1", [self.store.user()])?;
            let now = self.store.now();
            if !erasure.is_of_runs() {
                self.memory().note_erasure(tx)?;
            }
            erasure.jobs.iter().try_for_each(|job| jobs::insert(tx, self.store.user(), job, now))?;
            Ok(done)
        })?;
        let store = self.store.store();
        store.finish_erasing()?;
        index_files::remove_damaged(store.home())?;
        Ok(done)
    }

    fn erase_messages(&self, tx: &Transaction<'_>, erasure: &Erasure) -> Result<(), StoreError> {
        let user = self.store.user();
        let mut originals = BTreeSet::new();
        let mut names = |condition: &str, values: &[&dyn rusqlite::ToSql]| -> Result<(), StoreError> {
            let sql = format!(
                "SELECT pointer FROM conversation_messages WHERE user = ?1 AND pointer IS NOT NULL AND {condition}"
            );
            let mut query = tx.prepare_cached(&sql)?;
            for name in query.query_map(values, |row| row.get::<_, String>(0))? {
                originals.insert(name?);
            }
            Ok(())
        };
        for number in erasure.messages.iter().copied().chain(erasure.replace.iter().map(|one| one.number)) {
            names("number = ?2", params![user, to_sql(number)])?;
        }
        let mut tracks = erasure.tracks.clone();
        for id in &erasure.conversations {
            let mut query = tx.prepare_cached(
                "SELECT name FROM conversation_participants WHERE user = ?1 AND conversation = ?2",
            )?;
            for name in query.query_map([user, id], |row| row.get(0))? {
                tracks.push((id.clone(), name?));
            }
        }
        for (conversation, name) in &tracks {
            names("conversation = ?2 AND participant = ?3", params![user, conversation, name])?;
            for (table, column) in [
                ("conversation_messages", "participant"),
                ("conversation_keys", "participant"),
                ("conversation_sessions", "participant"),
                ("conversation_participants", "name"),
                ("memory_records", "participant"),
            ] {
                let sql =
                    format!("DELETE FROM {table} WHERE user = ?1 AND conversation = ?2 AND {column} = ?3");
                tx.execute(&sql, [user, conversation, name])?;
            }
        }
        let left = tracks.iter().map(|(conversation, _)| conversation).chain(&erasure.conversations);
        for conversation in left.collect::<BTreeSet<_>>() {
            pass_on(tx, user, Some(conversation))?;
        }
        for number in &erasure.messages {
            tx.execute(
                "DELETE FROM conversation_messages WHERE user = ?1 AND number = ?2",
                params![user, to_sql(*number)],
            )?;
            // A job may have found facts in it since the erasure was planned.
            tx.execute(
                "DELETE FROM memory_records WHERE user = ?1 AND kind = 'fact'
                     AND json_extract(data, '$.message') = ?2",
                params![user, to_sql(*number)],
            )?;
        }
        for ReplacedMessage { number, text, data } in &erasure.replace {
            let left = PointerId::name_of(ContentHash::new(text.as_bytes()));
            tx.execute(
                "UPDATE conversation_messages SET text = ?3, data = ?4, pointer = ?5 WHERE user = ?1 AND number = ?2",
                params![user, to_sql(*number), text, data.to_string(), left],
            )?;
            holds::set_of_message(tx, user, *number, text)?;
        }
        for name in originals {
            erase_original(self.store, tx, &name)?;
        }
        Ok(())
    }
}

/// Removes a conversation that nobody takes part in any more. One that its owner, `user`, no longer takes part in passes to
/// the first who does, without the title that the owner gave it and without the owner's invitations that are open. Without an
/// id, all conversations of the owner.
pub(crate) fn pass_on(tx: &Transaction<'_>, user: &str, id: Option<&str>) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM conversation_invitations WHERE conversation IN
             (SELECT id FROM conversations AS c WHERE user = ?1 AND (?2 IS NULL OR id = ?2) AND NOT EXISTS
                 (SELECT 1 FROM conversation_participants WHERE conversation = c.id AND user = ?1))",
        "UPDATE conversations AS c SET title = '', user =
             (SELECT user FROM conversation_participants WHERE conversation = c.id ORDER BY name LIMIT 1)
         WHERE user = ?1 AND (?2 IS NULL OR id = ?2)
             AND EXISTS (SELECT 1 FROM conversation_participants WHERE conversation = c.id)
             AND NOT EXISTS (SELECT 1 FROM conversation_participants WHERE conversation = c.id AND user = ?1)",
        "DELETE FROM conversations AS c WHERE (?2 IS NULL AND user = ?1 OR id = ?2)
             AND NOT EXISTS (SELECT 1 FROM conversation_participants WHERE conversation = c.id)",
    ] {
        tx.execute(sql, params![user, id])?;
    }
    let gone = "DELETE FROM conversation_invitations AS i
        WHERE NOT EXISTS (SELECT 1 FROM conversations WHERE id = i.conversation)";
    tx.execute(gone, [])?;
    Ok(())
}

/// Removes an original that a run made, unless the text of a message refers to it, or [`erase_original`] leaves it.
fn erase_original_of_run(store: &UserStore, tx: &Transaction<'_>, name: &str) -> Result<(), StoreError> {
    let referred = "SELECT 1 FROM message_pointers WHERE user = ?1 AND name = ?2";
    if tx.prepare_cached(referred)?.exists([store.user(), name])? {
        return Ok(());
    }
    erase_original(store, tx, name)
}

/// Removes an original, unless it is another message, or a document refers to it. Where the text of a message refers to it,
/// it goes nevertheless: it is what was to be erased.
fn erase_original(store: &UserStore, tx: &Transaction<'_>, name: &str) -> Result<(), StoreError> {
    let user = store.user();
    let needed = "SELECT 1 FROM conversation_messages WHERE user = ?1 AND pointer = ?2
                  UNION ALL SELECT 1 FROM document_pointers WHERE user = ?1 AND name = ?2";
    if tx.prepare_cached(needed)?.exists([user, name])? {
        return Ok(());
    }
    let content: Option<[u8; 32]> = tx
        .prepare_cached("SELECT content FROM pointers WHERE user = ?1 AND name = ?2")?
        .query_row([user, name], |row| row.get(0))
        .optional()?;
    let Some(content) = content else { return Ok(()) };
    tx.execute("DELETE FROM pointers WHERE user = ?1 AND name = ?2", [user, name])?;
    count_early_erasure(tx)?;
    note(tx, user, ContentHash::from_bytes(content))
}

/// Puts notices in place of the receipt and the answer of a run, and removes the originals that only it made.
fn erase_run(
    store: &UserStore,
    tx: &Transaction<'_>,
    run: &RunRecord,
    notice: &dyn Fn(ContentHash) -> String,
) -> Result<(), StoreError> {
    let (user, id) = (store.user(), run.run_id.as_str());
    let of = |hash: ContentHash| ContentHash::new(notice(hash).as_bytes());
    let erased = RunRecord { receipt: of(run.receipt), output: run.output.map(of), ..run.clone() };
    let json = serde_json::to_string(&erased)
        .map_err(|source| StoreError::Record { what: format!("run {id}"), source })?;
    tx.execute(
        "UPDATE runs SET record = ?3, receipt = ?4, output = ?5 WHERE user = ?1 AND run_id = ?2",
        params![user, id, json, erased.receipt.as_bytes(), erased.output.as_ref().map(ContentHash::as_bytes)],
    )?;
    for hash in [Some(run.receipt), run.output].into_iter().flatten() {
        note(tx, user, hash)?;
    }
    for pointer in store.runs().pointers_in(tx, &run.run_id)? {
        erase_original_of_run(store, tx, pointer.id.name())?;
    }
    tx.execute("DELETE FROM run_pointers WHERE user = ?1 AND run_id = ?2", [user, id])?;
    Ok(())
}

/// Notes a content whose bytes go if nothing names it.
fn note(tx: &Transaction<'_>, user: &str, hash: ContentHash) -> Result<(), StoreError> {
    tx.prepare_cached("INSERT INTO erasures (user, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![user, hash.as_bytes()])?;
    Ok(())
}
