//! The gateway: HTTP in front of any provider, the REST API, MCP and the dashboard. Knows the wire formats; leaves
//! packing, condensing and pointers to the core and what persists to the store.

pub mod api;
pub mod app;
pub mod auth;
pub mod dashboard;
pub mod desk;
pub mod exchange;
pub mod gateway;
mod guest;
pub mod limits;
pub mod live;
pub mod mcp;
pub mod metrics;
pub mod otel;
pub mod reload;
pub mod routes;
pub mod serve;
pub mod sessions;
mod status;
pub mod telemetry;
pub mod turns;
pub mod wire;
