//! Unified diffs: names every file with its status, then shows hunks with their original headers, in whole lines.
//!
//! Coordinates parsing, choosing and rendering. Does not know what the changed files mean.

mod choose;
mod parse;
mod write;

use self::choose::DiffOrder;
use self::parse::{ParsedDiff, hunk_header, starts_file};
use self::write::DiffPage;
use crate::condensed::CondenseError;
use crate::engine::condenser::{Condenser, Divide};
use crate::engine::draft::{CondensedDraft, ExtractionOptions};
use crate::engine::extractive::extract;
use crate::engine::job::Job;
use crate::engine::render::Header;
use crate::types::plain::Plain;
use larder_text::query::QueryHits;

/// The condenser of diffs.
pub(crate) const CONDENSER: &dyn Condenser = &Diffs;

/// How many bytes may precede the first hunk or header, such as a commit message.
const SAMPLE_BYTES: usize = 65_536;
const SAMPLE_LINES: usize = 400;
/// From this size on, words of the query are searched for while the lines are being parsed.
const LARGE: usize = 1 << 17;
/// Git headers that need no hunk: a rename, a mode change, a binary file.
const GIT_SIGNS: [&str; 9] = [
    "index ",
    "old mode ",
    "new mode ",
    "deleted file mode ",
    "new file mode ",
    "similarity index ",
    "rename from ",
    "copy from ",
    "Binary files ",
];

struct Diffs;

impl Condenser for Diffs {
    fn condense(&self, job: &Job<'_>) -> Result<CondensedDraft, CondenseError> {
        let (diff, plan) = read(job);
        let fitting = headers(job, &diff, job.request.target)
            .find_map(|header| DiffPage::new(job, &diff, &plan, header).fit());
        // The required lines, or the header alone, are too large: only a division finer than lines can help.
        fitting.map_or_else(|| extract(job, &Plain.units(job), &ExtractionOptions::default(), None), Ok)
    }

    fn essential(&self, job: &Job<'_>) -> Option<usize> {
        let (diff, plan) = read(job);
        let whole = |header| DiffPage::new(job, &diff, &plan, header).essential();
        // Use the header that a target of this size would get, so that condensing to it shows exactly this.
        let stable = |&header: &Header| headers(job, &diff, whole(header)).next() == Some(header);
        Header::ladder(job).iter().copied().find(stable).map(whole)
    }
}

/// A diff, and the order in which it is shown.
fn read(job: &Job<'_>) -> (ParsedDiff, DiffOrder) {
    let text = job.request.text;
    let asked = || job.request.query.map(|query| QueryHits::of(text, query));
    let parse = || ParsedDiff::parse(text);
    let (asked, diff) = job.request.counter.workers().join_if_worth(text.len() >= LARGE, asked, parse);
    let order = DiffOrder::new(job, &diff, asked.as_ref());
    (diff, order)
}

/// The header forms that `target` can afford, clearest first.
fn headers(job: &Job<'_>, diff: &ParsedDiff, target: usize) -> impl Iterator<Item = Header> {
    let affordable =
        move |header: &Header| write::header_tokens(job, diff, *header) <= target / header.share();
    Header::ladder(job).iter().copied().filter(affordable)
}

/// Whether `text` looks like a diff: a file header followed by a hunk or an extended git header, at the start of
/// lines and outside Markdown fences.
pub(crate) fn looks_like(text: &str) -> bool {
    let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    let lines: Vec<&str> =
        sample.lines().take(SAMPLE_LINES).take_while(|line| !line.starts_with("```")).collect();
    let Some(first) = lines.iter().position(|line| starts_file(line) || line.starts_with("--- ")) else {
        return false;
    };
    let git = lines[first].starts_with("diff --git ");
    let mut after = lines[first + 1..].iter().take(12);
    after
        .any(|line| hunk_header(line).is_some() || git && GIT_SIGNS.iter().any(|sign| line.starts_with(sign)))
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
