//! Everything that talks to a model: the chat and embedding seams, the providers behind them, the model table,
//! prices, retries and the circuit breaker.

pub mod chat;
pub mod price;
pub mod table;
