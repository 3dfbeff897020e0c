//! A turn is whole or absent, wherever its commit, its move to the archive or the deletion of its user stops.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;

use larder_text::hash::ContentHash;
use larder_vault::{Mode, VaultPath};
use proptest::prelude::*;

use super::failing::Failing;
use super::generate::{fill, turn};
use super::*;
use crate::documents::index::dump::dump;
use crate::documents::journal;

impl Home {
    /// Documents that die after so many changes of files.
    fn dying(&self, changes: i64) -> (Documents, Arc<Failing>) {
        let tree = tree::open(&DocumentPlace::Folder(self.vault())).unwrap();
        let failing = Arc::new(Failing { tree, left: AtomicI64::new(changes) });
        let tree = Arc::clone(&failing) as Arc<dyn Tree>;
        (Documents::over(&self.store(), tree).unwrap(), failing)
    }
}

/// The files of the vault as they are on disk, and the dump of the index.
fn state(documents: &UserDocuments) -> (Vec<(String, ContentHash)>, Vec<String>) {
    let mut files = Vec::new();
    for path in documents.tree().list("").unwrap() {
        let bytes = documents.tree().read(&path).unwrap().unwrap();
        files.push((path.to_string(), ContentHash::new(&bytes)));
    }
    (files, dump(documents.index()))
}

#[test]
fn a_commit_that_dies_anywhere_is_finished_by_recover() {
    let whole = Home::new();
    let expected = {
        let documents = whole.open();
        let user = documents.user("u").unwrap();
        for _ in 0..4 {
            user.drafts().commit(&turn(&user)).unwrap();
        }
        documents.recover().unwrap();
        state(&user)
    };
    // Every change of a file is a point to die at, until there are no more.
    for changes in 0.. {
        let home = Home::new();
        let died = {
            let user = home.open().user("u").unwrap();
            for _ in 0..3 {
                user.drafts().commit(&turn(&user)).unwrap();
            }
            let draft = turn(&user);
            user.drafts().checkpoint(&draft).unwrap();
            let (dying, tree) = home.dying(changes);
            // Once its files are there it is committed, whatever becomes of the notes about it.
            let failed = dying.user("u").unwrap().drafts().commit(&draft).is_err();
            let reader = home.open().user("u").unwrap();
            let seen = reader.catalog().turn(4).unwrap();
            let standing = reader.files().read(&draft.place.metadata()).unwrap();
            assert_eq!(seen.is_some(), !failed, "the index shows whole turns only ({changes})");
            if let Some(metadata) = standing {
                assert_eq!(metadata, draft.files["metadata.json"]);
                for (path, bytes) in &draft.files {
                    let path = VaultPath::new(&format!("{}/{path}", draft.place.folder())).unwrap();
                    assert_eq!(
                        reader.files().read(&path).unwrap().as_ref(),
                        Some(bytes),
                        "{path} ({changes})"
                    );
                }
            }
            let documents = home.open();
            assert_eq!(documents.recover().unwrap(), 4);
            assert_eq!(documents.recover().unwrap(), 0);
            let user = documents.user("u").unwrap();
            assert_eq!(user.drafts().list().unwrap(), []);
            user.drafts().commit(&draft).unwrap();
            assert_eq!(state(&user), expected, "{changes}");
            tree.is_dead()
        };
        if !died {
            assert!(
                changes > files_of_a_turn(),
                "each file of the turn and each note over it is a point: {changes}"
            );
            break;
        }
    }
}

/// How many files a generated turn with research has, notes beside them included.
fn files_of_a_turn() -> i64 {
    let home = Home::new();
    let user = home.open().user("u").unwrap();
    for _ in 0..3 {
        turn(&user);
    }
    let draft = turn(&user);
    user.drafts().commit(&draft).unwrap();
    i64::try_from(user.files().list(draft.place.folder()).unwrap().len()).unwrap()
}

#[test]
fn before_the_journal_a_draft_stays_a_draft() {
    let home = Home::new();
    let user = home.open().user("u").unwrap();
    let mut draft = turn(&user);
    draft.phase = Some(3);
    draft.state = serde_json::json!({"attempt": 2});
    user.drafts().checkpoint(&draft).unwrap();
    let again = home.open().user("u").unwrap();
    assert_eq!(again.drafts().get(draft.number).unwrap().as_ref(), Some(&draft));
    assert_eq!(again.drafts().list().unwrap().len(), 1);
    draft.files.remove("response.md");
    draft.files.insert("context.md".to_owned(), b"other".to_vec());
    user.drafts().checkpoint(&draft).unwrap();
    assert_eq!(again.drafts().get(draft.number).unwrap(), Some(draft.clone()));
    user.drafts().commit(&draft).unwrap();
    assert_eq!(again.drafts().get(draft.number).unwrap(), None);
    assert!(matches!(again.drafts().checkpoint(&draft), Err(StoreError::BadTurn { .. })));
    again.drafts().discard(draft.number).unwrap();
    assert!(again.catalog().turn(draft.number).unwrap().is_some());
    let dropped = turn(&again);
    again.drafts().discard(dropped.number).unwrap();
    assert_eq!(again.drafts().get(dropped.number).unwrap(), None);
    assert_eq!(turn(&again).number, dropped.number + 1, "numbers are not given out again");
}

#[test]
fn a_turn_begins_with_all_that_it_needs_to_go_on() {
    let home = Home::new();
    let user = home.open().user("u").unwrap();
    let begun = user.drafts().begin_with(Mode::Code, None, "q", |draft| {
        draft.state = serde_json::json!({"workspace": "/somewhere", "number": draft.number});
        draft.files.insert("context.md".to_owned(), b"the query".to_vec());
    });
    let begun = begun.unwrap();
    assert_eq!(begun.state["number"], 1);
    assert_eq!(home.open().user("u").unwrap().drafts().get(1).unwrap(), Some(begun.clone()));
    let state = serde_json::json!({"spent": 7});
    let later = TurnDraft { files: BTreeMap::new(), ..begun.clone() };
    user.drafts().save_state(&later, &state).unwrap();
    let saved = user.drafts().get(1).unwrap().unwrap();
    assert_eq!((saved.state, saved.files), (state, begun.files), "the files stay as they were saved");
}

#[test]
fn a_preview_of_a_collection_needs_no_room() {
    let home = Home::new();
    let documents = home.open();
    let user = documents.user("u").unwrap();
    user.drafts().commit(&turn(&user)).unwrap();
    // An index that is not built, and in which SQLite has no number left for what marks it as built.
    let full = format!(
        "DELETE FROM meta;
         CREATE TABLE no_room (number INTEGER PRIMARY KEY AUTOINCREMENT);
         INSERT INTO no_room (number) VALUES ({});
         CREATE TRIGGER disk_full BEFORE INSERT ON meta BEGIN INSERT INTO no_room (number) VALUES (NULL); END;",
        i64::MAX
    );
    user.index().write(|tx| Ok(tx.execute_batch(&full)?)).unwrap();
    let refused = documents.collect(&crate::Retention::default(), &|_| true).unwrap_err();
    assert!(matches!(refused, StoreError::DiskFull { .. }), "{refused}");
    documents.preview_collection(&crate::Retention::default()).unwrap();
}

#[test]
fn a_full_disk_leaves_a_draft_as_it_was_and_the_turn_absent() {
    let home = Home::new();
    let documents = home.open();
    let user = documents.user("u").unwrap();
    let saved = turn(&user);
    user.drafts().checkpoint(&saved).unwrap();
    let limit = |pages: u32| {
        let set = format!("PRAGMA max_page_count = {pages}");
        documents.store().index().write(|tx| Ok(tx.query_row(&set, [], |row| row.get::<_, u32>(0))?)).unwrap()
    };
    limit(1);
    let mut draft = saved.clone();
    draft.files.insert(
        "toolresults.md".to_owned(),
        (0..200_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect(),
    );
    let is_full = |done: Result<(), StoreError>| {
        let error = done.unwrap_err();
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
        assert!(error.to_string().contains("free some space"), "{error}");
    };
    is_full(user.drafts().checkpoint(&draft));
    assert_eq!(user.drafts().get(saved.number).unwrap().as_ref(), Some(&saved));
    is_full(user.drafts().commit(&draft));
    assert_eq!(user.drafts().get(saved.number).unwrap().as_ref(), Some(&saved));
    assert_eq!(user.files().list(saved.place.folder()).unwrap(), []);
    assert_eq!(user.catalog().turn(saved.number).unwrap(), None);
    limit(u32::MAX - 2);
    user.drafts().commit(&draft).unwrap();
    assert_eq!(user.drafts().list().unwrap(), []);
    assert!(user.catalog().turn(saved.number).unwrap().is_some());
}

#[test]
fn torn_files_are_mended_and_edited_ones_stay() {
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("u").unwrap();
        let draft = turn(&user);
        user.drafts().commit(&draft).unwrap();
        let file = |name: &str| home.vault().join(draft.place.folder()).join(name);
        std::fs::write(file("context.md"), "edited by hand, word hippopotamus").unwrap();
        let torn = &draft.files["response.md"];
        std::fs::write(file("response.md"), &torn[..torn.len() / 2]).unwrap();
        std::fs::write(file("query_analysis.json"), vec![0; 24]).unwrap();
        std::fs::remove_file(file("metadata.json.md")).unwrap();
        assert_eq!(documents.recover().unwrap(), 1);
        assert_eq!(std::fs::read_to_string(file("context.md")).unwrap(), "edited by hand, word hippopotamus");
        assert_eq!(&std::fs::read(file("response.md")).unwrap(), torn);
        assert_eq!(std::fs::read(file("query_analysis.json")).unwrap(), draft.files["query_analysis.json"]);
        assert!(file("metadata.json.md").exists());
        assert_eq!(
            user.catalog().search("hippopotamus", &[], 5).unwrap().len(),
            1,
            "the index says what stands there"
        );
    };
}

#[test]
fn a_move_to_the_archive_that_dies_anywhere_is_finished() {
    let later = START + 200 * 86_400_000;
    let now = larder_vault::DocumentTime::from_millis(i64::try_from(later).unwrap()).unwrap();
    let prepare = |home: &Home| {
        let user = home.open().user("u").unwrap();
        for _ in 0..6 {
            user.drafts().commit(&turn(&user)).unwrap();
        }
        home.set(later);
        let newest = turn(&user);
        user.drafts().commit(&newest).unwrap();
        home.open().recover().unwrap();
    };
    let whole = Home::new();
    prepare(&whole);
    let documents = whole.open();
    let report = documents.archive("u", now).unwrap();
    assert_eq!(report.turns, [1, 2, 3, 5, 6], "what turn 4 found out stays true");
    let expected = state(&documents.user("u").unwrap());
    let prepared = Home::new();
    prepare(&prepared);
    // Every change of a file is a point to die at, until there are no more.
    for changes in 0.. {
        // What recover finishes is the whole of it, and an archiving after that finds nothing to do.
        let home = prepared.copied();
        let (dying, tree) = home.dying(changes);
        let _ = dying.archive("u", now);
        let documents = home.open();
        documents.recover().unwrap();
        documents.archive("u", now).unwrap();
        assert!(state(&documents.user("u").unwrap()) == expected, "died after {changes} changes");
        if !tree.is_dead() {
            assert!(changes > 10 * i64::try_from(report.turns.len()).unwrap(), "{changes}");
            break;
        }
    }
}

#[test]
fn a_deletion_that_dies_is_finished() {
    for changes in 0..3 {
        let home = Home::new();
        {
            let documents = home.open();
            for name in ["a", "b"] {
                let user = documents.user(name).unwrap();
                user.drafts().commit(&turn(&user)).unwrap();
                user.drafts().begin(Mode::Chat, None, "later").unwrap();
            }
            let _ = home.dying(changes).0.forget("a");
            let documents = home.open();
            documents.recover().unwrap();
            documents.forget("a").unwrap();
            let user = documents.user("a").unwrap();
            assert_eq!(user.files().list("users/a").unwrap(), []);
            assert_eq!(user.catalog().recent_turns(9, None, None).unwrap(), []);
            assert_eq!(user.drafts().list().unwrap(), []);
            assert_eq!(user.drafts().begin(Mode::Chat, None, "new").unwrap().number, 1);
            assert_eq!(documents.user("b").unwrap().catalog().recent_turns(9, None, None).unwrap().len(), 1);
            assert_eq!(documents.user("b").unwrap().drafts().list().unwrap().len(), 1);
        };
    }
}

#[test]
fn the_journal_is_cleared_in_batches() {
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("u").unwrap();
        for _ in 0..70 {
            user.drafts().commit(&turn(&user)).unwrap();
        }
        let left = documents.store().index().read(|tx| journal::committed(tx, None)).unwrap();
        assert_eq!(left.len(), 6);
        assert_eq!(documents.recover().unwrap(), 6);
    };
}

#[test]
fn two_that_begin_at_once_never_share_a_number() {
    let home = Home::new();
    let documents = home.open();
    let numbers: Vec<u32> = std::thread::scope(|scope| {
        let begin = |documents: Documents| {
            let user = documents.user("u").unwrap();
            (0..25).map(|_| user.drafts().begin(Mode::Chat, None, "q").unwrap().number).collect::<Vec<_>>()
        };
        let other = home.open();
        let threads =
            [documents.clone(), documents, other.clone(), other].map(|own| scope.spawn(move || begin(own)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let different: BTreeSet<u32> = numbers.iter().copied().collect();
    assert_eq!((different.len(), different.last()), (100, Some(&100)));
}

#[test]
fn any_number_may_open_a_new_index_at_once() {
    for _ in 0..20 {
        let home = Home::new();
        let all: Vec<Documents> = (0..4).map(|_| home.open()).collect();
        std::thread::scope(|scope| {
            let threads: Vec<_> = all.iter().map(|own| scope.spawn(|| own.user("u").map(drop))).collect();
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
    }
}

#[test]
fn numbers_begin_above_what_the_vault_holds() {
    let home = Home::new();
    std::fs::create_dir_all(home.vault().join("users/u/turns/turn_000041")).unwrap();
    std::fs::create_dir_all(home.vault().join("archive/2026-01/u/turn_000057")).unwrap();
    let user = home.open().user("u").unwrap();
    assert_eq!(user.drafts().begin(Mode::Chat, None, "q").unwrap().number, 58);
    std::fs::create_dir_all(home.vault().join("users/u/turns/turn_000059")).unwrap();
    assert_eq!(user.drafts().begin(Mode::Chat, None, "q").unwrap().number, 60);
    home.open().recover().unwrap();
    assert_eq!(user.drafts().begin(Mode::Chat, None, "q").unwrap().number, 61);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_user_has_a_place_of_his_own(a in "\\PC{1,12}|\\.\\.|[./\\\\~]{1,6}", b in "\\PC{1,12}|/etc/passwd") {
        prop_assume!(a != b);
        let home = Home::new();
        let documents = home.open();
        let (one, other) = (documents.user(&a).unwrap(), documents.user(&b).unwrap());
        let mut draft = one.drafts().begin(Mode::Chat, None, "q").unwrap();
        fill(&mut draft, &a);
        {
            one.drafts().commit(&draft).unwrap();
            let refused = other.files().read(&draft.place.context());
            assert!(matches!(refused, Err(StoreError::Foreign { .. })));
            assert!(other.files().write(&draft.place.context(), b"x", None).is_err());
            assert!(other.files().list(draft.place.folder()).is_err());
            assert!(other.drafts().commit(&draft).is_err());
            assert_eq!(other.catalog().recent_turns(5, None, None).unwrap(), []);
            assert!(other.catalog().search("laptop", &[], 5).unwrap().is_empty());
            assert!(one.files().read(&draft.place.context()).unwrap().is_some());
        };
        let top: Vec<_> = std::fs::read_dir(home.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        prop_assert_eq!(top.len(), 2, "nothing stands beside the home and the vault");
    }
}
