//! Ranks a few texts by the index's scores, and fuses several rankings into one (C91). Knows texts and keys, not what
//! they belong to.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate};
use larder_vault::DocumentTime;

use crate::index::{Index, Query, Record};

/// How much the top places of a ranking are levelled by fusion; the constant from the method's paper (reciprocal rank
/// fusion, Cormack et al. 2009).
const FUSION: f64 = 60.0;

/// A text to rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranked<'t> {
    /// The words by which it is found.
    pub(super) text: &'t str,
    /// When it was said.
    pub(super) day: Option<NaiveDate>,
    /// Whether the text before it is not its neighbour.
    pub(super) apart: bool,
}

impl<'t> Ranked<'t> {
    /// A text without neighbours.
    pub(super) fn alone(text: &'t str) -> Self {
        Self { text, day: None, apart: true }
    }
}

/// The day of a timestamp, for questions that name a day.
pub(super) fn day(moment: DocumentTime) -> Option<NaiveDate> {
    DateTime::from_timestamp_millis(moment.as_millis()).map(|moment| moment.date_naive())
}

/// The score of each text for a query asked at `now`, in their order; 0 if it shares no word with it.
pub(super) fn scores<'t>(
    query: &str,
    now: DocumentTime,
    texts: impl IntoIterator<Item = Ranked<'t>>,
) -> Vec<f64> {
    let mut index = Index::default();
    for Ranked { text, day, apart } in texts {
        if apart {
            index.start_section();
        }
        index.add(&Record { text, day, ..Record::default() });
    }
    let mut scores = vec![0.0; index.len()];
    for hit in index.search(&Query { text: query, today: day(now) }) {
        scores[hit.record] = hit.score;
    }
    scores
}

/// The positions of scores above 0, best first, equals in order.
pub(super) fn order(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).filter(|&at| scores[at] > 0.0).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order
}

/// Fuses rankings: each contributes `weight / (60 + rank)` to its keys. Best first; among equals the greater key,
/// which is the newer turn or the later place.
pub(super) fn fuse<K: Ord + Clone>(rankings: &[(f64, Vec<K>)]) -> Vec<(K, f64)> {
    let mut scores: BTreeMap<&K, f64> = BTreeMap::new();
    for (weight, ranking) in rankings {
        for (rank, key) in (1_u32..).zip(ranking) {
            *scores.entry(key).or_default() += weight / (FUSION + f64::from(rank));
        }
    }
    let mut fused: Vec<(K, f64)> = scores.into_iter().map(|(key, score)| (key.clone(), score)).collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_rankings_agree_on_comes_first() {
        let fused = fuse(&[(1.0, vec![1, 2, 3]), (1.0, vec![3, 4]), (0.5, vec![9])]);
        assert_eq!(fused.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [3, 1, 4, 2, 9]);
        assert_eq!(fuse::<u32>(&[]), []);
    }

    #[test]
    fn adjacent_texts_share_words() {
        let now = "2026-01-05T10:00:00Z".parse().unwrap();
        let texts = ["Which hamster is friendliest?", "The golden one, by far.", "Nothing of the kind."];
        let together = texts.map(|text| Ranked { text, day: None, apart: false });
        let apart = texts.map(Ranked::alone);
        let scores_of = |texts| scores("friendliest hamster", now, texts);
        assert!(scores_of(together)[1] > 0.0);
        assert_eq!(order(&scores_of(apart)), [0]);
    }
}
