//! The content of `context.md`'s sections as values, which can be written as and read from a section's body.
//!
//! Each section has its own file. Knows the notation of the sections; does not know who fills them, or budgets.

mod gathered;
mod plan;
mod query;
mod reflection;
mod synthesis;
mod tools;
mod validation;

use larder_text::sections::{Section, SectionId, Sections};

use super::blocks::HeadedBlock;
use super::problem::{ParseProblem, ParsedDocument};
use super::quote::block_id_at_end;
use super::value::ValueError;
use super::write::{COMPACTION, COMPACTION_END};
use super::{BlockId, VaultPath, append_section, unescape};

pub use gathered::{
    CachedResearch, GatheredContext, Preference, PriorTurn, Relevance, Sufficiency, TopResult,
};
pub(super) use plan::GRAMMAR as PLAN;
pub use plan::{Goal, GoalId, GoalStatus, NextStep, PlanStep, TaskPlan};
pub use query::{ResolvedQuery, SourceReference, UserQuery, query_body};
pub(super) use query::{original_in, without_original};
pub use reflection::{Reflection, ReflectionDecision};
pub use synthesis::{Checklist, Synthesis};
pub use tools::{
    Action, CallResult, CallStatus, Claim, ClaimOrigin, Iteration, IterationGoal, Quota, Termination, ToolLog,
};
pub use validation::{Check, CheckResult, GoalVerdict, Validation, Verdict};

/// The content of a section.
pub trait SectionValue: Sized {
    /// The section's id.
    const ID: SectionId;

    /// Writes the body, for a document at path `at`.
    fn write(&self, at: &VaultPath) -> String;

    /// Whether another attempt follows, so that the first one is numbered too (R1-3.80).
    fn is_followed(&self) -> bool {
        false
    }

    /// Reads a body whose first line has number `line` in the document.
    fn read(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self>;
}

/// The text to append to `document` at path `at` to add this value as a section; see [`append_section`].
pub fn append<T: SectionValue>(document: &str, value: &T, at: &VaultPath) -> String {
    let added = append_section(document, T::ID, &value.write(at));
    let heading = T::ID.heading();
    let plain = format!("{heading}\n");
    match value.is_followed() {
        true => added.replacen(&plain, &format!("{heading} (Attempt 1)\n"), 1),
        false => added,
    }
}

/// Reads one version of a section. Compactions are skipped: they repeat what they compact.
pub fn read<T: SectionValue>(document: &str, section: &Section, at: &VaultPath) -> ParsedDocument<T> {
    let line = document[..section.body.start].matches('\n').count() + 1;
    T::read(&unescape(&without_compactions(&document[section.body.clone()])), line, at)
}

/// Reads the newest version of a section, if there is one.
pub fn read_newest<T: SectionValue>(document: &str, at: &VaultPath) -> Option<ParsedDocument<T>> {
    let sections = Sections::parse(document);
    sections.newest(T::ID).map(|section| read(document, section, at))
}

/// The body with every compaction replaced by blank lines, which keeps the line numbers.
fn without_compactions(body: &str) -> String {
    let mut inside = false;
    let mut kept = String::with_capacity(body.len());
    for line in body.split_inclusive('\n') {
        inside |= line.starts_with(COMPACTION);
        kept.push_str(if inside { "\n" } else { line });
        inside &= !line.starts_with(COMPACTION_END);
    }
    kept
}

/// Writes `APPROVE #decision ^decision-validation` and a blank line: a block id ends its paragraph.
fn decision_line(decision: &str, block: Option<&BlockId>) -> String {
    match block {
        Some(block) => format!("{decision} #{} {block}\n", super::Tag::Decision),
        None => decision.to_owned(),
    }
}

/// Reads a line written by [`decision_line`].
fn decision<T>(
    block: &HeadedBlock<'_>,
    label: &str,
    problems: &mut Vec<ParseProblem>,
) -> Option<(T, Option<BlockId>)>
where
    T: std::str::FromStr<Err = ValueError>,
{
    let (line, value) = block.line(label)?;
    let word = value.split_whitespace().next().unwrap_or_default();
    let decision = super::blocks::parsed(word, line, label, problems)?;
    Some((decision, block_id_at_end(value).and_then(|(_, id)| BlockId::new(id))))
}

/// The texts of a list, numbered or not; a lone `None` is an empty list.
fn texts(items: &[(usize, &str)]) -> Vec<String> {
    items.iter().map(|(_, item)| super::quote::uninline(item)).collect()
}
