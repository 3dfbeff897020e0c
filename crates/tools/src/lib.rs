//! Tools: what a turn, or a recipe outside turns, can do besides calling models. One interface, a toolbox that guards it, and the built-in tools.
//!
//! | | |
//! |---|---|
//! | the interface | [`TypedTool`], [`Tool`], [`ToolSpec`], [`ToolOutput`], [`ToolContext`] |
//! | the guard | [`ToolBox`]: arguments against their schema, modes, confirmation, time, size |
//! | memory and documents | `memory.query`, `memory.create`, `doc.search`, `doc.read` |
//! | the web | `web.visit`, `web.search`, `internet.research` |
//! | code mode | `file.read`, `file.search`, `file.edit`, `command.run` |
//! | MCP | `mcp.<server>.<tool>` of every server that the settings name |
//!
//! The result of a tool is data: it enters a prompt as a part like any other and is never interpreted. Nothing here
//! knows phases, sections or recipes of a turn, except `internet.research`, which is a run itself.
#![deny(missing_docs)]

mod code;
mod context;
mod doc;
pub mod figures;
mod mcp;
mod memory;
mod offers;
mod planted;
mod private;
mod process;
mod quotes;
mod research;
mod sandbox;
mod spec;
mod sub_run;
mod toolbox;
mod typed;
mod watch;
mod web;

pub use self::context::{Confirm, DenyAll, NO_TURN, ToolContext};
pub use self::memory::{
    ShareCandidate, ShareError, forget_source, publish, record_fact_uses, share_candidates,
};
pub use self::research::site_of;
pub use self::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec, call_text, describe};
pub use self::sub_run::RECIPES_OF_TOOLS;
pub use self::toolbox::ToolBox;
pub use self::typed::{TypedTool, typed};
