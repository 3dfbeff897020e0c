//! Renditions of messages that were made before, by everything they follow from. Knows sizes and keys; does not know
//! how a rendition is made.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use super::history::Replaced;
use larder_text::hash::ContentHash;

/// Bytes kept where nothing else is asked for; renditions of a thousand long conversations.
const DEFAULT_BYTES: usize = 8 << 20;
/// Bytes that an entry takes beside its texts.
const OVERHEAD: usize = 128;

/// Renditions made before, bounded in bytes and shared between requests: what is found here need not be made again.
/// A rendition is found by the hash of all that it follows from, the owner of its pointers included, so a miss is
/// slower and never different.
///
/// When the young generation is full it becomes the old one and the old one is dropped; a hit in the old one moves the
/// entry up. So what is in use survives, and nothing has to be ordered.
#[derive(Debug)]
pub struct Memo {
    generation: usize,
    generations: Mutex<Generations>,
}

/// None where the message stands whole.
type Made = Option<Arc<Replaced>>;

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<ContentHash, Made>,
    old: HashMap<ContentHash, Made>,
    /// Bytes of the young one.
    bytes: usize,
}

impl Default for Memo {
    fn default() -> Self {
        Self::new(DEFAULT_BYTES)
    }
}

impl Memo {
    /// Keeps about `bytes` bytes at most.
    pub fn new(bytes: usize) -> Self {
        Self { generation: bytes / 2, generations: Mutex::default() }
    }

    /// What was made under this key, or `make` of it.
    pub(super) fn get_or(&self, key: ContentHash, make: impl FnOnce() -> Made) -> Made {
        if let Some(known) = self.lock().get(key, self.generation) {
            return known;
        }
        let made = make();
        self.lock().insert(key, made.clone(), self.generation);
        made
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // A panic between two map operations leaves both maps usable.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn get(&mut self, key: ContentHash, most: usize) -> Option<Made> {
        if let Some(known) = self.young.get(&key) {
            return Some(known.clone());
        }
        let made = self.old.remove(&key)?;
        self.insert(key, made.clone(), most);
        Some(made)
    }

    fn insert(&mut self, key: ContentHash, made: Made, most: usize) {
        let size = OVERHEAD + made.as_ref().map_or(0, |made| made.bytes());
        if self.bytes + size > most {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += size;
        self.young.insert(key, made);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: usize) -> ContentHash {
        ContentHash::of(&of.to_le_bytes())
    }

    #[test]
    fn what_is_in_use_survives_and_the_size_is_bounded() {
        let memo = Memo::new(100 * OVERHEAD);
        for of in 0..1_000 {
            assert_eq!(memo.get_or(key(of), || None), None);
            memo.get_or(key(0), || unreachable!("in use"));
        }
        let generations = memo.lock();
        assert!(generations.young.len() + generations.old.len() <= 101);
    }
}
