//! The index of records and how a question ranks them.
//!
//! A record is scored by BM25 as three things: with its neighbours, alone, and as part of its section. Then it counts
//! for more if the question names its author or its day, and for less if it only asks or hardly says anything. Knows
//! numbers of records; does not know links or budgets.

use std::sync::LazyLock;

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::links::Links;
use super::when::{Day, Span, spans};
use super::words::{Stems, term, terms};
use larder_text::bm25::{bm25, rarity};
use larder_text::words::STOP_WORDS;

/// What the words of the records before a record count for in it, nearest first …
const BEFORE: [f64; 2] = [0.7, 0.5];
/// … and of those after it. What is said later is less often the answer.
const AFTER: [f64; 2] = [0.4, 0.3];
/// What the words of the record before count for besides, if it asks: this one may answer.
const ANSWER: f64 = 0.5;
/// What a match of the record alone counts for beside that with its neighbours …
const ALONE: f64 = 0.1;
/// … and a match of its section.
const SECTION: f64 = 0.2;
/// What more a record counts for if the question names its author.
const AUTHOR: f64 = 0.7;
/// What more it counts for if the question speaks of its day.
const DATED: f64 = 0.3;
/// What less it counts for if it ends by asking.
const ASKS: f64 = 0.2;
/// A record of so many words counts for half of what a long one does.
const FEW_WORDS: f64 = 2.0;
/// What more a record counts for if it is wholly like the question …
const ALIKE: f64 = 1.5;
/// … and what of the best score it has for that alone.
const ALIKE_ALONE: f64 = 0.05;
/// A question of more distinct words is cut off there.
const MOST_TERMS: usize = 48;

/// A piece of text that may be recalled. All but the text may be left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<'a> {
    /// What is shown, with date and author as a reader sees them: all of it is searched.
    pub text: &'a str,
    /// What it costs to show, in the caller's tokens, line breaks and headers included.
    pub tokens: usize,
    /// Who says it.
    pub author: Option<&'a str>,
    /// When it was said.
    pub day: Option<Day>,
    /// The document that it stands in; what is linked of one document is limited (R1-8.11).
    pub document: &'a str,
    /// The id by which other records name it.
    pub id: Option<&'a str>,
    /// Ids that it names beside those that stand in its text.
    pub links: &'a [&'a str],
}

/// A question.
#[derive(Debug, Clone, Copy, Default)]
pub struct Query<'a> {
    /// In words.
    pub text: &'a str,
    /// The day on which it is asked, for "yesterday" and months without a year.
    pub today: Option<Day>,
    /// How like the question each record is by any other measure, such as the cosine of embeddings, 0 to 1, by number;
    /// records beyond its end count as not alike.
    pub alike: &'a [f32],
}

impl<'a> Query<'a> {
    /// A question of nothing but words.
    pub fn of(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }
}

/// A record that answers a question, more or less.
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
    pub(super) entries: Vec<Entry>,
    sections: Vec<Section>,
    /// The terms of each author's name.
    authors: Vec<Vec<u64>>,
    names: HashMap<u64, usize>,
    pub(super) links: Links,
}

/// How often a term stands in a record.
#[derive(Debug, Clone, Copy)]
struct Posting {
    record: u32,
    times: u32,
}

/// What is known of a record.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    words: f64,
    /// The words of its window, each by its weight.
    window: f64,
    section: usize,
    author: Option<usize>,
    day: Option<Day>,
    asks: bool,
    pub(super) tokens: usize,
    pub(super) document: u64,
}

/// Records that follow one another.
#[derive(Debug, Clone)]
struct Section {
    start: usize,
    words: f64,
}

/// A question, understood.
struct Asked {
    /// What it is about.
    terms: Vec<u64>,
    /// All its terms.
    all: Vec<u64>,
    spans: Vec<Span>,
}

impl Index {
    /// Begins a new section: records after this are no neighbours of records before it. Records that do not follow one
    /// another, such as rows, are each a section.
    pub fn start_section(&mut self) {
        self.sections.push(Section { start: self.entries.len(), words: 0.0 });
    }

    /// Adds the next record and gives its number.
    pub fn add(&mut self, record: &Record<'_>) -> usize {
        let number = self.entries.len();
        let words = self.post(record.text, number);
        if self.sections.is_empty() {
            self.start_section();
        }
        let section = self.sections.len() - 1;
        let author = record.author.map(|author| self.author(author));
        self.links.add(record.text, record.id, record.links);
        self.sections[section].words += words;
        self.entries.push(Entry {
            words,
            window: words,
            section,
            author,
            day: record.day,
            asks: asks(record.text),
            tokens: record.tokens,
            document: xxh3_64(record.document.as_bytes()),
        });
        for distance in 1..=BEFORE.len().min(number - self.sections[section].start) {
            let earlier = number - distance;
            self.entries[number].window += self.carried(earlier, number) * self.entries[earlier].words;
            self.entries[earlier].window += self.carried(number, earlier) * words;
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

    /// Records that answer `query`, best first, equals in order.
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

    /// The score of every record; 0 if it shares nothing with the query.
    pub(super) fn scores(&self, query: &Query<'_>) -> Vec<f64> {
        let asked = Asked::new(query);
        let mut scores = self.word_scores(&asked.terms);
        let named: Vec<bool> =
            self.authors.iter().map(|name| name.iter().any(|term| asked.all.contains(term))).collect();
        for (entry, score) in self.entries.iter().zip(&mut scores).filter(|(_, score)| **score > 0.0) {
            *score *= entry.words / (entry.words + FEW_WORDS);
            if entry.asks {
                *score *= 1.0 - ASKS;
            }
            if entry.author.is_some_and(|author| named[author]) {
                *score *= 1.0 + AUTHOR;
            }
            if entry.day.is_some_and(|day| asked.spans.iter().any(|span| span.contains(&day))) {
                *score *= 1.0 + DATED;
            }
        }
        let best = scores.iter().copied().fold(0.0, f64::max);
        let alone = ALIKE_ALONE * if best > 0.0 { best } else { 1.0 };
        for (score, &alike) in scores.iter_mut().zip(query.alike) {
            // What is no number is not alike either.
            if alike > 0.0 {
                *score += f64::from(alike.min(1.0)) * (ALIKE * *score + alone);
            }
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
        let words = self.entries.iter().map(|entry| entry.words).sum::<f64>();
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
                let length = self.entries[at].words / words * records as f64;
                scores[at] += bm25(weight, f64::from(posting.times), length);
            }
            let held = |posting: &Posting| self.entries[posting.record as usize].section;
            let in_section: Vec<&[Posting]> = postings.chunk_by(|a, b| held(a) == held(b)).collect();
            let weight = SECTION * rarity(sections.len(), in_section.len());
            for postings in in_section {
                let times = postings.iter().map(|posting| f64::from(posting.times)).sum();
                let at = held(&postings[0]);
                sections[at] += bm25(weight, times, self.sections[at].words / words * sections.len() as f64);
            }
        }
        for (score, entry) in scores.iter_mut().zip(&self.entries).filter(|(score, _)| **score > 0.0) {
            *score += sections[entry.section];
        }
        scores
    }

    /// Adds up how often a term stands in each window, by weight, and lists the windows that hold it.
    fn spread(&self, postings: &[Posting], times: &mut [f64], touched: &mut Vec<usize>) {
        for posting in postings {
            let from = posting.record as usize;
            let section = self.entries[from].section;
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

    /// Notes the terms of a record; gives how many there are.
    fn post(&mut self, text: &str, number: usize) -> f64 {
        let (record, mut words) = (u32::try_from(number).unwrap_or(u32::MAX), 0.0);
        let postings = &mut self.postings;
        self.stems.for_each(text, |term| {
            words += 1.0;
            let postings = postings.entry(term).or_default();
            match postings.last_mut() {
                Some(last) if last.record == record => last.times += 1,
                _ => postings.push(Posting { record, times: 1 }),
            }
        });
        words
    }

    fn author(&mut self, name: &str) -> usize {
        let next = self.authors.len();
        let number = *self.names.entry(xxh3_64(name.as_bytes())).or_insert(next);
        if number == next {
            self.authors.push(telling(&terms(name)));
        }
        number
    }

    /// The records that hold all of these terms, in order, if they are from 2 to `most`.
    pub(super) fn sharing(&self, terms: &[u64], most: usize) -> Vec<usize> {
        let mut lists: Vec<&[Posting]> = Vec::with_capacity(terms.len());
        for term in terms {
            let Some(postings) = self.postings.get(term) else { return Vec::new() };
            lists.push(postings);
        }
        lists.sort_by_key(|list| list.len());
        let Some((rarest, others)) = lists.split_first() else { return Vec::new() };
        let mut sharing = Vec::new();
        for posting in *rarest {
            let holds = |list: &&[Posting]| list.binary_search_by_key(&posting.record, |p| p.record).is_ok();
            if others.iter().all(holds) {
                sharing.push(posting.record as usize);
            }
            if sharing.len() > most {
                return Vec::new();
            }
        }
        sharing
    }
}

impl Asked {
    fn new(query: &Query<'_>) -> Self {
        let mut all = terms(query.text);
        all.truncate(MOST_TERMS);
        Self { terms: about(&all), all, spans: spans(query.text, query.today) }
    }
}

/// The terms that a question is about.
pub(super) fn asked_terms(question: &str) -> Vec<u64> {
    let mut all = terms(question);
    all.truncate(MOST_TERMS);
    about(&all)
}

/// Without words that say nothing of the subject; all if there is nothing else.
fn about(all: &[u64]) -> Vec<u64> {
    let telling = telling(all);
    if telling.is_empty() { all.to_vec() } else { telling }
}

fn telling(all: &[u64]) -> Vec<u64> {
    static STOP_TERMS: LazyLock<Vec<u64>> =
        LazyLock::new(|| STOP_WORDS.iter().map(|word| term(word)).collect());
    all.iter().copied().filter(|term| !STOP_TERMS.contains(term)).collect()
}

/// Whether the last sentence is a question.
fn asks(text: &str) -> bool {
    let last = text.rfind(['.', '!', '?', '…', '。', '！', '？']);
    last.is_some_and(|at| text[at..].starts_with(['?', '？']))
}
