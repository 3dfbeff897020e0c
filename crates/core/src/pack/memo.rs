//! Substitutions made for earlier requests, by everything they depend on. Knows sizes and keys; does not know how a
//! substitution is made.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use super::history::Substitution;
use larder_text::hash::ContentHash;

/// The default capacity: enough for a thousand long conversations.
const DEFAULT_BYTES: usize = 8 << 20;
/// Bytes of an entry in addition to its texts.
const OVERHEAD: usize = 128;

/// A cache of substitutions, bounded in bytes and shared between requests. Its keys hash everything that a
/// substitution depends on, the owner of its pointers included, so a miss costs time but never changes the result.
///
/// When the young generation is full, it replaces the old one; a hit in the old generation moves the entry to the young
/// one. Entries in use therefore survive without any ordering.
#[derive(Debug)]
pub struct Memo {
    generation: usize,
    generations: Mutex<Generations>,
}

/// `None` if the message stays whole.
type Made = Option<Arc<Substitution>>;

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<ContentHash, Made>,
    old: HashMap<ContentHash, Made>,
    /// Bytes of the young generation.
    bytes: usize,
}

impl Default for Memo {
    fn default() -> Self {
        Self::new(DEFAULT_BYTES)
    }
}

impl Memo {
    /// Holds at max_bytes about `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self { generation: bytes / 2, generations: Mutex::default() }
    }

    /// The entry under this key, made by `make` on a miss.
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
    fn get(&mut self, key: ContentHash, max_bytes: usize) -> Option<Made> {
        if let Some(known) = self.young.get(&key) {
            return Some(known.clone());
        }
        let made = self.old.remove(&key)?;
        self.insert(key, made.clone(), max_bytes);
        Some(made)
    }

    fn insert(&mut self, key: ContentHash, made: Made, max_bytes: usize) {
        let size = OVERHEAD + made.as_ref().map_or(0, |made| made.bytes());
        if self.bytes + size > max_bytes {
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
