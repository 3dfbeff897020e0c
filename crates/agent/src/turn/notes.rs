//! What a committed turn leaves outside of its folder: backlinks in the research it used, and notes of use. Best effort:
//! none of it can undo the commit.

use std::collections::BTreeSet;

use larder_store::StoreError;
use larder_text::hash::ContentHash;
use larder_vault::VaultPath;
use larder_vault::context::{self, ToolLog};

use super::machine::Machine;
use super::save::status;
use super::state::Ending;
use larder_tools::site_of;

/// Tries at a document that somebody else writes at the same time.
const TRIES: usize = 3;

impl Machine<'_> {
    /// Notes what the turn used. A turn that only asked back leaves no such notes (C6).
    pub(super) fn note_turn(&mut self, ending: &Ending) {
        if let Ending::Answer { unverified, .. } = ending {
            for used in self.state.references.clone() {
                self.note_use(&used, !unverified);
            }
        }
        self.note_sites(ending);
        tracing::debug!(turn = self.draft.number, status = %status(ending), "turn committed");
    }

    /// Notes of the sites that claims of §4 come from whether what they said held (R1-13.12): it did in an answer that
    /// was approved, and did not in one whose claims failed. An answer that failed for other reasons says nothing of them.
    fn note_sites(&self, ending: &Ending) {
        let failed = self.state.attempts.iter().rev().find_map(|attempt| attempt.verdict.as_ref());
        let ok = match ending {
            Ending::Answer { unverified: false, .. } => true,
            Ending::Clarify { .. } => return,
            _ if failed.is_some_and(|verdict| verdict.claims_failed) => false,
            _ => return,
        };
        let log = context::read_newest::<ToolLog>(&self.context, &self.at()).and_then(|read| read.value);
        let claims = log.map(|log| log.claims).unwrap_or_default();
        let sites: BTreeSet<String> = claims.iter().filter_map(|claim| site_of(&claim.source)).collect();
        for site in sites {
            if let Err(error) = self.turns.documents.uses().record_source(&site, ok) {
                self.warn(format!("how far {site} could be relied on was not noted: {error}"));
            }
        }
    }

    fn note_use(&self, used: &VaultPath, ok: bool) {
        let documents = &self.turns.documents;
        if let Err(error) = documents.uses().record(used, ok) {
            self.warn(format!("the use of {used} was not noted: {error}"));
        }
        if used.name() != "research.md" {
            return;
        }
        let backlink = self.backlink("§2 Gathered Context");
        let linked = self.change(used, |text| text.map(|text| backlink.add_to(&text, used)));
        if let Err(error) = linked {
            self.warn(format!("{used} has no backlink to this turn: {error}"));
        }
    }

    /// Changes a document outside of the turn; a change by somebody else in between is seen and kept.
    fn change(
        &self,
        at: &VaultPath,
        change: impl Fn(Option<String>) -> Option<String>,
    ) -> Result<(), StoreError> {
        let documents = &self.turns.documents;
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let before = documents.files().read_text(at)?;
            let seen = before.as_ref().map(|text| ContentHash::new(text.as_bytes()));
            let Some(after) = change(before.clone()).filter(|after| Some(after) != before.as_ref()) else {
                return Ok(());
            };
            match documents.files().write(at, after.as_bytes(), seen) {
                Err(StoreError::Changed { .. }) if tries > 0 => {}
                written => return written,
            }
        }
    }
}
