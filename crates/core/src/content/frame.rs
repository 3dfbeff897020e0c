//! The frame every condenser stands in: what it is given, what it gives back, and how the result is proved.
//!
//! Knows nothing of any content type. A condenser that re-tells its input (a table for an array, a template for log
//! lines) implements [`Condenser`]; one that shows a subset of the original's bytes implements [`Divide`] and is
//! wrapped in [`Extractive`].

use std::ops::Range;

use hashbrown::HashMap;

use super::extract::extract;
use super::pins::{self, ErrorSense, Span, SpanKind};
use super::render::Lines;
use super::units::Piece;
use super::{CondenseError, CondenseRequest, Condensed, ContentType, Gap, Probes};
use crate::hash::ContentHash;
use crate::pointer::{Pointer, PointerId};

/// Where there is no white space, a word is taken to end after so many bytes.
const LONGEST_WORD: usize = 48;

/// Makes one content type smaller.
pub(super) trait Condenser: Sync {
    /// A text of at most the target's tokens, or why there is none.
    fn condense(&self, job: &Job<'_>) -> Result<Draft, CondenseError>;

    /// Whether `text` has the structure that readers of this type rely on. What had it must keep it.
    fn parses(&self, _text: &str) -> bool {
        true
    }
}

/// Divides a text into units; choosing among them is common to all.
pub(super) trait Divide: Sync {
    /// Units that tile the text.
    fn units(&self, job: &Job<'_>) -> Vec<Piece>;

    /// See [`Condenser::parses`].
    fn parses(&self, _text: &str) -> bool {
        true
    }
}

/// A condenser whose output is a subset of the original's bytes, with marked gaps.
pub(super) struct Extractive<D>(pub(super) D);

impl<D: Divide> Condenser for Extractive<D> {
    fn condense(&self, job: &Job<'_>) -> Result<Draft, CondenseError> {
        extract(job, &self.0.units(job))
    }

    fn parses(&self, text: &str) -> bool {
        self.0.parses(text)
    }
}

/// What a condenser proposes. Shown, told and gaps tile the original.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) text: String,
    /// Bytes of the original that stand in `text` as they are.
    pub(super) shown: Vec<Range<usize>>,
    /// Bytes of the original that `text` says in other words.
    pub(super) told: Vec<Range<usize>>,
    pub(super) gaps: Vec<Gap>,
}

/// A request with everything that is worked out once.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) request: &'a CondenseRequest<'a>,
    pub(super) original_tokens: usize,
    pub(super) id: PointerId,
    pub(super) lines: Lines,
    /// Where pins and our own pointers stand, joined; all must be shown.
    pub(super) required: Vec<Range<usize>>,
    /// Every span that matters, by start.
    spans: Vec<Span>,
    /// Indices into `spans`: the first place of every distinct telling value.
    telling: Vec<usize>,
    /// Stretches that are not cut: spans and required ranges, joined.
    whole: Vec<Range<usize>>,
}

impl<'a> Job<'a> {
    /// Looks at the original once; its pins stand in it.
    pub(super) fn new(request: &'a CondenseRequest<'a>, original_tokens: usize) -> Self {
        let text = request.text;
        let required = join(required(request));
        let spans = pins::scan(text, error_sense(request.content_type));
        let telling = first_of_each(text, &spans);
        let whole =
            join(spans.iter().map(|span| span.range.clone()).chain(required.iter().cloned()).collect());
        Self {
            request,
            original_tokens,
            id: request.key.mint(ContentHash::of(text.as_bytes())),
            lines: Lines::of(text),
            required,
            spans,
            telling,
            whole,
        }
    }

    /// The first place of every distinct telling value, by start.
    pub(super) fn telling(&self) -> Vec<&Span> {
        self.telling.iter().map(|&index| &self.spans[index]).collect()
    }

    /// How many tokens a byte of this text costs on average.
    pub(super) fn tokens_per_byte(&self) -> f32 {
        (self.original_tokens as f32 / self.request.text.len().max(1) as f32).max(0.01)
    }

    /// The longest beginning of `range` of at most `room` tokens that ends between words and cuts no span; gives
    /// its end, or none if not even one word fits.
    pub(super) fn cut_at(&self, range: &Range<usize>, room: usize) -> Option<usize> {
        let ends = self.word_ends(range);
        let count = |end: usize| self.request.counter.count(&self.request.text[range.start..end]);
        let fitting = ends.partition_point(|&end| count(end) <= room);
        fitting.checked_sub(1).map(|last| ends[last])
    }

    fn word_ends(&self, range: &Range<usize>) -> Vec<usize> {
        let mut ends = Vec::new();
        let (mut last, mut previous) = (range.start, ' ');
        for (at, c) in self.request.text[range.clone()].char_indices() {
            let at = range.start + at;
            let between =
                c.is_whitespace() || !c.is_ascii() || !previous.is_ascii() || at - last >= LONGEST_WORD;
            if at > range.start && between && !previous.is_whitespace() && !self.cuts_whole(at) {
                ends.push(at);
                last = at;
            }
            previous = c;
        }
        if !self.cuts_whole(range.end) {
            ends.push(range.end);
        }
        ends
    }

    fn cuts_whole(&self, at: usize) -> bool {
        let next = self.whole.partition_point(|range| range.end <= at);
        self.whole.get(next).is_some_and(|range| range.start < at)
    }

    /// What became of every distinct telling value and number, given what is shown; `tiled` are shown and gaps.
    pub(super) fn probes(&self, shown: &[Range<usize>], text: &str, told: &[Range<usize>]) -> Probes {
        let mut kept: HashMap<(SpanKind, &str), bool> = HashMap::with_capacity(self.spans.len());
        for span in &self.spans {
            let value = &self.request.text[span.range.clone()];
            let stands = within(shown, &span.range) || within(told, &span.range) && text.contains(value);
            *kept.entry((span.kind, value)).or_default() |= stands;
        }
        let total = kept.len();
        let kept = kept.into_values().filter(|&kept| kept).count();
        Probes { kept, recoverable: total - kept, lost: 0 }
    }
}

/// Everyone may write of errors; tools report them.
fn error_sense(content_type: ContentType) -> ErrorSense {
    match content_type {
        ContentType::ToolResult | ContentType::Generic => ErrorSense::Loose,
        _ => ErrorSense::Strict,
    }
}

/// Where pins stand (the first place of each) and where our own pointers stand (the first place of each).
fn required(request: &CondenseRequest<'_>) -> Vec<Range<usize>> {
    let places = request.pins.iter().filter_map(|pin| Some((request.text.find(pin.as_str())?, pin.len())));
    let mut ranges: Vec<Range<usize>> =
        places.filter(|&(_, len)| len > 0).map(|(at, len)| at..at + len).collect();
    let mut seen = HashMap::new();
    for (range, pointer) in request.key.find_in(request.text) {
        seen.entry(pointer).or_insert_with(|| ranges.push(range));
    }
    ranges
}

/// Indices of the telling spans whose value did not stand earlier. Error lines that differ in digits only are alike.
fn first_of_each(text: &str, spans: &[Span]) -> Vec<usize> {
    let mut seen = hashbrown::HashSet::new();
    let is_new = |span: &Span, seen: &mut hashbrown::HashSet<(SpanKind, String)>| {
        let value = &text[span.range.clone()];
        let key = match span.kind {
            SpanKind::Error => value.chars().filter(|c| !c.is_ascii_digit()).collect(),
            _ => value.to_owned(),
        };
        seen.insert((span.kind, key))
    };
    (0..spans.len())
        .filter(|&index| spans[index].kind.is_telling() && is_new(&spans[index], &mut seen))
        .collect()
}

/// Sorted, with overlapping and touching ranges made one.
fn join(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Whether one of the sorted `ranges` holds all of `inner`.
fn within(ranges: &[Range<usize>], inner: &Range<usize>) -> bool {
    let at = ranges.partition_point(|range| range.end < inner.end);
    ranges.get(at).is_some_and(|range| range.start <= inner.start)
}

/// Which guarantee a draft breaks. Only a mistake of ours breaks one, and then a simpler condenser takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    TooLong,
    PinLost,
    Untiled,
    Unparsable,
}

/// Measures and checks a draft; nothing leaves unchecked.
pub(super) fn proved(job: &Job<'_>, condenser: &dyn Condenser, draft: Draft) -> Result<Condensed, Fault> {
    let request = job.request;
    let tokens = request.counter.count(&draft.text);
    if tokens > request.target || tokens > job.original_tokens {
        return Err(Fault::TooLong);
    }
    let stands = |range: &Range<usize>| {
        within(&draft.shown, range) || draft.text.contains(&request.text[range.clone()])
    };
    let pinned = request.pins.iter().all(|pin| draft.text.contains(pin.as_str()));
    if !pinned || !job.required.iter().all(stands) {
        return Err(Fault::PinLost);
    }
    if !tiles(&draft, request.text.len()) {
        return Err(Fault::Untiled);
    }
    if condenser.parses(request.text) && !condenser.parses(&draft.text) {
        return Err(Fault::Unparsable);
    }
    Ok(Condensed {
        tokens,
        original_tokens: job.original_tokens,
        content_type: request.content_type,
        pointer: Pointer::whole(job.id.clone()),
        probes: job.probes(&draft.shown, &draft.text, &draft.told),
        gaps: draft.gaps,
        text: draft.text,
        author: None,
    })
}

fn tiles(draft: &Draft, len: usize) -> bool {
    let gaps = draft.gaps.iter().map(|gap| &gap.bytes);
    let mut all: Vec<&Range<usize>> = draft.shown.iter().chain(&draft.told).chain(gaps).collect();
    all.sort_by_key(|range| range.start);
    let mut at = 0;
    all.into_iter().all(|range| range.start == std::mem::replace(&mut at, range.end)) && at == len
}
