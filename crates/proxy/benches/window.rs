//! Reads and decides a request with a large new tool result, as the gateway does, with the results of
//! `evals/gateway/overhead.py`: `cargo bench -p larder-proxy --bench window`.
//!
//! `read`: the body alone; `new`: nothing is cached; `again`: counts and renditions are.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use std::cell::RefCell;
use std::collections::HashMap;

use bytes::Bytes;
use divan::{Bencher, black_box};
use larder_core::policy::{ContextBudgetPolicy, Memo, ModelProfile, PolicySettings};
use larder_proxy::window::{LastRenditions, WindowBuilder};
use larder_proxy::wire::{self, ApiDialect};
use larder_text::hash::ContentHash;
use larder_text::pointer::PointerKey;
use larder_text::price::CacheWrites;
use larder_text::tokens::Counter;
use serde_json::json;

fn main() {
    divan::main();
}

const RESULTS: [&str; 3] = ["json-1", "json-5", "diff-1"];

fn records(size: usize) -> String {
    let row = |n: usize| {
        format!(
            "{{\"id\": \"new-{n}\", \"path\": \"src/module_{}/file_{}.rs\", \"line\": {}, \"score\": {}, \"text\": \"the crane at \
             gate {} lifted crate {} from barge {}\", \"ok\": {}}}",
            n % 89,
            n % 613,
            n * 7 % 1999,
            (n * 31 % 1000) as f64 / 1000.0,
            n % 97,
            n * 17 % 10007,
            n % 13,
            !n.is_multiple_of(50)
        )
    };
    format!("[{}]", (0..size / 170).map(row).collect::<Vec<_>>().join(", "))
}

fn diff(size: usize) -> String {
    let mut text = String::with_capacity(size + 4_000);
    for n in 0.. {
        if text.len() >= size {
            break;
        }
        let path = format!("src/module_{}/file_{n}.rs", n % 89);
        let (old, new) = (n * 7919 + 4096, n * 104_729 + 65_536);
        text.push_str(&format!(
            "diff --git a/{path} b/{path}\nindex {old:07x}..{new:07x} 100644\n--- a/{path}\n+++ b/{path}\n"
        ));
        for at in 0..10 {
            let line = 10 + 40 * at;
            text.push_str(&format!(
                "@@ -{line},4 +{},5 @@ fn lift_{n}_{at}(gate: u32) -> Crate {{\n     let crate_{at} = barge.take({});\n\
                 -    gate.lower(crate_{at}, {});\n+    // new: crates of barge {} are weighed first.\n\
                 +    let weight = scales.weigh(&crate_{at}, {});\n     log.note(\"gate {} lifted crate {}\");\n     Ok(())\n",
                line + at,
                n * 17 % 10007,
                line % 97,
                n % 13,
                n * 31 % 1000,
                line % 97,
                n * line % 10007
            ));
        }
    }
    text
}

fn body(result: &str) -> Bytes {
    let content = match result {
        "json-1" => records(1_000_000),
        "json-5" => records(5_000_000),
        _ => diff(1_000_000),
    };
    let call = json!({"id": "call_0", "type": "function", "function": {"name": "search", "arguments": "{}"}});
    let definition = json!({"name": "search", "parameters": {"type": "object"}});
    let request = json!({"model": "gpt-4o", "messages": [
        {"role": "user", "content": "Which crates did the crane at gate 12 lift?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": content},
    ], "tools": [{"type": "function", "function": definition}]});
    request.to_string().into()
}

struct Gateway {
    policy: ContextBudgetPolicy,
    key: PointerKey,
    memo: Memo,
    counts: RefCell<HashMap<ContentHash, usize>>,
    counter: Counter,
}

impl Gateway {
    fn new() -> Self {
        let model =
            ModelProfile { window: 128_000, input_limit: None, max_output: Some(16_384), cache: None };
        let policy = ContextBudgetPolicy::from_settings(&PolicySettings::default(), &model);
        let key = PointerKey::new([1; 32]);
        Self { policy, key, memo: Memo::default(), counts: RefCell::default(), counter: Counter::o200k() }
    }

    fn send(&self, body: &Bytes) -> Bytes {
        let request = wire::read(ApiDialect::Chat, std::str::from_utf8(body).unwrap()).unwrap();
        let builder = WindowBuilder {
            memo: &self.memo,
            counts: &|key, count| {
                let known = self.counts.borrow().get(&key).copied();
                known.unwrap_or_else(|| {
                    let count = count();
                    self.counts.borrow_mut().insert(key, count);
                    count
                })
            },
            policy: &self.policy,
            counter: &self.counter,
            key: &self.key,
            last: &LastRenditions::default(),
            rehydrates: true,
            holds_pointers: false,
            body,
            writes: CacheWrites::Usual,
            counts_only: false,
            transcribes: true,
            is_stored: &|_| false,
            ahead: None,
        };
        builder.decide(&request, None).outcome.ok().unwrap().body
    }
}

#[divan::bench(args = RESULTS)]
fn read(bencher: Bencher<'_, '_>, result: &str) {
    let body = body(result);
    bencher.bench_local(|| {
        let request = wire::read(ApiDialect::Chat, std::str::from_utf8(black_box(&body)).unwrap()).unwrap();
        request.items.iter().map(|item| item.hash().as_bytes()[0]).collect::<Vec<_>>()
    });
}

#[divan::bench(args = RESULTS)]
fn new(bencher: Bencher<'_, '_>, result: &str) {
    let body = body(result);
    Gateway::new().counter.count("");
    bencher.with_inputs(Gateway::new).bench_local_refs(|gateway| gateway.send(black_box(&body)));
}

#[divan::bench(args = RESULTS)]
fn again(bencher: Bencher<'_, '_>, result: &str) {
    let (body, gateway) = (body(result), Gateway::new());
    gateway.send(&body);
    bencher.bench_local(|| gateway.send(black_box(&body)));
}
