//! Conversations as data: a conversation type says which stages there are, what of a long conversation is sent, what is
//! remembered and who may see it; this crate carries that out over the engine and the store.
#![deny(missing_docs)]

pub mod catalog;
mod check;
pub mod intent;
pub mod kind;
pub mod window;
