//! The tools of a turn against real servers on the loopback address, real files and real programs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helpers of tests fail by panicking"
)]

mod code;
mod mcp;
mod memory;
mod research;
#[cfg(target_os = "linux")]
mod sandbox;
mod support;
mod web;
