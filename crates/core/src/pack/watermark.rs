//! Messages whose decisions persist: a pure function of the history, so that every replica, before and after a restart,
//! sends the same bytes.
//!
//! Messages enter one by one. Each is decided when it enters; nothing is decided again until a watermark is crossed.
//! Then the messages so far are reduced to a low watermark, and a new epoch begins. Knows costs and choices; the
//! [`Messages`] implementor renders them.

use std::borrow::Cow;

use super::choose::{Choice, Ladder};
use super::choose_messages::{Presence, choose_messages};
use super::history::runs;
use super::receipt::Epoch;
use super::slot::Overflow;

/// After an epoch was rejected as too expensive, the next is considered when the messages have grown by this share.
const GROWTH: f64 = 0.1;

/// The messages to decide.
pub(super) trait Messages {
    /// Decides message `index` as it enters, after all before it, and returns its tokens.
    fn enter(&mut self, index: usize) -> (Choice, usize);
    /// The ladders of the first `count` messages. The top rung is the rendition in which a message enters.
    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]>;
    /// Renders what an epoch chose for the messages so far and returns the tokens of each.
    fn redecide(&mut self, choices: &[Choice]) -> Vec<usize>;
    /// The most tokens of the messages in place of so many runs of dropped ones.
    fn marks(&self, runs: usize) -> usize;
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
    /// Tokens behind the first change, for which the provider's cache is lost.
    pub moved: usize,
}

/// Which messages are decided together.
pub(super) struct CallGroups<'a> {
    /// Messages with the same number are dropped together or not at all.
    pub group_of: &'a [usize],
    /// `settled[i]`: no call is waiting for a result after message `i`. Epochs begin only at such places, so that a
    /// call and its result are always decided together.
    pub settled: &'a [bool],
    pub presence: &'a [Presence],
    /// The number of newest messages that an epoch leaves unchanged.
    pub protect_last: usize,
}

/// When an epoch begins and how far it reduces the messages, in tokens.
pub(super) struct Watermarks {
    /// If the messages that must stay whole exceed this, the request is refused anyway, so nothing is decided again
    /// before the last message.
    pub refused_above: usize,
    /// Above the first number an epoch begins if it saves money; it reduces the messages to the second.
    pub soft: Option<(usize, usize)>,
    /// Above this an epoch must begin.
    pub hard: usize,
    /// What a forced epoch reduces the messages to.
    pub low: usize,
    /// Messages are dropped only if condensing and pointers leave more than this; with `None`, immediately.
    pub drop_above: Option<usize>,
    pub overflow: Overflow,
}

/// The outcome for the messages.
pub(super) struct MessageDecisions {
    pub choices: Vec<Choice>,
    pub costs: Vec<usize>,
    /// The epoch in which each was decided.
    pub since: Vec<usize>,
    /// For each epoch, from the first: whether the hard limit required it.
    pub forced: Vec<bool>,
    pub epoch: Epoch,
}

/// Decides all messages, the oldest first.
pub(super) fn decide(
    groups: &CallGroups<'_>,
    marks: &Watermarks,
    messages: &mut impl Messages,
) -> MessageDecisions {
    let count = groups.group_of.len();
    let mut so_far = MessageDecisions {
        choices: Vec::with_capacity(count),
        costs: Vec::with_capacity(count),
        since: Vec::with_capacity(count),
        forced: Vec::new(),
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
                so_far.forced.push(must);
                used = sum(&so_far.costs);
                so_far.epoch.moved_prefix = last;
                trigger = if used < soft { soft } else { grown(used) };
            }
            None => trigger = grown(used),
        }
    }
    so_far
}

impl MessageDecisions {
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

/// The messages' renditions in a new epoch; `None` if nothing would change or it does not save money.
fn choose(
    groups: &CallGroups<'_>,
    marks: &Watermarks,
    messages: &impl Messages,
    so_far: &MessageDecisions,
    must: bool,
) -> Option<Vec<Choice>> {
    let count = so_far.choices.len();
    let ladders = messages.ladders(count);
    let group_of = &groups.group_of[..count];
    let tail = match groups.protect_last {
        0 => count,
        // The results of one step are left unchanged together.
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
        if bound(&all_there) <= max {
            return Some(all_there);
        }
        let may_go = (0..tail).map(|at| groups.presence[at] == Presence::Optional);
        let marks = messages.marks(runs(may_go).len());
        return Some(chosen(Presence::Optional, Presence::Required, max.saturating_sub(marks)));
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

#[cfg(test)]
#[path = "watermark_tests.rs"]
mod tests;
