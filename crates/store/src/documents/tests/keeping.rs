//! What documents are worth with time and use.

use larder_text::hash::ContentHash;
use larder_vault::lifecycle::{TrackRecord, is_candidate};
use larder_vault::{Document, DocumentTime, Research, Scope, VaultPath};

use super::generate::turn;
use super::*;

#[test]
fn research_on_one_topic_stands_side_by_side_and_is_used() {
    let home = Home::new();
    {
        let user = home.open().user("u").unwrap();
        for number in 0..24_u64 {
            home.set(START + number * 1_000);
            user.drafts().commit(&turn(&user)).unwrap();
        }
        // Turns 4, 24 have topic 4 of 5 (travel), 8 and so on others: every fourth turn did research.
        let laptops = user.catalog().research(Some("commerce"), 99).unwrap();
        let topics: Vec<(u32, &str)> = laptops.iter().map(|row| (row.turn, row.topic.as_str())).collect();
        assert_eq!(topics, [(20, "commerce.laptop"), (16, "commerce.laptop.gaming")]);
        let travel = user.catalog().research(Some("travel"), 99).unwrap();
        assert_eq!(travel.iter().map(|row| row.turn).collect::<Vec<_>>(), [24, 4]);
        assert_eq!(
            (&travel[0].superseded_by, &travel[1].superseded_by),
            (&None, &None),
            "neither refreshes the other"
        );
        assert!(
            user.catalog().research(Some("trav"), 9).unwrap().is_empty(),
            "a topic is not the beginning of a word"
        );
        let view = user.files().read_text(&user.place().research("travel")).unwrap().unwrap();
        assert!(view.contains("research_24_abc") && view.contains("research_4_abc"));
        let document = travel[0].document.clone();
        for _ in 0..9 {
            user.uses().record(&document, true).unwrap();
        }
        home.set(START + 25 * 3_600_000);
        assert_eq!(user.catalog().research(Some("travel"), 1).unwrap()[0].scope, Scope::User);
        user.uses().record(&document, true).unwrap();
        let row = &user.catalog().research(Some("travel"), 1).unwrap()[0];
        assert_eq!((row.scope, row.use_count), (Scope::User, 10), "what grows old is not promoted (C84)");
        assert!(row.expires_at.is_some());
    };
}

/// A turn whose research stays true.
fn evergreen(user: &UserDocuments) -> VaultPath {
    let mut draft = loop {
        let draft = turn(user);
        if draft.files.contains_key("research.md") {
            break draft;
        }
        user.drafts().discard(draft.number).unwrap();
    };
    let at = draft.place.research();
    let text = String::from_utf8(draft.files["research.md"].clone()).unwrap();
    let mut document = Document::<Research>::read(&text, &at).value.unwrap();
    document.value.expires = None;
    draft.files.insert("research.md".to_owned(), document.write(&at).into_bytes());
    user.drafts().commit(&draft).unwrap();
    at
}

#[test]
fn no_record_makes_research_global() {
    const HOUR: u64 = 3_600_000;
    // Uses that were right and that were not, in which order, and hours until the last one; whether people may be
    // offered it for all users.
    for (wrong, right, hours, candidate) in
        [(2, 8, 24, true), (0, 9, 24, false), (3, 8, 24, false), (0, 30, 23, false)]
    {
        let home = Home::new();
        {
            let user = home.open().user("u").unwrap();
            let document = evergreen(&user);
            for ok in std::iter::repeat_n(false, wrong).chain(std::iter::repeat_n(true, right - 1)) {
                user.uses().record(&document, ok).unwrap();
            }
            let scope = || user.catalog().research(None, 9).unwrap()[0].scope;
            assert_eq!(scope(), Scope::User, "before the last use");
            home.set(START + hours * HOUR + HOUR / 2);
            user.uses().record(&document, true).unwrap();
            // Moving it and building the index anew change nothing of what was earned.
            home.open().reindex(&|_| {}).unwrap();
            assert_eq!(scope(), Scope::User);
            let (uses, trust) = user.uses().of(&document).unwrap();
            let age = hours * 3_600 + 1_800;
            let standing = TrackRecord { trust, uses, age, evergreen: true };
            assert_eq!(
                is_candidate(scope(), &standing),
                candidate,
                "{wrong} wrong, {right} right, {hours} hours"
            );
        };
    }
}

#[test]
fn what_is_new_counts_for_its_user_after_three_uses_and_an_hour() {
    let home = Home::new();
    {
        let user = home.open().user("u").unwrap();
        let document = evergreen(&user);
        let text = user.files().read_text(&document).unwrap().unwrap();
        let mut read = Document::<Research>::read(&text, &document).value.unwrap();
        read.meta.as_mut().unwrap().scope = Scope::New;
        let seen = Some(ContentHash::new(text.as_bytes()));
        user.files().write(&document, read.write(&document).as_bytes(), seen).unwrap();
        let scope = || user.catalog().research(None, 9).unwrap()[0].scope;
        for (minutes, expected) in
            [(10, Scope::New), (20, Scope::New), (59, Scope::New), (60, Scope::User), (61, Scope::User)]
        {
            home.set(START + minutes * 60_000);
            user.uses().record(&document, true).unwrap();
            assert_eq!(scope(), expected, "after {minutes} minutes");
        }
    };
}

/// The month of the archive in which a turn is.
fn report_month(user: &UserDocuments, number: u32) -> String {
    let context = user.catalog().turn(number).unwrap().unwrap().context;
    context.as_str().split('/').nth(1).unwrap().to_owned()
}

#[test]
fn records_follow_a_turn_to_the_archive() {
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("u").unwrap();
        let mut draft = turn(&user);
        let at = draft.place.clone();
        let record = format!("{{\"claims\": [{{\"document\": \"{}/toolresults.md\"}}]}}", at.folder());
        for name in ["research.json", "webpage_cache/a_1/extracted_data.json"] {
            draft.files.insert(name.to_owned(), record.clone().into_bytes());
        }
        user.drafts().commit(&draft).unwrap();
        let facts = user.place().memory("facts");
        let said = format!(
            "{{\"facts\": [{{\"source\": \"{}\", \"fact\": \"see \\\"{}/x\\\"\"}}]}}",
            at.context(),
            at.folder()
        );
        user.files().write(&facts, said.as_bytes(), None).unwrap();
        let now = larder_vault::DocumentTime::from_millis(i64::try_from(START).unwrap() + 200 * 86_400_000);
        let report = documents.archive("u", now.unwrap()).unwrap();
        assert_eq!(report.turns, [at.number()]);
        let month = report_month(&user, at.number());
        let index = user.files().read_text(&user.place().archive_index(&month)).unwrap().unwrap();
        assert!(index.contains(&format!("/{}/context|", larder_vault::turn_name(at.number()))), "{index}");
        let folder = user.catalog().turn(at.number()).unwrap().unwrap().context.folder().to_owned();
        for (name, expected) in [
            ("research.json", record.replace(at.folder(), &folder)),
            // The words of a page are nobody's paths.
            ("webpage_cache/a_1/extracted_data.json", record.clone()),
        ] {
            let path = VaultPath::new(&format!("{folder}/{name}")).unwrap();
            assert_eq!(user.files().read_text(&path).unwrap().unwrap(), expected, "{name}");
        }
        let said = user.files().read_text(&facts).unwrap().unwrap();
        assert!(said.contains(&format!("\"{folder}/context.md\"")), "{said}");
        assert!(
            said.contains(&format!("see \\\"{}/x", at.folder())),
            "words that quote a path are words: {said}"
        );
    };
}

#[test]
fn two_processes_that_write_one_document_lose_nothing() {
    const EACH: usize = 40;
    let home = Home::new();
    let path = home.open().user("u").unwrap().place().facts();
    std::thread::scope(|scope| {
        // Documents that are opened apart share nothing but the disk, as two processes do.
        for writer in ["a", "b", "c"] {
            let (user, path) = (home.open().user("u").unwrap(), &path);
            scope.spawn(move || {
                for number in 0..EACH {
                    let line = format!("{writer}{number}\n");
                    loop {
                        let before = user.files().read(path).unwrap();
                        let after = [before.clone().unwrap_or_default(), line.clone().into_bytes()].concat();
                        match user.files().write(path, &after, before.as_deref().map(ContentHash::new)) {
                            Err(StoreError::Changed { .. }) => {}
                            written => break written.unwrap(),
                        }
                    }
                }
            });
        }
    });
    let text = home.open().user("u").unwrap().files().read_text(&path).unwrap().unwrap();
    let lines: BTreeSet<&str> = text.lines().collect();
    assert_eq!((lines.len(), text.lines().count()), (3 * EACH, 3 * EACH));
}

#[test]
fn a_turn_under_way_is_not_forgotten_and_one_that_was_discarded_does_not_come_back() {
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("u").unwrap();
        let draft = turn(&user);
        let hold = user.leases().acquire(draft.number).unwrap();
        let refused = home.open().forget("u");
        assert!(matches!(refused, Err(StoreError::BadTurn { number: 1, .. })), "{refused:?}");
        user.drafts().checkpoint(&draft).unwrap();
        drop(hold);
        documents.forget("u").unwrap();
        assert!(matches!(user.drafts().checkpoint(&draft), Err(StoreError::BadTurn { .. })));
        assert!(user.drafts().save_state(&draft, &serde_json::json!({})).is_err());
        assert_eq!(user.drafts().list().unwrap(), []);
        let other = turn(&user);
        user.drafts().discard(other.number).unwrap();
        assert!(user.drafts().checkpoint(&other).is_err());
        assert_eq!(user.drafts().list().unwrap(), []);
    };
}

#[test]
fn sites_are_judged_by_what_they_said() {
    let home = Home::new();
    let documents = home.open();
    let (user, other) = (documents.user("u").unwrap(), documents.user("v").unwrap());
    assert_eq!(user.uses().source("Shop.example").unwrap(), None);
    for ok in [true, true, false] {
        user.uses().record_source("Shop.example", ok).unwrap();
    }
    let source = user.uses().source("shop.EXAMPLE").unwrap().unwrap();
    assert_eq!((source.ok, source.failed, source.reliability.get()), (2, 1, 0.6));
    assert_eq!(other.uses().source("shop.example").unwrap(), None);
    assert!(user.uses().record_source("a\nb", true).is_err());
}

#[test]
fn a_document_that_changed_is_not_written_over() {
    let home = Home::new();
    {
        let user = home.open().user("u").unwrap();
        let facts = user.place().facts();
        user.files().write(&facts, b"one", None).unwrap();
        let refused = user.files().write(&facts, b"two", None);
        assert!(matches!(refused, Err(StoreError::Changed { .. })));
        user.files().write(&facts, b"two", Some(ContentHash::new(b"one"))).unwrap();
        std::fs::write(home.vault().join(facts.as_str()), "by hand").unwrap();
        assert!(user.files().write(&facts, b"three", Some(ContentHash::new(b"two"))).is_err());
        assert_eq!(user.files().read_text(&facts).unwrap().unwrap(), "by hand");
        let index = user.files().read_text(&user.place().memory_index()).unwrap().unwrap();
        assert!(index.contains("[[users/u/facts|facts.md]]"), "{index}");
    };
}

#[test]
fn captures_and_words_are_found() {
    let home = Home::new();
    {
        let user = home.open().user("u").unwrap();
        for number in 0..60_u64 {
            home.set(START + number * 1_000);
            user.drafts().commit(&turn(&user)).unwrap();
        }
        let pages = user.catalog().captures(Some(9), None).unwrap();
        assert_eq!(pages.len(), 1);
        let same = user.catalog().captures(None, Some(&pages[0].url)).unwrap();
        assert!(same.len() > 1 && same.windows(2).all(|two| two[0].captured_at >= two[1].captured_at));
        assert_eq!(user.catalog().captures(None, None).unwrap().len(), 20);
        let hits = user.catalog().search("the UNIQUE37, laptop", &[], 5).unwrap();
        assert_eq!((hits[0].turn, hits[0].kind), (Some(37), DocumentKind::Other));
        assert!(hits[0].snippet.contains("unique37"), "{}", hits[0].snippet);
        let pages = user.catalog().search("cafe hamster", &[DocumentKind::Page], 50).unwrap();
        assert!(!pages.is_empty() && pages.iter().all(|hit| hit.kind == DocumentKind::Page));
        for odd in ["", "\"", "a* NEAR( -b AND OR", "NOT", "{context}: x", "…"] {
            user.catalog().search(odd, &[], 3).unwrap();
        }
        let recent = user.catalog().recent_turns(3, Some(50), None).unwrap();
        assert_eq!(recent.iter().map(|turn| turn.number).collect::<Vec<_>>(), [49, 48, 47]);
    };
}

#[test]
fn one_process_works_on_a_turn() {
    let home = Home::new();
    let documents = home.open();
    let (ada, eve) = (documents.user("ada").unwrap(), documents.user("eve").unwrap());
    assert!(!ada.leases().is_held(1));
    let hold = ada.leases().acquire(1).unwrap().expect("nobody has it");
    assert!(ada.leases().is_held(1) && ada.leases().acquire(1).unwrap().is_none());
    assert!(
        home.open().user("ada").unwrap().leases().acquire(1).unwrap().is_none(),
        "another process sees it"
    );
    assert!(
        eve.leases().acquire(1).unwrap().is_some() && ada.leases().acquire(2).unwrap().is_some(),
        "others are free"
    );
    drop(hold);
    assert!(!ada.leases().is_held(1) && ada.leases().acquire(1).unwrap().is_some());
    assert_eq!(std::fs::read_dir(home.dir.path().join("home/turns")).unwrap().count(), 0, "nothing stays");
}

#[test]
fn expired_research_moves_to_the_archive_however_young_its_turn_is() {
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("u").unwrap();
        let document = evergreen(&user);
        let text = user.files().read_text(&document).unwrap().unwrap();
        let mut read = Document::<Research>::read(&text, &document).value.unwrap();
        let (created, number) = (read.value.created, read.value.turn);
        read.value.expires = Some(created.plus_seconds(6 * 3_600));
        let seen = Some(ContentHash::new(text.as_bytes()));
        user.files().write(&document, read.write(&document).as_bytes(), seen).unwrap();
        user.uses().record(&document, true).unwrap();
        let at = |days: u64| created.plus_seconds(days * 86_400);
        let moved = |now: DocumentTime| documents.archive("u", now).unwrap();
        assert_eq!(moved(at(29)).research, [], "stale research is kept for its evergreen part");
        let report = moved(at(31));
        assert_eq!((report.turns.len(), report.research.len()), (0, 1), "{report:?}");
        let there = &report.research[0];
        assert!(there.as_str().starts_with("archive/") && there.name() == document.name(), "{there}");
        assert_eq!(user.files().read(&document).unwrap(), None);
        let rows = user.catalog().research(None, 9).unwrap();
        assert_eq!(
            rows.iter().map(|row| &row.document).collect::<Vec<_>>(),
            [there],
            "it is found where it is"
        );
        assert_eq!(rows[0].use_count, 1, "with its record");
        let folder = user.place().turn(number);
        let left = user.files().list(folder.folder()).unwrap();
        assert!(
            left.contains(&folder.context()) && !left.iter().any(|path| path.name().starts_with("research"))
        );
        for path in left.iter().filter(|path| path.name().ends_with(".md")) {
            let links = user.catalog().links_from(path).unwrap();
            assert!(!links.contains(&document), "{path} links to what is gone");
        }
        documents.reindex(&|_| {}).unwrap();
        assert_eq!(user.catalog().research(None, 9).unwrap(), rows);
        assert_eq!(moved(at(31)).research, [], "nothing is moved twice");
    };
}
