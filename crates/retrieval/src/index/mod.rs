//! The index of records, how a query ranks them, and what they lead on to within a budget, without any model
//! (R1-8, R1-10, R4-4; C90, C91).
//!
//! A record is a short text: a paragraph, a message, a list entry, a fact. The [`Index`] stores what is needed to
//! find records; texts stay with the caller. [`Index::search`] ranks, [`Index::gather`] fills a budget and follows
//! references. Both are pure: the same records and query produce the same order on every machine.
//!
//! A record is scored by BM25 three times: with its neighbours, alone, and as part of its section. The score is raised
//! if the query names the record's author or day, and lowered if the record only asks or says little.
//!
//! Knows words, days, ids and tokens; does not know where records come from, documents, prompts or models.

mod calendar;
mod dates;
mod gather;
mod kept;
mod questions;
mod references;
mod words;

use std::sync::LazyLock;

use chrono::NaiveDate;
use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

use larder_text::bm25::{bm25, rarity};
use larder_text::words::STOP_WORDS;

use dates::spans;
use references::References;
use words::{Stems, term, terms};

pub use dates::day_of;
pub use gather::{Gathered, GatheredRecord, Limits, LinkLimits, Omission, Reached};
pub(crate) use kept::KeptRecords;
pub(crate) use questions::{asks_latest, asks_when};
pub use references::{ids, is_id};

/// What the words of the records before a record count for in it, nearest first …
const BEFORE: [f64; 2] = [0.7, 0.5];
/// … and of those after it. Later text is less often the answer.
const AFTER: [f64; 2] = [0.4, 0.3];
/// The additional weight of the previous record's words if it asks a question, which this one may answer.
const ANSWER: f64 = 0.5;
/// The weight of a match of the record alone next to one with its neighbours …
const ALONE: f64 = 0.1;
/// … and of a match of its section.
const SECTION: f64 = 0.2;
/// The score rises by this share if the query names the record's author …
const AUTHOR: f64 = 0.7;
/// … and by this if it names the record's day.
const DATED: f64 = 0.3;
/// It falls by this share if the record ends with a question.
const ASKS: f64 = 0.2;
/// A record with this many words counts half as much as a long one.
const FEW_WORDS: f64 = 2.0;
/// Maximum distinct query words, from its start.
const MAX_TERMS: usize = 48;
/// The author of records without one.
const NO_AUTHOR: u32 = u32::MAX;

/// A piece of text that a query may find. Everything but the text is optional.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<'a> {
    /// The text as a reader sees it, date and author included: all of it is searched.
    pub text: &'a str,
    /// The author.
    pub author: Option<&'a str>,
    /// The day it was written.
    pub day: Option<NaiveDate>,
    /// A number for the document that contains it; how much is linked of one document is limited (R1-8.11).
    pub document: u32,
    /// The id by which other records refer to it.
    pub id: Option<&'a str>,
}

/// A question, or any text that records are ranked by.
#[derive(Debug, Clone, Copy, Default)]
pub struct Query<'a> {
    /// The question.
    pub text: &'a str,
    /// The current day, for "yesterday" and months without a year.
    pub today: Option<NaiveDate>,
}

impl<'a> Query<'a> {
    /// A query without a current day.
    pub fn new(text: &'a str) -> Self {
        Self { text, today: None }
    }
}

/// A record that shares words with a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The record's number.
    pub record: usize,
    /// Its score; comparable within one search.
    pub score: f64,
}

/// An index of records, numbered from 0 in the order they were added.
#[derive(Debug, Clone, Default)]
pub struct Index {
    stems: Stems,
    postings: HashMap<u64, Vec<Posting>>,
    entries: Vec<RankedRecord>,
    sections: Vec<RecordSection>,
    /// The terms of each author's name.
    authors: Vec<Vec<u64>>,
    author_numbers: HashMap<u64, u32>,
    references: References,
    /// The only terms that are indexed, if the index is for one query.
    only: Option<HashSet<u64>>,
}

/// How often a term occurs in a record.
#[derive(Debug, Clone, Copy)]
struct Posting {
    record: u32,
    times: u32,
}

/// What ranking needs of a record. Kept small: `ask` indexes millions.
#[derive(Debug, Clone)]
struct RankedRecord {
    /// The words of its window, each by its weight.
    window: f64,
    words: u32,
    section: u32,
    author: u32,
    document: u32,
    day: Option<NaiveDate>,
    asks: bool,
}

/// Records that follow one another.
#[derive(Debug, Clone)]
struct RecordSection {
    start: usize,
    words: f64,
}

/// A query, analysed.
struct Analysed {
    /// The terms that records are scored by.
    terms: Vec<u64>,
    /// These and the terms without meaning of their own.
    all: Vec<u64>,
}

impl Index {
    /// Creates an index that is searched only for `query`: it ranks like any other, stores no other words and follows
    /// no references, so it needs a few bytes per record instead of per word.
    pub fn for_query(query: &str) -> Self {
        Self { only: Some(asked_terms(query).into_iter().collect()), ..Self::default() }
    }

    /// Begins a new section: records after this are not neighbours of records before it. Records that do not follow
    /// one another, such as rows, are a section each.
    pub fn start_section(&mut self) {
        self.sections.push(RecordSection { start: self.entries.len(), words: 0.0 });
    }

    /// Adds the next record and returns its number.
    pub fn add(&mut self, record: &Record<'_>) -> usize {
        let words = self.post(record.text, self.entries.len());
        if self.only.is_none() {
            self.references.add(record.text, record.id);
        }
        self.enter(record, words, asks(record.text))
    }

    /// Enters the next record, whose words are counted and posted elsewhere.
    fn enter(&mut self, record: &Record<'_>, words: u32, asks: bool) -> usize {
        let number = self.entries.len();
        if self.sections.is_empty() {
            self.start_section();
        }
        let section = self.sections.len() - 1;
        let author = record.author.map_or(NO_AUTHOR, |author| self.author(author));
        self.sections[section].words += f64::from(words);
        self.entries.push(RankedRecord {
            window: f64::from(words),
            words,
            section: saturating(section),
            author,
            document: record.document,
            day: record.day,
            asks,
        });
        for distance in 1..=BEFORE.len().min(number - self.sections[section].start) {
            let earlier = number - distance;
            self.entries[number].window +=
                self.carried(earlier, number) * f64::from(self.entries[earlier].words);
            self.entries[earlier].window += self.carried(number, earlier) * f64::from(words);
        }
        number
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether some record defines this id.
    pub fn defines(&self, id: &str) -> bool {
        self.references.defines(id)
    }

    /// How rare a word is among the records, in its rarest form. In an index for one query, other words count as
    /// occurring in no record.
    pub fn rarity(&self, word: &str) -> f64 {
        let containing = |term: &u64| self.postings.get(term).map_or(0, Vec::len);
        rarity(self.len(), terms(word).iter().map(containing).max().unwrap_or(0))
    }

    /// Records that share words with `query`, best first, equals in order.
    pub fn search(&self, query: &Query<'_>) -> Vec<Hit> {
        let mut hits: Vec<Hit> = self
            .scores(query)
            .into_iter()
            .enumerate()
            .filter(|&(_, score)| score > 0.0)
            .map(|(record, score)| Hit { record, score })
            .collect();
        hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.record.cmp(&b.record)));
        hits
    }

    /// The score of every record; 0 if it shares no word with the query.
    fn scores(&self, query: &Query<'_>) -> Vec<f64> {
        let spans = spans(query.text, query.today);
        let of_days = |entry: &RankedRecord| {
            let of_day = entry.day.is_some_and(|day| spans.iter().any(|span| span.contains(&day)));
            f64::from(u8::from(of_day))
        };
        let of_days: Vec<f64> = self.entries.iter().map(of_days).collect();
        self.scores_with(query.text, &of_days, 0.0)
    }

    /// The same, given how well each record is of the days that are named, from 0 to 1, and what that counts for by itself.
    fn scores_with(&self, text: &str, of_days: &[f64], weight: f64) -> Vec<f64> {
        let analysed = Analysed::new(text);
        let mut scores = self.word_scores(&analysed.terms);
        let named: Vec<bool> =
            self.authors.iter().map(|name| name.iter().any(|term| analysed.all.contains(term))).collect();
        for ((entry, of_days), score) in self.entries.iter().zip(of_days).zip(&mut scores) {
            *score += weight * of_days;
            let words = f64::from(entry.words);
            *score *= words / (words + FEW_WORDS);
            if entry.asks {
                *score *= 1.0 - ASKS;
            }
            if named.get(entry.author as usize).is_some_and(|named| *named) {
                *score *= 1.0 + AUTHOR;
            }
            *score *= 1.0 + DATED * of_days;
        }
        scores
    }

    /// BM25 of every record in its window, alone and in its section.
    fn word_scores(&self, terms: &[u64]) -> Vec<f64> {
        let records = self.entries.len();
        let mut scores = vec![0.0_f64; records];
        let mut sections = vec![0.0_f64; self.sections.len()];
        let (mut times, mut touched) = (vec![0.0_f64; records], Vec::new());
        let windows = self.entries.iter().map(|entry| entry.window).sum::<f64>() / records as f64;
        let words = self.entries.iter().map(|entry| f64::from(entry.words)).sum::<f64>();
        for postings in terms.iter().filter_map(|term| self.postings.get(term)) {
            self.spread(postings, &mut times, &mut touched);
            let weight = rarity(records, touched.len());
            for at in touched.drain(..) {
                let times = std::mem::take(&mut times[at]);
                scores[at] += bm25(weight, times, self.entries[at].window / windows);
            }
            let weight = ALONE * rarity(records, postings.len());
            for posting in postings {
                let at = posting.record as usize;
                let length = f64::from(self.entries[at].words) / words * records as f64;
                scores[at] += bm25(weight, f64::from(posting.times), length);
            }
            let held = |posting: &Posting| self.entries[posting.record as usize].section;
            let in_section: Vec<&[Posting]> = postings.chunk_by(|a, b| held(a) == held(b)).collect();
            let weight = SECTION * rarity(sections.len(), in_section.len());
            for postings in in_section {
                let times = postings.iter().map(|posting| f64::from(posting.times)).sum();
                let at = held(&postings[0]) as usize;
                sections[at] += bm25(weight, times, self.sections[at].words / words * sections.len() as f64);
            }
        }
        for (score, entry) in scores.iter_mut().zip(&self.entries).filter(|(score, _)| **score > 0.0) {
            *score += sections[entry.section as usize];
        }
        scores
    }

    /// Adds up how often a term occurs in each window, by weight, and lists the windows that contain it.
    fn spread(&self, postings: &[Posting], times: &mut [f64], touched: &mut Vec<usize>) {
        for posting in postings {
            let from = posting.record as usize;
            let section = self.entries[from].section as usize;
            let end = self.sections.get(section + 1).map_or(self.entries.len(), |next| next.start);
            let first = from.saturating_sub(AFTER.len()).max(self.sections[section].start);
            let end = (from + 1 + BEFORE.len()).min(end);
            for (at, times) in (first..end).zip(&mut times[first..end]) {
                if *times == 0.0 {
                    touched.push(at);
                }
                *times += self.carried(from, at) * f64::from(posting.times);
            }
        }
    }

    /// What the words of record `from` count for in the window of `to`, at most [`BEFORE`] or [`AFTER`] away.
    fn carried(&self, from: usize, to: usize) -> f64 {
        match to.checked_sub(from) {
            Some(0) => 1.0,
            Some(1) if self.entries[from].asks => BEFORE[0] + ANSWER,
            Some(distance) => BEFORE[distance - 1],
            None => AFTER[from - to - 1],
        }
    }

    /// Posts the terms of a record; returns how many words it has.
    fn post(&mut self, text: &str, number: usize) -> u32 {
        let (record, mut words) = (saturating(number), 0);
        let (postings, only) = (&mut self.postings, self.only.as_ref());
        self.stems.for_each(text, |term| {
            words += 1;
            if only.is_some_and(|only| !only.contains(&term)) {
                return;
            }
            let postings = postings.entry(term).or_default();
            match postings.last_mut() {
                Some(last) if last.record == record => last.times += 1,
                _ => postings.push(Posting { record, times: 1 }),
            }
        });
        words
    }

    fn author(&mut self, name: &str) -> u32 {
        let next = saturating(self.authors.len());
        let number = *self.author_numbers.entry(xxh3_64(name.as_bytes())).or_insert(next);
        if number == next {
            self.authors.push(with_meaning(&terms(name)));
        }
        number
    }

    /// The records that contain all of these terms, in order, if they are from 1 to `max`.
    fn containing_all(&self, terms: &[u64], max: usize) -> Vec<usize> {
        let mut lists: Vec<&[Posting]> = Vec::with_capacity(terms.len());
        for term in terms {
            let Some(postings) = self.postings.get(term) else { return Vec::new() };
            lists.push(postings);
        }
        lists.sort_by_key(|list| list.len());
        let Some((rarest, others)) = lists.split_first() else { return Vec::new() };
        let mut containing = Vec::new();
        for posting in *rarest {
            let contains =
                |list: &&[Posting]| list.binary_search_by_key(&posting.record, |p| p.record).is_ok();
            if others.iter().all(contains) {
                containing.push(posting.record as usize);
            }
            if containing.len() > max {
                return Vec::new();
            }
        }
        containing
    }
}

impl Analysed {
    fn new(query: &str) -> Self {
        let mut all = terms(query);
        all.truncate(MAX_TERMS);
        Self { terms: about(&all), all }
    }
}

/// The terms that a query is about.
fn asked_terms(query: &str) -> Vec<u64> {
    Analysed::new(query).terms
}

/// Without words that say nothing of the subject; all if there are no others.
fn about(all: &[u64]) -> Vec<u64> {
    let with_meaning = with_meaning(all);
    if with_meaning.is_empty() { all.to_vec() } else { with_meaning }
}

fn with_meaning(all: &[u64]) -> Vec<u64> {
    static STOP_TERMS: LazyLock<Vec<u64>> =
        LazyLock::new(|| STOP_WORDS.iter().map(|word| term(word)).collect());
    all.iter().copied().filter(|term| !STOP_TERMS.contains(term)).collect()
}

/// Whether the last sentence of a text is a question.
pub fn asks(text: &str) -> bool {
    let last = text.rfind(['.', '!', '?', '…', '。', '！', '？']);
    last.is_some_and(|at| text[at..].starts_with(['?', '？']))
}

fn saturating(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
