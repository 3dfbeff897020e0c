//! When an epoch begins, what it spares, and when it is considered again.

use super::*;

/// Messages that cost ten tokens each; counts how often all of them are decided.
struct Counting {
    decided: usize,
}

impl Messages for Counting {
    fn marks(&self, _runs: usize) -> usize {
        0
    }

    fn enter(&mut self, _: usize) -> (Choice, usize) {
        (Choice::Whole, 10)
    }

    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]> {
        let ladder = Ladder {
            whole: Some(10),
            size: 10,
            full: (10, true),
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
fn refused_messages_are_decided_once() {
    let count = 400;
    let group_of: Vec<usize> = (0..count).collect();
    let presence = vec![Presence::Whole; count];
    let groups =
        CallGroups { group_of: &group_of, settled: &vec![true; count], presence: &presence, protect_last: 0 };
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
    fn marks(&self, _runs: usize) -> usize {
        0
    }

    fn enter(&mut self, _: usize) -> (Choice, usize) {
        (Choice::Whole, 100)
    }

    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]> {
        let ladder = Ladder {
            whole: Some(100),
            size: 100,
            full: (100, true),
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
) -> (MessageDecisions, usize) {
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
    let MessageDecisions { choices, costs, since, forced, epoch } = decisions;
    assert_eq!(forced.len(), epoch.number);
    assert_eq!((epoch.number, epoch.at_message, epoch.from_message, epoch.moved_prefix), (1, 6, 0, false));
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
fn a_forced_epoch_ignores_whether_it_pays() {
    let (decisions, _) = decided(7, &[true; 7], false, 650, 0);
    assert_eq!((decisions.epoch.number, decisions.epoch.at_message), (1, 7));
}

#[test]
fn an_optional_epoch_spares_the_newest_messages() {
    let (decisions, _) = decided(6, &[true; 6], true, 10_000, 2);
    assert_eq!(decisions.choices[4..], [Choice::Whole; 2]);
    assert!(decisions.choices[..4].iter().all(|choice| *choice != Choice::Whole));
}
