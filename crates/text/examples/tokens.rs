//! Counts and times files, and exports a built-in vocabulary, for comparison with other tokenizers
//! (`evals/tokens_vs_tiktoken.py`). A measuring tool; nothing depends on it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use larder_text::tokens::{Counter, Registry};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["export", tokenizer] => export(tokenizer),
        ["count", tokenizer, ref files @ ..] => count(tokenizer, files),
        _ => Err("usage: tokens export TOKENIZER | tokens count TOKENIZER FILE…".into()),
    }
}

/// One line per token in order of rank: its bytes in hexadecimal.
fn export(tokenizer: &str) -> Result<(), Box<dyn Error>> {
    let vocabulary = tiktoken::get_encoding(tokenizer).ok_or("no such vocabulary")?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for id in 0..u32::try_from(vocabulary.vocab_size())? {
        for byte in vocabulary.decode(&[id]) {
            write!(out, "{byte:02x}")?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

/// Milliseconds until the vocabulary has counted its first word, then for each file: bytes, tokens, and microseconds
/// for the first count and for the best of three counters with empty text caches. The second and third share the word
/// cache that the first filled, as in a long-running process.
fn count(tokenizer: &str, files: &[&str]) -> Result<(), Box<dyn Error>> {
    let registry = Registry::builtin();
    let texts = files.iter().map(std::fs::read_to_string).collect::<Result<Vec<String>, _>>()?;
    let started = Instant::now();
    registry.by_name(tokenizer)?.count("ready");
    println!("ready {:.1}", started.elapsed().as_secs_f64() * 1e3);
    for text in texts {
        let timed = (0..3).map(|_| -> Result<(u128, usize), Box<dyn Error>> {
            let counter: Counter = Registry::builtin().by_name(tokenizer)?;
            let started = Instant::now();
            let tokens = counter.count(&text);
            Ok((started.elapsed().as_micros(), tokens))
        });
        let timed = timed.collect::<Result<Vec<_>, _>>()?;
        let &(first, tokens) = timed.first().ok_or("no count")?;
        let best = timed.iter().map(|&(micros, _)| micros).min().unwrap_or(first);
        println!("{} {tokens} {first} {best}", text.len());
    }
    Ok(())
}
