//! What a unit is worth: how well it answers the query, and how much it says that nothing shown yet says.
//!
//! Knows words and units; does not know tokens, targets or structure. Words are counted in hash buckets, so there
//! is no dictionary and no language: weights come from the text itself. All arithmetic is exact IEEE operations, so
//! scores are the same on every machine.

use std::ops::Range;

/// Buckets of the word table. Two words that share one are taken for the same when novelty is judged.
const BUCKETS: usize = 1 << 16;
/// Okapi BM25, usual values.
const K1: f32 = 1.5;
const B: f32 = 0.75;
/// What a match in the unit one or two places away counts for.
const NEIGHBOUR: [f32; 3] = [1.0, 0.4, 0.15];
/// A query of more distinct words is cut off there.
const MOST_QUERY_TERMS: usize = 48;
/// Words of a question that say nothing of its subject.
pub const STOP_WORDS: [&str; 60] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its", "me",
    "my", "not", "of", "on", "or", "she", "should", "that", "the", "their", "them", "there", "they", "this",
    "to", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your",
];

/// Calls `term` with the hash of every word of `text`: runs of letters and digits in lower case without common
/// English endings; of scripts without spaces, every pair of characters.
pub(super) fn for_each_term(text: &str, mut term: impl FnMut(u64)) {
    let mut word = Word::default();
    let mut previous_wide = None;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase() as u32);
            previous_wide = None;
        } else if c.is_ascii() {
            word.finish(&mut term);
            previous_wide = None;
        } else if is_wide(c) {
            word.finish(&mut term);
            if let Some(previous) = previous_wide {
                term(mix(mix(SEED, previous as u32), c as u32));
            }
            previous_wide = Some(c);
        } else if c.is_alphanumeric() {
            c.to_lowercase().for_each(|c| word.push(c as u32));
            previous_wide = None;
        } else {
            if !matches!(c, '’' | '\u{ad}') {
                word.finish(&mut term);
            }
            previous_wide = None;
        }
    }
    word.finish(&mut term);
}

/// Scripts written without spaces between words.
pub fn is_wide(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(hash: u64, value: u32) -> u64 {
    (hash ^ u64::from(value)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
}

/// A word being read, hashed as it grows; remembers the hashes before its last letters so that an ending can go.
#[derive(Default)]
struct Word {
    letters: usize,
    tail: [u32; 3],
    hashes: [u64; 4],
}

impl Word {
    fn push(&mut self, letter: u32) {
        if self.letters == 0 {
            self.hashes = [SEED; 4];
        }
        let next = mix(self.hashes[3], letter);
        self.hashes = [self.hashes[1], self.hashes[2], self.hashes[3], next];
        self.tail = [self.tail[1], self.tail[2], letter];
        self.letters += 1;
    }

    fn finish(&mut self, term: &mut impl FnMut(u64)) {
        if self.letters > 0 {
            term(self.stem());
            self.letters = 0;
        }
    }

    fn stem(&self) -> u64 {
        let tail = self.tail.map(|letter| char::from_u32(letter).unwrap_or('\0'));
        self.hashes[3 - ending(tail, self.letters)]
    }
}

/// The word that is all of `letters`, which are ASCII: as [`for_each_term`] gives it.
pub(super) fn term(letters: &[u8]) -> u64 {
    let mut hashes = [SEED; 4];
    for (at, letter) in letters.iter().enumerate() {
        hashes[(at + 1) % 4] = mix(hashes[at % 4], letter.to_ascii_lowercase().into());
    }
    let tail =
        letters.last_chunk().map_or(['\0'; 3], |tail| tail.map(|letter| letter.to_ascii_lowercase().into()));
    hashes[(letters.len() - ending(tail, letters.len())) % 4]
}

/// How many of the last letters are `ing`, `ed`, `es`, `s`, `'s`, where enough is left without them.
fn ending([a, b, c]: [char; 3], letters: usize) -> usize {
    match (a, b, c) {
        ('i', 'n', 'g') if letters >= 6 => 3,
        (_, 'e', 'd' | 's') if letters >= 5 => 2,
        (_, b, 's') if letters >= 4 && b != 's' => 1,
        (_, _, 'e') if letters >= 5 => 1,
        _ => 0,
    }
}

/// log2, the same on every machine: exact at powers of two, straight lines between.
fn log2(x: f32) -> f32 {
    let whole = (x.max(1.0) as u64).max(1);
    let exponent = whole.ilog2();
    exponent as f32 + x.max(1.0) / (1_u64 << exponent) as f32 - 1.0
}

/// Scores of the units of one text.
pub(super) struct Scores {
    /// How well each unit answers the query, 0 to 1.
    pub(super) relevance: Vec<f32>,
    terms: Vec<u16>,
    offsets: Vec<usize>,
    lengths: Vec<f32>,
    weights: Vec<f32>,
    /// Makes the mean score per byte 1.
    scale: f32,
}

impl Scores {
    pub(super) fn new(text: &str, units: &[Range<usize>], query: Option<&str>) -> Self {
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

    /// What each byte of the unit adds to what is shown; 1 on average at first.
    pub(super) fn gain(&self, unit: usize, shown: &Shown) -> f32 {
        let sum: f32 =
            self.terms(unit).iter().map(|&term| self.weights[usize::from(term)] * shown.factor(term)).sum();
        sum * self.scale / self.lengths[unit]
    }

    fn terms(&self, unit: usize) -> &[u16] {
        &self.terms[self.offsets[unit]..self.offsets[unit + 1]]
    }
}

/// How often each word stands in what is shown.
pub(super) struct Shown(Vec<u8>);

impl Shown {
    pub(super) fn nothing() -> Self {
        Self(vec![0; BUCKETS])
    }

    pub(super) fn add(&mut self, unit: usize, scores: &Scores) {
        for &term in scores.terms(unit) {
            let times = &mut self.0[usize::from(term)];
            *times = times.saturating_add(1);
        }
    }

    /// What a word still adds: half of it with every time it was shown.
    fn factor(&self, term: u16) -> f32 {
        // 1/2, 1/4, 1/8 …: exact, where `powi` may differ between machines.
        1.0 / f32::from(1_u16 << self.0[usize::from(term)].min(12))
    }
}

pub(super) fn query_terms(query: &str) -> Vec<u64> {
    let mut stop = Vec::with_capacity(STOP_WORDS.len());
    STOP_WORDS.iter().for_each(|word| for_each_term(word, |hash| stop.push(hash)));
    let mut all = Vec::new();
    for_each_term(query, |hash| {
        if all.len() < MOST_QUERY_TERMS && !all.contains(&hash) {
            all.push(hash);
        }
    });
    let mut telling: Vec<u64> = all.iter().copied().filter(|hash| !stop.contains(hash)).collect();
    if telling.is_empty() {
        telling = all;
    }
    telling.sort_unstable();
    telling
}

/// BM25 of every unit, its neighbours' matches counted in part, times the share of the query's words that match, by
/// their weight; the best made 1.
fn relevance(units: &[Range<usize>], hits: &[(usize, usize)], terms: usize) -> Vec<f32> {
    let mut relevance = vec![0.0_f32; units.len()];
    if hits.is_empty() {
        return relevance;
    }
    let mut frequency = vec![0.0_f32; units.len()];
    let (mut matched, mut possible) = (vec![0.0_f32; units.len()], 0.0);
    let bytes: usize = units.iter().map(Range::len).sum();
    let average = bytes as f32 / units.len() as f32;
    let mut by_term: Vec<Vec<usize>> = vec![Vec::new(); terms];
    for &(unit, term) in hits {
        by_term[term].push(unit);
    }
    for hits in by_term.iter().filter(|hits| !hits.is_empty()) {
        let mut touched: Vec<usize> = Vec::new();
        for &unit in hits {
            for at in unit.saturating_sub(2)..=(unit + 2).min(units.len() - 1) {
                frequency[at] += NEIGHBOUR[at.abs_diff(unit)];
                touched.push(at);
            }
        }
        let mut holders = hits.clone();
        holders.dedup();
        let with = holders.len() as f32;
        let idf = log2(1.0 + (units.len() as f32 - with + 0.5) / (with + 0.5));
        possible += idf;
        for at in touched {
            let tf = std::mem::take(&mut frequency[at]);
            if tf > 0.0 {
                matched[at] += idf;
            }
            let length = 1.0 - B + B * units[at].len() as f32 / average;
            relevance[at] += idf * tf * (K1 + 1.0) / (tf + K1 * length);
        }
    }
    for (score, matched) in relevance.iter_mut().zip(matched) {
        *score *= matched / possible;
    }
    let best = relevance.iter().copied().fold(0.0_f32, f32::max);
    relevance.iter_mut().for_each(|score| *score /= best.max(f32::MIN_POSITIVE));
    relevance
}
