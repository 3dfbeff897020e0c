//! Tests of groups, eviction order, ledger and coverage.

use proptest::prelude::*;

use super::*;
use crate::hash::ContentHash;
use crate::message::{Message, Role, ToolCall};
use crate::pointer::{Pointer, PointerKey};

fn say(role: Role) -> Message {
    Message::text(role, "text")
}

fn calls(ids: &[&str]) -> Message {
    let call =
        |id: &&str| ToolCall { id: (*id).to_owned(), name: "shell".to_owned(), arguments: "{}".to_owned() };
    Message { tool_calls: ids.iter().map(call).collect(), ..say(Role::Assistant) }
}

fn result(id: &str) -> Message {
    Message { tool_call_id: Some(id.to_owned()), ..say(Role::Tool) }
}

fn shape(groups: &[Group]) -> Vec<(std::ops::Range<usize>, GroupKind)> {
    groups.iter().map(|group| (group.range.clone(), group.kind)).collect()
}

#[test]
fn a_call_and_its_results_are_one_group() {
    let trace = [
        say(Role::System),
        say(Role::User),
        calls(&["a", "b"]),
        result("b"),
        result("a"),
        calls(&["a"]),
        result("a"),
        say(Role::Assistant),
    ];
    use GroupKind::{Assistant, Call, System, User};
    let groups = groups(&trace, 2);
    assert_eq!(shape(&groups), [(0..1, System), (1..2, User), (2..5, Call), (5..7, Call), (7..8, Assistant)]);
    let protected: Vec<_> = groups.iter().map(|group| group.protected).collect();
    assert_eq!(protected, [true, true, false, true, true]);
    assert_eq!(pairing_faults(&trace), []);
    assert_eq!(eviction_order(&trace, &groups), [2]);
}

#[test]
fn interleaved_calls_grow_together() {
    let trace =
        [calls(&["a"]), calls(&["b"]), result("a"), say(Role::User), result("b"), say(Role::Assistant)];
    let groups = groups(&trace, 0);
    assert_eq!(shape(&groups), [(0..5, GroupKind::Call), (5..6, GroupKind::Assistant)]);
    assert!(groups[0].protected, "it holds the newest user message");
    assert_eq!(eviction_order(&trace, &groups), [1]);
}

#[test]
fn pairing_faults_name_message_and_call() {
    let trace = [result("x"), calls(&["a", "b"]), result("a"), result("a"), say(Role::Tool), calls(&["c"])];
    let faults: Vec<String> = pairing_faults(&trace).iter().map(ToString::to_string).collect();
    let places: Vec<&str> = faults.iter().map(|fault| fault.split(';').next().unwrap_or_default()).collect();
    assert_eq!(
        places,
        [
            "message 0: a tool result for \"x\", which is no open call",
            "message 1: the call \"b\" has no result",
            "message 3: a tool result for \"a\", which is no open call",
            "message 4: a tool result for \"\", which is no open call",
            "message 5: the call \"c\" has no result",
        ]
    );
}

#[test]
fn tool_results_go_before_what_the_model_said_oldest_first() {
    let trace = [
        say(Role::User),
        say(Role::Assistant),
        calls(&["a"]),
        result("a"),
        say(Role::User),
        calls(&["b"]),
        result("b"),
        say(Role::User),
    ];
    let groups = groups(&trace, 0);
    let starts: Vec<_> = eviction_order(&trace, &groups).iter().map(|&at| groups[at].range.start).collect();
    assert_eq!(starts, [2, 5, 1]);
}

#[test]
fn the_ledger_keeps_sums_by_role() {
    let trace = [say(Role::System), say(Role::User), calls(&["a"]), result("a")];
    let mut tokens = 0;
    let mut ledger = Ledger::of(&trace, |_| {
        tokens += 1;
        tokens
    });
    ledger.push(Role::Tool, 10);
    assert_eq!(
        (ledger.system, ledger.user, ledger.assistant, ledger.tool, ledger.total()),
        (1, 2, 3, 14, 20)
    );
    assert_eq!(ledger.running().collect::<Vec<_>>(), [1, 3, 6, 10, 20]);
    assert_eq!((ledger.of_range(1..3), ledger.of_range(4..99), ledger.of_range(3..3)), (5, 10, 0));
    ledger.push(Role::User, usize::MAX);
    assert_eq!((ledger.total(), ledger.of_range(0..9)), (usize::MAX, usize::MAX));
}

#[test]
fn coverage_names_what_is_lost() {
    let pointer = Pointer::whole(PointerKey::new([1; 32]).mint(ContentHash::of(b"x")));
    let covered = |range, how| Covered { range, how };
    let all = [
        covered(6..10, Coverage::Verbatim),
        covered(0..4, Coverage::Condensed(pointer.clone())),
        covered(4..6, Coverage::Retrievable(pointer)),
    ];
    assert!(uncovered(10, &all).is_empty());
    assert_eq!(uncovered(12, &all), vec![10..12]);
    assert_eq!(uncovered(10, &all[..1]), vec![0..6]);
    assert_eq!(uncovered(5, &all[..1]), vec![0..5]);
    assert_eq!(uncovered(3, &[]), vec![0..3]);
    assert!(uncovered(0, &all).is_empty());
}

fn any_trace() -> impl Strategy<Value = Vec<Message>> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c")];
    let message = prop_oneof![
        Just(say(Role::System)),
        Just(say(Role::User)),
        Just(say(Role::Assistant)),
        Just(say(Role::Tool)),
        proptest::collection::vec(id.clone(), 1..4).prop_map(|ids| calls(&ids)),
        id.prop_map(result),
    ];
    proptest::collection::vec(message, 0..24)
}

proptest! {
    #[test]
    fn groups_tile_any_trace(trace in any_trace(), last in 0..30_usize) {
        let groups = groups(&trace, last);
        let mut at = 0;
        for group in &groups {
            prop_assert_eq!(group.range.start, at);
            prop_assert!(!group.range.is_empty());
            at = group.range.end;
        }
        prop_assert_eq!(at, trace.len());
    }

    #[test]
    fn dropping_evictable_groups_breaks_no_pair(trace in any_trace(), last in 0..30_usize, drop in any::<u64>()) {
        let groups = groups(&trace, last);
        let order = eviction_order(&trace, &groups);
        let dropped: Vec<usize> = order.iter().enumerate().filter(|(n, _)| drop >> (n % 64) & 1 == 1).map(|(_, &g)| g).collect();
        let kept: Vec<Message> = groups
            .iter()
            .enumerate()
            .filter(|(at, _)| !dropped.contains(at))
            .flat_map(|(_, group)| trace[group.range.clone()].to_vec())
            .collect();
        prop_assert!(pairing_faults(&kept).len() <= pairing_faults(&trace).len());
        let count = |messages: &[Message], role| messages.iter().filter(|message| message.role == role).count();
        for role in [Role::System, Role::User] {
            prop_assert_eq!(count(&kept, role), count(&trace, role));
        }
        let newest = trace.len().saturating_sub(last);
        prop_assert!(kept.ends_with(&trace[newest..]));
    }
}
