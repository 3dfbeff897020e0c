//! What settings say to the tools, to `ask` and to turns, typed. The values are read by [`config`](crate::config) and
//! obeyed by the crates above this one; nothing here knows a file.

mod ask;
mod tools;
mod turns;

pub use self::ask::{AnswerMode, AskLimits, AskSettings, Planner};
pub(crate) use self::tools::MCP_TIMEOUT;
pub use self::tools::{McpSettings, McpTransport, ToolSettings};
pub use self::turns::TurnLimits;
