//! §4 of `context.md`: iterations within its budget (R0-26). Earlier content is compacted before a round is added
//! that would not fit; every round remains, in less detail.

use std::collections::BTreeMap;

use larder_condense::{Condensed, ContentType};
use larder_store::TurnDraft;
use larder_text::sections::SectionId;
use larder_vault::context::{Iteration, ToolLog};

use super::documents::TurnDocument;
use super::error::Stop;
use super::files;
use super::shrink::{LONGEST_RESULT, shrunk};

const SECTION: SectionId = SectionId::ToolExecution;
/// Maximum tokens of §4 (R0-26.2).
const BUDGET: usize = SECTION.token_budget();
/// The size to which older rounds are compacted, if the newest leaves that much (R0-26.2, C29).
const OLDER: usize = 1_500;
/// Maximum tokens of the newest round, so that a line about older ones always fits next to it.
pub(super) const NEWEST: usize = BUDGET - 300;

/// Adds a round.
pub(super) async fn add_round(
    document: &mut TurnDocument<'_>,
    draft: &TurnDraft,
    iteration: &Iteration,
) -> Result<(), Stop> {
    let body = iteration.write(&document.at);
    add(document, draft, &body).await
}

/// Adds the end of the section, which must fit its budget then.
pub(super) async fn finish(
    document: &mut TurnDocument<'_>,
    draft: &TurnDraft,
    body: &str,
) -> Result<(), Stop> {
    add(document, draft, body).await?;
    document.settle(SECTION).await
}

/// Compacts the existing content if it would not fit with `body` (R0-26.2, R0-26.4), then adds `body`.
async fn add(document: &mut TurnDocument<'_>, draft: &TurnDraft, body: &str) -> Result<(), Stop> {
    if !document.ends_with(SECTION) {
        let section = larder_vault::append_section(&document.text, SECTION, body);
        document.text += &section;
        return Ok(());
    }
    let new = document.condenser.counter.count(body);
    if document.tokens_of(SECTION) + new > BUDGET {
        compact(document, draft, OLDER.min(BUDGET.saturating_sub(new))).await?;
    }
    document.extend(SECTION, body)
}

/// Compacts the section by its own structure, each result by a model where the policy allows it.
async fn compact(document: &mut TurnDocument<'_>, draft: &TurnDraft, target: usize) -> Result<(), Stop> {
    let log: ToolLog = document.newest().unwrap_or_default();
    let results = files::link(draft.place.tool_results());
    let condenser = &document.condenser;
    let mut by_model: BTreeMap<&str, Condensed> = BTreeMap::new();
    for text in log.iterations.iter().flat_map(|iteration| &iteration.results).map(|result| &*result.text) {
        if is_new(text) && condenser.counter.count_up_to(text, LONGEST_RESULT).is_none() {
            let written = condenser.by_model(text, ContentType::ToolResult, LONGEST_RESULT, "a result of §4");
            by_model.extend(written.await.map(|written| (text, written)));
        }
    }
    let shorten = |text: &str, tokens: usize| {
        if let Some(written) = by_model.get(text).filter(|written| written.tokens <= tokens) {
            return Some(written.text.clone());
        }
        let condensed = condenser.condense(text, ContentType::ToolResult, tokens).filter(|_| is_new(text))?;
        // Its pointers lead to this text.
        condenser.store(text.as_bytes(), "tool_result", "a result of a tool").ok()?;
        Some(condensed.result.text)
    };
    let short = shrunk(&log, &results, &document.at, (&condenser.counter, &shorten), target);
    document.compact(SECTION, target, short)
}

/// Whether a result was not condensed before, when it would need the room for both headers.
fn is_new(text: &str) -> bool {
    !["\n[Condensed", "\n[Retold"].iter().any(|header| text.contains(header))
}
