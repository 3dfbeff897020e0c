//! Everything that persists in a home folder: originals behind pointers, receipts, run records, interventions, API
//! keys and their budgets, background jobs, exchanges, transcripts, conversations, calibrations, revisions of settings and caches; and the documents of turns and memory,
//! which may be stored elsewhere. Knows nothing of models, recipes or prompts; time and randomness are injected.
//!
//! # On disk
//!
//! ```text
//! HOME/                      mode 0700
//!   key                      32 random bytes, mode 0600, created once and never replaced
//!   models.tsv               the catalogue of models of `larder models update`; not used by the store
//!   lock                     empty; locked while a store is set up
//!   index.sqlite             pointers, runs, places of contents …; WAL mode; format version = PRAGMA user_version
//!   index.sqlite.damaged-N   an index that `larder repair` replaced; removed when a user is forgotten
//!   blobs/USER/000001.seg    originals, and other contents over 32 KiB: records that say what the index needs to be
//!                            rebuilt; append-only up to 16 MiB, locked by the process that appends
//!   blobs/USER/aa/bb…        one zstd frame of a content too large for a segment, over 8 MiB or 1 MiB compressed; aabb… is
//!                            the BLAKE3 digest of the content
//!   blobs/USER/aa/.tmp-…     a blob being written, locked by its writer
//!   blobs/.deleted-…         what is left of a deleted user, being removed
//!   indexes/documents/….db   the index over the documents of a user; may be deleted at any time
//!   turns/USER-NUMBER        empty; locked by the process that runs this turn
//!   turns/foreground         empty; shared by the processes in which someone waits for a model
//!   turns/talk-…             empty; locked by the process that answers in a track of a conversation
//!   turns/jobs               empty; locked by the process that does background jobs
//! ```
//!
//! `USER` is `u-` and the id where it is 1 to 64 of `a-z 0-9 - _`, otherwise `h-` and the BLAKE3 digest of the id.
//! The format version is [`FORMAT_VERSION`]; older stores are upgraded when opened, newer ones refused.
//! `src/migrations/` contains the tables of each version. Up to version 11, contents of up to 32 KiB were rows and all
//! others files: both are still read, and collections move them into segments, a few at a time.
//!
//! Contents of up to 32 KiB that are not originals (receipts, answers, messages) are rows of the index, zstd frames too.
//! A record that is erased is overwritten with zeros and its blocks are returned to the file system; a segment that is
//! mostly erased is rewritten. What a crash leaves behind, a record that no row names, is kept until then.
//!
//! # What is promised
//!
//! - A row is committed with, or after, the contents it names, so no pointer dangles and a run is recorded
//!   whole or not at all, whenever the process or the machine stops.
//! - Without the index, every original comes back by its pointer: [`Store::repair`].
//! - A content is checked against its hash on every read.
//! - Everything a user owns is reached through [`UserStore`] only, keyed by the user throughout.
//! - Any number of processes may use one home at once, and draw on one key's budget.
//! - What is reserved and settled of a budget, and the lines of transcripts, outlast a killed process; a machine that
//!   loses power may lose those of the last moments. Everything else is synced before it is reported as written.
#![deny(missing_docs)]

mod backup;
mod calibrations;
mod compactions;
mod contents;
mod conversations;
#[cfg(test)]
mod data_rules_tests;
mod deletion;
mod documents;
mod exchanges;
mod index;
mod interventions;
mod jobs;
mod keys;
mod pointers;
mod publications;
mod repair;
mod retention;
mod revisions;
mod round_trips;
mod runs;

mod store;
mod transcripts;
mod verify;

pub use backup::BackupReport;
pub use calibrations::{Calibrations, FactorRevision};
pub use compactions::{CompactionKey, Compactions, DEFAULT_COMPACTION_TTL};
pub use contents::StoredContents;
pub use conversations::{
    ConversationCost, ConversationCostRow, ConversationMessage, ConversationRecord, Conversations, ERASE_JOB,
    Erasure, Invitation, InvitedParticipant, Memory, MemoryChange, MemoryFilter, MemoryKind, MemoryRecord,
    NewConversation, NewMessage, NewReply, ParticipantRecord, PersonChanges, PersonSeen, ReplacedMessage,
    RestingSide, SessionRecord, Speaker, Track,
};
pub use documents::{
    ArchiveReport, CaptureRow, DocumentCatalog, DocumentFiles, DocumentHit, DocumentKind, DocumentPlace,
    Documents, DraftSummary, Drafts, EmbeddingText, ExportReport, Leases, ReindexReport, ResearchRow,
    SourceRow, TextVector, Trends, TurnDraft, TurnRow, UserDocuments, Uses, Vectors,
};
pub use exchanges::{CostRow, ExchangeFilter, Exchanges, NewExchange, ReadBackRow, SessionSummary};
pub use index::FORMAT_VERSION;
pub use interventions::{CONFIG_ERROR, Intervention, Interventions, NewIntervention};
pub use jobs::{JOB_FAILED, Job, JobEnd, JobQueue, JobState, JobWorker, Jobs, NewJob};
pub use keys::{
    DaySpend, KeyId, KeyLimits, KeyRecord, Keys, NewKey, ParseKeyIdError, RESERVATION_LIFETIME, Reservation,
    ReserveOutcome, Shortage, Spend, StoredKey,
};
pub use larder_disk::data_rules::{DATA_RULES, DataErasure, DataExport, DataKind, DataLifetime, DataRule};
pub use larder_disk::foreground::ForegroundWork;
pub use larder_disk::frame::{NewBytes, PackedContent};
pub use larder_disk::home::{copy_to_read, remove_home_file, unwritable, write_home_file};
pub use larder_disk::locks::TurnLease;
pub use larder_disk::run_id::{ParseRunIdError, RunId};
pub use larder_disk::user::LOCAL_USER;
pub use larder_disk::{
    Clock, Entropy, ParseTimestampError, StoreError, SystemClock, SystemEntropy, Timestamp,
};
pub use larder_text::select::{SelectError, Selection};
pub use pointers::{NewPointer, Pointers, StoredPointer};
pub use publications::{NewPublication, Publication, Publications};
pub use repair::RepairReport;
pub use retention::{Collected, CollectionReport, Retention, RetentionClass, STORED_FOR, USE_STEP};
pub use revisions::{LearnedSettings, Revision, Revisions, SessionRevisions};
pub use round_trips::RoundTrips;
pub use runs::{ModelUsage, NewRun, RunFacts, RunFilter, RunRecord, RunStatus, RunTokens, Runs};
pub use store::{Store, StoreOptions, UserStore};
pub use transcripts::{
    ForkPoint, LineKind, NewTranscript, PayloadRef, TranscriptLine, TranscriptMessage, TranscriptPlace,
    Transcripts, branch_of,
};
pub use verify::{VerifyProblem, VerifyReport};

/// Whether documents can be kept in an S3 bucket: the feature `s3`.
pub const HAS_S3: bool = cfg!(feature = "s3");

/// The version of the SQLite that is compiled in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
