//! Every original comes back by its pointer, however the index was lost.

use super::*;
use crate::{NewPointer, Retention, StoredPointer, TranscriptMessage};

fn open(home: &Path) -> Result<Store, StoreError> {
    Store::open(home, StoreOptions::default())
}

/// What happens to an index.
type Damage = fn(&Path);

/// Bytes that do not compress.
fn noise(seed: u32, bytes: usize) -> Vec<u8> {
    let mut noise = Vec::new();
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill({
        noise.resize(bytes, 0);
        &mut noise
    });
    noise
}

/// A home with originals of all sizes, of users whose folders say who they are and of one whose folder does not.
fn lived_in(home: &Path) -> Vec<(String, StoredPointer, Vec<u8>)> {
    let store = open(home).unwrap();
    let mut all = Vec::new();
    for (at, name) in ["local", "ada", "Eve ユ"].into_iter().enumerate() {
        let user = store.user(name).unwrap();
        let sizes = [0, 40, 5_000, 40_000, 1_500_000];
        let contents: Vec<_> =
            sizes.iter().map(|bytes| noise((at * 10 + bytes % 7) as u32, *bytes)).collect();
        let display = format!("of {name}\n");
        let items: Vec<_> = contents
            .iter()
            .map(|content| NewPointer {
                content: content[..].into(),
                kind: "tool_result",
                display_text: &display,
            })
            .collect();
        let stored = user.pointers().insert_all(&items).unwrap();
        all.extend(
            stored.into_iter().zip(contents).map(|(stored, content)| (name.to_owned(), stored, content)),
        );
        let raw = noise(at as u32 + 100, 50_000);
        let message = TranscriptMessage {
            identity: ContentHash::new(&raw),
            role: "user",
            raw: &raw,
            sent: None,
            pointers: &[],
        };
        user.transcripts().append("s", &[message], Some(b"yes")).unwrap();
    }
    all
}

fn expect_all(home: &Path, all: &[(String, StoredPointer, Vec<u8>)]) {
    let store = open(home).unwrap();
    for (user, stored, content) in all {
        let user = store.user(user).unwrap();
        assert_eq!(&user.pointers().resolve(&stored.pointer_id).unwrap(), content);
        assert_eq!(&user.pointers().get(&stored.pointer_id).unwrap(), stored);
    }
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(report.pointers, all.len() as u64);
}

fn repair(home: &Path) -> RepairReport {
    Store::repair(home, StoreOptions::default()).unwrap()
}

#[test]
fn every_original_comes_back_after_the_index_is_deleted_truncated_or_noise() {
    let damages: [(&str, Damage); 6] = [
        ("deleted", |index| std::fs::remove_file(index).unwrap()),
        ("deleted but for its log", |index| {
            std::fs::remove_file(index).unwrap();
            std::fs::write(index.with_file_name("index.sqlite-wal"), noise(3, 5_000)).unwrap();
        }),
        ("emptied", |index| std::fs::write(index, b"").unwrap()),
        ("truncated", |index| {
            let bytes = std::fs::read(index).unwrap();
            std::fs::write(index, &bytes[..bytes.len() / 3]).unwrap();
        }),
        ("noise", |index| std::fs::write(index, noise(1, 100_000)).unwrap()),
        ("noise within", |index| {
            let mut bytes = std::fs::read(index).unwrap();
            let from = bytes.len() / 4;
            let filling = noise(2, bytes.len() - from);
            bytes[from..].copy_from_slice(&filling);
            std::fs::write(index, bytes).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let all = lived_in(&home);
        assert!(repair(&home).intact);
        expect_all(&home, &all);
        damage(&home.join("index.sqlite"));
        let found = open(&home).and_then(|store| {
            let (user, stored, _) = &all[0];
            store.user(user)?.pointers().resolve(&stored.pointer_id)
        });
        let error = found.unwrap_err().to_string();
        assert!(error.contains(&format!("run `larder repair --home {}`", home.display())), "{name}: {error}");
        let report = repair(&home);
        assert!(!report.intact && report.problems.is_empty(), "{name}: {report:?}");
        assert_eq!((report.pointers, report.users), (all.len() as u64, 3), "{name}");
        assert!(report.lost.iter().any(|lost| lost.contains("transcripts")));
        expect_all(&home, &all);
        let store = open(&home).unwrap();
        assert_eq!(
            store.index().meta("keys_created", "no").unwrap(),
            "yes",
            "the others need keys as before"
        );
        let damaged = home.join("index.sqlite.damaged-1");
        let is_kept = !name.starts_with("deleted");
        assert_eq!(
            (damaged.exists(), report.damaged_index.as_ref()),
            (is_kept, is_kept.then_some(&damaged)),
            "{name}"
        );
        store.delete_user("ada").unwrap();
        assert!(!damaged.exists());
    }
}

/// Changes a byte of the record of one of ada's contents.
fn damage_record(home: &Path, content: ContentHash) {
    let store = open(home).unwrap();
    let ada = store.user("ada").unwrap();
    let place = ada.contents().record(content).unwrap().unwrap().place;
    let path = store.segments().path(ada.folder(), place.segment);
    drop((store, ada));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(place.at + place.length - 100) as usize] ^= 1;
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn damaged_records_are_listed_and_everything_else_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = lived_in(dir.path());
    let lost = all.iter().position(|(user, stored, _)| user == "ada" && stored.bytes == 40_000).unwrap();
    damage_record(dir.path(), all[lost].1.content);
    std::fs::remove_file(dir.path().join("index.sqlite")).unwrap();
    let report = repair(dir.path());
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert!(report.problems[0].contains("damaged blob"), "{:?}", report.problems);
    all.remove(lost);
    expect_all(dir.path(), &all);
}

/// Text of twice as many characters, which nothing but its own copy makes shorter than half.
fn hex(seed: u32, bytes: usize) -> String {
    noise(seed, bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An original, and a message of a transcript that is stored based on it.
fn based_message(user: &UserStore) -> (StoredPointer, ContentHash) {
    let original = hex(1, 40_000);
    let stored = user.pointers().insert(original.as_bytes(), "text", "").unwrap();
    let raw = format!("{}{original}", hex(2, 10_000));
    let content = ContentHash::new(raw.as_bytes());
    let message = TranscriptMessage {
        identity: content,
        role: "user",
        raw: raw.as_bytes(),
        sent: None,
        pointers: std::slice::from_ref(&stored.pointer_id),
    };
    user.transcripts().append("s", &[message], None).unwrap();
    assert_eq!(user.contents().record(content).unwrap().unwrap().base, Some(stored.content));
    (stored, content)
}

#[test]
fn damaged_contents_with_a_base_are_listed_and_so_is_what_a_damaged_one_was_the_base_of() {
    for base_is_damaged in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).unwrap();
        let ada = store.user("ada").unwrap();
        let (stored, content) = based_message(&ada);
        let damaged = if base_is_damaged { stored.content } else { content };
        drop((store, ada));
        damage_record(dir.path(), damaged);
        std::fs::remove_file(dir.path().join("index.sqlite")).unwrap();

        let problems = repair(dir.path()).problems;
        assert!(
            problems[0].contains("damaged blob") && problems[0].contains(&damaged.to_hex()),
            "{problems:?}"
        );
        let based = format!("content {content} of user \"ada\": based on content {}", stored.content);
        assert_eq!(
            problems[1..].iter().filter(|problem| problem.contains(&based)).count(),
            problems.len() - 1
        );
        assert_eq!(problems.len(), if base_is_damaged { 2 } else { 1 }, "{problems:?}");
        let store = open(dir.path()).unwrap();
        let found = store.user("ada").unwrap().pointers().resolve(&stored.pointer_id);
        assert_eq!(found.is_ok(), !base_is_damaged);
        assert!(store.verify().unwrap().is_clean(), "what cannot be read has no entry");
    }
}

#[test]
fn a_home_that_is_in_use_or_has_no_key_is_not_repaired() {
    let dir = tempfile::tempdir().unwrap();
    lived_in(dir.path());
    let store = open(dir.path()).unwrap();
    store.user("ada").unwrap().pointers().insert(b"more", "text", "").unwrap();
    std::fs::remove_file(dir.path().join("index.sqlite")).unwrap();
    let refused = Store::repair(dir.path(), StoreOptions::default());
    assert!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
    drop(store);
    let key = dir.path().join("key");
    let bytes = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let refused = Store::repair(dir.path(), StoreOptions::default());
    assert!(matches!(refused, Err(StoreError::KeyMissing { .. })), "{refused:?}");
    assert!(open(dir.path()).is_err() && !key.exists(), "no other key is made");
    std::fs::write(key, bytes).unwrap();
    repair(dir.path());
    open(dir.path()).unwrap();
}

#[test]
fn an_erased_original_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = lived_in(dir.path());
    let store = open(dir.path()).unwrap();
    let expired = all.remove(2);
    let user = store.user(&expired.0).unwrap();
    store
        .index()
        .write(|tx| {
            tx.execute("UPDATE pointers SET used = 1 WHERE name = ?1", [expired.1.pointer_id.id.name()])?;
            Ok(())
        })
        .unwrap();
    let keep = Some(std::time::Duration::from_hours(48));
    let retention = Retention { originals: keep, ..Retention::default() };
    assert_eq!(store.collect(&retention, &|_| true).unwrap().by_age.len(), 1);
    drop((store, user));
    std::fs::remove_file(dir.path().join("index.sqlite")).unwrap();
    repair(dir.path());
    expect_all(dir.path(), &all);
}

/// A clock that always shows the same day.
#[derive(Debug)]
struct Day(u64);

impl larder_disk::Clock for Day {
    fn now(&self) -> larder_disk::Timestamp {
        larder_disk::Timestamp::from_millis(self.0 * larder_disk::MILLIS_PER_DAY)
    }
}

#[test]
fn what_a_repair_brings_back_counts_as_used_then() {
    let dir = tempfile::tempdir().unwrap();
    let at = |day| StoreOptions { clock: std::sync::Arc::new(Day(day)), ..StoreOptions::default() };
    let store = Store::open(dir.path(), at(100)).unwrap();
    let stored = store.user("ada").unwrap().pointers().insert(b"original", "text", "").unwrap();
    drop(store);
    std::fs::remove_file(dir.path().join("index.sqlite")).unwrap();
    Store::repair(dir.path(), at(140)).unwrap();
    let keep = Some(std::time::Duration::from_hours(30 * 24));
    let retention = Retention { originals: keep, ..Retention::default() };
    for (day, is_there) in [(141, true), (171, false)] {
        let store = Store::open(dir.path(), at(day)).unwrap();
        store.collect(&retention, &|_| true).unwrap();
        let got = store.user("ada").unwrap().pointers().get(&stored.pointer_id);
        assert_eq!(got.ok(), is_there.then(|| stored.clone()), "day {day}");
    }
}

#[test]
fn what_a_repair_leaves_without_a_name_goes_like_transcripts_and_holds_no_original_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = |day| StoreOptions { clock: std::sync::Arc::new(Day(day)), ..StoreOptions::default() };
    let store = Store::open(dir.path(), at(100)).unwrap();
    let ada = store.user("ada").unwrap();
    let (stored, raw) = based_message(&ada);
    drop((store, ada));
    std::fs::remove_file(dir.path().join("index.sqlite")).unwrap();
    Store::repair(dir.path(), at(140)).unwrap();
    let keep = Some(std::time::Duration::from_hours(30 * 24));
    let retention = Retention { originals: keep, transcripts: keep, ..Retention::default() };
    for (day, is_there) in [(141, true), (169, true), (171, false)] {
        let store = Store::open(dir.path(), at(day)).unwrap();
        store.collect(&retention, &|_| true).unwrap();
        let ada = store.user("ada").unwrap();
        for content in [raw, stored.content] {
            assert_eq!(ada.contents().record(content).unwrap().is_some(), is_there, "day {day}");
        }
    }
}
