//! What is known of a text before any of it is written: its values, the places that answer the query or report
//! failure, its tables, and what things cost.
//!
//! Knows places and costs; does not know how values are laid out.

use std::ops::Range;
use std::rc::Rc;
use std::sync::LazyLock;

use regex::Regex;

use super::grid::{Grid, Grids};
use crate::analysis::pattern::pattern;
use crate::analysis::query_prefilter::QueryWords;
use crate::engine::job::Job;
use crate::engine::render::Renderer;
use larder_text::json::{Document, Kind};

/// The weight of a word of failure in a value, compared with the words of a query.
const FAILURE: f32 = 2.0;
/// Words of failure, also as parts of other words. One pattern, so that a text is read once, not nine times.
static FAILURES: LazyLock<Regex> =
    LazyLock::new(|| pattern("error|Error|ERROR|fail|Fail|FAIL|xception|fatal|FATAL"));
/// A query's word that occurs more often than once in so many bytes of a large text is too common to rank by, and
/// the search for it ends.
const EVERYWHERE: usize = 512;
/// Occurrences below which no word is too common, however small the text.
const FEW: usize = 4_096;
/// If more than one value in so many has a word of failure, these words are ignored.
const RARE: usize = 50;
/// The most bytes per token, on average over a column, that any vocabulary reaches.
const MAX_BYTES_PER_TOKEN: usize = 16;

pub(crate) struct JsonView<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) tree: &'a Document<'a>,
    pub(super) hits: WordHits,
    grids: Grids<'a>,
    /// Tokens of a typical mark with the line break after it.
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
            hits: WordHits::of(tree, words),
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

    /// About how many tokens so many bytes cost.
    pub(super) fn estimate(&self, bytes: usize) -> usize {
        (bytes as f32 * self.per_byte) as usize + 1
    }

    /// At most so many bytes are worth writing for so many tokens.
    pub(super) fn bytes_for(&self, tokens: usize) -> usize {
        tokens.saturating_mul(MAX_BYTES_PER_TOKEN)
    }

    /// Tokens of all cells of a column with their separators, if at most `limit`.
    pub(super) fn column_cost(&self, grid: &Grid, place: usize, limit: usize) -> Option<usize> {
        if let Some(&(known, tokens)) = grid.costs.borrow().get(&place)
            && (tokens.is_some() || known >= limit)
        {
            return tokens.filter(|&tokens| tokens <= limit);
        }
        let generous = limit + limit / 2;
        let tokens = self.count_column(grid, place, generous);
        grid.costs.borrow_mut().insert(place, (generous, tokens));
        tokens.filter(|&tokens| tokens <= limit)
    }

    fn count_column(&self, grid: &Grid, place: usize, limit: usize) -> Option<usize> {
        let column = &grid.table.columns[place];
        let most = self.bytes_for(limit);
        if column.bytes > most || grid.table.rows.len() / 8 > limit {
            return None;
        }
        let mut text = String::with_capacity(column.bytes + grid.table.rows.len());
        for row in 0..grid.table.rows.len() {
            text.push('|');
            grid.write_cell(self.tree, place, row, &mut text);
            if text.len() > most {
                return None;
            }
        }
        self.count_up_to(&text, limit)
    }

    /// The table in `node`, if its values are rows.
    pub(super) fn grid(&self, node: usize) -> Option<Rc<Grid>> {
        self.grids.of(self.tree, node)
    }
}

/// Where words that matter appear in a text; depends on no value.
pub(super) struct TextWords {
    /// Where a word of the query appears, and which.
    asked: Vec<(usize, usize)>,
    /// How often each appears.
    counts: Vec<usize>,
    /// Where words of failure appear, by place.
    failures: Vec<usize>,
}

impl TextWords {
    pub(super) fn of(text: &str, query: Option<&str>) -> Self {
        let words = QueryWords::of(query.unwrap_or_default());
        let mut asked: Vec<(usize, usize)> = Vec::new();
        let mut counts = vec![0; words.len()];
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
        Self { asked, counts, failures }
    }
}

/// Places that matter, with what they count.
#[derive(Debug, Default)]
pub(super) struct WordHits {
    places: Vec<usize>,
    /// The sum of all up to and without this one; one more than places.
    sums: Vec<f32>,
}

impl WordHits {
    fn of(tree: &Document<'_>, words: TextWords) -> Self {
        let mut hits = asked(tree, &words);
        let failures = failures(tree, words.failures);
        if failures.len() * RARE <= tree.len() {
            hits.extend(failures.into_iter().map(|place| (place, FAILURE)));
        }
        hits.sort_by_key(|&(place, _)| place);
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        for &(_, weight) in &hits {
            sum += weight;
            sums.push(sum);
        }
        Self { places: hits.into_iter().map(|(place, _)| place).collect(), sums }
    }

    /// What the places in `range` count.
    pub(super) fn weight(&self, range: &Range<usize>) -> f32 {
        let at = |place: usize| self.places.partition_point(|&other| other < place);
        self.sums[at(range.end)] - self.sums[at(range.start)]
    }
}

/// Where words of the query appear; rare ones count more.
fn asked(tree: &Document<'_>, words: &TextWords) -> Vec<(usize, f32)> {
    let weight = |count: &usize| {
        let rarity = (tree.len() / count.max(&1)).max(1).ilog2();
        // A word that appears everywhere asks for nothing.
        if rarity < 3 { 0.0 } else { rarity as f32 }
    };
    let weights: Vec<f32> = words.counts.iter().map(weight).collect();
    words.asked.iter().map(|&(place, word)| (place, weights[word])).filter(|&(_, w)| w > 0.0).collect()
}

/// Of words of failure those in values, and those in names whose values say more than nothing.
fn failures(tree: &Document<'_>, places: Vec<usize>) -> Vec<usize> {
    let tells = |&place: &usize| {
        let node = tree.at(place);
        let inside = tree.kind(node) == Kind::String && tree.span(node).contains(&place);
        let named = node + 1;
        inside || named < tree.len() && tree.name_span(named).contains(&place) && !is_nothing(tree, named)
    };
    places.into_iter().filter(tells).collect()
}

fn is_nothing(tree: &Document<'_>, node: usize) -> bool {
    match tree.kind(node) {
        Kind::Object | Kind::Array | Kind::Stream => !tree.has_children(node),
        _ => matches!(tree.raw(node), "null" | "false" | "0" | "\"\"" | ""),
    }
}
