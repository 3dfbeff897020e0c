//! Slots: ordered regions of a prompt, and the budget they share.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How many tokens a slot may have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    /// At most this many tokens.
    Tokens(usize),
    /// This share (0 to 1) of what the other slots leave; the unused part of a share goes to the other shares.
    Share(f64),
    /// Whatever remains.
    Flexible,
}

/// How the parts of a slot become messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotForm {
    /// All parts form one message, together with adjacent joined slots of the same role.
    Joined,
    /// Each part is a separate message. Above the cap the older ones are represented by one text, and what was decided
    /// persists while the conversation grows, until the next step.
    Messages,
}

/// How parts of a slot over its cap may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overflow {
    /// Replace with a condensed rendition.
    pub condense: bool,
    /// Replace with the beginning of the text, cut at a boundary, and a pointer to the whole.
    pub truncate: bool,
    /// Replace with a pointer.
    pub point: bool,
    /// Drop; the receipt and a marker in the prompt show how to get it back.
    pub drop: bool,
}

impl Overflow {
    /// Condense, then replace with a pointer, then drop.
    pub const LADDER: Self = Self { condense: true, truncate: false, point: true, drop: true };
    /// Only whole: above its cap, the call is refused.
    pub const REFUSE: Self = Self { condense: false, truncate: false, point: false, drop: false };
    /// Drop the least relevant or oldest.
    pub const DROP: Self = Self { condense: false, truncate: false, point: false, drop: true };
}

/// A budgeted, ordered region of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// The name shown in receipts.
    pub name: Arc<str>,
    /// The maximum tokens.
    pub cap: Cap,
    /// Tokens guaranteed when the whole call exceeds its budget, if the slot has that many.
    pub floor: usize,
    /// How its parts may be shortened when it exceeds its cap.
    pub overflow: Overflow,
    /// From 0 (first to be shortened) to 100 (last) when slots compete.
    pub priority: u8,
    /// How its parts become messages.
    pub form: SlotForm,
    /// In a slot of messages: the share of what it may take at which the receipt says that older messages will soon be
    /// condensed.
    pub soft: Option<f64>,
    /// In a slot of messages: the number of newest parts that stay.
    pub protect_last: usize,
}

impl Slot {
    /// Creates a flexible slot of joined parts with the full overflow ladder.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            cap: Cap::Flexible,
            floor: 0,
            overflow: Overflow::LADDER,
            priority: 50,
            form: SlotForm::Joined,
            soft: None,
            protect_last: 0,
        }
    }

    /// Replaces the cap.
    #[must_use]
    pub fn cap(mut self, cap: Cap) -> Self {
        self.cap = cap;
        self
    }

    /// Replaces the overflow policy.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }
}

/// The token limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBudget {
    /// The hard limit of the whole call.
    pub total: usize,
    /// The model's context window.
    pub window: usize,
    /// Maximum tokens of the reply; reserved exactly.
    pub output: usize,
    /// Reserve for framing.
    pub response_reserve: usize,
    /// Tokens that always remain free.
    pub emergency_floor: usize,
    /// The limit that the recipe declares, where `policy.prompt_budget_override` lowers `total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<usize>,
}

impl CallBudget {
    /// Tokens available to prompt and input together: `min(total, window) − output − response_reserve −
    /// emergency_floor`.
    pub fn available(&self) -> usize {
        self.total
            .min(self.window)
            .saturating_sub(self.output)
            .saturating_sub(self.response_reserve)
            .saturating_sub(self.emergency_floor)
    }
}
