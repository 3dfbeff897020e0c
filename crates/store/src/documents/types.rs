//! Types that callers of the documents pass and receive. Knows no file, row or query.

use std::collections::BTreeMap;
use std::path::PathBuf;

use larder_vault::layout::TurnPlace;
use larder_vault::{DocumentTime, Intent, Mode, Scope, Score, TurnStatus, VaultPath};
use serde::{Deserialize, Serialize};

use super::index::Subject;

/// Where the documents lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentPlace {
    /// A folder of this machine; it can be opened as a vault.
    Folder(PathBuf),
    /// An object store: `s3://bucket/prefix`. Credentials come from the variables `AWS_…` of the environment.
    Url(String),
}

/// A turn under way. It is kept in the main database from its beginning to its commit, so that it can go on after a
/// crash from what was saved last.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnDraft {
    /// Per user (R1-13.16).
    pub number: u32,
    /// The paths of its files.
    pub place: TurnPlace,
    /// Which recipes it runs.
    pub mode: Mode,
    /// The conversation it belongs to.
    pub session: Option<String>,
    /// What the user asked, byte for byte.
    pub query: String,
    /// When it began.
    pub created_at: DocumentTime,
    /// The last phase that was finished, 0 to 7.
    pub phase: Option<u8>,
    /// What the machine that runs the turn needs to go on.
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
    /// What the user asked.
    pub query: String,
    /// The last phase that was finished.
    pub phase: Option<u8>,
    /// When it began.
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
    /// Such as `commerce.laptop`.
    pub topic: Option<String>,
    /// What the query was for.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub intent: Option<Intent>,
    /// How good the answer is.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub quality: Option<Score>,
    /// When it began.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created_at: DocumentTime,
    /// Its `context.md`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub context: VaultPath,
    /// Whether it lies in the archive.
    pub archived: bool,
    /// The conversation it belongs to.
    pub session: Option<String>,
}

/// One piece of research, as the index has it from its `research.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResearchRow {
    /// Its `research.md`.
    pub document: VaultPath,
    /// Such as `research_759_abc123`.
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
    /// When its time-sensitive part is old; none if it has no such part.
    pub expires_at: Option<DocumentTime>,
    /// The id of the newer research that took its place (R1-12.5).
    pub superseded_by: Option<String>,
    /// For whom it counts: the scope in the document, or a wider one to which use has promoted it (R1-12.6 to R1-12.12).
    pub scope: Scope,
    /// What was asked.
    pub title: String,
    /// How often it was of use.
    pub use_count: u64,
}

/// One captured page, as the index has it from its `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaptureRow {
    /// The turn that visited it.
    pub turn: u32,
    /// The page's address.
    pub url: String,
    /// The page's title.
    pub title: String,
    /// Its `manifest.json`.
    pub manifest: VaultPath,
    /// When it was captured.
    pub captured_at: DocumentTime,
}

/// The type of a document, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    /// `context.md` of a turn.
    Context,
    /// `research.md` of a turn.
    Research,
    /// `page_content.md` of a captured page.
    Page,
    /// Facts, preferences and the records behind them.
    Memory,
    /// Any other text.
    Other,
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
    /// BM25 over the documents that were weighed; more is better.
    pub score: f64,
    /// The passage that matches best, in one line.
    pub snippet: String,
}

/// The embedding of a text: close to those of texts of similar meaning by the same model.
#[derive(Debug, Clone, PartialEq)]
pub struct TextVector {
    /// The model that computed it. Vectors of different models are never compared.
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

/// How reliable a site has proved (R1-13.12).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceRow {
    /// The site, in lower case.
    pub domain: String,
    /// How often it proved right.
    pub ok: u64,
    /// How often it proved wrong.
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
    /// Documents that the index holds.
    pub documents: u64,
    /// Files that could not be read as what they should be; they are left out and stay where they are.
    pub unreadable: u64,
    /// The first hundred of those files.
    pub unreadable_files: Vec<VaultPath>,
}

/// What a call of `archive` moved.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ArchiveReport {
    /// The numbers of the turns that were moved, in their order.
    pub turns: Vec<u32>,
    /// Other documents whose links were rewritten, because they led to moved turns.
    pub relinked: u64,
}
