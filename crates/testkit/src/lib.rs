//! Test doubles: a scripted model, a stub HTTP server, a fixed clock and ids, captured logs, and the real weights.
//! Test code only: it may panic, and nothing that ships depends on it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken test double must stop the test"
)]

use std::io::Write;
use std::path::PathBuf;

pub mod events;
pub mod fixed;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod layers;
#[cfg(feature = "gateway")]
pub mod lived_in;
#[cfg(feature = "gateway")]
pub mod long_talk;
pub mod records;
pub mod scripted;
pub mod stub;
#[cfg(feature = "gateway")]
pub mod talks;
pub mod turns;
#[cfg(feature = "gateway")]
pub mod vault;
pub mod vectors;
pub mod weights;

/// A file or folder below `LARDER_CORPORA`. Where it is missing, says so on standard error, past the capture of test
/// output: a test that returns then has checked nothing.
pub fn corpora(path: &str) -> Option<PathBuf> {
    let found = std::env::var_os("LARDER_CORPORA").map(|root| PathBuf::from(root).join(path));
    let found = found.filter(|found| found.exists());
    if found.is_none() {
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "skipped: LARDER_CORPORA names no folder with {path}");
    }
    found
}
