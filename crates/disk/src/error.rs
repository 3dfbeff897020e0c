//! The store's errors, each with a message that says how to fix it. Knows the causes, not the callers.

use std::io;
use std::path::{Path, PathBuf};

use larder_text::pointer::Pointer;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

use crate::Timestamp;
use larder_text::select::SelectError;

/// Every error of the store. Each message names the file or id and says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No space, or a quota is used up.
    #[error("{}: no space left while {action}; nothing was partially written: free some space and try again", path.display())]
    DiskFull {
        /// The file or folder.
        path: PathBuf,
        /// The operation in progress.
        action: &'static str,
    },
    /// The file system or the file is read-only, or permission is missing.
    #[error("{}: not writable while {action}; make it writable, or name another folder (a home with --home or LARDER_HOME)", path.display())]
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
        /// The operation in progress.
        action: &'static str,
    },
    /// The store is as large as the settings allow, and nothing in it may be removed.
    #[error(
        "the store is larger than retention.max_gb, and the rest was used within 24 hours or documents or messages refer to it; \
         raise retention.max_gb, then run `larder gc`"
    )]
    OverLimit,
    /// Another process has held the lock for too long.
    #[error("{}: another process has kept this locked for too long; wait for it or stop it, then try again", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Any other file system error.
    #[error("{}: failed while {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation in progress.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Any other error of the index.
    #[error("{}: the index failed: {source}", path.display())]
    Index {
        /// The index file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The index is damaged.
    #[error(
        "{}: damaged ({detail}); run `larder repair --home {}`, which rebuilds it from the contents, or restore a backup \
         with `larder restore`",
        path.display(),
        path.parent().unwrap_or(path).display()
    )]
    IndexCorrupt {
        /// The index file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The index belongs to something else.
    #[error("{}: an SQLite file, but not one of Larder's; name another folder with --home or LARDER_HOME", path.display())]
    NotAStore {
        /// The index file.
        path: PathBuf,
    },
    /// The index was written by a newer version.
    #[error("{}: format version {found}, but this version of Larder supports up to {known}; use a newer Larder, or another --home", path.display())]
    SchemaTooNew {
        /// The index file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version this build knows.
        known: i64,
    },
    /// The index exists, but the key that minted its pointers is missing.
    #[error("{}: missing, although the folder contains a store; restore it from a backup: without it no pointer resolves", path.display())]
    KeyMissing {
        /// The key file.
        path: PathBuf,
    },
    /// The key file is not a key of this store.
    #[error("{}: {reason}; restore the key of this store from a backup", path.display())]
    KeyInvalid {
        /// The key file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The user id cannot be used.
    #[error("user id {user:?}: {reason}")]
    InvalidUser {
        /// The id, shortened.
        user: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Nothing is stored of the user.
    #[error("user {user:?}: nothing is stored of this user; check the id")]
    UnknownUser {
        /// The id.
        user: String,
    },
    /// A folder that should be empty is not.
    #[error("{}: not empty; name a folder that is empty or does not exist", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A folder is not a backup.
    #[error("{}: not a backup: it has no backup.json that can be read; name a folder that `larder backup` has written", path.display())]
    NotABackup {
        /// The folder.
        path: PathBuf,
    },
    /// A name cannot be used.
    #[error("{what} {name:?}: {reason}")]
    InvalidName {
        /// What it names.
        what: &'static str,
        /// The name, shortened.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The content of a blob does not match its name.
    #[error("{}: damaged blob ({reason}); put the original content again, or restore the file from a backup", path.display())]
    CorruptBlob {
        /// The blob file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A blob is not there.
    #[error("{}: no such blob; put the original content again, or restore the file from a backup", path.display())]
    MissingBlob {
        /// Where it should be.
        path: PathBuf,
    },
    /// The pointer was not minted by this store for this user.
    #[error(
        "pointer {pointer}: not created in this store for this user; copy it exactly from where Larder wrote it"
    )]
    NotOurs {
        /// The pointer.
        pointer: Box<Pointer>,
    },
    /// The pointer is valid, but there is no content for it.
    #[error("pointer {pointer}: nothing is stored under it; its content was deleted or never written")]
    UnknownPointer {
        /// The pointer.
        pointer: Box<Pointer>,
    },
    /// Two different contents share the digits a pointer carries.
    #[error(
        "pointer name {name} is already taken by other content ({held}, not {refused}); change the new content by a byte"
    )]
    NameTaken {
        /// The digits.
        name: String,
        /// The hash of the content that has the name.
        held: String,
        /// The hash of the content refused.
        refused: String,
    },
    /// The original was erased, since nothing used it for as long as the settings keep originals.
    #[error(
        "{pointer}: expired on {}: it was not used for as long as `retention` in larder.toml keeps originals; get the \
         content from its source again",
        expired.date()
    )]
    Expired {
        /// The pointer.
        pointer: Box<Pointer>,
        /// When it was erased.
        expired: Timestamp,
    },
    /// No run has this id.
    #[error("run {id}: no such run; `larder runs` lists the existing ones")]
    UnknownRun {
        /// The id.
        id: String,
    },
    /// A run with this id was already recorded.
    #[error("run {id}: already recorded; a run is recorded once, under a new id")]
    RunExists {
        /// The id.
        id: String,
    },
    /// No revision has this number.
    #[error("revision {number}: no such revision; `larder revisions` lists the existing ones, 0 to {newest}")]
    UnknownRevision {
        /// The number.
        number: u64,
        /// The newest one.
        newest: u64,
    },
    /// Everything of the user is being deleted, or was after what writes began.
    #[error(
        "user {user:?}: everything of this user is being deleted, or was since this began; begin it anew"
    )]
    BeingDeleted {
        /// The id of the user.
        user: String,
    },
    /// No key has this id.
    #[error("key {id}: no such key; `larder keys` lists the existing ones")]
    UnknownKey {
        /// The id.
        id: String,
    },
    /// A key with this id is there already.
    #[error("key {id}: this id is taken; create the key again with a new id")]
    KeyExists {
        /// The id.
        id: String,
    },
    /// The key has been revoked.
    #[error("key {id}: revoked; create a new one with `larder keys create`")]
    KeyRevoked {
        /// The id.
        id: String,
    },
    /// No intervention has this number.
    #[error("intervention {id}: no such intervention; `larder interventions` lists the existing ones")]
    UnknownIntervention {
        /// The number.
        id: u64,
    },
    /// The intervention is settled already.
    #[error("intervention {id}: already resolved; the first resolution stays")]
    InterventionResolved {
        /// The number.
        id: u64,
    },
    /// There is no such conversation, or this user neither began it nor takes part under that name.
    #[error("conversation {id}: none of yours; check the id and the participant")]
    UnknownConversation {
        /// The id.
        id: String,
    },
    /// The track has no message of this number.
    #[error("message {number}: no such message in this conversation")]
    UnknownMessage {
        /// The number; 0 if any would do.
        number: u64,
    },
    /// The message has its reply, or no longer waits for one.
    #[error("message {number}: already answered, or replaced by another; read the conversation again")]
    Answered {
        /// Its number.
        number: u64,
    },
    /// Something was erased while other work read it.
    #[error("something that this was made from was erased meanwhile; it is made again from what remains")]
    ErasedMeanwhile,
    /// A key was used for another message.
    #[error(
        "Idempotency-Key {key:?}: used for another message of this conversation; send a new key with a new message"
    )]
    KeyTaken {
        /// The key.
        key: String,
    },
    /// A key was used for a message that is gone.
    #[error(
        "Idempotency-Key {key:?}: the message that it was used for was deleted; send a new key to post one"
    )]
    KeyGone {
        /// The key.
        key: String,
    },
    /// A message is not the last one of its participant.
    #[error("message {number} is no longer the last one: another was posted after it")]
    NotLast {
        /// Its number.
        number: u64,
    },
    /// No job of this user has this number.
    #[error("job {id}: no such job; `larder jobs` lists those that wait, run or have failed")]
    UnknownJob {
        /// The number.
        id: u64,
    },
    /// Nothing that this user published, or may revoke, has this number.
    #[error(
        "publication {id}: you published nothing with this number; `larder share list` shows what is published and by whom"
    )]
    UnknownPublication {
        /// The number.
        id: u64,
    },
    /// A job that is running can be neither cancelled nor repeated.
    #[error("job {id}: running; wait until it ends")]
    JobRunning {
        /// The number.
        id: u64,
    },
    /// A record could not be written or read as JSON.
    #[error("{what}: not a valid record: {source}")]
    Record {
        /// Which record.
        what: String,
        /// The JSON parser's error.
        source: serde_json::Error,
    },
    /// The system returned no random bytes.
    #[error("no random bytes from the system: {source}")]
    Randomness {
        /// The error of the source of randomness.
        source: io::Error,
    },
    /// A document is not the one that was read.
    #[error("{path}: changed since it was read; read it again and repeat the change")]
    Changed {
        /// The document.
        path: String,
    },
    /// A path that this user has no business with.
    #[error("{path}: not a document of this user; expected a path below {expected}")]
    Foreign {
        /// The path.
        path: String,
        /// The folder of the user's documents.
        expected: String,
    },
    /// A symbolic link is in the place of a folder or a file.
    #[error("{}: a symbolic link; links are not followed: replace it with the real file or folder", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// A document that should be text is not.
    #[error("{path}: not UTF-8 from byte {at} on; save the file as UTF-8")]
    NotText {
        /// The document.
        path: String,
        /// The first byte that is wrong.
        at: usize,
    },
    /// A turn cannot be committed in its current state.
    #[error("turn {number}: {reason}")]
    BadTurn {
        /// Its number.
        number: u32,
        /// What is wrong, and how to fix it.
        reason: String,
    },
    /// The address of the documents cannot be used.
    #[error("documents at {place:?}: {reason}")]
    BadPlace {
        /// The address.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The object store failed.
    #[error("{path}: the object store failed while {action}: {source}")]
    Objects {
        /// The document or folder.
        path: String,
        /// The operation in progress.
        action: &'static str,
        /// The object store's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The requested part of the content cannot be returned.
    #[error(transparent)]
    Select(#[from] SelectError),
}

impl StoreError {
    /// An error about what a file below `copy` contains, with the file below `from` that it was copied from: the copy goes.
    #[must_use]
    pub fn of_original(mut self, copy: &Path, from: &Path) -> Self {
        if let Self::Index { path, .. }
        | Self::IndexCorrupt { path, .. }
        | Self::NotAStore { path }
        | Self::SchemaTooNew { path, .. }
        | Self::KeyMissing { path }
        | Self::KeyInvalid { path, .. } = &mut self
            && let Ok(inside) = path.strip_prefix(copy)
        {
            *path = from.join(inside);
        }
        self
    }

    /// Whether stored bytes are lost or do not match their name.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::CorruptBlob { .. } | Self::MissingBlob { .. })
    }

    /// Whether nothing can be written for now, by anyone.
    pub const fn is_unwritable(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::OverLimit)
    }

    /// Maps an IO error to the variant whose message says how to fix it.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_path_buf();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path, action },
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    Self::ReadOnly { path, action }
                }
                _ => Self::Io { path, action, source },
            }
        }
    }

    /// Adds the index file to an SQLite error and picks the variant whose message says how to fix it.
    pub fn at_index(self, index: &Path) -> Self {
        let Self::Index { source, .. } = self else { return self };
        let path = index.to_path_buf();
        let action = "using the index";
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull { path, action },
            // It found no room for the file that processes share.
            Some(ErrorCode::SystemIoFailure)
                if source.sqlite_error().is_some_and(|of| of.extended_code == SQLITE_IOERR_SHMSIZE) =>
            {
                Self::DiskFull { path, action }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path, action },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::IndexCorrupt { path, detail: source.to_string() }
            }
            _ => Self::Index { path, source },
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    /// The path is filled in by `StoreError::at_index`.
    fn from(source: rusqlite::Error) -> Self {
        Self::Index { path: PathBuf::new(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_classified_by_their_fix() {
        let at = Path::new("home/x");
        let of = |kind: io::ErrorKind| StoreError::io(at, "writing")(kind.into());
        assert!(matches!(of(io::ErrorKind::StorageFull), StoreError::DiskFull { .. }));
        assert!(matches!(of(io::ErrorKind::QuotaExceeded), StoreError::DiskFull { .. }));
        assert!(matches!(of(io::ErrorKind::ReadOnlyFilesystem), StoreError::ReadOnly { .. }));
        assert!(matches!(of(io::ErrorKind::PermissionDenied), StoreError::ReadOnly { .. }));
        assert!(of(io::ErrorKind::InvalidData).to_string().starts_with("home/x: failed while writing"));
    }

    #[test]
    fn a_disk_without_room_for_what_processes_share_is_full() {
        let of = |code: i32| {
            let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            StoreError::from(source).at_index(Path::new("home/index.sqlite"))
        };
        assert!(of(SQLITE_IOERR_SHMSIZE).is_unwritable());
        assert!(matches!(of(rusqlite::ffi::SQLITE_IOERR_READ), StoreError::Index { .. }));
    }
}
