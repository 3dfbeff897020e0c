//! The content types. Data only.

use serde::{Deserialize, Serialize};

/// What a text is, which decides how it is condensed (R0-22.6, extended).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentType {
    /// `context.md`: numbered sections §0…§6.
    ContextDoc,
    /// `research.md`: findings with sources.
    ResearchDoc,
    /// A captured web page: zones with confidence.
    PageDoc,
    /// Output of a tool, of no more special type.
    ToolResult,
    /// An earlier turn.
    PriorTurn,
    /// Sentences and paragraphs.
    Prose,
    /// Markdown with headings.
    Markdown,
    /// Messages of a conversation.
    Chat,
    /// One JSON value, or one per line.
    Json,
    /// Lines written by a running program.
    Log,
    /// A unified diff.
    Diff,
    /// Source code of a programming language.
    Code,
    /// A web page's markup.
    Html,
    /// Rows of fields: CSV, TSV and the like.
    Table,
    /// Anything else, by lines.
    Generic,
}
