//! Choosing renditions for the parts of one slot: a multiple-choice knapsack, solved on each ladder's convex hull.
//!
//! Priorities are strict: a tier is raised as far as it goes before the next lower one gets anything. Within a
//! tier the step with the best value per token is taken first; ties go to the earlier part. Knows costs and values
//! only, no texts.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use super::slot::Overflow;

/// Below this many tokens a condensed rendition says too little to be worth its header and marks.
pub(super) const MIN_CONDENSED: usize = 64;
/// A pointer tells that something is there and how to get it, which is worth this share of the whole text.
const POINTER_VALUE: f64 = 0.05;

/// What a part may become and at what price.
#[derive(Debug, Clone)]
pub(super) struct Ladder {
    /// Tokens of the whole part; `None` when it exceeds the budget of the call.
    pub whole: Option<usize>,
    /// Tokens of the whole part, as far as known: the count, or an estimate when it exceeds the budget.
    pub size: usize,
    /// Tokens of its pointer.
    pub pointer: usize,
    /// Tokens of its frame around any rendition.
    pub frame: usize,
    pub priority: u8,
    pub relevance: f64,
    pub summarizable: bool,
    /// Enters only while more than so many tokens are left.
    pub min_remaining: usize,
}

/// The chosen rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Whole,
    /// Condensed or truncated, to at most so many tokens with its frame.
    Condensed(usize),
    Pointer,
    Absent,
}

/// How firmly a message holds its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hold {
    /// May go.
    Free,
    /// Stays in some form.
    Firm,
    /// Stays whole.
    Critical,
}

impl Ladder {
    /// What a choice costs at most.
    pub fn cost(&self, choice: Choice) -> usize {
        match choice {
            Choice::Whole => self.whole.unwrap_or(usize::MAX / 4),
            Choice::Condensed(target) => target,
            Choice::Pointer => self.pointer,
            Choice::Absent => 0,
        }
    }

    /// The smallest target to which the part can usefully be condensed, where that is allowed.
    pub fn least_condensed(&self, overflow: Overflow) -> Option<usize> {
        let least = MIN_CONDENSED + self.frame;
        let allowed = (overflow.condense || overflow.truncate) && self.summarizable;
        (allowed && self.size > least * 3 / 2).then_some(least)
    }

    fn can_point(&self, overflow: Overflow) -> bool {
        overflow.point && self.pointer < self.size / 2
    }

    /// The rungs from cheap to dear, with their values.
    fn rungs(&self, overflow: Overflow) -> Vec<(Choice, f64)> {
        let mut rungs = vec![(Choice::Absent, 0.0)];
        if self.can_point(overflow) {
            rungs.push((Choice::Pointer, self.relevance * POINTER_VALUE));
        }
        if let Some(least) = self.least_condensed(overflow) {
            let mut targets = Vec::new();
            let mut target = self.size / 2;
            while target >= least {
                targets.push(target);
                target /= 2;
            }
            rungs.extend(targets.into_iter().rev().map(|target| {
                let kept = target as f64 / self.size as f64;
                (Choice::Condensed(target), self.relevance * kept.sqrt())
            }));
        }
        if self.whole.is_some() {
            rungs.push((Choice::Whole, self.relevance));
        }
        rungs
    }

    /// The rungs on the upper convex hull: each step is worth less per token than the one before.
    fn hull(&self, overflow: Overflow) -> Vec<(Choice, f64)> {
        let mut hull: Vec<(Choice, f64)> = Vec::new();
        for (choice, value) in self.rungs(overflow) {
            let cost = self.cost(choice) as f64;
            while let Some(&(last, last_value)) = hull.last() {
                let last_cost = self.cost(last) as f64;
                let dominated = last_cost >= cost && last_value <= value;
                let below = hull.len() > 1 && {
                    let (before, before_value) = hull[hull.len() - 2];
                    let before_cost = self.cost(before) as f64;
                    (last_value - before_value) * (cost - last_cost)
                        <= (value - last_value) * (last_cost - before_cost)
                };
                if !(dominated && hull.len() > 1 || below) {
                    break;
                }
                hull.pop();
            }
            hull.push((choice, value));
        }
        hull
    }
}

/// One step up a ladder, ordered by value per token, then by the part's place.
struct Step {
    gain: f64,
    part: usize,
    rung: usize,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Step {}
impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Step {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.part.cmp(&self.part))
    }
}

/// Chooses a rung for each part so that the costs stay within `budget`.
pub(super) fn choose(ladders: &[Ladder], overflow: Overflow, budget: usize) -> Vec<Choice> {
    let everything = ladders.iter().try_fold(0usize, |sum, ladder| sum.checked_add(ladder.whole?));
    if everything.is_some_and(|sum| sum <= budget) {
        return vec![Choice::Whole; ladders.len()];
    }
    let mut tiers: Vec<u8> = ladders.iter().map(|ladder| ladder.priority).collect();
    tiers.sort_unstable_by(|a, b| b.cmp(a));
    tiers.dedup();
    let mut choices = vec![Choice::Absent; ladders.len()];
    let mut left = budget;
    for tier in tiers {
        raise_tier(ladders, overflow, tier, &mut choices, &mut left);
    }
    choices
}

fn raise_tier(ladders: &[Ladder], overflow: Overflow, tier: u8, choices: &mut [Choice], left: &mut usize) {
    let members: Vec<usize> = (0..ladders.len()).filter(|&part| ladders[part].priority == tier).collect();
    let tier_whole = members.iter().try_fold(0usize, |sum, &part| sum.checked_add(ladders[part].whole?));
    if let Some(cost) = tier_whole.filter(|cost| cost <= left) {
        members.iter().for_each(|&part| choices[part] = Choice::Whole);
        *left -= cost;
        return;
    }
    let hulls: Vec<Vec<(Choice, f64)>> = members.iter().map(|&part| ladders[part].hull(overflow)).collect();
    let step = |member: usize, rung: usize| -> Option<Step> {
        let (to, value) = *hulls[member].get(rung)?;
        let (from, from_value) = hulls[member][rung - 1];
        let ladder = &ladders[members[member]];
        let cost = ladder.cost(to).saturating_sub(ladder.cost(from)).max(1);
        Some(Step { gain: (value - from_value) / cost as f64, part: member, rung })
    };
    let mut heap: BinaryHeap<Step> = (0..members.len()).filter_map(|member| step(member, 1)).collect();
    let mut skipped: Option<usize> = None;
    while let Some(Step { part: member, rung, .. }) = heap.pop() {
        let part = members[member];
        let (to, _) = hulls[member][rung];
        let extra = ladders[part].cost(to).saturating_sub(ladders[part].cost(choices[part]));
        if choices[part] == Choice::Absent && *left <= ladders[part].min_remaining {
            continue;
        }
        if extra > *left {
            skipped.get_or_insert(part);
            continue;
        }
        choices[part] = to;
        *left -= extra;
        heap.extend(step(member, rung + 1));
    }
    let candidates = skipped.into_iter().chain(members.iter().copied());
    spend_rest(ladders, overflow, candidates, choices, left);
}

/// Gives what is left to the first part that can be condensed to a larger target, and to pointers on the way.
fn spend_rest(
    ladders: &[Ladder],
    overflow: Overflow,
    candidates: impl Iterator<Item = usize>,
    choices: &mut [Choice],
    left: &mut usize,
) {
    for part in candidates {
        let ladder = &ladders[part];
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

/// Chooses for a slot of messages: everything gets its floor newest first, then messages are raised by priority,
/// newest first. Members of one group are all there or all absent.
pub(super) fn choose_messages(
    ladders: &[Ladder],
    groups: &[usize],
    hold: &[Hold],
    overflow: Overflow,
    budget: usize,
) -> Vec<Choice> {
    let mut choices = vec![Choice::Absent; ladders.len()];
    let mut left = budget;
    let floor = |part: usize| {
        let ladder = &ladders[part];
        let gives = hold[part] != Hold::Critical && ladder.can_point(overflow) && ladder.summarizable;
        if gives { Choice::Pointer } else { Choice::Whole }
    };
    let mut order: Vec<usize> = (0..ladders.len()).collect();
    order.sort_by_key(|&part| (Reverse(hold[part]), Reverse(part)));
    let mut members_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (part, &group) in groups.iter().enumerate() {
        members_of.entry(group).or_default().push(part);
    }
    let mut room = true;
    for &part in &order {
        let Some(members) = members_of.remove(&groups[part]) else { continue };
        let cost =
            members.iter().map(|&member| ladders[member].cost(floor(member))).fold(0, usize::saturating_add);
        let must = members.iter().any(|&member| hold[member] != Hold::Free);
        if must || (room && cost <= left) {
            members.iter().for_each(|&member| choices[member] = floor(member));
            left = left.saturating_sub(cost);
        } else {
            // The oldest go first: nothing older than a dropped message stays.
            room = false;
        }
    }
    order.sort_by_key(|&part| (Reverse(hold[part]), Reverse(ladders[part].priority), Reverse(part)));
    for part in order {
        let ladder = &ladders[part];
        if choices[part] != Choice::Pointer {
            continue;
        }
        let now = ladder.pointer;
        let most = now + left;
        let choice = match ladder.whole {
            Some(whole) if whole <= most => Choice::Whole,
            _ => match ladder.least_condensed(overflow) {
                Some(least) if least <= most => Choice::Condensed(most.min(ladder.size.saturating_sub(1))),
                _ => continue,
            },
        };
        left -= ladder.cost(choice).saturating_sub(now).min(left);
        choices[part] = choice;
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(size: usize, priority: u8) -> Ladder {
        Ladder {
            whole: Some(size),
            size,
            pointer: 30,
            frame: 0,
            priority,
            relevance: 1.0,
            summarizable: true,
            min_remaining: 0,
        }
    }

    fn total(ladders: &[Ladder], choices: &[Choice]) -> usize {
        ladders.iter().zip(choices).map(|(ladder, &choice)| ladder.cost(choice)).sum()
    }

    #[test]
    fn everything_whole_when_it_fits() {
        let ladders = [ladder(10, 1), ladder(20, 2)];
        assert_eq!(choose(&ladders, Overflow::LADDER, 30), [Choice::Whole; 2]);
    }

    #[test]
    fn the_lowest_priority_loses_first() {
        let ladders = [ladder(1000, 1), ladder(1000, 2)];
        let choices = choose(&ladders, Overflow::LADDER, 1500);
        assert_eq!(choices, [Choice::Condensed(500), Choice::Whole]);
        let choices = choose(&ladders, Overflow::LADDER, 1040);
        assert_eq!(choices, [Choice::Pointer, Choice::Whole]);
    }

    #[test]
    fn equal_parts_share_what_there_is() {
        let ladders = vec![ladder(1000, 1); 4];
        let choices = choose(&ladders, Overflow::LADDER, 2000);
        assert!(total(&ladders, &choices) <= 2000);
        assert!(choices.iter().all(|choice| matches!(choice, Choice::Condensed(target) if *target >= 250)));
    }

    #[test]
    fn without_a_ladder_parts_are_whole_or_absent() {
        let ladders = vec![ladder(20, 1); 100];
        let choices = choose(&ladders, Overflow::DROP, 210);
        assert_eq!(choices.iter().filter(|&&choice| choice == Choice::Whole).count(), 10);
        assert_eq!(choices[..10], [Choice::Whole; 10]);
    }

    #[test]
    fn messages_keep_the_newest_and_whole_groups() {
        let ladders = vec![ladder(100, 1); 6];
        let groups = [0, 1, 1, 3, 4, 4];
        let hold = [Hold::Free; 6];
        let choices = choose_messages(&ladders, &groups, &hold, Overflow::DROP, 330);
        assert_eq!(
            choices,
            [Choice::Absent, Choice::Absent, Choice::Absent, Choice::Whole, Choice::Whole, Choice::Whole]
        );
    }
}
