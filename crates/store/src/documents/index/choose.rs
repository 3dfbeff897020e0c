//! Chooses the documents to rank: those whose words have the highest total weight, regardless of age.
//!
//! For a rare word, all documents that contain it are known. For a common one, only the newest are, and older ones
//! are queried in combination with other words: with the rare ones, and with each set of common ones. Words that many
//! documents contain only break ties.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Transaction};

use larder_disk::StoreError;

/// Rows that are visited for one word, or for words together.
pub(super) const ROWS: usize = 2_000;
/// The number of common words that are looked up in combination, and of rare ones combined with them: those with the
/// highest weight.
const PAIRED: usize = 5;
/// The share of documents above which a word does not help to find any.
const EVERYWHERE: f64 = 0.3;

/// A word of the query.
#[derive(Debug)]
pub(super) struct QueryWord {
    /// As the index has it.
    pub(super) text: String,
    /// The newest documents that contain it, newest first.
    pub(super) rows: Vec<i64>,
    /// Its inverse document frequency.
    pub(super) weight: f64,
    /// The share of all documents that contain it, as far as known.
    pub(super) share: f64,
}

impl QueryWord {
    /// Whether all documents that contain it are known.
    fn is_rare(&self) -> bool {
        self.rows.len() < ROWS
    }
}

/// Looks words up in the index.
pub(super) struct Lookup<'tx> {
    statement: CachedStatement<'tx>,
    /// The columns that are searched, as FTS5 writes them; empty for all.
    columns: String,
}

impl<'tx> Lookup<'tx> {
    pub(super) fn new(tx: &'tx Transaction<'_>, columns: &[&str]) -> Result<Self, StoreError> {
        let statement =
            tx.prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?2")?;
        let columns =
            if columns.is_empty() { String::new() } else { format!("{{{}}} : ", columns.join(" ")) };
        Ok(Self { statement, columns })
    }

    /// The newest documents that contain a word from each of these groups.
    pub(super) fn rows(&mut self, all_of: &[&[&str]], limit: usize) -> Result<Vec<i64>, StoreError> {
        let either = |words: &&[&str]| {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("({})", words.join(" OR "))
        };
        let all: Vec<String> = all_of.iter().map(either).collect();
        let matches = format!("{}({})", self.columns, all.join(" AND "));
        let rows = self.statement.query_map((matches, limit as i64), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// The documents with the highest total weight, newer ones first among equals. `words` are sorted, rarest first.
pub(super) fn choose(
    words: &[QueryWord],
    lookup: &mut Lookup<'_>,
    limit: usize,
) -> Result<Vec<i64>, StoreError> {
    let mut held: HashMap<i64, u64> = HashMap::new();
    let mut hold = |rows: &[i64], words: u64| {
        for row in rows {
            *held.entry(*row).or_default() |= words;
        }
    };
    for (at, word) in words.iter().enumerate() {
        hold(&word.rows, 1 << at);
    }
    let weighty = words.iter().filter(|word| word.share <= EVERYWHERE).count();
    let (rare, common): (Vec<_>, Vec<_>) =
        words.iter().take(weighty).enumerate().partition(|(_, word)| word.is_rare());
    let (rare, common) = (rare.get(..PAIRED).unwrap_or(&rare), common.get(..PAIRED).unwrap_or(&common));
    if !rare.is_empty() {
        let texts: Vec<&str> = rare.iter().map(|(_, word)| word.text.as_str()).collect();
        let limit = rare.iter().map(|(_, word)| word.rows.len()).sum();
        for (at, word) in common {
            hold(&lookup.rows(&[&[word.text.as_str()], &texts], limit)?, 1 << at);
        }
    }
    let mut nowhere: Vec<u64> = Vec::new();
    for set in (0_u64..1 << common.len()).filter(|set| set.count_ones() > 1) {
        if nowhere.iter().any(|none| none & set == *none) {
            continue;
        }
        let together =
            || common.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1).map(|(_, word)| word);
        let texts: Vec<[&str; 1]> = together().map(|(_, word)| [word.text.as_str()]).collect();
        let all_of: Vec<&[&str]> = texts.iter().map(<[&str; 1]>::as_slice).collect();
        let rows = lookup.rows(&all_of, ROWS)?;
        hold(&rows, together().fold(0, |words, (at, _)| words | 1 << at));
        if rows.is_empty() {
            nowhere.push(set);
        }
    }
    let weight = |held: u64, of: std::ops::Range<usize>| -> f64 {
        let weights = words.iter().enumerate().skip(of.start).take(of.len());
        weights.filter(|(at, _)| held >> at & 1 == 1).map(|(_, word)| word.weight).sum()
    };
    let mut scores: Vec<(f64, f64, i64)> = held
        .into_iter()
        .map(|(row, held)| (weight(held, 0..weighty), weight(held, weighty..words.len()), row))
        .collect();
    scores.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.cmp(&a.2)));
    Ok(scores.into_iter().take(limit).map(|(_, _, row)| row).collect())
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
