//! What earlier turns said without evidence is no evidence later (R0-14.8). Each turn notes it in its metadata.

use std::collections::{BTreeMap, BTreeSet};

use larder_store::UserDocuments;
use larder_tools::figures;
use larder_vault::{TurnMetadata, VaultPath};

/// Turns that one text may name; the newest count.
const MOST_TURNS: usize = 100;

/// The values that earlier turns invented.
pub(super) struct Doubts<'d> {
    documents: &'d UserDocuments,
    invented: BTreeMap<u32, Vec<String>>,
}

impl<'d> Doubts<'d> {
    pub(super) const fn new(documents: &'d UserDocuments) -> Self {
        Self { documents, invented: BTreeMap::new() }
    }

    /// A document without the values that the turns invented which it, or its name, refers to.
    pub(super) fn without(&mut self, name: &str, text: &str) -> String {
        let turns: BTreeSet<u32> = turns_in(name).chain(turns_in(text)).collect();
        let documents = self.documents;
        let mut values = Vec::new();
        for turn in turns.into_iter().rev().take(MOST_TURNS) {
            let known = self.invented.entry(turn);
            values.extend_from_slice(known.or_insert_with(|| invented(documents, turn).unwrap_or_default()));
        }
        values.sort_unstable();
        values.dedup();
        if values.is_empty() { text.to_owned() } else { figures::without(text, &values) }
    }
}

fn invented(documents: &UserDocuments, turn: u32) -> Option<Vec<String>> {
    let row = documents.catalog().turn(turn).ok()??;
    let at = VaultPath::new(&format!("{}/metadata.json", row.context.folder()))?;
    let metadata = documents.files().read_text(&at).ok()??;
    Some(serde_json::from_str::<TurnMetadata>(&metadata).ok()?.invented)
}

/// The numbers of the turns that a text names by their folders.
pub(super) fn turns_in(text: &str) -> impl Iterator<Item = u32> {
    text.match_indices("turn_").filter_map(|(at, start)| {
        let digits = text[at + start.len()..].find(|char: char| !char.is_ascii_digit());
        let end = digits.map_or(text.len(), |length| at + start.len() + length);
        larder_vault::turn_number(&text[at..end])
    })
}
