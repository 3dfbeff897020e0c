//! What documents promise wherever they are kept. Every case runs over a folder; `tests/s3/run.sh` runs them over a real
//! S3 server too, whose address it gives in `LARDER_TEST_S3`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;

use larder_store::{
    DocumentKind, DocumentPlace, Documents, Store, StoreError, StoreOptions, Timestamp, TurnDraft,
    UserDocuments,
};
use larder_text::hash::ContentHash;
use larder_vault::{DocumentTime, Mode, Score, TurnMetadata, TurnStatus, VaultPath, write_json};

/// A home, and the place of its documents.
struct Place {
    dir: tempfile::TempDir,
    place: DocumentPlace,
}

impl Place {
    fn home(&self) -> std::path::PathBuf {
        self.dir.path().join("home")
    }

    fn open(&self) -> Documents {
        self.open_at(&self.home())
    }

    fn open_at(&self, home: &Path) -> Documents {
        let store = Store::open(home, StoreOptions::default()).unwrap();
        let documents = Documents::open(&store, &self.place).unwrap();
        documents.recover().unwrap();
        documents
    }
}

/// Runs a case over every kind of place there is here.
fn everywhere(case: &str, run: impl Fn(Place)) {
    let dir = tempfile::tempdir().unwrap();
    let place = DocumentPlace::Folder(dir.path().join("vault"));
    run(Place { dir, place });
    if let Ok(bucket) = std::env::var("LARDER_TEST_S3") {
        let dir = tempfile::tempdir().unwrap();
        let run_id = ContentHash::new(dir.path().as_os_str().as_encoded_bytes()).to_hex();
        let place = DocumentPlace::Url(format!("{bucket}/{case}-{}", &run_id[..12]));
        run(Place { dir, place });
    }
}

fn fill(draft: &mut TurnDraft, user: &str, text: &str) {
    let metadata = TurnMetadata {
        turn_number: draft.number,
        user_id: user.to_owned(),
        session_id: draft.session.clone(),
        mode: draft.mode,
        status: TurnStatus::Complete,
        created_at: draft.created_at,
        finished_at: None,
        query: draft.query.clone(),
        summary: None,
        topic: Some("pet.hamster".to_owned()),
        intent: None,
        quality: Score::new(0.9),
        invented: Vec::new(),
        unverified: false,
        last_phase: Some(7),
        revisions: 0,
        retries: 0,
    };
    draft.files.insert("context.md".to_owned(), format!("# Turn\n\n{text}\n").into_bytes());
    draft.files.insert("webpage_cache/a_1/screenshot.png".to_owned(), vec![0x89, b'P', 0, 0xff]);
    draft.files.insert("metadata.json".to_owned(), write_json(&metadata).into_bytes());
}

fn commit(user: &UserDocuments, text: &str) -> TurnDraft {
    let mut draft = user.drafts().begin(Mode::Chat, Some("s"), "which one?").unwrap();
    fill(&mut draft, user.user(), text);
    user.drafts().commit(&draft).unwrap();
    draft
}

#[test]
fn a_turn_comes_back_file_by_file() {
    everywhere("files", |place| {
        let documents = place.open();
        let user = documents.user("u").unwrap();
        let draft = commit(&user, "a hamster");
        assert_eq!(draft.number, 1);
        for (name, bytes) in &draft.files {
            let path = VaultPath::new(&format!("{}/{name}", draft.place.folder())).unwrap();
            assert_eq!(user.files().read(&path).unwrap().as_ref(), Some(bytes), "{name}");
        }
        let names: Vec<String> =
            user.files().list(draft.place.folder()).unwrap().iter().map(ToString::to_string).collect();
        let folder = draft.place.folder();
        assert_eq!(
            names,
            [
                "context.md",
                "metadata.json",
                "metadata.json.md",
                "webpage_cache/a_1/screenshot.png",
                "webpage_cache/a_1/screenshot.png.md"
            ]
            .map(|name| format!("{folder}/{name}"))
        );
        let screenshot = draft.place.folder().to_owned() + "/webpage_cache/a_1/screenshot.png";
        let error = user.files().read_text(&VaultPath::new(&screenshot).unwrap()).unwrap_err();
        assert!(matches!(error, StoreError::NotText { at: 0, .. }), "{error}");
        user.drafts().commit(&draft).unwrap();
        assert_eq!(commit(&user, "another").number, 2);
    });
}

#[test]
fn what_was_committed_outlasts_home_and_index() {
    everywhere("recover", |place| {
        let user = place.open().user("u").unwrap();
        for number in 0..5 {
            commit(&user, &format!("word{number} hamster"));
        }
        drop(user);
        std::fs::remove_dir_all(place.home().join("indexes")).unwrap();
        let user = place.open().user("u").unwrap();
        assert_eq!(user.catalog().recent_turns(9, None, None).unwrap().len(), 5);
        let other_home = place.dir.path().join("other");
        let documents = place.open_at(&other_home);
        let user = documents.user("u").unwrap();
        assert_eq!(user.catalog().search("word3", &[DocumentKind::Context], 9).unwrap()[0].turn, Some(4));
        assert_eq!(user.drafts().begin(Mode::Code, None, "q").unwrap().number, 6);
        assert_eq!(documents.reindex(&|_| {}).unwrap().turns, 5);
    });
}

#[test]
fn users_are_walls() {
    everywhere("walls", |place| {
        let documents = place.open();
        let (a, b) = (documents.user("a").unwrap(), documents.user("../a").unwrap());
        let draft = commit(&a, "secret");
        for path in
            [draft.place.context(), a.place().facts(), VaultPath::new("observability/x.json").unwrap()]
        {
            assert!(matches!(b.files().read(&path), Err(StoreError::Foreign { .. })), "{path}");
            assert!(matches!(b.files().write(&path, b"x", None), Err(StoreError::Foreign { .. })), "{path}");
        }
        for folder in ["", "users", "users/a", "users/a/turns", "archive", ".."] {
            assert!(matches!(b.files().list(folder), Err(StoreError::Foreign { .. })), "{folder}");
        }
        let shared = VaultPath::new("site_knowledge/a.example.json").unwrap();
        assert_eq!(b.files().read(&shared).unwrap(), None);
        assert!(b.files().write(&shared, b"x", None).is_err());
        assert!(b.drafts().checkpoint(&draft).is_err() && b.drafts().commit(&draft).is_err());
        assert!(b.catalog().search("secret", &[], 5).unwrap().is_empty());
    });
}

#[test]
fn documents_outside_turns_are_written_over_only_by_those_who_read_them() {
    everywhere("writes", |place| {
        let user = place.open().user("u").unwrap();
        let facts = user.place().facts();
        user.files().write(&facts, b"- a fact", None).unwrap();
        assert!(matches!(user.files().write(&facts, b"x", None), Err(StoreError::Changed { .. })));
        user.files().write(&facts, b"- a zebra", Some(ContentHash::new(b"- a fact"))).unwrap();
        assert_eq!(user.files().read_text(&facts).unwrap().unwrap(), "- a zebra");
        assert_eq!(user.catalog().search("zebra", &[DocumentKind::Memory], 5).unwrap().len(), 1);
        assert!(user.catalog().search("fact", &[], 5).unwrap().is_empty());
    });
}

#[test]
fn a_turn_that_is_not_whole_is_refused() {
    everywhere("refused", |place| {
        let user = place.open().user("u").unwrap();
        let mut draft = user.drafts().begin(Mode::Chat, None, "q").unwrap();
        assert!(matches!(user.drafts().commit(&draft), Err(StoreError::BadTurn { number: 1, .. })));
        fill(&mut draft, "u", "x");
        for bad in ["../turn_000009/context.md", "/etc/passwd", "a//b", "..", ""] {
            let mut hostile = draft.clone();
            hostile.files.insert(bad.to_owned(), b"x".to_vec());
            assert!(matches!(user.drafts().commit(&hostile), Err(StoreError::Foreign { .. })), "{bad}");
        }
        draft.files.insert("metadata.json".to_owned(), b"{}".to_vec());
        assert!(matches!(user.drafts().commit(&draft), Err(StoreError::BadTurn { .. })));
        assert_eq!(user.files().list(draft.place.folder()).unwrap(), []);
        assert_eq!(user.catalog().turn(1).unwrap(), None);
    });
}

#[test]
fn old_turns_go_to_the_archive_and_users_can_be_forgotten() {
    everywhere("archive", |place| {
        let documents = place.open();
        let (user, other) = (documents.user("u").unwrap(), documents.user("v").unwrap());
        let first = commit(&user, "first");
        commit(&user, "see [first](../turn_000001/context.md)");
        commit(&other, "other");
        let now = first.created_at.plus_seconds(91 * 86_400);
        assert_eq!(documents.archive("u", DocumentTime::from_millis(0).unwrap()).unwrap().turns, [0; 0]);
        let past_calendar = DocumentTime::from(Timestamp::from_millis(u64::MAX));
        assert!(documents.archive("u", past_calendar).is_err(), "by a wrong clock, every turn is old");
        assert_eq!(documents.archive("u", now).unwrap().turns, [1, 2]);
        let row = user.catalog().turn(2).unwrap().unwrap();
        assert!(row.archived && row.context.as_str().starts_with("archive/"));
        let text = user.files().read_text(&row.context).unwrap().unwrap();
        // The shortest way while turn 2 stood in its old place. It leads there from the new one too, and a link that
        // leads where it should is left as it is: people's own spelling is never tidied.
        let link = format!("[first](../../../../{})", user.catalog().turn(1).unwrap().unwrap().context);
        assert!(text.contains(&link), "{link} in {text}");
        assert_eq!(
            user.catalog().links_from(&row.context).unwrap(),
            [user.catalog().turn(1).unwrap().unwrap().context]
        );
        assert_eq!(user.files().list("users/u/turns/turn_000001").unwrap(), []);
        documents.forget("u").unwrap();
        let user = documents.user("u").unwrap();
        assert_eq!(user.catalog().recent_turns(5, None, None).unwrap(), []);
        assert_eq!(user.files().read(&row.context).unwrap(), None);
        assert_eq!(other.catalog().recent_turns(5, None, None).unwrap().len(), 1);
    });
}
