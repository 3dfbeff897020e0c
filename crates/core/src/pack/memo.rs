//! A cache of the substitutions made for earlier requests. Knows sizes and keys; does not know how a substitution is
//! made.

use std::sync::Arc;

use super::history::Substitution;
use larder_text::cache::BoundedCache;
use larder_text::hash::ContentHash;

/// The default capacity: enough for a thousand long conversations.
const DEFAULT_BYTES: usize = 8 << 20;
/// Bytes per entry in addition to its texts.
const OVERHEAD: usize = 128;

/// A cache of substitutions, bounded in bytes and shared between requests. Its keys hash everything that a
/// substitution depends on, the owner of its pointers included, so a miss costs time but never changes the result.
#[derive(Debug)]
pub struct Memo(BoundedCache<ContentHash, Made>);

/// `None` if the message stays whole.
type Made = Option<Arc<Substitution>>;

impl Default for Memo {
    fn default() -> Self {
        Self::new(DEFAULT_BYTES)
    }
}

impl Memo {
    /// Creates a memo of about `max_bytes` bytes at most.
    pub fn new(max_bytes: usize) -> Self {
        let bytes = |made: &Made| OVERHEAD + made.as_ref().map_or(0, |made| made.bytes());
        Self(BoundedCache::with_weights(max_bytes, bytes))
    }

    /// The entry with this key, created with `make` on a miss.
    pub(super) fn get_or(&self, key: ContentHash, make: impl FnOnce() -> Made) -> Made {
        self.0.get_or_insert_with(key, make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: usize) -> ContentHash {
        ContentHash::new(&of.to_le_bytes())
    }

    #[test]
    fn entries_in_use_survive_within_the_size_limit() {
        let memo = Memo::new(100 * OVERHEAD);
        for of in 0..1_000 {
            assert_eq!(memo.get_or(key(of), || None), None);
            memo.get_or(key(0), || unreachable!("in use"));
        }
        assert!(memo.0.len() <= 101);
    }
}
