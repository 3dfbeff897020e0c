//! Homes that cannot be written, as far as a test that may run as root can tell.

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OpenFlags};

use super::*;

const ROWS: i64 = 400;

fn database(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, at INTEGER, filling BLOB)").unwrap();
    for id in 0..ROWS {
        connection.execute("INSERT INTO t VALUES (?1, 0, zeroblob(3000))", [id]).unwrap();
    }
    connection
}

/// The lowest and the highest value, which each commit makes equal.
fn ends(path: &Path) -> (i64, i64) {
    let copy = Connection::open(path).unwrap();
    let check: String = copy.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    copy.query_row("SELECT min(at), max(at) FROM t", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

#[test]
fn the_copy_of_a_database_is_of_one_moment_while_others_write_to_it() {
    let (home, made) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(home.path().join("indexes/documents")).unwrap();
    let names = ["index.sqlite", "indexes/documents/ada.db"];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers = names.map(|name| database(&home.path().join(name))).map(|writer| {
            // Each commit changes every page, and the log goes back into the database all the time.
            writer.pragma_update(None, "wal_autocheckpoint", 10).unwrap();
            writer.busy_timeout(Duration::from_secs(60)).unwrap();
            let done = &done;
            scope.spawn(move || {
                let mut commits = 0;
                while !done.load(Ordering::Relaxed) {
                    writer.execute("UPDATE t SET at = at + 1, filling = randomblob(3000)", []).unwrap();
                    commits += 1;
                }
                commits
            })
        });
        let mut seen = Vec::new();
        for copy in 0..12 {
            let folder = made.path().join(copy.to_string());
            std::fs::create_dir(&folder).unwrap();
            copy_to_read(home.path(), &folder).unwrap();
            for name in names {
                let (least, most) = ends(&folder.join(name));
                assert_eq!(least, most, "copy {copy} of {name}");
                seen.push(most);
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(writers.into_iter().all(|writer| writer.join().unwrap() > 0));
        assert!(seen.last() > seen.first(), "{seen:?}");
    });
}

#[test]
fn a_database_that_no_process_has_open_is_copied_with_its_log() {
    let (home, made) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = home.path().join("index.sqlite");
    let writer = database(&path);
    writer.execute("UPDATE t SET at = 7", []).unwrap();
    // As a crash leaves it: with what only the log has.
    let crashed = tempfile::tempdir().unwrap();
    for ending in ["", "-wal"] {
        std::fs::copy(with_ending(&path, ending), crashed.path().join(format!("index.sqlite{ending}")))
            .unwrap();
    }
    drop(writer);
    for (at, home) in [home.path(), crashed.path()].into_iter().enumerate() {
        let folder = made.path().join(at.to_string());
        std::fs::create_dir(&folder).unwrap();
        copy_to_read(home, &folder).unwrap();
        assert_eq!(ends(&folder.join("index.sqlite")), (7, 7));
    }
    // What cannot be opened is copied as it is.
    let damaged = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..4_000].fill(0xff);
    std::fs::write(damaged.path().join("index.sqlite"), &bytes).unwrap();
    let folder = made.path().join("damaged");
    std::fs::create_dir(&folder).unwrap();
    copy_to_read(damaged.path(), &folder).unwrap();
    assert_eq!(std::fs::read(folder.join("index.sqlite")).unwrap(), bytes);
    let opened = Connection::open_with_flags(folder.join("index.sqlite"), OpenFlags::SQLITE_OPEN_READ_ONLY);
    assert!(opened.unwrap().query_row("SELECT count(*) FROM t", [], |_| Ok(())).is_err());
}

/// Files that root may not write either exist only where file attributes do, so root is not tested.
#[cfg(unix)]
#[test]
fn what_cannot_be_written_is_named_wherever_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    for folder in ["blobs", "turns", "indexes/documents"] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    for file in ["index.sqlite", "key", "lock", "indexes/documents/ada.db"] {
        std::fs::write(home.path().join(file), "").unwrap();
    }
    assert_eq!(unwritable(home.path()), None);
    let denied = |path: &str, expected: Option<&str>| {
        let path = home.path().join(path);
        let before = std::fs::metadata(&path).unwrap().permissions();
        let mode = if path.is_dir() { 0o500 } else { 0o400 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let is_root = File::options().write(true).open(&path).is_ok() || tempfile::tempfile_in(&path).is_ok();
        let found = unwritable(home.path());
        std::fs::set_permissions(&path, before).unwrap();
        if !is_root {
            assert_eq!(found, expected.map(|path| home.path().join(path)));
        }
    };
    denied("", Some(""));
    for path in
        ["blobs", "turns", "indexes", "indexes/documents", "index.sqlite", "lock", "indexes/documents/ada.db"]
    {
        denied(path, Some(path));
    }
    denied("key", None);
}
