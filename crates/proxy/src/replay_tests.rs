//! Replays of small runs in every format: what is whole costs what it costs anyway, and what is hidden is paid for.

use serde_json::json;

use larder_core::policy::{ModelProfile, PolicySettings};

use super::*;
use crate::wire::ApiDialect;

const FLOOD: usize = 400;

/// Lines, of which the agent later needs the one in the middle.
fn listing() -> String {
    (0..FLOOD).map(|at| format!("drwxr-x--- folder_{at} belongs to nobody in particular\n")).collect()
}

/// A run in a format: one call with a flood as result, and a message that uses a line of it.
fn run(dialect: ApiDialect) -> RecordedRun {
    let (arguments, needed) = (r#"{"command":"ls -l"}"#, "I look into folder_211 now.");
    let messages = match dialect {
        ApiDialect::Chat => vec![
            json!({"role": "user", "content": "Find what nobody needs."}),
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": arguments}}]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": listing()}),
            json!({"role": "assistant", "content": needed}),
        ],
        ApiDialect::Converse => vec![
            json!({"role": "user", "content": [{"text": "Find what nobody needs."}]}),
            json!({"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "c1", "name": "shell", "input": {"command": "ls -l"}}}]}),
            json!({"role": "user", "content": [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": listing()}]}}]}),
            json!({"role": "assistant", "content": [{"text": needed}]}),
        ],
        ApiDialect::Messages | ApiDialect::Invoke => vec![
            json!({"role": "user", "content": "Find what nobody needs."}),
            json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "ls -l"}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": listing()}]}),
            json!({"role": "assistant", "content": needed}),
        ],
        ApiDialect::Responses => vec![
            json!({"role": "user", "content": "Find what nobody needs."}),
            json!({"type": "function_call", "call_id": "c1", "name": "shell", "arguments": arguments}),
            json!({"type": "function_call_output", "call_id": "c1", "output": listing()}),
            json!({"role": "assistant", "content": needed}),
        ],
    };
    let messages: Vec<String> = messages.iter().map(ToString::to_string).collect();
    RecordedRun::new(dialect, messages.iter().map(String::as_str)).unwrap()
}

fn replayed(dialect: ApiDialect, entry_cap: usize, rehydrates: bool) -> NetCost {
    let settings = PolicySettings { entry_cap: Some(entry_cap), ..PolicySettings::default() };
    let model = ModelProfile { window: 200_000, input_limit: None, max_output: None, cache: None };
    let policy = ContextBudgetPolicy::from_settings(&settings, &model);
    Replayer::new(Counter::o200k(), PointerKey::new([7; 32])).replay(&run(dialect), &policy, rehydrates)
}

#[test]
fn what_is_sent_whole_costs_what_it_costs_without_a_policy() {
    for dialect in ApiDialect::ALL {
        for (cap, rehydrates) in [(100_000, true), (96, false)] {
            let net = replayed(dialect, cap, rehydrates);
            assert_eq!((net.turns, net.refused, net.needs, net.in_view), (2, 0, 1, 1), "{dialect:?}");
            assert_eq!((net.cost, net.tool), (net.raw, 0.0), "{dialect:?}");
            assert!(net.is_harmless() && net.prefix.0 == net.prefix.1);
        }
    }
}

#[test]
fn a_need_that_is_hidden_is_read_back_and_paid_for() {
    for dialect in ApiDialect::ALL {
        let net = replayed(dialect, 96, true);
        assert_eq!((net.needs, net.in_view, net.turns_reading_back), (1, 0, 1), "{dialect:?}");
        assert_eq!((net.unseen[0].text.as_str(), net.unseen[0].tool.as_str()), ("folder_211", "shell"));
        assert!(!net.is_harmless());
        // The window without the result, 2,000 tokens of the result, and the words of the call.
        assert!(net.cost > LONGEST_READING as f64 + READING && net.cost < net.raw, "{net:?}");
        assert!(net.tool > 100.0, "the tool is offered: {net:?}");
    }
}

#[test]
fn sums_are_sums() {
    let one = replayed(ApiDialect::Chat, 96, true);
    let mut two = one.clone();
    two += &one;
    assert_eq!((two.runs, two.turns, two.needs), (2, 4, 2));
    assert!((two.share() - one.share()).abs() < 1e-12);
}
