//! Slots and the budget they share: budgeted, ordered regions of a prompt.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How many tokens a slot may have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    /// At most so many.
    Tokens(usize),
    /// A claim on this share (0 to 1) of what the other slots leave; what one claim does not use flows to the others
    /// (C95).
    Share(f64),
    /// Whatever is left.
    Flexible,
}

/// How the parts of a slot become messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotForm {
    /// All parts form one message, together with neighbouring joined slots of the same role.
    Joined,
    /// Each part is a message of its own, and what has been decided for a message stays decided while the
    /// conversation grows, until a watermark is crossed.
    Messages,
}

/// What may be done to the parts of a slot that exceeds its cap, other than keeping them whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overflow {
    /// Replace by a condensed rendition.
    pub condense: bool,
    /// Replace by the beginning of the text, cut at a boundary, with a pointer to the whole (C32).
    pub truncate: bool,
    /// Replace by a pointer.
    pub point: bool,
    /// Leave out; the receipt and a mark in the prompt say how to get it back.
    pub drop: bool,
}

impl Overflow {
    /// Condense, then point, then leave out (C31).
    pub const LADDER: Self = Self { condense: true, truncate: false, point: true, drop: true };
    /// Only whole: over its cap the call is refused.
    pub const REFUSE: Self = Self { condense: false, truncate: false, point: false, drop: false };
    /// Leave out the least relevant or oldest.
    pub const DROP: Self = Self { condense: false, truncate: false, point: false, drop: true };
}

/// A budgeted, ordered region of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Its name in receipts.
    pub name: Arc<str>,
    /// Tokens it may have.
    pub cap: Cap,
    /// Tokens it keeps when the whole call exceeds its budget, if it has that many.
    pub floor: usize,
    /// What its parts become when it exceeds its cap.
    pub overflow: Overflow,
    /// 0 gives way first, 100 last, when slots compete.
    pub priority: u8,
    /// How its parts become messages.
    pub form: SlotForm,
    /// Share of the cap at which the receipt asks for compaction in the background (C19).
    pub soft: Option<f64>,
    /// Share of the cap to come down to once the cap is crossed, so that it is not crossed again at once (C52).
    pub shrink_to: Option<f64>,
    /// Newest parts of a slot of messages that are protected.
    pub protect_last: usize,
    /// Tokens above which a single message is condensed the moment it enters (C29).
    pub entry_cap: Option<usize>,
}

impl Slot {
    /// A flexible slot of joined parts with the whole ladder.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            cap: Cap::Flexible,
            floor: 0,
            overflow: Overflow::LADDER,
            priority: 50,
            form: SlotForm::Joined,
            soft: None,
            shrink_to: None,
            protect_last: 0,
            entry_cap: None,
        }
    }

    /// The slot with another cap.
    #[must_use]
    pub fn cap(mut self, cap: Cap) -> Self {
        self.cap = cap;
        self
    }

    /// The slot with another overflow policy.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }
}

/// The tokens of one call (C15 to C18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBudget {
    /// Hard limit of the whole call.
    pub total: usize,
    /// The model's window.
    pub window: usize,
    /// Tokens the reply may have; reserved exactly (C34).
    pub output: usize,
    /// Framing safety (C15).
    pub response_reserve: usize,
    /// Tokens that always stay free.
    pub emergency_floor: usize,
}

impl CallBudget {
    /// Tokens that prompt and input may have together:
    /// `min(total, window) − output − response_reserve − emergency_floor` (C18).
    pub fn available(&self) -> usize {
        self.total
            .min(self.window)
            .saturating_sub(self.output)
            .saturating_sub(self.response_reserve)
            .saturating_sub(self.emergency_floor)
    }
}
