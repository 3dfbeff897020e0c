//! Chooses renditions for a slot of messages: the newest stay, and calls stay with their results. Knows costs only,
//! no texts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::choose::{Choice, Ladder};
use super::slot::Overflow;

/// The least that must remain of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Presence {
    /// May be dropped.
    Optional,
    /// Must stay in some rendition.
    Required,
    /// Must stay whole.
    Whole,
}

/// Chooses for a slot of messages: floors are filled newest first, then messages are raised by priority, newest
/// first. A group is either complete or absent.
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

    fn message() -> Ladder {
        Ladder {
            whole: Some(100),
            size: 100,
            full: (100, true),
            pointer: 30,
            frame: 0,
            priority: 1,
            relevance: 1.0,
            summarizable: true,
            min_remaining: 0,
        }
    }

    const FREE: [Presence; 6] = [Presence::Optional; 6];

    #[test]
    fn messages_keep_the_newest_and_whole_groups() {
        let ladders = vec![message(); 6];
        let choices = choose_messages(&ladders, &[0, 1, 1, 3, 4, 4], &FREE, Overflow::DROP, 330);
        assert_eq!(
            choices,
            [Choice::Absent, Choice::Absent, Choice::Absent, Choice::Whole, Choice::Whole, Choice::Whole]
        );
    }

    #[test]
    fn nothing_older_than_a_dropped_message_stays() {
        let mut ladders = vec![message(); 6];
        (ladders[2].whole, ladders[2].size) = (Some(400), 400);
        let choices = choose_messages(&ladders, &[0, 1, 2, 3, 4, 5], &FREE, Overflow::DROP, 600);
        assert_eq!(choices[..3], [Choice::Absent; 3], "two hundred tokens are left, and yet");
        assert_eq!(choices[3..], [Choice::Whole; 3]);
    }

    #[test]
    fn the_newest_are_raised_from_their_pointers_first() {
        let ladders = vec![message(); 6];
        let choices =
            choose_messages(&ladders, &[0, 1, 2, 3, 4, 5], &FREE, Overflow::LADDER, 6 * 30 + 2 * 70);
        assert_eq!(choices[..4], [Choice::Pointer; 4]);
        assert_eq!(choices[4..], [Choice::Whole; 2]);
    }

    #[test]
    fn required_messages_stay_over_any_budget() {
        let ladders = vec![message(); 6];
        let mut presence = FREE;
        (presence[0], presence[1]) = (Presence::Whole, Presence::Required);
        let choices = choose_messages(&ladders, &[0, 1, 2, 3, 4, 5], &presence, Overflow::LADDER, 10);
        assert_eq!(choices[..3], [Choice::Whole, Choice::Pointer, Choice::Absent]);
    }

    #[test]
    fn a_group_stays_if_one_of_it_is_required() {
        let ladders = vec![message(); 6];
        let mut presence = FREE;
        presence[1] = Presence::Required;
        let choices = choose_messages(&ladders, &[0, 1, 1, 3, 4, 5], &presence, Overflow::DROP, 0);
        assert_eq!(choices[1..3], [Choice::Whole; 2]);
        assert_eq!(choices[3..], [Choice::Absent; 3]);
    }

    #[test]
    fn incondensable_messages_never_become_pointers() {
        let mut ladders = vec![message(); 6];
        ladders[5].summarizable = false;
        let choices = choose_messages(&ladders, &[0, 1, 2, 3, 4, 5], &FREE, Overflow::LADDER, 130);
        assert_eq!(choices[4..], [Choice::Pointer, Choice::Whole]);
    }
}
