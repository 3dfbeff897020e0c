//! Condensing compared with the naive approach, which keeps the beginning and drops the rest.
//!
//! `cargo bench -p larder-condense --bench condense`; token counts of the original are cached after the first round,
//! as they are in a pack, and recomputed in `cold`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use divan::{Bencher, black_box};
use larder_condense::{
    CondenseRequest, Condensed, ContentType, KnownText, ReaderView, condense, condense_in_view,
};
use larder_text::hash::ContentHash;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

const MEBIBYTE: usize = 1 << 20;
const TARGET: usize = 2_000;

fn main() {
    divan::main();
}

/// Prose with varied words, an occasional number, and a paragraph every five sentences.
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

/// A server's log: two hundred message formats, values of many kinds, and an occasional error.
fn log(bytes: usize) -> String {
    let words = prose(8_192);
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut text = String::with_capacity(bytes + 200);
    let mut line = 0_usize;
    while text.len() < bytes {
        let form = line * line % 211;
        let level = if line.is_multiple_of(997) { "ERROR" } else { "INFO" };
        let said = &words[form..form + 6].join(" ");
        text.push_str(&format!(
            "2026-05-01T12:{:02}:{:02}.{:03}Z {level} worker-{} {said} id={:08x} from 10.0.{}.{} in {} ms\n",
            line / 60 % 60,
            line % 60,
            line % 1_000,
            line % 16,
            line * 2_654_435_761 % 4_294_967_296,
            line % 256,
            line / 7 % 256,
            line % 90
        ));
        line += 1;
    }
    text
}

/// A diff of many files with hunks of twenty lines.
fn diff(bytes: usize) -> String {
    let words = prose(bytes);
    let mut text = String::with_capacity(bytes * 2);
    for (number, chunk) in words.split_whitespace().collect::<Vec<_>>().chunks(200).enumerate() {
        if number.is_multiple_of(3) {
            text.push_str(&format!("diff --git a/src/f{number}.rs b/src/f{number}.rs\n--- a/src/f{number}.rs\n+++ b/src/f{number}.rs\n"));
        }
        text.push_str(&format!("@@ -{number},12 +{number},14 @@\n"));
        for (line, said) in chunk.chunks(10).enumerate() {
            text.push(b" +-+- +"[line % 7].into());
            text.push_str(&said.join(" "));
            text.push('\n');
        }
    }
    text.truncate(text.floor_char_boundary(bytes));
    text
}

fn cold(bencher: Bencher<'_, '_>, text: &str, content_type: ContentType) {
    Counter::o200k().count("");
    bencher
        .with_inputs(Counter::o200k)
        .bench_local_values(|counter| run(black_box(text), content_type, &counter, None));
}

#[divan::bench]
fn one_mebibyte_of_a_log_cold(bencher: Bencher<'_, '_>) {
    cold(bencher, &log(MEBIBYTE), ContentType::Log);
}

#[divan::bench]
fn one_mebibyte_of_a_diff_cold(bencher: Bencher<'_, '_>) {
    cold(bencher, &diff(MEBIBYTE), ContentType::Diff);
}

/// A diff of many files with ten small hunks each.
fn small_hunks(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 4_000);
    for file in 0.. {
        if text.len() >= bytes {
            break;
        }
        let path = format!("src/module_{}/file_{file}.rs", file % 89);
        text.push_str(&format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"));
        for at in 0..10 {
            let line = 10 + 40 * at;
            text.push_str(&format!(
                "@@ -{line},4 +{},5 @@ fn lift_{file}_{at}(gate: u32) -> Crate {{\n     let crate_{at} = barge.take({});\n\
                 -    gate.lower(crate_{at}, {at});\n+    // crates of barge {} are weighed first.\n\
                 +    let weight = scales.weigh(&crate_{at}, {});\n     log.note(\"gate {at} lifted crate {}\");\n     Ok(())\n",
                line + at,
                file * 17 % 10_007,
                file % 13,
                file * 31 % 1_000,
                file * line % 10_007
            ));
        }
    }
    text
}

/// As the gateway condenses a new result: counted by samples, with a query, and without probes.
fn as_the_gateway_does(bencher: Bencher<'_, '_>, text: &str, content_type: ContentType) {
    let (counter, key) = (Counter::o200k(), PointerKey::new([1; 32]));
    let known = Some(KnownText { hash: ContentHash::new(text.as_bytes()), tokens: counter.sampled(text) });
    let query = Some("search\n{}\nWhich crates did the crane at gate 12 lift?");
    bencher.with_inputs(Counter::o200k).bench_local_values(|counter| {
        let (text, pins) = (black_box(text), &[][..]);
        let counter = &counter;
        let request = CondenseRequest { text, content_type, target: TARGET, query, pins, counter, key: &key };
        condense_in_view(
            &request,
            ReaderView { markers_known: true, known, skip_probes: true, ..ReaderView::default() },
        )
    });
}

#[divan::bench]
fn gateway_one_mebibyte_of_a_diff(bencher: Bencher<'_, '_>) {
    as_the_gateway_does(bencher, &small_hunks(MEBIBYTE), ContentType::Diff);
}

#[divan::bench]
fn gateway_one_mebibyte_of_json(bencher: Bencher<'_, '_>) {
    as_the_gateway_does(bencher, &rows(MEBIBYTE), ContentType::Json);
}

#[divan::bench(args = [1, 4, 16])]
fn logs_grow_linearly(bencher: Bencher<'_, '_>, mebibytes: usize) {
    let (text, counter) = (log(mebibytes * MEBIBYTE), Counter::o200k());
    bencher.bench_local(|| run(black_box(&text), ContentType::Log, &counter, None));
}

/// Rows as a shop's API would return them.
fn rows(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 400);
    text.push('[');
    for n in 0_u64.. {
        if text.len() >= bytes {
            break;
        }
        let id = n.wrapping_mul(6_364_136_223_846_793_005) >> 40;
        text.push_str(&format!(
            "{}{{\"order_id\": \"#W{id:08}\", \"user\": {{\"name\": \"person {}\", \"country\": \"USA\"}}, \"status\": \"{}\", \
             \"total\": {}.{:02}, \"items\": [{{\"sku\": {}, \"name\": \"lamp\"}}, {{\"sku\": {}, \"name\": \"desk\"}}], \
             \"note\": \"left at the door of the neighbour, as agreed\"}}",
            if n == 0 { "" } else { ", " }, n % 997, ["pending", "delivered"][n as usize % 2], id % 900, n % 100, id / 3, id / 7
        ));
    }
    text.push(']');
    text
}

/// About 37 bytes per token: logs and base64 images dominated by one repeated letter.
fn sparse(bytes: usize) -> String {
    let row = |n: usize| format!("{{\"id\": {n}, \"data\": \"{}\"}}", "A".repeat(1_200));
    format!("[{}]", (0..bytes / 1_224).map(row).collect::<Vec<_>>().join(",\n"))
}

fn json(text: &str, target: usize, counter: &Counter) -> Option<Condensed> {
    let (key, content_type) = (PointerKey::new([1; 32]), ContentType::Json);
    condense(&CondenseRequest { text, content_type, target, query: None, pins: &[], counter, key: &key }).ok()
}

#[divan::bench]
fn json_one_mebibyte_to_2000_tokens_cold(bencher: Bencher<'_, '_>) {
    let text = rows(MEBIBYTE);
    Counter::o200k().count("");
    bencher
        .with_inputs(Counter::o200k)
        .bench_local_values(|counter| json(black_box(&text), TARGET, &counter));
}

/// 5 MB to 237 tokens (R3-5.18).
#[divan::bench]
fn json_five_megabytes_to_237_tokens_cold(bencher: Bencher<'_, '_>) {
    let text = sparse(5_000_000);
    Counter::o200k().count("");
    bencher.with_inputs(Counter::o200k).bench_local_values(|counter| json(black_box(&text), 237, &counter));
}

#[divan::bench(args = [1, 10])]
fn json_grows_linearly(bencher: Bencher<'_, '_>, mebibytes: usize) {
    let text = rows(mebibytes * MEBIBYTE);
    Counter::o200k().count("");
    bencher
        .with_inputs(Counter::o200k)
        .bench_local_values(|counter| json(black_box(&text), TARGET, &counter));
}

/// Rust source: small functions with comments, nested statements and an occasional test.
fn source(bytes: usize) -> String {
    let mut text = String::from("//! Sizes.\n\nuse std::fmt;\n\n");
    let words = prose(bytes / 4);
    let mut words = words.split_whitespace().cycle();
    let mut n = 0;
    while text.len() < bytes {
        let mut word = || words.next().unwrap_or("word").trim_matches('.').to_owned();
        text.push_str(&format!(
            "/// Says what {} {} {}.\npub fn {}_{n}(rows: &[u32], {}: usize) -> Option<u32> {{\n    let mut {} = 0;\n    for row in rows {{\n        if *row > {n} {{\n            {} += row;\n        }}\n    }}\n    println!(\"{} {} {{}}\", rows.len());\n    rows.get({n}).copied()\n}}\n\n",
            word(), word(), word(), word(), word(), word(), word(), word(), word()
        ));
        n += 1;
    }
    text
}

/// A conversation about some work, as lines or as JSON.
fn conversation(bytes: usize, json: bool) -> String {
    let words = prose(bytes);
    let said: Vec<&str> = words.split("\n\n").collect();
    let turns = said.iter().enumerate().map(|(n, said)| {
        let role = ["user", "assistant"][n % 2];
        if json {
            format!("{{\"role\":\"{role}\",\"content\":\"{said}\"}}")
        } else {
            format!("{role}: {said}\n")
        }
    });
    let turns: Vec<String> = turns.collect();
    if json { format!("[{}]", turns.join(",")) } else { turns.concat() }
}

/// Up to 128 KiB code is parsed into a syntax tree; beyond that it is read by indentation.
#[divan::bench(args = [32, 128, 129, 1_024, 10_240])]
fn kibibytes_of_code_cold(bencher: Bencher<'_, '_>, kibibytes: usize) {
    let text = source(kibibytes << 10);
    let text = &text[..text.floor_char_boundary(kibibytes << 10)];
    Counter::o200k().count("");
    bencher
        .with_inputs(Counter::o200k)
        .bench_local_values(|counter| run(black_box(text), ContentType::Code, &counter, None));
}

#[divan::bench]
fn one_mebibyte_of_code_with_a_query_cold(bencher: Bencher<'_, '_>) {
    let text = source(MEBIBYTE);
    Counter::o200k().count("");
    bencher.with_inputs(Counter::o200k).bench_local_values(|counter| {
        run(black_box(&text), ContentType::Code, &counter, Some("the captain's letter in winter"))
    });
}

#[divan::bench(args = [false, true])]
fn one_mebibyte_of_conversation_cold(bencher: Bencher<'_, '_>, json: bool) {
    let text = conversation(MEBIBYTE, json);
    Counter::o200k().count("");
    bencher
        .with_inputs(Counter::o200k)
        .bench_local_values(|counter| run(black_box(&text), ContentType::Chat, &counter, None));
}

/// A page of about `bytes` bytes: paragraphs of an article, each followed by a script.
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
