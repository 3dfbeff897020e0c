//! Options of `larder costs`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct CostsArgs {
    /// Sum by this
    #[arg(long, value_enum, default_value_t = CostKey::Conversation)]
    pub by: CostKey,
    /// Sum over the last N days, in UTC
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub days: u64,
}

/// What costs are summed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CostKey {
    /// Each conversation
    Conversation,
    /// Each type of conversation
    Type,
    /// Each stage of each type
    Stage,
    /// Each day
    Day,
    /// Replies, and each kind of work behind them
    Call,
}
