//! `larder costs`: what conversations cost, with everything that followed their replies.

use std::collections::BTreeMap;

use larder_store::{ConversationCostRow, Timestamp};
use serde::Serialize;

use crate::args::{CostKey, CostsArgs, Format};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

const DAY_MS: u64 = 86_400_000;

/// Sums of some of the rows.
#[derive(Debug, Default, Serialize)]
struct CostSum {
    calls: u64,
    input: u64,
    cached_input: u64,
    output: u64,
    picos: u64,
}

pub fn run(context: &CommandContext, args: &CostsArgs) -> Result<(), CliError> {
    let store = context.user_to_read()?;
    let today = store.store().now().as_millis() / DAY_MS;
    let rows = store.conversations().costs(today.saturating_sub(args.days.saturating_sub(1)))?;
    let mut sums: BTreeMap<String, CostSum> = BTreeMap::new();
    for row in &rows {
        let sum = sums.entry(key(row, args.by)).or_default();
        sum.calls += row.calls;
        sum.input += row.input;
        sum.cached_input += row.cached_input;
        sum.output += row.output;
        sum.picos += row.picos;
    }
    if context.global.format == Format::Json {
        return output::json(&sums);
    }
    if sums.is_empty() {
        return output::line(
            "no conversation of `larder converse` cost anything in these days; `larder trends` has what turns cost",
        );
    }
    output::line("     cost   calls       input      cached     output")?;
    for (key, sum) in &sums {
        output::line(&format!(
            "{:>9}  {:>6}  {:>10}  {:>10}  {:>9}  {key}",
            format!("${:.4}", sum.picos as f64 / 1e12),
            sum.calls,
            sum.input,
            sum.cached_input,
            sum.output,
        ))?;
    }
    Ok(())
}

fn key(row: &ConversationCostRow, by: CostKey) -> String {
    match by {
        CostKey::Conversation if row.conversation == row.kind => format!("before any ({})", row.kind),
        CostKey::Conversation => format!("{} ({})", row.conversation, row.kind),
        CostKey::Type => row.kind.clone(),
        CostKey::Stage => format!("{}/{}", row.kind, row.stage),
        CostKey::Call => row.call.clone(),
        CostKey::Day => Timestamp::from_millis(row.day.saturating_mul(DAY_MS)).date(),
    }
}
