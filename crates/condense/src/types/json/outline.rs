//! Writes values in order within a budget: names and small values first, deeper ones as far as they fit.
//!
//! Knows how a budget is divided among siblings; leaves tables to `rows`. Recursion depth is bounded whatever the
//! depth of the text.

use std::ops::Range;

use super::facts::compared;
use super::out::JsonDraft;
use super::view::JsonView;
use super::{rows, write};
use larder_text::json::{Document, Kind};

/// Values nested deeper are omitted entirely.
const DEEPEST: usize = 48;
/// A string is omitted if fewer tokens of it can be shown.
const SHORTEST_HEAD: usize = 6;
/// The factor by which an item that answers the query may exceed the share of others.
const ASKED: usize = 8;
/// Longer text between values is not punctuation.
const LONGEST_SIGN: usize = 256;

/// Writes the value at `node` to `out` with about `budget` tokens; returns the rest of them.
pub(super) fn value(view: &JsonView<'_>, out: &mut JsonDraft<'_>, node: usize, budget: usize, depth: usize) {
    let (tree, span) = (view.tree, view.tree.span(node));
    // A value that costs no more than its marker is always written.
    if whole(view, out, node, budget.max(view.mark)) {
        return;
    }
    if !tree.is_container(node) {
        return head_of_string(view, out, node, budget);
    }
    let roomy = budget > 2 * view.mark && depth < DEEPEST;
    if roomy && view.grid(node).is_some_and(|grid| rows::write(view, out, node, &grid, budget)) {
        return;
    }
    if roomy && tree.has_children(node) {
        members(view, out, node, budget, depth);
    } else {
        out.gap_to(span.end);
    }
}

/// Writes all of the value, if it fits.
fn whole(view: &JsonView<'_>, out: &mut JsonDraft<'_>, node: usize, budget: usize) -> bool {
    if view.tree.dense(node) > view.bytes_for(budget) {
        return false;
    }
    let before = out.text.len();
    let fits = write::value(view.tree, node, view.bytes_for(budget), &mut out.text)
        && view.count_up_to(&out.text[before..], budget).is_some();
    if !fits {
        out.text.truncate(before);
    } else if view.tree.is_irregular(node) {
        out.shown_to(view.tree.span(node).end);
    } else {
        out.covered(view.tree, node, &[]);
    }
    fits
}

/// Writes the beginning of a long string or word, and the marker for its rest.
fn head_of_string(view: &JsonView<'_>, out: &mut JsonDraft<'_>, node: usize, budget: usize) {
    let span = view.tree.span(node);
    let room = budget.saturating_sub(view.mark);
    if room >= SHORTEST_HEAD {
        let raw = view.tree.raw(node);
        let most = raw.floor_char_boundary(view.bytes_for(room));
        let head = view.job.request.counter.prefix(&raw[..most], room);
        let end = span.start + uncut(head).len();
        out.text.push_str(&view.tree.text()[span.start..end]);
        out.shown_to(end);
    }
    out.gap_to(span.end);
}

/// `head` without a truncated escape sequence.
fn uncut(head: &str) -> &str {
    let from = head.floor_char_boundary(head.len().saturating_sub(6));
    match head[from..].find('\\') {
        Some(at) => &head[..from + at],
        None => head,
    }
}

/// Writes the values in `node`, each with its share; those in the middle are omitted if there are too many.
fn members(view: &JsonView<'_>, out: &mut JsonDraft<'_>, node: usize, budget: usize, depth: usize) {
    let tree = view.tree;
    let children: Vec<usize> = tree.children(node).collect();
    let is_list = tree.kind(node) == Kind::Array;
    let scalars = is_list && children.iter().all(|&child| !tree.is_container(child));
    let floors: Vec<usize> = children.iter().map(|&child| floor(view, child, scalars)).collect();
    let mut left = budget;
    if scalars {
        left = left.saturating_sub(extremes(view, out, &children));
    }
    let (head, tail) = ends(&floors, left, view.mark);
    let shown: Vec<usize> = (0..children.len()).filter(|&at| at < head || at >= tail).collect();
    let shares = shares(view, &children, &floors, &shown, left);
    let mut first = true;
    let mut next = 0;
    for (&at, share) in shown.iter().zip(shares) {
        if at > next {
            skip(view, out, children[at], scalars);
        }
        next = at + 1;
        if scalars {
            out.text.push_str(if first { "[" } else { ", " });
        } else {
            new_line(out);
            (0..depth).for_each(|_| out.text.push(' '));
        }
        first = false;
        lead(view, out, children[at], is_list && !scalars);
        value(view, out, children[at], share, depth + 1);
    }
    let end = tree.span(node).end;
    if next < children.len() {
        if !scalars {
            new_line(out);
        }
        let last = children.last().map_or(end, |&last| tree.span(last).end);
        out.gap_to(last);
    }
    trail(out, tree, end);
    if scalars {
        out.text.push(']');
    }
}

fn new_line(out: &mut JsonDraft<'_>) {
    if !out.text.ends_with('\n') {
        out.text.push('\n');
    }
}

/// The minimum cost of a value: its name and type, or a marker.
fn floor(view: &JsonView<'_>, child: usize, scalars: bool) -> usize {
    let name = view.estimate(view.tree.name_span(child).len()) + 2;
    let all = view.estimate(view.tree.dense(child));
    if scalars { all + 1 } else { name + all.min(view.mark) }
}

fn weights(view: &JsonView<'_>, children: &[usize]) -> Vec<bool> {
    children.iter().map(|&child| view.hits.weight(&with_name(view.tree, child)) > 0.0).collect()
}

fn with_name(tree: &Document<'_>, child: usize) -> Range<usize> {
    let (key, span) = (tree.name_span(child), tree.span(child));
    if key.is_empty() { span } else { key.start..span.end }
}

/// How many values are shown from the start, and the first one shown at the end.
fn ends(floors: &[usize], budget: usize, mark: usize) -> (usize, usize) {
    if floors.iter().sum::<usize>() <= budget {
        return (floors.len(), floors.len());
    }
    let mut left = budget.saturating_sub(mark + 1);
    let mut tail = floors.len();
    if let Some(&last) = floors.last().filter(|&&last| last * 4 <= left) {
        left -= last;
        tail -= 1;
    }
    let mut head = 0;
    while head < tail && floors[head] <= left {
        left -= floors[head];
        head += 1;
    }
    (head, tail)
}

/// The share of each shown value: all it needs if that is little, otherwise an equal share of the rest.
fn shares(
    view: &JsonView<'_>,
    children: &[usize],
    floors: &[usize],
    shown: &[usize],
    budget: usize,
) -> Vec<usize> {
    let asked = weights(view, children);
    let name = |at: usize| view.estimate(view.tree.name_span(children[at]).len()) + 2;
    let want = |at: usize| view.estimate(view.tree.dense(children[at])) * 5 / 4 + 4;
    let gap = if shown.len() < children.len() { view.mark } else { 0 };
    let names: usize = shown.iter().map(|&at| name(at)).sum();
    let mut left = budget.saturating_sub(names + gap);
    let mut parts: usize = shown.iter().map(|&at| if asked[at] { ASKED } else { 1 }).sum();
    let mut order: Vec<usize> = (0..shown.len()).collect();
    let relative = |at: usize| want(at) / if asked[at] { ASKED } else { 1 };
    order.sort_by_key(|&index| (relative(shown[index]), index));
    let mut shares = vec![0; shown.len()];
    for index in order {
        let at = shown[index];
        let weight = if asked[at] { ASKED } else { 1 };
        let share = (left * weight / parts.max(1)).min(want(at)).max(floors[at].saturating_sub(name(at)));
        shares[index] = share;
        left = left.saturating_sub(share);
        parts -= weight;
    }
    shares
}

/// Smallest and largest of many numbers.
fn extremes(view: &JsonView<'_>, out: &mut JsonDraft<'_>, children: &[usize]) -> usize {
    let numbers = children.iter().filter(|&&child| view.tree.kind(child) == Kind::Number);
    let less = |a: usize, b: usize| compared(view.tree.raw(a), view.tree.raw(b)).is_lt();
    let found = numbers.fold(None, |found, &node| match found {
        None => Some((node, node)),
        Some((low, high)) => {
            Some((if less(node, low) { node } else { low }, if less(high, node) { node } else { high }))
        }
    });
    let Some((low, high)) = found else { return 0 };
    let text = format!("({} to {}) ", view.tree.raw(low), view.tree.raw(high));
    out.text.push_str(&text);
    view.count(&text)
}

/// Omits everything before `child`.
fn skip(view: &JsonView<'_>, out: &mut JsonDraft<'_>, child: usize, scalars: bool) {
    out.text.push_str(if scalars { ", " } else { "\n" });
    let start = with_name(view.tree, child).start;
    out.gap_to(out.boundary(start));
}

/// Writes what precedes a value: its name, or a dash.
fn lead(view: &JsonView<'_>, out: &mut JsonDraft<'_>, child: usize, is_item: bool) {
    let (tree, start) = (view.tree, view.tree.span(child).start);
    let key = tree.name_span(child);
    let before = if key.is_empty() { start } else { key.start };
    trail(out, tree, before);
    if !key.is_empty() {
        out.text.push_str(tree.name(child));
        out.text.push_str(": ");
    } else if is_item {
        out.text.push_str("- ");
    }
    out.told_to(start);
}

/// Punctuation up to `end` is rewritten; anything else is shown unchanged, or omitted if it is long.
fn trail(out: &mut JsonDraft<'_>, tree: &Document<'_>, end: usize) {
    let rest = &tree.text()[out.at.min(end)..end];
    let signs = rest.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}');
    if matches!(signs, "" | "," | "{" | "[" | "}" | "]") {
        out.told_to(end);
    } else if signs.len() <= LONGEST_SIGN {
        out.text.push_str(rest.trim());
        out.text.push(' ');
        out.shown_to(end);
    } else {
        out.gap_to(end);
    }
}
