//! The client side of servers: the traits of chat and embedding models, the providers behind them, the model table,
//! retries and the circuit breaker. Since the HTTP clients are here, it also downloads the weights of the embedded
//! models ([`weights`]), which `larder-local` computes with, and fetches single pages of the open web ([`web`]).
#![deny(missing_docs)]

mod anthropic;
mod aws;
mod bedrock;
mod breaker;
pub mod catalogue;
pub mod chat;
pub mod connect;
mod context_limit;
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
mod turns;
pub mod upstream;
pub mod web;
pub mod weights;

pub use context_limit::context_limit;
pub use larder_text::price;
