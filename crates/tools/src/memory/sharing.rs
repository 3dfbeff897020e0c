//! What of a user's memory and research has earned to be offered for publication (R1-12.9 to R1-12.12), and publishing
//! it. A person decides, who has seen the text; what is published is a copy.

use std::collections::BTreeSet;

use larder_store::{NewPublication, Publication, StoreError, UserDocuments};
use larder_vault::lifecycle::{TrackRecord, is_candidate};
use larder_vault::{Document, DocumentTime, FactRecord, Research, turn_number};
use serde::Serialize;

use super::notebook::FactBook;
use super::standing;
use crate::research::site_of;
use crate::spec::ToolError;

/// Knowledge of a user that proved right and stays true, and is not published as it now is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ShareCandidate {
    /// `fact-001`, or the id of research.
    pub id: String,
    /// The category under which it would be published.
    pub category: String,
    /// The source that would be stated.
    pub source: String,
    /// What would be published, and nothing else.
    pub statements: Vec<String>,
    /// How often it was used.
    pub uses: u32,
}

/// Why something was not published.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// It has not earned it, or is published already.
    #[error("{id} is not offered for publication; `larder share list` shows what is")]
    NotOffered {
        /// Its id.
        id: String,
    },
    /// The text is not the one that the person saw.
    #[error("{id} has changed since it was shown; look at it again")]
    Changed {
        /// Its id.
        id: String,
    },
    /// The user has published as much as one may.
    #[error(
        "{MAX_PUBLICATIONS} publications are the most that a user may have; revoke one with `larder share revoke`"
    )]
    TooMany,
    /// Memory cannot be read.
    #[error(transparent)]
    Memory(#[from] ToolError),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Publications of one user at a time.
const MAX_PUBLICATIONS: usize = 100;

/// Everything of a user that may be published.
///
/// # Errors
/// Memory, research or what is published cannot be read.
pub fn share_candidates(
    documents: &UserDocuments,
    now: DocumentTime,
) -> Result<Vec<ShareCandidate>, ShareError> {
    let book = FactBook::open(documents, now)?;
    let facts = book.facts.iter().filter(|fact| is_candidate(fact.scope, &standing(fact, now)));
    let mut candidates: Vec<ShareCandidate> = facts.map(|fact| of_fact(fact, documents.user())).collect();
    for row in documents.catalog().research(None, u64::MAX)? {
        let (uses, trust) = documents.uses().of(&row.document)?;
        let age = now.seconds_since(row.created_at);
        // Only the evergreen part of research is published (C84).
        if !is_candidate(row.scope, &TrackRecord { trust, uses, age, evergreen: true }) {
            continue;
        }
        let text = documents.files().read_text(&row.document)?.unwrap_or_default();
        let research = Document::<Research>::read(&text, &row.document).value.map(|document| document.value);
        candidates.extend(research.and_then(|research| of_research(research, documents.user(), uses)));
    }
    let published = documents.store().publications().list()?;
    candidates.retain(|candidate| {
        let is_same = |known: &Publication| {
            known.published_by == documents.user()
                && known.origin == candidate.id
                && known.statements == candidate.statements
        };
        !published.iter().any(is_same)
    });
    Ok(candidates)
}

fn of_fact(fact: &FactRecord, user: &str) -> ShareCandidate {
    let turn = fact.source.as_ref().and_then(|source| source.as_str().split('/').find_map(turn_number));
    let turn = turn.map(|turn| format!(", learned in turn {turn}")).unwrap_or_default();
    ShareCandidate {
        id: fact.id.as_str().to_owned(),
        category: fact.category.clone(),
        source: format!("{} of {user}{turn}", fact.id.as_str()),
        statements: vec![fact.fact.clone()],
        uses: fact.uses,
    }
}

/// The evergreen facts of research, if it has any, with the sites that it relied on.
fn of_research(research: Research, user: &str, uses: u32) -> Option<ShareCandidate> {
    let claims = research.claims.iter().map(|claim| claim.source.as_str());
    let addresses = research.sources.iter().map(|source| source.url.as_str()).chain(claims);
    let sites: Vec<String> = addresses.filter_map(site_of).collect::<BTreeSet<_>>().into_iter().collect();
    let from = if sites.is_empty() { String::new() } else { format!(", from {}", sites.join(", ")) };
    let candidate = ShareCandidate {
        source: format!("{} of {user}{from}", research.id),
        id: research.id,
        category: research.topic,
        statements: research.facts,
        uses,
    };
    (!candidate.statements.is_empty()).then_some(candidate)
}

/// Publishes a candidate for all users, as the person who asks for it saw it.
///
/// # Errors
/// It is not a candidate, its text is not the one `seen`, or the store fails.
pub fn publish(
    documents: &UserDocuments,
    now: DocumentTime,
    id: &str,
    seen: &[String],
) -> Result<Publication, ShareError> {
    let mut candidates = share_candidates(documents, now)?.into_iter();
    let Some(candidate) = candidates.find(|candidate| candidate.id == id) else {
        return Err(ShareError::NotOffered { id: id.to_owned() });
    };
    if candidate.statements != seen {
        return Err(ShareError::Changed { id: id.to_owned() });
    }
    let published = documents.store().publications().list()?;
    let own = published.iter().filter(|publication| publication.published_by == documents.user());
    if own.count() >= MAX_PUBLICATIONS {
        return Err(ShareError::TooMany);
    }
    let ShareCandidate { category, source, statements, .. } = &candidate;
    let new = NewPublication { origin: id, category, source, statements };
    Ok(documents.store().publications().publish(&new)?)
}
