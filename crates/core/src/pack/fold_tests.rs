//! Which messages stay, which become one text, and how much room each has.

use super::*;

/// The smallest text.
const LEAST: usize = 80;

/// A request, then steps of a call and its result.
struct History {
    sizes: Vec<usize>,
    group_of: Vec<usize>,
    settled: Vec<bool>,
}

fn history(count: usize, size: usize) -> History {
    let group_of = (0..count).map(|at| if at > 0 && at % 2 == 0 { at - 1 } else { at }).collect();
    History { sizes: vec![size; count], group_of, settled: (0..count).map(|at| at % 2 == 0).collect() }
}

fn folded(history: &History, text: bool, cap: usize) -> Folded {
    folded_at(history, text, cap, false)
}

fn folded_at(history: &History, text: bool, cap: usize, ahead: bool) -> Folded {
    let count = history.sizes.len();
    let least: Vec<usize> = history.sizes.iter().map(|&size| size.min(64)).collect();
    fold(
        &FoldInput {
            whole: cap,
            sizes: &history.sizes,
            least: &least,
            group_of: &history.group_of,
            settled: &history.settled,
            critical: &vec![false; count],
            request: Some(0),
            protect_last: 0,
            text: text.then_some(LEAST),
            soft: Some(0.75),
            ahead,
        },
        cap,
    )
}

#[test]
fn all_stays_up_to_the_cap() {
    let folded = folded(&history(10, 100), true, 1_000);
    assert_eq!((folded.fold, folded.used, folded.epoch.number), (None, 1_000, 0));
}

#[test]
fn text_and_messages_take_half_to_three_quarters() {
    for count in 12..200 {
        let folded = folded(&history(count, 100), true, 1_000);
        assert!((500..=850).contains(&folded.used), "{count}: {}", folded.used);
        // An unfinished call waits for its result.
        assert!(count % 2 == 0 || folded.used <= 750, "{count}: {}", folded.used);
        let fold = folded.fold.unwrap();
        assert_eq!(fold.kept, Some(0));
        assert!(fold.until % 2 == 1 && fold.until + NEWEST <= count, "{count}: {fold:?}");
    }
}

#[test]
fn steps_are_few_and_nothing_is_decided_between_them() {
    let mut before = folded(&history(13, 100), true, 1_000);
    for count in (15..400).step_by(2) {
        let now = folded(&history(count, 100), true, 1_000);
        if now.epoch.number == before.epoch.number {
            assert_eq!(now.fold, before.fold);
        }
        before = now;
    }
    assert!(before.epoch.number < 400 / 2, "{}", before.epoch.number);
}

#[test]
fn what_the_next_step_condenses_is_known_before_it() {
    let (mut known, mut steps) = (None, 0);
    for count in 1..600 {
        let history = history(count, 20);
        let now = folded(&history, true, 1_000);
        if now.epoch.at_message == count && count % 2 == 1 {
            assert_eq!(now.fold, known, "{count}");
            assert!((500..=750).contains(&now.used), "{count}: {}", now.used);
            steps += 1;
        }
        let ahead = folded_at(&history, true, 1_000, true);
        known = ahead.fold.filter(|_| ahead.epoch.number > now.epoch.number);
    }
    assert!(steps > 20, "{steps}");
}

#[test]
fn the_newest_are_shortened_where_they_would_fill_the_cap() {
    let mut history = history(31, 100);
    (history.sizes[0], history.sizes[30]) = (900, 5_000);
    let folded = folded(&history, true, 1_000);
    let fold = folded.fold.unwrap();
    assert_eq!((fold.kept, fold.until), (Some(0), 29));
    assert!(fold.level < 300 && folded.used <= 750, "{fold:?} {}", folded.used);
}

#[test]
fn the_newest_stays_whole_where_the_cap_has_room_for_it() {
    for (size, is_text) in [(700, true), (806, true), (806, false), (950, false)] {
        let mut history = history(4, 101);
        history.group_of = vec![0, 1, 2, 3];
        history.settled = vec![true; 4];
        history.sizes[3] = size;
        let folded = folded(&history, is_text, 1_000);
        let fold = folded.fold.unwrap();
        assert_eq!((fold.until, fold.level), (3, usize::MAX), "{size}: {fold:?}");
        assert!(folded.used <= 1_000, "{size}: {}", folded.used);
    }
}

#[test]
fn the_text_is_never_too_small_to_be_written() {
    for cap in (2 * LEAST..800).step_by(7) {
        for newest in [20, 60, 200, 400] {
            let mut history = history(41, 20);
            (history.sizes[39], history.sizes[40]) = (newest, 30);
            let folded = folded(&history, true, cap);
            let fold = folded.fold.unwrap();
            assert!(fold.allowance >= LEAST && folded.used <= cap, "{cap} {newest}: {fold:?}");
        }
    }
}

#[test]
fn the_two_newest_stay_whole_where_the_cap_has_room_for_both() {
    let mut history = history(31, 100);
    history.group_of = (0..31).collect();
    history.settled = vec![true; 31];
    (history.sizes[29], history.sizes[30]) = (500, 200);
    let folded = folded(&history, true, 1_000);
    let fold = folded.fold.unwrap();
    assert_eq!((fold.kept, fold.until, fold.level), (Some(0), 29, usize::MAX), "{fold:?}");
    assert!(folded.used <= 1_000, "{}", folded.used);
}

/// The fold of nine messages, of which the last six are protected, in 1,000 tokens.
fn six_protected(sizes: [usize; 9]) -> Fold {
    let input = FoldInput {
        whole: 1_000,
        sizes: &sizes,
        least: &sizes.map(|size| size.min(64)),
        group_of: &[0, 1, 2, 3, 4, 5, 6, 7, 8],
        settled: &[true; 9],
        critical: &[false; 9],
        request: Some(0),
        protect_last: 6,
        text: Some(LEAST),
        soft: None,
        ahead: false,
    };
    let folded = fold(&input, 1_000);
    assert!(folded.used <= 1_000, "{}", folded.used);
    folded.fold.unwrap()
}

#[test]
fn as_many_protected_stay_whole_as_the_cap_has_room_for() {
    let fold = six_protected([190; 9]);
    assert_eq!((fold.kept, fold.until, fold.level), (Some(0), 6, usize::MAX), "{fold:?}");
    // A short question at the end leaves room for more of them.
    let fold = six_protected([190, 190, 190, 190, 190, 190, 190, 190, 30]);
    assert_eq!((fold.kept, fold.until, fold.level), (Some(0), 5, usize::MAX), "{fold:?}");
}

#[test]
fn one_long_protected_message_is_cut_and_leaves_the_others_whole() {
    let fold = six_protected([60, 60, 60, 60, 2_000, 60, 60, 60, 60]);
    assert_eq!((fold.kept, fold.until), (Some(0), 3), "{fold:?}");
    assert!((60..2_000).contains(&fold.level), "{fold:?}");
}

#[test]
fn without_a_text_the_newest_fill_the_cap() {
    let folded = folded(&history(101, 100), false, 1_000);
    let fold = folded.fold.unwrap();
    assert_eq!(fold.allowance, 0);
    assert!((700..=1_000).contains(&folded.used), "{}", folded.used);
}
