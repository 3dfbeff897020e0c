//! Records of requests to show, count and send on.

use larder_core::pack::Rendition;
use larder_core::policy::{BudgetDecision, BudgetStatus};
use larder_proxy::record::{
    AnsweredBy, Bill, Compaction, Endpoint, Outcome, Rehydration, RequestRecord, RequestSummary, Times,
    Tokens, WindowPart, WindowTotals,
};
use larder_proxy::wire::ApiDialect;
use larder_text::price::Usd;
use larder_text::provider::Provider;
use larder_text::time::Timestamp;
use larder_text::usage::Usage;

/// 2026-11-22, 08:00.
pub const NOW: Timestamp = Timestamp::from_millis(1_795_334_400_000);

/// A part of a window.
pub fn part(slot: &str, label: &str, rendition: Rendition, tokens: u64, original_tokens: u64) -> WindowPart {
    WindowPart {
        slot: slot.to_owned().into(),
        role: "tool".into(),
        label: label.to_owned(),
        rendition,
        tokens,
        original_tokens,
        reason: "over entry cap".into(),
        pointer: None,
        message: Some(0),
        epoch: 0,
        items: 1,
    }
}

/// The `number`th request of a user: 2,340 tokens came, 1,440 were sent.
pub fn exchange(user: &str, number: u64) -> RequestRecord {
    let head = RequestSummary {
        id: format!("019aa5f0-3c2b-7d4e-8f10-{number:012}"),
        time: Timestamp::from_millis(NOW.as_millis() + number * 1_000),
        user: user.to_owned(),
        key: None,
        session: Some("session-1".to_owned()),
        branch: None,
        traceparent: None,
        endpoint: Endpoint::Generate(ApiDialect::Chat),
        route: None,
        model: "model-1".to_owned(),
        answered_by: Some(AnsweredBy {
            name: "main".to_owned(),
            id: "model-1".to_owned(),
            server: None,
            provider: Provider::OpenAi,
        }),
        model_is_known: true,
        recipe: None,
        run: None,
        stream: true,
        outcome: Outcome::Ok,
        status: 200,
        error: None,
        revision: Some(0),
        unknown_window: false,
        decision: Some(BudgetDecision {
            status: BudgetStatus::NeedsSummary,
            reason: "a tool result is over its cap".to_owned(),
            deficit: 0,
            prompt_tokens: 0,
            prompt_budget: 0,
            response_reserve: 0,
            emergency_floor: 100,
            largest: Vec::new(),
            dry_run: false,
        }),
        round_trips: None,
        left_alone: Vec::new(),
        ignored: Vec::new(),
        unpriced: Vec::new(),
        tokens: Tokens {
            system: 100,
            tools: 60,
            messages: 1_280,
            before: 2_340,
            after: 1_440,
            budget: 2_000,
            reserve: 200,
            output: 1_000,
        },
        usage: Some(Usage { input: 1_450, cached_input: 1_000, output: 50, ..Usage::default() }),
        usage_estimated: false,
        bill: Some(Bill { cost: Usd::from_picos(2_000_000_000), without: Usd::from_picos(3_500_000_000) }),
        models: Vec::new(),
        violations: 0,
        times: Times { total_us: 900_000, upstream_us: 898_000, policy_us: 1_500 },
        shape: WindowTotals::default(),
    };
    let mut second = part("messages", "search", Rendition::Pointer, 40, 300);
    let pointer: larder_text::pointer::Pointer = "lp1-0123456789abc-0a1b2c".parse().unwrap();
    second.pointer = Some(pointer.clone());
    second.epoch = 1;
    let mut first = part("messages", "read_file", Rendition::Condensed, 200, 800);
    first.pointer = Some(pointer.clone());
    let window = vec![
        part("system", "system prompt", Rendition::Whole, 100, 100),
        first,
        second,
        part("messages", "list_files", Rendition::Absent, 0, 500),
        part("messages", "user", Rendition::Whole, 1_000, 1_000),
    ];
    let compactions = vec![Compaction {
        epoch: 1,
        message: 2,
        label: "search".to_owned(),
        from: Rendition::Whole,
        to: Rendition::Pointer,
        before: 300,
        after: 40,
        reason: "slot over cap".to_owned(),
        pointer: Some(pointer),
        content_type: "generic".to_owned(),
    }];
    let rehydrations = vec![Rehydration {
        pointer: "lp1-0123456789abc-0a1b2c".to_owned(),
        found: true,
        bytes: 120,
        tokens: 30,
        tool: "search".to_owned(),
        spent_tokens: 900,
        cost: Some(Usd::from_picos(400_000_000)),
    }];
    RequestRecord::new(head, window, compactions, rehydrations)
}

/// A request in Anthropic's format to the model `main`, in which a tool has said more than any budget holds.
pub fn flooded() -> String {
    let lines: String = (0..8_000).map(|line| format!("line {line} took {} ms\n", line * 7 % 97)).collect();
    serde_json::json!({"model": "main", "max_tokens": 100, "messages": [
        {"role": "user", "content": "Which line is the slowest?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "read_log", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": lines}]},
        {"role": "assistant", "content": "I shall look."},
        {"role": "user", "content": "Go on."}],
        "tools": [{"name": "read_log", "input_schema": {"type": "object"}}]})
    .to_string()
}
