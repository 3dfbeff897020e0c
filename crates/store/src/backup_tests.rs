//! A backup made next to traffic is whole, and a restored home is the home.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::{DocumentPlace, Documents, Retention, StoreOptions, TranscriptMessage};

fn open(home: &Path) -> Store {
    Store::open(home, StoreOptions::default()).unwrap()
}

/// Text that compresses little, different for every seed.
fn text(seed: u64, bytes: usize) -> Vec<u8> {
    let digests = (0_u64..).map(|at| ContentHash::new(format!("{seed}/{at}").as_bytes()).to_hex());
    let mut text: String = digests.take(bytes / 64 + 1).collect();
    text.truncate(bytes);
    text.into_bytes()
}

fn request(store: &Store, user: &str, seed: u64) {
    let user = store.user(user).unwrap();
    let original = text(seed, [40, 3_000, 40_000, 90_000][(seed % 4) as usize]);
    let stored = user.pointers().insert(&original, "tool_result", "a log").unwrap();
    let raw = [b"raw ".as_slice(), &original].concat();
    let message = TranscriptMessage {
        identity: stored.content,
        role: "user",
        raw: &raw,
        sent: Some(b"condensed"),
        pointers: std::slice::from_ref(&stored.pointer_id),
    };
    user.transcripts().append(&format!("s{}", seed % 5), &[message], Some(b"yes")).unwrap();
}

/// Every pointer that a store has, opened.
fn open_all(store: &Store) -> u64 {
    let rows: Vec<(String, [u8; 32])> = store
        .index()
        .read(|tx| {
            let mut query = tx.prepare("SELECT user, content FROM pointers")?;
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .unwrap();
    for (user, content) in &rows {
        let user = store.user(user).unwrap();
        let pointer =
            larder_text::pointer::Pointer::whole(user.key().mint(ContentHash::from_bytes(*content)));
        user.pointers().resolve(&pointer).unwrap();
    }
    rows.len() as u64
}

#[test]
fn a_backup_next_to_traffic_is_restored_whole() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let store = open(&home);
    let documents = Documents::open(&store, &DocumentPlace::Folder(home.join("documents"))).unwrap();
    documents.recover().unwrap();
    let ada = documents.user("ada").unwrap();
    ada.files().write(&ada.place().preferences(), b"Tea.\n", None).unwrap();
    for seed in 0..200 {
        request(&store, ["ada", "Bob"][(seed % 2) as usize], seed);
    }
    let stop = AtomicBool::new(false);
    let reports: Vec<BackupReport> = std::thread::scope(|scope| {
        scope.spawn(|| {
            for seed in 200.. {
                request(&store, ["ada", "Bob", "eve"][(seed % 3) as usize], seed);
                // Every second request expires at once.
                if seed % 2 == 0 {
                    let letter = ["a", "b", "c", "d"][(seed / 2 % 4) as usize];
                    let old = format!("UPDATE pointers SET used = 1 WHERE name LIKE '{letter}%'");
                    store.index().write(|tx| Ok(tx.execute_batch(&old)?)).unwrap();
                    let keep = Some(std::time::Duration::from_hours(48));
                    store.collect(&Retention { originals: keep, ..Retention::default() }, &|_| true).unwrap();
                }
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let made = (0..4).map(|n| store.backup(&dir.path().join(format!("backup-{n}")), &|_| {}).unwrap());
        let made = made.collect();
        stop.store(true, Ordering::Relaxed);
        made
    });
    for (n, report) in reports.iter().enumerate() {
        assert_eq!(report.problems, Vec::<String>::new());
        assert!(report.documents >= 1 && report.pointers > 100, "{report:?}");
        let (backup, restored) =
            (dir.path().join(format!("backup-{n}")), dir.path().join(format!("home-{n}")));
        let back = Store::restore(&backup, &restored, StoreOptions::default()).unwrap();
        assert_eq!(&back, report);
        let store = open(&restored);
        assert!(store.verify().unwrap().is_clean());
        assert_eq!(open_all(&store), report.pointers);
        let place = DocumentPlace::Folder(restored.join("documents"));
        let documents = Documents::open(&store, &place).unwrap();
        documents.recover().unwrap();
        let ada = documents.user("ada").unwrap();
        assert_eq!(ada.files().read(&ada.place().preferences()).unwrap().unwrap(), b"Tea.\n");
        request(&store, "ada", 9_999);
        assert!(store.verify().unwrap().is_clean());
    }
    let left: Vec<_> = files::entries(dir.path()).unwrap().into_iter().map(|entry| entry.name).collect();
    assert!(left.iter().all(|name| !name.contains("partial")), "{left:?}");
}

#[test]
fn what_expires_while_it_is_copied_is_expired_in_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("home"));
    for seed in 0..20 {
        request(&store, ["ada", "bob"][(seed % 2) as usize], seed);
    }
    let backup = dir.path().join("backup");
    let erase = |_| {
        let old = "UPDATE pointers SET used = 1 WHERE user = 'bob'; UPDATE sessions SET used = 1 WHERE user = 'bob'";
        store.index().write(|tx| Ok(tx.execute_batch(old)?)).unwrap();
        let keep = Some(std::time::Duration::from_hours(48));
        let all = Retention { originals: keep, transcripts: keep, ..Retention::default() };
        store.collect(&all, &|_| true).unwrap();
    };
    let report = store.backup(&backup, &erase).unwrap();
    assert_eq!((report.problems.len(), report.pointers), (0, 10), "{report:?}");
    let restored = dir.path().join("restored");
    Store::restore(&backup, &restored, StoreOptions::default()).unwrap();
    assert_eq!(open(&restored).verify().unwrap().tombstones, 10);
}

#[test]
fn nothing_is_overwritten_and_nothing_half_done_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let (home, backup) = (dir.path().join("home"), dir.path().join("backup"));
    let store = open(&home);
    request(&store, "ada", 1);
    std::fs::create_dir(&backup).unwrap();
    store.backup(&backup, &|_| {}).unwrap();
    assert!(matches!(store.backup(&backup, &|_| {}), Err(StoreError::NotEmpty { .. })));
    let restore = |from: &Path, to: &Path| Store::restore(from, to, StoreOptions::default());
    assert!(matches!(restore(&backup, &home), Err(StoreError::NotEmpty { .. })));
    assert!(matches!(restore(&home, &dir.path().join("new")), Err(StoreError::NotABackup { .. })));
    std::fs::remove_file(home.join("key")).unwrap();
    assert!(store.backup(&dir.path().join("other"), &|_| {}).is_err());
    let left: Vec<_> = files::entries(dir.path()).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(left, ["backup", "home"]);
}

#[test]
fn a_damaged_backup_is_named_and_repaired_as_a_home() {
    let dir = tempfile::tempdir().unwrap();
    let [home, backup, restored] = ["home", "backup", "restored"].map(|name| dir.path().join(name));
    let store = open(&home);
    request(&store, "ada", 1);
    let pointers = store.backup(&backup, &|_| {}).unwrap().pointers;
    let restore = || Store::restore(&backup, &restored, StoreOptions::default());
    let index = backup.join("index.sqlite");
    std::fs::write(&index, [b'x'; 9_000]).unwrap();
    let damaged = restore().unwrap_err();
    assert!(matches!(&damaged, StoreError::IndexCorrupt { path, .. } if *path == index), "{damaged}");
    assert!(!Store::repair(&backup, StoreOptions::default()).unwrap().intact);
    assert_eq!(restore().unwrap().pointers, pointers);
    std::fs::remove_dir_all(&restored).unwrap();
    let key = backup.join("key");
    std::fs::remove_file(&key).unwrap();
    let missing = restore().unwrap_err();
    assert!(matches!(&missing, StoreError::KeyMissing { path } if *path == key), "{missing}");
}

#[cfg(unix)]
#[test]
fn backups_and_restored_homes_are_private() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let [home, backup, restored] = ["home", "backup", "restored"].map(|name| dir.path().join(name));
    let store = open(&home);
    request(&store, "ada", 1);
    // The copy replaces an empty folder that others can read.
    std::fs::create_dir(&backup).unwrap();
    store
        .backup(&backup, &|copied| {
            let partial = |entry: &files::FolderEntry| entry.name.starts_with(".backup.partial-");
            let found = files::entries(dir.path()).unwrap().into_iter().find(partial).unwrap();
            assert_eq!(found.path.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{copied}");
        })
        .unwrap();
    Store::restore(&backup, &restored, StoreOptions::default()).unwrap();
    for folder in [home, backup, restored] {
        let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", folder.display());
    }
}
