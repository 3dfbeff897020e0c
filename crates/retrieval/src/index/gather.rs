//! Fills a budget with records: the best hits, the records they refer to, and then the rest (R1-8.9 to R1-8.12, C23).
//!
//! One priority queue. A hit close to the best is a seed. A seed leads to the records it refers to and those that
//! refer to it, which lead further, each step with less weight. A linked record also leads to those that share a
//! value requested by the query ("state: Ohio" for "the same state"). Knows record numbers; asks the caller for texts
//! and tokens; does not know where they come from.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use hashbrown::{HashMap, HashSet};

use super::words::terms;
use super::{Index, Query, asked_terms};

/// A hit of at least this share of the best score is a seed …
const SEED: f64 = 0.8;
/// … if it is among this many best hits.
const MAX_SEEDS: usize = 8;
/// The priority of any other hit while references are followed, as a share of its worth.
const OTHER: f64 = 0.3;
/// The worth of a record as a share of that of the record that refers to it …
const REFERRED_TO: f64 = 0.9;
/// … and of one to which it refers, if none of those that do answers the query better …
const REFERRING: f64 = 0.8;
/// … or if it does not answer it at all.
const REFERRING_MIN: f64 = 0.1;
/// The worth of a record as a share of that of one with which it shares a value.
const SHARING: f64 = 0.5;
/// A value shared by more records is not followed, and of more records that refer to one, only the best are.
const MAX_LINKED: usize = 64;
/// A line of more distinct words is not a field.
const FIELD_WORDS: usize = 8;

/// How much may be gathered, in the caller's tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// All together.
    pub tokens: usize,
    /// How far references are followed; not at all without it.
    pub links: Option<LinkLimits>,
}

impl Default for Limits {
    /// What a turn offers a model: 1,600 tokens, references followed.
    fn default() -> Self {
        Self { tokens: 1_600, links: Some(LinkLimits::default()) }
    }
}

/// How far references are followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkLimits {
    /// Steps from a hit.
    pub depth: usize,
    /// Tokens of linked records.
    pub tokens: usize,
    /// Tokens of linked records of one document.
    pub document: usize,
}

impl Default for LinkLimits {
    /// Two steps, 80 % of 8,000 tokens, 2,000 of a document (R1-8.9 to R1-8.12, C23).
    fn default() -> Self {
        Self { depth: 2, tokens: 8_000 * 80 / 100, document: 2_000 }
    }
}

/// The records that were gathered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    /// Best first.
    pub records: Vec<GatheredRecord>,
    /// Their tokens.
    pub tokens: usize,
    /// Records that were reached but omitted, in order.
    pub left_out: Vec<(usize, Omission)>,
}

/// A record that was gathered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GatheredRecord {
    /// Its number.
    pub record: usize,
    /// Its tokens.
    pub tokens: usize,
    /// How well it answers, up to 1 for the best hit; for a linked record, the remaining weight of its seed.
    pub worth: f64,
    /// How it was reached.
    pub reached: Reached,
}

/// How a record was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// It shares words with the query.
    Hit,
    /// The record of this number refers to it.
    ReferredToBy(usize),
    /// It refers to the record of this number.
    RefersTo(usize),
    /// It shares a requested value with the record of this number.
    SharesWith(usize),
}

/// Why a record was omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Omission {
    /// All tokens are used up.
    Budget,
    /// The tokens for linked records are.
    LinkBudget,
    /// The tokens for linked records of its document are.
    DocumentBudget,
}

/// A record in the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
struct QueuedRecord {
    record: usize,
    worth: f64,
    priority: f64,
    reached: Reached,
    /// Steps from a hit.
    depth: usize,
    /// Whether its references are followed.
    leads: bool,
}

impl Eq for QueuedRecord {}

impl PartialOrd for QueuedRecord {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedRecord {
    /// The greater leaves the queue first: of equal priorities the record added earlier to the index.
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority.total_cmp(&other.priority).then(other.record.cmp(&self.record))
    }
}

impl Index {
    /// Fills `limits` with records that answer `query`, best first, until the next would exceed them. `text_of` returns
    /// the text of a record as it was added, `tokens_of` what it costs to show. Nothing is shortened.
    pub fn gather<'t>(
        &self,
        query: &Query<'_>,
        limits: &Limits,
        text_of: impl Fn(usize) -> &'t str,
        tokens_of: impl Fn(usize) -> usize,
    ) -> Gathered {
        let mut walk = ReferenceWalk::new(self, query, limits, &text_of);
        let mut done = HashSet::new();
        let mut of_document: HashMap<u32, usize> = HashMap::new();
        let (mut gathered, mut linked) = (Gathered::default(), 0);
        while let Some(next) = walk.queue.pop() {
            let record = next.record;
            if !done.insert(record) {
                continue;
            }
            let tokens = tokens_of(record);
            if tokens > limits.tokens - gathered.tokens {
                gathered.left_out.push((record, Omission::Budget));
                break;
            }
            if let (Some(limits), true) = (&limits.links, next.reached != Reached::Hit) {
                let document = of_document.entry(self.entries[record].document).or_default();
                let over = (tokens > limits.tokens - linked).then_some(Omission::LinkBudget);
                let over_document = tokens > limits.document - *document;
                if let Some(over) = over.or(over_document.then_some(Omission::DocumentBudget)) {
                    gathered.left_out.push((record, over));
                    continue;
                }
                linked += tokens;
                *document += tokens;
            }
            gathered.tokens += tokens;
            let QueuedRecord { worth, reached, .. } = next;
            gathered.records.push(GatheredRecord { record, tokens, worth, reached });
            if next.leads {
                walk.follow(next, &done);
            }
        }
        let rest = std::iter::from_fn(|| walk.queue.pop()).map(|waiting| waiting.record);
        let rest = rest.filter(|record| done.insert(*record)).map(|record| (record, Omission::Budget));
        gathered.left_out.extend(rest);
        gathered
    }
}

impl Gathered {
    /// The hits from which references were followed, had there been any limit for it.
    pub fn seeds(&self) -> impl Iterator<Item = usize> {
        let seeds = self.records.iter().filter(|found| found.reached == Reached::Hit && found.worth >= SEED);
        seeds.map(|found| found.record).take(MAX_SEEDS)
    }
}

/// The way from hits along references.
struct ReferenceWalk<'a, F> {
    index: &'a Index,
    scores: Vec<f64>,
    asked: Vec<u64>,
    /// The terms of the seeds: what they say themselves is not a value to look for.
    said: HashSet<u64>,
    depth: usize,
    queue: BinaryHeap<QueuedRecord>,
    text_of: F,
}

impl<'a, 't, F: Fn(usize) -> &'t str> ReferenceWalk<'a, F> {
    fn new(index: &'a Index, query: &Query<'_>, limits: &Limits, text_of: F) -> Self {
        let scores = index.scores(query);
        let best = scores.iter().copied().fold(0.0, f64::max);
        let mut seeds: Vec<usize> =
            (0..scores.len()).filter(|&record| best > 0.0 && scores[record] >= SEED * best).collect();
        seeds.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        seeds.truncate(MAX_SEEDS);
        let links = limits.links.is_some();
        let waiting = |(record, &score): (usize, &f64)| {
            let (seed, worth) = (seeds.contains(&record), score / best);
            let priority = if links && !seed { worth * OTHER } else { worth };
            QueuedRecord { record, worth, priority, reached: Reached::Hit, depth: 0, leads: links && seed }
        };
        let queue = scores.iter().enumerate().filter(|&(_, &score)| score > 0.0).map(waiting).collect();
        let said = seeds.iter().flat_map(|&seed| terms(text_of(seed))).collect();
        let depth = limits.links.map_or(0, |links| links.depth);
        Self { index, scores, asked: asked_terms(query.text), said, depth, queue, text_of }
    }

    /// Queues the records that a record leads to.
    fn follow(&mut self, from: QueuedRecord, done: &HashSet<usize>) {
        let QueuedRecord { record, worth, reached, depth, .. } = from;
        let index = self.index;
        if depth < self.depth {
            for next in index.references.from(record) {
                self.push(next, worth * REFERRED_TO, Reached::ReferredToBy(record), depth + 1, done);
            }
            let mut referring: Vec<usize> = index.references.to(record).collect();
            referring.sort_by(|&a, &b| self.scores[b].total_cmp(&self.scores[a]).then(a.cmp(&b)));
            referring.truncate(MAX_LINKED);
            let best = referring.first().map_or(0.0, |&first| self.scores[first]);
            for next in referring {
                let answers = if best > 0.0 { (self.scores[next] / best).sqrt() } else { 0.0 };
                let share = REFERRING * (REFERRING_MIN + (1.0 - REFERRING_MIN) * answers);
                self.push(next, worth * share, Reached::RefersTo(record), depth + 1, done);
            }
        }
        // A shared value leads on only once, so that it does not lead everywhere.
        if matches!(reached, Reached::ReferredToBy(_) | Reached::RefersTo(_)) {
            for next in self.sharing(record) {
                // One step is left: to the record that this one belongs to.
                let depth = self.depth.saturating_sub(1);
                self.push(next, worth * SHARING, Reached::SharesWith(record), depth, done);
            }
        }
    }

    fn push(&mut self, record: usize, worth: f64, reached: Reached, depth: usize, done: &HashSet<usize>) {
        if !done.contains(&record) {
            self.queue.push(QueuedRecord { record, worth, priority: worth, reached, depth, leads: true });
        }
    }

    /// The records that share with `record` a field that the query asks for and no seed has.
    fn sharing(&self, record: usize) -> Vec<usize> {
        let mut sharing = Vec::new();
        for line in (self.text_of)(record).lines() {
            let words = terms(line);
            let asked = |word: &&u64| self.asked.contains(word);
            let asks = words.iter().filter(asked).any(|word| !self.said.contains(word));
            if words.len() <= FIELD_WORDS && asks && !words.iter().all(|word| asked(&word)) {
                let records = self.index.containing_all(&words, MAX_LINKED);
                sharing.extend(records.into_iter().filter(|&at| at != record));
            }
        }
        sharing
    }
}
