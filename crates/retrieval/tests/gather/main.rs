//! Gathering from a vault of 300 turns: what was planted is found, links lead where they may, the same vault gives the
//! same bytes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helpers of tests fail by panicking"
)]

mod following;
mod meaning;
mod pages;
mod recalling;

use larder_retrieval::{Grant, Retrieval};
use larder_store::{DocumentPlace, Documents, Store, StoreOptions, UserDocuments};
use larder_testkit::lived_in::{self, dense};
use larder_text::tokens::Counter;
use larder_vault::DocumentTime;

/// Turns of the vault.
const TURNS: u32 = 300;

/// A vault in a folder of its own.
struct Vault {
    documents: UserDocuments,
    all: Documents,
    counter: Counter,
    now: DocumentTime,
    _folder: tempfile::TempDir,
}

impl Vault {
    async fn of(turns: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("home"), StoreOptions::default()).unwrap();
        let all = Documents::open(&store, &DocumentPlace::Folder(folder.path().join("vault"))).unwrap();
        let documents = all.user("henry").unwrap();
        for _ in 0..turns {
            dense().add_turn(&documents);
        }
        let now = dense().moment(turns).plus_seconds(dense().step);
        Self { documents, all, counter: Counter::cl100k(), now, _folder: folder }
    }

    fn retrieval(&self, grant: Grant) -> Retrieval<'_> {
        Retrieval::new(&self.documents, &self.counter, self.now, grant)
    }
}

/// Every thing and property comes once in so many turns, so a fact is found by both or not at all.
#[test]
fn subjects_do_not_repeat() {
    let mut all: Vec<String> =
        (1..=TURNS).map(lived_in::subject).map(|it| format!("{} {}", it.thing, it.property)).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), TURNS as usize);
}
