//! Time and randomness as values that are handed in. The only place in the store that reads the system's own.

use std::io;
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
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::other)
    }
}
