//! Questions to the index of one user, apart from those for words. Knows the tables.

use std::str::FromStr;

use larder_vault::{DocumentTime, Score, VaultPath};
use rusqlite::types::Type;
use rusqlite::{Error, OptionalExtension, Params, Row, Transaction, params};

use super::put::Subject;
use crate::documents::types::{CaptureRow, DocumentKind, ResearchRow, TurnRow};
use crate::pointers::to_sql;
use larder_disk::StoreError;

const TURN: &str = "SELECT number, status, query, summary, topic, intent, quality, created, document, archived, \
                    session FROM turns";

/// A value that is stored as text.
fn word<T: FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| {
        let message = format!("{text:?} is not a value of this column");
        Error::FromSqlConversionFailure(column, Type::Text, message.into())
    })
}

pub(super) fn path(row: &Row<'_>, column: usize) -> rusqlite::Result<VaultPath> {
    word(row, column)
}

fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<DocumentTime> {
    let millis = row.get(column)?;
    DocumentTime::from_millis(millis).ok_or(Error::IntegralValueOutOfRange(column, millis))
}

fn beside(document: &VaultPath, name: &str) -> rusqlite::Result<VaultPath> {
    let path = document.join(name);
    path.ok_or_else(|| Error::FromSqlConversionFailure(8, Type::Text, "not the path of a turn".into()))
}

fn turn_row(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    let intent: Option<String> = row.get(5)?;
    let quality: Option<f64> = row.get(6)?;
    Ok(TurnRow {
        number: row.get(0)?,
        status: word(row, 1)?,
        query: row.get(2)?,
        summary: row.get(3)?,
        topic: row.get(4)?,
        intent: intent.and_then(|intent| intent.parse().ok()),
        quality: quality.and_then(Score::new),
        created_at: moment(row, 7)?,
        context: beside(&path(row, 8)?, "context.md")?,
        archived: row.get(9)?,
        session: row.get(10)?,
    })
}

fn all<T>(
    tx: &Transaction<'_>,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let mut query = tx.prepare_cached(sql)?;
    let rows = query.query_map(params, read)?.collect::<Result<_, _>>()?;
    Ok(rows)
}

/// A turn.
pub(in crate::documents) fn turn(tx: &Transaction<'_>, number: u32) -> Result<Option<TurnRow>, StoreError> {
    let mut query = tx.prepare_cached(&format!("{TURN} WHERE number = ?1"))?;
    Ok(query.query_row([number], turn_row).optional()?)
}

/// The newest turns below a number, newest first.
pub(in crate::documents) fn recent_turns(
    tx: &Transaction<'_>,
    limit: u64,
    before: Option<u32>,
    session: Option<&str>,
) -> Result<Vec<TurnRow>, StoreError> {
    let of = if session.is_some() { "session = ?3" } else { "?3 IS NULL" };
    let sql = format!("{TURN} WHERE number < ?1 AND {of} ORDER BY number DESC LIMIT ?2");
    all(tx, &sql, params![before.map_or(i64::MAX, i64::from), to_sql(limit), session], turn_row)
}

/// Turns older than a timestamp that are not in the archive, by number.
pub(in crate::documents) fn old_turns(
    tx: &Transaction<'_>,
    before: DocumentTime,
) -> Result<Vec<TurnRow>, StoreError> {
    let sql = format!("{TURN} WHERE archived = 0 AND created < ?1 ORDER BY number");
    all(tx, &sql, [before.as_millis()], turn_row)
}

/// The highest number of a turn.
pub(in crate::documents) fn highest_turn(tx: &Transaction<'_>) -> Result<u32, StoreError> {
    let mut query = tx.prepare_cached("SELECT coalesce(max(number), 0) FROM turns")?;
    Ok(query.query_row([], |row| row.get(0))?)
}

/// The user as named by the newest turn.
pub(in crate::documents) fn turn_user(tx: &Transaction<'_>) -> Result<Option<String>, StoreError> {
    let mut query = tx.prepare_cached("SELECT user FROM turns ORDER BY number DESC LIMIT 1")?;
    Ok(query.query_row([], |row| row.get(0)).optional()?)
}

/// All documents of a turn with words or links.
pub(in crate::documents) fn documents_of_turn(
    tx: &Transaction<'_>,
    folder: &str,
) -> Result<Vec<VaultPath>, StoreError> {
    // `0` is the character after `/`.
    let (from, to) = (format!("{folder}/"), format!("{folder}0"));
    let mut found = Vec::new();
    for (table, column) in
        [("documents", "path"), ("turns", "document"), ("research", "document"), ("captures", "manifest")]
    {
        let sql = format!("SELECT {column} FROM {table} WHERE {column} >= ?1 AND {column} < ?2");
        found.extend(all(tx, &sql, [&from, &to], |row| path(row, 0))?);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Topics with their counts and newest turns, those with the newest first.
pub(in crate::documents) fn topics(
    tx: &Transaction<'_>,
    of: Subject,
    limit: u64,
) -> Result<Vec<(String, u64, u32)>, StoreError> {
    let sql = "SELECT topic, count, newest FROM topics WHERE of = ?1 ORDER BY newest DESC, topic LIMIT ?2";
    all(tx, sql, params![of as i64, to_sql(limit)], |row| {
        Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0), row.get(2)?))
    })
}

/// Research is superseded by what names it: its refresh, or the same question asked again (R1-12.5).
const RESEARCH: &str = "
    SELECT document, id, turn, topic, intent, quality, created, expires, scope, title,
        (SELECT newer.id FROM research newer WHERE newer.supersedes = research.id AND newer.id <> research.id
         ORDER BY newer.created DESC, newer.turn DESC, newer.id DESC LIMIT 1)
    FROM research";

fn research_row(row: &Row<'_>) -> rusqlite::Result<ResearchRow> {
    let expires: Option<i64> = row.get(7)?;
    Ok(ResearchRow {
        document: path(row, 0)?,
        id: row.get(1)?,
        turn: row.get(2)?,
        topic: row.get(3)?,
        intent: word(row, 4)?,
        quality: Score::new(row.get(5)?).unwrap_or_default(),
        created_at: moment(row, 6)?,
        expires_at: expires.and_then(DocumentTime::from_millis),
        scope: word(row, 8)?,
        title: row.get(9)?,
        superseded_by: row.get(10)?,
        use_count: 0,
    })
}

/// Which research to return.
#[derive(Debug, Clone, Copy)]
pub(in crate::documents) enum Wanted<'a> {
    /// All.
    All,
    /// On a topic or anything below it.
    Topic(&'a str),
    /// On exactly this topic.
    Just(&'a str),
    /// Of a turn.
    Turn(u32),
    /// This document.
    Document(&'a VaultPath),
}

/// Research, newest first.
pub(in crate::documents) fn research(
    tx: &Transaction<'_>,
    wanted: Wanted<'_>,
    limit: u64,
) -> Result<Vec<ResearchRow>, StoreError> {
    let order = "ORDER BY created DESC, turn DESC, id DESC LIMIT ?1";
    let limit = to_sql(limit);
    match wanted {
        Wanted::All => all(tx, &format!("{RESEARCH} {order}"), [limit], research_row),
        // `/` is the character after `.`.
        Wanted::Topic(topic) => {
            let sql = format!("{RESEARCH} WHERE topic = ?2 OR (topic >= ?3 AND topic < ?4) {order}");
            all(tx, &sql, params![limit, topic, format!("{topic}."), format!("{topic}/")], research_row)
        }
        Wanted::Just(topic) => {
            all(tx, &format!("{RESEARCH} WHERE topic = ?2 {order}"), params![limit, topic], research_row)
        }
        Wanted::Turn(turn) => {
            all(tx, &format!("{RESEARCH} WHERE turn = ?2 {order}"), params![limit, turn], research_row)
        }
        Wanted::Document(path) => {
            let sql = format!("{RESEARCH} WHERE document = ?2 {order}");
            all(tx, &sql, params![limit, path.as_str()], research_row)
        }
    }
}

/// Captured pages, newest first; a page is found by its address and by those that led to it.
pub(in crate::documents) fn captures(
    tx: &Transaction<'_>,
    turn: Option<u32>,
    url: Option<&str>,
    limit: u64,
) -> Result<Vec<CaptureRow>, StoreError> {
    let filter = match (turn, url) {
        (None, None) => "WHERE ?1 IS NULL AND ?2 IS NULL",
        (Some(_), None) => "WHERE turn = ?1 AND ?2 IS NULL",
        (None, Some(_)) => {
            "WHERE (url = ?2 OR manifest IN (SELECT manifest FROM redirects WHERE url = ?2)) AND ?1 IS NULL"
        }
        (Some(_), Some(_)) => {
            "WHERE turn = ?1 AND (url = ?2 OR manifest IN (SELECT manifest FROM redirects WHERE url = ?2))"
        }
    };
    let sql = format!(
        "SELECT turn, url, title, manifest, captured, (SELECT group_concat(url, char(10)) FROM redirects
         WHERE redirects.manifest = captures.manifest) FROM captures {filter}
         ORDER BY captured DESC, manifest DESC LIMIT ?3"
    );
    all(tx, &sql, params![turn, url, to_sql(limit)], |row| {
        Ok(CaptureRow {
            turn: row.get(0)?,
            url: row.get(1)?,
            title: row.get(2)?,
            manifest: path(row, 3)?,
            captured_at: moment(row, 4)?,
            redirected_from: row
                .get::<_, Option<String>>(5)?
                .map(|urls| urls.lines().map(str::to_owned).collect())
                .unwrap_or_default(),
        })
    })
}

/// The documents that a document links to, sorted.
pub(in crate::documents) fn links_of(
    tx: &Transaction<'_>,
    document: &VaultPath,
) -> Result<Vec<VaultPath>, StoreError> {
    let sql =
        "SELECT target FROM links WHERE source = (SELECT id FROM documents WHERE path = ?1) ORDER BY target";
    all(tx, sql, [document.as_str()], |row| path(row, 0))
}

/// The documents that link to a document, sorted.
pub(in crate::documents) fn links_to(
    tx: &Transaction<'_>,
    document: &VaultPath,
) -> Result<Vec<VaultPath>, StoreError> {
    let sql = "SELECT path FROM links JOIN documents ON id = source WHERE target = ?1 ORDER BY path";
    all(tx, sql, [document.as_str()], |row| path(row, 0))
}

/// The documents outside a folder that link to something in it, sorted.
pub(in crate::documents) fn links_into(
    tx: &Transaction<'_>,
    folder: &str,
) -> Result<Vec<VaultPath>, StoreError> {
    let sql = "SELECT DISTINCT path FROM links JOIN documents ON id = source
               WHERE target >= ?1 AND target < ?2 AND NOT (path >= ?1 AND path < ?2) ORDER BY path";
    all(tx, sql, [format!("{folder}/"), format!("{folder}0")], |row| path(row, 0))
}

/// Facts, preferences and the records behind them, sorted.
pub(in crate::documents) fn memory_documents(tx: &Transaction<'_>) -> Result<Vec<VaultPath>, StoreError> {
    // The query contains the literal 3, since SQLite uses a partial index only for a literal.
    const { assert!(DocumentKind::Memory as i64 == 3) };
    all(tx, "SELECT path FROM documents WHERE kind = 3 ORDER BY path", [], |row| path(row, 0))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
