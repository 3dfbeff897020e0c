//! Tests of the questions to an index, over rows that are written here.

use rusqlite::Connection;

use super::*;

fn index(rows: &str) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(include_str!("schema.sql")).unwrap();
    connection.execute_batch(rows).unwrap();
    connection
}

fn vault_path(path: &str) -> VaultPath {
    VaultPath::new(path).unwrap()
}

/// Rows of research: id, topic, when it was created and what it supersedes. Its turn is the number in its id.
fn research_rows(rows: &[(&str, &str, i64, Option<&str>)]) -> Connection {
    let connection = index("");
    for (id, topic, created, supersedes) in rows {
        let turn: u32 = id.trim_start_matches('r').parse().unwrap();
        let sql = "INSERT INTO research (document, id, turn, topic, intent, quality, created, supersedes, scope, title,
                   archived) VALUES (?1, ?2, ?3, ?4, 'informational', 0.5, ?5, ?6, 'new', '', 0)";
        let document = format!("users/u/turns/turn_{turn:06}/research.md");
        connection.execute(sql, params![document, id, turn, topic, created, supersedes]).unwrap();
    }
    connection
}

fn ids(connection: &mut Connection, wanted: Wanted<'_>) -> Vec<(String, Option<String>)> {
    let tx = connection.transaction().unwrap();
    let rows = research(&tx, wanted, 9).unwrap();
    rows.into_iter().map(|row| (row.id, row.superseded_by)).collect()
}

fn named(ids: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    ids.iter().map(|(id, by)| ((*id).to_owned(), by.map(str::to_owned))).collect()
}

#[test]
fn a_topic_is_itself_and_what_is_below_it() {
    let mut connection = research_rows(&[
        ("r1", "a.b", 1, None),
        ("r2", "a.b.c", 2, None),
        ("r3", "a.bc", 3, None),
        ("r4", "a", 4, None),
    ]);
    assert_eq!(ids(&mut connection, Wanted::Topic("a.b")), named(&[("r2", None), ("r1", None)]));
    assert_eq!(ids(&mut connection, Wanted::Just("a.b")), named(&[("r1", None)]));
    assert_eq!(ids(&mut connection, Wanted::Topic("a")).len(), 4);
    assert_eq!(ids(&mut connection, Wanted::Turn(3)), named(&[("r3", None)]));
}

#[test]
fn research_is_superseded_by_what_says_so_and_not_by_its_topic() {
    let mut connection = research_rows(&[
        ("r1", "a", 1, None),
        ("r2", "a", 2, None),
        ("r3", "a", 2, None),
        ("r4", "b", 1, None),
        ("r5", "c", 9, Some("r4")),
        ("r6", "", 1, None),
        ("r7", "", 2, None),
    ]);
    let expected = named(&[
        ("r5", None),
        ("r7", None),
        ("r3", None),
        ("r2", None),
        ("r6", None),
        ("r4", Some("r5")),
        ("r1", None),
    ]);
    assert_eq!(ids(&mut connection, Wanted::All), expected);
}

#[test]
fn turns_are_listed_below_a_number_and_old_ones_outside_the_archive() {
    let mut connection = index("");
    for (number, created, archived) in [(1, 10, true), (2, 20, false), (3, 30, false), (4, 40, false)] {
        let sql = "INSERT INTO turns (number, document, user, status, query, created, archived)
                   VALUES (?1, ?2, ?3, 'complete', 'q', ?4, ?5)";
        let document = format!("users/u/turns/turn_{number:06}/metadata.json");
        connection
            .execute(sql, params![number, document, format!("user{number}"), created, archived])
            .unwrap();
    }
    let tx = connection.transaction().unwrap();
    let numbers = |rows: Vec<TurnRow>| rows.into_iter().map(|row| row.number).collect::<Vec<_>>();
    assert_eq!(numbers(recent_turns(&tx, 2, None, None).unwrap()), [4, 3]);
    assert_eq!(numbers(recent_turns(&tx, 9, Some(3), None).unwrap()), [2, 1]);
    assert_eq!(numbers(old_turns(&tx, DocumentTime::from_millis(30).unwrap()).unwrap()), [2]);
    assert_eq!((highest_turn(&tx).unwrap(), turn_user(&tx).unwrap().as_deref()), (4, Some("user4")));
    let row = turn(&tx, 2).unwrap().unwrap();
    assert_eq!(row.context, vault_path("users/u/turns/turn_000002/context.md"));
    assert_eq!(turn(&tx, 5).unwrap(), None);
}

#[test]
fn links_lead_both_ways_and_into_folders() {
    let mut connection = index(
        "INSERT INTO documents (id, path, kind) VALUES (1, 'f/a.md', 4), (2, 'f/b.md', 4), (3, 'g.md', 4), (4, 'f0.md', 3);
         INSERT INTO links VALUES (1, 'f/b.md'), (3, 'f/b.md'), (3, 'f/a.md'), (4, 'f0/x.md');",
    );
    let tx = connection.transaction().unwrap();
    let shown = |paths: Vec<VaultPath>| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(shown(links_of(&tx, &vault_path("g.md")).unwrap()), ["f/a.md", "f/b.md"]);
    assert_eq!(shown(links_to(&tx, &vault_path("f/b.md")).unwrap()), ["f/a.md", "g.md"]);
    assert_eq!(shown(links_into(&tx, "f").unwrap()), ["g.md"], "links from inside the folder do not count");
    assert_eq!(shown(documents_of_turn(&tx, "f").unwrap()), ["f/a.md", "f/b.md"]);
    assert_eq!(shown(memory_documents(&tx).unwrap()), ["f0.md"]);
}

#[test]
fn captures_are_found_by_turn_by_address_or_by_both() {
    let mut connection = index(
        "INSERT INTO captures VALUES ('1.json', 1, 'u', '', 10), ('2.json', 2, 'u', '', 20), ('3.json', 2, 'v', '', 20);
         INSERT INTO redirects VALUES ('2.json', 'short'), ('2.json', 'shorter'), ('3.json', 'shorter');",
    );
    let tx = connection.transaction().unwrap();
    let found = |turn, url| {
        let rows = captures(&tx, turn, url, 9).unwrap();
        rows.into_iter().map(|row| row.manifest.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(None, None), ["3.json", "2.json", "1.json"]);
    assert_eq!(found(Some(2), None), ["3.json", "2.json"]);
    assert_eq!(found(None, Some("u")), ["2.json", "1.json"]);
    assert_eq!(found(Some(2), Some("u")), ["2.json"]);
    assert_eq!(found(None, Some("short")), ["2.json"]);
    assert_eq!(
        (found(Some(2), Some("shorter")), found(Some(1), Some("shorter"))),
        (vec!["3.json".to_owned(), "2.json".to_owned()], vec![])
    );
    assert_eq!(captures(&tx, None, Some("short"), 9).unwrap()[0].redirected_from, ["short", "shorter"]);
}

#[test]
fn a_row_that_cannot_be_read_is_an_error_not_a_guess() {
    let mut connection = index(
        "INSERT INTO turns (number, document, user, status, query, created, archived)
         VALUES (1, 'users/u/turns/turn_000001/metadata.json', 'u', 'no status', 'q', 1, 0);",
    );
    let tx = connection.transaction().unwrap();
    assert!(turn(&tx, 1).is_err());
}
