//! Counts already made, by content. Knows nothing of vocabularies: each counter has a cache of its own.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_128;

/// Counts kept per generation. Two generations of 24-byte entries stay below 8 MB per vocabulary.
const GENERATION: usize = 1 << 17;

/// A bounded map from the 128-bit hash of a text to its count.
///
/// When the young generation is full it becomes the old one and the old one is dropped; a hit in the old one
/// moves the entry up. So what is in use survives, and nothing has to be ordered.
#[derive(Default)]
pub(super) struct Cache(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<u128, usize>,
    old: HashMap<u128, usize>,
}

impl Cache {
    /// The count of `text`, made by `count` unless it is known.
    pub(super) fn get_or(&self, text: &str, count: impl FnOnce(&str) -> usize) -> usize {
        let key = xxh3_128(text.as_bytes());
        if let Some(known) = self.lock().get(key) {
            return known;
        }
        let tokens = count(text);
        self.lock().insert(key, tokens);
        tokens
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        // A panic between two map operations leaves both maps usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn get(&mut self, key: u128) -> Option<usize> {
        if let Some(&tokens) = self.young.get(&key) {
            return Some(tokens);
        }
        let tokens = self.old.remove(&key)?;
        self.insert(key, tokens);
        Some(tokens)
    }

    fn insert(&mut self, key: u128, tokens: usize) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_text_is_not_counted_again() {
        let cache = Cache::default();
        assert_eq!(cache.get_or("larder", |_| 3), 3);
        assert_eq!(cache.get_or("larder", |_| unreachable!("known")), 3);
    }

    #[test]
    fn entries_in_use_survive_and_the_size_is_bounded() {
        let cache = Cache::default();
        for n in 0..3 * GENERATION {
            cache.get_or(&n.to_string(), |_| n);
            if n % 1000 == 0 {
                assert_eq!(cache.get_or("0", |_| unreachable!("in use")), 0);
            }
        }
        let generations = cache.lock();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION);
    }
}
