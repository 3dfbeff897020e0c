//! Prices that an earlier turn looked up: they hold for six hours (R1-3.68, R1-12.4, C106). After that, captured pages that
//! state prices, and what else is stored of a turn that read such pages or did research, are evidence for a price only in an
//! answer that says of which day it is; so are such prices where a later turn repeats them. Research itself expires by its
//! own lifetime.

use std::collections::BTreeSet;

use larder_retrieval::is_stale;
use larder_store::{CaptureRow, TurnRow, UserDocuments};
use larder_tools::figures;
use larder_vault::{DocumentTime, ExtractedData, VaultPath, read_json, turn_number, value_names};

use super::doubts::turns_in;

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// Turns that are searched for where another has its prices from.
const MOST_TURNS: usize = 20;

/// Prices that were looked up so long ago that they no longer hold.
struct OldPrices {
    looked_up: DocumentTime,
    /// What stated them, for a turn that repeats what an earlier one had looked up; its other prices are not old.
    source: Option<String>,
}

impl OldPrices {
    /// A text with marks in place of them.
    fn removed_from(&self, text: &str) -> String {
        match &self.source {
            Some(source) => figures::without_prices_of(text, source),
            None => figures::without_prices(text),
        }
    }
}

/// What a document states for `answer`.
pub(super) fn evidence(
    documents: &UserDocuments,
    (name, text): (&str, String),
    now: DocumentTime,
    answer: &str,
) -> String {
    let old = find(documents, (name, &text), now).into_iter();
    let undated: Vec<OldPrices> = old.filter(|old| !says_day(answer, old.looked_up, now)).collect();
    if undated.is_empty() {
        return text;
    }
    // Only the names of values say that they are prices, and these are not read here.
    if name.ends_with("/extracted_data.json") {
        return String::new();
    }
    undated.iter().fold(without_cells(&text), |text, old| old.removed_from(&text))
}

/// A document whose prices are old, as it is shown.
pub(super) fn dated(documents: &UserDocuments, name: &str, text: &str, now: DocumentTime) -> Option<String> {
    let states = |old: &OldPrices| {
        old.source.is_none() || old.removed_from(text) != figures::without_prices_of(text, "")
    };
    let day = find(documents, (name, text), now).into_iter().find(states)?.looked_up.day();
    Some(format!(
        "As of {day}: prices and stock may have changed since. Where you state one, say that it is of {day}.\n\n{text}"
    ))
}

/// When the old prices of a document were looked up.
pub(super) fn days(
    documents: &UserDocuments,
    document: (&str, &str),
    now: DocumentTime,
) -> impl Iterator<Item = DocumentTime> {
    find(documents, document, now).into_iter().map(|old| old.looked_up)
}

/// What §2 states for `answer`: of its lines about one of the `days`, no price unless the answer says that day as well.
pub(super) fn of_lines(text: &str, days: &[DocumentTime], now: DocumentTime, answer: &str) -> String {
    let is_old =
        |line: &str| days.iter().any(|day| says_day(line, *day, now) && !says_day(answer, *day, now));
    let line = |line: &str| if is_old(line) { figures::without_prices(line) } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Whether a text names the day of `time`.
pub(super) fn says_day(text: &str, time: DocumentTime, now: DocumentTime) -> bool {
    let text = text.to_lowercase();
    let is_yesterday = time.plus_seconds(DAY).day() == now.day();
    let full_days = now.seconds_since(time) / DAY;
    // In the morning, the evening before the last is one day ago by the clock, and two by the calendar.
    let by_calendar = full_days + u64::from(time.plus_seconds(full_days * DAY).day() != now.day());
    let ago = [full_days, by_calendar].into_iter().filter(|days| *days > 0);
    let ago: Vec<i64> = ago.filter_map(|days| days.try_into().ok()).collect();
    figures::names_day(&text, &time.day())
        || figures::says_ago(&text, &ago)
        || is_yesterday && ["yesterday", "gestern"].iter().any(|word| text.contains(word))
}

/// The prices of a document that no longer hold.
fn find(documents: &UserDocuments, (name, text): (&str, &str), now: DocumentTime) -> Vec<OldPrices> {
    let has_prices = || {
        let text = without_cells(text);
        figures::without_prices(&text) != figures::without_prices_of(&text, "")
    };
    let found = || {
        let at = VaultPath::new(name)?;
        let turn = at.folder().split('/').find_map(turn_number)?;
        let row = documents.catalog().turn(turn).ok()??;
        let is_own = at.folder() == row.context.folder();
        if is_own && is_research(&at) {
            return None;
        }
        Some(match looked_up(documents, &row, at.folder()) {
            Some(looked_up) if is_stale(looked_up, now) => vec![OldPrices { looked_up, source: None }],
            _ if is_own && has_prices() => repeated(documents, row),
            _ => Vec::new(),
        })
    };
    let mut found = found().unwrap_or_default();
    found.retain(|old| is_stale(old.looked_up, now));
    found
}

/// When the prices in a folder of a turn were looked up, if the turn did that.
fn looked_up(documents: &UserDocuments, row: &TurnRow, folder: &str) -> Option<DocumentTime> {
    let captures = documents.catalog().captures(Some(row.number), None).ok()?;
    let here = captures.iter().find(|one| one.manifest.folder() == folder);
    let did_research =
        || documents.files().list(row.context.folder()).is_ok_and(|files| files.iter().any(is_research));
    let is_of_shop = |one: &&CaptureRow| is_of_shop(documents, one.manifest.folder());
    match here {
        Some(page) => (is_of_shop(&page) || did_research()).then_some(page.captured_at),
        None if folder == row.context.folder() => {
            let of_shops = captures.iter().filter(is_of_shop).map(|one| one.captured_at);
            of_shops.min().or_else(|| did_research().then_some(row.created_at))
        }
        None => None,
    }
}

/// The prices that a turn may repeat of those that the earlier turns which it names had looked up, directly or by others,
/// and that it did not look up again.
fn repeated(documents: &UserDocuments, row: TurnRow) -> Vec<OldPrices> {
    let again = read_in(documents, &row);
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    // Each with the prices that are new in it or in those through which it was found.
    let mut open = vec![(row, again)];
    while let Some((row, again)) = open.pop() {
        let text = documents.files().read_text(&row.context).ok().flatten().unwrap_or_default();
        for turn in turns_in(&text).filter(|turn| *turn < row.number) {
            if seen.len() == MOST_TURNS || !seen.insert(turn) {
                continue;
            }
            let Ok(Some(earlier)) = documents.catalog().turn(turn) else { continue };
            let read = read_in(documents, &earlier);
            if let Some(looked_up) = looked_up(documents, &earlier, earlier.context.folder()) {
                let said = documents.files().read_text(&earlier.context).ok().flatten().unwrap_or_default();
                let source = figures::without_prices_of(&format!("{read}\n{said}"), &again);
                found.push(OldPrices { looked_up, source: Some(source) });
            }
            open.push((earlier, format!("{again}\n{read}")));
        }
    }
    found
}

/// What the pages that a turn captured and its research state.
fn read_in(documents: &UserDocuments, row: &TurnRow) -> String {
    let captures = documents.catalog().captures(Some(row.number), None).unwrap_or_default();
    let pages = captures.iter().flat_map(|one| {
        let folder = one.manifest.folder();
        ["page_content.md", "extracted_data.json"].map(|file| VaultPath::new(&format!("{folder}/{file}")))
    });
    let research = documents.files().list(row.context.folder()).unwrap_or_default();
    let research = research.into_iter().filter(is_research);
    let files = pages.flatten().chain(research);
    let texts = files.filter_map(|file| documents.files().read_text(&file).ok()?);
    texts.collect::<Vec<_>>().join("\n")
}

/// A document in which tables that were written into a single line, with `|` escaped and `<br>` for line breaks, have their
/// lines again.
fn without_cells(text: &str) -> String {
    const ESCAPED: &str = "\\|";
    if !text.contains(ESCAPED) {
        return text.to_owned();
    }
    let lines = text.lines().flat_map(|line| line.split("<br>")).map(|line| match line.split_once(ESCAPED) {
        Some((before, row)) => {
            let end = if before.trim().is_empty() { "" } else { "\n" };
            format!("{before}{end}|{}", row.replace(ESCAPED, "|"))
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_in_tables_that_stand_in_one_line_are_found() {
        let table = "**Result:** \\| Model \\| Price (USD) \\| Stock \\|<br>\\|---\\|---\\|---\\|<br>\\| Rule 1100 \\| 74.00 \\| 3 \\|";
        let text = figures::without_prices(&without_cells(table));
        assert!(!text.contains("74.00") && text.contains("| 3 |"), "{text}");
    }

    #[test]
    fn a_day_is_said_as_date_or_as_days_ago() {
        let [then, now] = ["2026-01-02T15:30:00Z", "2026-01-05T10:00:00Z"].map(|time| time.parse().unwrap());
        for said in ["3 days ago it cost $697", "2 days ago", "on 2 January 2026", "vor drei Tagen"] {
            assert!(says_day(said, then, now), "{said}");
        }
        for said in ["4 days ago", "yesterday", "on 5 January 2026", "it costs $697"] {
            assert!(!says_day(said, then, now), "{said}");
        }
    }
}
