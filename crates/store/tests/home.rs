//! The home folder: who may read it, what happens when parts of it are missing, and many openers at once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod common;

use common::Home;
use larder_store::{Store, StoreError, StoreOptions};

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_anything() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.user("a").pointers().insert(b"x", "text", "").unwrap();
    let mode = |name: &str| std::fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("blobs")), (0o700, 0o700));
    for file in ["key", "lock", "index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
}

#[test]
fn a_lost_or_foreign_key_is_never_replaced() {
    let home = Home::new();
    let key = home.path().join("key");
    let bytes = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let open = || Store::open(home.path(), StoreOptions::default()).map(|_| ());
    assert!(matches!(open(), Err(StoreError::KeyMissing { .. })));
    assert!(!key.exists());
    for wrong in [&b""[..], &bytes[1..], &[7; 32]] {
        std::fs::write(&key, wrong).unwrap();
        let error = open().unwrap_err();
        assert!(matches!(error, StoreError::KeyInvalid { .. }), "{error}");
        assert!(error.to_string().contains("restore the key"), "{error}");
    }
    std::fs::write(&key, bytes).unwrap();
    open().unwrap();
}

#[test]
fn a_home_that_cannot_be_a_folder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for home in [file.clone(), file.join("home")] {
        let error = Store::open(&home, StoreOptions::default()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_home_being_set_up_by_another_is_waited_for_and_then_named() {
    let home = Home::new();
    let lock = std::fs::File::open(home.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let options = StoreOptions { patience: std::time::Duration::ZERO, ..StoreOptions::default() };
    assert!(matches!(Store::open(home.path(), options).map(|_| ()), Err(StoreError::Locked { .. })));
}

#[test]
fn many_may_open_a_new_home_and_write_to_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("deep/er/home");
    let writers: Vec<_> = (0..8u8)
        .map(|writer| {
            let home = home.clone();
            std::thread::spawn(move || {
                let user = Store::open(&home, StoreOptions::default()).unwrap().user("a").unwrap();
                (0..10u8)
                    .map(|n| {
                        user.pointers()
                            .insert(&vec![writer % 4 * 10 + n; 5_000 * usize::from(n)], "text", "")
                            .unwrap()
                            .pointer_id
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let pointers: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    let store = Store::open(&home, StoreOptions::default()).unwrap();
    let user = store.user("a").unwrap();
    assert!(
        pointers.iter().all(|pointer| user.pointers().resolve(pointer).unwrap().len().is_multiple_of(5_000))
    );
    let report = store.verify().unwrap();
    assert!(report.is_clean());
    assert_eq!((report.pointers, report.blobs, report.unreferenced), (37, 37, 0));
}

/// Run by hand: needs a file system with room for a few blobs only, or a read-only one.
///
/// `mount -t tmpfs -o size=400k none DIR; LARDER_TEST_SMALL_DISK=DIR cargo test -p larder-store -- --ignored small`
#[test]
#[ignore = "needs a small disk: LARDER_TEST_SMALL_DISK=DIR"]
fn a_small_disk_fills_up_with_nothing_half_written() {
    let dir = std::env::var("LARDER_TEST_SMALL_DISK").unwrap();
    let home = std::path::Path::new(&dir).join("home");
    let store = Store::open(&home, StoreOptions::default()).unwrap();
    let user = store.user("a").unwrap();
    let mut stored = Vec::new();
    let error = loop {
        let seed = stored.len() as u32;
        let noise: Vec<u8> = (0..1_000 + seed % 2 * 9_000)
            .flat_map(|n| (n ^ seed).wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        match user.pointers().insert(&noise, "text", "") {
            Ok(pointer) => stored.push((pointer.pointer_id, noise)),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
    for (pointer, content) in &stored {
        assert_eq!(&user.pointers().resolve(pointer).unwrap(), content);
    }
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!((report.pointers, report.removed_temporaries), (stored.len() as u64, 0));
}
