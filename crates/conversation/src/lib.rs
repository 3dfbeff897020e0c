//! Conversations as data: a conversation type says which stages there are, what of a long conversation is sent, what is
//! remembered and who may see it; this crate carries that out over the engine and the store.
#![deny(missing_docs)]

pub mod actions;
pub mod background;
mod blocks;
mod budgets;
mod calls;
pub mod catalog;
mod ceilings;
mod check;
mod consolidate;
mod conversation;
mod error;
pub mod expiry;
pub mod intent;
mod invitations;
pub mod kind;
pub mod memory;
mod nearness;
mod observe;
mod past;
mod prepare;
mod reading;
mod recall;
mod reply;
mod requests;
pub mod resume;
mod retrieve;
mod revise;
pub mod sharing;
mod start;
mod state;
pub mod window;

pub use self::actions::ActionResult;
pub use self::budgets::{BudgetTuning, SessionBudgets, TunedBudget};
pub use self::calls::{Breakers, CallEnd, TurnCall};
pub use self::conversation::{ALONE, Conversation, Conversations, Reply, ReplyRecord, WindowRecord};
pub use self::error::{ConversationError, which_participant};
pub use self::nearness::Nearness;
pub use self::past::{Past, Person};
pub use self::retrieve::RetrievedMessage;
pub use self::start::Started;
pub use self::state::{Milestone, ParticipantState};
