//! Prices that an earlier turn looked up: they hold for six hours (R1-3.68, R1-12.4, C106). After that, captured pages that
//! state prices, and what else is stored of a turn that read such pages or did research, are evidence for a price only in an
//! answer that says of which day it is. Research itself expires by its own lifetime.

use larder_retrieval::is_stale;
use larder_store::{CaptureRow, UserDocuments};
use larder_tools::figures;
use larder_vault::{DocumentTime, ExtractedData, VaultPath, read_json, turn_number, value_names};

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// What a document states for `answer`.
pub(super) fn evidence(
    documents: &UserDocuments,
    (name, text): (&str, String),
    now: DocumentTime,
    answer: &str,
) -> String {
    match looked_up(documents, name, now) {
        Some(day) if !says_day(answer, day, now) => {
            // Only the names of values say that they are prices, and these are not read here.
            if name.ends_with("/extracted_data.json") {
                String::new()
            } else {
                figures::without_prices(&text)
            }
        }
        _ => text,
    }
}

/// A document whose prices are old, as it is shown.
pub(super) fn dated(documents: &UserDocuments, name: &str, text: &str, now: DocumentTime) -> Option<String> {
    let day = looked_up(documents, name, now)?.day();
    Some(format!(
        "As of {day}: prices and stock may have changed since. Where you state one, say that it is of {day}.\n\n{text}"
    ))
}

/// Whether an answer names the day of `time`.
fn says_day(answer: &str, time: DocumentTime, now: DocumentTime) -> bool {
    let answer = answer.to_lowercase();
    let is_yesterday = time.plus_seconds(DAY).day() == now.day();
    figures::names_day(&answer, &time.day())
        || is_yesterday && ["yesterday", "gestern"].iter().any(|word| answer.contains(word))
}

/// When the prices of a document were looked up, if they no longer hold.
fn looked_up(documents: &UserDocuments, name: &str, now: DocumentTime) -> Option<DocumentTime> {
    let at = VaultPath::new(name)?;
    let turn = at.folder().split('/').find_map(turn_number)?;
    let row = documents.catalog().turn(turn).ok()??;
    let is_own = at.folder() == row.context.folder();
    if is_own && is_research(&at) {
        return None;
    }
    let captures = documents.catalog().captures(Some(turn), None).ok()?;
    let here = captures.iter().find(|one| one.manifest.folder() == at.folder());
    let did_research =
        || documents.files().list(row.context.folder()).is_ok_and(|files| files.iter().any(is_research));
    let is_of_shop = |one: &CaptureRow| is_of_shop(documents, one.manifest.folder());
    let looked_up = match here {
        Some(page) => is_of_shop(page) || did_research(),
        None => is_own && (captures.iter().any(is_of_shop) || did_research()),
    };
    let time = looked_up.then(|| here.map_or(row.created_at, |page| page.captured_at))?;
    is_stale(time, now).then_some(time)
}

fn is_research(file: &VaultPath) -> bool {
    file.name().starts_with("research") && file.name().ends_with(".md")
}

/// Whether a price was extracted from the page that is captured in a folder, or its text offers something at a price.
fn is_of_shop(documents: &UserDocuments, folder: &str) -> bool {
    let read = |file: &str| {
        let at = VaultPath::new(&format!("{folder}/{file}"));
        at.and_then(|at| documents.files().read_text(&at).ok()?)
    };
    let data: Option<ExtractedData> = read("extracted_data.json").and_then(|data| read_json(&data).value);
    data.is_some_and(|data| value_names(&data).iter().any(|name| name == "price"))
        || read("page_content.md").is_some_and(|text| figures::offers(&text))
}
