//! What a committed turn writes outside its folder: backlinks in the research it used, and usage records. Best
//! effort: a failure is reported and does not undo the commit.

use std::collections::BTreeSet;

use larder_retrieval::states;
use larder_store::{StoreError, UserDocuments};
use larder_text::hash::ContentHash;
use larder_text::sections::SectionId;
use larder_tools::site_of;
use larder_vault::context::ToolLog;
use larder_vault::layout::is_research;
use larder_vault::links::DualLink;
use larder_vault::{Backlink, Research, Scope, TurnMetadata, TurnMetrics, VaultPath, read_json};

use super::files;
use super::phase::PhaseContext;
use super::sites;
use super::state::{Ending, TurnState};

/// Attempts to write a document that someone else is writing concurrently.
const TRIES: usize = 3;

/// Records what the turn used. A turn that only asked the user a question records nothing (C6).
pub(super) fn note_turn(cx: &PhaseContext<'_>, ending: &Ending) {
    if let Ending::Answer { text, unverified, .. } = ending {
        if !unverified {
            note_facts(cx, text);
        }
        let (gathered, read) = (&cx.state.references, &cx.state.read);
        let used = gathered.iter().map(|used| (used, "§2 Gathered Context"));
        let read =
            read.iter().filter(|read| !gathered.contains(read)).map(|read| (read, "§4 Tool Execution"));
        for (used, section) in used.chain(read) {
            note_use(cx, used, section, !unverified);
        }
    }
    note_sites(cx, ending);
    if let Err(error) = sites::learn(&cx.turns.documents, &cx.draft.files, cx.state.moment) {
        cx.events.warn(format!("what the visits showed about their sites was not recorded: {error}"));
    }
    note_figures(cx);
    tracing::debug!(turn = cx.draft.number, "turn committed");
}

/// Counts a use of each fact that the answer, or §2 with the answer, states.
fn note_facts(cx: &PhaseContext<'_>, answer: &str) {
    let gathered = cx.document.body(SectionId::GatheredContext);
    let stated = |fact: &str| states(answer, fact) || states(&gathered, fact);
    let used: Vec<String> =
        cx.state.facts.iter().filter(|(_, fact)| stated(fact)).map(|(id, _)| id.clone()).collect();
    if !used.is_empty()
        && let Err(error) = larder_tools::record_fact_uses(&cx.turns.documents, cx.state.moment, &used)
    {
        cx.events.warn(format!("the uses of facts were not counted: {error}"));
    }
}

/// Adds the turn to the figures of its day.
fn note_figures(cx: &PhaseContext<'_>) {
    let place = &cx.draft.place;
    let turn =
        files::text(&cx.draft, &place.metadata()).and_then(|text| read_json::<TurnMetadata>(text).value);
    let metrics =
        files::text(&cx.draft, &place.metrics()).and_then(|text| read_json::<TurnMetrics>(text).value);
    let (Some(turn), Some(metrics)) = (turn, metrics) else { return };
    if let Err(error) = cx.turns.documents.add_to_figures(&turn, &metrics) {
        cx.events.warn(format!("the figures of the day lack this turn: {error}"));
    }
}

/// Records for the sites of the claims in §4 whether the claims held (R1-13.12).
fn note_sites(cx: &PhaseContext<'_>, ending: &Ending) {
    let Some(held) = claims_held(&cx.state, ending) else { return };
    let claims = cx.document.newest::<ToolLog>().map(|log| log.claims).unwrap_or_default();
    let sites: BTreeSet<String> = claims.iter().filter_map(|claim| site_of(&claim.source)).collect();
    for site in sites {
        if let Err(error) = cx.turns.documents.uses().record_source(&site, held) {
            cx.events.warn(format!("the reliability of {site} was not recorded: {error}"));
        }
    }
}

/// Claims held if the answer was approved, and did not if it failed because of them; an answer that failed for other
/// reasons says nothing about them.
fn claims_held(state: &TurnState, ending: &Ending) -> Option<bool> {
    let verdict = state.attempts.iter().rev().find_map(|attempt| attempt.verdict.as_ref());
    match ending {
        Ending::Answer { unverified: false, .. } => Some(true),
        Ending::Clarify { .. } => None,
        _ => verdict.is_some_and(|verdict| verdict.claims_failed).then_some(false),
    }
}

fn note_use(cx: &PhaseContext<'_>, used: &VaultPath, section: &str, ok: bool) {
    let documents = &cx.turns.documents;
    let scope = documents.uses().record(used, ok);
    let scope = scope
        .inspect_err(|error| cx.events.warn(format!("the use of {used} was not recorded: {error}")))
        .unwrap_or(Scope::New);
    if !is_research(used.name()) {
        return;
    }
    let link = DualLink::new(cx.document.at.clone(), &larder_vault::turn_name(cx.draft.number));
    let backlink = Backlink { link, section: section.to_owned() };
    let data = used.join(&used.name().replace(".md", ".json"));
    let in_data = |text: &str| match read_json::<Research>(text).value {
        Some(mut research) => {
            backlink.add_to_value(&mut research);
            larder_vault::write_json(&research)
        }
        None => text.to_owned(),
    };
    let linked = change(documents, used, |text| with_scope(&backlink.add_to(text, used), scope));
    let linked = linked.and_then(|()| data.map_or(Ok(()), |data| change(documents, &data, in_data)));
    if let Err(error) = linked {
        cx.events.warn(format!("{used} has no backlink to this turn: {error}"));
    }
}

/// The document with a wider scope in its frontmatter, if it earned one.
fn with_scope(text: &str, scope: Scope) -> String {
    files::with_meta(text, |meta| meta.scope = meta.scope.max(scope))
}

/// Changes an existing document; a concurrent change is preserved.
fn change(
    documents: &UserDocuments,
    at: &VaultPath,
    change: impl Fn(&str) -> String,
) -> Result<(), StoreError> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let Some(before) = documents.files().read_text(at)? else { return Ok(()) };
        let after = change(&before);
        if after == before {
            return Ok(());
        }
        let seen = ContentHash::new(before.as_bytes());
        match documents.files().write(at, after.as_bytes(), Some(seen)) {
            Err(StoreError::Changed { .. }) if tries > 0 => {}
            written => return written,
        }
    }
}
