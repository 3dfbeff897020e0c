//! Tests of opening and migrating the index.

use super::*;

const PATIENCE: Duration = Duration::from_millis(20);

fn at(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("index.sqlite")
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    IndexDb::open(at(&dir), PATIENCE).unwrap();
    let raw = Connection::open(at(&dir)).unwrap();
    raw.pragma_update(None, "user_version", FORMAT_VERSION + 1).unwrap();
    let error = IndexDb::open(at(&dir), PATIENCE).unwrap_err();
    assert!(matches!(error, StoreError::SchemaTooNew { .. }), "{error}");
    assert!(error.to_string().contains("use a newer Larder"), "{error}");
    assert_eq!(pragma(&raw, "user_version").unwrap(), FORMAT_VERSION + 1);
}

#[test]
fn the_file_of_another_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    Connection::open(at(&dir)).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    assert!(matches!(IndexDb::open(at(&dir), PATIENCE), Err(StoreError::NotAStore { .. })));
}

#[test]
fn a_file_that_is_not_a_database_is_reported_as_damaged() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(at(&dir), vec![b'x'; 8192]).unwrap();
    assert!(matches!(IndexDb::open(at(&dir), PATIENCE), Err(StoreError::IndexCorrupt { .. })));
}

#[test]
fn a_full_index_fails_with_nothing_written() {
    let dir = tempfile::tempdir().unwrap();
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    lock(&index.writer).pragma_update(None, "max_page_count", 1).unwrap();
    let big = "x".repeat(1_000_000);
    let error = index.meta("big", &big).unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
    lock(&index.writer).pragma_update(None, "max_page_count", 1_000_000).unwrap();
    assert_eq!(index.meta("big", "small").unwrap(), "small");
}

#[test]
fn an_index_that_may_not_be_written_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    lock(&index.writer).pragma_update(None, "query_only", true).unwrap();
    assert!(matches!(index.meta("a", "b"), Err(StoreError::ReadOnly { .. })));
}

#[test]
fn a_lock_held_by_another_is_waited_for_and_then_named() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) =
        (IndexDb::open(at(&dir), PATIENCE).unwrap(), IndexDb::open(at(&dir), PATIENCE).unwrap());
    one.write(|_| {
        assert!(matches!(other.meta("a", "b"), Err(StoreError::Locked { .. })));
        Ok(())
    })
    .unwrap();
    assert_eq!(other.meta("a", "b").unwrap(), "b");
}

#[test]
fn commits_are_durable_and_readers_are_not_held_up() {
    let dir = tempfile::tempdir().unwrap();
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    assert_eq!(pragma(&lock(&index.writer), "synchronous").unwrap(), 1);
    index.write(|tx| Ok(tx.execute_batch("INSERT INTO meta VALUES ('a', 'b')")?)).unwrap();
    assert!(index.log.get().is_some(), "the log was synced");
    let mode: String =
        lock(&index.writer).pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_migration_that_fails_leaves_the_old_version() {
    let dir = tempfile::tempdir().unwrap();
    drop(IndexDb::open(at(&dir), PATIENCE).unwrap());
    let mut raw = Connection::open(at(&dir)).unwrap();
    let mut steps = MIGRATIONS.to_vec();
    steps.push("CREATE TABLE fresh (x); CREATE TABLE meta (x);");
    assert!(migrate(&mut raw, &at(&dir), &steps).is_err());
    assert_eq!(pragma(&raw, "user_version").unwrap(), FORMAT_VERSION);
    assert!(raw.prepare("SELECT x FROM fresh").is_err());
}

#[test]
fn what_changed_form_is_taken_from_the_documents_of_older_requests() {
    let dir = tempfile::tempdir().unwrap();
    let mut old = Connection::open(at(&dir)).unwrap();
    migrate(&mut old, &at(&dir), &MIGRATIONS[..6]).unwrap();
    let document = |outcome: &str, dry_run: bool| {
        format!(
            r#"{{"outcome": "{outcome}", "decision": {{"dry_run": {dry_run}}}, "shape": {{"compactions": 3}}}}"#
        )
    };
    let undecided = r#"{"outcome": "ok", "decision": null, "shape": {"compactions": 0}}"#.to_owned();
    let shapeless = r#"{"outcome": "ok"}"#.to_owned();
    let documents = [
        document("ok", false),
        document("ok", true),
        document("refused", false),
        undecided,
        shapeless,
        "no JSON".to_owned(),
    ];
    for (at, document) in documents.iter().enumerate() {
        old.execute(
            "INSERT INTO exchanges (user, id, time, model, status, tokens_in, tokens_out, tokens_before, tokens_after,
                                    document)
             VALUES ('a', ?1, 1, 'm', 200, 0, 0, 0, 0, ?2)",
            (at.to_string(), document),
        )
        .unwrap();
    }
    // Whatever changes nothing is not written.
    old.execute_batch(
        "CREATE TABLE written (seq);
         CREATE TRIGGER writing AFTER UPDATE ON exchanges BEGIN INSERT INTO written VALUES (new.seq); END;",
    )
    .unwrap();
    drop(old);
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    let writer = lock(&index.writer);
    let written = writer.query_row("SELECT count(*) FROM written", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(written, 1);
    let mut query = writer.prepare("SELECT compactions FROM exchanges ORDER BY seq").unwrap();
    let counted: Vec<i64> = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(counted, [3, 0, 0, 0, 0, 0]);
}

#[test]
fn runs_are_found_by_their_time_and_listed_without_being_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    let connection = lock(&index.writer);
    let plan = |query: &str| -> String {
        let mut query = connection.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
        let values = vec![rusqlite::types::Null; query.parameter_count()];
        let steps =
            query.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    let costs = plan(crate::exchanges::PAID_RUNS);
    assert!(costs.contains("runs_by_time (user=? AND recorded>?)"), "{costs}");
    let listed = plan(crate::runs::NEWEST);
    assert!(listed.contains("runs_of_user (user=?)") && !listed.contains("ORDER BY"), "{listed}");
}

#[test]
fn an_older_index_with_keys_remembers_that_they_were_created() {
    for (keys, created) in [(0, "no"), (1, "yes")] {
        let dir = tempfile::tempdir().unwrap();
        let mut old = Connection::open(at(&dir)).unwrap();
        migrate(&mut old, &at(&dir), &MIGRATIONS[..7]).unwrap();
        for id in 0..keys {
            old.execute(
                "INSERT INTO keys (id, user, label, hash, created) VALUES (?1, 'a', '', '', 1)",
                [id.to_string()],
            )
            .unwrap();
        }
        drop(old);
        assert_eq!(IndexDb::open(at(&dir), PATIENCE).unwrap().meta("keys_created", "no").unwrap(), created);
    }
}

/// The tables and indexes of an index, as SQLite wrote them down.
fn schema(connection: &Connection) -> Vec<(String, Option<String>)> {
    let mut query = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
    query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[test]
fn an_index_of_every_older_version_is_brought_up_with_its_rows() {
    let fresh = tempfile::tempdir().unwrap();
    let fresh = IndexDb::open(at(&fresh), PATIENCE).unwrap();
    for version in 1..MIGRATIONS.len() {
        let dir = tempfile::tempdir().unwrap();
        let mut old = Connection::open(at(&dir)).unwrap();
        migrate(&mut old, &at(&dir), &MIGRATIONS[..version]).unwrap();
        assert_eq!(pragma(&old, "user_version").unwrap(), version as i64);
        old.execute_batch(
            "INSERT INTO meta VALUES ('k', 'v');
             INSERT INTO pointers (user, name, content, bytes, kind, display_text, rehydrate_instructions, created)
             VALUES ('a', 'n', zeroblob(32), 7, 'text', 'shown', 'how', 1);
             INSERT INTO runs (user, run_id, recipe, recorded, record, receipt) VALUES ('a', 'r', 'x', 2, '{}', zeroblob(32));
             INSERT INTO run_pointers VALUES ('a', 'r', 'p');",
        )
        .unwrap();
        drop(old);
        let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
        assert_eq!(pragma(&lock(&index.writer), "user_version").unwrap(), FORMAT_VERSION);
        assert_eq!(schema(&lock(&index.writer)), schema(&lock(&fresh.writer)));
        assert_eq!(index.meta("k", "other").unwrap(), "v");
        let rows = "SELECT (SELECT bytes FROM pointers), (SELECT recorded FROM runs), (SELECT pointer FROM run_pointers)";
        let kept = lock(&index.writer)
            .query_row(rows, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap();
        assert_eq!(kept, (7, 2, "p".to_owned()));
    }
}

#[test]
fn corrections_of_older_versions_become_a_revision() {
    let dir = tempfile::tempdir().unwrap();
    let mut old = Connection::open(at(&dir)).unwrap();
    migrate(&mut old, &at(&dir), &MIGRATIONS[..19]).unwrap();
    old.execute_batch(
        "INSERT INTO revisions VALUES (1, 5, 'first', '{}');
         INSERT INTO usage_sums VALUES ('a', 'm', 1000, 600, 9), ('b', 'm', 1000, 700, 9), ('b', 'n', 10, 10, 1);
         INSERT INTO calibrations VALUES ('a', 'm', 1, 800000, 8, 6), ('a', 'm', 2, 600000, 9, 7), ('b', 'm', 1, 700000, 8, 6);
         INSERT INTO session_calibrations VALUES ('a', 'new', 'm', 2), ('a', 'old', 'm', 0);
         INSERT INTO session_revisions VALUES ('a', 'old', 1);",
    )
    .unwrap();
    migrate(&mut old, &at(&dir), &MIGRATIONS[..20]).unwrap();
    let rows = "SELECT (SELECT changes FROM revisions WHERE number = 2), (SELECT created FROM revisions WHERE number = 2),
                       (SELECT group_concat(model || ' ' || estimated || ' ' || reported || ' ' || samples || ' ' || learned)
                        FROM usage_sums),
                       (SELECT group_concat(session || ' ' || revision) FROM session_revisions)";
    let found =
        old.query_row(rows, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    let expected = (
        r#"{"models.m.estimate_factor":"0.700"}"#.to_owned(),
        7,
        "m 2000 1300 18 700000,n 10 10 1 1000000".to_owned(),
        "new 2,old 1".to_owned(),
    );
    assert_eq!(found, expected);
}

#[test]
fn revisions_of_older_versions_get_their_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let mut old = Connection::open(at(&dir)).unwrap();
    migrate(&mut old, &at(&dir), &MIGRATIONS[..20]).unwrap();
    for number in 1..=130_i64 {
        let changes = format!(r#"{{"k{}.x":"{number}","k{}.x":null}}"#, number % 7, (number + 1) % 7);
        old.execute("INSERT INTO revisions VALUES (?1, 5, 'c', ?2)", (number, changes)).unwrap();
    }
    drop(old);
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    let writer = lock(&index.writer);
    let mut query =
        writer.prepare("SELECT number, learned FROM revisions WHERE learned IS NOT NULL").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let found: Vec<(i64, String)> = rows.map(Result::unwrap).collect();
    let expected = |numbers: [i64; 6]| {
        let values = numbers.map(|number| format!(r#""k{}.x":"{number}""#, number % 7));
        let mut values = values.to_vec();
        values.sort();
        format!("{{{}}}", values.join(","))
    };
    let sorted = |json: &str| {
        let map: std::collections::BTreeMap<String, String> = serde_json::from_str(json).unwrap();
        serde_json::to_string(&map).unwrap()
    };
    let found: Vec<_> = found.iter().map(|(number, learned)| (*number, sorted(learned))).collect();
    let at = |last: i64| (last, expected(std::array::from_fn(|back| last - back as i64)));
    assert_eq!(found, [at(64), at(128)]);
}

#[test]
fn what_messages_of_older_versions_name_is_noted() {
    let dir = tempfile::tempdir().unwrap();
    let old = of_version(&at(&dir), 22);
    old.execute_batch(
        "INSERT INTO pointers (user, name, content, bytes, kind, display_text, rehydrate_instructions, created, used)
         SELECT 'a', value, zeroblob(32), 1, '', '', '', 1, 1
         FROM json_each('[\"0000000000001\", \"0000000000002\", \"0000000000003\"]');
         INSERT INTO tombstones VALUES ('a', '0000000000004', zeroblob(32), 1);
         INSERT INTO conversation_messages (user, conversation, participant, session, role, text, pending, data, created)
         SELECT value ->> 0, 'c', 'me', 1, 0, value ->> 1, 0, '{}', 1 FROM json_each('[
             [\"a\", \"lp1-0000000000001-000000, lp1-lp1-0000000000003-000000#L1 and lp1-0000000000003-000000 lp1-0000000000004-000000\"],
             [\"a\", \"0000000000002\"], [\"b\", \"lp1-0000000000002-000000\"]]');",
    )
    .unwrap();
    drop(old);
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    let rows = "SELECT group_concat(user || ' ' || name || ' ' || number) FROM message_pointers";
    let found: String = lock(&index.writer).query_row(rows, [], |row| row.get(0)).unwrap();
    assert_eq!(found, "a 0000000000001 1,a 0000000000003 1,a 0000000000004 1");
}

#[test]
fn what_transcripts_of_older_versions_name_is_noted_unless_it_was_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let old = of_version(&at(&dir), 23);
    old.execute_batch(
        "INSERT INTO meta VALUES ('tombstones_until', 1795219200000);
         INSERT INTO tombstones VALUES ('a', '0000000000001', zeroblob(32), 1);
         INSERT INTO transcript_lines (user, session, line, branch, message, document)
         SELECT 'a', 's', key, 1, key, value FROM json_each('[
             {\"time\": \"2026-11-20T00:00:00.000Z\", \"pointers\": [\"lp1-0000000000001-000000\"]},
             {\"time\": \"2026-11-20T00:00:00.000Z\", \"pointers\": [\"lp1-0000000000002-000000#L1\"]},
             {\"time\": \"2026-11-22T00:00:00.000Z\", \"pointers\": [\"lp1-0000000000003-000000#L1\"]},
             {\"time\": \"2026-11-22T00:00:00.000Z\"}, \"damaged\"]');",
    )
    .unwrap();
    drop(old);
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    let rows = "SELECT group_concat(user || ' ' || name || ' ' || session) FROM transcript_pointers";
    let found: String = lock(&index.writer).query_row(rows, [], |row| row.get(0)).unwrap();
    assert_eq!(found, "a 0000000000001 s,a 0000000000003 s");
}

#[test]
fn factors_that_do_not_say_what_they_correct_are_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut old = Connection::open(at(&dir)).unwrap();
    migrate(&mut old, &at(&dir), &MIGRATIONS[..20]).unwrap();
    old.execute_batch(
        r#"INSERT INTO revisions VALUES
             (1, 5, 'c', '{"models.m.estimate_factor":"0.700","models.n.window":"9","models.o.estimate_factor":"0.800"}'),
             (2, 6, 'c', '{"models.o.estimate_factor":null}');
           INSERT INTO usage_sums VALUES ('m', 1000, 700, 9, 700000);"#,
    )
    .unwrap();
    drop(old);
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    let rows = "SELECT (SELECT group_concat(number || ' ' || created || ' ' || changes) FROM revisions WHERE number > 2),
                       (SELECT count(*) FROM usage_sums) + (SELECT count(learned) FROM revisions)";
    let found: (String, i64) =
        lock(&index.writer).query_row(rows, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(found, (r#"3 6 {"models.m.estimate_factor":null}"#.to_owned(), 0));
}

#[test]
fn the_log_does_not_grow_while_requests_are_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let index = IndexDb::open(at(&dir), PATIENCE).unwrap();
    index.write(|tx| Ok(tx.execute_batch("CREATE TABLE t (x)")?)).unwrap();
    let longest = |records: u64| {
        let sizes = (0..LOG_PAGES / 4).map(|_| {
            index.append(|tx| Ok(tx.execute("INSERT INTO t VALUES (zeroblob(3000))", ())?)).unwrap();
            index.fold_log(records);
            std::fs::metadata(dir.path().join("index.sqlite-wal")).unwrap().len()
        });
        sizes.max().unwrap()
    };
    let (folded, grown) = (longest(FOLDED_RECORDS), longest(0));
    assert!(grown > 20 * folded, "{folded}, {grown}");
}
