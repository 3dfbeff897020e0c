//! The value of a unit: how well it answers the query, and how much it says that is not shown yet.
//!
//! Knows words and units; does not know tokens, targets or structure. Words are counted in hash buckets, so there is
//! no dictionary and no language dependence: weights come from the text itself. All arithmetic uses exact IEEE
//! operations, so scores are the same on every machine.

use std::f64::consts::LN_2;
use std::ops::Range;

use larder_text::bm25::{bm25, rarity};
use larder_text::query::{QueryHits, query_terms};
use larder_text::words::for_each_term;

/// Buckets of the word table. Colliding words are treated as equal when novelty is computed.
const BUCKETS: usize = 1 << 16;
/// The weight of a match in the unit zero, one or two places away.
const NEIGHBOUR: [f64; 3] = [1.0, 0.4, 0.15];
/// An approximate log2 that is identical on every machine: exact at powers of two, linear between.
fn log2(x: f32) -> f32 {
    let whole = (x.max(1.0) as u64).max(1);
    let exponent = whole.ilog2();
    exponent as f32 + x.max(1.0) / (1_u64 << exponent) as f32 - 1.0
}

/// Scores of the units of one text.
pub(crate) struct Scores {
    /// How well each unit answers the query, from 0 to 1.
    pub(crate) relevance: Vec<f32>,
    terms: Vec<u16>,
    offsets: Vec<usize>,
    lengths: Vec<f32>,
    weights: Vec<f32>,
    /// Normalises the mean score per byte to 1.
    scale: f32,
}

impl Scores {
    pub(crate) fn new(text: &str, units: &[Range<usize>], query: Option<&str>) -> Self {
        let query = query_terms(query.unwrap_or_default());
        let mut hits: Vec<(usize, usize)> = Vec::new();
        let (mut terms, mut offsets) = (Vec::with_capacity(text.len() / 8), vec![0]);
        let mut frequency = vec![0_u32; BUCKETS];
        let mut units_with = vec![0_u32; BUCKETS];
        let mut last_unit = vec![usize::MAX; BUCKETS];
        for (unit, range) in units.iter().enumerate() {
            for_each_term(&text[range.clone()], |hash| {
                let bucket = (hash >> 40) as usize % BUCKETS;
                frequency[bucket] += 1;
                if last_unit[bucket] != unit {
                    last_unit[bucket] = unit;
                    units_with[bucket] += 1;
                    terms.push(bucket as u16);
                }
                if let Ok(term) = query.binary_search(&hash) {
                    hits.push((unit, term));
                }
            });
            offsets.push(terms.len());
        }
        let count = units.len() as f32;
        let weights: Vec<f32> = (frequency.iter().zip(&units_with))
            .map(|(&tf, &df)| log2(1.0 + tf as f32) * log2(count / df.max(1) as f32))
            .collect();
        let total: f32 = terms.iter().map(|&term| weights[usize::from(term)]).sum();
        let scale = if total > 0.0 { text.len() as f32 / total } else { 1.0 };
        let relevance = relevance(units, &hits, query.len());
        let lengths = units.iter().map(|range| range.len().max(1) as f32).collect();
        Self { relevance, terms, offsets, lengths, weights, scale }
    }

    /// What each byte of the unit adds to the text shown; initially 1 on average.
    pub(crate) fn gain(&self, unit: usize, shown: &ShownWords) -> f32 {
        let sum: f32 =
            self.terms(unit).iter().map(|&term| self.weights[usize::from(term)] * shown.factor(term)).sum();
        sum * self.scale / self.lengths[unit]
    }

    fn terms(&self, unit: usize) -> &[u16] {
        &self.terms[self.offsets[unit]..self.offsets[unit + 1]]
    }
}

/// How often each word occurs in the text shown.
pub(crate) struct ShownWords(Vec<u8>);

impl ShownWords {
    pub(crate) fn nothing() -> Self {
        Self(vec![0; BUCKETS])
    }

    pub(crate) fn add(&mut self, unit: usize, scores: &Scores) {
        for &term in scores.terms(unit) {
            let times = &mut self.0[usize::from(term)];
            *times = times.saturating_add(1);
        }
    }

    /// The remaining value of a word: halved each time it is shown.
    fn factor(&self, term: u16) -> f32 {
        // 1/2, 1/4, 1/8 …: exact, whereas `powi` may differ between machines.
        1.0 / f32::from(1_u16 << self.0[usize::from(term)].min(12))
    }
}

/// How well each unit answers the query, from 0 to 1. `units` are in the order of the text; one without bytes answers
/// nothing.
pub(crate) fn relevance_to(query: &QueryHits, units: &[Range<usize>]) -> Vec<f32> {
    let mut unit = 0;
    let inside = |&(at, word): &(usize, usize)| {
        unit += units[unit..].iter().take_while(|range| range.end <= at).count();
        units.get(unit).filter(|range| range.start <= at).map(|_| (unit, word))
    };
    let hits: Vec<_> = query.hits.iter().filter_map(inside).collect();
    relevance(units, &hits, query.words)
}

/// BM25 of every unit, with partial credit for its neighbours' matches, times the weighted share of query words that
/// match; scaled so that the best is 1. If every matching word is in more than half of the units, the best is less: such
/// words tell nothing apart.
fn relevance(units: &[Range<usize>], hits: &[(usize, usize)], terms: usize) -> Vec<f32> {
    let mut relevance = vec![0.0_f64; units.len()];
    if hits.is_empty() {
        return vec![0.0; units.len()];
    }
    let mut frequency = vec![0.0_f64; units.len()];
    let (mut matched, mut possible, mut rarest) = (vec![0.0_f64; units.len()], 0.0, 0.0_f64);
    let bytes: usize = units.iter().map(Range::len).sum();
    let average = bytes as f64 / units.len() as f64;
    let mut by_term: Vec<Vec<usize>> = vec![Vec::new(); terms];
    for &(unit, term) in hits {
        by_term[term].push(unit);
    }
    for hits in by_term.iter().filter(|hits| !hits.is_empty()) {
        let mut touched: Vec<usize> = Vec::new();
        for &unit in hits {
            for at in unit.saturating_sub(2)..=(unit + 2).min(units.len() - 1) {
                if frequency[at] == 0.0 {
                    touched.push(at);
                }
                frequency[at] += NEIGHBOUR[at.abs_diff(unit)];
            }
        }
        let mut containing = hits.clone();
        containing.dedup();
        let weight = rarity(units.len(), containing.len());
        possible += weight;
        rarest = rarest.max(weight);
        for at in touched {
            let times = std::mem::take(&mut frequency[at]);
            matched[at] += weight;
            relevance[at] += bm25(weight, times, units[at].len() as f64 / average);
        }
    }
    for (score, matched) in relevance.iter_mut().zip(matched) {
        *score *= matched / possible;
    }
    let best = relevance.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scale = (rarest / LN_2).min(1.0) / best;
    relevance.into_iter().map(|score| (score * scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_most_units_answers_nothing() {
        let text = format!("{}the crane failed\n", "a crane lifts\n".repeat(40));
        let units: Vec<_> = larder_text::lines::spans(&text).collect();
        let best = |query| {
            let scores = relevance_to(&QueryHits::of(&text, query), &units);
            scores.into_iter().fold(0.0, f32::max)
        };
        assert!(best("crane") < 0.1, "{}", best("crane"));
        assert_eq!(best("crane failed"), 1.0);
    }

    #[test]
    fn units_answer_a_query_alike_whether_all_words_are_read_or_only_those_that_may_match() {
        let lines = [
            "The cranes of gate 12 lifted crates.",
            "",
            "Nothing of note.",
            "Ein Kran hob die Kisten über Tor 12.",
            "crate, CRATES; l\u{2019}homme \u{4e2d}\u{6587} crate",
            "gate",
        ];
        let text = lines.join("\n");
        let mut from = 0;
        let mut units = Vec::new();
        for line in lines {
            units.push(from..from + line.len());
            from += line.len() + 1;
        }
        for query in
            ["Which crates did the crane at gate 12 lift?", "Kisten über", "\u{4e2d}\u{6587}", "", "unknown"]
        {
            let all = Scores::new(&text, &units, Some(query)).relevance;
            assert_eq!(relevance_to(&QueryHits::of(&text, query), &units), all, "{query}");
        }
    }
}
