//! The cost of counting: `cargo bench -p larder-text --bench tokens`. Targets: 10,000 cached counts of 20-token texts
//! in 2 ms, an adversarial megabyte checked against a limit in 50 ms, 50 MB checked against a limit in 2 ms.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use divan::Bencher;
use divan::counter::BytesCount;
use larder_text::tokens::{Counter, Registry};

fn main() {
    divan::main();
}

const TOKENIZERS: [&str; 2] = ["cl100k_base", "o200k_base"];
const LIMIT: usize = 8_192;

/// A counter with its vocabulary loaded and an empty cache.
fn fresh(tokenizer: &str) -> Counter {
    let counter = Registry::builtin().by_name(tokenizer).expect("a builtin tokenizer");
    counter.count("ready");
    counter
}

fn prose(bytes: usize) -> String {
    (0_u64..)
        .map(|n| {
            format!(
                "In year {n} the {} of the house said nothing, and it went on. ",
                n.wrapping_mul(2_654_435_761) % 9_973
            )
        })
        .scan(0, |length, sentence| {
            *length += sentence.len();
            (*length <= bytes).then_some(sentence)
        })
        .collect()
}

#[divan::bench(args = TOKENIZERS)]
fn megabyte_of_new_prose(bencher: Bencher, tokenizer: &str) {
    let text = prose(1_000_000);
    bencher
        .counter(BytesCount::new(text.len()))
        .with_inputs(|| fresh(tokenizer))
        .bench_values(|counter| counter.count(&text));
}

#[divan::bench(args = TOKENIZERS)]
fn ten_thousand_remembered_counts(bencher: Bencher, tokenizer: &str) {
    let texts: Vec<String> = (0..10_000).map(|n| prose(90) + &n.to_string()).collect();
    let counter = fresh(tokenizer);
    let count_all = || texts.iter().map(|text| counter.count(text)).sum::<usize>();
    count_all();
    bencher.bench(count_all);
}

#[divan::bench(args = TOKENIZERS)]
fn fifty_megabytes_exceed_8000(bencher: Bencher, tokenizer: &str) {
    let text = prose(50_000_000);
    bencher.with_inputs(|| fresh(tokenizer)).bench_values(|counter| counter.count_up_to(&text, 8_000));
}

#[divan::bench(args = TOKENIZERS)]
fn half_a_megabyte_exceeds_8192(bencher: Bencher, tokenizer: &str) {
    let text = prose(500_000);
    bencher.with_inputs(|| fresh(tokenizer)).bench_values(|counter| counter.count_up_to(&text, LIMIT));
}

#[divan::bench(args = TOKENIZERS)]
fn first_8192_tokens(bencher: Bencher, tokenizer: &str) {
    let text = prose(5_000_000);
    bencher.with_inputs(|| fresh(tokenizer)).bench_values(|counter| counter.prefix(&text, LIMIT).len());
}

#[divan::bench(args = TOKENIZERS)]
fn last_8192_tokens(bencher: Bencher, tokenizer: &str) {
    let text = prose(5_000_000);
    bencher.with_inputs(|| fresh(tokenizer)).bench_values(|counter| counter.suffix(&text, LIMIT).len());
}

#[divan::bench(args = ["a", " ", "\n", "\r\n", "!", "7", "ab", "aA", "'s", "\u{301}", "漢", "😀", "\0"])]
fn hostile_megabyte_under_8192(bencher: Bencher, unit: &str) {
    let text = unit.repeat(1_000_000 / unit.len());
    bencher.with_inputs(|| fresh("o200k_base")).bench_values(|counter| counter.count_up_to(&text, LIMIT));
}

/// A megabyte of random characters: any Unicode, the Basic Multilingual Plane, letters, or random bytes decoded
/// lossily as UTF-8.
#[divan::bench(args = ["unicode", "plane", "letters", "bytes"])]
fn random_megabyte_under_8192(bencher: Bencher, kind: &str) {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let text: String = match kind {
        "unicode" => (0..250_000).filter_map(|_| char::from_u32((random() % 0x11_0000) as u32)).collect(),
        "plane" => (0..340_000).filter_map(|_| char::from_u32((random() % 0x1_0000) as u32)).collect(),
        "letters" => (0..1_000_000).map(|_| char::from(b'a' + (random() % 26) as u8)).collect(),
        _ => {
            String::from_utf8_lossy(&(0..1_000_000).map(|_| random() as u8).collect::<Vec<_>>()).into_owned()
        }
    };
    bencher.with_inputs(|| fresh("o200k_base")).bench_values(|counter| counter.count_up_to(&text, LIMIT));
}

/// Several times the limit in bytes, but not so many that the length alone settles it.
#[divan::bench(args = TOKENIZERS)]
fn a_megabyte_exceeds_8000(bencher: Bencher, tokenizer: &str) {
    let text = prose(1_000_000);
    bencher.with_inputs(|| fresh(tokenizer)).bench_values(|counter| counter.count_up_to(&text, 8_000));
}
