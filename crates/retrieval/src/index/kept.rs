//! Records whose words are analysed once and which are then ranked in any selection and order, as if just these had been
//! indexed.

use std::sync::Arc;

use chrono::NaiveDate;
use hashbrown::HashMap;

use super::words::Stems;
use super::{Index, Posting, Query, Record, asked_terms, asks, saturating};

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
}

impl KeptRecords {
    /// Adds a record, in place of the one of the same number.
    pub(crate) fn add(&mut self, number: u64, record: &Record<'_>) {
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
        self.records
            .insert(number, KeptRecord { slot, words, asks: asks(record.text), author, day: record.day });
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
                Some(KeptRecord { slot, words, asks, author, day }) => {
                    places.insert(*slot, saturating(index.len()));
                    let record = Record { author: Some(author), day: *day, ..Record::default() };
                    index.enter(&record, *words, *asks)
                }
                None => index.enter(&Record::default(), 0, false),
            };
            debug_assert_eq!(place + 1, index.len());
        }
        for term in asked_terms(query.text) {
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
        index.scores(query)
    }
}
