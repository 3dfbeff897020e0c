//! What a committed turn writes outside its folder: backlinks in the research it used, and usage records. Best
//! effort: a failure is reported and does not undo the commit.

use std::collections::BTreeSet;

use larder_store::{StoreError, UserDocuments};
use larder_text::hash::ContentHash;
use larder_tools::site_of;
use larder_vault::context::ToolLog;
use larder_vault::links::DualLink;
use larder_vault::{Backlink, VaultPath};

use super::phase::PhaseContext;
use super::state::{Ending, TurnState};

/// Attempts to write a document that someone else is writing concurrently.
const TRIES: usize = 3;

/// Records what the turn used. A turn that only asked the user a question records nothing (C6).
pub(super) fn note_turn(cx: &PhaseContext<'_>, ending: &Ending) {
    if let Ending::Answer { unverified, .. } = ending {
        for used in &cx.state.references {
            note_use(cx, used, !unverified);
        }
    }
    note_sites(cx, ending);
    tracing::debug!(turn = cx.draft.number, "turn committed");
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

fn note_use(cx: &PhaseContext<'_>, used: &VaultPath, ok: bool) {
    let documents = &cx.turns.documents;
    if let Err(error) = documents.uses().record(used, ok) {
        cx.events.warn(format!("the use of {used} was not recorded: {error}"));
    }
    if used.name() != "research.md" {
        return;
    }
    let link = DualLink::new(cx.document.at.clone(), &larder_vault::turn_name(cx.draft.number));
    let backlink = Backlink { link, section: "§2 Gathered Context".to_owned() };
    if let Err(error) = change(documents, used, |text| backlink.add_to(text, used)) {
        cx.events.warn(format!("{used} has no backlink to this turn: {error}"));
    }
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
