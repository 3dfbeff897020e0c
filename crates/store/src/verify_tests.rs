//! Each kind of damage is found, and nothing else is called damage.

use super::*;
use crate::{RunFilter, StoreOptions};

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    (dir, store)
}

/// The problems after `damage`, as text.
fn after(damage: impl FnOnce(&Store)) -> String {
    let (_dir, store) = store();
    store.user("a").unwrap().put(b"content", "text", "").unwrap();
    assert!(store.verify().unwrap().is_clean());
    damage(&store);
    let problems = store.verify().unwrap().problems;
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

fn sql(store: &Store, statement: &str) {
    store.index().write(|tx| Ok(tx.execute_batch(statement)?)).unwrap();
}

fn blob(store: &Store) -> std::path::PathBuf {
    store.user("a").unwrap().blob_path(ContentHash::of(b"content"))
}

#[test]
fn a_whole_store_is_clean_and_counted() {
    let (_dir, store) = store();
    let user = store.user("a").unwrap();
    user.put(b"content", "text", "").unwrap();
    user.blobs().put_all(user.folder(), &[b"nobody names me"]).unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_clean());
    assert_eq!((report.pointers, report.runs, report.blobs), (1, 0, 2));
    assert_eq!((report.unreferenced, report.content_bytes), (1, 22));
    assert!(user.runs(&RunFilter::default()).unwrap().is_empty());
}

#[test]
fn missing_and_damaged_blobs_are_found() {
    assert!(after(|store| std::fs::remove_file(blob(store)).unwrap()).contains("no such blob"));
    assert!(after(|store| std::fs::write(blob(store), b"x").unwrap()).contains("damaged blob"));
    assert!(
        after(|store| std::fs::write(blob(store).with_file_name("zz"), b"x").unwrap()).contains("its name")
    );
}

#[test]
fn rows_that_do_not_fit_are_found() {
    assert!(after(|store| sql(store, "UPDATE pointers SET bytes = 3")).contains("7 bytes long"));
    assert!(after(|store| sql(store, "UPDATE pointers SET name = 'x'")).contains("name is not that"));
    let dangling = "INSERT INTO run_pointers VALUES ('a', 'r', 'lp1-0000000000000-000000')";
    assert!(after(|store| sql(store, dangling)).contains("run r of user"));
    let half = "INSERT INTO runs (user, run_id, recipe, recorded, record, receipt)
                VALUES ('a', 'r', 'x', 0, '{}', zeroblob(32))";
    let problems = after(|store| sql(store, half));
    assert!(problems.contains("not a valid record") && problems.contains("no such blob"), "{problems}");
}

#[test]
fn unfinished_files_go_when_their_writer_is_dead_and_only_then() {
    let (_dir, store) = store();
    let user = store.user("a").unwrap();
    user.put(b"content", "text", "").unwrap();
    let folder = blob(&store).parent().unwrap().to_path_buf();
    let alive = files::write_temp(&folder, b"half").unwrap();
    let dead = folder.join(format!("{TEMP_PREFIX}dead"));
    std::fs::write(&dead, b"half").unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_clean());
    assert_eq!(report.removed_temporaries, 1);
    assert!(alive.path().exists() && !dead.exists());
}

#[test]
fn a_blob_whose_temporary_is_swept_away_too_early_is_written_again() {
    let (_dir, store) = store();
    let user = store.user("a").unwrap();
    let writer = std::thread::spawn({
        let user = user.clone();
        move || (0..200u32).map(|n| user.put(&n.to_be_bytes(), "text", "").unwrap()).collect::<Vec<_>>()
    });
    while !writer.is_finished() {
        assert!(store.verify().unwrap().is_clean());
    }
    assert_eq!(writer.join().unwrap().len(), 200);
    assert!(store.verify().unwrap().is_clean());
}
