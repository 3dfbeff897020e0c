//! Chooses the order in which records are shown, and which of them are essential.
//!
//! Knows templates, errors and the query; does not know tokens or how a page is rendered.

use std::ops::Range;

use hashbrown::HashSet;

use super::blocks::is_title;
use super::mine::Templates;
use super::records::records;
use crate::analysis::relevance::relevance_to;
use crate::engine::job::Job;
use larder_text::query::QueryHits;

/// The number of best answers to the query that precede everything, and the minimum relevance for that.
const ANSWERS: usize = 8;
const RELEVANT: f32 = 0.3;
/// The number of error templates that precede even these.
const ERRORS_FIRST: usize = 12;
/// The weight of a template's example relative to a plain one with new information.
const ERROR: f32 = 4.0;
const QUERY: f32 = 12.0;
const SINGLE: f32 = 0.3;
const OFTEN: f32 = 0.1;
/// The share of weight left to an example whose words all appear in better ones.
const NOTHING_NEW: f32 = 0.3;
/// Bytes added to a record's length when its weight is divided by it, so that short lines gain no advantage.
const OVERHEAD: usize = 120;
/// Beyond examples: the number of records at the edges, and their weight.
const EDGE_RECORDS: usize = 12;
const EDGE: f32 = 3.0;

/// The records of a log in the order in which they are taken.
#[derive(Debug)]
pub(super) struct LogOrder {
    pub(super) records: Vec<Range<usize>>,
    pub(super) templates: Templates,
    /// Records that must be shown.
    pub(super) required: Vec<usize>,
    /// The others, best first; each appears once.
    pub(super) order: Vec<usize>,
    /// How many of `order` are needed to give every template an example.
    pub(super) essential: usize,
}

impl LogOrder {
    pub(super) fn new(job: &Job<'_>) -> Self {
        let text = job.request.text;
        let records = records(text);
        let signs = Signs::new(job, &records);
        let templates = Templates::mine(text, &records, &signs.error);
        let mut taken = vec![false; records.len()];
        let mut take = |record: usize| !std::mem::replace(&mut taken[record], true);
        let required: Vec<usize> =
            touched(&records, &job.required).into_iter().filter(|&r| take(r)).collect();
        let begun: HashSet<usize> = required.iter().map(|&record| templates.of[record]).collect();
        let errors: Vec<usize> = examples(&records, &templates, &signs, &begun)
            .into_iter()
            .filter(|&record| signs.error[record])
            .take(ERRORS_FIRST)
            .collect();
        let first = (!records.is_empty()).then_some(0);
        let ahead = errors.into_iter().chain(first).chain(signs.answers());
        let mut order: Vec<usize> = ahead.filter(|&record| take(record)).collect();
        let shown: HashSet<usize> =
            required.iter().chain(&order).map(|&record| templates.of[record]).collect();
        order.extend(
            examples(&records, &templates, &signs, &shown).into_iter().filter(|&record| take(record)),
        );
        let essential = order.len();
        order.extend(further(&templates, &signs).into_iter().filter(|&record| take(record)));
        Self { records, templates, required, order, essential }
    }
}

/// The evidence for each record.
struct Signs {
    error: Vec<bool>,
    /// How well it answers the query, from 0 to 1; empty without a query.
    relevance: Vec<f32>,
}

impl Signs {
    fn new(job: &Job<'_>, records: &[Range<usize>]) -> Self {
        // What pytest writes of a failed assertion need not name an error.
        let titled = |record: &Range<usize>| is_title(&job.request.text[record.clone()]);
        let mut error: Vec<bool> = records.iter().map(titled).collect();
        touched(records, &job.errors()).into_iter().for_each(|record| error[record] = true);
        let relevance = match job.request.query {
            Some(query) => relevance_to(&QueryHits::of(job.request.text, query), records),
            None => Vec::new(),
        };
        Self { error, relevance }
    }

    fn relevance(&self, record: usize) -> f32 {
        self.relevance.get(record).copied().unwrap_or_default()
    }

    /// The records that answer the query best.
    fn answers(&self) -> Vec<usize> {
        let mut best: Vec<usize> =
            (0..self.relevance.len()).filter(|&record| self.relevance[record] >= RELEVANT).collect();
        best.sort_by(|&a, &b| self.relevance[b].total_cmp(&self.relevance[a]).then(a.cmp(&b)));
        best.truncate(ANSWERS);
        best
    }
}

/// Indices of the records that overlap one of the sorted `ranges`.
fn touched(records: &[Range<usize>], ranges: &[Range<usize>]) -> Vec<usize> {
    let mut found: Vec<usize> = ranges
        .iter()
        .flat_map(|range| {
            let first = records.partition_point(|record| record.end <= range.start);
            let end = records.partition_point(|record| record.start < range.end);
            first..end
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// One record for every template without one in `shown`, the best value for its length first.
fn examples(
    records: &[Range<usize>],
    templates: &Templates,
    signs: &Signs,
    shown: &HashSet<usize>,
) -> Vec<usize> {
    let mut example: Vec<Option<usize>> = vec![None; templates.counts.len()];
    let mut error = vec![false; templates.counts.len()];
    for (record, &template) in templates.of.iter().enumerate() {
        error[template] |= signs.error[record];
        let best = &mut example[template];
        if best.is_none_or(|best| signs.relevance(record) > signs.relevance(best)) {
            *best = Some(record);
        }
    }
    let mut ranked: Vec<(f32, usize, usize)> = Vec::new();
    for (template, record) in example.into_iter().enumerate() {
        let Some(record) = record.filter(|_| !shown.contains(&template)) else { continue };
        let count = templates.counts[template];
        let rarity = if count == 1 { SINGLE } else { OFTEN * count.ilog2() as f32 };
        let failure = if error[template] { ERROR } else { 0.0 };
        let worth = 1.0 + rarity + failure + QUERY * signs.relevance(record);
        ranked.push((worth / ((records[record].len() + OVERHEAD) as f32).sqrt(), template, record));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    let mut said: HashSet<u64> = HashSet::new();
    for (worth, template, _) in &mut ranked {
        let words = &templates.words[*template];
        let new = words.iter().filter(|&&word| said.insert(word)).count();
        *worth *= NOTHING_NEW + new as f32 / words.len().max(1) as f32;
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    ranked.into_iter().map(|(_, _, record)| record).collect()
}

/// All records in the order in which they are added to the examples: edges, answers, errors, the last of each
/// template, then the second of each, the third …
fn further(templates: &Templates, signs: &Signs) -> Vec<usize> {
    let count = templates.of.len();
    let mut nth = vec![0_usize; templates.counts.len()];
    let mut ranked: Vec<(f32, usize)> = Vec::with_capacity(count);
    for (record, &template) in templates.of.iter().enumerate() {
        nth[template] += 1;
        let edge = EDGE_RECORDS.saturating_sub(record.min(count - 1 - record)) as f32 / EDGE_RECORDS as f32;
        let turn = if nth[template] == templates.counts[template] { 1.0 } else { 1.0 / nth[template] as f32 };
        let failure = if signs.error[record] { 1.0 } else { 0.0 };
        ranked.push((EDGE * edge + QUERY * signs.relevance(record) + failure + turn, record));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().map(|(_, record)| record).collect()
}
