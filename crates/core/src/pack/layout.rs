//! The layout notation: one line per part; `explain`, golden tests and people read the same text.

use larder_text::words::counted;
use std::fmt::Write;

use super::levels::{BudgetAssessment, LevelTaken};
use super::receipt::{PartReason, PartReceipt, Receipt, Rendition};

/// Formats a receipt: a ledger line, then one line per part with slot, source, rendition, tokens and reason. Runs of
/// parts that were dropped or summarized together share a line.
pub fn layout(receipt: &Receipt) -> String {
    let ledger = &receipt.budget;
    let limits = ledger.limits;
    let mut out = format!(
        "{} of {} tokens ({}, {:?}); total {} window {} output {} reserve {}\n",
        ledger.used,
        ledger.available,
        ledger.tokenizer,
        ledger.label,
        limits.declared.unwrap_or(limits.total),
        limits.window,
        limits.output,
        limits.response_reserve
    );
    if limits.emergency_floor > 0 {
        let _ = writeln!(out, "{} tokens are kept free by policy.emergency_floor", limits.emergency_floor);
    }
    if limits.declared.is_some() {
        let _ = writeln!(out, "{} tokens are allowed by policy.prompt_budget_override", ledger.available);
    }
    if ledger.kept_free > 0 {
        let _ = writeln!(out, "{} of these tokens are kept free for results of tools", ledger.kept_free);
    }
    let BudgetAssessment { needed, total_tokens, is_estimate, budget, overflow, compression_ratio, levels } =
        receipt.assessment();
    if needed {
        let about = if is_estimate { "about " } else { "" };
        let _ = writeln!(
            out,
            "whole it has {about}{total_tokens} tokens, {about}{overflow} more than {budget}; compression ratio {about}{compression_ratio:.2}"
        );
    }
    for LevelTaken { level, impact, parts, tokens } in levels {
        let (number, level, impact) = (level.number(), level.as_str(), impact.as_str());
        let (parts, tokens) = (counted(parts as u64, "part"), counted(tokens as u64, "token"));
        let _ = writeln!(out, "level {number} ({level}), impact {impact}: {parts} in {tokens}");
    }
    if let Some(refusal) = &receipt.refused {
        let _ = writeln!(out, "REFUSED {refusal}");
    }
    for slot in &ledger.slots {
        let soft = if slot.soft_trigger { "  soft trigger" } else { "" };
        let _ = writeln!(out, "slot {:<12} {:>7} of {}{soft}", slot.name, slot.tokens, slot.allowed);
    }
    let mut parts = receipt.parts.iter().peekable();
    while let Some(part) = parts.next() {
        let mut last = part;
        let mut run = 1;
        while let Some(next) = parts.next_if(|next| share_a_line(part, next)) {
            last = next;
            run += 1;
        }
        let source = if run > 1 { format!("{} … {} ({run})", name(part), name(last)) } else { name(part) };
        let _ =
            write!(out, "{:<10} {:<40} {:<9} {:>7}", part.slot, source, part.rendition.as_str(), part.tokens);
        if let (1, Some(whole)) = (run, part.original_tokens.filter(|_| part.rendition != Rendition::Whole)) {
            let _ = write!(out, " of {whole}");
        }
        let _ = write!(out, "  {}", part.reason.as_str());
        if let Some(author) = &part.author {
            let _ = write!(out, "; by {} with {}", author.model, author.recipe);
        }
        if let (1, Some(next)) = (run, part.next) {
            let _ = write!(out, "; {} would cost {}", next.rendition.as_str(), next.tokens);
        }
        if let (1, Some(pointer)) = (run, &part.pointer) {
            let _ = write!(out, "  {pointer}");
        }
        out.push('\n');
    }
    out
}

fn name(part: &PartReceipt) -> String {
    let source: String = part.source.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match part.lines {
        Some((first, last)) => format!("{source}:{first}-{last}"),
        None => source,
    }
}

fn share_a_line(part: &PartReceipt, next: &PartReceipt) -> bool {
    let together =
        |part: &PartReceipt| part.rendition == Rendition::Absent || part.reason == PartReason::Summarized;
    together(part) && together(next) && part.slot == next.slot && part.reason == next.reason
}
