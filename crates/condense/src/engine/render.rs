//! Writes a condensed text: the header line, the text shown, and the gap markers.
//!
//! Knows shown ranges and pointers; does not know why a range is shown. The wording, for a pointer `P`:
//!
//! ```text
//! [Condensed. Full text: P. "[… Lx-y]" = lines x to y left out here, "[… Bx-y]" = bytes; to read them, append #Lx-y or #Bx-y to the pointer.]
//! [Condensed: P. "[… Lx-y]" = left out: append #Lx-y to read.]      where that would be too dear
//! [… P]                                                             where that is too dear as well; gaps are `[…]`
//! [Condensed: P]                                                    for a reader who knows gap markers
//! ```
//!
//! `[… L3-9 as above]` stands for lines that the reader has seen in an earlier text of the same prompt.
//!
//! A marker says where the gap is, never how many items it contains: absence is not evidence. If the original already
//! contains something like a marker (because it was condensed before, or forged), markers and header carry a tag from
//! the pointer's keyed checksum, which the original's author cannot know.

use std::ops::Range;

use crate::condensed::{Gap, GapUnit};
use crate::engine::draft::ExtractionOptions;
use crate::engine::job::Job;
use crate::engine::markers::OPEN;
use crate::engine::source_map::{Part, SourceMap};
use larder_text::lines::LineIndex;
use larder_text::pointer::{Pointer, PointerId};

/// A hidden range of at most this many bytes costs no more than its marker.
const SHORTEST_GAP: usize = 12;

/// Maximum indentation of markers, in bytes.
const DEEPEST_MARK: usize = 48;

/// How much the header explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Full,
    Short,
    /// For a reader who knows gap markers.
    Brief,
    Bare,
}

impl Header {
    /// The header forms for this job's reader, from clearest to cheapest.
    pub(crate) const fn ladder(job: &Job<'_>) -> &'static [Self] {
        if job.view.markers_known {
            &[Self::Brief, Self::Bare]
        } else {
            &[Self::Full, Self::Short, Self::Bare]
        }
    }

    /// The share of the target, as one part in this many, that this form may take.
    pub(crate) const fn share(self) -> usize {
        match self {
            Self::Full => 8,
            Self::Short | Self::Brief => 3,
            Self::Bare => 1,
        }
    }
}

/// Writes the condensed forms of one original.
#[derive(Debug, Clone)]
pub(crate) struct Renderer<'a> {
    text: &'a str,
    lines: &'a LineIndex,
    id: &'a PointerId,
    tag: String,
    header: Header,
    options: Option<&'a ExtractionOptions>,
    source_map: Option<&'a SourceMap>,
    seen: &'a [Range<usize>],
    /// Which bytes of the original the text is.
    job: &'a Job<'a>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(job: &'a Job<'_>, header: Header) -> Self {
        let (text, digits) = (job.request.text, job.id.as_str());
        let tag = if text.contains(OPEN) { digits[digits.len() - 2..].to_owned() } else { String::new() };
        let seen = job.view.seen;
        Self {
            text,
            lines: &job.lines,
            id: &job.id,
            tag,
            header,
            options: None,
            source_map: job.source_map,
            seen,
            job,
        }
    }

    /// The same renderer with a content type's markers.
    pub(crate) fn with_options(self, options: &'a ExtractionOptions) -> Self {
        Self { options: Some(options), ..self }
    }

    /// Forces a tag if `imitated`: only the type's condenser can tell that the original may contain something like a
    /// marker.
    pub(crate) fn tagged_if(mut self, imitated: bool) -> Self {
        if imitated {
            let digits = self.id.as_str();
            self.tag = digits[digits.len() - 2..].to_owned();
        }
        self
    }

    /// Distinguishes Larder's markers from forgeries; empty if the text contains none.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// The first line of the text, which gives the pointer and explains gap markers.
    pub(crate) fn header(&self) -> String {
        let (id, tag) = (self.id, &self.tag);
        let made = if self.source_map.is_some() { ", made readable" } else { "" };
        match self.header {
            Header::Full => format!(
                "[Condensed{made}. Full text: {id}. \"[…{tag} Lx-y]\" = lines x to y left out here, \"[…{tag} Bx-y]\" = bytes; \
                 to read them, append #Lx-y or #Bx-y to the pointer.]\n"
            ),
            Header::Short => {
                format!("[Condensed: {id}. \"[…{tag} Lx-y]\" = left out: append #Lx-y to read.]\n")
            }
            Header::Brief => format!("[Condensed{made}: {id}]\n"),
            Header::Bare => format!("[…{tag} {id}]\n"),
        }
    }

    /// A marker of typical size, for estimating costs.
    pub(crate) fn sample_mark(&self) -> String {
        let middle = self.lines.text_len() / 2;
        format!(" {} ", self.mark(middle + 1, (middle + 999).min(self.lines.text_len())))
    }

    /// Sorts and merges `shown`, and closes gaps too short for a marker.
    pub(crate) fn settle(&self, shown: impl IntoIterator<Item = Range<usize>>) -> Vec<Range<usize>> {
        let mut settled: Vec<Range<usize>> = Vec::new();
        for range in shown {
            match settled.last_mut() {
                Some(last) if range.start <= last.end + SHORTEST_GAP => last.end = last.end.max(range.end),
                None if range.start <= SHORTEST_GAP => settled.push(0..range.end),
                _ if range.is_empty() => {}
                _ => settled.push(range),
            }
        }
        if let Some(last) = settled.last_mut().filter(|last| self.text.len() - last.end <= SHORTEST_GAP) {
            last.end = self.text.len();
        }
        settled
    }

    /// The condensed text for `shown`, which must be settled.
    pub(crate) fn text(&self, shown: &[Range<usize>]) -> String {
        let mut out = self.header();
        if shown.is_empty() {
            if self.header == Header::Bare {
                out.pop();
            } else {
                out.push_str(&self.mark(0, self.lines.text_len()));
            }
            return out;
        }
        for part in self.parts(shown) {
            match part {
                Part::Shown(range) => out.push_str(&self.text[range]),
                Part::Gap(gap, before) => self.push_gap(&mut out, gap, before),
            }
        }
        out
    }

    /// The parts of the text for `shown`.
    fn parts(&self, shown: &[Range<usize>]) -> Vec<Part> {
        if let Some(source_map) = self.source_map {
            return source_map.parts(shown, self.lines.text_len());
        }
        let mut parts = Vec::with_capacity(2 * shown.len() + 1);
        let mut at = 0;
        for range in shown {
            if at < range.start {
                parts.push(Part::Gap(at..range.start, range.start));
            }
            parts.push(Part::Shown(range.clone()));
            at = range.end;
        }
        if at < self.text.len() {
            parts.push(Part::Gap(at..self.text.len(), self.text.len()));
        }
        parts
    }

    /// `before` is the position in the text where the gap ends.
    fn push_gap(&self, out: &mut String, gap: Range<usize>, before: usize) {
        if !out.ends_with(|c: char| c.is_whitespace()) {
            out.push(' ');
        }
        out.push_str(self.indentation(&gap));
        out.push_str(&self.mark(gap.start, gap.end));
        if before >= self.text.len() {
            return;
        }
        if self.text[..before].ends_with('\n') {
            out.push('\n');
        } else if !self.text[before..].starts_with(|c: char| c.is_whitespace()) {
            out.push(' ');
        }
    }

    /// White space before the first line that the gap hides, if markers are indented.
    fn indentation(&self, gap: &Range<usize>) -> &'a str {
        let indented =
            self.options.is_some_and(|options| options.indented_markers) && self.header != Header::Bare;
        if !indented || !self.lines.is_boundary(gap.start) {
            return "";
        }
        let hidden = &self.text[gap.clone()];
        let first = hidden.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let white = first.len() - first.trim_start_matches([' ', '\t']).len();
        if white <= DEEPEST_MARK { &first[..white] } else { "" }
    }

    /// The marker for bytes `start..end`.
    pub(crate) fn mark(&self, start: usize, end: usize) -> String {
        let tag = &self.tag;
        if self.header == Header::Bare {
            return format!("{OPEN}{tag}]");
        }
        let names = self.names(start..end);
        let above = if self.is_seen(start..end) { " as above" } else { "" };
        match self.line_range(start, end) {
            Some((first, last)) => format!("{OPEN}{tag} L{first}-{last}{names}{above}]"),
            None => {
                let (start, end) = (self.job.in_original(start), self.job.in_original(end));
                format!("{OPEN}{tag} B{start}-{end}{names}{above}]")
            }
        }
    }

    /// Whether everything hidden appears in what the reader has seen before.
    fn is_seen(&self, hidden: Range<usize>) -> bool {
        let first = self.seen.partition_point(|range| range.end <= hidden.start);
        let holds = |range: &Range<usize>| range.start <= hidden.start && hidden.end <= range.end;
        self.seen.get(first).is_some_and(holds)
    }

    /// The named parts fully contained in the range: `, messages 3-7`.
    fn names(&self, hidden: Range<usize>) -> String {
        let Some((name, parts)) = self.options.and_then(|options| options.names.as_ref()) else {
            return String::new();
        };
        let first = parts.partition_point(|(_, part)| part.start < hidden.start);
        let end = parts.partition_point(|(_, part)| part.end <= hidden.end);
        match parts.get(first..end) {
            None | Some([]) => String::new(),
            Some([(number, _)]) => format!(", {name} {number}"),
            Some([(first, _), .., (last, _)]) => format!(", {name}s {first}-{last}"),
        }
    }

    /// The first and last line, if the bytes are exactly whole lines.
    fn line_range(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        let whole = start < end && self.lines.is_boundary(start) && self.lines.is_boundary(end);
        whole.then(|| (self.lines.number(start), self.lines.number(end - 1)))
    }

    /// The gaps left by `shown`, which must be settled.
    pub(crate) fn gaps(&self, shown: &[Range<usize>]) -> Vec<Gap> {
        let gaps = self.parts(shown).into_iter().filter_map(|part| match part {
            Part::Gap(bytes, _) => Some(self.gap(bytes)),
            Part::Shown(_) => None,
        });
        gaps.collect()
    }

    /// The gap that omits `bytes`.
    pub(crate) fn gap(&self, bytes: Range<usize>) -> Gap {
        match self.line_range(bytes.start, bytes.end) {
            Some((first, last)) => Gap {
                unit: GapUnit::Line,
                range: (first, last),
                count: last + 1 - first,
                pointer: Pointer::lines(self.id.clone(), first, last),
                bytes,
            },
            None => {
                let range = (self.job.in_original(bytes.start), self.job.in_original(bytes.end));
                let pointer = Pointer::bytes(self.id.clone(), range.0..range.1);
                Gap { unit: GapUnit::Byte, range, count: range.1 - range.0, pointer, bytes }
            }
        }
    }
}
