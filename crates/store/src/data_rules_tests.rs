//! Nothing is stored without a rule, and what is a user's is exported and erased whole.

use std::collections::BTreeSet;
use std::path::Path;

use larder_text::hash::ContentHash;
use larder_text::message::TranscriptMessage;
use larder_vault::{Mode, TurnMetadata, TurnStatus, write_json};
use rusqlite::Connection;

use crate::{
    ConversationCost, DocumentPlace, Documents, KeyId, KeyLimits, MemoryChange, MemoryKind, MemoryRecord,
    NewConversation, NewExchange, NewIntervention, NewJob, NewKey, NewMessage, NewPublication, NewRun,
    RunFacts, Store, StoreError, StoreOptions, Timestamp, Track, UserStore,
};
use larder_disk::data_rules::DataExport::Rows;
use larder_disk::data_rules::DataKind::{File, IndexTable, Table};
use larder_disk::data_rules::{DATA_RULES, DataKind, user_tables};

/// What is not stored under any rule: tables of the index and of the documents' indexes, and files.
fn without_rule(home: &Path) -> Vec<String> {
    let covered = |found: &str, of: &dyn Fn(DataKind) -> bool| {
        DATA_RULES.iter().any(|rule| of(rule.kind) && rule.kind.covers(found))
    };
    let tables = |path: &Path| -> Vec<String> {
        let index = Connection::open(path).unwrap();
        let mut query = index.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
        let names = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        names.map(Result::unwrap).filter(|name| !name.starts_with("sqlite_")).collect()
    };
    let mut missing = Vec::new();
    let mut folders = vec![home.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(home).unwrap().to_str().unwrap().to_owned();
            if !covered(&name, &|kind| matches!(kind, File(_))) {
                missing.push(format!("file {name}"));
            }
            if name == "index.sqlite" {
                let unruled = tables(&path)
                    .into_iter()
                    .filter(|table| !covered(table, &|kind| matches!(kind, Table(_))));
                missing.extend(unruled.map(|table| format!("table {table}")));
            }
            if name.starts_with("indexes/") && name.ends_with(".db") {
                let unruled = tables(&path)
                    .into_iter()
                    .filter(|table| !covered(table, &|kind| matches!(kind, IndexTable(_))));
                missing.extend(unruled.map(|table| format!("table {table} of {name}")));
            }
        }
    }
    missing
}

/// A conversation with a long message, and a fact about who takes part.
fn talk(user: &UserStore, small: &str, large: &str) {
    let state = serde_json::json!({"of": small});
    let participants = [("me".to_owned(), user.user().to_owned())];
    let invited = [("guest".to_owned(), user.user().to_owned())];
    let new = NewConversation {
        kind: "talk",
        title: small,
        participants: &participants,
        invited: &invited,
        state: &state,
    };
    let talk = user.conversations().create(&new).unwrap();
    let track = Track { conversation: &talk.id, participant: "me" };
    let said = NewMessage { text: large, key: Some("k"), data: &state, chars: 100 };
    let posted = user.conversations().post(track, &said).unwrap();
    user.conversations().retire_key(track, posted.number).unwrap();
    let naming = format!("See {}.", posted.pointer.unwrap());
    user.conversations().post(track, &NewMessage { text: &naming, key: None, ..said }).unwrap();
    user.conversations().add_cost(track, &ConversationCost { stage: small, ..Default::default() }).unwrap();
    let fact = MemoryRecord {
        number: 0,
        kind: MemoryKind::Fact,
        id: "fact-1".to_owned(),
        participant: "me".to_owned(),
        conversation: Some(talk.id.clone()),
        session: Some(1),
        consent: None,
        data: state.clone(),
        vector: Some(vec![0.5; 4]),
        created: user.now(),
        ended: None,
    };
    let change = MemoryChange { put: vec![fact], ..MemoryChange::default() };
    user.conversations().memory().apply(&change).unwrap();
}

/// A home in which two users have left something of every class.
fn lived_in(home: &Path) -> Documents {
    let store = Store::open(home, StoreOptions::default()).unwrap();
    let documents = Documents::open(&store, &DocumentPlace::Folder(home.join("documents"))).unwrap();
    documents.recover().unwrap();
    for (at, name) in ["ada", "bob"].into_iter().enumerate() {
        let user = store.user(name).unwrap();
        let large = format!("{name} large ").repeat(10_000);
        let small = format!("{name} small");
        let stored = user.pointers().insert(large.as_bytes(), "tool_result", &small).unwrap();
        user.pointers().insert(small.as_bytes(), "text", "").unwrap();
        let message = TranscriptMessage {
            identity: ContentHash::new(small.as_bytes()),
            role: "user",
            raw: small.as_bytes(),
            sent: None,
            pointers: std::slice::from_ref(&stored.pointer_id),
        };
        user.transcripts().append("s", &[message], Some(b"yes")).unwrap();
        user.round_trips().insert("s", &[(vec!["key".to_owned()], "{}".to_owned())]).unwrap();
        user.interventions().raise(&NewIntervention::missing_recipe("r")).unwrap();
        let job = NewJob { kind: "x", key: small.clone(), session: None, payload: "p".into(), after: 0 };
        user.jobs().add(&job).unwrap();
        user.publications()
            .publish(&NewPublication {
                origin: "fact-001",
                category: "c",
                source: name,
                statements: std::slice::from_ref(&small),
            })
            .unwrap();
        talk(&user, &small, &large);
        let facts: RunFacts = serde_json::from_value(serde_json::json!({
            "recipe": "r", "recipe_version": "1", "model_layer": "MIND", "model": "m", "session_id": null,
            "turn_id": null, "tokens": {"prompt": 1, "input": 1, "output": 1}, "latency_ms": 1, "success": true,
            "schema_valid": null, "confidence": null, "retries": 0, "compression_applied": false,
            "compression_savings": 0, "cost_usd": null, "status": "completed", "error": null
        }))
        .unwrap();
        let run_id = store.new_run_id().unwrap();
        let pointers = std::slice::from_ref(&stored.pointer_id);
        user.runs().record(NewRun { run_id, facts, receipt: b"{}", output: Some(b"yes"), pointers }).unwrap();
        let id = KeyId::new([at as u8; 6]);
        let limits = KeyLimits { tokens_per_day: Some(10), picos_per_day: None };
        let hash = "a hash that stays here";
        store.keys().add(&NewKey { id, user: name, label: "", hash, limits, operator: false }).unwrap();
        let new = NewExchange {
            id: name,
            session: Some("s"),
            time: Timestamp::from_millis(1_795_219_200_000),
            model: "m",
            recipe: None,
            status: 200,
            tokens_in: 1,
            tokens_out: 1,
            tokens_before: 1,
            tokens_after: 1,
            cost_picos: None,
            without_picos: None,
            compactions: 0,
            used: &[],
            json: "{\"of\":1}",
        };
        store.record_exchanges(&[(&user, new)]).unwrap();
        let own = documents.user(name).unwrap();
        let memo = format!("See {}.\n", stored.pointer_id);
        own.files().write(&own.place().preferences(), memo.as_bytes(), None).unwrap();
        own.drafts()
            .begin_with(Mode::Chat, None, "unfinished", |draft| {
                draft.files.insert("context.md".to_owned(), memo.clone().into_bytes());
            })
            .unwrap();
        let mut draft = own.drafts().begin(Mode::Chat, None, "finished").unwrap();
        let metadata = TurnMetadata {
            turn_number: draft.number,
            user_id: name.to_owned(),
            session_id: None,
            mode: draft.mode,
            status: TurnStatus::Complete,
            created_at: draft.created_at,
            finished_at: None,
            query: draft.query.clone(),
            summary: None,
            topic: None,
            intent: None,
            quality: None,
            invented: Vec::new(),
            unverified: false,
            last_phase: Some(7),
            revisions: 0,
            retries: 0,
        };
        draft.files.insert("metadata.json".to_owned(), write_json(&metadata).into_bytes());
        own.drafts().commit(&draft).unwrap();
    }
    documents
}

#[test]
fn every_table_file_and_index_has_a_rule_and_a_planted_one_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let documents = lived_in(dir.path());
    assert_eq!(without_rule(dir.path()), Vec::<String>::new());
    documents.store().index().write(|tx| Ok(tx.execute_batch("CREATE TABLE facts (user TEXT)")?)).unwrap();
    let index = dir.path().join("indexes/documents/ada.db");
    Connection::open(index).unwrap().execute_batch("CREATE TABLE moods (user TEXT)").unwrap();
    std::fs::write(dir.path().join("blobs/planted"), "x").unwrap();
    let found: BTreeSet<_> = without_rule(dir.path()).into_iter().collect();
    let planted = ["file blobs/planted", "table facts", "table moods of indexes/documents/ada.db"];
    assert_eq!(found, planted.map(str::to_owned).into());
}

#[test]
fn every_table_of_users_names_them_and_every_rule_is_of_something() {
    let dir = tempfile::tempdir().unwrap();
    let documents = lived_in(dir.path());
    documents
        .store()
        .index()
        .read(|tx| {
            for (table, _) in user_tables() {
                tx.prepare(&format!("SELECT user FROM {table}")).unwrap();
            }
            let mut query = tx.prepare(
                "SELECT m.name FROM sqlite_master AS m WHERE m.type = 'table' AND EXISTS
                     (SELECT 1 FROM pragma_table_info(m.name) WHERE name = 'user')",
            )?;
            let named: BTreeSet<String> = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            assert_eq!(named, user_tables().map(|(table, _)| table.to_owned()).collect());
            Ok(())
        })
        .unwrap();
}

/// The rows of every table of the index.
fn rows(documents: &Documents) -> Vec<(&'static str, i64)> {
    let tables = DATA_RULES.iter().filter_map(|rule| match rule.kind {
        DataKind::Table(name) => Some(name),
        _ => None,
    });
    documents
        .store()
        .index()
        .read(|tx| {
            let count = |name| tx.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0));
            Ok(tables.map(|name| (name, count(name).unwrap())).collect())
        })
        .unwrap()
}

#[test]
fn a_repair_rebuilds_a_table_or_says_that_it_is_lost() {
    let rebuilt = DATA_RULES.iter().filter(|rule| rule.lost.is_none()).filter_map(|rule| match rule.kind {
        DataKind::Table(name) => Some(name),
        _ => None,
    });
    let rebuilt: Vec<_> = rebuilt.collect();
    assert_eq!(rebuilt, ["meta", "segment_contents", "segments", "pointers", "document_pointers"]);
    let dir = tempfile::tempdir().unwrap();
    let documents = lived_in(dir.path());
    let before = rows(&documents);
    drop(documents);
    std::fs::remove_file(dir.path().join("index.sqlite")).unwrap();
    let report = Store::repair(dir.path(), StoreOptions::default()).unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    let documents = Documents::open(&store, &DocumentPlace::Folder(dir.path().join("documents"))).unwrap();
    documents.recover().unwrap();
    documents.build_missing().unwrap();
    for ((name, before), (_, after)) in before.into_iter().zip(rows(&documents)) {
        let rule = DATA_RULES.iter().find(|rule| rule.kind == DataKind::Table(name)).unwrap();
        // What is noted of the old file says nothing of the new one, and what drafts referred to goes with them.
        let may_shrink = rule.lost.is_some() || ["meta", "document_pointers"].contains(&name);
        assert!(after >= before || may_shrink, "{name}: {before} rows, now {after}");
        assert!(after > 0 || before == 0 || rule.lost.is_some(), "{name}");
        assert!(rule.lost.is_none_or(|words| report.lost.iter().any(|lost| lost == words)), "{name}");
    }
}

/// Every file below a folder, with its bytes.
fn files(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                all.push((name, std::fs::read(&path).unwrap()));
            }
        }
    }
    all
}

#[test]
fn an_export_has_everything_of_its_user_and_nothing_of_another_or_secret() {
    let dir = tempfile::tempdir().unwrap();
    let documents = lived_in(&dir.path().join("home"));
    let to = dir.path().join("export");
    let report = documents.export("ada", &to).unwrap();
    let files = files(&to);
    assert_eq!(files.len() as u64, report.files + 1, "and the manifest");
    let text = |name: &str| {
        let (_, bytes) =
            files.iter().find(|(path, _)| path == name).unwrap_or_else(|| panic!("{name}: {report:?}"));
        String::from_utf8(bytes.clone()).unwrap()
    };
    for (table, export) in user_tables().filter(|(table, _)| {
        // What is there only for a moment, or after something went wrong.
        ![
            "tombstones",
            "reservations",
            "compactions",
            "key_days",
            "document_uses",
            "document_sources",
            "session_revisions",
        ]
        .contains(table)
    }) {
        if matches!(export, Rows(_)) {
            assert!(!text(&format!("tables/{table}.jsonl")).is_empty());
        }
    }
    let large = "ada large ".repeat(10_000);
    assert_eq!(text(&format!("contents/{}", ContentHash::new(large.as_bytes()).to_hex())), large);
    assert_eq!(text(&format!("contents/{}", ContentHash::new(b"ada small").to_hex())), "ada small");
    assert!(text("documents/users/ada/preferences.md").starts_with("See lp1-"));
    assert!(text("drafts/turn_000001/context.md").starts_with("See lp1-"));
    assert!(text("tables/exchanges.jsonl").contains("\"document\":{\"of\":1}"), "JSON is read as JSON");
    let manifest: serde_json::Value = serde_json::from_str(&text("manifest.json")).unwrap();
    assert_eq!(manifest["user"], "ada");
    for (path, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains("bob") && !text.contains("a hash that stays here"), "{path}: {text}");
    }
    assert!(documents.export("ada", &to).is_err(), "the folder is not empty");
    let nobody = documents.export("eve", &dir.path().join("none"));
    assert!(matches!(nobody, Err(StoreError::UnknownUser { .. })), "{nobody:?}");
}

#[test]
fn a_forgotten_user_leaves_no_row_and_no_byte() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let documents = lived_in(&home);
    documents.forget("ada").unwrap();
    assert!(!documents.knows("ada").unwrap() && documents.knows("bob").unwrap());
    documents
        .store()
        .index()
        .read(|tx| {
            for (table, _) in user_tables() {
                let count = |user: &str| -> i64 {
                    tx.query_row(&format!("SELECT count(*) FROM {table} WHERE user = ?1"), [user], |row| {
                        row.get(0)
                    })
                    .unwrap()
                };
                assert_eq!(count("ada"), 0, "{table}");
            }
            Ok(())
        })
        .unwrap();
    for (path, bytes) in files(&home) {
        let found = bytes.windows(9).any(|window| window == b"ada small" || window == b"ada large");
        assert!(!found && !path.split('/').any(|name| ["ada", "u-ada", "ada.db"].contains(&name)), "{path}");
    }
    documents.export("bob", &dir.path().join("export")).unwrap();
    assert!(documents.store().verify().unwrap().is_clean());
}
