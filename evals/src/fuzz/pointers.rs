//! Texts with pointers in them: what reads as a pointer prints as it was written, ours are found, foreign and invented
//! ones lead nowhere.

use larder_store::StoreError;
use larder_text::hash::ContentHash;
use larder_text::pointer::{Fragment, Pointer, PointerKey};

use super::case::OUR_POINTER;
use super::kept::{self, CONTENT, Kept};
use super::mutate;
use super::target::{HEAD, text_of};
use crate::made::{self, Random};
use crate::measure;

/// In a text it is replaced by a pointer of another user of the same store.
const FOREIGN: &str = "{{foreign-pointer}}";
const PREFIX: &str = "lp1-";
/// Places of a text that are looked at.
const MOST: usize = 500;
const DIGITS: &str = "0123456789abcdefghjkmnpqrstvwxyz";

pub(super) fn check(bytes: &[u8]) -> Vec<String> {
    let kept = match kept::kept() {
        Ok(kept) => kept,
        Err(error) => return vec![format!("store: {error}")],
    };
    let text = text_of(bytes)
        .replace(OUR_POINTER, &kept.pointer.to_string())
        .replace(FOREIGN, &kept.foreign.to_string());
    let mut faults = of_finding(&text, kept.ours.key());
    for (at, _) in text.match_indices(PREFIX).take(MOST) {
        if let Some((length, pointer)) = Pointer::parse_prefix(&text[at..]) {
            faults.extend(of_one(kept, &text, at, length, &pointer));
        }
    }
    faults
}

/// Every pointer that is ours is found once, in its place; nothing else is.
fn of_finding(text: &str, key: &PointerKey) -> Vec<String> {
    let mut faults = Vec::new();
    let found = key.find_in(text);
    let mut end = 0;
    for (range, pointer) in &found {
        if range.start < end
            || text.get(range.clone()).and_then(|text| text.parse::<Pointer>().ok()).as_ref() != Some(pointer)
        {
            faults.push(format!("find: {pointer} is not at {range:?}"));
        }
        end = range.end;
        if !key.owns(&pointer.id) {
            faults.push(format!("find: {pointer} is not ours"));
        }
    }
    for (at, _) in text.match_indices(PREFIX).take(MOST) {
        let ours = Pointer::parse_prefix(&text[at..]).is_some_and(|(_, pointer)| key.owns(&pointer.id));
        if ours && !found.iter().any(|(range, _)| range.start == at) {
            faults.push(format!("find: a pointer of ours at byte {at} was passed over"));
        }
    }
    faults
}

fn of_one(kept: &Kept, text: &str, at: usize, length: usize, pointer: &Pointer) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(written) = text.get(at..at + length) else {
        return vec![format!("parse: {pointer} ends within a character")];
    };
    let printed = pointer.to_string();
    if printed.parse::<Pointer>().as_ref() != Ok(pointer)
        || written.parse::<Pointer>().as_ref() != Ok(pointer)
    {
        faults.push(format!("parse: {written:?} does not read back"));
    }
    // Numbers may be written with noughts before them.
    if pointer.fragment.is_none() && printed != written {
        faults.push(format!("print: {written:?} became {printed:?}"));
    }
    let json = serde_json::to_string(pointer).unwrap_or_default();
    if serde_json::from_str::<Pointer>(&json).ok().as_ref() != Some(pointer) {
        faults.push(format!("json: {json} does not read back"));
    }
    let (owned, known) = (kept.ours.key().owns(&pointer.id), pointer.id == kept.pointer.id);
    match (kept.ours.pointers().resolve(pointer), owned) {
        (Ok(bytes), true) if known && part(pointer) == Some(bytes.as_slice()) => {}
        (Ok(bytes), _) => faults.push(format!("resolve: {pointer} gave {} bytes", bytes.len())),
        (Err(StoreError::NotOurs { .. }), false) => {}
        (Err(StoreError::UnknownPointer { .. }), true) if !known => {}
        (Err(error), true) if known => faults.extend(of_refusal(pointer, &error)),
        (Err(error), _) => faults.push(format!("resolve: {pointer}: {error}")),
    }
    if owned {
        faults.extend(of_forgeries(kept.ours.key(), pointer));
    }
    faults
}

/// A part that the content has is given.
fn of_refusal(pointer: &Pointer, error: &StoreError) -> Option<String> {
    part(pointer).map(|part| format!("resolve: {pointer} refers to {} bytes, but {error}", part.len()))
}

/// The part of the content that a pointer refers to, if the content has it.
fn part(pointer: &Pointer) -> Option<&'static [u8]> {
    match pointer.fragment {
        Some(Fragment::Bytes { start, end }) => CONTENT.as_bytes().get(start..end),
        // Lines beyond the end are those that there are.
        Some(Fragment::Lines { first, last }) if first <= last => {
            let there = CONTENT.split_inclusive('\n').count();
            let within = Pointer::lines(pointer.id.clone(), first, last.min(there));
            measure::resolve(CONTENT, &within).map(str::as_bytes)
        }
        _ => measure::resolve(CONTENT, pointer).map(str::as_bytes),
    }
}

/// With any one digit changed a pointer is nobody's.
fn of_forgeries(key: &PointerKey, pointer: &Pointer) -> Vec<String> {
    let id = pointer.id.as_str();
    let digits = (PREFIX.len()..id.len()).filter(|at| id.as_bytes().get(*at) != Some(&b'-'));
    digits
        .filter_map(|at| {
            let old = DIGITS.find(&id[at..=at])?;
            let new = DIGITS.as_bytes()[(old + 1 + at % 31) % 32];
            let forged = format!("{}{}{}", &id[..at], char::from(new), &id[at + 1..]);
            let forged: Pointer = forged.parse().ok()?;
            (forged.id != pointer.id && key.owns(&forged.id)).then(|| format!("forged: {forged} is ours"))
        })
        .collect()
}

/// Texts from which pointers are read.
fn scrap(random: &mut Random) -> String {
    let (from, to) = (random.below(70), random.below(70));
    let unit = random.one(&["L", "B", "l", "X", ""]);
    match random.below(16) {
        0..=3 => OUR_POINTER.to_owned(),
        4 => FOREIGN.to_owned(),
        5 | 6 => format!("{OUR_POINTER}#{unit}{from}-{to}"),
        7 => format!("#L{from}-{to}"),
        8 => format!("{OUR_POINTER}#B{from}-18446744073709551616"),
        9 => format!("{OUR_POINTER}#L0{from}-{}-{to}", from + to),
        10 => measure::key().mint(ContentHash::new(&random.next().to_le_bytes())).to_string(),
        11 => format!("lp1-{}", random.one(&["", "0", "lp1-", "\u{e9}", "0000000000000-00000\u{301}"])),
        12 => "lp1-0000000000000-000000".to_owned(),
        13 => random.one(&["#", "-", "\n", "\u{1f980}", " ", "]", "\\", "\"", "i", "L", "U"]).to_owned(),
        14 => format!("[Condensed: {OUR_POINTER}. \"[\u{2026} L{from}-{to}]\"]"),
        _ => made::text(random.one(&made::TYPES).1, random.next(), 60),
    }
}

pub(super) fn generate(random: &mut Random) -> Vec<u8> {
    let mut text: String = (0..=random.below(30)).map(|_| scrap(random)).collect();
    if random.below(3) == 0 {
        let mut bytes = text.into_bytes();
        mutate::change(&mut bytes, random);
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut bytes = vec![0; HEAD];
    bytes.extend(text.bytes().take(mutate::MOST_BYTES));
    bytes
}
