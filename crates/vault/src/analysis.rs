//! `query_analysis.json`: what phase 0 found out about the query.

use serde::{Deserialize, Serialize};

use super::context::{ResolvedQuery, SourceReference};
use super::{ReferenceType, turn_number};

/// What phase 0 found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryAnalysis {
    /// Exactly what the user typed.
    pub original_query: String,
    /// The query with its references resolved.
    pub resolved_query: String,
    /// Whether anything had to be resolved.
    pub was_resolved: bool,
    /// What it refers to.
    pub query_type: ReferenceType,
    /// The content it refers to.
    #[serde(default)]
    pub content_reference: Option<ContentReference>,
    /// The reason.
    #[serde(default)]
    pub reasoning: String,
}

/// Content that a query refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContentReference {
    /// Its title.
    pub title: String,
    /// Such as `thread`.
    pub content_type: String,
    /// The site it is on.
    pub site: String,
    /// The turn that saw it.
    pub source_turn: Option<u32>,
    /// What is known of it.
    pub prior_findings: String,
    /// Its address, for going there without a search.
    pub source_url: Option<String>,
    /// Whether the turn captured it; then that is looked at first.
    pub has_webpage_cache: bool,
    /// Such as `turn_000847/webpage_cache/reddit_abc123/`.
    pub webpage_cache_path: Option<String>,
}

impl ContentReference {
    /// The turn and the folder of the capture that `webpage_cache_path` names; short turn numbers are read (C79).
    /// None if the path is anything else than that.
    pub fn capture(&self) -> Option<(u32, &str)> {
        let path = self.webpage_cache_path.as_deref()?.trim_end_matches('/');
        let (turn, slug) = path.split_once("/webpage_cache/")?;
        let is_name = super::VaultPath::new(slug).is_some() && !slug.contains('/');
        Some((turn_number(turn)?, slug)).filter(|_| is_name)
    }
}

impl QueryAnalysis {
    /// The part of it that §0 shows.
    pub fn for_section(&self) -> ResolvedQuery {
        ResolvedQuery {
            query: self.resolved_query.clone(),
            query_type: self.query_type,
            was_resolved: self.was_resolved,
            content_reference: self.content_reference.as_ref().map(|reference| SourceReference {
                title: reference.title.clone(),
                content_type: reference.content_type.clone(),
                site: reference.site.clone(),
                source_turn: reference.source_turn,
            }),
            reasoning: self.reasoning.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folder_of_a_capture_is_one() {
        let capture = |path: &str| {
            let reference =
                ContentReference { webpage_cache_path: Some(path.to_owned()), ..Default::default() };
            reference.capture().map(|(turn, slug)| (turn, slug.to_owned()))
        };
        assert_eq!(
            capture("turn_000847/webpage_cache/reddit_abc123/"),
            Some((847, "reddit_abc123".to_owned()))
        );
        assert_eq!(capture("turn_847/webpage_cache/x"), Some((847, "x".to_owned())));
        for other in [
            "",
            "turn_1/webpage_cache/../../x",
            "turn_1/webpage_cache/a/b",
            "../turn_1/webpage_cache/a",
            "turn_1/webpage_cache/..",
        ] {
            assert_eq!(capture(other), None, "{other}");
        }
    }
}
