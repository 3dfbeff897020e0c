//! The HTTP gateway in front of any provider: authentication, budgets, the handling of requests, and the turns and
//! MCP sessions of its callers. Knows no page; wire formats and windows belong to `larder-proxy`.

pub mod app;
pub mod auth;
mod caches;
mod collection;
pub mod error;
pub mod jobs;
mod key_files;
pub mod limits;
pub mod live_stats;
mod mcp_caller;
pub mod metrics;
pub mod model_budget;
pub mod model_route;
pub mod otel;
pub mod problem;
pub mod recorder;
pub mod reload;
pub mod replies;
pub mod request;
mod revisions;
pub mod routes;
pub mod serve;
pub mod sessions;
mod status;
pub mod storage_health;
pub mod telemetry;
mod transcript;
pub mod tune;
pub mod turns;
pub mod warming;
