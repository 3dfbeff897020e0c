//! `query_analysis.json`: phase 0's analysis of the query.

use serde::{Deserialize, Serialize};

use super::context::{ResolvedQuery, SourceReference};
use super::{ReferenceType, turn_number};

/// The analysis of a query by phase 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryAnalysis {
    /// Exactly what the user typed.
    pub original_query: String,
    /// The query with its references resolved.
    pub resolved_query: String,
    /// Whether any reference had to be resolved.
    pub was_resolved: bool,
    /// What it refers to.
    pub query_type: ReferenceType,
    /// What the user wants, in a word or two, before anything is planned; the plan has the intent that decides.
    #[serde(default)]
    pub intent: String,
    /// What the query names: people, places, products, files, with references spelled out.
    #[serde(default)]
    pub entities: Vec<String>,
    /// The content it refers to, if any.
    #[serde(default)]
    pub content_reference: Option<ContentReference>,
    /// The reasoning behind the analysis.
    #[serde(default)]
    pub reasoning: String,
}

/// Content that a query refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContentReference {
    /// Its title.
    pub title: String,
    /// The kind of content, such as `thread`.
    pub content_type: String,
    /// The site it is on.
    pub site: String,
    /// The turn that captured it.
    pub source_turn: Option<u32>,
    /// What is already known about it.
    pub prior_findings: String,
    /// Its URL, so that it can be visited without a search.
    pub source_url: Option<String>,
    /// Whether the turn captured it; if so, the capture is consulted first.
    pub has_webpage_cache: bool,
    /// The capture's folder, such as `turn_000847/webpage_cache/reddit_abc123/`.
    pub webpage_cache_path: Option<String>,
}

impl ContentReference {
    /// The turn and the capture folder in `webpage_cache_path`; short turn numbers are accepted. `None` for any other
    /// path.
    pub fn capture(&self) -> Option<(u32, &str)> {
        let path = self.webpage_cache_path.as_deref()?.trim_end_matches('/');
        let (turn, slug) = path.split_once("/webpage_cache/")?;
        let is_name = super::VaultPath::new(slug).is_some() && !slug.contains('/');
        Some((turn_number(turn)?, slug)).filter(|_| is_name)
    }
}

impl QueryAnalysis {
    /// The part of the analysis shown in §0.
    pub fn for_section(&self) -> ResolvedQuery {
        ResolvedQuery {
            query: self.was_resolved.then(|| self.resolved_query.clone()),
            query_type: self.query_type,
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
