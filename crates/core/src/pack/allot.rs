//! Divides a call's tokens among its slots: fixed caps by priority, shares whose unused part overflows to the others,
//! and the rest to flexible slots.

use super::slot::{Cap, Slot};

/// What a slot needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    /// Tokens of everything in the slot, unabridged.
    pub whole: usize,
    /// Tokens of critical parts, which are required.
    pub critical: usize,
    /// Tokens of protected and critical parts, kept as long as there is room.
    pub firm: usize,
}

/// Allots tokens to each slot, at most `available` in total unless critical parts alone exceed it.
pub(super) fn allot(slots: &[Slot], demands: &[Demand], available: usize) -> Vec<usize> {
    let mut allowed: Vec<usize> = demands.iter().map(|demand| demand.critical).collect();
    let mut left = available.saturating_sub(allowed.iter().sum());
    let mut by_priority: Vec<usize> = (0..slots.len()).collect();
    by_priority.sort_by_key(|&slot| std::cmp::Reverse(slots[slot].priority));

    let raise = |slot: usize, to: usize, left: &mut usize, allowed: &mut Vec<usize>| {
        let extra = to.saturating_sub(allowed[slot]).min(*left);
        allowed[slot] += extra;
        *left -= extra;
    };
    // No floor is above what is there, and critical parts count towards it.
    let floor = |slot: usize| slots[slot].floor.min(demands[slot].whole);
    let lacking: Vec<usize> =
        (0..slots.len()).map(|slot| floor(slot).saturating_sub(allowed[slot])).collect();
    for (slot, extra) in share_floors(&lacking, left).into_iter().enumerate() {
        raise(slot, allowed[slot] + extra, &mut left, &mut allowed);
    }
    for &slot in &by_priority {
        let cap = if let Cap::Tokens(cap) = slots[slot].cap { cap } else { usize::MAX };
        raise(slot, demands[slot].firm.min(cap), &mut left, &mut allowed);
    }
    for &slot in &by_priority {
        if let Cap::Tokens(cap) = slots[slot].cap {
            raise(slot, demands[slot].whole.min(cap), &mut left, &mut allowed);
        }
    }
    share(slots, demands, &mut allowed, &mut left);
    for &slot in &by_priority {
        if slots[slot].cap == Cap::Flexible {
            raise(slot, demands[slot].whole, &mut left, &mut allowed);
        }
    }
    allowed
}

/// Tokens whose omission saves less than the marker for them costs.
const FEW: usize = 64;

/// Divides `room` among slots by the tokens that their floors lack. If these do not all fit, a slot that lacks only a few
/// gets all of them, as far as that is no more than its even share. The others share the rest in proportion.
fn share_floors(lacking: &[usize], room: usize) -> Vec<usize> {
    if lacking.iter().map(|&tokens| tokens as u128).sum::<u128>() <= room as u128 {
        return lacking.to_vec();
    }
    let mut given = vec![0; lacking.len()];
    let mut left = room;
    let mut open: Vec<usize> = (0..lacking.len()).filter(|&slot| lacking[slot] > 0).collect();
    while !open.is_empty() {
        let even = left / open.len();
        let (small, large): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|&slot| lacking[slot] <= even.min(FEW));
        if small.is_empty() {
            let total: u128 = large.iter().map(|&slot| lacking[slot] as u128).sum();
            for slot in large {
                given[slot] = (lacking[slot] as u128 * left as u128 / total) as usize;
            }
            break;
        }
        for slot in small {
            given[slot] = lacking[slot];
            left -= lacking[slot];
        }
        open = large;
    }
    given
}

/// The share of a slot; 0 for slots with another cap.
fn claim(slot: &Slot) -> f64 {
    if let Cap::Share(share) = slot.cap { share.max(0.0) } else { 0.0 }
}

/// The sum of all shares, in whatever order they stand.
pub(super) fn shares(slots: &[Slot]) -> f64 {
    /// Shares are percentages, with a few decimals at most.
    const PARTS: f64 = 1e9;
    (slots.iter().map(claim).sum::<f64>() * PARTS).round() / PARTS
}

/// Tokens of `available` that all slots with shares may have together: their share of what slots with caps in tokens and
/// the critical parts of flexible ones leave.
pub(super) fn share_pool(slots: &[Slot], demands: &[Demand], available: usize) -> usize {
    let taken = |(slot, demand): (&Slot, &Demand)| match slot.cap {
        Cap::Tokens(cap) => demand.whole.min(cap).max(demand.critical),
        Cap::Flexible => demand.critical,
        Cap::Share(_) => 0,
    };
    let taken = slots.iter().zip(demands).map(taken).fold(0, usize::saturating_add);
    (available.saturating_sub(taken) as f64 * shares(slots).min(1.0)) as usize
}

/// Allots shares of what slots with other caps have left; what one does not need goes to those that do. Shares that sum to
/// less than 1 leave the rest to flexible slots. What a slot has already counts towards its share.
fn share(slots: &[Slot], demands: &[Demand], allowed: &mut [usize], left: &mut usize) {
    let total = shares(slots);
    if total <= 0.0 {
        return;
    }
    let held: usize =
        (0..slots.len()).filter(|&slot| claim(&slots[slot]) > 0.0).map(|slot| allowed[slot]).sum();
    let base = (*left + held) as f64;
    let mut pool = ((base * total.min(1.0)) as usize).saturating_sub(held).min(*left);
    *left -= pool;
    for slot in 0..slots.len() {
        let share = (base * claim(&slots[slot]) / total.max(1.0)) as usize;
        let extra = share.min(demands[slot].whole).saturating_sub(allowed[slot]).min(pool);
        allowed[slot] += extra;
        pool -= extra;
    }
    loop {
        let open: Vec<usize> = (0..slots.len())
            .filter(|&slot| claim(&slots[slot]) > 0.0 && allowed[slot] < demands[slot].whole)
            .collect();
        let weight: f64 = open.iter().map(|&slot| claim(&slots[slot])).sum();
        if open.is_empty() || pool == 0 {
            break;
        }
        let round = pool;
        for &slot in &open {
            let part = ((round as f64 * claim(&slots[slot]) / weight) as usize).max(1).min(pool);
            let extra = part.min(demands[slot].whole - allowed[slot]);
            allowed[slot] += extra;
            pool -= extra;
        }
    }
    *left += pool;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(whole: usize) -> Demand {
        Demand { whole, critical: 0, firm: 0 }
    }

    #[test]
    fn an_unused_claim_flows_to_the_other() {
        let slots = [Slot::new("older").cap(Cap::Share(0.6)), Slot::new("retrieved").cap(Cap::Share(0.4))];
        assert_eq!(allot(&slots, &[demand(5000), demand(5000)], 1000), [600, 400]);
        assert_eq!(allot(&slots, &[demand(5000), demand(100)], 1000), [900, 100]);
        assert_eq!(allot(&slots, &[demand(100), demand(5000)], 1000), [100, 900]);
    }

    #[test]
    fn fixed_caps_bind_and_low_priority_gives_way() {
        let mut low = Slot::new("low").cap(Cap::Tokens(800));
        low.priority = 10;
        let slots = [low, Slot::new("high").cap(Cap::Tokens(800))];
        assert_eq!(allot(&slots, &[demand(5000), demand(5000)], 1000), [200, 800]);
        assert_eq!(allot(&slots, &[demand(5000), demand(50)], 1000), [800, 50]);
    }

    #[test]
    fn floors_are_served_before_caps() {
        let mut low = Slot::new("low").cap(Cap::Tokens(800));
        (low.priority, low.floor) = (10, 300);
        let slots = [low, Slot::new("high").cap(Cap::Tokens(800))];
        assert_eq!(allot(&slots, &[demand(5_000), demand(5_000)], 1_000), [300, 700]);
        assert_eq!(
            allot(&slots, &[demand(100), demand(5_000)], 1_000),
            [100, 800],
            "no floor above what is there"
        );
        assert_eq!(allot(&slots, &[demand(5_000), demand(5_000)], 150), [150, 0]);
        let mut high = Slot::new("high").cap(Cap::Tokens(800));
        high.floor = 600;
        let slots = [slots[0].clone(), high];
        assert_eq!(allot(&slots, &[demand(5_000), demand(5_000)], 300), [100, 200], "in proportion");
    }

    #[test]
    fn a_small_demand_is_met_where_floors_do_not_all_fit() {
        let mut slots = ["history", "documents", "tools"].map(Slot::new);
        (slots[0].floor, slots[1].floor, slots[2].floor) = (2_000, 3_000, 6_000);
        let demands = [demand(17), demand(9_000), demand(9_000)];
        assert_eq!(allot(&slots, &demands, 1_517), [17, 500, 1_000]);
        assert_eq!(allot(&slots[..2], &demands[..2], 1_600), [17, 1_583]);
        let demands = [Demand { critical: 10, ..demand(17) }, demand(9_000)];
        assert_eq!(allot(&slots[..2], &demands, 100), [17, 83], "critical parts count towards the floor");
    }

    #[test]
    fn floors_never_get_more_than_there_is_and_order_does_not_matter() {
        for lacking in [[0, 0, 0], [1, 1, 1], [17, 3_000, 4_000], [5, 9, 9_000], [usize::MAX, 3, usize::MAX]]
        {
            for room in [0, 1, 2, 17, 100, 5_000, usize::MAX] {
                let given = share_floors(&lacking, room);
                let sum: u128 = given.iter().map(|&tokens| tokens as u128).sum();
                assert!(sum <= room as u128, "{lacking:?} in {room}: {given:?}");
                assert!(given.iter().zip(&lacking).all(|(given, lacking)| given <= lacking), "{given:?}");
                let [first, second, third] = lacking;
                let turned = share_floors(&[third, first, second], room);
                assert_eq!([turned[1], turned[2], turned[0]], given[..], "{lacking:?} in {room}");
            }
        }
    }

    #[test]
    fn critical_tokens_are_allotted_even_over_budget() {
        let slots = [Slot::new("a").cap(Cap::Tokens(100)), Slot::new("b")];
        let demands = [Demand { whole: 900, critical: 700, firm: 700 }, demand(500)];
        assert_eq!(allot(&slots, &demands, 1_000), [700, 300]);
        assert_eq!(allot(&slots, &demands, 600), [700, 0]);
    }

    #[test]
    fn protected_tokens_come_before_the_rest_of_other_slots() {
        let mut first = Slot::new("first").cap(Cap::Tokens(600));
        first.priority = 90;
        let slots = [first, Slot::new("second").cap(Cap::Tokens(600))];
        let demands = [demand(600), Demand { whole: 600, critical: 0, firm: 500 }];
        assert_eq!(allot(&slots, &demands, 800), [300, 500]);
    }

    #[test]
    fn shares_of_less_than_all_are_no_more_without_a_flexible_slot() {
        let slots = [Slot::new("a").cap(Cap::Share(0.1)), Slot::new("b").cap(Cap::Share(0.2))];
        assert_eq!(allot(&slots, &[demand(5_000), demand(5_000)], 1_000), [100, 200]);
        assert_eq!(allot(&slots, &[demand(5_000), demand(40)], 1_000), [260, 40], "unused by the other");
    }

    #[test]
    fn shares_of_all_are_all_in_any_order() {
        for order in [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]] {
            let slots = order.map(|share| Slot::new("a").cap(Cap::Share(share)));
            assert_eq!(shares(&slots).to_bits(), 1.0_f64.to_bits(), "{order:?}");
            assert_eq!(allot(&slots, &[demand(5_000); 3], 1_000).iter().sum::<usize>(), 1_000, "{order:?}");
        }
    }

    #[test]
    fn a_floor_counts_towards_its_share() {
        let mut low = Slot::new("low").cap(Cap::Share(0.4));
        low.floor = 300;
        let slots = [low, Slot::new("high").cap(Cap::Share(0.6))];
        assert_eq!(allot(&slots, &[demand(5_000), demand(5_000)], 1_000), [400, 600]);
        assert_eq!(allot(&slots, &[demand(5_000), demand(5_000)], 400), [300, 100]);
    }

    #[test]
    fn flexible_slots_get_what_shares_leave() {
        let slots = [Slot::new("share").cap(Cap::Share(0.5)), Slot::new("rest")];
        assert_eq!(allot(&slots, &[demand(5_000), demand(5_000)], 1_000), [500, 500]);
        assert_eq!(allot(&slots, &[demand(100), demand(5_000)], 1_000), [100, 900]);
    }
}
