//! Messages whose decisions persist: a pure function of the history, so that every replica, before and after a restart,
//! sends the same bytes.
//!
//! Messages enter one by one. Each is decided when it enters; nothing is decided again until a watermark is crossed.
//! Then the messages so far are reduced to a low watermark, and a new epoch begins. Knows costs and choices; the
//! [`Messages`] implementor renders them.

use std::borrow::Cow;

use super::choose::{Choice, Ladder};
use super::choose_messages::{Presence, choose_messages};
use super::receipt::Epoch;
use super::slot::{Overflow, Slot};

/// After an epoch was rejected as too expensive, the next is considered once the messages have grown by this share.
const GROWTH: f64 = 0.1;

/// The messages to decide.
pub(super) trait Messages {
    /// Decides message `index` as it enters, after all before it, and returns its tokens.
    fn enter(&mut self, index: usize) -> (Choice, usize);
    /// The ladders of the first `count` messages. The top rung is the rendition in which a message enters.
    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]>;
    /// Renders what an epoch chose for the messages so far and returns the tokens of each.
    fn redecide(&mut self, choices: &[Choice]) -> Vec<usize>;
    /// Whether an optional epoch saves more than it costs.
    fn pays(&self, _saving: &Saving) -> bool {
        true
    }
}

/// The effect of an epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saving {
    /// Messages so far.
    pub at_message: usize,
    /// Tokens that each later request saves.
    pub saved: usize,
    /// Tokens behind the first change: the provider's cache for them is refused_above.
    pub moved: usize,
}

/// Which messages are decided together.
pub(super) struct CallGroups<'a> {
    /// Messages with the same number are left out together or not at all.
    pub group_of: &'a [usize],
    /// `settled[i]`: no call waits for its result after message `i`. An epoch begins only there, so that a pair is
    /// never decided in halves.
    pub settled: &'a [bool],
    pub presence: &'a [Presence],
    /// Newest messages that an epoch spares.
    pub protect_last: usize,
}

/// When an epoch begins and how far it reduces the messages, in tokens.
pub(super) struct Watermarks {
    /// If the messages that must stay whole take more than this, the request is refused, so nothing is decided again
    /// before the last message.
    pub refused_above: usize,
    /// Above the first number an epoch begins if it pays; it reduces the messages to the second.
    pub soft: Option<(usize, usize)>,
    /// Above this an epoch must begin.
    pub hard: usize,
    /// What a forced epoch reduces the messages to.
    pub low: usize,
    /// Messages are left out only if condensing and pointers do not get below this; with `None`, right away.
    pub drop_above: Option<usize>,
    pub overflow: Overflow,
}

/// What became of the messages.
pub(super) struct Decisions {
    pub choices: Vec<Choice>,
    pub costs: Vec<usize>,
    /// The epoch in which each was decided.
    pub since: Vec<usize>,
    pub epoch: Epoch,
}

/// Decides all messages, the oldest first.
pub(super) fn decide(groups: &CallGroups<'_>, marks: &Watermarks, messages: &mut impl Messages) -> Decisions {
    let count = groups.group_of.len();
    let mut so_far = Decisions {
        choices: Vec::with_capacity(count),
        costs: Vec::with_capacity(count),
        since: Vec::with_capacity(count),
        epoch: Epoch { number: 0, at_message: 0, from_message: 0, moved_prefix: false },
    };
    let (mut used, mut fixed) = (0usize, 0usize);
    let soft = marks.soft.map_or(usize::MAX, |(high, _)| high);
    let mut trigger = soft;
    for index in 0..count {
        let (choice, cost) = messages.enter(index);
        so_far.choices.push(choice);
        so_far.costs.push(cost);
        so_far.since.push(so_far.epoch.number);
        used = used.saturating_add(cost);
        if groups.presence[index] == Presence::Whole {
            fixed = fixed.saturating_add(cost);
        }
        let last = index + 1 == count;
        let must = used > marks.hard;
        let waits = fixed > marks.refused_above && !last;
        if waits || !(must || used > trigger) || !(groups.settled[index] || last && must) {
            continue;
        }
        match choose(groups, marks, messages, &so_far, must) {
            Some(choices) => {
                so_far.begin(choices, messages);
                used = sum(&so_far.costs);
                so_far.epoch.moved_prefix = last;
                trigger = if used < soft { soft } else { grown(used) };
            }
            None => trigger = grown(used),
        }
    }
    so_far
}

impl Decisions {
    fn begin(&mut self, choices: Vec<Choice>, messages: &mut impl Messages) {
        let changed = |&at: &usize| choices[at] != self.choices[at];
        let moved: Vec<usize> = (0..choices.len()).filter(changed).collect();
        let number = self.epoch.number + 1;
        moved.iter().for_each(|&at| self.since[at] = number);
        self.costs = messages.redecide(&choices);
        self.epoch.number = number;
        self.epoch.at_message = choices.len();
        self.epoch.from_message = moved.first().copied().unwrap_or(choices.len());
        self.choices = choices;
    }
}

/// What the messages so far become in a new epoch; `None` if it would change nothing or does not pay.
fn choose(
    groups: &CallGroups<'_>,
    marks: &Watermarks,
    messages: &impl Messages,
    so_far: &Decisions,
    must: bool,
) -> Option<Vec<Choice>> {
    let count = so_far.choices.len();
    let ladders = messages.ladders(count);
    let group_of = &groups.group_of[..count];
    let tail = match groups.protect_last {
        0 => count,
        // Results of one step are spared together.
        last => count.saturating_sub(last).min(group_of.last().copied().unwrap_or(0)),
    };
    let chosen = |min: Presence, spared: Presence, budget: usize| {
        let presence = |at: usize| groups.presence[at].max(if at >= tail { spared } else { min });
        let required: Vec<Presence> = (0..count).map(presence).collect();
        choose_messages(&ladders, group_of, &required, marks.overflow, budget)
    };
    let bound = |choices: &[Choice]| {
        choices
            .iter()
            .zip(ladders.iter())
            .map(|(&choice, ladder)| ladder.cost(choice))
            .fold(0, usize::saturating_add)
    };
    if must {
        let Some(max) = marks.drop_above else {
            return Some(chosen(Presence::Optional, Presence::Required, marks.low));
        };
        let all_there = chosen(Presence::Required, Presence::Required, marks.low);
        return Some(if bound(&all_there) <= max {
            all_there
        } else {
            chosen(Presence::Optional, Presence::Required, max)
        });
    }
    let choices = chosen(Presence::Required, Presence::Whole, marks.soft?.1);
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
    messages.pays(&saving).then_some(choices)
}

fn sum(costs: &[usize]) -> usize {
    costs.iter().copied().fold(0, usize::saturating_add)
}

fn grown(used: usize) -> usize {
    (used as f64 * (1.0 + GROWTH)) as usize
}

/// The parts of a slot, whose costs are known before they are rendered.
pub(super) struct SlotMessages<'a> {
    pub slot: &'a Slot,
    pub ladders: &'a [Ladder],
    pub presence: &'a [Presence],
}

impl Messages for SlotMessages<'_> {
    fn enter(&mut self, index: usize) -> (Choice, usize) {
        let ladder = &self.ladders[index];
        let choice = match self.slot.entry_cap {
            Some(cap) if ladder.size > cap && self.presence[index] != Presence::Whole => {
                match ladder.least_condensed(self.slot.overflow) {
                    Some(min) if min <= cap => Choice::Condensed(cap),
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

    impl Messages for Counting {
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
        let group_of: Vec<usize> = (0..count).collect();
        let presence = vec![Presence::Whole; count];
        let groups = CallGroups {
            group_of: &group_of,
            settled: &vec![true; count],
            presence: &presence,
            protect_last: 0,
        };
        let marks = |refused_above| Watermarks {
            refused_above,
            soft: None,
            hard: 100,
            low: 60,
            drop_above: None,
            overflow: Overflow::LADDER,
        };
        let mut messages = Counting { decided: 0 };
        decide(&groups, &marks(100), &mut messages);
        assert_eq!(messages.decided, 1);
        // Where the messages may still come to fit, each new one is a reason to look again.
        let mut messages = Counting { decided: 0 };
        decide(&groups, &marks(usize::MAX), &mut messages);
        assert_eq!(messages.decided, count - 10);
    }

    /// Messages of a hundred tokens that can become pointers of twenty.
    struct Shrinking {
        pays: bool,
        asked: std::cell::Cell<usize>,
    }

    impl Messages for Shrinking {
        fn enter(&mut self, _: usize) -> (Choice, usize) {
            (Choice::Whole, 100)
        }

        fn ladders(&self, count: usize) -> Cow<'_, [Ladder]> {
            let ladder = Ladder {
                whole: Some(100),
                size: 100,
                pointer: 20,
                frame: 0,
                priority: 50,
                relevance: 1.0,
                summarizable: true,
                min_remaining: 0,
            };
            Cow::Owned(vec![ladder; count])
        }

        fn redecide(&mut self, choices: &[Choice]) -> Vec<usize> {
            let ladders = self.ladders(choices.len());
            choices.iter().zip(&*ladders).map(|(&choice, ladder)| ladder.cost(choice)).collect()
        }

        fn pays(&self, _: &Saving) -> bool {
            self.asked.set(self.asked.get() + 1);
            self.pays
        }
    }

    fn decided(
        count: usize,
        settled: &[bool],
        pays: bool,
        hard: usize,
        protect_last: usize,
    ) -> (Decisions, usize) {
        let group_of: Vec<usize> = (0..count).collect();
        let presence = vec![Presence::Optional; count];
        let groups = CallGroups { group_of: &group_of, settled, presence: &presence, protect_last };
        let marks = Watermarks {
            refused_above: usize::MAX,
            soft: Some((500, 250)),
            hard,
            low: 250,
            drop_above: Some(hard),
            overflow: Overflow::LADDER,
        };
        let mut messages = Shrinking { pays, asked: 0.into() };
        let decisions = decide(&groups, &marks, &mut messages);
        (decisions, messages.asked.get())
    }

    #[test]
    fn nothing_is_decided_again_below_the_watermark() {
        let (decisions, asked) = decided(5, &[true; 5], true, 10_000, 0);
        assert_eq!((decisions.epoch.number, asked), (0, 0));
        assert_eq!((decisions.choices, decisions.since), (vec![Choice::Whole; 5], vec![0; 5]));
    }

    #[test]
    fn an_epoch_begins_above_it_and_reduces_the_messages_so_far() {
        let (decisions, _) = decided(7, &[true; 7], true, 10_000, 0);
        let Decisions { choices, costs, since, epoch } = decisions;
        assert_eq!(
            (epoch.number, epoch.at_message, epoch.from_message, epoch.moved_prefix),
            (1, 6, 0, false)
        );
        assert!(costs[..6].iter().sum::<usize>() <= 250, "{costs:?}");
        assert_eq!((choices[6], since[0], since[6]), (Choice::Whole, 1, 1), "the newest enters whole");
    }

    #[test]
    fn an_epoch_waits_until_no_call_is_open() {
        let mut settled = [true; 8];
        (settled[5], settled[6]) = (false, false);
        let (decisions, _) = decided(8, &settled, true, 10_000, 0);
        assert_eq!((decisions.epoch.number, decisions.epoch.at_message), (1, 8));
        assert!(decisions.epoch.moved_prefix, "the newest message began it");
    }

    #[test]
    fn an_epoch_that_does_not_pay_is_considered_again_only_after_growth() {
        let (decisions, asked) = decided(12, &[true; 12], false, 10_000, 0);
        assert_eq!(decisions.epoch.number, 0);
        // At 600 tokens, and then whenever a tenth has come on top: 700, 800, 900, 1,000, 1,200.
        assert_eq!(asked, 6);
    }

    #[test]
    fn a_forced_epoch_asks_nobody_whether_it_pays() {
        let (decisions, _) = decided(7, &[true; 7], false, 650, 0);
        assert_eq!((decisions.epoch.number, decisions.epoch.at_message), (1, 7));
    }

    #[test]
    fn an_optional_epoch_spares_the_newest_messages() {
        let (decisions, _) = decided(6, &[true; 6], true, 10_000, 2);
        assert_eq!(decisions.choices[4..], [Choice::Whole; 2]);
        assert!(decisions.choices[..4].iter().all(|choice| *choice != Choice::Whole));
    }
}
