//! Each kind of damage is found, and nothing else is called damage.

use super::*;
use crate::contents::NewContent;
use crate::{NewPointer, StoreOptions};

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    (dir, store)
}

/// A content that is kept as a record of a segment.
fn large() -> Vec<u8> {
    b"content".repeat(10_000)
}

/// A content that is kept as a file.
fn huge() -> Vec<u8> {
    (0..400_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn facts() -> crate::RunFacts {
    let facts = serde_json::json!({
        "recipe": "r", "recipe_version": "1", "model_layer": "MIND", "model": "m", "session_id": null,
        "turn_id": null, "tokens": {"prompt": 1, "input": 1, "output": 1}, "latency_ms": 1, "success": true,
        "schema_valid": null, "confidence": null, "retries": 0, "compression_applied": false,
        "compression_savings": 0, "cost_usd": null, "status": "completed", "error": null
    });
    serde_json::from_value(facts).unwrap()
}

/// The problems after `damage`, as text.
fn after(damage: impl FnOnce(&Store)) -> String {
    let (_dir, store) = store();
    let user = store.user("a").unwrap();
    user.pointers()
        .insert_all(&[b"content".as_slice(), &large(), &huge()].map(|content| NewPointer {
            content: content.into(),
            kind: "",
            display_text: "",
        }))
        .unwrap();
    assert!(store.verify().unwrap().is_clean());
    damage(&store);
    let problems = store.verify().unwrap().problems;
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

fn sql(store: &Store, statement: &str) {
    store.index().write(|tx| Ok(tx.execute_batch(statement)?)).unwrap();
}

fn blob(store: &Store) -> std::path::PathBuf {
    store.blobs().path("u-a", ContentHash::new(&huge()))
}

fn segment(store: &Store) -> std::path::PathBuf {
    store.segments().path("u-a", 1)
}

#[test]
fn a_whole_store_is_clean_and_counted() {
    let (_dir, store) = store();
    let user = store.user("a").unwrap();
    user.pointers().insert(b"content", "text", "").unwrap();
    user.contents().place(&NewContent::plain(&[&huge()])).unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_clean());
    assert_eq!((report.pointers, report.runs, report.blobs), (1, 0, 2));
    assert_eq!((report.unreferenced, report.content_bytes), (1, 1_600_007));
}

#[test]
fn a_damaged_row_is_found_and_mended_by_putting_it_again() {
    let (_dir, store) = store();
    let user = store.user("a").unwrap();
    let run = crate::NewRun {
        run_id: store.new_run_id().unwrap(),
        facts: facts(),
        receipt: b"content",
        output: None,
        pointers: &[],
    };
    let recorded = user.runs().record(run.clone()).unwrap();
    sql(&store, "UPDATE contents SET frame = x'00'");
    assert!(matches!(user.contents().get(recorded.receipt), Err(StoreError::CorruptBlob { .. })));
    let problems = store.verify().unwrap().problems;
    assert!(problems[0].to_string().contains("index.sqlite: damaged blob (content"), "{problems:?}");
    user.runs().record(crate::NewRun { run_id: store.new_run_id().unwrap(), ..run.clone() }).unwrap();
    assert_eq!(user.contents().get(recorded.receipt).unwrap(), b"content");
    sql(&store, "DELETE FROM contents");
    assert!(store.verify().unwrap().problems[0].to_string().contains("no such blob"));
}

#[test]
fn a_damaged_record_is_found_and_replaced_by_putting_it_again() {
    let (_dir, store) = store();
    let user = store.user("a").unwrap();
    let pointer = user.pointers().insert(&large(), "text", "shown").unwrap();
    let mut bytes = std::fs::read(segment(&store)).unwrap();
    let last = bytes.len() - 16;
    bytes[last] ^= 1;
    std::fs::write(segment(&store), bytes).unwrap();
    assert!(matches!(user.pointers().resolve(&pointer.pointer_id), Err(StoreError::CorruptBlob { .. })));
    assert!(store.verify().unwrap().problems[0].to_string().contains("damaged blob (content"));
    let message = crate::TranscriptMessage {
        identity: pointer.content,
        role: "user",
        raw: &large(),
        sent: None,
        pointers: &[],
    };
    user.transcripts().append("s", &[message], None).unwrap();
    assert_eq!(user.pointers().resolve(&pointer.pointer_id).unwrap(), large());
    assert!(store.verify().unwrap().is_clean());
    assert!(user.contents().record(pointer.content).unwrap().unwrap().has_pointer, "it still says so");
}

#[test]
fn missing_and_damaged_blobs_are_found() {
    assert!(after(|store| std::fs::remove_file(blob(store)).unwrap()).contains("no such blob"));
    assert!(after(|store| std::fs::write(blob(store), b"x").unwrap()).contains("damaged blob"));
    assert!(after(|store| std::fs::remove_file(segment(store)).unwrap()).contains("no such blob"));
    assert!(after(|store| std::fs::write(segment(store), b"x").unwrap()).contains("it ends before byte"));
    assert!(
        after(|store| sql(store, "UPDATE segment_contents SET at = at + 8")).contains("no intact record")
    );
    assert!(
        after(|store| sql(store, "UPDATE segment_contents SET flags = 0")).contains("other than the index")
    );
    assert!(
        after(|store| std::fs::write(blob(store).with_file_name("zz"), b"x").unwrap()).contains("its name")
    );
}

#[test]
fn rows_that_do_not_fit_are_found() {
    assert!(after(|store| sql(store, "UPDATE pointers SET bytes = 3")).contains("1600000 bytes long"));
    assert!(after(|store| sql(store, "UPDATE pointers SET name = 'x' || name")).contains("name is not that"));
    let dangling = "INSERT INTO run_pointers VALUES ('a', 'r', 'lp1-0000000000000-000000')";
    assert!(after(|store| sql(store, dangling)).contains("run r of user"));
    let half = "INSERT INTO runs (user, run_id, recipe, recorded, record, receipt)
                VALUES ('a', 'r', 'x', 0, '{}', zeroblob(32))";
    let problems = after(|store| sql(store, half));
    assert!(problems.contains("not a valid record") && problems.contains("no such blob"), "{problems}");
}

#[test]
fn lines_of_transcripts_that_do_not_fit_are_found() {
    let told = |damage: &str| {
        after(|store| {
            let message = crate::TranscriptMessage {
                identity: ContentHash::new(b"x"),
                role: "user",
                raw: &large(),
                sent: Some(b"short"),
                pointers: &[],
            };
            store.user("a").unwrap().transcripts().append("s", &[message], None).unwrap();
            assert_eq!(store.verify().unwrap().transcript_lines, 1);
            sql(store, damage);
        })
    };
    assert_eq!(told("DELETE FROM deletions"), "");
    let gone = format!("DELETE FROM contents WHERE hash = x'{}'", ContentHash::new(b"short"));
    let problems = told(&gone);
    assert!(problems.contains("line 1 of the transcript") && problems.contains("no such blob"), "{problems}");
    let length = "UPDATE transcript_lines SET document = replace(document, '70000', '7')";
    assert!(told(length).contains("70000 bytes long"));
    assert!(told("UPDATE transcript_lines SET document = '{}'").contains("not a valid record"));
}

#[test]
fn unfinished_files_go_when_their_writer_is_dead_and_only_then() {
    let (_dir, store) = store();
    let user = store.user("a").unwrap();
    user.pointers().insert(&huge(), "text", "").unwrap();
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
        move || {
            (0..200u32)
                .map(|n| user.pointers().insert(&n.to_be_bytes().repeat(10_000), "text", "").unwrap())
                .collect::<Vec<_>>()
        }
    });
    while !writer.is_finished() {
        assert!(store.verify().unwrap().is_clean());
    }
    assert_eq!(writer.join().unwrap().len(), 200);
    assert!(store.verify().unwrap().is_clean());
}
