//! Everything that talks to a model: the chat and embedding seams, the providers behind them, the model table,
//! prices, retries and the circuit breaker; and, since it is the one crate that reaches servers, the open web ([`web`]).
#![deny(missing_docs)]

mod anthropic;
mod bedrock;
mod breaker;
pub mod chat;
pub mod connect;
mod decode;
mod failure;
mod http;
mod openai;
pub mod plain_client;
pub mod replay;
pub mod resilient;
pub mod secret;
mod settings;
mod sse;
pub mod table;
pub mod upstream;
pub mod web;
pub mod weights;

pub use larder_text::price;
