//! The gateway from outside: what clients send, what providers get, what comes back, and what is recorded.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod bills;
mod budgets;
mod catalogue;
mod choices;
mod clock;
mod faults;
mod gaps;
mod keys;
mod limits;
mod passing;
mod policy;
mod recipe_fields;
mod recipes;
mod rehydrating;
mod reload;
mod retention;
mod revisions;
mod routes;
mod storage;
mod streams;
mod support;
mod transcripts;
