//! §4 of `context.md`: iterations within its budget (R0-26). Earlier content is compacted before a round is added
//! that would not fit; every round remains, in less detail.

use larder_condense::ContentType;
use larder_store::TurnDraft;
use larder_text::sections::SectionId;
use larder_vault::context::{Iteration, ToolLog};

use super::documents::TurnDocument;
use super::error::Stop;
use super::files;
use super::shrink::shrunk;

const SECTION: SectionId = SectionId::ToolExecution;
/// Maximum tokens of §4 (R0-26.2).
const BUDGET: usize = SECTION.token_budget();
/// The size to which older rounds are compacted, if the newest leaves that much (R0-26.2, C29).
const OLDER: usize = 1_500;
/// Maximum tokens of the newest round, so that a line about older ones always fits next to it.
pub(super) const NEWEST: usize = BUDGET - 300;

/// Adds a round.
pub(super) fn add_round(
    document: &mut TurnDocument<'_>,
    draft: &TurnDraft,
    iteration: &Iteration,
) -> Result<(), Stop> {
    let body = iteration.write(&document.at);
    add(document, draft, &body)
}

/// Adds the end of the section, which must fit its budget then.
pub(super) fn finish(document: &mut TurnDocument<'_>, draft: &TurnDraft, body: &str) -> Result<(), Stop> {
    add(document, draft, body)?;
    document.settle(SECTION)
}

/// Compacts the existing content if it would not fit with `body` (R0-26.2, R0-26.4), then adds `body`.
fn add(document: &mut TurnDocument<'_>, draft: &TurnDraft, body: &str) -> Result<(), Stop> {
    if !document.ends_with(SECTION) {
        let section = larder_vault::append_section(&document.text, SECTION, body);
        document.text += &section;
        return Ok(());
    }
    let new = document.condenser.counter.count(body);
    if document.tokens_of(SECTION) + new > BUDGET {
        compact(document, draft, OLDER.min(BUDGET.saturating_sub(new)))?;
    }
    document.extend(SECTION, body)
}

/// Compacts the section by its own structure.
fn compact(document: &mut TurnDocument<'_>, draft: &TurnDraft, target: usize) -> Result<(), Stop> {
    let log: ToolLog = document.newest().unwrap_or_default();
    let results = files::link(draft.place.tool_results());
    let condenser = &document.condenser;
    let shorten = |text: &str, tokens: usize| {
        // A result that was condensed before would need the room for both headers.
        let is_new = !text.contains("\n[Condensed");
        let condensed = condenser.condense(text, ContentType::ToolResult, tokens).filter(|_| is_new)?;
        // Its pointers lead to this text.
        condenser.store(text.as_bytes(), "tool_result", "a result of a tool").ok()?;
        Some(condensed.result.text)
    };
    let short = shrunk(&log, &results, &document.at, (&condenser.counter, &shorten), target);
    document.compact(SECTION, target, short)
}
