//! Logs: one verbatim line of every kind, with the number of lines like it.
//!
//! Groups lines into records, and records that differ only in values into templates. Coordinates choosing and
//! rendering; does not know any program's log format.

mod blocks;
mod choose;
mod mine;
mod records;
mod write;

pub(crate) use self::blocks::explains;
use self::blocks::reports;
use self::choose::LogOrder;
use self::mine::Templates;
use self::records::{has_clock, has_level, is_continuation, records};
use self::write::LogPage;
use crate::condensed::CondenseError;
use crate::engine::condenser::{Condenser, Divide};
use crate::engine::draft::{CondensedDraft, ExtractionOptions};
use crate::engine::extractive::extract;
use crate::engine::job::Job;
use crate::engine::render::Header;
use crate::types::plain::Plain;
use crate::types::{json, table};

/// The condenser of logs.
pub(crate) const CONDENSER: &dyn Condenser = &Logs;

/// Bytes and lines sampled for detection; fewer lines prove nothing.
const SAMPLE_BYTES: usize = 16_384;
const SAMPLE_LINES: usize = 128;
const MIN_LINES: usize = 6;
/// Minimum share of sampled records, in per cent, that start with a time or level.
const SHARE_OF_STAMPED: usize = 80;

/// The same for output without times: sampled bytes, the share of lines that are failures or like others, and how many
/// alike count as that.
const OUTPUT_BYTES: usize = 1 << 18;
const SHARE_OF_OUTPUT: usize = 60;
const OFTEN: usize = 3;

struct Logs;

impl Condenser for Logs {
    fn condense(&self, job: &Job<'_>) -> Result<CondensedDraft, CondenseError> {
        if json::looks_like(job.request.text) {
            return json::CONDENSER.condense(job);
        }
        let plan = LogOrder::new(job);
        let fitting =
            headers(job, job.request.target).find_map(|header| LogPage::new(job, &plan, header).fit());
        // The required lines, or even one line, are too large: only a division finer than lines can help.
        fitting.map_or_else(|| extract(job, &Plain.units(job), &ExtractionOptions::default(), None), Ok)
    }

    fn essential(&self, job: &Job<'_>) -> Option<usize> {
        if json::looks_like(job.request.text) {
            return json::CONDENSER.essential(job);
        }
        let plan = LogOrder::new(job);
        let whole = |header| LogPage::new(job, &plan, header).essential();
        // Use the header that a target of this size would get, so that condensing to it shows exactly this.
        let stable = |&header: &Header| headers(job, whole(header)).next() == Some(header);
        Header::ladder(job).iter().copied().find(stable).map(whole)
    }
}

/// The header forms that `target` can afford, clearest first.
fn headers(job: &Job<'_>, target: usize) -> impl Iterator<Item = Header> {
    let affordable = move |header: &Header| write::header_tokens(job, *header) <= target / header.share();
    Header::ladder(job).iter().copied().filter(affordable)
}

/// Whether `text` looks like a log: most records start with a time of day or a level, and the lines are not rows with
/// equally many fields. What a compiler or test runner writes is one too.
pub(crate) fn looks_like(text: &str) -> bool {
    is_stamped(text) || is_output(text)
}

fn is_stamped(text: &str) -> bool {
    let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    let heads: Vec<&str> = sample
        .lines()
        .take(SAMPLE_LINES)
        .filter(|line| !line.trim().is_empty() && !is_continuation(line))
        .collect();
    let stamped = heads.iter().filter(|line| has_clock(line) || has_level(line)).count();
    heads.len() >= MIN_LINES && stamped * 100 >= heads.len() * SHARE_OF_STAMPED && !is_table(&heads)
}

/// Whether a program reports a failure in `text`, and the failures and lines like many others are most of it. Prose and
/// source code may quote a failure, but hardly consist of such lines.
fn is_output(text: &str) -> bool {
    if !reports(text) {
        return false;
    }
    let sample = &text[..text.floor_char_boundary(OUTPUT_BYTES)];
    let records = records(sample);
    let templates = Templates::mine(sample, &records, &vec![false; records.len()]);
    let (mut all, mut covered) = (0, 0);
    for (record, template) in records.iter().zip(templates.of) {
        let record = &sample[record.clone()];
        let lines = record.lines().filter(|line| !line.trim().is_empty()).count();
        all += lines;
        if templates.counts[template] >= OFTEN || reports(record) {
            covered += lines;
        }
    }
    all >= MIN_LINES && covered * 100 >= all * SHARE_OF_OUTPUT && !table::looks_like(text)
}

/// Whether all lines contain the same number, at least two, of commas, tabs or semicolons.
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
