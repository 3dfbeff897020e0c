//! Inserts rows into the index of one user, and removes them. Knows the tables, not where rows come from.

use larder_vault::{Manifest, Research, Scope, TurnMetadata, VaultPath, embedding_text};
use rusqlite::{OptionalExtension, Transaction, params};

use super::rows::Rows;
use crate::documents::types::DocumentKind;
use larder_disk::StoreError;

/// zstd's fastest ordinary level: the texts are short and read one at a time.
const LEVEL: i32 = 1;

/// What a row of `topics` counts, and what a vector represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::documents) enum Subject {
    /// Turns.
    Turns = 0,
    /// Pieces of research.
    Research = 1,
}

/// The column of `words` for each kind, by the number of the kind.
pub(super) const COLUMNS: [&str; 5] = ["context", "research", "page", "memory", "other"];

/// Replaces the rows of a document.
pub(in crate::documents) fn put(tx: &Transaction<'_>, rows: &Rows) -> Result<(), StoreError> {
    remove(tx, &rows.path)?;
    if let Some((kind, text)) = &rows.text {
        put_text(tx, rows, *kind, text)?;
    }
    if let Some(metadata) = &rows.metadata {
        put_turn(tx, rows, metadata)?;
    }
    if let Some((research, scope)) = &rows.research {
        put_research(tx, rows, research, *scope)?;
    }
    if let Some(capture) = &rows.capture {
        put_capture(tx, rows, capture)?;
    }
    Ok(())
}

fn put_text(tx: &Transaction<'_>, rows: &Rows, kind: DocumentKind, text: &str) -> Result<(), StoreError> {
    let frame = zstd::bulk::compress(text.as_bytes(), LEVEL)
        .map_err(StoreError::io(std::path::Path::new("zstd"), "compressing a document"))?;
    tx.prepare_cached("INSERT INTO documents (path, kind, turn, text) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![rows.path.as_str(), kind as i64, rows.turn, frame])?;
    let id = tx.last_insert_rowid();
    let column = COLUMNS[kind as usize];
    tx.prepare_cached(&format!("INSERT INTO words (rowid, {column}) VALUES (?1, ?2)"))?
        .execute(params![id, text])?;
    let mut link = tx.prepare_cached("INSERT INTO links (source, target) VALUES (?1, ?2)")?;
    for target in &rows.links {
        link.execute(params![id, target.as_str()])?;
    }
    Ok(())
}

fn put_turn(tx: &Transaction<'_>, rows: &Rows, turn: &TurnMetadata) -> Result<(), StoreError> {
    let number = rows.turn.unwrap_or(turn.turn_number);
    // A turn of this number at another path is replaced.
    let mut other = tx.prepare_cached("SELECT document FROM turns WHERE number = ?1")?;
    let other: Option<String> = other.query_row([number], |row| row.get(0)).optional()?;
    if let Some(other) = other {
        remove_turn(tx, &other)?;
        remove_embedding_text(tx, &other)?;
    }
    tx.prepare_cached(
        "INSERT INTO turns (number, document, user, status, query, summary, topic, intent, quality, created,
         session, archived) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        number,
        rows.path.as_str(),
        turn.user_id,
        turn.status.as_str(),
        turn.query,
        turn.summary,
        turn.topic,
        turn.intent.map(|intent| intent.as_str()),
        turn.quality.map(|quality| quality.get()),
        turn.created_at.as_millis(),
        turn.session_id,
        rows.archived,
    ])?;
    insert_embedding_text(tx, rows, Subject::Turns, number, &embedding_text::of_turn(turn))?;
    count(tx, Subject::Turns, turn.topic.as_deref(), number)
}

fn put_research(
    tx: &Transaction<'_>,
    rows: &Rows,
    research: &Research,
    scope: Scope,
) -> Result<(), StoreError> {
    let number = rows.turn.unwrap_or(research.turn);
    tx.prepare_cached(
        "INSERT INTO research (document, id, turn, topic, intent, quality, created, expires, supersedes, scope,
         title, archived) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        rows.path.as_str(),
        research.id,
        number,
        research.topic,
        research.intent.as_str(),
        research.quality.get(),
        research.created.as_millis(),
        research.expires.map(|expires| expires.as_millis()),
        research.supersedes,
        scope.as_str(),
        research.query,
        rows.archived,
    ])?;
    insert_embedding_text(tx, rows, Subject::Research, number, &embedding_text::of_research(research))?;
    count(tx, Subject::Research, Some(&research.topic), number)
}

fn insert_embedding_text(
    tx: &Transaction<'_>,
    rows: &Rows,
    of: Subject,
    number: u32,
    text: &str,
) -> Result<(), StoreError> {
    tx.prepare_cached("INSERT INTO gists (document, of, turn, hash, text) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![rows.path.as_str(), of as i64, number, embedding_text::hash(text), text])?;
    Ok(())
}

fn remove_embedding_text(tx: &Transaction<'_>, document: &str) -> Result<(), StoreError> {
    tx.prepare_cached("DELETE FROM gists WHERE document = ?1")?.execute([document])?;
    Ok(())
}

fn put_capture(tx: &Transaction<'_>, rows: &Rows, page: &Manifest) -> Result<(), StoreError> {
    let mut put = tx.prepare_cached(
        "INSERT INTO captures (manifest, turn, url, title, captured) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let number = rows.turn.unwrap_or(page.turn_number);
    put.execute(params![rows.path.as_str(), number, page.url, page.title, page.visited_at.as_millis()])?;
    let mut put = tx.prepare_cached("INSERT OR IGNORE INTO redirects (manifest, url) VALUES (?1, ?2)")?;
    for url in &page.redirected_from {
        put.execute(params![rows.path.as_str(), url])?;
    }
    Ok(())
}

fn count(tx: &Transaction<'_>, of: Subject, topic: Option<&str>, number: u32) -> Result<(), StoreError> {
    let Some(topic) = topic.filter(|topic| !topic.is_empty()) else { return Ok(()) };
    tx.prepare_cached(
        "INSERT INTO topics (of, topic, count, newest) VALUES (?1, ?2, 1, ?3)
         ON CONFLICT DO UPDATE SET count = count + 1, newest = max(newest, excluded.newest)",
    )?
    .execute(params![of as i64, topic, number])?;
    Ok(())
}

fn uncount(tx: &Transaction<'_>, of: Subject, topic: Option<&str>) -> Result<(), StoreError> {
    let Some(topic) = topic.filter(|topic| !topic.is_empty()) else { return Ok(()) };
    tx.prepare_cached("UPDATE topics SET count = count - 1 WHERE of = ?1 AND topic = ?2")?
        .execute(params![of as i64, topic])?;
    tx.prepare_cached("DELETE FROM topics WHERE of = ?1 AND topic = ?2 AND count <= 0")?
        .execute(params![of as i64, topic])?;
    let newest = match of {
        Subject::Turns => "SELECT max(number) FROM turns WHERE topic = ?2",
        Subject::Research => "SELECT max(turn) FROM research WHERE topic = ?2",
    };
    tx.prepare_cached(&format!("UPDATE topics SET newest = ({newest}) WHERE of = ?1 AND topic = ?2"))?
        .execute(params![of as i64, topic])?;
    Ok(())
}

/// Removes the rows of a document.
pub(in crate::documents) fn remove(tx: &Transaction<'_>, path: &VaultPath) -> Result<(), StoreError> {
    let path = path.as_str();
    let mut id = tx.prepare_cached("SELECT id FROM documents WHERE path = ?1")?;
    if let Some(id) = id.query_row([path], |row| row.get::<_, i64>(0)).optional()? {
        tx.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([id])?;
        tx.prepare_cached("DELETE FROM links WHERE source = ?1")?.execute([id])?;
        tx.prepare_cached("DELETE FROM documents WHERE id = ?1")?.execute([id])?;
    }
    tx.prepare_cached("DELETE FROM captures WHERE manifest = ?1")?.execute([path])?;
    tx.prepare_cached("DELETE FROM redirects WHERE manifest = ?1")?.execute([path])?;
    remove_turn(tx, path)?;
    remove_embedding_text(tx, path)?;
    let mut gone = tx.prepare_cached("DELETE FROM research WHERE document = ?1 RETURNING topic")?;
    if let Some(topic) = gone.query_row([path], |row| row.get::<_, String>(0)).optional()? {
        uncount(tx, Subject::Research, Some(&topic))?;
    }
    Ok(())
}

fn remove_turn(tx: &Transaction<'_>, document: &str) -> Result<(), StoreError> {
    let mut gone = tx.prepare_cached("DELETE FROM turns WHERE document = ?1 RETURNING topic")?;
    if let Some(topic) = gone.query_row([document], |row| row.get::<_, Option<String>>(0)).optional()? {
        uncount(tx, Subject::Turns, topic.as_deref())?;
    }
    Ok(())
}
