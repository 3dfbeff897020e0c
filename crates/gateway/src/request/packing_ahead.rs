//! Large originals are packed for the store on another thread, while the window that replaces them is decided. Knows
//! neither windows nor requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use larder_proxy::window::UnstoredOriginal;
use larder_store::{NewBytes, NewPointer, PackedContent, StoreError, UserStore};
use larder_text::hash::ContentHash;
use larder_text::parallel::give_way;

/// Contents that are packed, by their hashes.
#[derive(Default)]
pub struct PackedAhead(Mutex<BTreeMap<ContentHash, Result<PackedContent, StoreError>>>);

impl PackedAhead {
    /// Packs a text, unless it is packed already.
    pub fn pack(&self, hash: ContentHash, text: &str) {
        if self.lock().contains_key(&hash) {
            return;
        }
        // Once, for what the decision waits for: others' tasks are not to delay this request any further.
        let mut gave_way = false;
        let packed = PackedContent::new(text.as_bytes(), hash, || gave_way = gave_way || give_way());
        self.lock().insert(hash, packed);
    }

    /// Stores originals: each has its text, or is packed here.
    ///
    /// # Errors
    /// If one of them could not be packed, or the store cannot write.
    pub fn store(&self, store: &UserStore, originals: &[UnstoredOriginal]) -> Result<(), StoreError> {
        let mut all = std::mem::take(&mut *self.lock());
        let failed = originals.iter().find(|original| matches!(all.get(&original.hash), Some(Err(_))));
        if let Some(Err(error)) = failed.and_then(|original| all.remove(&original.hash)) {
            return Err(error);
        }
        let new: Vec<NewPointer<'_>> = originals
            .iter()
            .map(|UnstoredOriginal { hash, text, kind, display }| NewPointer {
                content: match (text, all.get(hash)) {
                    (Some(text), _) => text.as_bytes().into(),
                    (None, Some(Ok(packed))) => NewBytes::Packed(packed),
                    (None, _) => unreachable!("an original without its text was packed"),
                },
                kind,
                display_text: display,
            })
            .collect();
        store.pointers().insert_all(&new).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ContentHash, Result<PackedContent, StoreError>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use larder_store::{Store, StoreOptions};

    use super::*;

    #[test]
    fn originals_that_are_alike_are_stored_once() {
        let dir = tempfile::tempdir().unwrap();
        let user =
            Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap().user("ann").unwrap();
        let (text, packed) = ("a result\n".repeat(9_000), PackedAhead::default());
        let hash = ContentHash::new(text.as_bytes());
        packed.pack(hash, &text);
        let original =
            || UnstoredOriginal { hash, text: None, kind: "log", display: "message 3 (tool)".to_owned() };
        packed.store(&user, &[original(), original()]).unwrap();
        assert_eq!(user.contents().get(hash).unwrap(), text.as_bytes());
    }
}
