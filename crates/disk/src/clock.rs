//! Time and randomness as values that are handed in. The only place in the store that reads the system's own.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

pub use larder_text::time::{ParseTimestampError, Timestamp};

/// Milliseconds of a day.
pub const MILLIS_PER_DAY: u64 = 86_400_000;

/// The source of time.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The system's clock. A clock set before 1970 reads as 1970.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The source of randomness.
pub trait Entropy: Send + Sync {
    /// Fills `bytes` with random bytes; for the key of a store they must be unpredictable.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// The system's source of randomness.
#[derive(Debug, Default)]
pub struct SystemEntropy(Mutex<Unused>);

/// Random bytes that are asked for at once: a call of the system costs more than the id of a request.
const ASKED_FOR: usize = 512;
/// The most bytes that are taken from those.
const FEW: usize = 16;

/// Random bytes that nobody has used; each is used once, and zero afterwards.
struct Unused {
    bytes: [u8; ASKED_FOR],
    left: usize,
}

impl fmt::Debug for Unused {
    /// Without the bytes, which somebody will use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unused").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Default for Unused {
    fn default() -> Self {
        Self { bytes: [0; ASKED_FOR], left: 0 }
    }
}

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        let system = |bytes: &mut [u8]| getrandom::fill(bytes).map_err(io::Error::other);
        if bytes.len() > FEW {
            return system(bytes);
        }
        let mut unused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if unused.left < bytes.len() {
            system(&mut unused.bytes)?;
            unused.left = ASKED_FOR;
        }
        let rest = unused.left - bytes.len();
        let taken = &mut unused.bytes[rest..][..bytes.len()];
        bytes.copy_from_slice(taken);
        taken.fill(0);
        unused.left = rest;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn few_bytes_are_taken_once_each_from_those_that_were_asked_for() {
        let entropy = SystemEntropy::default();
        let draw = |_| {
            let mut bytes = [0; 10];
            entropy.fill(&mut bytes).unwrap();
            bytes
        };
        let drawn: BTreeSet<_> = (0..1_000).map(draw).collect();
        assert_eq!(drawn.len(), 1_000);
        let mut many = [0; FEW + 1];
        entropy.fill(&mut many).unwrap();
        assert_ne!(many, [0; FEW + 1]);
        let unused = entropy.0.into_inner().unwrap();
        assert!(unused.bytes[unused.left..].iter().all(|byte| *byte == 0));
    }
}
