//! Slots of messages whose decisions stay: a pure function of the history, so that every replica, before and after
//! a restart, sends the same bytes.
//!
//! Messages are taken in one by one. Each is decided when it enters; nothing is decided again until the slot's cap
//! (the high watermark) is crossed. Then everything but the protected tail comes down to `shrink_to` of the cap,
//! and a new epoch begins.

use super::choose::{Choice, Ladder};
use super::choose_messages::{Hold, choose_messages};
use super::receipt::Epoch;
use super::slot::Slot;

/// What was decided for each message, and when the prefix last moved. `settled[i]` says that no call waits for its
/// result after message `i`: an epoch begins only there, so that a pair is never decided in halves.
pub(super) fn decide(
    slot: &Slot,
    ladders: &[Ladder],
    groups: &[usize],
    settled: &[bool],
    hold: &[Hold],
    high: usize,
) -> (Vec<Choice>, Epoch) {
    let low = (high as f64 * slot.shrink_to.unwrap_or(1.0)) as usize;
    let mut epoch = Epoch { number: 0, at_message: 0, moved_prefix: false };
    let mut choices: Vec<Choice> = Vec::with_capacity(ladders.len());
    let mut used = 0usize;
    for (index, ladder) in ladders.iter().enumerate() {
        let choice = if hold[index] == Hold::Critical { Choice::Whole } else { enter(slot, ladder) };
        choices.push(choice);
        used = used.saturating_add(ladder.cost(choice));
        let last = index + 1 == ladders.len();
        if used <= high || !(settled[index] || last) {
            continue;
        }
        let so_far = index + 1;
        let tail = so_far.saturating_sub(slot.protect_last);
        let held: Vec<Hold> =
            (0..so_far).map(|at| if at >= tail { hold[at].max(Hold::Firm) } else { hold[at] }).collect();
        choices = choose_messages(&ladders[..so_far], &groups[..so_far], &held, slot.overflow, low);
        used = choices
            .iter()
            .zip(ladders)
            .map(|(&choice, ladder)| ladder.cost(choice))
            .fold(0, usize::saturating_add);
        epoch = Epoch { number: epoch.number + 1, at_message: so_far, moved_prefix: last };
    }
    (choices, epoch)
}

/// The rendition in which a message enters.
fn enter(slot: &Slot, ladder: &Ladder) -> Choice {
    match slot.entry_cap {
        Some(cap) if ladder.size > cap => match ladder.least_condensed(slot.overflow) {
            Some(least) if least <= cap => Choice::Condensed(cap),
            _ if slot.overflow.point && ladder.summarizable => Choice::Pointer,
            _ => Choice::Whole,
        },
        _ => Choice::Whole,
    }
}
