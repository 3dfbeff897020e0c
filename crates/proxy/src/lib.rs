//! The gateway's knowledge of conversations, without IO: the wire formats of clients and providers, the windows that
//! the policy decides, and the records of both. Knows no HTTP, no store, no model and no clock.
#![deny(missing_docs)]

pub mod record;
pub mod window;
pub mod wire;
