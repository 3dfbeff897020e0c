//! A map of bounded size. Does not know what it caches.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A map that evicts entries which have not been used recently.
///
/// It keeps two generations. When the young one is full it replaces the old one, which is dropped; a hit in the old
/// generation promotes the entry. Entries in use therefore survive without any ordering to maintain.
#[derive(Debug)]
pub struct Cache<K, V> {
    generation: usize,
    entries: Mutex<Generations<K, V>>,
}

#[derive(Debug)]
struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// A map of at most `max` entries.
    pub fn new(max: usize) -> Self {
        let entries = Mutex::new(Generations { young: HashMap::new(), old: HashMap::new() });
        Self { generation: max.div_ceil(2), entries }
    }

    /// The value of a key.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut entries = self.lock();
        if let Some(value) = entries.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = entries.old.remove_entry(key)?;
        self.insert_into(&mut entries, key, value.clone());
        Some(value)
    }

    /// Sets the value of a key.
    pub fn insert(&self, key: K, value: V) {
        self.insert_into(&mut self.lock(), key, value);
    }

    /// Returns the value of a key, creating it if it is missing.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        self.get(&key).unwrap_or_else(|| {
            let value = make();
            self.insert(key, value.clone());
            value
        })
    }

    fn insert_into(&self, entries: &mut Generations<K, V>, key: K, value: V) {
        if entries.young.len() >= self.generation {
            entries.old = std::mem::take(&mut entries.young);
        }
        entries.young.insert(key, value);
    }

    fn lock(&self) -> MutexGuard<'_, Generations<K, V>> {
        // A panic between two map operations leaves both maps usable.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_stays_and_the_size_is_bounded() {
        let cache = Cache::new(20);
        for n in 0..1000 {
            cache.insert(n, n);
            assert_eq!(cache.get(&0), Some(0), "after {n}");
        }
        assert_eq!(cache.get(&1), None);
        let entries = cache.lock();
        assert!(entries.young.len() + entries.old.len() <= 20);
    }
}
