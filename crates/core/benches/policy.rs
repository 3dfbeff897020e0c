//! Decides a conversation of 200 kB, as a gateway does for each request.
//!
//! `again`: counts and renditions are cached; `grown`: one new result of 4 kB; `cold`: nothing is cached. `crowded`
//! is `again` in a window that has needed an epoch.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use divan::Bencher;
use larder_core::policy::{
    ContextBudgetPolicy, Conversation, ConversationItem, DecidedWindow, DecisionContext, FixedTokens,
    ItemCall, Memo, ModelProfile, PointerReader, PolicySettings,
};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::PointerKey;
use larder_text::price::CacheWrites;
use larder_text::tokens::Counter;

fn main() {
    divan::main();
}

/// A user's request, then calls with their results.
fn texts() -> Vec<String> {
    let mut texts =
        vec!["You help with a repository.".to_owned(), "Find out why the build fails.".to_owned()];
    for step in 0..100 {
        texts.push(format!("I will look at module {step} next, since it may hold the reason."));
        let line = |at: usize| {
            format!("{}: let value_{} = compute({}, {step});\n", at + 1, at * 7919 % 1009, at * 31)
        };
        texts.push((0..50).map(line).collect());
    }
    texts
}

struct Known {
    texts: Vec<(String, ContentHash, usize)>,
    ids: Vec<String>,
    counter: Counter,
    key: PointerKey,
}

impl Known {
    fn new() -> Self {
        let counter = Counter::o200k();
        let texts: Vec<_> = texts()
            .into_iter()
            .map(|text| {
                let (hash, tokens) = (ContentHash::new(text.as_bytes()), counter.count(&text));
                (text, hash, tokens)
            })
            .collect();
        let ids = (0..texts.len()).map(|at| format!("call_{at}")).collect();
        Self { texts, ids, counter, key: PointerKey::new([1; 32]) }
    }

    fn decide(&self, until: usize, policy: &ContextBudgetPolicy, memo: &Memo) -> DecidedWindow {
        let calls: Vec<[ItemCall<'_>; 1]> = self
            .ids
            .iter()
            .map(|id| {
                [ItemCall {
                    id: id.into(),
                    name: "read_file".into(),
                    arguments: "{\"path\": \"src/main.rs\"}".into(),
                }]
            })
            .collect();
        let item = |at: usize| {
            let (text, hash, tokens) = &self.texts[at];
            let role = match at {
                0 => Role::System,
                1 => Role::User,
                at if at % 2 == 0 => Role::Assistant,
                _ => Role::Tool,
            };
            ConversationItem {
                role,
                text,
                texts: &[],
                hash: *hash,
                tokens: *tokens,
                sampled: false,
                opaque_tokens: 8,
                opaque: &[],
                calls: if role == Role::Assistant { &calls[at] } else { &[] },
                result_of: (role == Role::Tool).then(|| self.ids[at - 1].as_str()),
                is_error: false,
                summarizable: true,
                spared: false,
                rehydrated: false,
            }
        };
        let items: Vec<ConversationItem<'_>> = (0..until).map(item).collect();
        let fixed = FixedTokens { system: 0, tools: 500, framing: 3, rehydrate_tool: 70 };
        let conversation = Conversation {
            fixed,
            items: &items,
            max_output: None,
            reader: PointerReader::Larder,
            needs_tool: false,
            refers_above: true,
            writes: CacheWrites::Usual,
        };
        policy.decide(&conversation, DecisionContext { counter: &self.counter, key: &self.key, memo })
    }
}

fn policy(window: usize) -> ContextBudgetPolicy {
    let profile = ModelProfile { window, input_limit: None, max_output: None, cache: None };
    ContextBudgetPolicy::from_settings(&PolicySettings::default(), &profile)
}

#[divan::bench]
fn again(bencher: Bencher) {
    let (known, memo, policy) = (Known::new(), Memo::default(), policy(128_000));
    let bytes: usize = known.texts.iter().map(|(text, ..)| text.len()).sum();
    assert!(bytes > 200_000, "{bytes} bytes");
    bencher.bench_local(|| known.decide(known.texts.len(), &policy, &memo));
}

#[divan::bench]
fn crowded(bencher: Bencher) {
    let (known, memo, policy) = (Known::new(), Memo::default(), policy(16_000));
    assert!(known.decide(known.texts.len(), &policy, &memo).epoch.number > 0);
    bencher.bench_local(|| known.decide(known.texts.len(), &policy, &memo));
}

#[divan::bench]
fn grown(bencher: Bencher) {
    let (known, policy) = (Known::new(), policy(128_000));
    let until = known.texts.len();
    bencher
        .with_inputs(|| {
            let memo = Memo::default();
            known.decide(until - 2, &policy, &memo);
            memo
        })
        .bench_local_values(|memo| known.decide(until, &policy, &memo));
}

#[divan::bench(sample_count = 10)]
fn cold(bencher: Bencher) {
    let (known, policy) = (Known::new(), policy(128_000));
    bencher
        .with_inputs(Memo::default)
        .bench_local_values(|memo| known.decide(known.texts.len(), &policy, &memo));
}
