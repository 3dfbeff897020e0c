//! What is known of a text before any of it is written: its values, the places that answer the query or tell of
//! failure, its tables, and what things cost.
//!
//! Knows places and costs; does not know how values are laid out.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use hashbrown::HashMap;

use super::grid::Grid;
use super::scan::{Kind, Tree};
use crate::content::frame::Job;
use crate::content::render::Renderer;
use crate::content::score::{for_each_term, query_terms};

/// What a word of failure in a value counts for, beside a query's words.
const FAILURE: f32 = 2.0;
/// Words of failure, as they stand inside of others.
const FAILURES: [&str; 9] = ["error", "Error", "ERROR", "fail", "Fail", "FAIL", "xception", "fatal", "FATAL"];
/// Words of failure in more than one of so many values mean nothing.
const RARE: usize = 50;
/// A vocabulary packs no more bytes into a token, on average over a column.
const MOST_BYTES_PER_TOKEN: usize = 16;

pub(in crate::content) struct View<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) tree: &'a Tree<'a>,
    pub(super) hits: Hits,
    grids: RefCell<HashMap<usize, Option<Rc<Grid>>>>,
    /// Tokens of a typical mark with the line break after it.
    pub(super) mark: usize,
    per_byte: f32,
}

impl<'a> View<'a> {
    pub(super) fn new(job: &'a Job<'a>, tree: &'a Tree<'a>, renderer: &Renderer<'_>) -> Self {
        let dense = tree.dense(0).max(1) as f32;
        Self {
            job,
            tree,
            hits: Hits::of(tree, job.request.query),
            grids: RefCell::default(),
            mark: job.request.counter.count(&renderer.sample_mark()) + 1,
            per_byte: (job.original_tokens as f32 / dense).clamp(0.05, 1.0),
        }
    }

    pub(super) fn count(&self, text: &str) -> usize {
        self.job.request.counter.count(text)
    }

    /// Tokens of `text` if they are at most `limit`.
    pub(super) fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        if text.len() > limit.saturating_mul(MOST_BYTES_PER_TOKEN) {
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
        tokens.saturating_mul(MOST_BYTES_PER_TOKEN)
    }

    /// The table in `node`, if its values are rows; worked out once.
    pub(super) fn grid(&self, node: usize) -> Option<Rc<Grid>> {
        if let Some(known) = self.grids.borrow().get(&node) {
            return known.clone();
        }
        let grid = Grid::of(self.tree, node).map(Rc::new);
        self.grids.borrow_mut().insert(node, grid.clone());
        grid
    }
}

/// Places that matter, with what they count.
#[derive(Debug, Default)]
pub(super) struct Hits {
    places: Vec<usize>,
    /// The sum of all up to and without this one; one more than places.
    sums: Vec<f32>,
}

impl Hits {
    fn of(tree: &Tree<'_>, query: Option<&str>) -> Self {
        let mut hits = asked(tree, query);
        let failures = failures(tree);
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

/// Where words of the query stand; rare ones count more.
fn asked(tree: &Tree<'_>, query: Option<&str>) -> Vec<(usize, f32)> {
    let terms = query_terms(query.unwrap_or_default());
    if terms.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut counts = vec![0_usize; terms.len()];
    for node in 1..tree.len() {
        let mut look = |place: usize, text: &str| {
            for_each_term(text, |hash| {
                if let Ok(term) = terms.binary_search(&hash) {
                    counts[term] += 1;
                    found.push((place, term));
                }
            });
        };
        let key = tree.key_span(node);
        look(key.start, &tree.text[key.clone()]);
        if !tree.is_container(node) {
            look(tree.span(node).start, tree.raw(node));
        }
    }
    let weight = |term: usize| {
        let rarity = (tree.len() / counts[term].max(1)).max(1).ilog2();
        // A word that stands everywhere asks for nothing.
        if rarity < 3 { 0.0 } else { rarity as f32 }
    };
    found.into_iter().map(|(place, term)| (place, weight(term))).filter(|&(_, w)| w > 0.0).collect()
}

/// Values that tell of failure, and values under such a name that say more than nothing.
fn failures(tree: &Tree<'_>) -> Vec<usize> {
    let mut places: Vec<usize> = FAILURES
        .iter()
        .flat_map(|word| memchr::memmem::find_iter(tree.text.as_bytes(), word.as_bytes()))
        .collect();
    places.sort_unstable();
    let tells = |&place: &usize| {
        let node = tree.at(place);
        let inside = tree.node(node).kind == Kind::Text && tree.span(node).contains(&place);
        let named = node + 1;
        inside || named < tree.len() && tree.key_span(named).contains(&place) && !is_nothing(tree, named)
    };
    places.into_iter().filter(tells).collect()
}

fn is_nothing(tree: &Tree<'_>, node: usize) -> bool {
    match tree.node(node).kind {
        Kind::Object | Kind::Array | Kind::Stream => tree.node(node).children == 0,
        _ => matches!(tree.raw(node), "null" | "false" | "0" | "\"\"" | ""),
    }
}
