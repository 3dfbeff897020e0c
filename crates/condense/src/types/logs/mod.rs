//! Logs: one line of every kind, verbatim, with the number of lines like it.
//!
//! Lines are put together to records, records that differ in values only to templates. Knows how these are chosen and
//! written down through its parts; does not know any one program's log format.

mod choose;
mod mine;
mod records;
mod write;

use self::choose::LogOrder;
use self::records::{has_clock, has_level, is_continuation};
use self::write::LogPage;
use crate::condensed::CondenseError;
use crate::engine::condenser::{Condenser, Divide};
use crate::engine::draft::{CondensedDraft, ExtractionOptions};
use crate::engine::extractive::extract;
use crate::engine::job::Job;
use crate::engine::render::Header;
use crate::types::json;
use crate::types::plain::Plain;

/// The condenser of logs.
pub(crate) const CONDENSER: &dyn Condenser = &Logs;

/// How much of a text is looked at to recognise it, in bytes and lines; fewer lines prove nothing.
const SAMPLE_BYTES: usize = 16_384;
const SAMPLE_LINES: usize = 128;
const MIN_LINES: usize = 6;
/// Per cent of the sampled heads of records that must say when or how grave.
const SHARE_OF_STAMPED: usize = 80;

struct Logs;

impl Condenser for Logs {
    fn condense(&self, job: &Job<'_>) -> Result<CondensedDraft, CondenseError> {
        if json::looks_like(job.request.text) {
            return json::CONDENSER.condense(job);
        }
        let plan = LogOrder::new(job);
        let fitting =
            headers(job, job.request.target).find_map(|header| LogPage::new(job, &plan, header).fit());
        // What must be shown, or even one line, is too large: only a division finer than lines can help.
        fitting.map_or_else(|| extract(job, &Plain.units(job), &ExtractionOptions::default(), None), Ok)
    }

    fn essential(&self, job: &Job<'_>) -> Option<usize> {
        if json::looks_like(job.request.text) {
            return json::CONDENSER.essential(job);
        }
        let plan = LogOrder::new(job);
        let whole = |header| LogPage::new(job, &plan, header).essential();
        // The header that a target of this size would be given, so that condensing to it shows exactly this.
        let stable = |&header: &Header| headers(job, whole(header)).next() == Some(header);
        Header::ladder(job).iter().copied().find(stable).map(whole)
    }
}

/// The forms of header that are not too dear for `target`, the clearest first.
fn headers(job: &Job<'_>, target: usize) -> impl Iterator<Item = Header> {
    let affordable = move |header: &Header| write::header_tokens(job, *header) <= target / header.share();
    Header::ladder(job).iter().copied().filter(affordable)
}

/// Whether `text` looks like a log: most records begin with a time of day or a level, and the lines
/// are not rows of equally many fields.
pub(crate) fn looks_like(text: &str) -> bool {
    let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    let heads: Vec<&str> = sample
        .lines()
        .take(SAMPLE_LINES)
        .filter(|line| !line.trim().is_empty() && !is_continuation(line))
        .collect();
    let stamped = heads.iter().filter(|line| has_clock(line) || has_level(line)).count();
    heads.len() >= MIN_LINES && stamped * 100 >= heads.len() * SHARE_OF_STAMPED && !is_table(&heads)
}

/// Whether all lines hold the same number, more than one, of commas, tabs or semicolons.
fn is_table(lines: &[&str]) -> bool {
    [b',', b'\t', b';'].into_iter().any(|separator| {
        let fields = |line: &&str| line.bytes().filter(|&byte| byte == separator).count();
        let first = lines.first().map_or(0, fields);
        first > 1 && lines.iter().all(|line| fields(line) == first)
    })
}

#[cfg(test)]
#[path = "logs_tests.rs"]
mod tests;
