//! Which renditions are chosen within a budget.

use super::*;

fn ladder(size: usize, priority: u8) -> Ladder {
    Ladder {
        whole: Some(size),
        size,
        full: (size, true),
        pointer: 30,
        frame: 0,
        priority,
        relevance: 1.0,
        summarizable: true,
        min_remaining: 0,
    }
}

fn choose(ladders: &[Ladder], overflow: Overflow, budget: usize) -> Vec<Choice> {
    let parts: Vec<Competitor<'_>> =
        ladders.iter().map(|ladder| Competitor { ladder, tier: ladder.priority, pinned: false }).collect();
    super::choose(&parts, overflow, budget)
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
fn what_is_condensed_anyway_leaves_room_for_the_tiers_below() {
    let ladders = [ladder(53_000, 90), ladder(30_000, 85), ladder(2_000, 80), ladder(20, 75)];
    let choices = choose(&ladders, Overflow::LADDER, 15_000);
    assert!(matches!(choices[0], Choice::Condensed(7_500..)), "{choices:?}");
    assert!(matches!(choices[1], Choice::Condensed(3_000..)), "{choices:?}");
    assert_eq!(choices[2..], [Choice::Whole; 2]);
    assert!(total(&ladders, &choices) > 14_900, "what those below do not need goes back: {choices:?}");
}

#[test]
fn what_lacks_little_to_be_whole_leaves_little() {
    let ladders = [ladder(1_020, 90), ladder(47_000, 10)];
    let choices = choose(&ladders, Overflow::LADDER, 1_000);
    assert!(matches!(choices[0], Choice::Condensed(970..)), "{choices:?}");
}

#[test]
fn parts_with_pins_and_parts_that_require_room_leave_none_of_it() {
    let ladders = [ladder(5_000, 90), ladder(5_000, 10)];
    let pinned = |pinned| {
        let parts = ladders.iter().enumerate().map(|(at, ladder)| Competitor {
            ladder,
            tier: ladder.priority,
            pinned: pinned && at == 0,
        });
        super::choose(&parts.collect::<Vec<_>>(), Overflow::LADDER, 1_500)[0]
    };
    assert_eq!((pinned(true), pinned(false)), (Choice::Condensed(1_500), Choice::Condensed(750)));
    let mut ladders = [ladder(23_000, 80), ladder(6_000, 75)];
    ladders[0].min_remaining = 1_000;
    let choices = choose(&ladders, Overflow::LADDER, 1_290);
    assert!(matches!(choices[0], Choice::Condensed(1_000..)), "{choices:?}");
}

#[test]
fn a_small_part_below_enters_though_it_requires_more_room_than_it_takes() {
    let mut ladders = [ladder(53_000, 90), ladder(29_000, 75), ladder(37, 50)];
    ladders[2].min_remaining = 500;
    let choices = choose(&ladders, Overflow::LADDER, 15_000);
    assert_eq!(choices[2], Choice::Whole, "{choices:?}");
    assert!(total(&ladders, &choices) > 14_900, "{choices:?}");
}

#[test]
fn protected_parts_leave_an_eighth() {
    let ladders = [ladder(5_000, 90), ladder(5_000, 10)];
    let parts = ladders.iter().zip([PROTECTED_TIER, 10]);
    let parts: Vec<_> = parts.map(|(ladder, tier)| Competitor { ladder, tier, pinned: false }).collect();
    for overflow in [Overflow::LADDER, Overflow { drop: false, ..Overflow::LADDER }] {
        let choices = super::choose(&parts, overflow, 1_600);
        let [Choice::Condensed(first), Choice::Condensed(second)] = choices[..] else {
            panic!("{choices:?}")
        };
        assert!((1_370..=1_400).contains(&first) && first + second == 1_600, "{choices:?}");
    }
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
fn rungs_halve_down_to_the_least_worth_having() {
    let targets = |size| {
        let rungs = ladder(size, 1);
        rungs.rungs(Overflow::LADDER).map(|(choice, _)| choice).collect::<Vec<_>>()
    };
    assert_eq!(targets(50), [Choice::Absent, Choice::Whole]);
    let halves = [Choice::Condensed(75), Choice::Condensed(150)];
    assert_eq!(targets(300)[2..4], halves);
    assert_eq!(targets(128)[1..], [Choice::Pointer, Choice::Condensed(64), Choice::Whole]);
    assert_eq!(targets(127)[1..], [Choice::Pointer, Choice::Whole]);
}

#[test]
fn ties_go_to_the_earlier_part() {
    let ladders = vec![ladder(20, 1); 3];
    let choices = choose(&ladders, Overflow::DROP, 45);
    assert_eq!(choices, [Choice::Whole, Choice::Whole, Choice::Absent]);
}

#[test]
fn the_more_relevant_of_equal_parts_is_kept() {
    let mut ladders = vec![ladder(20, 1); 3];
    ladders[2].relevance = 2.0;
    let choices = choose(&ladders, Overflow::DROP, 25);
    assert_eq!(choices, [Choice::Absent, Choice::Absent, Choice::Whole]);
}

#[test]
fn a_part_enters_only_while_enough_tokens_are_left() {
    let mut ladders = vec![ladder(1_000, 1), ladder(20, 1)];
    ladders[1].min_remaining = 50;
    let small = |budget| choose(&ladders, Overflow::DROP, budget)[1];
    assert_eq!((small(50), small(51)), (Choice::Absent, Choice::Whole));
}

#[test]
fn min_remaining_holds_in_a_tier_that_fits_whole() {
    let mut ladders = vec![ladder(100, 2), ladder(50, 2), ladder(1_000, 1)];
    ladders[0].min_remaining = 500;
    let tier = |budget| choose(&ladders, Overflow::DROP, budget)[..2].to_vec();
    assert_eq!(tier(400), [Choice::Absent, Choice::Whole]);
    assert_eq!(tier(500), [Choice::Absent, Choice::Whole]);
    assert_eq!(tier(600), [Choice::Whole; 2]);
}

#[test]
fn where_nothing_may_be_dropped_every_part_is_there_before_one_is_larger() {
    let ladders = [ladder(1000, 1), ladder(1000, 2)];
    let overflow = Overflow { drop: false, ..Overflow::LADDER };
    assert_eq!(choose(&ladders, overflow, 1010), [Choice::Pointer, Choice::Condensed(980)]);
    let choices = choose(&ladders, Overflow { point: false, ..overflow }, 1010);
    assert!(matches!(choices[..], [Choice::Condensed(least), Choice::Condensed(more)] if least < more));
    assert!(total(&ladders, &choices) <= 1010);
    assert_eq!(choose(&ladders, overflow, 50), [Choice::Pointer, Choice::Absent]);
}

#[test]
fn costs_stay_within_every_budget() {
    let sizes = [40, 130, 900, 2_500, 64];
    let mut ladders: Vec<Ladder> = sizes.iter().map(|&size| ladder(size, (size % 3) as u8)).collect();
    // A part larger than the budget of the call has no whole rung.
    ladders[3].whole = None;
    for overflow in [Overflow::LADDER, Overflow::DROP, Overflow { point: true, ..Overflow::DROP }] {
        for budget in (0..4_000).step_by(37) {
            let choices = choose(&ladders, overflow, budget);
            assert!(total(&ladders, &choices) <= budget, "{overflow:?} {budget}: {choices:?}");
            assert_ne!(choices[3], Choice::Whole);
        }
    }
}

#[test]
fn each_step_of_a_hull_is_worth_less_per_token_than_the_one_before() {
    let ladder = ladder(5_000, 1);
    let mut rungs = Vec::new();
    ladder.push_hull(Overflow::LADDER, &mut rungs);
    let gain = |pair: &[(Choice, f64)]| {
        (pair[1].1 - pair[0].1) / (ladder.cost(pair[1].0) - ladder.cost(pair[0].0)) as f64
    };
    let gains: Vec<f64> = rungs.windows(2).map(gain).collect();
    assert!(gains.len() > 2 && gains.is_sorted_by(|before, after| before > after), "{gains:?}");
    assert_eq!((rungs[0].0, rungs.last().unwrap().0), (Choice::Absent, Choice::Whole));
}
