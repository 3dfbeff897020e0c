//! Okapi BM25: the weight of a word that a text shares with a query. Knows numbers only.
//!
//! Results are the same on every machine, so the logarithm is libm's and not that of the platform.

/// How fast repeating a word stops helping.
const K1: f64 = 1.5;
/// How much a long text is penalised.
const B: f64 = 0.75;

/// The weight of a word (its inverse document frequency) that `containing` of `total` texts contain.
pub fn rarity(total: usize, containing: usize) -> f64 {
    let containing = containing as f64;
    libm::log(1.0 + (total as f64 - containing + 0.5) / (containing + 0.5))
}

/// The score of a word of this weight in a text that contains it `times` and is `length` times as long as the average.
pub fn bm25(weight: f64, times: f64, length: f64) -> f64 {
    weight * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_repeated_in_short_texts_count_most() {
        assert!(rarity(100, 1) > rarity(100, 50) && rarity(100, 100) > 0.0);
        assert!(bm25(1.0, 2.0, 1.0) > bm25(1.0, 1.0, 1.0) && bm25(1.0, 1.0, 0.5) > bm25(1.0, 1.0, 2.0));
        assert!((bm25(1.0, 1.0, 1.0) - 1.0).abs() < 1e-12);
    }
}
