//! Chooses the pieces to show: the best set within the target, taken greedily by value per token.
//!
//! Knows pieces, scores and token costs; does not know how a content type is divided or how a result is checked. A
//! piece's value falls as its words are shown elsewhere, and its cost includes markers: a piece next to shown text
//! needs none, and one between two shown ranges saves one. Passages therefore grow together.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use hashbrown::HashSet;

use crate::analysis::relevance::{Scores, ShownWords};
use crate::analysis::salience::{SalientSpan, SpanKind};
use crate::engine::job::Job;
use crate::engine::render::Renderer;
use crate::engine::units::{TextPiece, Tier};
use crate::explanation::UnitScore;

/// Relevance to the query outweighs every other property of a plain piece.
const QUERY_WEIGHT: f32 = 12.0;
/// The value of a salient span of weight 1, in bytes of average text.
const SPAN_WEIGHT: f32 = 40.0;
/// How many times its token cost a marker counts, for its cost to the reader.
const COHERENCE: f32 = 3.0;
/// From this relevance on, a piece competes with those that have salient spans.
const ANSWERS: f32 = 0.5;
/// The weight of a date or a quantity.
const MIN_WEIGHT: f32 = 1.0;
/// After this many consecutive pieces that do not fit, only filling remains.
const MAX_MISSES: usize = 64;
/// A cached score is used if it has lost less than this share since.
const CLOSE_ENOUGH: f32 = 0.9;

/// A hidden piece and its current value; the highest is taken next.
#[derive(Debug, PartialEq)]
pub(crate) struct PieceCandidate {
    tier: Tier,
    rank: f32,
    pub(crate) piece: usize,
}

impl Eq for PieceCandidate {}

impl Ord for PieceCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_tier = other.tier.cmp(&self.tier);
        by_tier.then(self.rank.total_cmp(&other.rank)).then(other.piece.cmp(&self.piece))
    }
}

impl PartialOrd for PieceCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The pieces of one text, with those shown marked.
pub(crate) struct PieceSelection<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) pieces: &'a [TextPiece],
    scores: &'a Scores,
    renderer: &'a Renderer<'a>,
    weights: Vec<f32>,
    /// The weight of the heaviest salient span in each piece.
    heaviest: Vec<f32>,
    /// Which pieces with error lines precede even the answers.
    failures: Vec<bool>,
    /// Whether there is a query.
    asked: bool,
    /// Not all salient spans fit, so answers to the query compete with them.
    crowded: bool,
    pub(crate) shown: Vec<bool>,
    /// Ends of partially shown pieces.
    pub(crate) partial: BTreeMap<usize, usize>,
    said: ShownWords,
    costs: Vec<Option<usize>>,
    pub(crate) mark: usize,
    /// Estimated tokens shown so far, header and markers included.
    spent: usize,
    /// What each step showed, for undoing.
    steps: Vec<(Vec<usize>, usize)>,
}

impl<'a> PieceSelection<'a> {
    /// Creates a selection that shows only what is required.
    pub(crate) fn new(
        job: &'a Job<'a>,
        pieces: &'a [TextPiece],
        scores: &'a Scores,
        renderer: &'a Renderer<'a>,
        salient: &[&SalientSpan],
    ) -> Self {
        let counter = job.request.counter;
        let mark = counter.count(&renderer.sample_mark());
        let (weights, heaviest) = span_weights(pieces, salient);
        let mut selection = Self {
            job,
            pieces,
            scores,
            renderer,
            weights,
            heaviest,
            failures: vec![false; pieces.len()],
            asked: job.request.query.is_some(),
            crowded: false,
            shown: vec![false; pieces.len()],
            partial: BTreeMap::new(),
            said: ShownWords::nothing(),
            costs: vec![None; pieces.len()],
            mark,
            spent: counter.count(&renderer.header()) + mark,
            steps: Vec::new(),
        };
        for (index, piece) in pieces.iter().enumerate() {
            if piece.tier == Tier::Required && !selection.shown[index] {
                selection.show(index);
            }
        }
        selection.steps.clear();
        selection
    }

    /// Lets answers to the query compete with salient spans, because not all of these fit. The best error lines that
    /// take at most `room` tokens precede both, whatever the query is.
    pub(crate) fn crowd(&mut self, mut room: usize) {
        self.crowded = true;
        let failed = |&piece: &usize| self.heaviest[piece] >= SpanKind::Error.weight();
        let mut errors: Vec<_> =
            (0..self.pieces.len()).filter(failed).map(|piece| self.candidate(piece)).collect();
        errors.sort_by(|a, b| b.cmp(a));
        for PieceCandidate { piece, .. } in errors.into_iter().take(MAX_MISSES) {
            if let Some(left) = room.checked_sub(self.cost(piece) + self.mark) {
                room = left;
                self.failures[piece] = true;
            }
        }
    }

    /// The ranges shown, settled for rendering.
    pub(crate) fn ranges(&self) -> Vec<Range<usize>> {
        let shown =
            self.pieces.iter().enumerate().filter_map(|(index, piece)| match self.partial.get(&index) {
                _ if self.shown[index] => Some(piece.range.clone()),
                Some(&end) => Some(piece.range.start..end),
                None => None,
            });
        self.renderer.settle(shown)
    }

    /// The exact token count of the current selection.
    pub(crate) fn tokens(&self) -> usize {
        self.job.request.counter.count(&self.renderer.text(&self.ranges()))
    }

    /// Estimated tokens if everything up to `tier` is shown; `None` once they exceed the target.
    pub(crate) fn tokens_for_all(&mut self, tier: Tier) -> Option<usize> {
        let mut needed = self.spent;
        let mut shown = self.shown.clone();
        for piece in 0..self.pieces.len() {
            if self.pieces[piece].tier <= tier && !shown[piece] {
                for member in self.with_needs(piece) {
                    if !std::mem::replace(&mut shown[member], true) {
                        needed += self.cost(member);
                    }
                }
            }
            if needed > self.job.request.target {
                return None;
            }
        }
        let stretches = |shown: &[bool]| shown.windows(2).filter(|pair| pair[0] && !pair[1]).count();
        needed += (stretches(&shown).saturating_sub(stretches(&self.shown))) * self.mark;
        Some(needed).filter(|&needed| needed <= self.job.request.target)
    }

    /// Whether everything up to `tier` is shown.
    pub(crate) fn shows_all(&self, tier: Tier) -> bool {
        self.pieces.iter().zip(&self.shown).all(|(piece, &shown)| shown || piece.tier > tier)
    }

    /// Replaces the estimated size with the exact count.
    pub(crate) fn set_spent(&mut self, tokens: usize) {
        self.spent = tokens;
    }

    /// Adds the best pieces until no other fits; returns whether it added any.
    pub(crate) fn choose(&mut self) -> bool {
        let steps = self.steps.len();
        let hidden = (0..self.pieces.len()).filter(|&piece| self.may_show(piece));
        let mut heap: BinaryHeap<PieceCandidate> = hidden.map(|piece| self.candidate(piece)).collect();
        let mut misses = 0;
        while let Some(best) = heap.pop() {
            if self.shown[best.piece] {
                continue;
            }
            let now = self.candidate(best.piece);
            let faded = now.tier > best.tier || now.rank < best.rank * CLOSE_ENOUGH;
            if faded && heap.peek().is_some_and(|next| *next > now) {
                heap.push(now);
            } else if self.fits(best.piece) {
                misses = 0;
                for piece in self.show(best.piece) {
                    let beside =
                        [piece.checked_sub(1), Some(piece + 1).filter(|&next| next < self.pieces.len())];
                    let hidden = beside.into_iter().flatten().filter(|&next| self.may_show(next));
                    heap.extend(hidden.map(|next| self.candidate(next)));
                }
            } else {
                misses += 1;
                if misses > MAX_MISSES {
                    break;
                }
            }
        }
        self.steps.len() > steps
    }

    /// Undoes the last steps until about `tokens` are free; false if there is nothing to undo.
    pub(crate) fn take_back(&mut self, tokens: usize) -> bool {
        let goal = self.spent.saturating_sub(tokens);
        let mut any = false;
        while self.spent > goal || !any {
            let Some((pieces, before)) = self.steps.pop() else { break };
            pieces.iter().for_each(|&piece| self.shown[piece] = false);
            self.spent = before;
            any = true;
        }
        any
    }

    /// A piece with its current value.
    pub(crate) fn candidate(&self, index: usize) -> PieceCandidate {
        let piece = &self.pieces[index];
        let score = self.score(index);
        let rank = match piece.tier {
            Tier::Required | Tier::First => self.pieces.len() as f32 - index as f32,
            _ => score.rank,
        };
        let answers = score.relevance >= ANSWERS;
        let tier = match piece.tier {
            Tier::Plain | Tier::Last if self.crowded && answers => Tier::Salient,
            Tier::Salient if self.failures[index] => Tier::Error,
            // Dates and quantities are everywhere: with a query they are no reason to keep a piece.
            Tier::Salient if self.crowded && self.asked && self.heaviest[index] <= MIN_WEIGHT && !answers => {
                Tier::Plain
            }
            tier => tier,
        };
        PieceCandidate { tier, rank, piece: index }
    }

    /// The components of a piece's value.
    pub(crate) fn score(&self, index: usize) -> UnitScore {
        let piece = &self.pieces[index];
        let bytes = piece.range.len() as f32;
        let relevance = self.scores.relevance[piece.unit];
        let novelty = self.scores.gain(piece.unit, &self.said);
        // The markers that this piece would add or save, in bytes of text of the same cost.
        let marks =
            COHERENCE * self.marks_delta(index) as f32 * self.mark as f32 / self.job.tokens_per_byte();
        let spans = self.weights[index] / bytes * SPAN_WEIGHT;
        let value = piece.prior * (novelty + spans) + QUERY_WEIGHT * relevance;
        let rank = value * bytes / (bytes + marks).max(1.0);
        UnitScore { relevance, novelty, weight: piece.prior, rank }
    }

    /// Whether a piece is hidden and may be shown.
    pub(crate) fn may_show(&self, piece: usize) -> bool {
        !self.shown[piece] && self.pieces[piece].tier != Tier::Never
    }

    fn is_hidden(&self, piece: Option<usize>) -> bool {
        piece.is_some_and(|piece| self.shown.get(piece) == Some(&false))
    }

    fn marks_delta(&self, piece: usize) -> isize {
        let before = self.is_hidden(piece.checked_sub(1));
        let after = self.is_hidden(Some(piece + 1));
        isize::from(before) + isize::from(after) - 1
    }

    fn cost(&mut self, piece: usize) -> usize {
        if let Some(cost) = self.costs[piece] {
            return cost;
        }
        let cost = self.job.request.counter.count(&self.job.request.text[self.pieces[piece].range.clone()]);
        self.costs[piece] = Some(cost);
        cost
    }

    /// The piece and all hidden pieces it needs.
    fn with_needs(&self, piece: usize) -> Vec<usize> {
        let mut all = vec![piece];
        let mut seen: HashSet<usize> = HashSet::from_iter([piece]);
        let mut next = 0;
        while let Some(&member) = all.get(next) {
            for need in self.pieces[member].needs.into_iter().flatten() {
                if !self.shown[need] && seen.insert(need) {
                    all.push(need);
                }
            }
            next += 1;
        }
        all
    }

    fn fits(&mut self, piece: usize) -> bool {
        let members = self.with_needs(piece);
        let text: usize = members.iter().map(|&member| self.cost(member)).sum();
        let more = members.len() as isize - 1;
        let marks = (self.marks_delta(piece) + more) * self.mark as isize;
        (self.spent + text).saturating_add_signed(marks) <= self.job.request.target
    }

    fn show(&mut self, piece: usize) -> Vec<usize> {
        let before = self.spent;
        let members = self.with_needs(piece);
        for &member in &members {
            let marks = self.marks_delta(member) * self.mark as isize;
            self.spent = (self.spent + self.cost(member)).saturating_add_signed(marks);
            self.shown[member] = true;
            self.said.add(self.pieces[member].unit, self.scores);
        }
        self.steps.push((members.clone(), before));
        members
    }
}

/// The total weight of the salient spans in each piece, and that of the heaviest.
fn span_weights(pieces: &[TextPiece], salient: &[&SalientSpan]) -> (Vec<f32>, Vec<f32>) {
    let (mut weights, mut heaviest) = (vec![0.0; pieces.len()], vec![0.0_f32; pieces.len()]);
    for span in salient {
        let at = pieces.partition_point(|piece| piece.range.end <= span.range.start);
        if let Some(weight) = weights.get_mut(at) {
            *weight += span.kind.weight();
            heaviest[at] = heaviest[at].max(span.kind.weight());
        }
    }
    (weights, heaviest)
}
