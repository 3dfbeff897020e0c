//! Ranking: which passages of one or many texts answer a query best, by shared words (BM25).
//!
//! For passages at hand that are searched once or a few times. The index of a conversation's records, which keeps
//! sections, names and dates, is that of `larder-retrieval`; both score by [`bm25`](crate::bm25).
//!
//! Knows words and passages by number; does not know where passages come from or how many are shown.

use hashbrown::{HashMap, HashSet};

use crate::bm25::{bm25, rarity};
use crate::query::query_terms;
use crate::words::for_each_term;

/// An index of passages, numbered from 0 in the order they were added.
///
/// Words are lower-cased and stemmed for common English endings; in scripts without spaces, pairs of characters count
/// as words. Stop words in a query are ignored.
#[derive(Debug, Clone, Default)]
pub struct RankIndex {
    postings: HashMap<u64, Vec<PassagePosting>>,
    /// Cumulative word counts at the end of each passage.
    words: Vec<u64>,
    /// The first passage of each document.
    starts: Vec<usize>,
    /// If set, the only words that are indexed.
    only: Option<HashSet<u64>>,
}

/// How often a word occurs in a passage.
#[derive(Debug, Clone, Copy)]
struct PassagePosting {
    passage: u32,
    times: u32,
}

/// A passage that shares words with the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedPassage {
    /// The passage's number, in the order of [`RankIndex::add`].
    pub passage: usize,
    /// Its BM25 score; comparable within one search.
    pub score: f64,
}

impl RankIndex {
    /// Creates an index that can be searched only for `query`, with the same result as a full index. It stores no
    /// other words, so it takes a few bytes per passage instead of per word.
    pub fn for_query(query: &str) -> Self {
        Self { only: Some(query_terms(query).into_iter().collect()), ..Self::default() }
    }

    /// Starts a new document: passages added afterwards are not neighbours of earlier ones.
    pub fn start_document(&mut self) {
        self.starts.push(self.len());
    }

    /// Adds the next passage.
    pub fn add(&mut self, passage: &str) {
        let number = u32::try_from(self.len()).unwrap_or(u32::MAX);
        let mut words = self.words.last().copied().unwrap_or(0);
        for_each_term(passage, |term| {
            words += 1;
            if self.only.as_ref().is_some_and(|only| !only.contains(&term)) {
                return;
            }
            let postings = self.postings.entry(term).or_default();
            match postings.last_mut() {
                Some(last) if last.passage == number => last.times += 1,
                _ => postings.push(PassagePosting { passage: number, times: 1 }),
            }
        });
        self.words.push(words);
    }

    /// The weight of a word by how few passages contain it in any form. In an index for one query, other words count
    /// as occurring in no passage.
    pub fn weight(&self, word: &str) -> f64 {
        let mut with = 0;
        for_each_term(word, |term| with = with.max(self.postings.get(&term).map_or(0, Vec::len)));
        rarity(self.len(), with)
    }

    /// The number of passages.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether the index has no passages.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Passages that share words with `query`, best first; ties are in order of passage.
    ///
    /// Each passage is scored as if it also contained its `neighbours` on either side within its document, since an
    /// answer is often next to the words of the question; 0 scores each passage alone.
    pub fn search(&self, query: &str, neighbours: usize) -> Vec<RankedPassage> {
        let windows = self.windows(neighbours);
        let total: u64 = windows.iter().map(|window| window.words).sum();
        let average = total as f64 / windows.len().max(1) as f64;
        let mut scores = vec![0.0_f64; windows.len()];
        let mut times = vec![0_u32; windows.len()];
        for term in query_terms(query) {
            let touched = self.spread(term, &windows, &mut times);
            let weight = rarity(windows.len(), touched.len());
            for at in touched {
                let tf = f64::from(std::mem::take(&mut times[at]));
                scores[at] += bm25(weight, tf, windows[at].words as f64 / average);
            }
        }
        let mut hits: Vec<RankedPassage> = scores
            .into_iter()
            .enumerate()
            .filter(|&(_, score)| score > 0.0)
            .map(|(passage, score)| RankedPassage { passage, score })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
        hits
    }

    /// Sums how often a term occurs in each window; returns the windows that contain it.
    fn spread(&self, term: u64, windows: &[NeighbourWindow], times: &mut [u32]) -> Vec<usize> {
        let mut touched = Vec::new();
        for posting in self.postings.get(&term).map_or(&[][..], Vec::as_slice) {
            // Windows are symmetric: the passages in this one's window are those whose windows contain it.
            let Some(window) = windows.get(posting.passage as usize) else { continue };
            let reached = times.get_mut(window.first..window.end).unwrap_or_default();
            for (at, times) in (window.first..).zip(reached) {
                if *times == 0 {
                    touched.push(at);
                }
                *times = times.saturating_add(posting.times);
            }
        }
        touched
    }

    /// The neighbour window of every passage.
    fn windows(&self, neighbours: usize) -> Vec<NeighbourWindow> {
        let mut windows = Vec::with_capacity(self.len());
        let mut starts = self.starts.iter().copied().filter(|&start| start > 0).peekable();
        let mut document = 0..starts.next().unwrap_or(self.len());
        for at in 0..self.len() {
            while at >= document.end {
                document = document.end..starts.next().unwrap_or(self.len());
            }
            let first = at.saturating_sub(neighbours).max(document.start);
            let end = at.saturating_add(neighbours).saturating_add(1).min(document.end);
            let before = first.checked_sub(1).map_or(0, |last| self.words[last]);
            windows.push(NeighbourWindow { first, end, words: self.words[end - 1] - before });
        }
        windows
    }
}

/// A passage and its neighbours.
struct NeighbourWindow {
    first: usize,
    end: usize,
    words: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(passages: &[&str]) -> RankIndex {
        let mut index = RankIndex::default();
        passages.iter().for_each(|passage| index.add(passage));
        index
    }

    fn passages(hits: &[RankedPassage]) -> Vec<usize> {
        hits.iter().map(|hit| hit.passage).collect()
    }

    #[test]
    fn the_passage_that_shares_rare_words_comes_first() {
        let index =
            index(&["The cat sat on the mat.", "Invoices are due in March.", "The dog and the cat met.", ""]);
        assert_eq!(passages(&index.search("When is the invoice due?", 0)), [1]);
        assert_eq!(passages(&index.search("the cats", 0)).len(), 2);
        assert!(index.search("", 0).is_empty() && index.search("zebra", 2).is_empty());
        assert!(RankIndex::default().search("cat", 1).is_empty());
    }

    #[test]
    fn an_index_for_one_query_answers_it_as_any_other_does() {
        let texts = ["The cat sat on the mat.", "Invoices are due.", "The dog and the cat met.", "cat cat"];
        let mut small = RankIndex::for_query("Where is the cat?");
        texts.iter().for_each(|text| small.add(text));
        assert_eq!(small.search("Where is the cat?", 1), index(&texts).search("Where is the cat?", 1));
        assert_eq!(small.postings.len(), 1);
    }

    #[test]
    fn scripts_without_spaces_match_by_pairs() {
        let index = index(&["吾輩は猫である。", "名前はまだ無い。", "どこで生れたか。"]);
        assert_eq!(passages(&index.search("猫の名前は何か", 0))[0], 1);
    }

    #[test]
    fn neighbours_help_only_within_their_document() {
        let mut index = index(&["Where did you park?", "Behind the station."]);
        index.start_document();
        index.add("Unrelated.");
        assert_eq!(passages(&index.search("park", 0)), [0]);
        assert_eq!(passages(&index.search("park", 1)), [0, 1]);
        assert_eq!(passages(&index.search("unrelated", 5)), [2]);
    }

    #[test]
    fn ties_are_in_order_and_scores_are_plain_bm25() {
        let index = index(&["apple pear", "plum fig", "apple pear"]);
        let hits = index.search("apple", 0);
        assert_eq!(passages(&hits), [0, 2]);
        assert!((hits[0].score - (1.0_f64 + 1.5 / 2.5).ln()).abs() < 1e-9, "{}", hits[0].score);
    }
}
