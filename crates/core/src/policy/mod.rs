//! The context policy of a forwarded conversation: its budget, and how its messages are made to fit at low cost.
//!
//! A pure function of settings, model and history. Owns budgets and the verdict (ok, needs summary, reject);
//! [`pack`](crate::pack) decides and renders the messages. Does not know wire formats, stores or clocks.

mod budget;
#[cfg(test)]
mod budget_tests;
mod conversation;
mod decide;
mod mechanisms;
mod settings;
mod usage;
mod window;

pub use budget::{
    BudgetDecision, BudgetStatus, ContextBudgetPolicy, LargestPart, ModelProfile, UNKNOWN_WINDOW,
};
pub use conversation::{Conversation, FixedTokens, PointerReader};
pub use mechanisms::Mechanisms;
pub use settings::{InvalidSetting, OPT_OUT_TOOLS, PolicySettings, ToolOffer};
pub use usage::{RequestUsage, SessionUsage};
pub use window::{DecidedWindow, Verdict, WindowOriginal};

pub use crate::pack::{
    Complete, ConversationItem, DecidedItem, DecisionContext, ItemCall, Memo, MessageForm, Substitution,
};
use larder_text::message::ToolDef;

/// The name of the tool through which a model reads originals.
pub const REHYDRATE: &str = "larder_rehydrate";

/// What the names of tools that read originals end in: Larder's own, and that of its MCP server behind the prefix of a
/// client.
const READS_BACK: &str = "rehydrate";

/// Whether a tool of this name reads originals: Larder's own, or that of its MCP server, which clients give a prefix, as
/// in `mcp__larder__rehydrate`.
pub fn reads_back(tool: &str) -> bool {
    let prefix = tool.strip_suffix(READS_BACK);
    prefix.is_some_and(|prefix| !prefix.ends_with(char::is_alphanumeric))
}

/// The definition of the tool that returns originals. It is also where the model learns about pointers and gap
/// markers: explaining them in the system prompt would change text that the client wrote. The definition is part of
/// every later request, so each of its tokens is paid for many times.
pub fn rehydrate_tool() -> ToolDef {
    let text = || serde_json::json!({ "type": "string" });
    ToolDef {
        name: REHYDRATE.to_owned(),
        description: "Reads what a shortened tool result leaves out. id: its pointer lp1-…, for a gap [… Lx-y] with \
                      #Lx-y after it. Optional, one of: lines 10-40, bytes 0-2000, pattern (regex), JSON path. \
                      Prefer it to running a tool again."
            .to_owned(),
        parameters: serde_json::json!({
            "type": "object",
            "properties": {
                "id": text(), "lines": text(), "bytes": text(), "pattern": text(), "path": text()
            },
            "required": ["id"],
        }),
    }
}
