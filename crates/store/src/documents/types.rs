//! Types that callers of the documents pass and receive. Knows no file, row or query.

use std::collections::BTreeMap;
use std::path::PathBuf;

use larder_vault::layout::TurnPlace;
pub use larder_vault::path_kind::DocumentKind;
use larder_vault::{DocumentTime, Intent, Mode, Scope, Score, TurnStatus, VaultPath};
use serde::Serialize;

use super::index::Subject;

/// The location of the documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentPlace {
    /// A folder of this machine; it can be opened as a vault.
    Folder(PathBuf),
    /// An object store: `s3://bucket/prefix`. Credentials come from the environment variables `AWS_…`.
    Url(String),
}

/// An unfinished turn. It is stored in the main database until it is committed, so that it can be resumed after a
/// crash from its last checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnDraft {
    /// The turn's number, counted per user (R1-13.16).
    pub number: u32,
    /// The paths of its files.
    pub place: TurnPlace,
    /// Which recipes it runs.
    pub mode: Mode,
    /// The conversation it belongs to.
    pub session: Option<String>,
    /// The user's query, byte for byte.
    pub query: String,
    /// When it was started.
    pub created_at: DocumentTime,
    /// The last phase that was finished, 0 to 7.
    pub phase: Option<u8>,
    /// The state that the turn's machine needs to resume.
    pub state: serde_json::Value,
    /// Its files by their path inside the turn's folder.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// A draft in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DraftSummary {
    /// The turn's number.
    pub number: u32,
    /// The user's query.
    pub query: String,
    /// The last phase that was finished.
    pub phase: Option<u8>,
    /// When it was started.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created_at: DocumentTime,
}

/// A committed turn, as the index has it from its `metadata.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnRow {
    /// Per user.
    pub number: u32,
    /// How it ended.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub status: TurnStatus,
    /// The query with its references resolved.
    pub query: String,
    /// The turn in a sentence.
    pub summary: Option<String>,
    /// A topic such as `commerce.laptop`.
    pub topic: Option<String>,
    /// What the query was for.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub intent: Option<Intent>,
    /// How good the answer is.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub quality: Option<Score>,
    /// When it was started.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created_at: DocumentTime,
    /// Its `context.md`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub context: VaultPath,
    /// Whether it is in the archive.
    pub archived: bool,
    /// The conversation it belongs to.
    pub session: Option<String>,
}

/// One piece of research, as the index has it from its `research.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResearchRow {
    /// Its `research.md`.
    pub document: VaultPath,
    /// An id such as `research_759_abc123`.
    pub id: String,
    /// The turn that did it.
    pub turn: u32,
    /// Dotted, such as `commerce.laptop`.
    pub topic: String,
    /// What it was for.
    pub intent: Intent,
    /// How good it is.
    pub quality: Score,
    /// When it was created.
    pub created_at: DocumentTime,
    /// When its time-sensitive part expires; `None` if it has none.
    pub expires_at: Option<DocumentTime>,
    /// The id of the newer research that replaced it (R1-12.5).
    pub superseded_by: Option<String>,
    /// Its scope: the one in the document, or a wider one after promotion (R1-12.6 to R1-12.12).
    pub scope: Scope,
    /// The question.
    pub title: String,
    /// How often it was useful.
    pub use_count: u64,
}

/// One captured page, as the index has it from its `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaptureRow {
    /// The turn that visited it.
    pub turn: u32,
    /// The page's address.
    pub url: String,
    /// Other addresses that were asked for and led to it.
    pub redirected_from: Vec<String>,
    /// The page's title.
    pub title: String,
    /// Its `manifest.json`.
    pub manifest: VaultPath,
    /// When it was captured.
    pub captured_at: DocumentTime,
}

/// A document that was found by its words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DocumentHit {
    /// The document.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub document: VaultPath,
    /// What it is.
    pub kind: DocumentKind,
    /// The turn it belongs to.
    pub turn: Option<u32>,
    /// Its BM25 score among the ranked documents; higher is better.
    pub score: f64,
    /// The passage that matches best, in one line.
    pub snippet: String,
}

/// The embedding of a text, close to those of texts with similar meaning from the same model.
#[derive(Debug, Clone, PartialEq)]
pub struct TextVector {
    /// The model that computed it. Vectors from different models are never compared.
    pub model: String,
    /// Its numbers, of any length other than 0.
    pub numbers: Vec<f32>,
}

/// A short text about a turn or a piece of research, to be embedded as a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingText {
    pub(super) of: Subject,
    /// At most 1,500 bytes.
    pub text: String,
}

/// The track record of a site (R1-13.12).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceRow {
    /// The site, in lower case.
    pub domain: String,
    /// How often it was right.
    pub ok: u64,
    /// How often it was wrong.
    pub failed: u64,
    /// `(ok + 1) / (ok + failed + 2)`: an unknown site is in the middle.
    pub reliability: Score,
    /// When it was last used.
    pub last_used: DocumentTime,
}

/// What a rebuild of the index read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ReindexReport {
    /// Users.
    pub users: u64,
    /// Committed turns, those in the archive included.
    pub turns: u64,
    /// The number of indexed documents.
    pub documents: u64,
    /// Files that could not be parsed as their kind; they are not indexed but left in place.
    pub unreadable: u64,
    /// The first hundred of those files.
    pub unreadable_files: Vec<VaultPath>,
}

/// What a call of `archive` moved.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ArchiveReport {
    /// The numbers of the turns that were moved, in their order.
    pub turns: Vec<u32>,
    /// The expired research that was moved, by its path in the archive.
    pub research: Vec<VaultPath>,
    /// Other documents whose links were rewritten because they pointed to what was moved.
    pub relinked: u64,
}
