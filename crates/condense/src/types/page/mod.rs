//! Page captures: zones are kept by kind and by the confidence of their extraction.
//!
//! Knows zones and shares; [`json`] and [`markdown`] know the two storage forms. What is shown is a subset of the
//! capture's bytes. A zone whose confidence is too low is shown only if a pin requires it, and the fields of a zone
//! are shown all or not at all.

mod json;
mod markdown;

use std::ops::Range;

use crate::engine::condenser::{Condenser, Divide};
use crate::engine::extractive::Extractive;
use crate::engine::job::Job;
use crate::engine::units::{TextPiece, Tier, split_long};
use crate::types::prose::sentences;

/// The condenser of captured web pages.
pub(crate) const CONDENSER: &dyn Condenser = &Extractive(PageDoc);

/// From this confidence on, a zone is kept in full (R0-22.16, C43).
const FULL: f64 = 0.8;
/// From this confidence on, the key fields of a zone are kept; below it, the zone is dropped (R0-22.17, R0-22.18,
/// C42).
const KEY_FIELDS: f64 = 0.5;
/// Shares of the target, in per cent, for structured zones and for metadata; supporting text gets the rest, and
/// unused tokens go to the next (R0-22.19, N15).
const STRUCTURED_SHARE: usize = 70;
const METADATA_SHARE: usize = 10;
/// Maximum tokens for header and markers, which is also limited to one part in this many of the target.
const ROOM_FOR_FRAME: usize = 160;
const FRAME_SHARE: usize = 4;
/// Longer lines of text are divided.
const LONGEST_TEXT: usize = 400;
/// Weights of supporting text and leftover structure by kind of zone.
const PRIOR: [f32; 5] = [2.0, 1.7, 1.4, 0.7, 1.0];

/// The kind of a zone, most important first (R0-22.15); unknown kinds are `Other` (C44).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ZoneKind {
    Pricing,
    ProductInfo,
    Reviews,
    Navigation,
    Other,
}

impl ZoneKind {
    fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["pric", "cost", "offer"]) {
            Self::Pricing
        } else if has(&["product", "spec", "item"]) {
            Self::ProductInfo
        } else if has(&["review", "rating", "comment"]) {
            Self::Reviews
        } else if has(&["nav", "menu", "breadcrumb", "pagination"]) {
            Self::Navigation
        } else {
            Self::Other
        }
    }
}

/// The role of a range in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Address, title, time stamps, and the enclosing structure.
    Metadata,
    /// Extracted fields: all or none per zone.
    Structured,
    /// Sentences of the page.
    Text,
    /// Never shown unless a pin appears in it.
    Dropped,
}

/// A range of a capture. The ranges tile it.
#[derive(Debug, Clone)]
struct ZoneStretch {
    range: Range<usize>,
    role: Role,
    /// The zone it belongs to, from 0.
    zone: usize,
    kind: ZoneKind,
    confidence: f64,
}

/// Whether a field is essential to a zone: names, prices, addresses, stock.
fn is_key_field(name: &str) -> bool {
    const KEYS: [&str; 17] = [
        "name", "title", "price", "cost", "url", "link", "currency", "availab", "stock", "brand", "rating",
        "sku", "product", "model", "store", "seller", "discount",
    ];
    let name = name.to_ascii_lowercase();
    KEYS.iter().any(|key| name.contains(key))
}

struct PageDoc;

impl Divide for PageDoc {
    fn units(&self, job: &Job<'_>) -> Vec<TextPiece> {
        let text = job.request.text;
        let stretches = json::stretches(text).unwrap_or_else(|| markdown::stretches(text));
        let taken = taken(job, &stretches);
        let mut pieces = Vec::new();
        for stretch in &stretches {
            divide(job, stretch, &taken, &mut pieces);
        }
        pieces
    }
}

/// Zones shown whole, and whether the metadata is.
struct TakenShares {
    zones: Vec<usize>,
    metadata: usize,
}

/// Takes metadata and structured zones in order of importance while their shares last.
fn taken(job: &Job<'_>, stretches: &[ZoneStretch]) -> TakenShares {
    let (text, counter, target) = (job.request.text, job.request.counter, job.request.target);
    let room = target - ROOM_FOR_FRAME.min(target / FRAME_SHARE);
    let count = |stretch: &ZoneStretch| counter.count(&text[stretch.range.clone()]);
    let mut free = room.saturating_mul(METADATA_SHARE) / 100;
    let mut metadata = 0;
    for stretch in stretches.iter().filter(|stretch| stretch.role == Role::Metadata) {
        let Some(left) = free.checked_sub(count(stretch)) else { break };
        (free, metadata) = (left, stretch.range.end);
    }
    let mut zones: Vec<(ZoneKind, f64, usize, usize)> = Vec::new();
    for stretch in stretches.iter().filter(|stretch| stretch.role == Role::Structured) {
        let tokens = count(stretch);
        match zones.last_mut().filter(|(.., zone, _)| *zone == stretch.zone) {
            Some((.., sum)) => *sum += tokens,
            None => zones.push((stretch.kind, stretch.confidence, stretch.zone, tokens)),
        }
    }
    zones.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    let mut free = room.saturating_mul(STRUCTURED_SHARE) / 100 + free;
    let mut taken = Vec::new();
    for (_, _, zone, tokens) in zones {
        if let Some(left) = free.checked_sub(tokens) {
            free = left;
            taken.push(zone);
        }
    }
    TakenShares { zones: taken, metadata }
}

fn divide(job: &Job<'_>, stretch: &ZoneStretch, taken: &TakenShares, pieces: &mut Vec<TextPiece>) {
    let text = job.request.text;
    let range = stretch.range.clone();
    let prior = PRIOR[stretch.kind as usize];
    let pinned = job.required.iter().any(|pin| pin.start < range.end && range.start < pin.end);
    let tier = match stretch.role {
        Role::Dropped => Tier::Never,
        Role::Metadata if range.end <= taken.metadata => Tier::First,
        Role::Structured if taken.zones.contains(&stretch.zone) => Tier::First,
        _ => Tier::Plain,
    };
    // Structure with a pin may have to be shown in part, if no more of it fits.
    let whole = stretch.role == Role::Structured && !pinned;
    if whole {
        pieces.push(TextPiece { tier, divisible: false, ..TextPiece::plain(range, prior) });
        return;
    }
    let parts = sentences(text, range).into_iter().flat_map(|range| split_long(text, range, LONGEST_TEXT));
    pieces.extend(parts.map(|range| TextPiece { tier, ..TextPiece::plain(range, prior) }));
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
