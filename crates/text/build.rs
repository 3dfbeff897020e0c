//! Works out when the crate is built what follows from the vocabularies compiled in, so that no process spends its
//! first count on it: where a token is found, which characters no token joins, and how far one token reaches.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::{env, error, fs};

#[path = "src/tokens/bridges.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod bridges;
#[path = "src/tokens/hashed.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod hashed;
#[path = "src/tokens/merges.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod merges;
#[path = "src/tokens/pieces.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod pieces;
#[path = "src/tokens/reach.rs"]
#[allow(dead_code, reason = "the crate reads what is written here")]
mod reach;
#[path = "src/tokens/sparse.rs"]
mod sparse;

fn main() -> Result<(), Box<dyn error::Error>> {
    let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set; build with cargo")?;
    let folder = Path::new(&folder);
    fs::write(folder.join("classes"), classes()?)?;
    let mut vocabularies = [Vec::new(), Vec::new()];
    for (name, tokens) in ["cl100k_base", "o200k_base"].into_iter().zip(&mut vocabularies) {
        let vocabulary = tiktoken::get_encoding(name).ok_or("a vocabulary is not compiled in")?;
        let ids = 0..u32::try_from(vocabulary.vocab_size())?;
        *tokens = ids.map(|id| vocabulary.decode(&[id])).collect();
        fs::write(folder.join(name).with_extension("bridges"), sparse::write(&bridges_of(tokens), 0))?;
        let reach = sparse::write(&reach_of(tokens), reach::SHORTEST_REACH);
        fs::write(folder.join(name).with_extension("reach"), reach)?;
    }
    fs::write(folder.join("merges"), merges_of(&vocabularies)?)?;
    #[allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
    for file in ["build.rs", "bridges.rs", "hashed.rs", "merges.rs", "pieces.rs", "reach.rs", "sparse.rs"] {
        let folder = if file == "build.rs" { "" } else { "src/tokens/" };
        println!("cargo::rerun-if-changed={folder}{file}");
    }
    Ok(())
}

/// The class of each character, in blocks of which each is written once.
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
            _ => return Err("a class of characters is expected".into()),
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

/// What [`merges::Merges::read`] reads: the ranks of each token of more than a byte in both vocabularies.
fn merges_of(vocabularies: &[Vec<Vec<u8>>; 2]) -> Result<Vec<u8>, Box<dyn error::Error>> {
    let mut ranks: BTreeMap<&[u8], [u32; 2]> = BTreeMap::new();
    for (column, tokens) in vocabularies.iter().enumerate() {
        let mut lowest = HashSet::new();
        for (token, rank) in tokens.iter().zip(0..) {
            // Counting relies on this: a token ranks above two tokens that make it up, and 0 means that there is none.
            let is_joined = |at: &usize| lowest.contains(&token[..*at]) && lowest.contains(&token[*at..]);
            if token.len() > 1 {
                if !(1..1 << 20).contains(&rank) || !(1..token.len()).any(|at| is_joined(&at)) {
                    return Err("a token does not rank above two tokens that make it up".into());
                }
                ranks.entry(token).or_default()[column] = rank;
            }
            lowest.insert(token.as_slice());
        }
    }
    let (mut pairs, mut pair_ranks) = (vec![0_u16; merges::BYTE_PAIRS], vec![merges::pack([0; 2])]);
    let mut longer = vec![Vec::new(); hashed::LENGTHS];
    for (&token, &ranks) in &ranks {
        let ranks = merges::pack(ranks);
        if let &[left, right] = token {
            pairs[usize::from(left) << 8 | usize::from(right)] = u16::try_from(pair_ranks.len())?;
            pair_ranks.push(ranks);
        } else {
            let keys = longer.get_mut(token.len()).ok_or("a token is too long")?;
            keys.push((hashed::hash(token), [token, &ranks].concat()));
        }
    }
    let mut bytes = u32::try_from(pair_ranks.len() - 1)?.to_le_bytes().to_vec();
    bytes.extend(pairs.into_iter().flat_map(u16::to_le_bytes));
    bytes.extend(pair_ranks.concat());
    bytes.extend(hashed_table(&longer)?);
    Ok(bytes)
}

/// What [`hashed::Hashed::read`] reads, from the hashes of the keys of each length and what their slots hold.
fn hashed_table(lengths: &[Vec<(u64, Vec<u8>)>]) -> Result<Vec<u8>, Box<dyn error::Error>> {
    let (mut parts, mut bytes) = (Vec::new(), Vec::new());
    for (length, keys) in lengths.iter().enumerate() {
        let (seeds, slots) = placed(keys)?;
        let slots_at = bytes.len() + 2 * seeds.len();
        for number in [bytes.len(), seeds.len(), slots_at, slots.len()] {
            parts.extend(u32::try_from(number)?.to_le_bytes());
        }
        bytes.extend(seeds.into_iter().flat_map(u16::to_le_bytes));
        let empty = vec![0; length + hashed::VALUE];
        slots.into_iter().for_each(|slot| bytes.extend(slot.unwrap_or(&empty)));
    }
    parts.extend(bytes);
    Ok(parts)
}

/// Seeds, and slots with what they hold.
type Placed<'k> = (Vec<u16>, Vec<Option<&'k [u8]>>);

/// Gives each key a slot of its own. The crowds are placed from the largest on, each by the first seed that finds free
/// slots for all of it.
fn placed(keys: &[(u64, Vec<u8>)]) -> Result<Placed<'_>, Box<dyn error::Error>> {
    let mut crowds = vec![Vec::new(); hashed::crowds(keys.len())];
    for key in keys {
        let crowd = hashed::crowd(key.0, crowds.len());
        crowds[crowd].push(key);
    }
    let mut order: Vec<usize> = (0..crowds.len()).collect();
    order.sort_by_key(|&crowd| std::cmp::Reverse(crowds[crowd].len()));
    let (mut seeds, mut slots) = (vec![0_u16; crowds.len()], vec![None; hashed::size(keys.len())]);
    let mut places = Vec::new();
    for crowd in order {
        let seed = (0..=u16::MAX).find(|&seed| {
            places.clear();
            crowds[crowd].iter().all(|(hash, _)| {
                let place = hashed::place(*hash, seed, slots.len());
                let is_free = slots[place].is_none() && !places.contains(&place);
                places.push(place);
                is_free
            })
        });
        seeds[crowd] = seed.ok_or("the keys find no slots")?;
        for (&place, (_, slot)) in places.iter().zip(&crowds[crowd]) {
            slots[place] = Some(slot.as_slice());
        }
    }
    Ok((seeds, slots))
}

/// Which characters some token holds together, wholly or in part.
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
                // A token that ends after the first byte may stand before any second one.
                for second in right.get(1).map_or(0x80..=0xBF, |&second| second..=second) {
                    let (byte, bit) = bridges::suspect(last, first, second);
                    bytes[bridges::PAIRS + byte] |= bit;
                }
            }
        }
    }
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
