//! The documents searched for passages: those of the best turns, those that share words with the query, and those
//! with an id that the best passages refer to. Reads them; does not rank their content.

use std::collections::BTreeSet;
use std::sync::Arc;

use larder_store::DocumentKind;
use larder_text::words::Profile;
use larder_vault::{DocumentTime, VaultPath};

use super::phrases::PaddedQuery;
use super::trace::Trace;
use super::{Retrieval, RetrievalError, SearchRequest, TurnCandidate};

/// Documents that are read: `context.md` of the best turns …
const TURNS: usize = 6;
/// … others that share words with the query …
const SHARING_WORDS: usize = 32;
/// … and others that contain ids.
const WITH_IDS: usize = 16;
/// Bytes of all of them.
const MAX_BYTES: usize = 2 << 20;
/// Maximum bytes searched per document: larger ones are condensed tool records, which links point to.
pub(super) const MAX_DOCUMENT: usize = 512 << 10;
const KINDS: [DocumentKind; 3] = [DocumentKind::Page, DocumentKind::Memory, DocumentKind::Other];
/// Endings of English words with one stem, which the index of documents does not reduce.
const ENDINGS: [&str; 6] = ["", "s", "es", "e", "ed", "ing"];

/// A document that was read.
pub(super) struct ReadDocument {
    pub(super) path: VaultPath,
    pub(super) text: Arc<str>,
    /// When it was created, for turns.
    pub(super) at: Option<DocumentTime>,
}

/// The documents of one search.
pub(super) struct DocumentPool<'r> {
    retrieval: &'r Retrieval<'r>,
    /// Turns from this one on are not read.
    before: u32,
    pub(super) documents: Vec<ReadDocument>,
    seen: BTreeSet<VaultPath>,
    bytes: usize,
}

impl<'r> DocumentPool<'r> {
    /// The documents of the best turns, and those that share words with the query.
    pub(super) fn new(
        retrieval: &'r Retrieval<'r>,
        request: &SearchRequest<'_>,
        turns: &[TurnCandidate],
        trace: &mut Trace,
    ) -> Result<Self, RetrievalError> {
        let place = retrieval.documents.place();
        // These are ranked line by line, with their own limit.
        let apart = [place.memory("facts"), place.memory("preferences"), place.facts(), place.preferences()];
        let mut pool =
            Self { retrieval, before: request.before, documents: Vec::new(), seen: apart.into(), bytes: 0 };
        for turn in turns.iter().take(TURNS) {
            pool.read(turn.context.clone(), Some(turn.created_at), trace);
        }
        let words = PaddedQuery::new(request.query).searched();
        let found = pool.add(&words, SHARING_WORDS, trace)?;
        // Other word forms are only worth searching for if few documents contain the word as written.
        if found < SHARING_WORDS {
            pool.add(&forms(&words), SHARING_WORDS - found, trace)?;
        }
        Ok(pool)
    }

    /// Adds documents that contain one of these ids.
    pub(super) fn add_containing(
        &mut self,
        ids: &BTreeSet<String>,
        trace: &mut Trace,
    ) -> Result<(), RetrievalError> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        self.add(&ids.join(" "), WITH_IDS, trace)?;
        Ok(())
    }

    /// Adds the best documents that contain some of these words; returns how many are new.
    fn add(&mut self, words: &str, max: usize, trace: &mut Trace) -> Result<usize, RetrievalError> {
        if words.is_empty() {
            return Ok(0);
        }
        let (limit, before) = ((self.seen.len() + max) as u64, self.documents.len());
        for hit in self.retrieval.documents.catalog().search(words, &KINDS, limit)? {
            let later = hit.turn.is_some_and(|turn| turn >= self.before);
            if !later && self.documents.len() - before < max {
                self.read(hit.document, None, trace);
            }
        }
        Ok(self.documents.len() - before)
    }

    fn read(&mut self, path: VaultPath, at: Option<DocumentTime>, trace: &mut Trace) {
        if !self.seen.insert(path.clone()) {
            return;
        }
        let text = match self.retrieval.documents.files().read_text(&path) {
            Ok(Some(text)) => text,
            Ok(None) => {
                return trace.unused("passage", path.as_str(), 0.0, "the index names it and it is not there");
            }
            Err(error) => return trace.unused("passage", path.as_str(), 0.0, error.to_string()),
        };
        let searched = text.len().min(MAX_DOCUMENT);
        if self.bytes + searched > MAX_BYTES {
            let why = "the documents that rank above it are all that is searched";
            return trace.unused("passage", path.as_str(), 0.0, why);
        }
        self.bytes += searched;
        self.documents.push(ReadDocument { path, text: text.into(), at });
    }
}

/// The words of a query in the forms that share a stem with them.
fn forms(words: &str) -> String {
    let mut forms = BTreeSet::new();
    for word in words.split_whitespace() {
        let stem = Profile::RECALL.term(word);
        if stem.is_ascii() && !stem.contains(|c: char| c.is_ascii_digit()) {
            forms.extend(ENDINGS.map(|ending| format!("{stem}{ending}")));
        }
    }
    forms.into_iter().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_words_share_a_stem() {
        let forms = forms("painted größe veh-0772");
        assert_eq!(forms, "paint painte painted paintes painting paints");
        assert_eq!(super::forms(""), "");
    }
}
