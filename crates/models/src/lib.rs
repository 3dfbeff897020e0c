//! Everything that communicates with a model: the chat and embedding interfaces, the providers behind them, the model
//! table, prices, retries and the circuit breaker; and, since this is the only crate that contacts servers, the open
//! web ([`web`]).

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
