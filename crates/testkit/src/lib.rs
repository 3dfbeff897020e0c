//! Doubles for tests: a scripted model, a stub HTTP server, a fixed clock and ids, what is logged, and the real weights.
//! Test code only: it may panic, and nothing that ships depends on it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken test double must stop the test"
)]

pub mod events;
pub mod fixed;
pub mod layers;
pub mod scripted;
pub mod stub;
pub mod vectors;
pub mod weights;
