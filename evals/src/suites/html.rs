//! Web pages: token F1 of the main content, as the article extraction benchmark defines it.

use std::collections::HashMap;

use larder_condense::ContentType;
use larder_text::tokens::Counter;
use regex::Regex;

use crate::report::{Report, ReportColumn};
use crate::{Failure, corpora, measure};

/// Asked for over all pages.
pub(super) const LEAST_F1: f64 = 0.96;
/// Words in a row that are compared.
const SHINGLE: usize = 4;
/// What a page is condensed to at most, in per cent of its tokens.
const SHARE: usize = 60;

/// Measures all pages.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let folder = corpora::folder("html")?;
    let truth = corpora::json(&folder.join("ground-truth.json"))?;
    let reader = TextExtractor::new()?;
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let (mut precisions, mut recalls) = (Vec::new(), Vec::new());
    let (mut before, mut after, mut spent) = (0, 0, 0.0);
    for path in corpora::files(&folder.join("pages"), &[".html.gz", ".html"])? {
        let id = corpora::name(&path).replace(".gz", "").replace(".html", "");
        let article = truth[&id]["articleBody"].as_str().ok_or_else(|| format!("{id} has no true text"))?;
        let text = corpora::text(&path)?;
        let target = measure::share_of(Counter::o200k().count(&text), SHARE);
        let measured = match measure::run(&text, ContentType::Html, target) {
            Ok(measured) => measured,
            Err(refusal) => {
                faults.push(format!("{id}: refused: {refusal}"));
                continue;
            }
        };
        let condensed = &measured.condensed;
        faults.extend(measure::faults(&text, condensed, target).into_iter().map(|f| format!("{id}: {f}")));
        let (true_part, extra, missed) = reader.overlap(article, &reader.readable(&condensed.text));
        let precision = (true_part + extra > 0.0).then(|| true_part / (true_part + extra));
        let recall = (true_part + missed > 0.0).then(|| true_part / (true_part + missed));
        precisions.extend(precision);
        recalls.extend(recall);
        before += condensed.original_tokens;
        after += condensed.tokens;
        spent += measured.ms;
        rows.push((
            id.chars().take(8).collect(),
            vec![
                Some(condensed.original_tokens as f64),
                Some(condensed.tokens as f64),
                Some(measure::saved(condensed.original_tokens, condensed.tokens)),
                precision.zip(recall).map(|(p, r)| harmonic(p, r)),
                precision,
                recall,
                Some(measured.ms),
            ],
        ));
    }
    let (precision, recall) = (mean(&precisions), mean(&recalls));
    let total = [before as f64, after as f64, measure::saved(before, after), harmonic(precision, recall)];
    let total = total.into_iter().chain([precision, recall, spent]).map(Some).collect();
    Ok(Report {
        suite: "html",
        title: "Web pages (article extraction benchmark), main content".to_owned(),
        columns: vec![
            ReportColumn::shown("tokens", 0),
            ReportColumn::shown("out", 0),
            ReportColumn::higher("saved %", 1.0),
            ReportColumn::higher("F1", 0.02).least(LEAST_F1).digits(3),
            ReportColumn::higher("precision", 0.03).digits(3),
            ReportColumn::higher("recall", 0.03).digits(3),
            ReportColumn::shown("ms", 1),
        ],
        rows,
        total,
        faults,
    })
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(super) fn harmonic(a: f64, b: f64) -> f64 {
    if a + b > 0.0 { 2.0 * a * b / (a + b) } else { 0.0 }
}

/// Takes the readable text out of a condensed page and compares it with the true one.
pub(super) struct TextExtractor {
    word: Regex,
    /// Words that are not text of the page: our header and marks, link targets, signs of markup.
    signs: [(Regex, &'static str); 7],
}

/// Pictures and links among the signs.
const LINKS: std::ops::Range<usize> = 3..5;

fn replaced(text: &str, signs: &[(Regex, &'static str)]) -> String {
    signs.iter().fold(text.to_owned(), |text, (sign, to)| sign.replace_all(&text, *to).into_owned())
}

impl TextExtractor {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {
            word: Regex::new(r"\w+")?,
            signs: [
                (Regex::new(r"^\[(?:Condensed|…)[^\n]*\n")?, ""),
                (Regex::new(r"(?m)^\[Page: [^\n]*\]$")?, ""),
                (Regex::new(r"\[…[^\]\n]*\]")?, " "),
                (Regex::new(r"!\[([^\]]*)\]\([^)\s]*(?:\s[^)]*)?\)")?, "$1"),
                (Regex::new(r"\[([^\]]*)\]\([^)\s]*(?:\s[^)]*)?\)")?, "$1"),
                (Regex::new(r"lp1-[0-9a-z]{13}-[0-9a-z]{6}(?:#[LB][0-9-]+)?")?, " "),
                (Regex::new(r"(?s)<[^>]*>")?, " "),
            ],
        })
    }

    pub(super) fn readable(&self, output: &str) -> String {
        replaced(output, &self.signs)
    }

    /// The text with the words of links and pictures in place of their markup.
    pub(super) fn unlinked(&self, output: &str) -> String {
        replaced(output, &self.signs[LINKS])
    }

    /// The shares of shingles in both, only in `output`, only in `article`.
    pub(super) fn overlap(&self, article: &str, output: &str) -> (f64, f64, f64) {
        let (truth, found) = (self.shingles(article), self.shingles(output));
        let count = |of: &HashMap<Vec<&str>, i64>, shingle| of.get(shingle).copied().unwrap_or(0);
        let both: i64 = truth.iter().map(|(shingle, &times)| times.min(count(&found, shingle))).sum();
        let extra: i64 = found.iter().map(|(shingle, &times)| (times - count(&truth, shingle)).max(0)).sum();
        let missed: i64 = truth.iter().map(|(shingle, &times)| (times - count(&found, shingle)).max(0)).sum();
        let all = (both + extra + missed).max(1) as f64;
        (both as f64 / all, extra as f64 / all, missed as f64 / all)
    }

    fn shingles<'t>(&self, text: &'t str) -> HashMap<Vec<&'t str>, i64> {
        let words: Vec<&str> = self.word.find_iter(text).map(|word| word.as_str()).collect();
        let mut shingles = HashMap::new();
        if !words.is_empty() {
            let windows = words.windows(SHINGLE.min(words.len()));
            windows.for_each(|window| *shingles.entry(window.to_vec()).or_insert(0) += 1);
        }
        shingles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_scores_one_and_markup_is_taken_off() {
        let reader = TextExtractor::new().unwrap();
        let output = "[Condensed: lp1-0 x]\nOne [two](https://example.org/a) three **four** five [… B1-2]";
        let (both, extra, missed) = reader.overlap("One two three four five", &reader.readable(output));
        assert!(both > 0.99 && extra + missed < 0.01, "{both} {extra} {missed}");
    }

    #[test]
    fn extra_and_missing_text_is_distinguished() {
        let reader = TextExtractor::new().unwrap();
        let (both, extra, missed) = reader.overlap("a b c d e", "a b c d x");
        assert!((both - extra).abs() < 1e-9 && (both - missed).abs() < 1e-9);
    }
}
