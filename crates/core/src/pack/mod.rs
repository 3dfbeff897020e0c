//! Packing: turning parts into a prompt that provably fits, with a receipt that explains every token.
//!
//! [`Packing`] is a state machine without IO: it plans, requests renditions from a model, accepts them, and plans
//! again until it returns a [`Pack`] or a refusal. Knows content, tokens and pointers; knows no recipe file, store or
//! provider.

mod above;
mod allot;
mod assemble;
mod choose;
mod choose_messages;
mod compose;
mod entry_cap;
mod fold;
mod history;
mod history_builder;
mod items;
mod layout;
mod levels;
mod memo;
mod packing;
mod part;
mod plan;
mod receipt;
mod render;
mod request;
mod run;
mod slot;
mod superseded;
mod texts;
mod top_up;
mod watermark;

pub use history::{
    CachePrice, Complete, DecidedItem, DecisionContext, History, HistoryLimits, MessageForm, Substitution,
    decide_history,
};
pub use items::{ConversationItem, ItemCall};
pub use layout::layout;
pub use levels::{BudgetAssessment, Impact, Level, LevelTaken};
pub use memo::Memo;
pub use packing::Packing;
pub use part::{Frame, Part, PartKind, PartSource, Protection, Shell, Slice};
pub use receipt::{
    BudgetLedger, Epoch, NextRung, OriginalText, Pack, PackOriginal, PackRefusal, PartReason, PartReceipt,
    Receipt, RefusalLimit, Rendition, SlotLedger, TextSpan,
};
pub use request::{CallFraming, PackError, PackRequest, PackStep, RenditionRequest};
pub use slot::{CallBudget, Cap, Overflow, Slot, SlotForm};
