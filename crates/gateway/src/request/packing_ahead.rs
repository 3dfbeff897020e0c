//! Large originals are packed for the store on another thread, while the window that replaces them is decided. Knows
//! neither windows nor requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use larder_proxy::window::UnstoredOriginal;
use larder_store::{NewBytes, NewPointer, PackedContent, StoreError, UserStore};
use larder_text::hash::ContentHash;

/// Contents that are packed, by their hashes.
#[derive(Default)]
pub struct PackedAhead(Mutex<BTreeMap<ContentHash, Result<PackedContent, StoreError>>>);

impl PackedAhead {
    /// Packs a text, unless it is packed already.
    pub fn pack(&self, hash: ContentHash, text: &str) {
        if self.lock().contains_key(&hash) {
            return;
        }
        let packed = PackedContent::new(text.as_bytes());
        self.lock().insert(hash, packed);
    }

    /// Stores originals: each has its text, or is packed here.
    ///
    /// # Errors
    /// If one of them could not be packed, or the store cannot write.
    pub fn store(&self, store: &UserStore, originals: &[UnstoredOriginal]) -> Result<(), StoreError> {
        let mut all = std::mem::take(&mut *self.lock());
        let packed: Vec<Option<PackedContent>> = originals
            .iter()
            .map(|original| all.remove(&original.hash).transpose())
            .collect::<Result<_, _>>()?;
        let new: Vec<NewPointer<'_>> = originals
            .iter()
            .zip(&packed)
            .map(|(UnstoredOriginal { text, kind, display, .. }, packed)| NewPointer {
                content: match (text, packed) {
                    (Some(text), _) => text.as_bytes().into(),
                    (None, Some(packed)) => NewBytes::Packed(packed),
                    (None, None) => unreachable!("an original without its text was packed"),
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
