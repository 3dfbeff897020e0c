//! Chooses renditions for the parts of one slot: a multiple-choice knapsack, solved on each ladder's convex hull.
//!
//! Priorities are strict for whole parts: a tier that fits whole is whole before the next lower one receives anything.
//! One that must be condensed anyway leaves a share of the tokens to the tiers below, as far as they need it: the second
//! half of a long log is worth less than all that stands after it. Within a tier, the step with the best value per token
//! is taken first; ties go to the earlier part. Knows costs and values only, no texts.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use super::slot::Overflow;

/// With fewer tokens than this, a condensed rendition is not worth its header and markers.
pub(super) const MIN_CONDENSED: usize = 64;
/// The tier of protected parts, before every priority.
pub(super) const PROTECTED_TIER: u8 = 255;
/// A tier that is condensed leaves at most one part in this many of the tokens to the tiers below, and protected parts one
/// in eight.
const LEFT_BELOW: usize = 2;
const LEFT_BELOW_PROTECTED: usize = 8;
/// The value of a pointer as a share of the whole text: it shows that something exists and how to read it.
const POINTER_VALUE: f64 = 0.05;

/// The possible renditions of a part and their costs.
#[derive(Debug, Clone)]
pub(super) struct Ladder {
    /// Tokens of the whole part; `None` if it exceeds the budget of the call or its own maximum.
    pub whole: Option<usize>,
    /// The most tokens that it can take: its own maximum, or those of the whole part as far as known: exact, or an
    /// estimate if it exceeds the budget.
    pub size: usize,
    /// Tokens of the whole part, whatever it may take, and whether they were counted to the end.
    pub full: (usize, bool),
    /// Tokens of its pointer.
    pub pointer: usize,
    /// Tokens of its frame around any rendition.
    pub frame: usize,
    pub priority: u8,
    pub relevance: f64,
    pub summarizable: bool,
    /// The part enters only while more than this many tokens are left.
    pub min_remaining: usize,
}

/// The chosen rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Whole,
    /// Condensed or truncated to at most this many tokens, frame included.
    Condensed(usize),
    Pointer,
    Absent,
}

impl Ladder {
    /// The maximum cost of a choice.
    pub fn cost(&self, choice: Choice) -> usize {
        match choice {
            Choice::Whole => self.whole.unwrap_or(usize::MAX / 4),
            Choice::Condensed(target) => target,
            Choice::Pointer => self.pointer,
            Choice::Absent => 0,
        }
    }

    /// The smallest useful target for condensing, if condensing is allowed.
    pub fn least_condensed(&self, overflow: Overflow) -> Option<usize> {
        let least = MIN_CONDENSED + self.frame;
        let allowed = (overflow.condense || overflow.truncate) && self.summarizable;
        (allowed && self.size > least * 3 / 2).then_some(least)
    }

    pub fn can_point(&self, overflow: Overflow) -> bool {
        overflow.point && self.pointer < self.size / 2
    }

    /// Tokens of the cheapest rendition that is not absent.
    pub fn cheapest(&self, overflow: Overflow) -> usize {
        let pointer = if self.can_point(overflow) { self.pointer } else { usize::MAX };
        self.cost(Choice::Whole).min(pointer).min(self.least_condensed(overflow).unwrap_or(usize::MAX))
    }

    /// The cheapest rendition that is not absent.
    fn least(&self, overflow: Overflow) -> Choice {
        let rungs = self.rungs(overflow).map(|(choice, _)| choice).filter(|choice| *choice != Choice::Absent);
        rungs.min_by_key(|&choice| self.cost(choice)).unwrap_or(Choice::Absent)
    }

    /// The rungs from cheapest to most expensive, with their values.
    fn rungs(&self, overflow: Overflow) -> impl Iterator<Item = (Choice, f64)> + '_ {
        let pointer = self.can_point(overflow).then_some((Choice::Pointer, self.relevance * POINTER_VALUE));
        let halvings = self.least_condensed(overflow).map_or(0, |least| (self.size / least).ilog2());
        let condensed = (1..=halvings).rev().map(|halving| {
            let target = self.size >> halving;
            let kept = target as f64 / self.size as f64;
            (Choice::Condensed(target), self.relevance * kept.sqrt())
        });
        let capped = self.is_capped().then_some((Choice::Condensed(self.size), self.relevance));
        let whole = self.whole.map(|_| (Choice::Whole, self.relevance));
        std::iter::once((Choice::Absent, 0.0)).chain(pointer).chain(condensed).chain(capped).chain(whole)
    }

    /// Whether its own maximum is what keeps it from being whole.
    pub const fn is_capped(&self) -> bool {
        self.size < self.full.0
    }

    /// Appends the rungs on the upper convex hull: each step has a lower value per token than the one before.
    fn push_hull(&self, overflow: Overflow, rungs: &mut Vec<(Choice, f64)>) {
        let start = rungs.len();
        for (choice, value) in self.rungs(overflow) {
            let cost = self.cost(choice) as f64;
            while let [.., (last, last_value)] = rungs[start..] {
                let last_cost = self.cost(last) as f64;
                let dominated = last_cost >= cost && last_value <= value;
                let below = match rungs[start..] {
                    [.., (before, before_value), _] => {
                        let before_cost = self.cost(before) as f64;
                        dominated
                            || (last_value - before_value) * (cost - last_cost)
                                <= (value - last_value) * (last_cost - before_cost)
                    }
                    _ => false,
                };
                if !below {
                    break;
                }
                rungs.pop();
            }
            rungs.push((choice, value));
        }
    }
}

/// The hulls of a tier's members, one after another.
#[derive(Default)]
struct Hulls {
    rungs: Vec<(Choice, f64)>,
    starts: Vec<usize>,
}

impl Hulls {
    fn of<'l>(ladders: impl Iterator<Item = &'l Ladder>, overflow: Overflow) -> Self {
        let mut hulls = Self::default();
        for ladder in ladders {
            hulls.starts.push(hulls.rungs.len());
            ladder.push_hull(overflow, &mut hulls.rungs);
        }
        hulls.starts.push(hulls.rungs.len());
        hulls
    }

    fn hull(&self, member: usize) -> &[(Choice, f64)] {
        &self.rungs[self.starts[member]..self.starts[member + 1]]
    }
}

/// One step up a ladder, ordered by value per token, then by the part's place.
struct RungStep {
    gain: f64,
    part: usize,
    rung: usize,
}

impl PartialEq for RungStep {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for RungStep {}
impl PartialOrd for RungStep {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for RungStep {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.part.cmp(&self.part))
    }
}

/// A part that competes for its slot's tokens.
#[derive(Clone, Copy)]
pub(super) struct Competitor<'l> {
    pub ladder: &'l Ladder,
    /// Higher tiers are served first.
    pub tier: u8,
    /// Its pins are in every form but a pointer, so it takes one of these before others grow.
    pub pinned: bool,
}

/// Whether the parts cannot all be included, in any rendition.
pub(super) fn is_crowded(parts: &[Competitor<'_>], overflow: Overflow, budget: usize) -> bool {
    let cheapest = parts.iter().map(|part| part.ladder.cheapest(overflow));
    cheapest.fold(0, usize::saturating_add) > budget
}

/// Chooses a rung for each part so that the total cost stays within `budget`.
pub(super) fn choose(parts: &[Competitor<'_>], overflow: Overflow, budget: usize) -> Vec<Choice> {
    let everything = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.ladder.whole?));
    if everything.is_some_and(|sum| sum <= budget) {
        return vec![Choice::Whole; parts.len()];
    }
    let mut tiers: BTreeMap<Reverse<u8>, Vec<usize>> = BTreeMap::new();
    for (at, part) in parts.iter().enumerate() {
        tiers.entry(Reverse(part.tier)).or_default().push(at);
    }
    let mut choices = vec![Choice::Absent; parts.len()];
    let mut left = budget;
    // What must be there is there in its smallest form before anything is there in a larger one.
    let is_required = |part: &Competitor<'_>| part.pinned || !overflow.drop && part.ladder.min_remaining == 0;
    for (part, choice) in parts.iter().zip(&mut choices).filter(|(part, _)| is_required(part)) {
        let least = part.ladder.least(Overflow { point: overflow.point && !part.pinned, ..overflow });
        if let Some(rest) = left.checked_sub(part.ladder.cost(least)) {
            (*choice, left) = (least, rest);
        }
    }
    for (tier, members) in &tiers {
        let kept = left_below(parts, overflow, *tier, &choices, left);
        left -= kept;
        raise_tier(parts, overflow, members, &mut choices, &mut left);
        left += kept;
    }
    // What those below did not need after all.
    for members in tiers.values() {
        if left == 0 {
            break;
        }
        raise_tier(parts, overflow, members, &mut choices, &mut left);
    }
    choices
}

/// The tokens of `left` that a tier leaves to the tiers below: what it lacks to be whole, up to its share. A tier with pins
/// leaves none, since it may need all for them, nor does one whose parts are whole or absent, unless they are protected.
fn left_below(
    parts: &[Competitor<'_>],
    overflow: Overflow,
    Reverse(tier): Reverse<u8>,
    choices: &[Choice],
    left: usize,
) -> usize {
    let is_protected = tier == PROTECTED_TIER;
    let (mut own, mut required) = (0usize, 0usize);
    // What those below take, and what must be left for the most demanding of them to enter.
    let (mut below, mut entry) = (0usize, 0usize);
    for (part, &choice) in parts.iter().zip(choices) {
        let needed = part.ladder.size.saturating_sub(part.ladder.cost(choice));
        match part.tier.cmp(&tier) {
            Ordering::Less => {
                below = below.saturating_add(needed);
                entry = entry.max(part.ladder.min_remaining + 1);
            }
            Ordering::Equal
                if !is_protected && (part.pinned || part.ladder.least_condensed(overflow).is_none()) =>
            {
                return 0;
            }
            Ordering::Equal => {
                own = own.saturating_add(needed);
                required = required.max(part.ladder.min_remaining);
            }
            Ordering::Greater => {}
        }
    }
    let share = left / if is_protected { LEFT_BELOW_PROTECTED } else { LEFT_BELOW };
    // Each part of the tier still finds more tokens left than it requires.
    below.max(entry).min(share).min(own.saturating_sub(left)).min(left.saturating_sub(required + 1))
}

fn raise_tier(
    parts: &[Competitor<'_>],
    overflow: Overflow,
    members: &[usize],
    choices: &mut [Choice],
    left: &mut usize,
) {
    let ladders = || members.iter().map(|&part| parts[part].ladder);
    let whole = ladders().try_fold(0usize, |sum, ladder| sum.checked_add(ladder.whole?));
    let held =
        members.iter().map(|&part| parts[part].ladder.cost(choices[part])).fold(0, usize::saturating_add);
    // In whatever order the members enter, each finds more tokens left than it requires.
    let admits_all = |cost: usize| {
        ladders().all(|ladder| {
            let others = cost - ladder.whole.unwrap_or_default();
            ladder.min_remaining == 0 || (*left + held).saturating_sub(others) > ladder.min_remaining
        })
    };
    if let Some(cost) = whole.filter(|cost| *cost <= *left + held && admits_all(*cost)) {
        members.iter().for_each(|&part| choices[part] = Choice::Whole);
        *left = *left + held - cost;
        return;
    }
    if held == 0 && ladders().all(|ladder| ladder.cheapest(overflow) > *left) {
        return;
    }
    let hulls = Hulls::of(ladders(), overflow);
    let extra = |member: usize, from: Choice, to: Choice| {
        let ladder = parts[members[member]].ladder;
        ladder.cost(to).saturating_sub(ladder.cost(from))
    };
    let step = |member: usize, rung: usize| -> Option<RungStep> {
        let (to, value) = *hulls.hull(member).get(rung)?;
        let (from, from_value) = hulls.hull(member)[rung - 1];
        let cost = extra(member, from, to).max(1);
        Some(RungStep { gain: (value - from_value) / cost as f64, part: member, rung })
    };
    let least_step = (0..members.len())
        .flat_map(|member| hulls.hull(member).windows(2).map(move |rungs| (member, rungs[0].0, rungs[1].0)))
        .map(|(member, from, to)| extra(member, from, to))
        .min();
    let mut heap: BinaryHeap<RungStep> = (0..members.len()).filter_map(|member| step(member, 1)).collect();
    let mut skipped: Option<usize> = None;
    while let Some(RungStep { part: member, rung, .. }) = heap.pop() {
        let part = members[member];
        let (to, _) = hulls.hull(member)[rung];
        if choices[part] == Choice::Absent && *left <= parts[part].ladder.min_remaining {
            continue;
        }
        let cost = extra(member, choices[part], to);
        if choices[part] != Choice::Absent && cost == 0 {
            heap.extend(step(member, rung + 1));
            continue;
        }
        if cost > *left {
            skipped.get_or_insert(part);
            if least_step.is_some_and(|least| least > *left) {
                break;
            }
            continue;
        }
        choices[part] = to;
        *left -= cost;
        heap.extend(step(member, rung + 1));
    }
    let candidates = skipped.into_iter().chain(members.iter().copied());
    spend_rest(parts, overflow, candidates, choices, left);
}

/// Spends the rest on the first part that can be condensed to a larger target, adding pointers along the way.
fn spend_rest(
    parts: &[Competitor<'_>],
    overflow: Overflow,
    candidates: impl Iterator<Item = usize>,
    choices: &mut [Choice],
    left: &mut usize,
) {
    for part in candidates {
        if *left == 0 {
            return;
        }
        let ladder = parts[part].ladder;
        let now = ladder.cost(choices[part]);
        let shut = choices[part] == Choice::Absent && *left <= ladder.min_remaining;
        if shut || choices[part] == Choice::Whole {
            continue;
        }
        let target = (now + *left).min(ladder.size.saturating_sub(1));
        if ladder.least_condensed(overflow).is_some_and(|least| target >= least && target > now) {
            choices[part] = Choice::Condensed(target);
            *left -= target - now;
            return;
        }
        if choices[part] == Choice::Absent && ladder.can_point(overflow) && ladder.pointer <= *left {
            choices[part] = Choice::Pointer;
            *left -= ladder.pointer;
        }
    }
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
