//! Transcripts: the original of every message of a session, byte for byte, and the form in which it was sent to the
//! model (R3-4.35, C104). Append-only: lines never change. Knows no wire format; the caller decides which messages
//! are identical.
//!
//! A history that continues adds the lines of its new messages. One that diverges adds a branch, which shares the
//! earlier messages. A message forwarded in a different form than before, as after a compaction, adds a line. The
//! lines in order therefore also show what was compacted and when (R3-4.33).

mod append;

pub use append::NewTranscript;

use std::collections::BTreeMap;

use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use crate::store::UserStore;
use larder_disk::StoreError;
use larder_disk::Timestamp;

pub use larder_text::message::TranscriptMessage;

/// Where a history ended up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptPlace {
    /// The branch that it is, from 1.
    pub branch: u32,
    /// How many messages it has.
    pub messages: u32,
    /// How many lines were added.
    pub added: u32,
}

/// What a line records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// A new message.
    Message,
    /// An earlier message that is now forwarded in a different form.
    Rendition,
    /// A reply to the history that ends with this message. It becomes part of a history when a client sends it back.
    Reply,
}

/// Stored bytes; read them with [`StoredContents::get`](crate::StoredContents::get).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadRef {
    /// Their address.
    pub hash: ContentHash,
    /// Their length.
    pub bytes: u64,
}

/// The last message that a branch shares with its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// The parent branch.
    pub branch: u32,
    /// The message.
    pub message: u32,
}

/// One line of a transcript; as JSON, one line of the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptLine {
    /// Its number in the session, from 1, in the order written.
    pub line: u64,
    /// When it was written.
    pub time: Timestamp,
    /// The branch.
    pub branch: u32,
    /// Where the branch starts, in its first line; `None` if it shares nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub forked_from: Option<ForkPoint>,
    /// The number of the message in its history, from 1.
    pub message: u32,
    /// What it records.
    pub kind: LineKind,
    /// The role of its author, such as `user`.
    pub role: String,
    /// The original.
    pub raw: PayloadRef,
    /// What went upstream instead.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sent: Option<PayloadRef>,
    /// The pointers in it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub pointers: Vec<Pointer>,
}

/// The transcripts of one user's sessions; from [`UserStore::transcripts`].
#[derive(Debug, Clone, Copy)]
pub struct Transcripts<'s> {
    pub(crate) store: &'s UserStore,
}

impl Transcripts<'_> {
    /// The whole transcript of a session, in the order written; empty if there is none.
    pub fn lines(&self, session: &str) -> Result<Vec<TranscriptLine>, StoreError> {
        let lines: Vec<(i64, String)> = self.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT line, document FROM transcript_lines WHERE user = ?1 AND session = ?2 ORDER BY line",
            )?;
            let rows = query.query_map((self.store.user(), session), |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        lines.iter().map(|(line, json)| parse(session, *line, json)).collect()
    }

    /// The history of one branch, including messages shared with others: for each message, the line of its most
    /// recent form.
    pub fn branch(&self, session: &str, branch: u32) -> Result<Vec<TranscriptLine>, StoreError> {
        Ok(branch_of(&self.lines(session)?, branch))
    }
}

/// As [`Transcripts::branch`], of lines that are read already: all those of a session.
pub fn branch_of(lines: &[TranscriptLine], branch: u32) -> Vec<TranscriptLine> {
    let forks = lines.iter().filter_map(|line| Some((line.branch, (line.line, line.forked_from?)))).collect();
    let mut history = BTreeMap::new();
    for stretch in path(&forks, branch, u32::MAX) {
        let on_it = |line: &&TranscriptLine| stretch.holds(line.line, line.branch, line.message);
        for line in lines.iter().filter(|line| line.kind != LineKind::Reply).filter(on_it) {
            history.insert(line.message, line);
        }
    }
    history.into_values().cloned().collect()
}

fn parse(session: &str, line: i64, json: &str) -> Result<TranscriptLine, StoreError> {
    serde_json::from_str(json).map_err(|source| StoreError::Record {
        what: format!("line {line} of the transcript of session {session:?}"),
        source,
    })
}

/// The first lines of branches with a parent, and what they share.
type Forks = BTreeMap<u32, (u64, ForkPoint)>;

/// A part of a branch that another one shares.
struct Stretch {
    branch: u32,
    /// The last message that is shared.
    until: u32,
    /// What was written from this line on is not shared.
    before: u64,
}

impl Stretch {
    fn holds(&self, line: u64, branch: u32, message: u32) -> bool {
        branch == self.branch && message <= self.until && line < self.before
    }
}

/// The segments of the history of `branch` up to message `until`, oldest first.
fn path(forks: &Forks, branch: u32, until: u32) -> Vec<Stretch> {
    let mut stretches = vec![Stretch { branch, until, before: u64::MAX }];
    let (mut branch, mut until) = (branch, until);
    while let Some((line, from)) = forks.get(&branch) {
        // A branch's parent is older, so this ends; a damaged index must not cause an endless loop.
        if from.branch >= branch {
            break;
        }
        (branch, until) = (from.branch, until.min(from.message));
        stretches.push(Stretch { branch, until, before: *line });
    }
    stretches.reverse();
    stretches
}

/// The claims of a line, for verifying the store: its owner, its description, and the line.
pub(crate) fn each_line(
    tx: &Transaction<'_>,
    mut visit: impl FnMut(String, String, Result<TranscriptLine, StoreError>),
) -> Result<(), StoreError> {
    let mut query = tx.prepare("SELECT user, session, line, document FROM transcript_lines")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (user, session, line): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let json: String = row.get(3)?;
        let what = format!("line {line} of the transcript of session {session:?} of user {user:?}");
        visit(user, what, parse(&session, line, &json));
    }
    Ok(())
}
