//! The gateway: HTTP in front of any provider, the REST API, MCP and the dashboard. Knows the wire formats; leaves
//! packing, condensing and pointers to the core and what persists to the store.
