//! The gateway's knowledge of conversations, without IO: the wire formats of clients and providers, the windows that
//! the policy decides, the records of both, and what the policy costs recorded agents. Knows no HTTP, no store, no model
//! and no clock.
#![deny(missing_docs)]

pub mod record;
pub mod replay;
pub mod window;
pub mod wire;
