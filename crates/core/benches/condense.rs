//! Condensing beside the naive way, which keeps the beginning and forgets the rest.
//!
//! `cargo bench -p larder-core --bench condense`; the counts of the original are cached after the first round, as
//! they are in a pack, and made anew in `cold`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use divan::{Bencher, black_box};
use larder_core::content::{CondenseRequest, Condensed, ContentType, condense};
use larder_core::pointer::PointerKey;
use larder_core::tokens::Counter;

const MEBIBYTE: usize = 1 << 20;
const TARGET: usize = 2_000;

fn main() {
    divan::main();
}

/// Prose with varied words, a number here and there, and a paragraph every five sentences.
fn prose(bytes: usize) -> String {
    const WORDS: [&str; 32] = [
        "harbour",
        "the",
        "library",
        "of",
        "market",
        "and",
        "orchard",
        "in",
        "railway",
        "to",
        "theatre",
        "a",
        "observatory",
        "was",
        "winter",
        "with",
        "letter",
        "for",
        "captain",
        "on",
        "garden",
        "that",
        "morning",
        "by",
        "window",
        "from",
        "river",
        "had",
        "stone",
        "her",
        "silence",
        "his",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut text = String::with_capacity(bytes + 200);
    while text.len() < bytes {
        for _ in 0..18 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(WORDS[(state >> 59) as usize]);
            if state >> 40 & 15 == 0 {
                text.push_str(&format!("{}", state >> 52));
            }
            text.push(' ');
        }
        text.push_str(if state >> 33 & 3 == 0 { "end.\n\n" } else { "end. " });
    }
    text
}

fn run(text: &str, content_type: ContentType, counter: &Counter, query: Option<&str>) -> Option<Condensed> {
    let key = PointerKey::new([1; 32]);
    condense(&CondenseRequest { text, content_type, target: TARGET, query, pins: &[], counter, key: &key })
        .ok()
}

#[divan::bench(args = [ContentType::Prose, ContentType::Markdown, ContentType::ContextDoc, ContentType::Generic])]
fn one_mebibyte_to_2000_tokens(bencher: Bencher<'_, '_>, content_type: ContentType) {
    let (text, counter) = (prose(MEBIBYTE), Counter::o200k());
    bencher.bench_local(|| run(black_box(&text), content_type, &counter, None));
}

#[divan::bench]
fn one_mebibyte_with_a_query(bencher: Bencher<'_, '_>) {
    let (text, counter) = (prose(MEBIBYTE), Counter::o200k());
    bencher.bench_local(|| {
        run(black_box(&text), ContentType::Prose, &counter, Some("the captain's letter in winter"))
    });
}

#[divan::bench]
fn one_mebibyte_cold(bencher: Bencher<'_, '_>) {
    let text = prose(MEBIBYTE);
    Counter::o200k().count("");
    bencher
        .with_inputs(Counter::o200k)
        .bench_local_values(|counter| run(black_box(&text), ContentType::Prose, &counter, None));
}

#[divan::bench]
fn naive_one_mebibyte_cold(bencher: Bencher<'_, '_>) {
    let text = prose(MEBIBYTE);
    Counter::o200k().count("");
    bencher.with_inputs(Counter::o200k).bench_local_values(|counter| {
        let all = counter.count(black_box(&text));
        (all, counter.prefix(&text, TARGET).to_owned())
    });
}

#[divan::bench(args = [1, 4, 16])]
fn prose_grows_linearly(bencher: Bencher<'_, '_>, mebibytes: usize) {
    let (text, counter) = (prose(mebibytes * MEBIBYTE), Counter::o200k());
    bencher.bench_local(|| run(black_box(&text), ContentType::Prose, &counter, None));
}

/// A page of about `bytes` bytes: paragraphs of an article, each with a script behind it.
fn page(bytes: usize) -> String {
    let paragraph =
        |text: &str| format!("<p class=\"body\">{text}</p><script>track(\"{}\")</script>\n", text.len());
    let body: String = prose(bytes * 9 / 10).split("\n\n").map(paragraph).collect();
    format!(
        "<!DOCTYPE html><html><head><title>Page</title></head><body><nav><a href=\"/\">Home</a></nav><article>{body}</article></body></html>"
    )
}

#[divan::bench(args = [64, 256, 1_024])]
fn html_kibibytes_to_2000_tokens(bencher: Bencher<'_, '_>, kibibytes: usize) {
    let (text, counter) = (page(kibibytes << 10), Counter::o200k());
    bencher.bench_local(|| run(black_box(&text), ContentType::Html, &counter, None));
}

#[divan::bench]
fn html_one_mebibyte_cold(bencher: Bencher<'_, '_>) {
    let text = page(MEBIBYTE);
    Counter::o200k().count("");
    bencher
        .with_inputs(Counter::o200k)
        .bench_local_values(|counter| run(black_box(&text), ContentType::Html, &counter, None));
}
