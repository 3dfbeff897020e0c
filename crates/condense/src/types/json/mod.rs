//! JSON, JSON Lines and concatenated values: tables for similar values, an outline for the rest.
//!
//! Knows the order in which tokens are spent; does not know other content types.

mod columns;
mod facts;
mod grid;
mod head;
mod out;
mod outline;
mod plan;
mod rows;
mod view;
mod wanted;
mod write;

use self::grid::Grids;
use self::out::JsonDraft;
use self::view::{JsonView, TextWords};
use crate::condensed::CondenseError;
use crate::engine::condenser::Condenser;
use crate::engine::draft::CondensedDraft;
use crate::engine::extractive::Extractive;
use crate::engine::job::Job;
use crate::engine::render::{Header, Renderer};
use crate::types::plain;
use larder_text::json::Document;
pub(crate) use larder_text::json::looks_like;

/// Maximum corrections of the budget by the exact count.
const MAX_ROUNDS: usize = 8;
/// A result is full at this share of its target, in per cent.
const FULL: usize = 92;
/// Extra tokens by which the budget is reduced, since it is only an estimate.
const SPARE: usize = 8;

/// From this size on, words are searched for while the values are being parsed.
const LARGE: usize = 1 << 17;

/// The condenser of JSON.
pub(crate) const CONDENSER: &dyn Condenser = &Json;

struct Json;

impl Condenser for Json {
    fn condense(&self, job: &Job<'_>) -> Result<CondensedDraft, CondenseError> {
        let rewritten = rewrite(job, || Document::parse_lenient(job.request.text));
        rewritten.map_or_else(|| Extractive(plain::Plain).condense(job), Ok)
    }
}

/// Writes the values that `read` finds within the budget; `None` if it is too small for their form.
pub(crate) fn rewrite<'t>(
    job: &Job<'t>,
    read: impl FnOnce() -> Option<Document<'t>>,
) -> Option<CondensedDraft> {
    let (text, target) = (job.request.text, job.request.target);
    let fits = |header: &Header| {
        let renderer = Renderer::new(job, *header);
        (job.request.counter.count(&renderer.header()) <= target / header.share()).then_some(renderer)
    };
    let renderer = Header::ladder(job).iter().filter(|&&header| header != Header::Bare).find_map(fits)?;
    let words = || TextWords::of(text, job.request.query);
    let workers = job.request.counter.workers();
    let values = || read().map(|tree| (Grids::largest(&tree, workers), tree));
    let (words, values) = workers.join_if_worth(text.len() >= LARGE, words, values);
    let (grids, tree) = values?;
    let view = JsonView::new(job, &tree, grids, words, &renderer);
    let head = view.count(&renderer.header());
    let (mut best, mut most) = (None, 0);
    let mut budget = target.checked_sub(head)?;
    // The largest budget whose text fits, and the smallest whose text does not.
    let (mut low, mut high) = (0, usize::MAX);
    for _ in 0..MAX_ROUNDS {
        let draft = written(&view, &renderer, budget);
        let tokens = view.count(&draft.text);
        let next = if tokens <= target {
            if tokens > most {
                (best, most) = (Some(draft), tokens);
            }
            if tokens * 100 >= target * FULL {
                break;
            }
            low = low.max(budget);
            budget + (target - tokens) * 3 / 4
        } else {
            high = high.min(budget);
            budget.saturating_sub(tokens - target + SPARE)
        };
        let wedged = next <= low || next >= high;
        if wedged && (high == usize::MAX || high - low <= SPARE) {
            break;
        }
        budget = if wedged { low.midpoint(high) } else { next };
    }
    best
}

/// The text for this budget, followed by required ranges that it does not contain.
fn written(view: &JsonView<'_>, renderer: &Renderer<'_>, budget: usize) -> CondensedDraft {
    let mut out = JsonDraft::new(renderer, view.tree.text());
    let mut root = 0;
    let mut values = view.tree.children(0);
    if values.next().is_some() && values.next().is_none() && !view.tree.is_irregular(0) {
        root = 1;
        out.told_to(view.tree.span(1).start);
    }
    outline::value(view, &mut out, root, budget, 0);
    out.told_to(view.tree.text().len());
    let missing: Vec<&str> = view
        .job
        .required
        .iter()
        .map(|range| &view.tree.text()[range.clone()])
        .filter(|pin| !out.text.contains(pin))
        .collect();
    for pin in missing {
        out.text.push('\n');
        out.text.push_str(pin);
    }
    out.draft()
}
