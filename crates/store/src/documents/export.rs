//! `larder export`: everything of a user as files that other programs read. What an export has of each class of data is
//! said by its rule.

use std::collections::BTreeSet;
use std::path::Path;

use larder_text::hash::ContentHash;
use larder_vault::layout::UserPlace;
use rusqlite::types::ValueRef;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::index::name_of;
use super::{Documents, UserDocuments, journal};
use larder_disk::StoreError;
use larder_disk::data_rules::{DataExport, user_tables};
use larder_disk::files;

/// What an export wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Rows of tables.
    pub rows: u64,
    /// Originals and other contents.
    pub contents: u64,
    /// Documents, and files of unfinished turns.
    pub documents: u64,
    /// All files but the manifest.
    pub files: u64,
    /// Contents that are damaged, so that they are left out.
    pub problems: Vec<String>,
}

impl Documents {
    /// Writes everything of a user to the folder `to`, which must be empty or missing: `tables/NAME.jsonl`, one row a
    /// line; `contents/HASH`, which rows refer to; `drafts/`, `documents/`, and last `manifest.json`. Secrets of keys are
    /// left out.
    ///
    /// # Errors
    /// [`StoreError::UnknownUser`] if nothing is stored of the user. Or reading or writing fails: then there is no
    /// manifest.
    pub fn export(&self, user: &str, to: &Path) -> Result<ExportReport, StoreError> {
        if !self.knows(user)? {
            return Err(StoreError::UnknownUser { user: user.to_owned() });
        }
        if !files::entries(to)?.is_empty() {
            return Err(StoreError::NotEmpty { path: to.to_path_buf() });
        }
        let mut export =
            Export { user: self.user(user)?, to, report: ExportReport::default(), tables: Vec::new() };
        for (table, rule) in user_tables() {
            match rule {
                DataExport::Rows(hidden) => export.rows(table, hidden)?,
                // Once for all places of contents.
                DataExport::Contents if table == "contents" => export.contents()?,
                DataExport::Contents => {}
                DataExport::Drafts => export.drafts()?,
                DataExport::Documents | DataExport::No(_) => {}
            }
        }
        export.documents()?;
        let manifest = json!({
            "user": user,
            "exported": self.store().now(),
            "by": concat!("larder ", env!("CARGO_PKG_VERSION")),
            "tables": export.tables,
            "written": export.report,
            "notes": "Times in tables are milliseconds since 1970-01-01T00:00:00Z; hashes name files in contents/.",
        });
        write(to, "manifest.json", format!("{manifest:#}\n").as_bytes())?;
        Ok(export.report)
    }

    /// Whether anything is stored of a user.
    ///
    /// # Errors
    /// Reading fails.
    pub fn knows(&self, user: &str) -> Result<bool, StoreError> {
        larder_disk::user::check(user)?;
        let has_rows = self.store().index().read(|tx| {
            let forgotten = "SELECT EXISTS (SELECT 1 FROM document_forgets WHERE id = ?1)".to_owned();
            let tables = user_tables()
                .map(|(table, _)| format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE user = ?1)"));
            for sql in tables.chain([forgotten]) {
                if tx.query_row(&sql, [user], |row| row.get(0))? {
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        let has_blobs = self.store().blobs().root().join(larder_disk::user::folder(user)).is_dir();
        Ok(has_rows || has_blobs || self.user_names()?.contains(&name_of(&UserPlace::new(user))))
    }
}

/// An export under way.
struct Export<'a> {
    user: UserDocuments,
    to: &'a Path,
    report: ExportReport,
    /// The tables with their numbers of rows.
    tables: Vec<Value>,
}

impl Export<'_> {
    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.report.files += 1;
        write(self.to, path, bytes)
    }

    fn rows(&mut self, table: &str, hidden: &[&str]) -> Result<(), StoreError> {
        let mut lines = String::new();
        let count = self.user.store.index().read(|tx| {
            let mut query = tx.prepare(&format!("SELECT * FROM {table} WHERE user = ?1"))?;
            let columns: Vec<String> = query.column_names().map(str::to_owned).collect();
            let mut rows = query.query([self.user.user()])?;
            let mut count: u64 = 0;
            while let Some(row) = rows.next()? {
                let mut values = Map::new();
                for (at, column) in
                    columns.iter().enumerate().filter(|(_, name)| !hidden.contains(&name.as_str()))
                {
                    values.insert(column.clone(), value(row.get_ref(at)?));
                }
                lines.push_str(&format!("{}\n", Value::Object(values)));
                count += 1;
            }
            Ok(count)
        })?;
        if count > 0 {
            self.write(&format!("tables/{table}.jsonl"), lines.as_bytes())?;
            self.tables.push(json!({"table": table, "rows": count, "left_out": hidden}));
            self.report.rows += count;
        }
        Ok(())
    }

    fn contents(&mut self) -> Result<(), StoreError> {
        let store = self.user.store.clone();
        let mut hashes: BTreeSet<ContentHash> = store.index().read(|tx| {
            let mut query = tx.prepare(
                "SELECT hash FROM contents WHERE user = ?1 UNION SELECT hash FROM segment_contents WHERE user = ?1",
            )?;
            let rows = query.query_map([store.user()], |row| Ok(ContentHash::from_bytes(row.get(0)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        hashes.extend(store.blobs().list(store.folder())?);
        for hash in hashes {
            match store.contents().get(hash) {
                // A collection may have erased it meanwhile.
                Err(StoreError::MissingBlob { .. }) => {}
                Err(error @ StoreError::CorruptBlob { .. }) => {
                    self.report.problems.push(format!("content {}: {error}", hash.to_hex()));
                }
                content => {
                    self.write(&format!("contents/{}", hash.to_hex()), &content?)?;
                    self.report.contents += 1;
                }
            }
        }
        Ok(())
    }

    fn drafts(&mut self) -> Result<(), StoreError> {
        for draft in self.user.drafts().list()? {
            let user = self.user.user();
            let found = self.user.store.index().read(|tx| journal::files_of(tx, user, draft.number))?;
            for (path, bytes) in found {
                self.write(&format!("drafts/turn_{:06}/{path}", draft.number), &bytes)?;
                self.report.documents += 1;
            }
        }
        Ok(())
    }

    fn documents(&mut self) -> Result<(), StoreError> {
        let mut folders = vec![format!("users/{}", self.user.name)];
        let months = self.user.tree().level("archive")?.folders;
        folders.extend(months.into_iter().map(|month| format!("archive/{month}/{}", self.user.name)));
        for folder in folders {
            for path in self.user.tree().list(&folder)? {
                if let Some(bytes) = self.user.tree().read(&path)? {
                    self.write(&format!("documents/{path}"), &bytes)?;
                    self.report.documents += 1;
                }
            }
        }
        Ok(())
    }
}

/// A value of a row: bytes in hexadecimal digits, objects and lists as they are.
fn value(of: ValueRef<'_>) -> Value {
    match of {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let parsed = serde_json::from_str(&text).ok();
            parsed
                .filter(|value: &Value| value.is_object() || value.is_array())
                .unwrap_or_else(|| text.into())
        }
    }
}

fn write(to: &Path, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let path = to.join(path);
    if let Some(folder) = path.parent() {
        files::create_dir_all(folder)?;
    }
    let written = files::open_private(&path).and_then(|mut file| std::io::Write::write_all(&mut file, bytes));
    written.map_err(StoreError::io(&path, "writing the export"))
}
