//! A store for cases that need one, in a folder of this process: one user whose contents are known, and another one.

use std::path::PathBuf;
use std::sync::LazyLock;

use larder_store::{Store, StoreError, StoreOptions, UserStore};
use larder_text::pointer::Pointer;

/// A content with lines of several kinds.
pub(super) const CONTENT: &str =
    "first\nsecond, with \u{e9} and \u{1f980}\r\n\nfourth\nthe last one ends nowhere";

/// Two users of one store.
pub(super) struct Kept {
    /// Whose pointers are ours.
    pub ours: UserStore,
    /// Our pointer to [`CONTENT`].
    pub pointer: Pointer,
    /// The other user's pointer to the same content.
    pub foreign: Pointer,
}

static KEPT: LazyLock<Result<Kept, String>> = LazyLock::new(|| open().map_err(|error| error.to_string()));

/// The store.
pub(super) fn kept() -> Result<&'static Kept, String> {
    KEPT.as_ref().map_err(Clone::clone)
}

/// Removes the store of this process from the disk.
pub(super) fn clean() {
    // Nothing is lost where it stays.
    let _ = std::fs::remove_dir_all(folder());
}

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("larder-fuzz-{}", std::process::id()))
}

fn open() -> Result<Kept, StoreError> {
    let store = Store::open(&folder(), StoreOptions::default())?;
    let (ours, other) = (store.user("ours")?, store.user("other")?);
    let pointer = ours.pointers().insert(CONTENT.as_bytes(), "part", "")?.pointer_id;
    let foreign = other.pointers().insert(CONTENT.as_bytes(), "part", "")?.pointer_id;
    Ok(Kept { ours, pointer, foreign })
}
