//! A request with everything that is computed once: lines, salient spans, required ranges, and the pointer's id.
//!
//! Knows the text; does not know how it is condensed.

use std::cell::OnceCell;
use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use crate::analysis::salience::{self, ErrorSense, SalientSpan, SpanKind};
use crate::analysis::template;
use crate::condensed::Probes;
use crate::content_type::ContentType;
use crate::engine::markers;
use crate::engine::source_map::SourceMap;
use crate::request::{CondenseRequest, KnownText, ReaderView};
use larder_text::hash::ContentHash;
use larder_text::lines::LineIndex;
use larder_text::pointer::{Pointer, PointerId, PointerKey};
use larder_text::terminal::PlainText;

/// Without white space, a word is assumed to end after this many bytes.
const LONGEST_WORD: usize = 48;
/// Bytes of a rewritten text that are counted to estimate tokens per byte.
const DENSITY_SAMPLE: usize = 16 << 10;

/// Tokens of a pointer: more than any tokenizer needs for its 24 characters.
const POINTER_TOKENS: usize = 20;
/// The share of the target that pointers may take, as one part in this many.
const POINTERS_SHARE: usize = 2;
/// How many error lines that differ only in digits count as different: failed tests do, but not all of a thousand timeouts.
const SIMILAR_ERRORS: usize = 16;

/// A request with everything computed once for it.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) request: &'a CondenseRequest<'a>,
    pub(crate) original_tokens: usize,
    pub(crate) id: PointerId,
    /// Line numbers of the original.
    pub(crate) lines: LineIndex,
    /// Maps words of the request's text to positions in the original, if the text is a rewritten form of it.
    pub(crate) source_map: Option<&'a SourceMap>,
    /// Where the terminal codes were that the request's text lacks.
    pub(crate) plain: Option<&'a PlainText>,
    /// What the reader sees and knows apart from the condensed text.
    pub(crate) view: ReaderView<'a>,
    tokens_per_byte: f32,
    /// Ranges of pins, of Larder's pointers (if they leave room for words) and of markers of an earlier condensation,
    /// merged; all must be shown.
    pub(crate) required: Vec<Range<usize>>,
    /// The ranges in `required` that are markers, which are given up if they do not fit.
    pub(crate) markers: Vec<Range<usize>>,
    /// Computed on first use: condensers that rewrite large texts do not need it.
    spans: OnceCell<JobSpans>,
}

/// The salient spans of a text.
#[derive(Debug, Clone)]
struct JobSpans {
    /// All spans, sorted by start.
    all: Vec<SalientSpan>,
    /// Indices into `all`: the first occurrence of every distinct salient value.
    salient: Vec<usize>,
    /// Ranges that must not be cut: spans and required ranges, merged.
    whole: Vec<Range<usize>>,
}

impl<'a> Job<'a> {
    /// Creates the job for a request; the text contains every pin.
    pub(crate) fn new(request: &'a CondenseRequest<'a>, known: KnownText) -> Self {
        let text = request.text;
        let pointers = request.key.find_in(text);
        let hard = required(request, &pointers);
        let markers = markers::of_prior(request, &hard, &pointers);
        let required = join(hard.into_iter().chain(markers.iter().cloned()).collect());
        Self {
            request,
            original_tokens: known.tokens,
            id: request.key.mint(known.hash),
            lines: LineIndex::of(text),
            source_map: None,
            plain: None,
            view: ReaderView::default(),
            tokens_per_byte: tokens_per_byte(known.tokens, text),
            required,
            markers,
            spans: OnceCell::new(),
        }
    }

    /// The same job for a reader with this view: values seen before are not salient, except errors.
    pub(crate) fn in_view(self, view: ReaderView<'a>) -> Self {
        Self { view, lines: self.lines.after(view.before.1), spans: OnceCell::new(), ..self }
    }

    /// The same job where the request's text is `plain`, and its original has terminal codes.
    pub(crate) fn of_plain(self, plain: &'a PlainText) -> Self {
        let sample = &plain.text[..plain.text.floor_char_boundary(DENSITY_SAMPLE)];
        let tokens_per_byte = tokens_per_byte(self.request.counter.count(sample), sample);
        Self { plain: Some(plain), tokens_per_byte, ..self }
    }

    /// The position in the original of a byte of the request's text.
    pub(crate) fn in_original(&self, at: usize) -> usize {
        self.view.before.0 + self.plain.map_or(at, |plain| plain.in_original(at))
    }

    /// The same job without the markers of an earlier condensation, which then need not be shown.
    pub(crate) fn without_markers(&self) -> Self {
        Self {
            id: self.id.clone(),
            lines: self.lines.clone(),
            required: join(required(self.request, &self.request.key.find_in(self.request.text))),
            markers: Vec::new(),
            spans: OnceCell::new(),
            ..*self
        }
    }

    /// Creates the job for condensing `request.text`, a rewritten form of the original of `job`.
    pub(crate) fn for_rewritten(
        job: &Job<'a>,
        request: &'a CondenseRequest<'a>,
        source_map: &'a SourceMap,
    ) -> Self {
        let sample = &request.text[..request.text.floor_char_boundary(DENSITY_SAMPLE)];
        let tokens = request.counter.count(sample);
        let hash = ContentHash::new(request.text.as_bytes());
        let own = Self::new(request, KnownText { hash, tokens: job.original_tokens });
        let own = if job.markers.is_empty() { own.without_markers() } else { own };
        Self {
            id: job.id.clone(),
            lines: job.lines.clone(),
            source_map: Some(source_map),
            plain: job.plain,
            view: ReaderView { seen: &[], ..job.view },
            tokens_per_byte: tokens_per_byte(tokens, sample),
            ..own
        }
    }

    fn spans(&self) -> &JobSpans {
        self.spans.get_or_init(|| {
            let text = self.request.text;
            let all = salience::scan(text, error_sense(self.request.content_type));
            let mut salient = first_of_each(text, &all);
            // In a gap with other lines, nothing would say that an error seen before is there again.
            let is_due =
                |span: &SalientSpan| span.kind == SpanKind::Error || !contains(self.view.seen, &span.range);
            salient.retain(|&index| is_due(&all[index]));
            let ranges = all.iter().map(|span| span.range.clone()).chain(self.required.iter().cloned());
            JobSpans { whole: join(ranges.collect()), salient, all }
        })
    }

    /// The first occurrence of every distinct salient value, by start.
    pub(crate) fn salient(&self) -> Vec<&SalientSpan> {
        let spans = self.spans();
        spans.salient.iter().map(|&index| &spans.all[index]).collect()
    }

    /// Every error line, by start.
    pub(crate) fn errors(&self) -> Vec<Range<usize>> {
        let errors = self.spans().all.iter().filter(|span| span.kind == SpanKind::Error);
        errors.map(|span| span.range.clone()).collect()
    }

    /// Average tokens per byte of this text.
    pub(crate) fn tokens_per_byte(&self) -> f32 {
        self.tokens_per_byte
    }

    /// The longest beginning of `range` with at most `room` tokens that ends between words and cuts no span; returns
    /// its end, or `None` if not even one word fits.
    pub(crate) fn cut_at(&self, range: &Range<usize>, room: usize) -> Option<usize> {
        let ends = self.word_ends(range);
        let count = |end: usize| self.request.counter.count(&self.request.text[range.start..end]);
        let fitting = ends.partition_point(|&end| count(end) <= room);
        fitting.checked_sub(1).map(|last| ends[last])
    }

    /// As [`cut_at`](Self::cut_at), but it may end within a word, though not within a span or a character.
    pub(crate) fn cut_within(&self, range: &Range<usize>, room: usize) -> Option<usize> {
        let text = self.request.text;
        let sound = |&at: &usize| text.is_char_boundary(at) && !self.cuts_whole(at);
        let ends: Vec<usize> = (range.start + 1..=range.end).filter(sound).collect();
        let count = |end: usize| self.request.counter.count(&text[range.start..end]);
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
        let whole = &self.spans().whole;
        let next = whole.partition_point(|range| range.end <= at);
        whole.get(next).is_some_and(|range| range.start < at)
    }

    /// Classifies every distinct salient value and number: whether it is shown, was seen before, or is a word of
    /// `text`.
    pub(crate) fn probes(&self, shown: &[Range<usize>], text: &str) -> Probes {
        if self.view.skip_probes {
            return Probes::default();
        }
        let between = |c: char| c.is_whitespace() || "|,;:={}()[]\"".contains(c);
        let words: HashSet<&str> = text.split(char::is_whitespace).chain(text.split(between)).collect();
        let mut kept: HashMap<(SpanKind, &str), bool> = HashMap::with_capacity(self.spans().all.len());
        for span in &self.spans().all {
            let value = &self.request.text[span.range.clone()];
            let range = &span.range;
            let stands = contains(shown, range) || contains(self.view.seen, range) || words.contains(value);
            *kept.entry((span.kind, value)).or_default() |= stands;
        }
        let total = kept.len();
        let kept = kept.into_values().filter(|&kept| kept).count();
        Probes { kept, recoverable: total - kept, lost: 0 }
    }
}

fn tokens_per_byte(tokens: usize, text: &str) -> f32 {
    (tokens as f32 / text.len().max(1) as f32).max(0.01)
}

/// Any text may mention errors; only tools report them.
fn error_sense(content_type: ContentType) -> ErrorSense {
    match content_type {
        ContentType::ToolResult | ContentType::Generic => ErrorSense::Loose,
        _ => ErrorSense::Strict,
    }
}

/// The first occurrence of each of Larder's pointers, if they leave half of the target to words; otherwise the first, which
/// leads to the whole of a text that was condensed before. They are behind the pointer of the condensed text, too.
pub fn required_pointers(text: &str, key: &PointerKey, target: usize) -> Vec<Range<usize>> {
    first_of_each_pointer(&key.find_in(text), target)
}

fn first_of_each_pointer(pointers: &[(Range<usize>, Pointer)], target: usize) -> Vec<Range<usize>> {
    let mut seen = HashSet::new();
    let first = pointers.iter().filter(|(_, pointer)| seen.insert(pointer));
    let ranges: Vec<_> = first.map(|(range, _)| range.clone()).collect();
    let fits = ranges.len().saturating_mul(POINTER_TOKENS) <= target / POINTERS_SHARE;
    let kept = if fits { ranges.len() } else { 1 };
    ranges.into_iter().take(kept).collect()
}

/// The first occurrence of each pin and of each of Larder's pointers.
fn required(request: &CondenseRequest<'_>, pointers: &[(Range<usize>, Pointer)]) -> Vec<Range<usize>> {
    let places = request.pins.iter().filter_map(|pin| Some((request.text.find(pin.as_str())?, pin.len())));
    let mut ranges: Vec<Range<usize>> =
        places.filter(|&(_, len)| len > 0).map(|(at, len)| at..at + len).collect();
    ranges.extend(first_of_each_pointer(pointers, request.target));
    ranges
}

/// Indices of the salient spans with a new value; of error lines that differ only in digits, the first few.
fn first_of_each(text: &str, spans: &[SalientSpan]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut similar: HashMap<u64, usize> = HashMap::new();
    let mut is_new = |span: &SalientSpan| {
        let value = &text[span.range.clone()];
        let is_error = span.kind == SpanKind::Error;
        let before = if is_error { similar.entry(template(value)).or_default() } else { &mut 0 };
        let is_new = span.kind.is_salient() && *before < SIMILAR_ERRORS && seen.insert((span.kind, value));
        *before += usize::from(is_new);
        is_new
    };
    (0..spans.len()).filter(|&index| is_new(&spans[index])).collect()
}

/// Sorts ranges and merges those that overlap or touch.
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

/// Whether one of the sorted `ranges` contains all of `inner`.
pub(crate) fn contains(ranges: &[Range<usize>], inner: &Range<usize>) -> bool {
    let at = ranges.partition_point(|range| range.end < inner.end);
    ranges.get(at).is_some_and(|range| range.start <= inner.start)
}
