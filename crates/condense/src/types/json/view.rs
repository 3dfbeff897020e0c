//! What is known about a text before writing: its values, the places that answer the query or report failure, its
//! tables, and costs.
//!
//! Knows places and costs; does not know how values are laid out.

use std::ops::Range;
use std::rc::Rc;
use std::sync::LazyLock;

use regex::Regex;

use super::grid::{Form, Grid, Grids, Shown};
use crate::engine::job::Job;
use crate::engine::render::Renderer;
use larder_text::json::{Document, Kind};
use larder_text::pattern::pattern;
use larder_text::query::QueryWords;

/// The weight of a failure word in a value, relative to a query word.
const FAILURE: f32 = 2.0;
/// Failure words, also inside other words. A single pattern, so that a text is scanned once instead of nine times.
static FAILURES: LazyLock<Regex> =
    LazyLock::new(|| pattern("error|Error|ERROR|fail|Fail|FAIL|xception|fatal|FATAL"));
/// A query word that occurs more than once per this many bytes of a large text is too common for ranking, and the
/// search for it stops.
const EVERYWHERE: usize = 512;
/// A word with fewer occurrences is never too common, however small the text.
const FEW: usize = 4_096;
/// If more than one value in this many has a failure word, failure words are ignored.
const RARE: usize = 50;
/// The maximum bytes per token, averaged over a column, of any vocabulary.
const MAX_BYTES_PER_TOKEN: usize = 16;
/// The bytes per token of the limit at which a column is counted for the first time: ids and numbers have no more.
const FEW_BYTES_PER_TOKEN: usize = 2;
/// The maximum tokens that the beginning of a text may have more than the same bytes have within the whole.
const TOKENS_OF_END: usize = 16;

pub(crate) struct JsonView<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) tree: &'a Document<'a>,
    pub(super) hits: WordHits,
    pub(super) words: QueryWords,
    grids: Grids<'a>,
    /// Tokens of a typical marker and its line break.
    pub(super) mark: usize,
    per_byte: f32,
}

impl<'a> JsonView<'a> {
    pub(super) fn new(
        job: &'a Job<'a>,
        tree: &'a Document<'a>,
        grids: Grids<'a>,
        words: TextWords,
        renderer: &Renderer<'_>,
    ) -> Self {
        let dense = tree.dense(0).max(1) as f32;
        Self {
            job,
            tree,
            hits: WordHits::of(tree, &words),
            words: words.words,
            grids,
            mark: job.request.counter.count(&renderer.sample_mark()) + 1,
            per_byte: (job.original_tokens as f32 / dense).clamp(0.05, 1.0),
        }
    }

    pub(super) fn count(&self, text: &str) -> usize {
        self.job.request.counter.count(text)
    }

    /// Tokens of `text` if they are at most `limit`.
    pub(super) fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        if text.len() > limit.saturating_mul(MAX_BYTES_PER_TOKEN) {
            return None;
        }
        self.job.request.counter.count_up_to(text, limit)
    }

    /// Estimated tokens of this many bytes.
    pub(super) fn estimate(&self, bytes: usize) -> usize {
        (bytes as f32 * self.per_byte) as usize + 1
    }

    /// The maximum number of bytes worth writing for this many tokens.
    pub(super) fn bytes_for(&self, tokens: usize) -> usize {
        tokens.saturating_mul(MAX_BYTES_PER_TOKEN)
    }

    /// Tokens of all cells of a column with separators, if at most `limit`.
    pub(super) fn column_cost(&self, grid: &Grid, shown: Shown, limit: usize) -> Option<usize> {
        if let Some(&(known, tokens)) = grid.costs.borrow().get(&shown)
            && (tokens.is_some() || known >= limit)
        {
            return tokens.filter(|&tokens| tokens <= limit);
        }
        let generous = limit + limit / 2;
        let tokens = self.count_column(grid, shown, generous);
        grid.costs.borrow_mut().insert(shown, (generous, tokens));
        tokens.filter(|&tokens| tokens <= limit)
    }

    fn count_column(&self, grid: &Grid, shown: Shown, limit: usize) -> Option<usize> {
        let (column, rows) = (&grid.table.columns[shown.place], grid.table.rows.len());
        let most = self.bytes_for(limit);
        if shown.form == Form::Written && column.bytes > most || rows / 8 > limit {
            return None;
        }
        let mut text = String::with_capacity(column.bytes.min(most) + rows);
        // Of a column with too many tokens not all has to be written.
        let mut next_count = limit.saturating_mul(FEW_BYTES_PER_TOKEN);
        for row in 0..rows {
            text.push('|');
            grid.write_cell(self.tree, shown, row, &mut text);
            if text.len() > most {
                return None;
            }
            if text.len() > next_count {
                self.count_up_to(&text, limit.saturating_add(TOKENS_OF_END))?;
                next_count *= 2;
            }
        }
        self.count_up_to(&text, limit)
    }

    /// The table in `node`, if its values are rows.
    pub(super) fn grid(&self, node: usize) -> Option<Rc<Grid>> {
        self.grids.of(self.tree, node)
    }
}

/// Occurrences of relevant words in a text, independent of its values.
pub(super) struct TextWords {
    words: QueryWords,
    /// Occurrences of query words: position and word.
    asked: Vec<(usize, usize)>,
    /// The number of occurrences of each.
    counts: Vec<usize>,
    /// Positions of failure words.
    failures: Vec<usize>,
}

impl TextWords {
    pub(super) fn of(text: &str, query: Option<&str>) -> Self {
        let words = QueryWords::of(query.unwrap_or_default());
        let mut asked: Vec<(usize, usize)> = Vec::new();
        let mut counts = vec![0; words.count()];
        let most = (text.len() / EVERYWHERE).max(FEW);
        words.find(text, |place, word| {
            counts[word] += 1;
            asked.push((place, word));
            let everywhere = counts[word] > most;
            if everywhere {
                counts[word] = usize::MAX;
            }
            everywhere
        });
        let failures = FAILURES.find_iter(text).map(|word| word.start()).collect();
        Self { words, asked, counts, failures }
    }
}

/// Relevant positions with their weights.
#[derive(Debug, Default)]
pub(super) struct WordHits {
    /// Position, index of the query's word, and weight; sorted by position.
    hits: Vec<(usize, usize, f32)>,
    /// Prefix sums of the weights, one more than positions.
    sums: Vec<f32>,
}

impl WordHits {
    fn of(tree: &Document<'_>, words: &TextWords) -> Self {
        let mut hits = asked(tree, words);
        let failures = failures(tree, &words.failures);
        if failures.len() * RARE <= tree.len() {
            hits.extend(failures.into_iter().map(|place| (place, usize::MAX, FAILURE)));
        }
        hits.sort_by_key(|&(place, ..)| place);
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        for &(.., weight) in &hits {
            sum += weight;
            sums.push(sum);
        }
        Self { hits, sums }
    }

    /// The total weight in `range`.
    pub(super) fn weight(&self, range: &Range<usize>) -> f32 {
        let at = |place: usize| self.hits.partition_point(|&(other, ..)| other < place);
        self.sums[at(range.end)] - self.sums[at(range.start)]
    }

    /// Position, word and weight of each hit in `range`.
    pub(super) fn within(&self, range: &Range<usize>) -> &[(usize, usize, f32)] {
        let at = |place: usize| self.hits.partition_point(|&(other, ..)| other < place);
        &self.hits[at(range.start)..at(range.end).max(at(range.start))]
    }
}

/// Occurrences of query words; rare ones weigh more, and one that appears everywhere weighs nothing.
fn asked(tree: &Document<'_>, words: &TextWords) -> Vec<(usize, usize, f32)> {
    let weight = |count: &usize| {
        let rarity = (tree.len() / count.max(&1)).max(1).ilog2();
        if rarity < 3 { 0.0 } else { rarity as f32 }
    };
    let weights: Vec<f32> = words.counts.iter().map(weight).collect();
    words.asked.iter().map(|&(place, word)| (place, word, weights[word])).collect()
}

/// Failure words in values, and in names whose values are not empty.
fn failures(tree: &Document<'_>, places: &[usize]) -> Vec<usize> {
    let tells = |&place: &usize| {
        let node = tree.at(place);
        let inside = tree.kind(node) == Kind::String && tree.span(node).contains(&place);
        let named = node + 1;
        inside || named < tree.len() && tree.name_span(named).contains(&place) && !is_nothing(tree, named)
    };
    places.iter().copied().filter(tells).collect()
}

fn is_nothing(tree: &Document<'_>, node: usize) -> bool {
    match tree.kind(node) {
        Kind::Object | Kind::Array | Kind::Stream => !tree.has_children(node),
        _ => matches!(tree.raw(node), "null" | "false" | "0" | "\"\"" | ""),
    }
}
