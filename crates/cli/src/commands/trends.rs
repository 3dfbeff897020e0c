//! `larder trends`: what the turns of all users took, by day, and how the last week compares with the one before.

use larder_vault::DayFigures;
use serde_json::json;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(context: &CommandContext, days: usize) -> Result<(), CliError> {
    let documents = context.documents_to_read()?;
    let (all, trends) = (documents.days()?, documents.trends()?);
    let shown: Vec<(&String, &DayFigures)> = all.iter().rev().take(days).collect();
    if context.global.format == Format::Json {
        let days: serde_json::Map<String, serde_json::Value> =
            shown.iter().rev().map(|(day, figures)| ((*day).clone(), json!(figures))).collect();
        return output::json(&json!({"days": days, "weeks": trends.weeks}));
    }
    if shown.is_empty() {
        return output::line("no turn was recorded yet");
    }
    output::line("day         turns  answered  unverified     tokens      cost  seconds a turn")?;
    for (day, figures) in shown.iter().rev() {
        output::line(&format!(
            "{day}  {:>5}  {:>8}  {:>10}  {:>9}  {:>8}  {:>14.1}",
            figures.turns,
            figures.complete,
            figures.unverified,
            figures.tokens,
            format!("${:.4}", figures.cost_microdollars as f64 / 1e6),
            figures.duration_ms as f64 / 1e3 / figures.turns.max(1) as f64,
        ))?;
    }
    let weeks: Vec<(&String, &DayFigures)> = trends.weeks.iter().rev().take(2).collect();
    if let [(week, this), (other, before)] = weeks.as_slice() {
        output::line(&format!(
            "week of {week} against the week of {other}: turns {}, tokens {}, cost {}",
            change(before.turns, this.turns),
            change(before.tokens, this.tokens),
            change(before.cost_microdollars, this.cost_microdollars),
        ))?;
    }
    Ok(())
}

/// `+25 %`.
fn change(before: u64, now: u64) -> String {
    if before == 0 {
        return "new".to_owned();
    }
    format!("{:+.0} %", (now as f64 / before as f64 - 1.0) * 100.0)
}
