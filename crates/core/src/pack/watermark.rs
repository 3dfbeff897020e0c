//! Messages whose decisions stay: a pure function of the history, so that every replica, before and after a restart,
//! sends the same bytes.
//!
//! Messages are taken in one by one. Each is decided when it enters; nothing is decided again until a watermark is
//! crossed. Then the messages so far come down to a low watermark, and a new epoch begins. Knows costs and choices;
//! what a message becomes is made by its [`Entries`].

use std::borrow::Cow;

use super::choose::{Choice, Ladder};
use super::choose_messages::{Hold, choose_messages};
use super::receipt::Epoch;
use super::slot::{Overflow, Slot};

/// After an epoch that did not pay, the next is looked at when the messages cost this share more.
const GROWTH: f64 = 0.1;

/// The messages that are decided.
pub(super) trait Entries {
    /// Decides message `index`, which enters after all before it; gives what it costs.
    fn enter(&mut self, index: usize) -> (Choice, usize);
    /// What the first `count` messages may become in an epoch. The top rung is the form in which a message enters.
    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]>;
    /// Makes what an epoch chose for the messages so far; gives what each costs.
    fn redecide(&mut self, choices: &[Choice]) -> Vec<usize>;
    /// Whether an epoch that need not be is worth its price.
    fn pays(&self, _saving: &Saving) -> bool {
        true
    }
}

/// What an epoch would bring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saving {
    /// Messages so far.
    pub at_message: usize,
    /// Tokens that every later request would be smaller by.
    pub saved: usize,
    /// Tokens behind the first change, which providers would have to read anew.
    pub moved: usize,
}

/// How the messages hang together.
pub(super) struct Ties<'a> {
    /// Messages with the same number are left out together or not at all.
    pub groups: &'a [usize],
    /// `settled[i]`: no call waits for its result after message `i`. An epoch begins only there, so that a pair is
    /// never decided in halves.
    pub settled: &'a [bool],
    pub hold: &'a [Hold],
    /// Newest messages that are spared.
    pub protect_last: usize,
}

/// When an epoch begins, and what it comes down to.
pub(super) struct Marks {
    /// When messages that stand whatever is done take more tokens than this, nothing is sent, so nothing is decided
    /// again before the last message.
    pub lost: usize,
    /// Above the first number an epoch begins if it pays; it comes down to the second.
    pub soft: Option<(usize, usize)>,
    /// Above so many tokens an epoch must begin.
    pub hard: usize,
    /// What such an epoch comes down to.
    pub low: usize,
    /// Messages are left out only where the other means do not come down to this; where it is `None`, from the start.
    pub drop_above: Option<usize>,
    pub overflow: Overflow,
}

/// What became of the messages.
pub(super) struct Decided {
    pub choices: Vec<Choice>,
    pub costs: Vec<usize>,
    /// The epoch in which each was decided.
    pub since: Vec<usize>,
    pub epoch: Epoch,
}

/// Decides all messages, the oldest first.
pub(super) fn decide(ties: &Ties<'_>, marks: &Marks, entries: &mut impl Entries) -> Decided {
    let count = ties.groups.len();
    let mut so_far = Decided {
        choices: Vec::with_capacity(count),
        costs: Vec::with_capacity(count),
        since: Vec::with_capacity(count),
        epoch: Epoch { number: 0, at_message: 0, from_message: 0, moved_prefix: false },
    };
    let (mut used, mut fixed) = (0usize, 0usize);
    let soft = marks.soft.map_or(usize::MAX, |(high, _)| high);
    let mut trigger = soft;
    for index in 0..count {
        let (choice, cost) = entries.enter(index);
        so_far.choices.push(choice);
        so_far.costs.push(cost);
        so_far.since.push(so_far.epoch.number);
        used = used.saturating_add(cost);
        if ties.hold[index] == Hold::Critical {
            fixed = fixed.saturating_add(cost);
        }
        let last = index + 1 == count;
        let must = used > marks.hard;
        let waits = fixed > marks.lost && !last;
        if waits || !(must || used > trigger) || !(ties.settled[index] || last && must) {
            continue;
        }
        match choose(ties, marks, entries, &so_far, must) {
            Some(choices) => {
                so_far.begin(choices, entries);
                used = sum(&so_far.costs);
                so_far.epoch.moved_prefix = last;
                trigger = if used < soft { soft } else { grown(used) };
            }
            None => trigger = grown(used),
        }
    }
    so_far
}

impl Decided {
    fn begin(&mut self, choices: Vec<Choice>, entries: &mut impl Entries) {
        let changed = |&at: &usize| choices[at] != self.choices[at];
        let moved: Vec<usize> = (0..choices.len()).filter(changed).collect();
        let number = self.epoch.number + 1;
        moved.iter().for_each(|&at| self.since[at] = number);
        self.costs = entries.redecide(&choices);
        self.epoch.number = number;
        self.epoch.at_message = choices.len();
        self.epoch.from_message = moved.first().copied().unwrap_or(choices.len());
        self.choices = choices;
    }
}

/// What the messages so far become in a new epoch; none if it would change nothing or would not pay.
fn choose(
    ties: &Ties<'_>,
    marks: &Marks,
    entries: &impl Entries,
    so_far: &Decided,
    must: bool,
) -> Option<Vec<Choice>> {
    let count = so_far.choices.len();
    let ladders = entries.ladders(count);
    let groups = &ties.groups[..count];
    let tail = match ties.protect_last {
        0 => count,
        // Results of the same calls are spared together.
        last => count.saturating_sub(last).min(groups.last().copied().unwrap_or(0)),
    };
    let chosen = |least: Hold, spared: Hold, budget: usize| {
        let hold = |at: usize| ties.hold[at].max(if at >= tail { spared } else { least });
        let held: Vec<Hold> = (0..count).map(hold).collect();
        choose_messages(&ladders, groups, &held, marks.overflow, budget)
    };
    let bound = |choices: &[Choice]| {
        choices
            .iter()
            .zip(ladders.iter())
            .map(|(&choice, ladder)| ladder.cost(choice))
            .fold(0, usize::saturating_add)
    };
    if must {
        let Some(most) = marks.drop_above else { return Some(chosen(Hold::Free, Hold::Firm, marks.low)) };
        let all_there = chosen(Hold::Firm, Hold::Firm, marks.low);
        return Some(if bound(&all_there) <= most {
            all_there
        } else {
            chosen(Hold::Free, Hold::Firm, most)
        });
    }
    let choices = chosen(Hold::Firm, Hold::Critical, marks.soft?.1);
    let first = (0..count).find(|&at| choices[at] != so_far.choices[at])?;
    let cost = |at: usize| {
        if choices[at] == so_far.choices[at] { so_far.costs[at] } else { ladders[at].cost(choices[at]) }
    };
    let after: usize = (0..count).map(cost).fold(0, usize::saturating_add);
    let saving = Saving {
        at_message: count,
        saved: sum(&so_far.costs).saturating_sub(after),
        moved: (first..count).map(cost).fold(0, usize::saturating_add),
    };
    entries.pays(&saving).then_some(choices)
}

fn sum(costs: &[usize]) -> usize {
    costs.iter().copied().fold(0, usize::saturating_add)
}

fn grown(used: usize) -> usize {
    (used as f64 * (1.0 + GROWTH)) as usize
}

/// The parts of a slot, whose costs are known before they are made.
pub(super) struct Measured<'a> {
    pub slot: &'a Slot,
    pub ladders: &'a [Ladder],
    pub hold: &'a [Hold],
}

impl Entries for Measured<'_> {
    fn enter(&mut self, index: usize) -> (Choice, usize) {
        let ladder = &self.ladders[index];
        let choice = match self.slot.entry_cap {
            Some(cap) if ladder.size > cap && self.hold[index] != Hold::Critical => {
                match ladder.least_condensed(self.slot.overflow) {
                    Some(least) if least <= cap => Choice::Condensed(cap),
                    _ if self.slot.overflow.point && ladder.summarizable => Choice::Pointer,
                    _ => Choice::Whole,
                }
            }
            _ => Choice::Whole,
        };
        (choice, ladder.cost(choice))
    }

    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]> {
        Cow::Borrowed(&self.ladders[..count])
    }

    fn redecide(&mut self, choices: &[Choice]) -> Vec<usize> {
        choices.iter().zip(self.ladders).map(|(&choice, ladder)| ladder.cost(choice)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that cost ten tokens each; counts how often all of them are decided.
    struct Counting {
        decided: usize,
    }

    impl Entries for Counting {
        fn enter(&mut self, _: usize) -> (Choice, usize) {
            (Choice::Whole, 10)
        }

        fn ladders(&self, count: usize) -> Cow<'_, [Ladder]> {
            let ladder = Ladder {
                whole: Some(10),
                size: 10,
                pointer: 5,
                frame: 0,
                priority: 50,
                relevance: 1.0,
                summarizable: true,
                min_remaining: 0,
            };
            Cow::Owned(vec![ladder; count])
        }

        fn redecide(&mut self, choices: &[Choice]) -> Vec<usize> {
            self.decided += 1;
            vec![10; choices.len()]
        }
    }

    #[test]
    fn what_is_refused_anyway_is_decided_once() {
        let count = 400;
        let groups: Vec<usize> = (0..count).collect();
        let hold = vec![Hold::Critical; count];
        let ties = Ties { groups: &groups, settled: &vec![true; count], hold: &hold, protect_last: 0 };
        let marks = |lost| Marks {
            lost,
            soft: None,
            hard: 100,
            low: 60,
            drop_above: None,
            overflow: Overflow::LADDER,
        };
        let mut entries = Counting { decided: 0 };
        decide(&ties, &marks(100), &mut entries);
        assert_eq!(entries.decided, 1);
        // Where the messages may still come to fit, each new one is a reason to look again.
        let mut entries = Counting { decided: 0 };
        decide(&ties, &marks(usize::MAX), &mut entries);
        assert_eq!(entries.decided, count - 10);
    }
}
