//! The content types and their names. Data only; [`types`](crate::types) recognises and condenses them.

use serde::{Deserialize, Serialize};

/// The type of a text, which decides how it is condensed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentType {
    /// `context.md`: numbered sections §0…§6.
    ContextDoc,
    /// `research.md`: findings with sources.
    ResearchDoc,
    /// A captured web page: zones with confidence.
    PageDoc,
    /// Tool output of no more specific type.
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
    /// Unified diff.
    Diff,
    /// Source code of a programming language.
    Code,
    /// HTML markup of a web page.
    Html,
    /// Rows of fields, such as CSV and TSV.
    Table,
    /// Anything else, condensed by lines.
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

// A variant missing from `ALL` does not compile, as long as `Generic` is the last one.
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
