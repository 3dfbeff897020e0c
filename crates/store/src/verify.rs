//! Checks a whole store: every row has its blobs, every blob its hash. What the crash tests and backups call.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerId};
use rusqlite::Transaction;

use crate::contents::{COLUMNS, RecordRow, record_row};
use crate::retention;
use crate::runs::RunRecord;
use crate::store::{Store, UserStore};
use crate::transcripts::{self, PayloadRef};
use larder_disk::StoreError;
use larder_disk::files::{self, FolderEntry, TEMP_PREFIX};
use larder_disk::frame::FrameReader;
use larder_disk::segments::is_segment;
use larder_disk::user;

/// What a check found.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Pointers checked.
    pub pointers: u64,
    /// Runs checked.
    pub runs: u64,
    /// Lines of transcripts checked.
    pub transcript_lines: u64,
    /// Originals that expired: their pointers say so.
    pub tombstones: u64,
    /// Blobs, rows and files, that were read and checked against their hashes.
    pub blobs: u64,
    /// The bytes of their contents, uncompressed.
    pub content_bytes: u64,
    /// Blobs without a row: files of a process that stopped before it wrote the row. Harmless.
    pub unreferenced: u64,
    /// Unfinished files of dead processes that were removed.
    pub removed_temporaries: u64,
    /// Contents that something names and that are not there, with their users.
    pub(crate) missing: Vec<(String, ContentHash)>,
    /// What is wrong, in the order found.
    pub problems: Vec<VerifyProblem>,
}

impl VerifyReport {
    /// Whether there are no problems.
    pub const fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, what: impl Into<String>, error: StoreError) {
        self.problems.push(VerifyProblem { what: what.into(), error });
    }
}

/// One problem of a store.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct VerifyProblem {
    /// The pointer, run or file it was found at.
    pub what: String,
    /// What is wrong and how to fix it.
    pub error: StoreError,
}

/// A row's reference to a blob.
struct BlobClaim {
    what: String,
    user: String,
    blob: BlobAt,
    bytes: Option<u64>,
}

impl BlobClaim {
    /// Whether some row still names the blob.
    fn stands(&self, tx: &Transaction<'_>) -> Result<bool, StoreError> {
        retention::is_named(tx, &self.user, self.blob.1)
    }
}

/// The folder and the address of a blob.
type BlobAt = (String, ContentHash);
/// Blobs that were read, with their lengths; `None` for damaged ones, which are in the report already.
type Found = BTreeMap<BlobAt, Option<u64>>;

impl Store {
    /// Reads the whole index and every blob, and removes leftovers of dead processes.
    ///
    /// Other processes may continue to use the store: rows are read before blobs, and blobs are written before rows.
    /// Only a check that cannot run is an `Err`; problems of the store are in the report.
    pub fn verify(&self) -> Result<VerifyReport, StoreError> {
        let (mut report, mut records) = (VerifyReport::default(), Vec::new());
        let (claims, mut found) = self.index().read(|tx| {
            check_pages(tx, self.index().path(), &mut report)?;
            let mut claims = check_pointers(self, tx, &mut report)?;
            claims.extend(check_runs(tx, &mut report)?);
            check_run_pointers(self, tx, &mut report)?;
            claims.extend(check_transcripts(self, tx, &mut report)?);
            let count = tx.query_row("SELECT count(*) FROM tombstones", [], |row| row.get::<_, i64>(0))?;
            report.tombstones = count.unsigned_abs();
            records = RecordEntry::all(tx)?;
            Ok((claims, check_contents(self, tx, &mut report)?))
        })?;
        for entry in files::entries(self.home())? {
            sweep(&entry, &mut report)?;
        }
        check_records(self, &records, &mut report, &mut found)?;
        check_files(self, &mut report, &mut found)?;
        for claim in &claims {
            match check_claim(self, claim, &mut found) {
                // A collection may have erased it since the rows were read.
                Err(StoreError::MissingBlob { .. }) if !self.index().read(|tx| claim.stands(tx))? => {}
                Err(error) => {
                    if matches!(error, StoreError::MissingBlob { .. }) {
                        report.missing.push((claim.user.clone(), claim.blob.1));
                    }
                    report.problem(claim.what.clone(), error);
                }
                Ok(()) => {}
            }
        }
        let named: BTreeSet<_> = claims.iter().map(|claim| &claim.blob).collect();
        report.blobs = found.len() as u64;
        report.content_bytes = found.values().flatten().sum();
        report.unreferenced = found.keys().filter(|blob| !named.contains(blob)).count() as u64;
        Ok(report)
    }
}

fn check_pointers(
    store: &Store,
    tx: &Transaction<'_>,
    report: &mut VerifyReport,
) -> Result<Vec<BlobClaim>, StoreError> {
    let mut claims = Vec::new();
    let mut query = tx.prepare("SELECT user, name, content, bytes FROM pointers")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (user, name): (String, String) = (row.get(0)?, row.get(1)?);
        let hash = ContentHash::from_bytes(row.get(2)?);
        let what = format!("pointer {name} of user {user:?}");
        if PointerId::name_of(hash) != name {
            let detail = "the name is not that of the content".to_owned();
            report.problem(&what, StoreError::IndexCorrupt { path: store.index().path().to_owned(), detail });
        }
        let bytes = Some(row.get::<_, i64>(3)?.unsigned_abs());
        claims.push(BlobClaim { what, blob: (user::folder(&user), hash), user, bytes });
        report.pointers += 1;
    }
    Ok(claims)
}

/// Every pointer in a prompt of a run must resolve, or say when it expired.
fn check_run_pointers(
    store: &Store,
    tx: &Transaction<'_>,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let mut query = tx.prepare("SELECT user, run_id, pointer FROM run_pointers")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (user, run, text): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let checked =
            parse_pointer(&text).and_then(|pointer| require_known(&store.user(&user)?, tx, &pointer));
        if let Err(error) = checked {
            report.problem(format!("run {run} of user {user:?}"), error);
        }
    }
    Ok(())
}

/// Fails for a pointer whose original is neither there nor expired.
fn require_known(user: &UserStore, tx: &Transaction<'_>, pointer: &Pointer) -> Result<(), StoreError> {
    match user.pointers().require(tx, pointer) {
        Ok(_) | Err(StoreError::Expired { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Every pointer in a transcript must resolve or say when it expired, and every payload be there.
fn check_transcripts(
    store: &Store,
    tx: &Transaction<'_>,
    report: &mut VerifyReport,
) -> Result<Vec<BlobClaim>, StoreError> {
    let mut claims = Vec::new();
    let mut noted = tx.prepare("SELECT 1 FROM transcript_pointers WHERE user = ?1 AND name = ?2")?;
    transcripts::each_line(tx, |user, what, line| {
        report.transcript_lines += 1;
        let checked = line.and_then(|line| {
            let user_store = store.user(&user)?;
            line.pointers.iter().try_for_each(|pointer| match require_known(&user_store, tx, pointer) {
                // A version before 24 forgot that it had expired.
                Err(StoreError::UnknownPointer { .. }) if !noted.exists((&user, pointer.id.name()))? => {
                    Ok(())
                }
                known => known,
            })?;
            let blob = |payload: PayloadRef| BlobClaim {
                what: what.clone(),
                user: user.clone(),
                blob: (user::folder(&user), payload.hash),
                bytes: Some(payload.bytes),
            };
            claims.extend(std::iter::once(line.raw).chain(line.sent).map(blob));
            Ok(())
        });
        if let Err(error) = checked {
            report.problem(&what, error);
        }
    })?;
    Ok(claims)
}

/// Reads every content that is a row.
fn check_contents(
    store: &Store,
    tx: &Transaction<'_>,
    report: &mut VerifyReport,
) -> Result<Found, StoreError> {
    let (mut found, mut reader) = (Found::new(), FrameReader::new()?);
    let mut query = tx.prepare("SELECT user, hash, frame FROM contents")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (user, frame): (String, Vec<u8>) = (row.get(0)?, row.get(2)?);
        let hash = ContentHash::from_bytes(row.get(1)?);
        let read = store.user(&user)?.contents().decode_row(&mut reader, hash, &frame);
        found.insert((user::folder(&user), hash), read.as_ref().ok().map(|content| content.len() as u64));
        if let Err(error) = read {
            report.problem("contents", error);
        }
    }
    Ok(found)
}

/// An entry of a record.
struct RecordEntry {
    user: String,
    hash: ContentHash,
    row: RecordRow,
}

impl RecordEntry {
    /// All of them, in the order of the files.
    fn all(tx: &Transaction<'_>) -> Result<Vec<Self>, StoreError> {
        let sql = format!("SELECT user, hash, {COLUMNS} FROM segment_contents ORDER BY user, segment, at");
        let mut query = tx.prepare(&sql)?;
        let rows = query.query_map([], |row| {
            let hash = ContentHash::from_bytes(row.get(1)?);
            Ok(Self { user: row.get(0)?, hash, row: record_row(row, 2)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Reads every content that is in a segment, and what its record says for a new index.
fn check_records(
    store: &Store,
    entries: &[RecordEntry],
    report: &mut VerifyReport,
    found: &mut Found,
) -> Result<(), StoreError> {
    for RecordEntry { user, hash, row } in entries {
        let user = store.user(user)?;
        let said = store.segments().read(user.folder(), row.place).and_then(|record| {
            let fits = (record.owner == user.user(), record.hash, record.base, record.pointer.is_some());
            (fits == (true, *hash, row.base, row.has_pointer)).then_some(()).ok_or_else(|| {
                let reason = format!("the record at byte {} says other than the index", row.place.at);
                let path = store.segments().path(user.folder(), row.place.segment);
                StoreError::CorruptBlob { path, reason }
            })
        });
        let read = user.contents().read(*hash, |_| ());
        let length = said.and(read);
        // A collection may have moved or erased it since the entries were read.
        if length.is_err() && user.contents().record(*hash)? != Some(*row) {
            continue;
        }
        found.insert((user.folder().to_owned(), *hash), length.as_ref().ok().copied());
        if let Err(error) = length {
            report.problem(format!("content {hash} of user {:?}", user.user()), error);
        }
    }
    Ok(())
}

/// Reads every content that is a file.
fn check_files(store: &Store, report: &mut VerifyReport, found: &mut Found) -> Result<(), StoreError> {
    for user in files::entries(store.blobs().root())? {
        for shard in files::entries(&user.path)? {
            if is_segment(&shard.name) {
                continue;
            }
            for file in files::entries(&shard.path)? {
                if sweep(&file, report)? {
                    continue;
                }
                let read = parse_blob_name(&shard, &file).and_then(|hash| {
                    let read = store.blobs().read(&user.name, hash, |_| ());
                    // It may be left of a content that has become a record.
                    found.entry((user.name.clone(), hash)).or_insert_with(|| read.as_ref().ok().copied());
                    read
                });
                if let Err(error) = read {
                    report.problem("blobs", error);
                }
            }
        }
    }
    Ok(())
}

fn check_claim(store: &Store, claim: &BlobClaim, found: &mut Found) -> Result<(), StoreError> {
    let (folder, hash) = &claim.blob;
    let length = match found.get(&claim.blob) {
        Some(length) => *length,
        // Missing, or written since the folder was listed.
        None => {
            let length = Some(store.user(&claim.user)?.contents().read(*hash, |_| ())?);
            found.insert(claim.blob.clone(), length);
            length
        }
    };
    match (length, claim.bytes) {
        (Some(length), Some(bytes)) if length != bytes => {
            let reason = format!("{length} bytes long, where its row says {bytes}");
            Err(StoreError::CorruptBlob { path: store.blobs().path(folder, *hash), reason })
        }
        _ => Ok(()),
    }
}

fn check_pages(tx: &Transaction<'_>, path: &Path, report: &mut VerifyReport) -> Result<(), StoreError> {
    let mut query = tx.prepare("PRAGMA integrity_check(20)")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let detail: String = row.get(0)?;
        if detail != "ok" {
            report.problem("index", StoreError::IndexCorrupt { path: path.to_owned(), detail });
        }
    }
    Ok(())
}

fn check_runs(tx: &Transaction<'_>, report: &mut VerifyReport) -> Result<Vec<BlobClaim>, StoreError> {
    let mut claims = Vec::new();
    let mut query = tx.prepare("SELECT user, run_id, record, receipt, output FROM runs")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (user, run, json): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (receipt, output): ([u8; 32], Option<[u8; 32]>) = (row.get(3)?, row.get(4)?);
        let what = format!("run {run} of user {user:?}");
        let hashes = [Some(receipt), output].map(|hash| hash.map(ContentHash::from_bytes));
        match serde_json::from_str::<RunRecord>(&json) {
            Ok(record) if [Some(record.receipt), record.output] == hashes => {}
            Ok(_) => report
                .problem(&what, invalid("record", "refers to a different receipt or output than its row")),
            Err(source) => report.problem(&what, StoreError::Record { what: "record".to_owned(), source }),
        }
        let blobs = hashes.into_iter().flatten().map(|hash| (user::folder(&user), hash));
        claims.extend(blobs.map(|blob| BlobClaim {
            what: what.clone(),
            user: user.clone(),
            blob,
            bytes: None,
        }));
        report.runs += 1;
    }
    Ok(claims)
}

fn invalid(what: &str, reason: &str) -> StoreError {
    StoreError::Record { what: what.to_owned(), source: serde::de::Error::custom(reason) }
}

fn parse_pointer(text: &str) -> Result<Pointer, StoreError> {
    text.parse().map_err(|_| invalid(&format!("pointer {text:?}"), "not a pointer"))
}

fn parse_blob_name(shard: &FolderEntry, file: &FolderEntry) -> Result<ContentHash, StoreError> {
    let hash = format!("{}{}", shard.name, file.name).parse::<ContentHash>();
    hash.ok().filter(|hash| hash.to_hex()[..2] == *shard.name).ok_or_else(|| StoreError::CorruptBlob {
        path: file.path.clone(),
        reason: "its name is not that of a blob".to_owned(),
    })
}

/// Removes a temporary file whose writer is dead; returns whether it is a temporary file at all.
fn sweep(entry: &FolderEntry, report: &mut VerifyReport) -> Result<bool, StoreError> {
    if !entry.name.starts_with(TEMP_PREFIX) {
        return Ok(false);
    }
    if files::is_abandoned(&entry.path) {
        match std::fs::remove_file(&entry.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::io(&entry.path, "removing an unfinished file")(error));
            }
            _ => report.removed_temporaries += 1,
        }
    }
    Ok(true)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
