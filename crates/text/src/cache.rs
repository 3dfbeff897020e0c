//! A bounded cache shared between threads. Does not know what it caches.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

/// A map that evicts entries which have not been used recently.
///
/// It keeps two generations. When the young one is full it replaces the old one, which is dropped; a hit in the old
/// generation promotes the entry. Entries in use therefore survive without any ordering to maintain.
#[derive(Debug)]
pub struct BoundedCache<K, V> {
    /// The weight of one generation.
    generation: usize,
    weigh: fn(&V) -> usize,
    generations: Mutex<CacheGenerations<K, V>>,
}

#[derive(Debug)]
struct CacheGenerations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// The weight of the young generation.
    weight: usize,
}

impl<K: Hash + Eq, V: Clone> BoundedCache<K, V> {
    /// Creates a cache of about `max_entries` entries at most.
    pub fn new(max_entries: usize) -> Self {
        Self::with_weights(max_entries, |_| 1)
    }

    /// Creates a cache whose values weigh about `max_weight` in total at most; the weight may be their size in bytes.
    pub fn with_weights(max_weight: usize, weigh: fn(&V) -> usize) -> Self {
        let generations = CacheGenerations { young: HashMap::new(), old: HashMap::new(), weight: 0 };
        Self { generation: max_weight.div_ceil(2), weigh, generations: Mutex::new(generations) }
    }

    /// Looks up a key and marks its entry as used.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut generations = self.lock();
        if let Some(value) = generations.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = generations.old.remove_entry(key)?;
        self.put(&mut generations, key, value.clone());
        Some(value)
    }

    /// Inserts or replaces the value of a key.
    pub fn insert(&self, key: K, value: V) {
        self.put(&mut self.lock(), key, value);
    }

    /// Returns the value of a key, computing it with `make` if it is missing. No lock is held meanwhile, so two
    /// threads may compute the same value.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        if let Some(known) = self.get(&key) {
            return known;
        }
        let value = make();
        self.insert(key, value.clone());
        value
    }

    /// Removes all entries.
    pub fn clear(&self) {
        *self.lock() = CacheGenerations { young: HashMap::new(), old: HashMap::new(), weight: 0 };
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        let generations = self.lock();
        generations.young.len() + generations.old.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn put(&self, generations: &mut CacheGenerations<K, V>, key: K, value: V) {
        let weight = (self.weigh)(&value);
        if generations.weight + weight > self.generation {
            generations.old = std::mem::take(&mut generations.young);
            generations.weight = 0;
        }
        generations.weight += weight;
        if let Some(replaced) = generations.young.insert(key, value) {
            generations.weight -= (self.weigh)(&replaced);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheGenerations<K, V>> {
        // A panic between two map operations leaves both maps usable.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_in_use_survive_and_the_size_is_bounded() {
        let cache = BoundedCache::new(20);
        for n in 0..1_000 {
            cache.insert(n, n);
            assert_eq!(cache.get(&0), Some(0), "after {n}");
        }
        assert_eq!(cache.get(&1), None);
        assert!(cache.len() <= 20, "{}", cache.len());
    }

    #[test]
    fn a_known_value_is_not_computed_again() {
        let cache = BoundedCache::new(8);
        assert_eq!(cache.get_or_insert_with("larder", || 3), 3);
        assert_eq!(cache.get_or_insert_with("larder", || unreachable!("known")), 3);
    }

    #[test]
    fn a_value_that_replaces_another_needs_no_further_room() {
        let cache = BoundedCache::new(8);
        cache.insert("seldom", 0);
        for n in 0..1_000 {
            cache.insert("often", n);
        }
        assert_eq!((cache.get("seldom"), cache.get("often"), cache.len()), (Some(0), Some(999), 2));
    }

    #[test]
    fn heavy_values_leave_room_for_few() {
        let cache = BoundedCache::with_weights(100, Vec::<u8>::len);
        for n in 0..10 {
            cache.insert(n, vec![0; 30]);
            assert!(cache.len() <= 3, "{}", cache.len());
        }
        // A value heavier than the cache stays until the next one is inserted.
        cache.insert(99, vec![0; 1_000]);
        assert!(cache.get(&99).is_some());
    }
}
