//! Okapi BM25: how much a word shared with a query contributes to a text's score. Knows numbers only.
//!
//! Scores are identical on every machine, so the logarithm comes from `libm` rather than the platform.

/// Term-frequency saturation: how quickly repeats of a word stop adding to the score.
const K1: f64 = 1.5;
/// Length normalisation: how strongly long texts are penalised.
const B: f64 = 0.75;

/// A word's inverse document frequency, given that `containing` of `total` texts contain it.
pub fn rarity(total: usize, containing: usize) -> f64 {
    let containing = containing as f64;
    libm::log(1.0 + (total as f64 - containing + 0.5) / (containing + 0.5))
}

/// The score of a word with this weight that occurs `times` times in a text `length` times as long as the average.
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
