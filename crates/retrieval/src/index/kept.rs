//! Records whose words are analysed once and which are then ranked in any selection and order, as if just these had been
//! indexed. Of the days that a question names, records are found that were written on them or speak of them, whatever their
//! words; a statement that names a day ("I am tired today") only prefers what shares words with it.

use std::sync::Arc;

use chrono::NaiveDate;
use hashbrown::HashMap;

use larder_text::bm25::rarity;

use super::calendar::DaySpan;
use super::dates::{ToldTime, asked_days, told_time};
use super::questions::{asks_something, without_latest};
use super::words::Stems;
use super::{Index, Posting, Query, Record, asked_terms, asks, saturating};

/// The weight of the days that a question names next to that of a word of the same rarity.
const DAYS: f64 = 1.5;

/// Records by numbers that their owner gives.
#[derive(Debug, Default)]
pub(crate) struct KeptRecords {
    stems: Stems,
    /// By slot, ascending.
    postings: HashMap<u64, Vec<Posting>>,
    records: HashMap<u64, KeptRecord>,
    /// Slots that were ever given.
    slots: u32,
    /// Postings of all terms.
    posted: usize,
}

/// What is kept of a record besides its words.
#[derive(Debug)]
struct KeptRecord {
    slot: u32,
    words: u32,
    asks: bool,
    author: Arc<str>,
    day: Option<NaiveDate>,
    /// What its text says of time.
    told: ToldTime,
}

impl KeptRecords {
    /// Adds a record, in place of the one of the same number. What it says of time stands in `said`, the part of its text
    /// that was written on its day.
    pub(crate) fn add(&mut self, number: u64, record: &Record<'_>, said: &str) {
        if self.records.contains_key(&number) {
            self.retain(|other| other != number);
        }
        let (slot, mut words) = (self.slots, 0);
        self.slots = self.slots.saturating_add(1);
        let (postings, posted) = (&mut self.postings, &mut self.posted);
        self.stems.for_each(record.text, |term| {
            words += 1;
            let postings = postings.entry(term).or_default();
            match postings.last_mut() {
                Some(last) if last.record == slot => last.times += 1,
                _ => {
                    *posted += 1;
                    postings.push(Posting { record: slot, times: 1 });
                }
            }
        });
        let author = Arc::from(record.author.unwrap_or_default());
        let told = record.day.map(|day| told_time(said, day)).unwrap_or_default();
        let (asks, day) = (asks(record.text), record.day);
        self.records.insert(number, KeptRecord { slot, words, asks, author, day, told });
    }

    /// Removes the records whose numbers are not wanted.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(u64) -> bool) {
        let mut gone = hashbrown::HashSet::new();
        self.records.retain(|&number, record| wanted(number) || !gone.insert(record.slot));
        if gone.is_empty() {
            return;
        }
        self.postings.retain(|_, postings| {
            postings.retain(|posting| !gone.contains(&posting.record));
            !postings.is_empty()
        });
        self.posted = self.postings.values().map(Vec::len).sum();
    }

    /// The day of a record.
    pub(crate) fn day(&self, number: u64) -> Option<NaiveDate> {
        self.records.get(&number)?.day
    }

    /// Whether a record tells a time: a day, a duration, or that something is recent.
    pub(crate) fn tells_time(&self, number: u64) -> bool {
        self.records.get(&number).is_some_and(|record| record.told.tells)
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.posted * size_of::<Posting>()
            + self.postings.len() * 2 * size_of::<(u64, Vec<Posting>)>()
            + self.records.len() * 2 * size_of::<(u64, KeptRecord)>()
    }

    /// The score of each selected record, given by number and section; those of one section follow one another.
    pub(crate) fn scores(&self, query: &Query<'_>, selected: &[(u64, usize)]) -> Vec<f64> {
        let mut index = Index::default();
        let mut places: HashMap<u32, u32> = HashMap::with_capacity(selected.len());
        let mut last = None;
        for &(number, section) in selected {
            if last.replace(section) != Some(section) {
                index.start_section();
            }
            let place = match self.records.get(&number) {
                Some(KeptRecord { slot, words, asks, author, day, .. }) => {
                    places.insert(*slot, saturating(index.len()));
                    let record = Record { author: Some(author), day: *day, ..Record::default() };
                    index.enter(&record, *words, *asks)
                }
                None => index.enter(&Record::default(), 0, false),
            };
            debug_assert_eq!(place + 1, index.len());
        }
        let asked = asked_days(query.text, query.today);
        let of_days: Vec<f64> =
            selected.iter().map(|(number, _)| self.of_days(*number, &asked.spans)).collect();
        let dated = of_days.iter().filter(|share| **share > 0.0).count();
        // Words of a date are also in other dates, and so are searched only where no day is known.
        let text = without_latest(if dated > 0 { &asked.rest } else { query.text });
        for term in asked_terms(&text) {
            let Some(postings) = self.postings.get(&term) else { continue };
            let here = postings.iter().filter_map(|posting| {
                places.get(&posting.record).map(|&record| Posting { record, times: posting.times })
            });
            let mut here: Vec<Posting> = here.collect();
            here.sort_unstable_by_key(|posting| posting.record);
            if !here.is_empty() {
                index.postings.insert(term, here);
            }
        }
        let weight = if asks_something(query.text) { DAYS * rarity(selected.len(), dated) } else { 0.0 };
        index.scores_with(&text, &of_days, weight)
    }

    /// How well a record is of the days that are asked for: 1 if it was written on one, or speaks only of them.
    fn of_days(&self, number: u64, asked: &[DaySpan]) -> f64 {
        let Some(record) = self.records.get(&number).filter(|_| !asked.is_empty()) else { return 0.0 };
        let shares = record.told.spans.iter().map(|span| share(span, asked));
        shares.chain(record.day.map(|day| share(&(day..=day), asked))).fold(0.0, f64::max)
    }
}

/// The largest share of a span that is inside one of others.
fn share(span: &DaySpan, others: &[DaySpan]) -> f64 {
    let days = |first: NaiveDate, last: NaiveDate| ((last - first).num_days() + 1).max(0) as f64;
    let inside = |other: &DaySpan| days(*span.start().max(other.start()), *span.end().min(other.end()));
    others.iter().map(inside).fold(0.0, f64::max) / days(*span.start(), *span.end()).max(1.0)
}
