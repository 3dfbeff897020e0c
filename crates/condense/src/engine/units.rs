//! Units: the byte ranges of a text among which a condenser chooses.
//!
//! Knows how to keep a division exact and how to subdivide a unit around spans; does not know scores.

use std::ops::Range;

use crate::analysis::salience::SalientSpan;

/// Maximum bytes of a unit, so that any target can be met closely.
pub(crate) const LONGEST_UNIT: usize = 1_200;
/// Units shorter than this are not divided at clauses.
const SHORTEST_CLAUSE: usize = 40;
/// How far a span is extended to whole words, in bytes on each side.
const WORD_MARGIN: usize = 24;

/// How far a phrase extends on each side of its span, in bytes.
const PHRASE_MARGIN: usize = 40;

/// The order in which units are taken. A tier is exhausted before the next is considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// Must be shown, or the request is refused.
    Required,
    /// Precedes everything that is not required.
    First,
    /// Contains an error line, where not all salient spans fit.
    Error,
    /// Contains a salient span.
    Salient,
    /// Competes by score.
    Plain,
    /// Shown only when nothing else is left.
    Last,
    /// Shown only if it contains something required.
    Never,
}

/// A range of the original that is shown or omitted.
#[derive(Debug, Clone)]
pub(crate) struct TextPiece {
    pub(crate) range: Range<usize>,
    /// The unit it is a part of, as numbered for scores.
    pub(crate) unit: usize,
    pub(crate) tier: Tier,
    /// Multiplies the score, by position and structure.
    pub(crate) prior: f32,
    /// Pieces without which this one must not be shown: its heading, its fence.
    pub(crate) needs: [Option<usize>; 2],
    /// Whether it may be shown in part.
    pub(crate) divisible: bool,
}

impl TextPiece {
    pub(crate) fn plain(range: Range<usize>, prior: f32) -> Self {
        Self { range, unit: 0, tier: Tier::Plain, prior, needs: [None, None], divisible: true }
    }
}

/// How finely units are divided around spans that must be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grain {
    Unit,
    Clause,
    Phrase,
    Exact,
}

impl Grain {
    pub(crate) const LADDER: [Self; 4] = [Self::Unit, Self::Clause, Self::Phrase, Self::Exact];
}

/// Assigns tiers to `units` by content and, for finer grains, divides them around it. What is in `seen` is not shown
/// unless it is salient nevertheless. Units of at most `whole_up_to` bytes are divided around required spans only.
pub(crate) fn refine(
    text: &str,
    units: &[TextPiece],
    required: &[Range<usize>],
    salient: &[&SalientSpan],
    seen: &[Range<usize>],
    (grain, whole_up_to): (Grain, Option<usize>),
) -> Vec<TextPiece> {
    let mut pieces = Vec::with_capacity(units.len());
    let mut first_piece = Vec::with_capacity(units.len());
    let (mut required, mut salient) = (Cursor::new(required), Cursor::new(salient));
    let mut seen = Cursor::new(seen);
    for (index, unit) in units.iter().enumerate() {
        first_piece.push(pieces.len());
        let hard = required.overlapping(&unit.range, |range| (*range).clone());
        let soft = salient.overlapping(&unit.range, |span| span.range.clone());
        let seen_here = seen.overlapping(&unit.range, |range| (*range).clone());
        let stays_whole = hard.is_empty()
            && (soft.is_empty() || whole_up_to.is_some_and(|bytes| unit.range.len() <= bytes));
        let mut cuts = if stays_whole || !unit.divisible || unit.tier == Tier::Required {
            vec![unit.range.start, unit.range.end]
        } else {
            cuts(text, &unit.range, &hard, &soft, grain)
        };
        if unit.divisible && !seen_here.is_empty() {
            let edges = seen_here.iter().flat_map(|range| [range.start, range.end]);
            cuts.extend(edges.map(|edge| edge.clamp(unit.range.start, unit.range.end)));
            cuts.sort_unstable();
            cuts.dedup();
        }
        for pair in cuts.windows(2) {
            let range = pair[0]..pair[1];
            let holds = |spans: &[Range<usize>]| spans.iter().any(|span| overlaps(span, &range));
            let tier = match unit.tier {
                tier if holds(&hard) => tier.min(Tier::Required),
                Tier::Never => Tier::Never,
                tier if holds(&soft) => tier.min(Tier::Salient),
                _ if seen_here.iter().any(|seen| seen.start <= range.start && range.end <= seen.end) => {
                    Tier::Never
                }
                tier => tier,
            };
            pieces.push(TextPiece { range, unit: index, tier, ..unit.clone() });
        }
    }
    for piece in &mut pieces {
        piece.needs = piece.needs.map(|need| need.and_then(|unit| first_piece.get(unit).copied()));
    }
    pieces
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn cuts(
    text: &str,
    unit: &Range<usize>,
    hard: &[Range<usize>],
    soft: &[Range<usize>],
    grain: Grain,
) -> Vec<usize> {
    let mut cuts = vec![unit.start, unit.end];
    match grain {
        Grain::Unit => {}
        Grain::Clause => {
            let inside = |at: usize| hard.iter().chain(soft).any(|span| span.start < at && at < span.end);
            cuts.extend(clause_ends(text, unit).filter(|&at| !inside(at)));
        }
        Grain::Phrase => {
            let edges = hard.iter().chain(soft).map(|span| phrase(text, unit, span));
            cuts.extend(edges.flat_map(|span| [span.start, span.end]));
        }
        Grain::Exact => {
            let edges = hard.iter().cloned().chain(soft.iter().map(|span| widen(text, unit, span)));
            cuts.extend(edges.flat_map(|span| [span.start.max(unit.start), span.end.min(unit.end)]));
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Ends of clauses inside `unit`: after a comma, semicolon, colon, dash or line break, and not too close together.
fn clause_ends<'t>(text: &'t str, unit: &Range<usize>) -> impl Iterator<Item = usize> + use<'t> {
    let start = unit.start;
    let mut last = start;
    text[unit.clone()].char_indices().filter_map(move |(at, c)| {
        let end = start + at + c.len_utf8();
        let followed_by_space = || text[end..].starts_with(|next: char| next.is_whitespace());
        let ends = match c {
            '、' | '，' | '；' | '：' | '—' | '\n' => true,
            ',' | ';' | ':' | ')' | '|' => followed_by_space(),
            _ => false,
        };
        (ends && end - last >= SHORTEST_CLAUSE).then(|| {
            last = end;
            end
        })
    })
}

/// `span` extended to whole words.
fn widen(text: &str, unit: &Range<usize>, span: &Range<usize>) -> Range<usize> {
    let (from, to) = (span.start.max(unit.start), span.end.min(unit.end));
    let low = text.ceil_char_boundary(from.saturating_sub(WORD_MARGIN).max(unit.start));
    let high = text.floor_char_boundary((to + WORD_MARGIN).min(unit.end));
    let space = |c: char| c.is_whitespace();
    let start = text[low..from].rfind(space).map_or(from, |at| text.ceil_char_boundary(low + at + 1));
    let end = text[to..high].find(space).map_or(to, |at| to + at);
    start..end
}

/// `span` with the words around it.
fn phrase(text: &str, unit: &Range<usize>, span: &Range<usize>) -> Range<usize> {
    let (from, to) = (span.start.max(unit.start), span.end.min(unit.end));
    let low = text.ceil_char_boundary(from.saturating_sub(PHRASE_MARGIN).max(unit.start));
    let high = text.floor_char_boundary((to + PHRASE_MARGIN).min(unit.end));
    let space = |c: char| c.is_whitespace() || !c.is_ascii();
    let start = match text[low..from].find(space) {
        _ if low == unit.start => low,
        Some(at) => text.ceil_char_boundary(low + at + 1),
        None => from,
    };
    let end = if high == unit.end { high } else { text[to..high].rfind(space).map_or(to, |at| to + at) };
    start..end
}

/// Walks sorted spans and sorted units in parallel.
struct Cursor<'a, T> {
    items: &'a [T],
    at: usize,
}

impl<'a, T> Cursor<'a, T> {
    fn new(items: &'a [T]) -> Self {
        Self { items, at: 0 }
    }

    /// The spans that overlap `unit`; units must come in order. Spans are sorted by start and short, so a span that
    /// ends before the unit but follows a longer one is revisited a bounded number of times.
    fn overlapping(&mut self, unit: &Range<usize>, range: impl Fn(&T) -> Range<usize>) -> Vec<Range<usize>> {
        while self.items.get(self.at).is_some_and(|item| range(item).end <= unit.start) {
            self.at += 1;
        }
        self.items[self.at..]
            .iter()
            .map(range)
            .take_while(|span| span.start < unit.end)
            .filter(|span| overlaps(span, unit))
            .collect()
    }
}

/// Splits `range` into pieces of about equal size, at most `longest` bytes, cut after white space or punctuation if
/// possible.
pub(crate) fn split_long(text: &str, range: Range<usize>, longest: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    while range.end - start > longest {
        let rest = range.end - start;
        // Half-way between an equal share and the maximum, so that a slightly earlier cut needs no extra piece.
        let share = (rest.div_ceil(rest.div_ceil(longest)) + longest) / 2;
        let limit = text.floor_char_boundary(start + share);
        let floor = text.ceil_char_boundary(start + share / 2);
        let window = &text[floor..limit];
        let space = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '}' | ']' | '。' | '、' | '，');
        let found = window.char_indices().rev().find(|&(_, c)| space(c));
        let end = found.map_or(limit, |(at, c)| floor + at + c.len_utf8());
        parts.push(start..end);
        start = end;
    }
    parts.push(start..range.end);
    parts
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
