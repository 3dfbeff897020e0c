//! One condensation, timed and checked from outside: the way back, the target, the size.
//!
//! Knows only what a user of the core sees; the checks are written anew here, not borrowed from what they check.

#[path = "../../crates/core/tests/support/references.rs"]
mod references;

use std::time::Instant;

use larder_condense::{CondenseError, CondenseRequest, Condensed, ContentType, Gap, GapUnit, condense};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Fragment, Pointer, PointerKey};
use larder_text::tokens::Counter;

pub use self::references::shows_all;

/// A condensation and how long it took.
#[derive(Debug)]
pub struct Measured {
    /// The result.
    pub condensed: Condensed,
    /// Milliseconds of the whole call, the count of the original included.
    pub ms: f64,
}

/// Milliseconds on the machine of docs/benchmarks.md of the work by which limits on time are held on any machine: parsing
/// 5 MB of JSON with `serde_json`.
const REFERENCE_MS: f64 = 100.0;
/// Times that this work is done at least; the median counts.
const REFERENCE_ROUNDS: usize = 7;

/// Measures how long this machine takes for what takes a millisecond on the machine of docs/benchmarks.md.
pub struct ReferenceClock {
    json: String,
    times: Vec<f64>,
}

impl ReferenceClock {
    /// A clock that has measured once.
    pub fn new() -> Self {
        let mut clock = Self { json: records(), times: Vec::new() };
        (0..REFERENCE_ROUNDS).for_each(|_| clock.tick());
        clock
    }

    /// Does the work once more, so that a machine that becomes slower meanwhile counts as slower.
    pub fn tick(&mut self) {
        let started = Instant::now();
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&self.json);
        drop(std::hint::black_box(parsed));
        self.times.push(started.elapsed().as_secs_f64() * 1e3);
    }

    /// The milliseconds that `ms` of this machine are on the reference machine.
    pub fn reference_ms(&self, ms: f64) -> f64 {
        ms * REFERENCE_MS / median(self.times.clone())
    }
}

/// Records as APIs return them, about 5 MB of JSON.
fn records() -> String {
    let record = |n: usize| {
        serde_json::json!({"id": n, "name": format!("user {n}"), "tags": ["new", "paid"],
            "score": n as f64 / 7.0, "active": n.is_multiple_of(3)})
    };
    serde_json::Value::Array((0..56_000).map(record).collect()).to_string()
}

impl Default for ReferenceClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The value in the middle; not a number if there is none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The key under which pointers are minted here.
pub fn key() -> PointerKey {
    PointerKey::new([7; 32])
}

/// Condenses once with a counter that has counted nothing yet.
///
/// # Errors
/// The refusal of the condenser.
pub fn run(text: &str, content_type: ContentType, target: usize) -> Result<Measured, CondenseError> {
    let (counter, key) = (Counter::o200k(), key());
    let request =
        CondenseRequest { text, content_type, target, query: None, pins: &[], counter: &counter, key: &key };
    let started = Instant::now();
    let condensed = condense(&request)?;
    Ok(Measured { condensed, ms: started.elapsed().as_secs_f64() * 1e3 })
}

/// `count` parts in `whole`, in per cent; 100 of nothing.
pub fn percent(count: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * count as f64 / whole as f64 }
}

/// The share of `before` that is saved, in per cent.
pub fn saved(before: usize, after: usize) -> f64 {
    100.0 - percent(after, before)
}

/// `share` per cent of `tokens`.
pub const fn share_of(tokens: usize, share: usize) -> usize {
    tokens.saturating_mul(share) / 100
}

/// The bytes that a pointer to `original` gives back, or none if it points outside.
pub fn resolve<'t>(original: &'t str, pointer: &Pointer) -> Option<&'t str> {
    match pointer.fragment {
        None => Some(original),
        Some(Fragment::Bytes { start, end }) => original.get(start..end),
        Some(Fragment::Lines { first, last }) => {
            let starts: Vec<usize> = std::iter::once(0)
                .chain(original.match_indices('\n').map(|(at, _)| at + 1))
                .filter(|&start| start < original.len())
                .collect();
            let start = *starts.get(first.checked_sub(1)?)?;
            let end = if last == starts.len() { original.len() } else { *starts.get(last)? };
            original.get(start..end)
        }
    }
}

/// What is wrong with the way back from `condensed` to `original`, or with its size; empty if nothing is.
pub fn faults(original: &str, condensed: &Condensed, target: usize) -> Vec<String> {
    let mut faults = Vec::new();
    let tokens = Counter::o200k().count(&condensed.text);
    if tokens != condensed.tokens {
        faults.push(format!("says {} tokens and has {tokens}", condensed.tokens));
    }
    if tokens > target {
        faults.push(format!("{tokens} tokens, the target is {target}"));
    }
    if condensed.tokens > condensed.original_tokens {
        faults.push(format!("{tokens} tokens, the original has {}", condensed.original_tokens));
    }
    let id = key().mint(ContentHash::new(original.as_bytes()));
    if condensed.pointer != Pointer::whole(id.clone()) {
        faults.push(format!("{} is not the pointer of the original, {id}", condensed.pointer));
    }
    if condensed.text != original && !condensed.text.contains(id.as_str()) {
        faults.push("the text was changed and holds no pointer to the original".to_owned());
    }
    if condensed.probes.lost > 0 {
        faults.push(format!("{} telling details are lost", condensed.probes.lost));
    }
    let mut at = 0;
    for gap in &condensed.gaps {
        if gap.bytes.start < at {
            faults.push(format!("gap {:?} overlaps the text before it", gap.bytes));
        }
        at = gap.bytes.end;
        faults.extend(gap_fault(original, condensed, gap));
    }
    faults
}

fn gap_fault(original: &str, condensed: &Condensed, gap: &Gap) -> Option<String> {
    let counted = match gap.unit {
        GapUnit::Line => gap.range.1.checked_sub(gap.range.0)?.checked_add(1)?,
        GapUnit::Byte => gap.range.1.checked_sub(gap.range.0)?,
    };
    let right = gap.pointer.id == condensed.pointer.id
        && counted == gap.count
        && !gap.bytes.is_empty()
        && original
            .get(gap.bytes.clone())
            .is_some_and(|bytes| resolve(original, &gap.pointer) == Some(bytes));
    (!right).then(|| format!("{} does not give exactly bytes {:?} back", gap.pointer, gap.bytes))
}
