//! How far a prompt exceeded its budget, and by which levels it was reduced (R0-24.2, R0-25.4). Reads receipts only.

use serde::{Deserialize, Serialize};

use super::receipt::{PartReason, PartReceipt, Receipt, Rendition};

/// A level at which a prompt is reduced. Each acts before the next is needed (R0-25.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// 1: a section exceeds its own limit (R0-25.1).
    Section,
    /// 2: `context.md` exceeds its share of the call (R0-25.2).
    Document,
    /// 3: the whole call exceeds its limit (R0-25.3).
    Call,
}

impl Level {
    /// Every level, in the order in which they act.
    pub const ALL: [Self; 3] = [Self::Section, Self::Document, Self::Call];

    /// The number used in layouts: 1 to 3.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The name used in layouts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Section => "section",
            Self::Document => "document",
            Self::Call => "call",
        }
    }

    /// The least that the level may cost the reader of the prompt (R0-25.5).
    pub const fn impact(self) -> Impact {
        match self {
            Self::Section => Impact::Minimal,
            Self::Document => Impact::Moderate,
            Self::Call => Impact::Severe,
        }
    }
}

/// What a reduction may cost the reader of a prompt (R0-25.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Impact {
    /// One section has fewer details, and half of it at least is in view.
    Minimal,
    /// Details of a document may be missing.
    Moderate,
    /// Whole parts may be missing, or less than a tenth of one is in view.
    Severe,
}

impl Impact {
    /// The name used in layouts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Moderate => "moderate",
            Self::Severe => "severe",
        }
    }
}

/// The least share of its tokens that a part may keep in view without a loss of details, and of whole passages.
const DETAILED: f64 = 0.5;
const IN_VIEW: f64 = 0.1;

/// What the reader loses of one part, whichever level reduced it. A part that was not counted to the end counts as
/// `prompt`, the tokens of the whole prompt.
fn loss(part: &PartReceipt, prompt: usize) -> Impact {
    let whole = part.original_tokens.unwrap_or(prompt);
    let kept = part.tokens as f64 / whole.max(1) as f64;
    match part.rendition {
        Rendition::Absent | Rendition::Pointer => Impact::Severe,
        Rendition::Condensed if kept < IN_VIEW => Impact::Severe,
        Rendition::Condensed if kept < DETAILED => Impact::Moderate,
        Rendition::Condensed | Rendition::Whole => Impact::Minimal,
    }
}

/// What one level did to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelTaken {
    /// The level.
    pub level: Level,
    /// What it may cost the reader.
    pub impact: Impact,
    /// The parts that it reduced.
    pub parts: usize,
    /// Tokens that they take now.
    pub tokens: usize,
}

/// The assessment of a prompt against its budget (R0-24.2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BudgetAssessment {
    /// Whether the prompt had to be reduced to fit.
    pub needed: bool,
    /// Tokens of the prompt if everything were whole.
    pub total_tokens: usize,
    /// Whether `total_tokens` is an estimate: a part that exceeds the whole budget is sampled, not counted to the end.
    #[serde(default)]
    pub is_estimate: bool,
    /// Tokens available to it.
    pub budget: usize,
    /// Tokens by which it exceeds the budget.
    pub overflow: usize,
    /// The share of it that the budget holds: 1 if it fits.
    pub compression_ratio: f64,
    /// The levels that acted, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub levels: Vec<LevelTaken>,
}

impl PartReason {
    /// The level that reduces a part for this reason. The soft threshold and what stands above in a conversation are
    /// none: they lose nothing.
    const fn level(self) -> Option<Level> {
        match self {
            Self::OverEntryCap | Self::SlotOverCap | Self::Summarized => Some(Level::Section),
            Self::DocumentOverLimit => Some(Level::Document),
            Self::CallOverBudget
            | Self::BelowMinRemaining
            | Self::CallNearLimit
            | Self::PinsTooLarge
            | Self::GroupDropped => Some(Level::Call),
            Self::Fits
            | Self::Critical
            | Self::Protected
            | Self::OverThreshold
            | Self::StandsAbove
            | Self::Terse => None,
        }
    }
}

impl Receipt {
    /// How far the prompt exceeded its budget, and what was done about it.
    pub fn assessment(&self) -> BudgetAssessment {
        let budget = self.budget.available;
        let overflow = self.whole.saturating_sub(budget);
        let reduced = |part: &&PartReceipt| part.rendition != Rendition::Whole;
        let taken = |level: Level| {
            let parts =
                || self.own_parts().filter(reduced).filter(move |part| part.reason.level() == Some(level));
            let (count, tokens) = (parts().count(), parts().map(|part| part.tokens).sum());
            let impact = parts().map(|part| loss(part, self.whole)).fold(level.impact(), Impact::max);
            (count > 0).then_some(LevelTaken { level, impact, parts: count, tokens })
        };
        BudgetAssessment {
            needed: overflow > 0,
            total_tokens: self.whole,
            is_estimate: self.whole_is_estimate,
            budget,
            overflow,
            compression_ratio: if overflow > 0 { budget as f64 / self.whole as f64 } else { 1.0 },
            levels: Level::ALL.into_iter().filter_map(taken).collect(),
        }
    }
}
