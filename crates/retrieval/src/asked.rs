//! What a tool of phase 4 asks for by name (R1-1.3): documents by their words or their path, and memory. Everything is
//! recorded as considered, like what phase 2 gathers.

use larder_store::{DocumentHit, DocumentKind};
use larder_vault::VaultPath;

use super::memory::{
    MANY_PUBLISHED, MAX_PUBLISHED, Remembered, fact_place, facts_of, preferences, published,
};
use super::ranking::{Ranked, scores};
use super::scope::VaultScope;
use super::trace::{Trace, TraceEntry};
use super::{FactCandidate, PreferenceCandidate, Retrieval, RetrievalError};

/// Documents that contain the words that were asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundDocuments {
    /// Best first.
    pub hits: Vec<DocumentHit>,
    /// Everything that was considered, for the receipt.
    pub considered: Vec<TraceEntry>,
}

/// The document at a path that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedDocument {
    /// Where it is.
    pub path: VaultPath,
    /// Its text.
    pub text: String,
    /// It as considered, for the receipt.
    pub considered: TraceEntry,
}

/// Which entries of memory are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKinds {
    /// Facts only.
    Facts,
    /// Preferences only.
    Preferences,
    /// Both.
    All,
}

/// An entry of memory.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryEntry {
    /// A fact.
    Fact(FactCandidate),
    /// A preference.
    Preference(PreferenceCandidate),
}

/// What memory has on a question.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledMemory {
    /// Best first, the newer first among equals.
    pub entries: Vec<MemoryEntry>,
    /// Entries that match.
    pub matching: usize,
    /// Everything that was considered, for the receipt.
    pub considered: Vec<TraceEntry>,
}

impl MemoryEntry {
    /// The words by which it is found. Names are written with signs between their words: `favorite_hamster`.
    fn words(&self) -> String {
        match self {
            Self::Fact(fact) => format!("{} {}", fact.category, fact.fact),
            Self::Preference(known) => {
                format!("{} {}", known.name.replace(['_', '-', '.'], " "), known.value)
            }
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Fact(fact) => fact.line(),
            Self::Preference(preference) => preference.line(),
        }
    }

    fn updated_at(&self) -> Option<larder_vault::DocumentTime> {
        match self {
            Self::Fact(fact) => fact.updated_at(),
            Self::Preference(preference) => preference.updated_at(),
        }
    }
}

/// See [`Retrieval::search_documents`].
pub(super) fn search(
    retrieval: &Retrieval<'_>,
    words: &str,
    kinds: &[DocumentKind],
    limit: u64,
) -> Result<FoundDocuments, RetrievalError> {
    let hits = retrieval.documents.catalog().search(words, kinds, limit)?;
    let mut trace = Trace::default();
    for hit in &hits {
        let tokens = retrieval.counter.count(&hit.snippet).max(1);
        trace.used("document", hit.document.as_str(), hit.score, tokens, "a tool searched for its words");
    }
    Ok(FoundDocuments { hits, considered: trace.finish() })
}

/// See [`Retrieval::open`].
pub(super) fn open(
    retrieval: &Retrieval<'_>,
    written: &str,
    unsaved: &dyn Fn(&VaultPath) -> Option<String>,
) -> Result<Option<OpenedDocument>, RetrievalError> {
    let scope = VaultScope::new(retrieval.documents.place().preferences().folder());
    let target = scope.places(written, None);
    for path in target.into_iter().flat_map(|target| target.places) {
        let text = match unsaved(&path) {
            Some(text) => Some(text),
            None => retrieval.documents.files().read_text(&path)?,
        };
        if let Some(text) = text {
            let considered = TraceEntry {
                document: path.to_string(),
                kind: "document".to_owned(),
                score: 0.0,
                used: true,
                tokens: retrieval.counter.count(&text),
                why: "a tool read it".to_owned(),
            };
            return Ok(Some(OpenedDocument { path, text, considered }));
        }
    }
    Ok(None)
}

/// See [`Retrieval::recall`].
pub(super) async fn recall(
    retrieval: &Retrieval<'_>,
    query: Option<&str>,
    kinds: MemoryKinds,
    limit: usize,
) -> Result<RecalledMemory, RetrievalError> {
    let mut trace = Trace::default();
    let mut all = Vec::new();
    if kinds != MemoryKinds::Preferences {
        let mut facts = facts_of(retrieval, &mut trace).await;
        // Publications of others are only included if there is a query.
        if query.is_some() {
            let published = published(retrieval, &facts)?;
            facts.extend(published);
        }
        all.extend(facts.into_iter().map(MemoryEntry::Fact));
    }
    if kinds != MemoryKinds::Facts {
        all.extend(preferences(retrieval).await.into_iter().map(MemoryEntry::Preference));
    }
    let words: Vec<String> = all.iter().map(MemoryEntry::words).collect();
    let scores = match query {
        Some(query) => scores(query, retrieval.now, words.iter().map(|words| Ranked::alone(words))),
        None => vec![0.0; all.len()],
    };
    let mut ranked: Vec<(MemoryEntry, f64)> = all.into_iter().zip(scores).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.updated_at().cmp(&a.0.updated_at())));
    let (mut entries, mut matching, mut others) = (Vec::new(), 0, 0);
    for (entry, score) in ranked {
        let (kind, place) = match &entry {
            MemoryEntry::Fact(fact) => ("fact", fact_place(retrieval, fact)),
            MemoryEntry::Preference(_) => {
                ("preference", retrieval.documents.place().preferences().to_string())
            }
        };
        if query.is_some() && score <= 0.0 {
            trace.unused(kind, &place, score, "it holds no words of what a tool asked for");
            continue;
        }
        matching += 1;
        if matches!(&entry, MemoryEntry::Fact(fact) if fact.published.is_some()) {
            others += 1;
            if others > MAX_PUBLISHED {
                trace.unused(kind, &place, score, MANY_PUBLISHED);
                continue;
            }
        }
        if entries.len() == limit {
            trace.unused(kind, &place, score, format!("{limit} rank above it"));
            continue;
        }
        let tokens = retrieval.counter.count(&entry.line());
        trace.used(kind, &place, score, tokens, "a tool asked memory for it");
        entries.push(entry);
    }
    Ok(RecalledMemory { entries, matching, considered: trace.finish() })
}
