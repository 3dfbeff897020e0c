//! A value that every request looks up and that hardly ever changes. Knows nothing of where it is kept.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a value is taken for the present one: another process may change it.
const TRUSTED: Duration = Duration::from_millis(2);

/// A value as it was looked up last.
#[derive(Debug, Default)]
pub struct Recent<T>(Mutex<Option<(Instant, u64, T)>>);

impl<T: Copy> Recent<T> {
    /// The value, if it was looked up just now and this process has written nothing since: `writes` is the number of its
    /// writes.
    pub fn get(&self, writes: u64) -> Option<T> {
        let found = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.filter(|(at, before, _)| *before == writes && at.elapsed() < TRUSTED).map(|(.., value)| value)
    }

    /// The value as it was at this moment, before which `writes` was read. A look-up that began earlier than the last one
    /// changes nothing.
    pub fn set(&self, at: Instant, writes: u64, value: T) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|(before, ..)| before <= at) {
            *last = Some((at, writes, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_trusted_until_something_is_written_and_for_a_moment_only() {
        let (recent, now) = (Recent::default(), Instant::now());
        assert_eq!(recent.get(0), None);
        recent.set(now.checked_sub(TRUSTED).unwrap(), 0, true);
        assert_eq!(recent.get(0), None, "it is too old");
        let later = now + Duration::from_hours(1);
        recent.set(later, 0, true);
        assert_eq!((recent.get(0), recent.get(1)), (Some(true), None));
        recent.set(now, 1, false);
        assert_eq!((recent.get(0), recent.get(1)), (Some(true), None), "that look-up began earlier");
    }
}
