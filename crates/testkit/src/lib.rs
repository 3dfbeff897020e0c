//! Test doubles: a scripted model, a stub HTTP server, a fixed clock and ids, captured logs, and the real weights.
//! Test code only: it may panic, and nothing that ships depends on it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken test double must stop the test"
)]

pub mod events;
pub mod fixed;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod layers;
pub mod records;
pub mod scripted;
pub mod stub;
pub mod turns;
#[cfg(feature = "gateway")]
pub mod vault;
pub mod vectors;
pub mod weights;
