//! Finds how much of a history its session already has, and appends the rest. All decisions are based on the index, so
//! processes that serve one session agree.

use std::collections::{BTreeMap, BTreeSet};

use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use rusqlite::{OptionalExtension, Transaction};

use super::{
    ForkPoint, Forks, LineKind, PayloadRef, TranscriptLine, TranscriptMessage, TranscriptPlace, Transcripts,
    path,
};
use crate::contents::{InsertBatch, MAX_ROW_BYTES, MAX_TRIES, NewContent};
use crate::pointers::{StoredPointer, to_sql};
use crate::retention::limit;
use crate::store::{StayingUsers, Store, UserStore};
use larder_disk::StoreError;
use larder_disk::based;
use larder_disk::user;

/// The hash of a history, or of the form in which a message went upstream.
type Digest = [u8; 32];

/// The role of a reply.
const REPLY_ROLE: &str = "assistant";

/// A history to be appended, with its hashes.
struct HashedHistory<'a> {
    messages: &'a [TranscriptMessage<'a>],
    reply: Option<&'a [u8]>,
    /// For each message the hash of the history up to it.
    chains: Vec<Digest>,
    /// The hash of the form in which each message is forwarded; `None` if unchanged.
    views: Vec<Option<Digest>>,
}

/// What the histories of one transaction share: no other process can write meanwhile.
#[derive(Default)]
struct AppendBatch<'a> {
    contents: InsertBatch,
    staying: StayingUsers<'a>,
    /// Conversations that are noted as used, by users who stay.
    used: BTreeSet<(&'a str, &'a str)>,
    /// Whether the store was found within its limit.
    has_room: bool,
}

/// What a history adds to its session.
#[derive(PartialEq, Eq)]
struct AppendPlan {
    branch: u32,
    /// Where the branch leaves another, if it is new.
    fork: Option<ForkPoint>,
    /// Indexes of known messages whose form changed.
    changed: Vec<usize>,
    /// The number of known messages.
    known: usize,
}

/// A history to be recorded together with others.
#[derive(Debug, Clone, Copy)]
pub struct NewTranscript<'a> {
    /// Whose it is.
    pub store: &'a UserStore,
    /// The session that it belongs to.
    pub session: &'a str,
    /// Its messages.
    pub messages: &'a [TranscriptMessage<'a>],
    /// The reply to it.
    pub reply: Option<&'a [u8]>,
}

impl<'a> HashedHistory<'a> {
    fn of(messages: &'a [TranscriptMessage<'a>], reply: Option<&'a [u8]>) -> Self {
        Self {
            messages,
            reply,
            chains: TranscriptMessage::histories(messages),
            views: messages.iter().map(TranscriptMessage::form).collect(),
        }
    }
}

impl NewTranscript<'_> {
    /// Whether all that it may name are rows of the index.
    fn is_small(&self) -> bool {
        let may_have_base = |message: &TranscriptMessage<'_>| {
            !message.pointers.is_empty() && message.raw.len() >= based::MIN_BYTES
        };
        if self.messages.iter().any(may_have_base) {
            return false;
        }
        let contents =
            self.messages.iter().flat_map(|message| std::iter::once(message.raw).chain(message.sent));
        contents.chain(self.reply).all(|content| content.len() <= MAX_ROW_BYTES)
    }
}

impl Store {
    /// As [`Transcripts::append`] for each, in a single transaction if possible. Each succeeds or fails by itself.
    pub fn append_transcripts(
        &self,
        transcripts: &[NewTranscript<'_>],
    ) -> Vec<Result<TranscriptPlace, StoreError>> {
        let append =
            |new: &NewTranscript<'_>| new.store.transcripts().append(new.session, new.messages, new.reply);
        let is_alone = |new: &NewTranscript<'_>| new.messages.is_empty() || !new.is_small();
        let places: Vec<_> = transcripts.iter().map(|new| is_alone(new).then(|| append(new))).collect();
        if places.iter().all(Option::is_some) {
            return places.into_iter().flatten().collect();
        }
        let done: Result<Vec<_>, _> = self.index().append(|tx| {
            let mut batch = AppendBatch::default();
            let small = places.iter().zip(transcripts).filter(|(place, _)| place.is_none());
            small.map(|(_, new)| new.store.transcripts().append_within(tx, new, &mut batch)).collect()
        });
        // If one fails, the transaction is rolled back: each is tried alone, and reports its own failure.
        let mut done = done.into_iter().flatten();
        let mut of_batch = |new| done.next().map_or_else(|| append(new), Ok);
        let each = places.into_iter().zip(transcripts);
        each.map(|(place, new)| place.unwrap_or_else(|| of_batch(new))).collect()
    }
}

impl Transcripts<'_> {
    fn append_within<'a>(
        &self,
        tx: &Transaction<'_>,
        new: &NewTranscript<'a>,
        batch: &mut AppendBatch<'a>,
    ) -> Result<TranscriptPlace, StoreError> {
        user::check_name("session id", new.session)?;
        if !batch.staying.contain(tx, new.store)? {
            return Err(StoreError::BeingDeleted { user: new.store.user().to_owned() });
        }
        if batch.used.insert((new.store.user(), new.session)) {
            self.store.touch_session(tx, new.session, self.store.now())?;
        }
        let history = HashedHistory::of(new.messages, new.reply);
        let plan = self.plan(tx, new.session, &history)?;
        let payloads: Vec<_> = plan.payloads(&history).into_iter().map(|(bytes, _)| bytes).collect();
        let hashes = self.store.contents().insert_missing(tx, &payloads, &mut batch.contents)?;
        let added = self.insert_plan(tx, new.session, &history, &plan, &hashes, batch)?;
        Ok(TranscriptPlace { branch: plan.branch, messages: count(new.messages.len()), added })
    }

    /// Records a history, storing only what is new, and its reply, in one transaction.
    ///
    /// A fully known history adds only its reply. The lines survive the end of the process; they are synced with the
    /// next durable write, such as [`crate::Store::record_exchanges`]. A history without messages is not recorded.
    pub fn append(
        &self,
        session: &str,
        messages: &[TranscriptMessage<'_>],
        reply: Option<&[u8]>,
    ) -> Result<TranscriptPlace, StoreError> {
        user::check_name("session id", session)?;
        if messages.is_empty() {
            return Ok(TranscriptPlace { branch: 0, messages: 0, added: 0 });
        }
        let history = HashedHistory::of(messages, reply);
        let mut tries = 1;
        loop {
            let plan = self.store.index().read(|tx| self.plan(tx, session, &history))?;
            let new = self.store.index().read(|tx| self.with_bases(tx, &plan.payloads(&history)))?;
            let placed = self.store.contents().place(&new)?;
            let written = self.store.write_unsynced(|tx| {
                // Another process may have appended meanwhile.
                if self.plan(tx, session, &history)? != plan {
                    return Ok(None);
                }
                self.store.contents().insert(tx, &placed)?;
                for hash in &placed.hashes {
                    self.store.contents().require(tx, *hash)?;
                }
                self.store.touch_session(tx, session, self.store.now())?;
                let batch = &mut AppendBatch::default();
                let added = self.insert_plan(tx, session, &history, &plan, &placed.hashes, batch)?;
                Ok(Some(TranscriptPlace { branch: plan.branch, messages: count(messages.len()), added }))
            });
            match written {
                Ok(Some(place)) => return Ok(place),
                Ok(None) => self.store.contents().discard(placed),
                Err(error) => {
                    self.store.contents().discard(placed);
                    // A collection may have erased a content before the lines named it.
                    if !matches!(error, StoreError::MissingBlob { .. }) || tries == MAX_TRIES {
                        return Err(error);
                    }
                    tries += 1;
                }
            }
        }
    }

    /// The contents, each on the longest original that it has a pointer to: a message that was condensed contains it.
    fn with_bases<'a>(
        &self,
        tx: &Transaction<'_>,
        payloads: &[(&'a [u8], &[Pointer])],
    ) -> Result<Vec<NewContent<'a>>, StoreError> {
        let mut contents = Vec::with_capacity(payloads.len());
        for (bytes, pointers) in payloads {
            let mut longest: Option<StoredPointer> = None;
            for pointer in pointers.iter().filter(|_| bytes.len() >= based::MIN_BYTES) {
                let found = self.store.pointers().row(tx, &pointer.id)?;
                longest = longest.into_iter().chain(found).max_by_key(|stored| stored.bytes);
            }
            contents.push(NewContent {
                bytes: (*bytes).into(),
                pointer: None,
                base: longest.map(|stored| (stored.content, stored.bytes)),
            });
        }
        Ok(contents)
    }

    fn plan(
        &self,
        tx: &Transaction<'_>,
        session: &str,
        history: &HashedHistory<'_>,
    ) -> Result<AppendPlan, StoreError> {
        let (known, on) = self.known(tx, session, &history.chains)?;
        let Some(on) = on else {
            return Ok(AppendPlan {
                branch: self.next_branch(tx, session)?,
                fork: None,
                changed: Vec::new(),
                known,
            });
        };
        let at_end = self.length(tx, session, on)? == count(known);
        if !at_end && known == history.messages.len() {
            // An earlier request, sent again: the branch has continued since and is left unchanged.
            return Ok(AppendPlan { branch: on, fork: None, changed: Vec::new(), known });
        }
        let held = self.held_views(tx, session, on, count(known))?;
        let whole = TranscriptMessage::unchanged();
        let stands = |at: usize| held.get(&count(at + 1)).copied().unwrap_or(whole);
        let given = history.views.iter().take(known).enumerate();
        let changed =
            given.filter(|(at, view)| view.unwrap_or(whole) != stands(*at)).map(|(at, _)| at).collect();
        if at_end {
            return Ok(AppendPlan { branch: on, fork: None, changed, known });
        }
        let fork = Some(ForkPoint { branch: on, message: count(known) });
        Ok(AppendPlan { branch: self.next_branch(tx, session)?, fork, changed, known })
    }

    /// How many leading messages are known, and the branch with the last of them. Usually all but the last few are
    /// known, so the search takes ever longer steps back and then bisects.
    fn known(
        &self,
        tx: &Transaction<'_>,
        session: &str,
        chains: &[Digest],
    ) -> Result<(usize, Option<u32>), StoreError> {
        let mut query = tx.prepare_cached(
            "SELECT branch FROM transcript_lines WHERE user = ?1 AND session = ?2 AND chain = ?3",
        )?;
        let (mut low, mut high, mut on, mut step) = (0, chains.len(), None, 1);
        while low < high {
            let halving = on.is_some() || step >= high;
            let middle = if halving { low + (high - low).div_ceil(2) } else { high + 1 - step };
            step *= 2;
            let Some(chain) = chains.get(middle - 1) else { break };
            match query.query_row((self.store.user(), session, chain), |row| row.get(0)).optional()? {
                Some(branch) => (low, on) = (middle, Some(branch)),
                None => high = middle - 1,
            }
        }
        Ok((low, on))
    }

    fn next_branch(&self, tx: &Transaction<'_>, session: &str) -> Result<u32, StoreError> {
        let mut query = tx.prepare_cached(
            "SELECT 1 + coalesce(max(branch), 0) FROM transcript_lines WHERE user = ?1 AND session = ?2",
        )?;
        Ok(query.query_row((self.store.user(), session), |row| row.get(0))?)
    }

    /// The number of messages of a branch.
    fn length(&self, tx: &Transaction<'_>, session: &str, branch: u32) -> Result<u32, StoreError> {
        let mut query = tx.prepare_cached(
            "SELECT max(message) FROM transcript_lines WHERE user = ?1 AND session = ?2 AND branch = ?3",
        )?;
        Ok(query.query_row((self.store.user(), session, branch), |row| row.get(0))?)
    }

    /// The most recent forms of the first `until` messages of a branch; the others were unchanged.
    fn held_views(
        &self,
        tx: &Transaction<'_>,
        session: &str,
        branch: u32,
        until: u32,
    ) -> Result<BTreeMap<u32, Digest>, StoreError> {
        let mut query = tx.prepare_cached(
            "SELECT line, branch, message, view, parent, fork FROM transcript_lines
             WHERE user = ?1 AND session = ?2 AND view IS NOT NULL ORDER BY line",
        )?;
        let (mut rows, mut forks) = (Vec::new(), Forks::new());
        let mut found = query.query((self.store.user(), session))?;
        while let Some(row) = found.next()? {
            let line = row.get::<_, i64>(0)?.unsigned_abs();
            let branch = row.get(1)?;
            if let (Some(parent), Some(message)) = (row.get(4)?, row.get(5)?) {
                forks.insert(branch, (line, ForkPoint { branch: parent, message }));
            }
            rows.push((line, branch, row.get::<_, u32>(2)?, row.get::<_, Digest>(3)?));
        }
        let mut held = BTreeMap::new();
        for stretch in path(&forks, branch, until) {
            let on_it =
                rows.iter().filter(|(line, branch, message, _)| stretch.holds(*line, *branch, *message));
            held.extend(on_it.map(|(.., message, view)| (*message, *view)));
        }
        Ok(held)
    }

    /// Adds the lines of a plan, whose contents are stored under these hashes, in the order of its payloads.
    fn insert_plan(
        &self,
        tx: &Transaction<'_>,
        session: &str,
        history: &HashedHistory<'_>,
        plan: &AppendPlan,
        hashes: &[ContentHash],
        batch: &mut AppendBatch<'_>,
    ) -> Result<u32, StoreError> {
        if !hashes.is_empty() && !std::mem::replace(&mut batch.has_room, true) {
            limit::require_room(tx)?;
        }
        let HashedHistory { messages, reply, chains, views } = history;
        let time = self.store.now();
        let mut query = tx.prepare_cached(
            "SELECT coalesce(max(line), 0) FROM transcript_lines WHERE user = ?1 AND session = ?2",
        )?;
        let last = query.query_row((self.store.user(), session), |row| row.get::<_, i64>(0))?.unsigned_abs();
        let mut fork = plan.fork;
        let mut added = 0;
        let mut hashes = hashes.iter().copied();
        let mut stored = |bytes: &[u8]| {
            let hash = hashes.next().unwrap_or_else(|| ContentHash::new(bytes));
            PayloadRef { hash, bytes: bytes.len() as u64 }
        };
        let mut add = |at: usize, kind, role: &str, raw: &[u8], sent: Option<&[u8]>, pointers: &[Pointer]| {
            added += 1;
            let line = TranscriptLine {
                line: last + u64::from(added),
                time,
                branch: plan.branch,
                forked_from: fork.take(),
                message: count(at + 1),
                kind,
                role: role.to_owned(),
                raw: stored(raw),
                sent: sent.map(&mut stored),
                pointers: pointers.to_vec(),
            };
            let chain = chains.get(at).filter(|_| kind == LineKind::Message);
            let view = views.get(at).copied().flatten().filter(|_| kind != LineKind::Reply);
            // A line that changes a form, or starts a branch, records the form even if it is the original message.
            let said = kind == LineKind::Rendition || line.forked_from.is_some();
            let view = view.or_else(|| said.then(TranscriptMessage::unchanged));
            self.insert_line(tx, session, &line, chain, view)
        };
        let new = plan.known..messages.len();
        let known = plan.changed.iter().map(|at| (*at, LineKind::Rendition));
        for (at, kind) in known.chain(new.map(|at| (at, LineKind::Message))) {
            let Some(message) = messages.get(at) else { continue };
            add(at, kind, message.role, message.raw, message.sent, message.pointers)?;
        }
        if let Some(reply) = reply {
            add(messages.len() - 1, LineKind::Reply, REPLY_ROLE, reply, None, &[])?;
        }
        Ok(added)
    }

    fn insert_line(
        &self,
        tx: &Transaction<'_>,
        session: &str,
        line: &TranscriptLine,
        chain: Option<&Digest>,
        view: Option<Digest>,
    ) -> Result<(), StoreError> {
        for pointer in &line.pointers {
            self.store.pointers().require(tx, pointer)?;
            tx.prepare_cached(
                "INSERT OR IGNORE INTO transcript_pointers (user, name, session) VALUES (?1, ?2, ?3)",
            )?
            .execute((self.store.user(), pointer.id.name(), session))?;
        }
        let json = serde_json::to_string(line)
            .map_err(|source| StoreError::Record { what: "a line of a transcript".to_owned(), source })?;
        let mut insert = tx.prepare_cached(
            "INSERT INTO transcript_lines (user, session, line, branch, message, chain, view, parent, fork, document)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        insert.execute((
            self.store.user(),
            session,
            to_sql(line.line),
            line.branch,
            line.message,
            chain,
            view,
            line.forked_from.map(|from| from.branch),
            line.forked_from.map(|from| from.message),
            json,
        ))?;
        Ok(())
    }
}

impl AppendPlan {
    /// The contents that its lines name, with the pointers in them.
    fn payloads<'a>(&self, history: &HashedHistory<'a>) -> Vec<(&'a [u8], &'a [Pointer])> {
        let changed = self.changed.iter().filter_map(|at| history.messages.get(*at));
        let named = changed.chain(history.messages.iter().skip(self.known));
        named
            .flat_map(|message| {
                std::iter::once(message.raw).chain(message.sent).map(|bytes| (bytes, message.pointers))
            })
            .chain(history.reply.map(|reply| (reply, &[][..])))
            .collect()
    }
}

/// A number of messages. No body within any limit has more than 2^32.
fn count(messages: usize) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
