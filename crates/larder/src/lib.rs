//! Larder as a library: one dependency for what applications embed.
//!
//! | you want to | module | feature |
//! |---|---|---|
//! | count tokens, hash, point at stored content | [`text`] | always there |
//! | make a text smaller without losing it | [`condense`] | always there |
//! | fit parts into a prompt and explain the result | [`pack`] | always there |
//! | read recipes, check answers | [`recipe`], [`output`] | always there |
//! | run recipes with models and a store | [`engine`], [`models`], [`store`] | `engine` |
//! | lead conversations: stages, windows, memory by consent | [`Conversation`], [`conversation`] | `conversation` |
//! | answer questions over folders, run turns | [`agent`], [`retrieval`], [`tools`], [`vault`] | `agent` |
//! | run a chat and an embedding model inside the process | [`local`] | `local` |
//!
//! Without features nothing here does IO.
#![deny(missing_docs)]

#[cfg(feature = "agent")]
pub use larder_agent as agent;
pub use larder_condense as condense;
#[cfg(feature = "conversation")]
pub use larder_conversation as conversation;
#[cfg(feature = "conversation")]
pub use larder_conversation::{Conversation, Conversations};
pub use larder_core::{output, pack, policy, recipe};
#[cfg(feature = "engine")]
pub use larder_engine as engine;
#[cfg(feature = "local")]
pub use larder_local as local;
#[cfg(feature = "engine")]
pub use larder_models as models;
#[cfg(feature = "agent")]
pub use larder_retrieval as retrieval;
#[cfg(feature = "engine")]
pub use larder_store as store;
pub use larder_text as text;
#[cfg(feature = "agent")]
pub use larder_tools as tools;
#[cfg(feature = "agent")]
pub use larder_vault as vault;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/embed.md")]
struct Embedding;
