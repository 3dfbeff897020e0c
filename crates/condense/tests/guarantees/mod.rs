//! What every condensation guarantees, checked from outside, for the tests of single condensers.
#![allow(dead_code, reason = "each test file uses a part")]

use larder_condense::{CondenseError, CondenseRequest, Condensed, ContentType, GapUnit, condense, explain};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Fragment, Pointer, PointerKey};
use larder_text::terminal::without_terminal_codes;
use larder_text::tokens::Counter;
use proptest::prelude::*;

pub fn key() -> PointerKey {
    PointerKey::new([7; 32])
}

/// A request without what is the same in all.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub text: &'a str,
    pub content_type: ContentType,
    pub target: usize,
    pub query: Option<&'a str>,
    pub pins: &'a [String],
}

impl<'a> Case<'a> {
    /// A case without a query and pins.
    pub fn new(content_type: ContentType, text: &'a str, target: usize) -> Self {
        Self { text, content_type, target, query: None, pins: &[] }
    }

    pub fn with<T>(&self, counter: &Counter, run: impl FnOnce(&CondenseRequest<'_>) -> T) -> T {
        let &Case { text, content_type, target, query, pins } = self;
        run(&CondenseRequest { text, content_type, target, query, pins, counter, key: &key() })
    }

    pub fn run(&self, counter: &Counter) -> Result<Condensed, CondenseError> {
        self.with(counter, condense)
    }
}

/// The bytes a gap's pointer gives back, read the way a store reads them.
pub fn rehydrated<'t>(text: &'t str, pointer: &Pointer) -> &'t str {
    match pointer.fragment {
        None => text,
        Some(Fragment::Bytes { start, end }) => &text[start..end],
        Some(Fragment::Lines { first, last }) => {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let start: usize = lines[..first - 1].iter().map(|line| line.len()).sum();
            let len: usize = lines[first - 1..last].iter().map(|line| line.len()).sum();
            &text[start..start + len]
        }
    }
}

/// Condenses and checks what holds of a subset of the original's bytes; none if it was refused, rightly.
pub fn checked(case: &Case<'_>, counter: &Counter) -> Option<Condensed> {
    let condensed = held(case, counter)?;
    check_gaps(case.text, &condensed);
    Some(condensed)
}

/// Condenses and checks what holds of any condensation, retellings too; none if it was refused, rightly.
pub fn held(case: &Case<'_>, counter: &Counter) -> Option<Condensed> {
    let text = case.text;
    let condensed = match case.run(counter) {
        Ok(condensed) => condensed,
        Err(CondenseError::PinsExceedTarget { needed, target }) => {
            assert_eq!(target, case.target);
            assert!(needed > target, "refused although {needed} fit into {target}");
            let enough = Case { target: needed, ..*case };
            assert!(enough.run(counter).is_ok(), "{needed} tokens were asked for and are not enough");
            return None;
        }
        Err(other) => panic!("refused for another reason: {other}"),
    };
    assert_eq!(condensed.tokens, counter.count(&condensed.text));
    assert!(condensed.tokens <= case.target && condensed.tokens <= condensed.original_tokens);
    assert_eq!(condensed.probes.lost, 0);
    for pin in case.pins {
        assert!(condensed.text.contains(pin.as_str()), "pin {pin:?} is gone");
    }
    for (_, pointer) in key().find_in(text) {
        assert!(condensed.text.contains(&pointer.to_string()), "{pointer} is gone");
    }
    let mut at = 0;
    for gap in &condensed.gaps {
        assert!(gap.bytes.start >= at && gap.bytes.start < gap.bytes.end, "gaps overlap or are empty");
        assert_eq!(rehydrated(text, &gap.pointer), &text[gap.bytes.clone()]);
        at = gap.bytes.end;
    }
    assert_eq!(case.run(counter).as_ref(), Ok(&condensed), "not deterministic");
    let again = Case { text: &condensed.text, ..*case }.run(counter).map(|again| again.text);
    assert_eq!(again.as_ref(), Ok(&condensed.text), "not idempotent");
    Some(condensed)
}

/// As [`checked`], and that what explains the condensation agrees with it.
pub fn check_explained(case: &Case<'_>, counter: &Counter) {
    let condensed = checked(case, counter);
    let explained = case.with(counter, |request| explain(request, 50));
    match condensed {
        Some(condensed) => {
            let explained = explained.unwrap();
            assert_eq!(explained.condensed, condensed);
            let bytes = explained.units.iter().map(|unit| unit.bytes.len()).sum::<usize>();
            assert_eq!(bytes, case.text.len());
        }
        None => assert!(explained.is_err()),
    }
}

/// Condenses, and condenses the result to another target.
pub fn check_twice(case: &Case<'_>, second: usize) {
    let counter = Counter::o200k();
    if let Some(once) = checked(case, &counter) {
        checked(&Case { text: &once.text, target: second.min(case.target), ..*case }, &counter);
    }
}

/// Shown and gaps tile the text; each gap comes back through its pointer.
pub fn check_gaps(text: &str, condensed: &Condensed) {
    if condensed.gaps.is_empty() {
        assert!(
            condensed.text == text
                || text.contains('\x1B') && condensed.text.contains(&*without_terminal_codes(text))
        );
        return;
    }
    let id = key().mint(ContentHash::new(text.as_bytes()));
    assert!(condensed.text.contains(id.as_str()), "no way back");
    let (mut at, mut written) = (0, 0);
    for gap in &condensed.gaps {
        let shown = &text[at..gap.bytes.start];
        let end = end_of(shown, &condensed.text[written..]);
        assert!(end.is_some(), "{shown:?} is neither shown nor in a gap");
        written += end.unwrap_or_default();
        assert_eq!(gap.pointer.id, id);
        match gap.unit {
            GapUnit::Line => assert_eq!(gap.count, gap.range.1 - gap.range.0 + 1),
            GapUnit::Byte => {
                assert_eq!((gap.count, gap.range), (gap.bytes.len(), (gap.bytes.start, gap.bytes.end)))
            }
        }
        at = gap.bytes.end;
    }
    assert!(end_of(&text[at..], &condensed.text[written..]).is_some());
}

/// Where `shown` ends in `text`, with its terminal codes or without.
fn end_of(shown: &str, text: &str) -> Option<usize> {
    let end = |shown: &str| text.find(shown).map(|at| at + shown.len());
    end(shown).or_else(|| end(&without_terminal_codes(shown)))
}

/// How a text is damaged: each step at a place, as an index into what is left.
pub fn mutations() -> impl Strategy<Value = Vec<(u8, prop::sample::Index, usize)>> {
    prop::collection::vec((0..5_u8, any::<prop::sample::Index>(), 1..200_usize), 0..4)
}

/// `text` cut off, with stretches removed, doubled, and filled with what breaks readers.
pub fn mutated(mut text: String, mutations: &[(u8, prop::sample::Index, usize)]) -> String {
    for (kind, place, len) in mutations {
        let start = text.floor_char_boundary(place.index(text.len() + 1));
        let end = text.floor_char_boundary((start + len).min(text.len()));
        match kind {
            0 => text.truncate(start),
            1 => text.replace_range(start..end, ""),
            2 => {
                let stretch = text[start..end].repeat(3);
                text.insert_str(start, &stretch);
            }
            3 => {
                let sign =
                    ["{", "}", "\"", "\0", "\r\n", "é", "\u{1b}[31m", "/*", "[… L3-9]", "\\"][len % 10];
                text.insert_str(start, sign);
            }
            _ => text = text.replace('\n', "\r\n"),
        }
    }
    text
}

/// A few stretches of `text`, as pins.
pub fn pins_of(text: &str, places: &[(prop::sample::Index, usize)]) -> Vec<String> {
    let pin = |(place, len): &(prop::sample::Index, usize)| {
        let start = text.floor_char_boundary(place.index(text.len() + 1));
        text[start..text.floor_char_boundary((start + len).min(text.len()))].to_owned()
    };
    places.iter().map(pin).collect()
}

/// Median seconds of five runs.
pub fn seconds(run: impl Fn()) -> f64 {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = std::time::Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[2]
}
