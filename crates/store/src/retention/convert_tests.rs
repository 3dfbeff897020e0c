//! A home of the format before segments is converted next to traffic and under kills, and is clean at every moment.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use larder_text::pointer::{Pointer, PointerId};

use crate::pointers::instructions;
use crate::{Retention, Store, StoreOptions};
use larder_disk::user;

use super::*;

/// Processes killed when nobody asks for more.
const ROUNDS: u64 = 8;
/// After so many the next ones convert another home.
const ROUNDS_PER_HOME: u64 = 8;
const USERS: [&str; 2] = ["ada", "Eve ユ"];

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut noise);
    noise
}

/// Stores a content as version 11 did: a row of up to 32 KiB, otherwise a file.
fn put(tx: &Transaction<'_>, home: &Path, user: &str, content: &[u8]) -> ContentHash {
    let hash = ContentHash::new(content);
    let frame = zstd::bulk::compress(content, 3).unwrap();
    if content.len() <= 32 << 10 {
        tx.execute(
            "INSERT OR IGNORE INTO contents (user, hash, frame) VALUES (?1, ?2, ?3)",
            (user, hash.as_bytes(), frame),
        )
        .unwrap();
    } else {
        let hex = hash.to_hex();
        let folder = home.join("blobs").join(user::folder(user)).join(&hex[..2]);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(&hex[2..]), frame).unwrap();
    }
    hash
}

/// A home as version 11 wrote it; returns its originals.
fn old_home(home: &Path, items: u64) -> Vec<(String, Pointer, Vec<u8>)> {
    // The key, and folders.
    drop(Store::open(home, StoreOptions::default()).unwrap());
    for file in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let _ = std::fs::remove_file(home.join(file));
    }
    let mut all = Vec::new();
    let mut old = crate::index::of_version(&home.join("index.sqlite"), 11);
    let key = std::fs::read(home.join("key")).unwrap();
    let tx = old.transaction().unwrap();
    for seed in 0..items {
        let name = USERS[(seed % 2) as usize];
        let content = noise(seed, [0, 300, 20_000, 40_000, 100_000, 1_500_000][(seed % 6) as usize]);
        let hash = put(&tx, home, name, &content);
        let id =
            larder_text::pointer::PointerKey::new(key.clone().try_into().unwrap()).for_user(name).mint(hash);
        tx.execute(
            "INSERT OR IGNORE INTO pointers
             (user, name, content, bytes, kind, display_text, rehydrate_instructions, created, used)
             VALUES (?1, ?2, ?3, ?4, 'tool_result', 'a log', ?5, 1795219200000, unixepoch() * 1000)",
            (name, PointerId::name_of(hash), hash.as_bytes(), content.len() as i64, instructions(&id)),
        )
        .unwrap();
        let raw = [b"raw ".as_slice(), &content].concat();
        let raw_hash = put(&tx, home, name, &raw);
        let line = serde_json::json!({
            "line": seed + 1, "time": "2026-11-21T00:00:00.000Z", "branch": 1, "message": seed + 1, "kind": "message",
            "role": "user", "raw": {"hash": raw_hash, "bytes": raw.len()}
        });
        tx.execute(
            "INSERT INTO transcript_lines (user, session, line, branch, message, document)
             VALUES (?1, 's', ?2, 1, ?2, ?3)",
            (name, seed as i64 + 1, line.to_string()),
        )
        .unwrap();
        all.push((name.to_owned(), Pointer::whole(id), content));
    }
    tx.commit().unwrap();
    all
}

fn open(home: &Path) -> Store {
    Store::open(home, StoreOptions::default()).unwrap()
}

fn expect_all(store: &Store, all: &[(String, Pointer, Vec<u8>)]) {
    for (user, pointer, content) in all {
        assert_eq!(&store.user(user).unwrap().pointers().resolve(pointer).unwrap(), content);
    }
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

/// Files of the format before, apart from very large ones.
fn old_files(store: &Store) -> usize {
    USERS.iter().map(|user| store.blobs().list(&user::folder(user)).unwrap().len()).sum()
}

fn rows(store: &Store) -> i64 {
    let count =
        "SELECT count(*) FROM pointers AS p JOIN contents AS c ON c.user = p.user AND c.hash = p.content";
    store.index().read(|tx| Ok(tx.query_row(count, [], |row| row.get(0))?)).unwrap()
}

#[test]
fn an_older_home_is_converted_in_steps_and_is_clean_at_each() {
    let dir = tempfile::tempdir().unwrap();
    let all = old_home(dir.path(), 120);
    let store = open(dir.path());
    expect_all(&store, &all);
    assert!(old_files(&store) > 100 && rows(&store) > 40);
    let mut stops = 0;
    for allowed in 1.. {
        let left = std::cell::Cell::new(allowed);
        let go_on = |_: Duration| {
            left.set(left.get() - 1);
            left.get() > 0
        };
        store.collect(&Retention::default(), &go_on).unwrap();
        expect_all(&store, &all);
        if left.get() > 0 {
            break;
        }
        stops += 1;
    }
    assert!(stops > 2, "{stops}");
    // Both users have 10 originals of 1.5 MB, and as many messages with one in it.
    assert_eq!((old_files(&store), rows(&store)), (40, 0));
    assert_eq!(store.user("ada").unwrap().segments().list("u-ada").unwrap(), [1]);
    drop(store);
    for file in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let _ = std::fs::remove_file(dir.path().join(file));
    }
    Store::repair(dir.path(), StoreOptions::default()).unwrap();
    expect_all(&open(dir.path()), &all);
}

/// Not a test of its own: what the killed processes run.
#[test]
#[ignore = "started and killed by the test below"]
fn converter() {
    let Ok(home) = std::env::var("LARDER_CRASH_HOME") else { return };
    let store = open(Path::new(&home));
    for seed in u64::from(std::process::id()) << 20.. {
        let user = store.user("ada").unwrap();
        user.pointers().insert(&noise(seed, 30_000), "text", "next to the conversion").unwrap();
        // One step at a time, so that traffic and conversion alternate.
        store.collect(&Retention::default(), &|_| false).unwrap();
    }
}

#[test]
fn a_conversion_that_is_killed_goes_on_and_loses_nothing() {
    let rounds = std::env::var("LARDER_CRASH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let (mut dir, mut all) = (tempfile::tempdir().unwrap(), Vec::new());
    for round in 0..rounds {
        if round % ROUNDS_PER_HOME == 0 {
            dir = tempfile::tempdir().unwrap();
            all = old_home(dir.path(), 180);
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "retention::convert::tests::converter", "--ignored", "--test-threads=1"])
            .env("LARDER_CRASH_HOME", dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(20 + round * 37 % 90) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        expect_all(&open(dir.path()), &all[..60]);
        if (round + 1) % ROUNDS_PER_HOME == 0 || round + 1 == rounds {
            let store = open(dir.path());
            store.collect(&Retention::default(), &|_| true).unwrap();
            expect_all(&store, &all);
            assert_eq!(rows(&store), 0);
        }
    }
}

#[test]
fn a_backup_during_the_conversion_has_every_content() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let all = old_home(&home, 24);
    let store = open(&home);
    // Once the index is copied, and before the files are.
    let convert = |_| {
        store.collect(&Retention::default(), &|_| true).unwrap();
    };
    let report = store.backup(&dir.path().join("backup"), &convert).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    let restored = dir.path().join("restored");
    Store::restore(&dir.path().join("backup"), &restored, StoreOptions::default()).unwrap();
    let store = open(&restored);
    for (user, pointer, content) in &all {
        assert_eq!(&store.user(user).unwrap().pointers().resolve(pointer).unwrap(), content);
    }
}
