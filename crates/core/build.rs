//! Works out when the crate is built what follows from the vocabularies compiled in, so that no process spends its
//! first count on it: which characters no token joins, and how far one token reaches.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, error, fs};

#[path = "src/tokens/bridges.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod bridges;
#[path = "src/tokens/reach.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod reach;

fn main() -> Result<(), Box<dyn error::Error>> {
    let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set; build with cargo")?;
    let folder = Path::new(&folder);
    for name in ["cl100k_base", "o200k_base"] {
        let vocabulary = tiktoken::get_encoding(name).ok_or("a vocabulary is not compiled in")?;
        let ids = 0..u32::try_from(vocabulary.vocab_size())?;
        let tokens: Vec<Vec<u8>> = ids.map(|id| vocabulary.decode(&[id])).collect();
        fs::write(folder.join(name).with_extension("bridges"), bridges_of(&tokens))?;
        fs::write(folder.join(name).with_extension("reach"), reach_of(&tokens))?;
    }
    #[allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
    for file in ["build.rs", "src/tokens/bridges.rs", "src/tokens/reach.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    Ok(())
}

/// Which characters some token holds together, wholly or in part.
fn bridges_of(tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; bridges::PAIRS + bridges::SUSPECTS];
    let mut partial = BTreeSet::new();
    for token in tokens.iter().filter(|token| !token.is_ascii()) {
        for at in (1..token.len()).filter(|&at| starts_character(token[at])) {
            let start = (0..at).rev().find(|&i| starts_character(token[i])).unwrap_or(0);
            let left = &token[start..at];
            let right = &token[at..token.len().min(at + length(token[at]))];
            if starts_character(left[0]) && right.len() == length(right[0]) {
                let (byte, bit) = bridges::slot(left, right);
                bytes[byte] |= bit;
            } else {
                let (byte, bit) = bridges::suspect(left[left.len() - 1], right[0]);
                bytes[bridges::PAIRS + byte] |= bit;
                partial.insert(bridges::packed(left, right).to_be_bytes());
            }
        }
    }
    bytes.extend(partial.into_iter().flatten());
    bytes
}

/// From each beginning of three bytes, the length of the longest token that begins so.
fn reach_of(tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut reach = vec![reach::SHORTEST_REACH; reach::SLOTS];
    for token in tokens {
        if let Some(longest) = reach::slot(token).and_then(|slot| reach.get_mut(slot)) {
            *longest = (*longest).max(u8::try_from(token.len()).unwrap_or(u8::MAX));
        }
    }
    reach
}

fn starts_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// Bytes of the character that starts with `lead`.
fn length(lead: u8) -> usize {
    match lead {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}
