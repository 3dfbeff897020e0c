//! The content types and their names. Data only; how each is recognised and condensed is in [`types`](crate::types).

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

impl ContentType {
    /// Every content type.
    pub const ALL: [Self; 15] = [
        Self::ContextDoc,
        Self::ResearchDoc,
        Self::PageDoc,
        Self::ToolResult,
        Self::PriorTurn,
        Self::Prose,
        Self::Markdown,
        Self::Chat,
        Self::Json,
        Self::Log,
        Self::Diff,
        Self::Code,
        Self::Html,
        Self::Table,
        Self::Generic,
    ];

    /// The name in JSON, recipes and the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ContextDoc => "context_doc",
            Self::ResearchDoc => "research_doc",
            Self::PageDoc => "page_doc",
            Self::ToolResult => "tool_result",
            Self::PriorTurn => "prior_turn",
            Self::Prose => "prose",
            Self::Markdown => "markdown",
            Self::Chat => "chat",
            Self::Json => "json",
            Self::Log => "log",
            Self::Diff => "diff",
            Self::Code => "code",
            Self::Html => "html",
            Self::Table => "table",
            Self::Generic => "generic",
        }
    }
}

// A variant that is missing in `ALL` does not compile, as long as `Generic` stays the last one.
const _: () = assert!(ContentType::ALL.len() == ContentType::Generic as usize + 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for content_type in ContentType::ALL {
            assert_eq!(serde_json::to_value(content_type).unwrap(), content_type.as_str());
        }
    }
}
