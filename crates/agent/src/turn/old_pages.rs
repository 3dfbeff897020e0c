//! Captures of shop pages that a turn reads again: a price holds for six hours (R1-3.68, R1-12.4, C106). After that it is
//! evidence only for an answer that says on which day the page was captured.

use larder_retrieval::is_stale;
use larder_store::UserDocuments;
use larder_tools::figures;
use larder_vault::{DocumentTime, ExtractedData, Manifest, VaultPath, read_json, value_names};

/// What such a capture states for `answer`; other documents are returned as they are.
pub(super) fn evidence(
    documents: &UserDocuments,
    (name, text): (&str, String),
    now: DocumentTime,
    answer: &str,
) -> String {
    match captured(documents, name, now) {
        Some(captured) if !figures::names_day(answer, &captured.to_string()) => {
            // The names of values say that they are prices, which `without_prices` does not read.
            if name.ends_with("/extracted_data.json") { String::new() } else { figures::without_prices(&text) }
        }
        _ => text,
    }
}

/// Such a capture as it is shown.
pub(super) fn dated(documents: &UserDocuments, name: &str, text: &str, now: DocumentTime) -> Option<String> {
    let captured = captured(documents, name, now)?;
    let day = captured.to_string();
    let day = day.split('T').next().unwrap_or(&day);
    Some(format!(
        "Captured on {day}: prices and stock may have changed since. Where you state one, say that it is of {day}.\n\n{text}"
    ))
}

/// When the page was captured that a document shows, if it is one with a price that no longer holds.
fn captured(documents: &UserDocuments, name: &str, now: DocumentTime) -> Option<DocumentTime> {
    let at = VaultPath::new(name)?;
    let next_to = |file: &str| VaultPath::new(&format!("{}/{file}", at.folder()));
    let read = |at: VaultPath| documents.files().read_text(&at).ok()?;
    if !at.folder().contains("/webpage_cache/") {
        return None;
    }
    let manifest: Manifest = read_json(&read(next_to("manifest.json")?)?).value?;
    let data: ExtractedData = read_json(&read(next_to("extracted_data.json")?)?).value?;
    let is_of_shop = value_names(&data).iter().any(|name| name == "price");
    (is_of_shop && is_stale(manifest.visited_at, now)).then_some(manifest.visited_at)
}
