//! Okapi BM25: what a word that a text shares with a query counts for. Knows numbers only; every result is the same on
//! every machine.

/// How fast repeating a word stops helping.
const K1: f64 = 1.5;
/// How much a long text is penalised.
const B: f64 = 0.75;

/// The weight of a word (its inverse document frequency) that `containing` of `total` texts contain.
pub fn rarity(total: usize, containing: usize) -> f64 {
    let containing = containing as f64;
    ln(1.0 + (total as f64 - containing + 0.5) / (containing + 0.5))
}

/// The score of a word of this weight in a text that contains it `times` and is `length` times as long as the average.
pub fn bm25(weight: f64, times: f64, length: f64) -> f64 {
    weight * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length))
}

/// The natural logarithm of a number from 1 on, by exact IEEE operations: the same on every machine.
fn ln(x: f64) -> f64 {
    let bits = x.max(1.0).to_bits();
    let exponent = (bits >> 52) as f64 - 1023.0;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    // The series of 2 artanh z; with z up to 1/3, ten terms are exact to 12 digits.
    let series = (0..10).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    exponent * std::f64::consts::LN_2 + 2.0 * z * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_exact() {
        for x in [1.0, 1.5, 2.0, 3.7, 1e6] {
            assert!((ln(x) - x.ln()).abs() < 1e-11, "ln {x}");
        }
    }

    #[test]
    fn rare_words_repeated_in_short_texts_count_most() {
        assert!(rarity(100, 1) > rarity(100, 50) && rarity(100, 100) > 0.0);
        assert!(bm25(1.0, 2.0, 1.0) > bm25(1.0, 1.0, 1.0) && bm25(1.0, 1.0, 0.5) > bm25(1.0, 1.0, 2.0));
        assert!((bm25(1.0, 1.0, 1.0) - 1.0).abs() < 1e-12);
    }
}
