//! A vault as the product keeps it, and what a turn would be offered from it. Knows no corpus.

use std::ops::Range;

use larder_retrieval::index::Limits;
use larder_retrieval::{Grant, PassageCandidate, Retrieval};
use larder_store::{DocumentPlace, Documents, Store, StoreOptions, UserDocuments};
use larder_text::tokens::Counter;
use larder_vault::{DocumentTime, VaultPath};

use crate::Failure;

/// The folder of the notes within the vault.
const NOTES: &str = "users/evals/notes";

/// The documents of one user, in a folder of their own.
pub(super) struct NoteVault {
    documents: UserDocuments,
    counter: Counter,
    _folder: tempfile::TempDir,
}

impl NoteVault {
    /// A vault with these notes, each a name that ends in `.md` and its text.
    pub(super) fn new(notes: &[(String, String)]) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let store = Store::open(&folder.path().join("home"), StoreOptions::default())?;
        let all = Documents::open(&store, &DocumentPlace::Folder(folder.path().join("vault")))?;
        let documents = all.user("evals")?;
        for (name, text) in notes {
            let path = VaultPath::new(&format!("{NOTES}/{name}")).ok_or("a note needs a plain name")?;
            documents.files().write(&path, text.as_bytes(), None)?;
        }
        Ok(Self { documents, counter: Counter::o200k(), _folder: folder })
    }

    /// The passages that a turn offers to a model for this query.
    pub(super) fn passages(
        &self,
        query: &str,
        now: DocumentTime,
        limits: Limits,
    ) -> Result<Vec<PassageCandidate>, Failure> {
        let retrieval = Retrieval::new(&self.documents, &self.counter, now, Grant::Gatherer);
        let retrieval = retrieval.with_passage_limits(limits);
        Ok(futures::executor::block_on(retrieval.find(query, u32::MAX, None, None))?.passages)
    }
}

/// Whether some passage contains all these bytes of a note.
pub(super) fn shows(passages: &[PassageCandidate], note: &str, bytes: &Range<usize>) -> bool {
    passages.iter().any(|passage| {
        passage.document.name() == note
            && passage.bytes.start <= bytes.start
            && bytes.end <= passage.bytes.end
    })
}

/// The tokens of all passages, a line break after each.
pub(super) fn tokens(passages: &[PassageCandidate]) -> usize {
    let text: String = passages.iter().flat_map(|passage| [passage.text.as_str(), "\n"]).collect();
    Counter::o200k().count(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_shown_where_a_passage_contains_all_of_it() {
        let notes = [("tea.md", "The tea is in the cupboard.\n"), ("coffee.md", "Coffee is out.\n")];
        let vault = NoteVault::new(&notes.map(|(name, text)| (name.to_owned(), text.to_owned()))).unwrap();
        let now = "2026-01-05T10:00:00Z".parse().unwrap();
        let passages = vault.passages("Where is the tea?", now, Limits::default()).unwrap();
        assert!(shows(&passages, "tea.md", &(0..27)) && shows(&passages, "tea.md", &(4..10)));
        assert!(!shows(&passages, "tea.md", &(4..40)) && !shows(&passages, "coffee.md", &(0..5)));
        assert!((6..12).contains(&tokens(&passages)));
        let nothing = vault.passages("Where is the tea?", now, Limits { tokens: 3, links: None }).unwrap();
        assert_eq!((nothing.len(), tokens(&nothing)), (0, 0));
    }
}
