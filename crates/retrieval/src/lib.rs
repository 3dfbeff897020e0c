//! Gathering: finds existing knowledge that may answer a query, without any model (R1-8.8 to R1-8.12, R1-10, R1-14;
//! C77, C90, C91, C102, C106).
//!
//! One service with a grant for each caller. [`Retrieval::find`] collects candidates from a user's documents: earlier
//! turns, research, captured pages, preferences, facts, passages. A model chooses among them, and
//! [`Retrieval::follow`] reads what it chose within a budget. Everything that was considered is recorded with its
//! score, its tokens, and why it was used or not.
//!
//! Knows documents and how they rank; does not know recipes, prompts or models: a caller that has a vector of the query
//! passes it in. The same documents, query, vector and moment give the same bytes.
#![deny(missing_docs)]

mod asked;
mod candidates;
pub mod dialogue;
mod extract;
pub mod index;
mod link_expansion;
mod memory;
mod page;
mod passages;
mod phrases;
mod pool;
mod ranking;
mod records;
pub mod render;
mod research;
mod scope;
mod trace;
mod turns;

use larder_store::{DocumentHit, DocumentKind, ResearchRow, StoreError, TextVector, TurnRow, UserDocuments};
use larder_text::tokens::Counter;
use larder_vault::{ContentReference, DocumentTime, VaultPath};

pub use asked::{FoundDocuments, MemoryEntry, MemoryKinds, OpenedDocument, RecalledMemory};
pub use candidates::{
    Candidates, FactCandidate, PassageCandidate, PreferenceCandidate, PublishedBy, ResearchCandidate,
    TurnCandidate,
};
pub use link_expansion::{LinkExpansion, LinkToFollow, LinkedDocument};
pub use page::{FoundCapture, PageAnswer, PageLevel, SMALL_PAGE, SmallPage, WHOLE, is_stale};
pub use phrases::states;
pub use trace::TraceEntry;

use index::Limits;
use phrases::PaddedQuery;
use trace::Trace;

/// Maximum turns in the turn index (R1-10.2).
pub const TURN_INDEX_LIMIT: usize = 20;
/// How many turns' summaries phase 0 reads (R1-14.1).
pub const RECENT_TURNS: u64 = 3;
/// Preferences that are shown, and facts (C102).
pub const MAX_SHOWN: usize = 5;

/// The cosine above which two texts may mean nearly the same, for models whose unrelated texts are near 0, such as
/// MiniLM. With models whose texts are all close together (ada-002, e5) it excludes nothing.
const NEAR: f64 = 0.35;
/// Turns, and pieces of research, that are ranked for being nearest.
const NEAREST: usize = 20;

/// Whether a query names anything that could be searched for.
pub fn has_search_terms(query: &str) -> bool {
    !PaddedQuery::new(query).searched().is_empty()
}

/// What a caller may use (C90).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Phase 0: recent turns, and whether a page was captured.
    QueryAnalyzer,
    /// Phase 2: everything.
    Gatherer,
    /// Phase 4, and recipes outside turns: what a tool asks for by its words, its path, or of memory.
    Tools,
    /// Phase 5: one document that the gathered context links to, and nothing that it links to in turn (R1-14.4).
    Synthesis,
}

/// Why nothing could be gathered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetrievalError {
    /// The caller asked for something outside its grant.
    #[error("{grant:?} may not {what}; only {allowed} may (C90)")]
    NotGranted {
        /// The caller's grant.
        grant: Grant,
        /// The operation it asked for.
        what: &'static str,
        /// The callers that may.
        allowed: &'static str,
    },
    /// The index could not be read. A single document that cannot be read is recorded as considered instead.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Retrieval from one user's documents at one moment, for one caller.
#[derive(Clone, Copy)]
pub struct Retrieval<'a> {
    documents: &'a UserDocuments,
    counter: &'a Counter,
    now: DocumentTime,
    grant: Grant,
    vector: Option<&'a TextVector>,
    query: Option<&'a str>,
    limits: Limits,
}

impl<'a> Retrieval<'a> {
    /// Retrieval for a caller with this grant. Ages are counted up to `now`; `counter` counts the tokens of prompts.
    pub fn new(documents: &'a UserDocuments, counter: &'a Counter, now: DocumentTime, grant: Grant) -> Self {
        Self { documents, counter, now, grant, vector: None, query: None, limits: Limits::default() }
    }

    /// Adds a vector of the query, so that [`find`](Self::find) also finds texts with the same meaning in other
    /// words.
    #[must_use]
    pub fn with_vector(self, vector: Option<&'a TextVector>) -> Self {
        Self { vector, ..self }
    }

    /// Adds the query, so that [`follow`](Self::follow) shows of a document that is too long what bears on it.
    #[must_use]
    pub fn with_query(self, query: &'a str) -> Self {
        Self { query: Some(query), ..self }
    }

    /// Overrides the default limits for passages.
    #[must_use]
    pub fn with_passage_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The newest `count` turns before turn `before` and the newest `count` of `session`, newest first (R1-14.1): a
    /// user may hold several conversations at a time, and each goes on from its own turns.
    ///
    /// # Errors
    /// The grant is not that of phase 0 or 2, or the index cannot be read.
    pub async fn recent(
        &self,
        count: u64,
        before: u32,
        session: Option<&str>,
    ) -> Result<Vec<TurnRow>, RetrievalError> {
        self.may(
            matches!(self.grant, Grant::QueryAnalyzer | Grant::Gatherer),
            "read the turn index",
            "phases 0 and 2",
        )?;
        let catalog = self.documents.catalog();
        let mut turns = match session {
            Some(session) => catalog.recent_turns(count, Some(before), Some(session))?,
            None => Vec::new(),
        };
        let mut others = catalog.recent_turns(count, Some(before), None)?;
        others.retain(|turn| session.is_none() || turn.session.as_deref() != session);
        turns.extend(others);
        Ok(turns)
    }

    /// The captured page that a query refers to (R1-14.6): of the captures of `turn`, or of the newest turns and
    /// those whose pages contain its words, the one whose title and address best match `hint`. Of several visits to
    /// one page, the newest.
    ///
    /// # Errors
    /// The grant is not that of phase 0 or 2, or the index cannot be read.
    pub async fn capture(
        &self,
        turn: Option<u32>,
        hint: &str,
    ) -> Result<Option<FoundCapture>, RetrievalError> {
        self.may(
            matches!(self.grant, Grant::QueryAnalyzer | Grant::Gatherer),
            "look for captured pages",
            "phases 0 and 2",
        )?;
        page::capture(self, turn, hint, u32::MAX)
    }

    /// Everything before turn `before` that may help to answer `query`. Among recent turns, those of `session` have a
    /// higher weight, and its last one is always offered. With a `reference`, the page it names is consulted first (R1-5.5) and the turn index is not
    /// searched (R1-5.8), unless the reference cannot be resolved.
    ///
    /// # Errors
    /// The grant is not that of the gatherer, or the index cannot be read.
    pub async fn find(
        &self,
        query: &str,
        before: u32,
        session: Option<&str>,
        reference: Option<&ContentReference>,
    ) -> Result<Candidates, RetrievalError> {
        self.may(self.grant == Grant::Gatherer, "search documents", "phase 2")?;
        let request = SearchRequest { query, before, session, reference };
        let mut trace = Trace::default();
        let page = page::find(self, &request, &mut trace).await?;
        let turns = turns::find(self, &request, &mut trace)?;
        let memory = memory::find(self, &request, page.as_ref(), &mut trace).await?;
        let research = research::find(self, &request, &turns, &memory, &mut trace).await?;
        let passages = passages::find(self, &request, &turns, &mut trace).await?;
        Ok(Candidates {
            turn_index: turns,
            cached_intel: research.cached,
            research_hits: research.hits,
            strategy_patterns: memory.strategies,
            preferences: memory.preferences,
            facts: memory.facts,
            page,
            passages,
            considered: trace.finish(),
        })
    }

    /// Reads the documents that `links` name and then those that they link to, down to two steps, within
    /// `min(6,400, limit)` tokens and 2,000 a document (R1-8.9 to R1-8.12, C23); of each only the sections asked for
    /// (R1-10.8). Links that lead nowhere, back, or out of the vault are recorded with the reason. With the grant of
    /// synthesis one document is read and its links are not followed.
    ///
    /// # Errors
    /// The grant is not that of phase 2 or 5.
    pub async fn follow(
        &self,
        links: &[LinkToFollow],
        limit: usize,
    ) -> Result<LinkExpansion, RetrievalError> {
        self.may(matches!(self.grant, Grant::Gatherer | Grant::Synthesis), "follow links", "phases 2 and 5")?;
        Ok(link_expansion::expand(self, links, limit).await)
    }

    /// The documents that contain these words, best first, for a tool.
    ///
    /// # Errors
    /// The grant is not that of tools, or the index cannot be read.
    pub fn search_documents(
        &self,
        words: &str,
        kinds: &[DocumentKind],
        limit: u64,
    ) -> Result<FoundDocuments, RetrievalError> {
        self.may(self.grant == Grant::Tools, "search documents by words", "phase 4")?;
        asked::search(self, words, kinds, limit)
    }

    /// The user's document at a path in any spelling, for a tool; `None` if there is none. `unsaved` gives the documents
    /// that the current turn has written.
    ///
    /// # Errors
    /// The grant is not that of tools, or the document cannot be read.
    pub fn open(
        &self,
        path: &str,
        unsaved: &dyn Fn(&VaultPath) -> Option<String>,
    ) -> Result<Option<OpenedDocument>, RetrievalError> {
        self.may(self.grant == Grant::Tools, "open documents by path", "phase 4")?;
        asked::open(self, path, unsaved)
    }

    /// What memory has on a question, or the newest entries: facts, preferences or both, for a tool. What other users
    /// published counts where the question holds words of it.
    ///
    /// # Errors
    /// The grant is not that of tools, or what is published cannot be read.
    pub async fn recall(
        &self,
        query: Option<&str>,
        kinds: MemoryKinds,
        limit: usize,
    ) -> Result<RecalledMemory, RetrievalError> {
        self.may(self.grant == Grant::Tools, "ask memory", "phase 4")?;
        asked::recall(self, query, kinds, limit).await
    }

    fn may(&self, may: bool, what: &'static str, allowed: &'static str) -> Result<(), RetrievalError> {
        if may { Ok(()) } else { Err(RetrievalError::NotGranted { grant: self.grant, what, allowed }) }
    }

    /// Documents that contain words of the query, best first; none if it has no words worth looking for.
    fn search(
        &self,
        query: &str,
        kinds: &[DocumentKind],
        limit: u64,
    ) -> Result<Vec<DocumentHit>, RetrievalError> {
        let words = PaddedQuery::new(query).searched();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.documents.catalog().search(&words, kinds, limit)?)
    }

    /// Turns whose meaning is near that of the query, nearest first; none without a vector of it.
    fn near_turns(&self, request: &SearchRequest<'_>) -> Result<Vec<u32>, RetrievalError> {
        let Some(vector) = self.vector_of(request.query) else { return Ok(Vec::new()) };
        let found = self.documents.vectors().near_turns(vector, request.before, NEAR, NEAREST)?;
        Ok(found.into_iter().map(|(number, _)| number).collect())
    }

    /// As `near_turns`, for research.
    fn near_research(&self, request: &SearchRequest<'_>) -> Result<Vec<ResearchRow>, RetrievalError> {
        let Some(vector) = self.vector_of(request.query) else { return Ok(Vec::new()) };
        Ok(self.documents.vectors().near_research(vector, request.before, NEAR, NEAREST)?)
    }

    fn vector_of(&self, query: &str) -> Option<&'a TextVector> {
        self.vector.filter(|_| has_search_terms(query))
    }

    /// Seconds from `earlier` to now.
    fn age(&self, earlier: DocumentTime) -> u64 {
        self.now.seconds_since(earlier)
    }
}

/// The arguments of a search.
#[derive(Clone, Copy)]
struct SearchRequest<'q> {
    query: &'q str,
    before: u32,
    session: Option<&'q str>,
    reference: Option<&'q ContentReference>,
}
