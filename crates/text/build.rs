//! Precomputes from the built-in vocabularies, at build time, what the first count would otherwise have to derive:
//! which tokens merge, which characters no token spans, and how far one token can reach.

use std::collections::HashMap;
use std::path::Path;
use std::{env, error, fs};

#[path = "src/tokens/bridges.rs"]
#[allow(dead_code, reason = "the crate uses the reading half of this module")]
mod bridges;
#[path = "src/tokens/hashed.rs"]
#[allow(dead_code, reason = "the crate uses the reading half of this module")]
mod hashed;
#[path = "src/tokens/merges.rs"]
#[allow(dead_code, reason = "the crate uses the reading half of this module")]
mod merges;
#[path = "src/tokens/pieces.rs"]
#[allow(dead_code, reason = "the crate uses the reading half of this module")]
mod pieces;
#[path = "src/tokens/reach.rs"]
#[allow(dead_code, reason = "the crate uses the reading half of this module")]
mod reach;

fn main() -> Result<(), Box<dyn error::Error>> {
    let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set; build with cargo")?;
    let folder = Path::new(&folder);
    fs::write(folder.join("classes"), classes()?)?;
    for name in ["cl100k_base", "o200k_base"] {
        let vocabulary = tiktoken::get_encoding(name).ok_or("the vocabulary is not compiled in")?;
        let ids = 0..u32::try_from(vocabulary.vocab_size())?;
        let tokens: Vec<Vec<u8>> = ids.map(|id| vocabulary.decode(&[id])).collect();
        fs::write(folder.join(name).with_extension("bridges"), bridges_of(&tokens))?;
        fs::write(folder.join(name).with_extension("merges"), merges_of(&tokens)?)?;
        fs::write(folder.join(name).with_extension("reach"), reach_of(&tokens))?;
    }
    #[allow(clippy::print_stdout, reason = "build scripts communicate with cargo on stdout")]
    for file in ["build.rs", "bridges.rs", "hashed.rs", "merges.rs", "pieces.rs", "reach.rs"] {
        let folder = if file == "build.rs" { "" } else { "src/tokens/" };
        println!("cargo::rerun-if-changed={folder}{file}");
    }
    Ok(())
}

/// The class of each character, in deduplicated blocks.
fn classes() -> Result<Vec<u8>, Box<dyn error::Error>> {
    use pieces::{BLOCK, BLOCKS, BREAK, HEAD, LETTER, NUMBER, SPACE, TAIL};
    let mut classes = vec![0; BLOCKS * BLOCK];
    for (class, bits) in [
        (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", HEAD),
        (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", TAIL),
        (r"\p{L}", LETTER),
        (r"\p{N}", NUMBER),
        (r"\s", SPACE),
        (r"[\r\n]", BREAK),
    ] {
        match regex_syntax::parse(class)?.into_kind() {
            regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(found)) => {
                for range in found.ranges() {
                    classes[range.start() as usize..=range.end() as usize]
                        .iter_mut()
                        .for_each(|c| *c |= bits);
                }
            }
            _ => return Err("expected a character class".into()),
        }
    }
    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut bytes = Vec::new();
    for block in classes.chunks(BLOCK) {
        let at = blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        bytes.push(u8::try_from(at)?);
    }
    bytes.extend(blocks.concat());
    Ok(bytes)
}

/// The input of [`merges::Merges::load`]: for each token longer than one byte, the two tokens that the last merge
/// joins, and the seeds of the hash tables built from them.
fn merges_of(tokens: &[Vec<u8>]) -> Result<Vec<u8>, Box<dyn error::Error>> {
    let ranks: HashMap<&[u8], u32> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
    let id = |token: &[u8]| match token {
        [byte] => Some(u32::from(*byte)),
        _ => ranks.get(token).copied(),
    };
    let (mut packed, mut pairs, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for (token, rank) in tokens.iter().zip(0..).filter(|(token, _)| token.len() > 1) {
        if rank as usize != 256 + packed.len() {
            return Err("a multi-byte token has a rank reserved for single bytes".into());
        }
        let at = last_join(token, rank, &ranks).ok_or("no merge produces this token")?;
        let (left, right) = token.split_at(at);
        let (Some(a), Some(b)) = (id(left), id(right)) else {
            return Err("one half of a merge is not a token".into());
        };
        if [a, b].iter().any(|&part| part >= rank) {
            return Err("a token ranks before its halves".into());
        }
        packed.push(merges::pack(a, b));
        pairs.push(merges::hash_of_pair(merges::pair(a, b)));
        if (3..=merges::WHOLE).contains(&token.len()) {
            whole.push(merges::hash_of_whole(merges::whole(token)));
        }
    }
    let sizes = [u32::try_from(pairs.len())?, u32::try_from(whole.len())?];
    let mut bytes: Vec<u8> = sizes.into_iter().flat_map(u32::to_le_bytes).collect();
    for hashes in [&pairs, &whole] {
        bytes.extend(seeds_of(hashes)?.into_iter().flat_map(u16::to_le_bytes));
    }
    bytes.extend(packed.into_iter().flatten());
    Ok(bytes)
}

/// Seeds of a perfect hash over these hashes. Buckets are placed largest first, each with the first seed that finds
/// free slots for all of its keys.
fn seeds_of(hashes: &[u64]) -> Result<Vec<u16>, Box<dyn error::Error>> {
    let mut crowds = vec![Vec::new(); hashed::crowds(hashes.len())];
    for &hash in hashes {
        let crowd = hashed::crowd(hash, crowds.len());
        crowds[crowd].push(hash);
    }
    let mut order: Vec<usize> = (0..crowds.len()).collect();
    order.sort_by_key(|&crowd| std::cmp::Reverse(crowds[crowd].len()));
    let (mut seeds, mut taken) = (vec![0_u16; crowds.len()], vec![false; hashed::size(hashes.len())]);
    let mut places = Vec::new();
    for crowd in order {
        let seed = (0..=u16::MAX).find(|&seed| {
            places.clear();
            crowds[crowd].iter().all(|&hash| {
                let place = hashed::place(hash, seed, taken.len());
                let is_free = !taken[place] && !places.contains(&place);
                places.push(place);
                is_free
            })
        });
        seeds[crowd] = seed.ok_or("no seed places all entries")?;
        places.iter().for_each(|&place| taken[place] = true);
    }
    Ok(seeds)
}

/// The offset at which the last merge joins when a token's bytes are encoded with lower-ranked tokens only.
fn last_join(token: &[u8], rank: u32, ranks: &HashMap<&[u8], u32>) -> Option<usize> {
    let are_tokens = |&at: &usize| {
        let (left, right) = token.split_at(at);
        ranks.contains_key(left) && ranks.contains_key(right)
    };
    let mut possible = (1..token.len()).filter(are_tokens);
    if let (Some(only), None) = (possible.next(), possible.next()) {
        return Some(only);
    }
    let mut cuts: Vec<usize> = (0..=token.len()).collect();
    while cuts.len() > 3 {
        let joined = |at: usize| ranks.get(&token[cuts[at]..cuts[at + 2]]).filter(|&&joined| joined < rank);
        let lowest = (0..cuts.len() - 2).filter_map(|at| Some((joined(at)?, at))).min()?;
        cuts.remove(lowest.1 + 1);
    }
    cuts.get(1).copied()
}

/// Pairs of characters that some token spans, wholly or in part.
fn bridges_of(tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; bridges::PAIRS + bridges::SUSPECTS];
    for token in tokens.iter().filter(|token| !token.is_ascii()) {
        for at in (1..token.len()).filter(|&at| starts_character(token[at])) {
            let start = (0..at).rev().find(|&i| starts_character(token[i])).unwrap_or(0);
            let left = &token[start..at];
            let right = &token[at..token.len().min(at + length(token[at]))];
            let (last, first) = (token[at - 1], right[0]);
            if starts_character(left[0]) && right.len() == length(first) {
                let (byte, bit) = bridges::slot(left, right);
                bytes[byte] |= bit;
            } else if !last.is_ascii() && length(first) >= 3 {
                // A token that ends after the first byte may be followed by any second byte.
                for second in right.get(1).map_or(0x80..=0xBF, |&second| second..=second) {
                    let (byte, bit) = bridges::suspect(last, first, second);
                    bytes[bridges::PAIRS + byte] |= bit;
                }
            }
        }
    }
    bytes
}

/// For each three-byte prefix, the length of the longest token that starts with it.
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

/// The length in bytes of the UTF-8 character that starts with `lead`.
fn length(lead: u8) -> usize {
    match lead {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}
