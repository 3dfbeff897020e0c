//! Every kind of document: what is written is read back, what people edit stays, and one whole turn as files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop and say why")]

mod edits;
mod golden;
mod links;
mod round_trips;
mod samples;
mod values;
