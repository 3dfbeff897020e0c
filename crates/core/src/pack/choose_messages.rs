//! Choosing renditions for a slot of messages: the newest stay, calls and results go together. Knows costs only, no
//! texts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::choose::{Choice, Ladder};
use super::slot::Overflow;

/// What has to remain of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Presence {
    /// May be left out.
    Optional,
    /// Stays in some rendition.
    Required,
    /// Stays whole.
    Whole,
}

/// Chooses for a slot of messages: everything gets its floor newest first, then messages are raised by priority,
/// newest first. Members of one group are all there or all absent.
pub(super) fn choose_messages(
    ladders: &[Ladder],
    groups: &[usize],
    presence: &[Presence],
    overflow: Overflow,
    budget: usize,
) -> Vec<Choice> {
    let mut choices = vec![Choice::Absent; ladders.len()];
    let mut left = budget;
    let floor = |part: usize| {
        let ladder = &ladders[part];
        let can_point =
            presence[part] != Presence::Whole && ladder.can_point(overflow) && ladder.summarizable;
        if can_point { Choice::Pointer } else { Choice::Whole }
    };
    let mut order: Vec<usize> = (0..ladders.len()).collect();
    order.sort_by_key(|&part| (Reverse(presence[part]), Reverse(part)));
    let mut members_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (part, &group) in groups.iter().enumerate() {
        members_of.entry(group).or_default().push(part);
    }
    let mut room = true;
    for &part in &order {
        let Some(members) = members_of.remove(&groups[part]) else { continue };
        let cost =
            members.iter().map(|&member| ladders[member].cost(floor(member))).fold(0, usize::saturating_add);
        let must = members.iter().any(|&member| presence[member] != Presence::Optional);
        if must || (room && cost <= left) {
            members.iter().for_each(|&member| choices[member] = floor(member));
            left = left.saturating_sub(cost);
        } else {
            // The oldest go first: nothing older than a dropped message stays.
            room = false;
        }
    }
    order.sort_by_key(|&part| (Reverse(presence[part]), Reverse(ladders[part].priority), Reverse(part)));
    for part in order {
        let ladder = &ladders[part];
        if choices[part] != Choice::Pointer {
            continue;
        }
        let now = ladder.pointer;
        let max = now + left;
        let choice = match ladder.whole {
            Some(whole) if whole <= max => Choice::Whole,
            _ => match ladder.least_condensed(overflow) {
                Some(min) if min <= max => Choice::Condensed(max.min(ladder.size.saturating_sub(1))),
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

    #[test]
    fn messages_keep_the_newest_and_whole_groups() {
        let message = Ladder {
            whole: Some(100),
            size: 100,
            pointer: 30,
            frame: 0,
            priority: 1,
            relevance: 1.0,
            summarizable: true,
            min_remaining: 0,
        };
        let ladders = vec![message; 6];
        let groups = [0, 1, 1, 3, 4, 4];
        let presence = [Presence::Optional; 6];
        let choices = choose_messages(&ladders, &groups, &presence, Overflow::DROP, 330);
        assert_eq!(
            choices,
            [Choice::Absent, Choice::Absent, Choice::Absent, Choice::Whole, Choice::Whole, Choice::Whole]
        );
    }
}
