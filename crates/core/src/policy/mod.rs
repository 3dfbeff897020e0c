//! The context policy of a conversation that is sent on as it came: what its window may take, and what becomes of each
//! message so that it fits and costs little.
//!
//! A pure function of settings, model and history. Owns budgets, the decision (ok, needs summary, reject) and the cost
//! of moving a provider's cached prefix; what a message becomes is decided and made by [`pack`](crate::pack). Knows no
//! wire format, no store and no clock.

mod budget;
#[cfg(test)]
mod budget_tests;
mod conversation;
mod decide;
mod settings;
mod usage;
mod window;

pub use budget::{BudgetDecision, ContextBudgetPolicy, ModelProfile, Status};
pub use conversation::{Conversation, Fixed, Item};
pub use settings::{Offer, SettingProblem, Settings};
pub use usage::{Turn, Usage};
pub use window::{Decided, Kept, Verdict, Window};

pub use crate::pack::{Call, Means, Memo, Replaced, Stands};
use larder_text::message::ToolDef;

/// The name of the tool that gives originals back.
pub const REHYDRATE: &str = "larder_rehydrate";

/// The tool that gives originals back, as it is offered to a model: what the words about pointers and marks are kept to
/// (R3-4.41, C48). It stands here and not in the system prompt, so that offering it changes one place of the prompt and
/// none that the client wrote; and in every request from then on, so each of its tokens is paid many times.
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
