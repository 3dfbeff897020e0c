//! Filling a budget with records: the best hits, what they lead on to, and then the rest (R1-8.9 to R1-8.12, C23).
//!
//! One queue, best first. A hit close to the best is a seed. A seed leads to the records that it names and to those
//! that name it, and these lead on, each step counting for less. A linked record also leads to those that share with it
//! a value that the question asks for ("state: Ohio" for "the same state"). Knows numbers of records; asks the caller
//! for their texts; does not know where they come from.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use hashbrown::{HashMap, HashSet};

use super::index::{Index, Query, asked_terms};
use super::words::terms;

/// A hit of at least this share of the best score is a seed …
const SEED: f64 = 0.8;
/// … if it is among so many best.
const MOST_SEEDS: usize = 8;
/// What any other hit counts for, while links are followed.
const OTHER: f64 = 0.3;
/// What a record counts for beside the one that names it …
const NAMED: f64 = 0.9;
/// … and beside the one that it names, if nothing that does answers the question better …
const NAMING: f64 = 0.8;
/// … or if it does not answer it at all.
const NAMING_LEAST: f64 = 0.1;
/// What a record counts for beside one with which it shares a value.
const SHARING: f64 = 0.5;
/// A value that more records share links nothing, and of more records that name one only the best are followed.
const MOST_LINKED: usize = 64;
/// A line of more distinct words is no field.
const FIELD_WORDS: usize = 8;

/// How much may be gathered, in the caller's tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// All in all.
    pub tokens: usize,
    /// How far links are followed; none follows none.
    pub links: Option<LinkLimits>,
}

/// How far links are followed.
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

/// What was gathered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    /// The records, best first.
    pub taken: Vec<Taken>,
    /// Their tokens.
    pub tokens: usize,
    /// Records that were reached and not taken; after [`Left::Budget`] nothing more was considered.
    pub left: Vec<(usize, Left)>,
}

/// A record that was gathered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Taken {
    /// Its number.
    pub record: usize,
    /// Its worth beside the best hit's, which is 1.
    pub worth: f64,
    /// How it was reached.
    pub why: Why,
}

/// How a record was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It answers the question itself.
    Found,
    /// This record names it.
    NamedBy(usize),
    /// It names this record.
    Names(usize),
    /// It shares with this record a value that the question asks for.
    Shares(usize),
}

/// Why a record was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// All tokens are used up.
    Budget,
    /// Those for links are.
    LinkBudget,
    /// Those for linked records of its document are.
    Document,
}

/// A record in the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Waiting {
    taken: Taken,
    /// Steps from a hit.
    depth: usize,
    /// Whether it leads anywhere.
    leads: bool,
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// The greater leaves the queue first: the worthier, of equals the one added earlier to the index.
    fn cmp(&self, other: &Self) -> Ordering {
        self.taken.worth.total_cmp(&other.taken.worth).then(other.taken.record.cmp(&self.taken.record))
    }
}

impl Index {
    /// Fills `limits` with records that answer `query`, best first, until the next would pass them. `text_of` gives the
    /// text of a record as it was added. Nothing is shortened.
    pub fn gather<'t>(
        &self,
        query: &Query<'_>,
        limits: &Limits,
        text_of: impl Fn(usize) -> &'t str,
    ) -> Gathered {
        let mut walk = Walk::new(self, query, limits, &text_of);
        let mut done = HashSet::new();
        let mut of_document: HashMap<u64, usize> = HashMap::new();
        let (mut gathered, mut linked) = (Gathered::default(), 0);
        while let Some(next) = walk.queue.pop() {
            let record = next.taken.record;
            if !done.insert(record) {
                continue;
            }
            let entry = &self.entries[record];
            let document = of_document.entry(entry.document).or_default();
            let left = |used: usize, limit: usize| entry.tokens > limit - used;
            if left(gathered.tokens, limits.tokens) {
                gathered.left.push((record, Left::Budget));
                break;
            }
            if let (Some(limits), true) = (&limits.links, next.taken.why != Why::Found) {
                let over = left(linked, limits.tokens).then_some(Left::LinkBudget);
                if let Some(over) = over.or(left(*document, limits.document).then_some(Left::Document)) {
                    gathered.left.push((record, over));
                    continue;
                }
                linked += entry.tokens;
                *document += entry.tokens;
            }
            gathered.tokens += entry.tokens;
            gathered.taken.push(next.taken);
            if next.leads {
                walk.follow(next, &done);
            }
        }
        gathered
    }
}

/// The way from hits along links.
struct Walk<'a, F> {
    index: &'a Index,
    scores: Vec<f64>,
    asked: Vec<u64>,
    /// The terms of the seeds: what they say themselves is no value to look for.
    said: HashSet<u64>,
    depth: usize,
    queue: BinaryHeap<Waiting>,
    text_of: F,
}

impl<'a, 't, F: Fn(usize) -> &'t str> Walk<'a, F> {
    fn new(index: &'a Index, query: &Query<'_>, limits: &Limits, text_of: F) -> Self {
        let scores = index.scores(query);
        let best = scores.iter().copied().fold(0.0, f64::max);
        let mut seeds: Vec<usize> =
            (0..scores.len()).filter(|&record| best > 0.0 && scores[record] >= SEED * best).collect();
        seeds.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        seeds.truncate(MOST_SEEDS);
        let links = limits.links.is_some();
        let waiting = |(record, &score): (usize, &f64)| {
            let seed = seeds.contains(&record);
            let worth = score / best * if links && !seed { OTHER } else { 1.0 };
            Waiting { taken: Taken { record, worth, why: Why::Found }, depth: 0, leads: links && seed }
        };
        let queue = scores.iter().enumerate().filter(|&(_, &score)| score > 0.0).map(waiting).collect();
        let said = seeds.iter().flat_map(|&seed| terms(text_of(seed))).collect();
        let depth = limits.links.map_or(0, |links| links.depth);
        Self { index, scores, asked: asked_terms(query.text), said, depth, queue, text_of }
    }

    /// Queues what a record leads to.
    fn follow(&mut self, from: Waiting, done: &HashSet<usize>) {
        let Waiting { taken: Taken { record, worth, why }, depth, .. } = from;
        let index = self.index;
        if depth < self.depth {
            for named in index.links.from(record) {
                self.push(named, worth * NAMED, Why::NamedBy(record), depth + 1, done);
            }
            let mut naming: Vec<usize> = index.links.to(record).collect();
            naming.sort_by(|&a, &b| self.scores[b].total_cmp(&self.scores[a]).then(a.cmp(&b)));
            naming.truncate(MOST_LINKED);
            let best = naming.first().map_or(0.0, |&first| self.scores[first]);
            for next in naming {
                let answers = if best > 0.0 { (self.scores[next] / best).sqrt() } else { 0.0 };
                let share = NAMING * (NAMING_LEAST + (1.0 - NAMING_LEAST) * answers);
                self.push(next, worth * share, Why::Names(record), depth + 1, done);
            }
        }
        // A shared value leads on once, so that it does not lead everywhere.
        if matches!(why, Why::NamedBy(_) | Why::Names(_)) {
            for sharing in self.sharing(record) {
                // One step is left: to whom the record belongs.
                self.push(sharing, worth * SHARING, Why::Shares(record), self.depth.saturating_sub(1), done);
            }
        }
    }

    fn push(&mut self, record: usize, worth: f64, why: Why, depth: usize, done: &HashSet<usize>) {
        if !done.contains(&record) {
            self.queue.push(Waiting { taken: Taken { record, worth, why }, depth, leads: true });
        }
    }

    /// The records that share with `record` a field that the question asks for and no seed has.
    fn sharing(&self, record: usize) -> Vec<usize> {
        let mut sharing = Vec::new();
        for line in (self.text_of)(record).lines() {
            let words = terms(line);
            let asked = |word: &&u64| self.asked.contains(word);
            let asks = words.iter().filter(asked).any(|word| !self.said.contains(word));
            if words.len() <= FIELD_WORDS && asks && !words.iter().all(|word| asked(&word)) {
                sharing
                    .extend(self.index.sharing(&words, MOST_LINKED).into_iter().filter(|&at| at != record));
            }
        }
        sharing
    }
}
