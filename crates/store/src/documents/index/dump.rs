//! The content of an index as text: equal indexes have equal dumps. Row numbers are omitted, since they depend on the
//! order of insertion.

use std::collections::BTreeMap;

use rusqlite::types::Value;

use super::file::IndexFile;

/// All rows of all tables, sorted.
pub(in crate::documents) fn dump(index: &IndexFile) -> Vec<String> {
    let queries = [
        "SELECT 'document', path, kind, turn, text FROM documents",
        "SELECT 'link', path, target FROM links JOIN documents ON id = source",
        "SELECT 'turn', * FROM turns",
        "SELECT 'research', * FROM research",
        "SELECT 'capture', * FROM captures",
        "SELECT 'redirect', * FROM redirects",
        "SELECT 'topic', * FROM topics",
        "SELECT 'gist', * FROM gists",
        "SELECT 'vector', model, of, hash, numbers FROM vectors JOIN spaces ON id = space",
        "SELECT 'meta', * FROM meta",
        "SELECT 'word', term, doc, col, offset FROM temp.instances",
    ];
    index
        .with_writer(|connection| {
            connection.execute_batch(
                "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab(main, words, instance)",
            )?;
            let mut names: BTreeMap<i64, String> = BTreeMap::new();
            let mut documents = connection.prepare("SELECT id, path FROM documents")?;
            let rows = documents.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            names.extend(rows.collect::<Result<Vec<_>, _>>()?);
            let mut lines = Vec::new();
            for sql in queries {
                let mut query = connection.prepare(sql)?;
                let columns = query.column_count();
                let mut rows = query.query([])?;
                while let Some(row) = rows.next()? {
                    let values = (0..columns).map(|at| row.get::<_, Value>(at));
                    let mut values = values.collect::<Result<Vec<_>, _>>()?;
                    if let (Value::Text(what), Some(Value::Integer(id))) = (&values[0], values.get(2))
                        && what == "word"
                    {
                        values[2] = Value::Text(names.get(id).cloned().unwrap_or_default());
                    }
                    lines.push(format!("{values:?}"));
                }
            }
            lines.sort();
            Ok(lines)
        })
        .unwrap()
}
