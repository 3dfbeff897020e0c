//! The frame every condenser stands in: what it is given, what it gives back, and how the result is proved.
//!
//! Knows nothing of any content type. A condenser that re-tells its input (a table for an array, a template for log
//! lines) implements [`Condenser`]; one that shows a subset of the original's bytes implements [`Divide`] and is
//! wrapped in [`Extractive`].

use std::cell::OnceCell;
use std::ops::Range;

use hashbrown::HashMap;

use super::earlier;
use super::explain::{self, UnitReason};
use super::extract::extract;
use super::pins::{self, ErrorSense, Span, SpanKind};
use super::render::Lines;
use super::retold::Retold;
use super::units::Piece;
use super::{CondenseError, CondenseRequest, Condensed, ContentType, Gap, InView, Known, Probes};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerId};

/// Where there is no white space, a word is taken to end after so many bytes.
const LONGEST_WORD: usize = 48;
/// How many bytes of a retold text are counted to learn what a byte costs.
const DENSITY_SAMPLE: usize = 16 << 10;

/// Makes one content type smaller.
pub(super) trait Condenser: Sync {
    /// A text of at most the target's tokens, or why there is none.
    fn condense(&self, job: &Job<'_>) -> Result<Draft, CondenseError>;

    /// The smallest target at which one of every kind of thing in the text still stands, if this type has kinds.
    fn essential(&self, _job: &Job<'_>) -> Option<usize> {
        None
    }

    /// The same, and why each unit is shown or not.
    fn explain(&self, job: &Job<'_>) -> Result<(Draft, Vec<UnitReason>), CondenseError> {
        let draft = self.condense(job)?;
        let reasons = explain::of_draft(job, &draft);
        Ok((draft, reasons))
    }

    /// Whether `text` has the structure that readers of this type rely on. What had it must keep it.
    fn parses(&self, _text: &str) -> bool {
        true
    }
}

/// How the units of a type are chosen among, and how its gaps are written.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    /// Telling spans go before all text that holds none; otherwise they only add to its worth.
    pub(super) telling_first: bool,
    /// Marks are indented as what they stand for.
    pub(super) indented_marks: bool,
    /// What the parts of the text are called, in the singular, and where each stands: gaps say which they leave out.
    pub(super) names: Option<(&'static str, Vec<Range<usize>>)>,
}

impl Default for Manner {
    fn default() -> Self {
        Self { telling_first: true, indented_marks: false, names: None }
    }
}

/// Divides a text into units; choosing among them is common to all.
pub(super) trait Divide: Sync {
    /// Units that tile the text.
    fn units(&self, job: &Job<'_>) -> Vec<Piece>;

    /// How they are chosen among.
    fn manner(&self, _text: &str) -> Manner {
        Manner::default()
    }

    /// See [`Condenser::parses`].
    fn parses(&self, _text: &str) -> bool {
        true
    }
}

/// A condenser whose output is a subset of the original's bytes, with marked gaps.
pub(super) struct Extractive<D>(pub(super) D);

impl<D: Divide> Condenser for Extractive<D> {
    fn condense(&self, job: &Job<'_>) -> Result<Draft, CondenseError> {
        extract(job, &self.0.units(job), &self.0.manner(job.request.text), None)
    }

    fn explain(&self, job: &Job<'_>) -> Result<(Draft, Vec<UnitReason>), CondenseError> {
        let mut reasons = Vec::new();
        let manner = self.0.manner(job.request.text);
        let draft = extract(job, &self.0.units(job), &manner, Some(&mut reasons))?;
        Ok((draft, reasons))
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
    /// The lines of the original.
    pub(super) lines: Lines,
    /// Where the words of the request's text stand in the original, if it is not the original itself.
    pub(super) retold: Option<&'a Retold>,
    /// What the reader sees and knows beside the condensed text.
    pub(super) view: InView<'a>,
    tokens_per_byte: f32,
    /// Where pins, our own pointers and the marks of an earlier condensation stand, joined; all must be shown.
    pub(super) required: Vec<Range<usize>>,
    /// Which of them are marks: these give way where they do not fit.
    pub(super) marks: Vec<Range<usize>>,
    /// Looked for when first asked for: what re-tells a large text asks for none.
    spans: OnceCell<Spans>,
}

/// The spans of a text that matter.
#[derive(Debug, Clone)]
struct Spans {
    /// By start.
    all: Vec<Span>,
    /// Indices into `all`: the first place of every distinct telling value.
    telling: Vec<usize>,
    /// Stretches that are not cut: spans and required ranges, joined.
    whole: Vec<Range<usize>>,
}

impl<'a> Job<'a> {
    /// Its pins stand in the original.
    pub(super) fn new(request: &'a CondenseRequest<'a>, known: Known) -> Self {
        let text = request.text;
        let pointers = request.key.find_in(text);
        let hard = required(request, &pointers);
        let marks = earlier::marks(request, &hard, &pointers);
        let required = join(hard.into_iter().chain(marks.iter().cloned()).collect());
        Self {
            request,
            original_tokens: known.tokens,
            id: request.key.mint(known.hash),
            lines: Lines::of(text),
            retold: None,
            view: InView::default(),
            tokens_per_byte: tokens_per_byte(known.tokens, text),
            required,
            marks,
            spans: OnceCell::new(),
        }
    }

    /// The same for a reader with this in view: values that stand there tell nothing here.
    pub(super) fn in_view(self, view: InView<'a>) -> Self {
        Self { view, spans: OnceCell::new(), ..self }
    }

    /// The same without the marks of an earlier condensation, which need not stand.
    pub(super) fn without_marks(&self) -> Self {
        Self {
            id: self.id.clone(),
            lines: self.lines.clone(),
            required: join(required(self.request, &self.request.key.find_in(self.request.text))),
            marks: Vec::new(),
            spans: OnceCell::new(),
            ..*self
        }
    }

    /// The job of condensing `request.text`, which retells the original of `job`.
    pub(super) fn of_retold(job: &Job<'_>, request: &'a CondenseRequest<'a>, retold: &'a Retold) -> Self {
        let sample = &request.text[..request.text.floor_char_boundary(DENSITY_SAMPLE)];
        let tokens = request.counter.count(sample);
        let hash = ContentHash::of(request.text.as_bytes());
        let own = Self::new(request, Known { hash, tokens: job.original_tokens });
        let own = if job.marks.is_empty() { own.without_marks() } else { own };
        Self {
            id: job.id.clone(),
            lines: job.lines.clone(),
            retold: Some(retold),
            view: InView { above: &[], ..job.view },
            tokens_per_byte: tokens_per_byte(tokens, sample),
            ..own
        }
    }

    fn spans(&self) -> &Spans {
        self.spans.get_or_init(|| {
            let text = self.request.text;
            let all = pins::scan(text, error_sense(self.request.content_type));
            let mut telling = first_of_each(text, &all);
            telling.retain(|&index| !within(self.view.above, &all[index].range));
            let ranges = all.iter().map(|span| span.range.clone()).chain(self.required.iter().cloned());
            Spans { whole: join(ranges.collect()), telling, all }
        })
    }

    /// The first place of every distinct telling value, by start.
    pub(super) fn telling(&self) -> Vec<&Span> {
        let spans = self.spans();
        spans.telling.iter().map(|&index| &spans.all[index]).collect()
    }

    /// How many tokens a byte of this text costs on average.
    pub(super) fn tokens_per_byte(&self) -> f32 {
        self.tokens_per_byte
    }

    /// The longest beginning of `range` of at most `room` tokens that ends between words and cuts no span; gives
    /// its end, or none if not even one word fits.
    pub(super) fn cut_at(&self, range: &Range<usize>, room: usize) -> Option<usize> {
        let ends = self.word_ends(range);
        let count = |end: usize| self.request.counter.count(&self.request.text[range.start..end]);
        let fitting = ends.partition_point(|&end| count(end) <= room);
        fitting.checked_sub(1).map(|last| ends[last])
    }

    /// As [`cut_at`](Self::cut_at), but it may end within a word, though within no span and no character.
    pub(super) fn cut_within(&self, range: &Range<usize>, room: usize) -> Option<usize> {
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

    /// What became of every distinct telling value and number: it stands in what is shown or above, or as a word of
    /// `text`.
    pub(super) fn probes(&self, shown: &[Range<usize>], text: &str) -> Probes {
        if self.view.unprobed {
            return Probes::default();
        }
        let between = |c: char| c.is_whitespace() || "|,;:={}()[]\"".contains(c);
        let words: hashbrown::HashSet<&str> =
            text.split(char::is_whitespace).chain(text.split(between)).collect();
        let mut kept: HashMap<(SpanKind, &str), bool> = HashMap::with_capacity(self.spans().all.len());
        for span in &self.spans().all {
            let value = &self.request.text[span.range.clone()];
            let range = &span.range;
            let stands = within(shown, range) || within(self.view.above, range) || words.contains(value);
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

/// Everyone may write of errors; tools report them.
fn error_sense(content_type: ContentType) -> ErrorSense {
    match content_type {
        ContentType::ToolResult | ContentType::Generic => ErrorSense::Loose,
        _ => ErrorSense::Strict,
    }
}

/// Where pins stand (the first place of each) and where our own pointers stand (the first place of each).
fn required(request: &CondenseRequest<'_>, pointers: &[(Range<usize>, Pointer)]) -> Vec<Range<usize>> {
    let places = request.pins.iter().filter_map(|pin| Some((request.text.find(pin.as_str())?, pin.len())));
    let mut ranges: Vec<Range<usize>> =
        places.filter(|&(_, len)| len > 0).map(|(at, len)| at..at + len).collect();
    let mut seen = HashMap::new();
    for (range, pointer) in pointers {
        seen.entry(pointer).or_insert_with(|| ranges.push(range.clone()));
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
        probes: job.probes(&draft.shown, &draft.text),
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
