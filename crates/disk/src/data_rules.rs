//! The one table of everything that is stored: whose each class of data is, how long it is kept, how it is exported and
//! how it is erased. A test lists the tables, files and indexes of a home that is in use, and fails for one without a rule.

use serde::Serialize;

use self::DataErasure::{ByUser, Kept, Rebuilt, WithProcess};
use self::DataExport::{Contents, Documents, Drafts, No, Rows};
use self::DataKind::{File, IndexTable, Table};
use self::DataLifetime::{Conversation, Forever, Originals, Persons, Records, Shortly, WhileNamed};

/// What is stored in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DataKind {
    /// A table of the index `index.sqlite`.
    Table(&'static str),
    /// A table of the indexes over documents, which are made from the documents alone.
    IndexTable(&'static str),
    /// Files of the home folder, by a pattern of their path: `*` matches any part of a name, `**` any path.
    File(&'static str),
}

/// How long a class of data is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DataLifetime {
    /// `retention.originals_days` after the last use.
    Originals,
    /// `retention.transcripts_days` after the last request of the conversation.
    Conversation,
    /// `retention.records_days`.
    Records,
    /// As long as something names it.
    WhileNamed,
    /// For moments or minutes.
    Shortly,
    /// `retention.conversations_days` after the newest message of a conversation with persons; facts also as their
    /// category says.
    Persons,
    /// Until it is deleted.
    Forever,
}

/// What `larder export` writes of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DataExport {
    /// The rows of the user, without these columns.
    Rows(&'static [&'static str]),
    /// The contents, decompressed.
    Contents,
    /// The files of unfinished turns.
    Drafts,
    /// The documents.
    Documents,
    /// Nothing, for this reason.
    No(&'static str),
}

/// What `larder forget` does with a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DataErasure {
    /// What is the user's is deleted.
    ByUser,
    /// It goes with the documents that it was made from.
    Rebuilt,
    /// It goes when the process that uses it ends.
    WithProcess,
    /// It is nobody's.
    Kept,
}

/// The rule of one class of data.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DataRule {
    /// Where it is.
    pub kind: DataKind,
    /// How long it is kept.
    pub lifetime: DataLifetime,
    /// What an export has of it.
    pub export: DataExport,
    /// How it is erased; [`DataErasure::ByUser`] for all that is a user's.
    pub erasure: DataErasure,
    /// What is lost with a table when the index is; `None` if `larder repair` rebuilds it.
    pub lost: Option<&'static str>,
}

const fn rule(kind: DataKind, lifetime: DataLifetime, export: DataExport, erasure: DataErasure) -> DataRule {
    DataRule { kind, lifetime, export, erasure, lost: None }
}

impl DataRule {
    /// A table that no repair rebuilds.
    const fn lost(self, words: &'static str) -> Self {
        Self { lost: Some(words), ..self }
    }
}

const SECRET: DataExport = No("secret");
const NOBODYS: DataExport = No("about no user");
const DERIVED: DataExport = No("made from the documents");
const INTERNAL: DataExport = No("work under way");

const RECORDS: &str = "records of requests and runs, with their costs, answers and receipts";
const TRANSCRIPTS: &str = "transcripts, and the contents that only they named";
const ROUND_TRIPS: &str = "calls for originals that clients do not see: models may repeat them";
const KEYS: &str = "API keys, their budgets and what they spent: create new ones with `larder keys create`";
const TALKS: &str =
    "conversations with persons: messages, consents, facts, everything else remembered, and costs";
const LEARNED: &str = "settings learned at run time, and which of them each conversation uses";
const DRAFTS: &str = "drafts of turns, and the numbers that they used up";
const SUCCESS: &str = "how often documents and web sites proved useful";
const CHANGES: &str = "changes to documents that were under way";
const ERASURES: &str =
    "erasures that were under way: what they had not overwritten is back, so forget users again";

/// Every class of data.
pub const DATA_RULES: &[DataRule] = &[
    rule(Table("meta"), Forever, NOBODYS, Kept),
    rule(Table("revisions"), Forever, NOBODYS, Kept).lost(LEARNED),
    rule(Table("usage_sums"), Forever, NOBODYS, Kept).lost(LEARNED),
    rule(Table("deletions"), Shortly, INTERNAL, WithProcess).lost(ERASURES),
    rule(Table("document_forgets"), Shortly, INTERNAL, WithProcess).lost(ERASURES),
    rule(Table("contents"), WhileNamed, Contents, ByUser).lost(
        "originals of up to 32 KiB that a version without segments stored and that were not converted yet",
    ),
    rule(Table("segment_contents"), WhileNamed, Contents, ByUser),
    rule(Table("segment_erasures"), Shortly, INTERNAL, ByUser).lost(ERASURES),
    rule(Table("segments"), WhileNamed, INTERNAL, ByUser),
    rule(Table("erasures"), Shortly, INTERNAL, ByUser).lost(ERASURES),
    rule(Table("pointers"), Originals, Rows(&[]), ByUser),
    rule(Table("tombstones"), Records, Rows(&[]), ByUser)
        .lost("which originals have expired: their pointers are unknown now"),
    rule(Table("sessions"), Conversation, Rows(&[]), ByUser).lost(TRANSCRIPTS),
    rule(Table("transcript_lines"), Conversation, Rows(&[]), ByUser).lost(TRANSCRIPTS),
    rule(Table("transcript_pointers"), Conversation, Rows(&[]), ByUser).lost(TRANSCRIPTS),
    rule(Table("round_trips"), Conversation, Rows(&[]), ByUser).lost(ROUND_TRIPS),
    rule(Table("session_revisions"), Conversation, Rows(&[]), ByUser).lost(LEARNED),
    rule(Table("exchanges"), Records, Rows(&[]), ByUser).lost(RECORDS),
    rule(Table("runs"), Records, Rows(&[]), ByUser).lost(RECORDS),
    rule(Table("run_pointers"), Records, Rows(&[]), ByUser).lost(RECORDS),
    rule(Table("interventions"), Records, Rows(&[]), ByUser).lost("interventions"),
    rule(Table("jobs"), WhileNamed, Rows(&[]), ByUser).lost("background jobs"),
    rule(Table("publications"), Forever, Rows(&[]), ByUser).lost("what users published for all users"),
    rule(Table("conversations"), Persons, Rows(&[]), ByUser).lost(TALKS),
    rule(Table("conversation_participants"), Persons, Rows(&[]), ByUser).lost(TALKS),
    rule(Table("conversation_invitations"), Persons, Rows(&[]), ByUser).lost(TALKS),
    rule(Table("conversation_sessions"), Persons, Rows(&[]), ByUser).lost(TALKS),
    rule(Table("conversation_keys"), Persons, Rows(&[]), ByUser).lost(TALKS),
    rule(Table("conversation_costs"), Forever, Rows(&[]), ByUser).lost(TALKS),
    rule(Table("conversation_messages"), Persons, Rows(&[]), ByUser).lost(TALKS),
    rule(Table("message_pointers"), Persons, Rows(&[]), ByUser).lost(TALKS),
    rule(Table("memory_records"), Persons, Rows(&["vector"]), ByUser).lost(TALKS),
    rule(Table("key_days"), Records, Rows(&[]), ByUser).lost(KEYS),
    rule(Table("keys"), Forever, Rows(&["hash"]), ByUser).lost(KEYS),
    rule(Table("reservations"), Shortly, Rows(&[]), ByUser).lost(KEYS),
    rule(Table("sign_ins"), Shortly, SECRET, ByUser).lost("sign-ins to the dashboard"),
    rule(Table("compactions"), Shortly, Rows(&[]), ByUser)
        .lost("condensed forms of texts, which are made again"),
    rule(Table("turn_numbers"), Forever, Rows(&[]), ByUser).lost(DRAFTS),
    rule(Table("turn_drafts"), Forever, Rows(&[]), ByUser).lost(DRAFTS),
    rule(Table("turn_files"), Forever, Drafts, ByUser).lost(DRAFTS),
    rule(Table("turn_moves"), Shortly, INTERNAL, ByUser).lost(CHANGES),
    rule(Table("document_writes"), Shortly, INTERNAL, ByUser).lost(CHANGES),
    rule(Table("document_pointers"), Forever, Rows(&[]), ByUser),
    rule(Table("document_uses"), Forever, Rows(&[]), ByUser).lost(SUCCESS),
    rule(Table("document_sources"), Forever, Rows(&[]), ByUser).lost(SUCCESS),
    rule(IndexTable("meta"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("documents"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("words*"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("links"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("turns"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("research"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("captures"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("redirects"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("topics"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("gists"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("spaces"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("vectors"), Forever, DERIVED, Rebuilt),
    rule(IndexTable("signs"), Forever, DERIVED, Rebuilt),
    rule(File("key"), Forever, SECRET, Kept),
    rule(File(".tmp-*"), Shortly, INTERNAL, WithProcess),
    rule(File("lock"), Forever, NOBODYS, Kept),
    // Its tables have rules of their own.
    rule(File("index.sqlite*"), Forever, NOBODYS, Kept),
    rule(File("blobs/*/*/.tmp-*"), Shortly, INTERNAL, ByUser),
    rule(File("blobs/.deleted-*/**"), Shortly, INTERNAL, WithProcess),
    rule(File("blobs/*/*/*"), WhileNamed, Contents, ByUser),
    rule(File("blobs/*/*.seg"), WhileNamed, Contents, ByUser),
    rule(File("indexes/documents/*"), Forever, DERIVED, Rebuilt),
    rule(File("turns/*"), Shortly, INTERNAL, WithProcess),
    rule(File("documents/**"), Forever, Documents, ByUser),
];

impl DataKind {
    /// Whether a table, or the path of a file in the home folder, is of this kind.
    pub fn covers(self, found: &str) -> bool {
        match self {
            Table(name) => name == found,
            IndexTable(pattern) => is_like(pattern, found),
            File(pattern) => {
                let (mut parts, mut names) = (pattern.split('/'), found.split('/'));
                loop {
                    match (parts.next(), names.next()) {
                        (Some("**"), Some(_)) | (None, None) => return true,
                        (Some(part), Some(name)) if is_like(part, name) => {}
                        _ => return false,
                    }
                }
            }
        }
    }
}

/// Whether a name has the two ends of a pattern with at most one `*`.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

/// What `larder repair` cannot rebuild, in words for people.
pub fn lost_with_index() -> Vec<&'static str> {
    let mut all = Vec::new();
    for words in DATA_RULES.iter().filter_map(|rule| rule.lost) {
        if !all.contains(&words) {
            all.push(words);
        }
    }
    all
}

/// The tables with rows of users, all of which have the column `user`.
pub fn user_tables() -> impl Iterator<Item = (&'static str, DataExport)> {
    DATA_RULES.iter().filter_map(|rule| match rule.kind {
        Table(name) if rule.erasure == ByUser => Some((name, rule.export)),
        _ => None,
    })
}
