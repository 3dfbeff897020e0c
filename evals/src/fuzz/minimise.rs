//! Makes a broken case as small as it stays broken in the same way.

use std::time::{Duration, Instant};

use super::Target;
use super::target::HEAD;

/// Then the smallest so far is kept.
const PATIENCE: Duration = Duration::from_secs(30);

/// The kind of the first fault: its first word.
pub(super) fn kind(target: Target, bytes: &[u8]) -> Option<String> {
    let faults = target.check(bytes);
    faults.first().and_then(|fault| fault.split(':').next()).map(str::to_owned)
}

/// The smallest case found that fails as `bytes` does. The head is kept.
pub(super) fn minimise(target: Target, bytes: &[u8]) -> Vec<u8> {
    let started = Instant::now();
    let Some(wanted) = kind(target, bytes) else { return bytes.to_vec() };
    let mut smallest = bytes.to_vec();
    let mut step = bytes.len() / 2;
    while step > 0 && started.elapsed() < PATIENCE {
        let mut at = HEAD;
        let mut shrunk = false;
        while at < smallest.len() && started.elapsed() < PATIENCE {
            let mut candidate = smallest.clone();
            candidate.drain(at..(at + step).min(smallest.len()));
            if kind(target, &candidate).as_ref() == Some(&wanted) {
                smallest = candidate;
                shrunk = true;
            } else {
                at += step;
            }
        }
        if !shrunk || step > smallest.len() {
            step /= 2;
        }
    }
    smallest
}
