//! Tests of the window: coverage, the order of rules, when a summary is due, and the prefix between watermarks.

use proptest::prelude::*;

use super::*;

/// The numbers of the seed (R4-3.13, R4-3.19, R4-5.6), for a stage with a buffer of so many turns (R4-3.11).
fn rules(buffer_turns: usize) -> HistoryRules {
    let wanted = (buffer_turns * 2).clamp(12, 16);
    HistoryRules { protected: 12, wanted, keep: 15, without_summary: 24, message_chars: 2_000 }
}

/// The numbers of the seed (R4-3.16 to R4-3.20).
fn summaries() -> SummaryRules {
    SummaryRules {
        recipe: "converse/summary".to_owned(),
        after_messages: 30,
        after_tokens: Some(3_500),
        again_after: 20,
        keep: 15,
        words: 500,
    }
}

fn messages(count: u64) -> Vec<PastMessage> {
    let message = |number: u64| PastMessage {
        number,
        role: if number % 2 == 1 { Role::User } else { Role::Assistant },
        text: format!("message {number} {}", "word ".repeat((number % 900) as usize)).into(),
        pointer: "lp1-0123456789abc-123456".to_owned(),
    };
    (1..=count).map(message).collect()
}

fn sent(messages: &[PastMessage], covered: Option<usize>, rules: &HistoryRules, found: &Found) -> usize {
    choose(messages, covered, rules, found).sent.len()
}

#[test]
fn without_a_summary_everything_is_sent() {
    assert_eq!(sent(&messages(29), None, &rules(5), &Found::default()), 29);
    assert_eq!(sent(&messages(80), None, &rules(5), &Found::default()), 80, "until the summary is there");
}

#[test]
fn a_buffer_binds_only_where_it_is_larger_than_what_coverage_sends() {
    let all = messages(40);
    assert_eq!(sent(&all, Some(25), &rules(5), &Found::default()), 15, "15 are not covered");
    assert_eq!(sent(&all, Some(35), &rules(5), &Found::default()), 12, "12 are protected");
    assert_eq!(sent(&all, Some(25), &rules(8), &Found::default()), 16, "one more is wanted");
    assert_eq!(sent(&all, Some(25), &rules(50), &Found::default()), 16, "the cap with a summary");
    assert_eq!(sent(&messages(3), Some(1), &rules(5), &Found::default()), 3);
}

#[test]
fn intents_about_memory_override_protection() {
    let all = messages(40);
    for (memory, kept) in [(MemoryIntent::AvoidRecall, 0), (MemoryIntent::StageEnforcement, 4)] {
        let found = Found { memory: Some(memory), messages: Some(kept), ..Found::default() };
        let window = choose(&all, Some(20), &rules(5), &found);
        assert_eq!(window.sent.len(), kept);
        let withheld = window.coverage.iter().filter(|one| **one == Coverage::Withheld(memory)).count();
        assert_eq!(withheld, 40 - kept);
    }
}

#[test]
fn a_long_message_is_its_beginning_and_a_pointer_to_the_rest() {
    let text = "äöü ".repeat(800);
    let long =
        PastMessage { number: 1, role: Role::User, text: text.as_str().into(), pointer: "lp1-x".into() };
    let shown = entry(&long, 2_000).joined_text();
    let (beginning, mark) = shown.split_once("\n[… the rest of this message: lp1-x#B").unwrap();
    let (start, end) = mark.trim_end_matches(']').split_once('-').unwrap();
    let (start, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
    assert_eq!((beginning, end), (&text[..start], text.len()), "the range is the rest");
    assert!(beginning.chars().count() <= 2_000 && beginning.chars().count() > 1_800);
    let short = PastMessage { text: "x".repeat(2_000).into(), ..long };
    assert_eq!(entry(&short, 2_000).joined_text().len(), 2_000);
}

#[test]
fn a_summary_is_due_after_30_messages_and_again_after_20() {
    let due = |count, watermark| summary_due(&messages(count), watermark, &summaries(), |_| 1);
    assert_eq!((due(29, None), due(30, None)), (None, Some(15)));
    assert_eq!((due(49, Some(15)), due(50, Some(15))), (None, Some(35)));
}

#[test]
fn tokens_count_outside_the_kept_tail_only() {
    let due = |count, each| summary_due(&messages(count), None, &summaries(), |_| each);
    assert_eq!(due(15, 10_000), None, "there is nothing to summarize");
    assert_eq!(due(16, 3_500), None);
    assert_eq!(due(16, 3_501), Some(1));
}

proptest! {
    /// C93: no message of the session is forgotten, and the prompt's prefix holds until the next summary.
    #[test]
    fn every_message_is_sent_summarized_or_withheld_and_the_prefix_only_grows(
        count in 0_u64..120, before in 0_usize..105, has_summary in any::<bool>(), buffer in 1_usize..12,
        intent in 0..6,
    ) {
        let rules = rules(buffer);
        // A summary leaves out the newest 15 of the messages that were there when it was written.
        let covered = has_summary.then_some(before.min((count as usize).saturating_sub(15)));
        let found = match intent {
            0 => Found { memory: Some(MemoryIntent::AvoidRecall), messages: Some(0), ..Found::default() },
            1 => Found { memory: Some(MemoryIntent::StageEnforcement), messages: Some(4), ..Found::default() },
            2 => Found { memory: Some(MemoryIntent::HighDistress), ..Found::default() },
            _ => Found::default(),
        };
        let all = messages(count + 1);
        let now = choose(&all[..count as usize], covered, &rules, &found);
        prop_assert_eq!(now.coverage.len(), count as usize, "each message is in one class");
        let withholds = intent < 2;
        for (message, coverage) in all.iter().zip(&now.coverage) {
            match coverage {
                Coverage::Sent => {}
                Coverage::Summarized => prop_assert!(covered.is_some_and(|many| message.number <= many as u64)),
                Coverage::Withheld(_) => prop_assert!(withholds),
            }
        }
        if withholds {
            prop_assert_eq!(now.sent.len(), found.messages.unwrap().min(count as usize));
            return Ok(());
        }
        let newest = now.coverage.iter().rev().take(12);
        prop_assert!(newest.into_iter().all(|one| *one == Coverage::Sent), "the newest are protected");
        let of_summary = now.sent.len().saturating_sub(count as usize - covered.unwrap_or(0));
        prop_assert!(of_summary <= 16, "the cap limits what the summary covers");
        let next = choose(&all, covered, &rules, &found);
        prop_assert_eq!(&next.sent[..now.sent.len()], &now.sent[..], "the history grows at its end only");
    }
}
