//! Packs 10,000 one-line parts into 3,000 tokens: with cached counts, cold, and naively.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use larder_core::pack::{CallBudget, CallFraming, PackRequest, PackStep, Packing, Part, Slot};
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

fn main() {
    divan::main();
}

fn request(counter: &Counter) -> PackRequest {
    let parts = (0..10_000)
        .map(|at| {
            let text = format!(
                "item {at}: the quick brown fox number {} jumps over the lazy dog at {}:{:02} and goes home",
                at * 7919 % 10_007,
                at % 24,
                at % 60
            );
            let mut part = Part::new(format!("i{at}"), "items", text);
            part.priority = u8::try_from(at % 5 * 20).unwrap_or(0);
            part
        })
        .collect();
    PackRequest {
        slots: vec![Slot::new("items")],
        parts,
        budget: CallBudget {
            total: 3_000,
            window: 100_000,
            output: 0,
            response_reserve: 0,
            emergency_floor: 0,
            declared: None,
        },
        framing: CallFraming::for_call(counter, &[], None),
        query: None,
        by_model: false,
        trigger: None,
        layer: None,
    }
}

fn pack(request: &PackRequest, counter: &Counter) -> usize {
    let key = PointerKey::new([1; 32]);
    match Packing::new(request, counter, &key).expect("well formed").step() {
        PackStep::Done(pack) => pack.receipt.total,
        _ => 0,
    }
}

#[divan::bench]
fn cached(bencher: divan::Bencher) {
    let counter = Counter::o200k();
    let request = request(&counter);
    assert!(pack(&request, &counter) >= 2_940, "98 % of the budget");
    bencher.bench(|| pack(&request, &counter));
}

#[divan::bench]
fn cold(bencher: divan::Bencher) {
    Counter::o200k().count("load the vocabulary");
    bencher
        .with_inputs(|| {
            let counter = Counter::o200k();
            (request(&counter), counter)
        })
        .bench_values(|(request, counter)| pack(&request, &counter));
}

/// Counts everything and takes parts by priority until the next does not fit; no receipt, and nothing is recoverable.
#[divan::bench]
fn naive_greedy(bencher: divan::Bencher) {
    let counter = Counter::o200k();
    let request = request(&counter);
    bencher.bench(|| naive(&request, &counter));
}

#[divan::bench]
fn naive_greedy_cold(bencher: divan::Bencher) {
    Counter::o200k().count("load the vocabulary");
    bencher
        .with_inputs(|| {
            let counter = Counter::o200k();
            (request(&counter), counter)
        })
        .bench_values(|(request, counter)| naive(&request, &counter));
}

fn naive(request: &PackRequest, counter: &Counter) -> String {
    let mut order: Vec<(&Part, usize)> =
        request.parts.iter().map(|part| (part, counter.count(&part.text))).collect();
    order.sort_by_key(|(part, _)| std::cmp::Reverse(part.priority));
    let mut left = 3_000usize;
    let mut text = String::new();
    for (part, tokens) in order {
        if tokens > left {
            break;
        }
        left -= tokens;
        text.push_str(&part.text);
    }
    text
}
