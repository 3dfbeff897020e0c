//! Renders the header, counted examples in log order, and markers for what is neither shown nor folded.
//!
//! Knows records and tokens; does not know why one record precedes another. A record whose template has an example is
//! covered by that example's count; otherwise it is in a marked gap. The wording, for a pointer `P`:
//!
//! ```text
//! [Condensed log. Full text: P. "12× line" = 12 lines like this one, the others differ in values and are folded away; "[… Lx-y]" = lines x to y left out here, "[… Bx-y]" = bytes; to read lines, append #Lx-y to the pointer.]
//! ```

use std::ops::Range;

use super::choose::LogOrder;
use super::records::excerpt;
use crate::engine::draft::CondensedDraft;
use crate::engine::greedy::{attempts, max_fitting};
use crate::engine::job::Job;
use crate::engine::render::{Header, Renderer};

/// Unused tokens that are not worth another attempt.
const SLACK: usize = 24;

/// Tokens of the header in this form.
pub(super) fn header_tokens(job: &Job<'_>, header: Header) -> usize {
    job.request.counter.count(&head(job, &renderer(job, header), header))
}

fn renderer<'a>(job: &'a Job<'a>, header: Header) -> Renderer<'a> {
    let imitated = job.request.text.contains('×');
    Renderer::new(job, header).tagged_if(imitated)
}

fn head(job: &Job<'_>, renderer: &Renderer<'_>, header: Header) -> String {
    let (id, tag) = (&job.id, renderer.tag());
    match header {
        Header::Full => format!(
            "[Condensed log. Full text: {id}. \"12×{tag} line\" = 12 lines like this one, the others differ in values \
             and are folded away; \"[…{tag} Lx-y]\" = lines x to y left out here, \"[…{tag} Bx-y]\" = bytes; to read \
             lines, append #Lx-y to the pointer.]\n"
        ),
        Header::Short => format!(
            "[Condensed: {id}. \"12×{tag}\" = 12 lines like it; \"[…{tag} Lx-y]\" = left out: append #Lx-y to read.]\n"
        ),
        Header::Brief => format!("[Condensed: {id}. \"12×{tag}\" = 12 lines like it.]\n"),
        Header::Bare => renderer.header(),
    }
}

/// A log's condensed forms under one header.
pub(super) struct LogPage<'a> {
    job: &'a Job<'a>,
    plan: &'a LogOrder,
    header: Header,
    renderer: Renderer<'a>,
}

impl<'a> LogPage<'a> {
    pub(super) fn new(job: &'a Job<'a>, plan: &'a LogOrder, header: Header) -> Self {
        Self { job, plan, header, renderer: renderer(job, header) }
    }

    /// Tokens with an example of every template.
    pub(super) fn essential(&self) -> usize {
        self.tokens(&self.with_first(self.plan.essential))
    }

    /// As many records as the target holds, in order; `None` if not even one fits, or not all that are required.
    pub(super) fn fit(&self) -> Option<CondensedDraft> {
        let target = self.job.request.target;
        let (order, essential) = (&self.plan.order, self.plan.essential);
        let range = if self.fits(essential) { essential..=order.len() } else { 0..=essential };
        let taken = max_fitting(range, |count| self.fits(count));
        let mut shown = self.with_first(taken);
        if !shown.contains(&true) {
            return None;
        }
        self.fill(&mut shown, &order[taken..]);
        let draft = self.draft(&shown);
        let stands = |range: &Range<usize>| self.holds(&draft, range);
        (self.tokens(&shown) <= target && self.job.required.iter().all(stands)).then_some(draft)
    }

    fn holds(&self, draft: &CondensedDraft, range: &Range<usize>) -> bool {
        draft.text.contains(&self.job.request.text[range.clone()])
    }

    /// Adds those of `rest` that still fit.
    fn fill(&self, shown: &mut [bool], rest: &[usize]) {
        let target = self.job.request.target;
        let mut free = target.saturating_sub(self.tokens(shown));
        let mut tried = 0;
        for &record in rest {
            if free <= SLACK || tried == attempts(target) {
                return;
            }
            let bytes = self.plan.records[record].len() as f32;
            if bytes * self.job.tokens_per_byte() > free as f32 {
                continue;
            }
            tried += 1;
            shown[record] = true;
            let tokens = self.tokens(shown);
            if tokens > target {
                shown[record] = false;
            } else {
                free = target - tokens;
            }
        }
    }

    fn with_first(&self, count: usize) -> Vec<bool> {
        let mut shown = vec![false; self.plan.records.len()];
        self.plan.required.iter().chain(&self.plan.order[..count]).for_each(|&record| shown[record] = true);
        shown
    }

    fn fits(&self, count: usize) -> bool {
        let text = self.draft(&self.with_first(count)).text;
        self.job.request.counter.count_up_to(&text, self.job.request.target).is_some()
    }

    fn tokens(&self, shown: &[bool]) -> usize {
        self.job.request.counter.count(&self.draft(shown).text)
    }

    fn draft(&self, shown: &[bool]) -> CondensedDraft {
        let templates = &self.plan.templates;
        let mut has_example = vec![false; templates.counts.len()];
        for (record, &template) in templates.of.iter().enumerate() {
            has_example[template] |= shown[record];
        }
        let mut sheet = LogSheet::new(self.job, &self.renderer, head(self.job, &self.renderer, self.header));
        let mut counted = vec![false; templates.counts.len()];
        for (record, range) in self.plan.records.iter().enumerate() {
            let template = templates.of[record];
            if shown[record] {
                let first = !std::mem::replace(&mut counted[template], true);
                sheet.show(range, if first { templates.counts[template] } else { 1 });
            } else if !has_example[template] {
                sheet.leave_out(range);
            }
        }
        sheet.finish()
    }
}

/// A page being rendered, from top to bottom.
struct LogSheet<'a> {
    text: &'a str,
    renderer: &'a Renderer<'a>,
    draft: CondensedDraft,
    /// How far the original has been accounted for.
    at: usize,
    /// A gap that may still grow.
    gap: Option<Range<usize>>,
}

impl<'a> LogSheet<'a> {
    fn new(job: &Job<'a>, renderer: &'a Renderer<'a>, head: String) -> Self {
        let draft = CondensedDraft { text: head, shown: Vec::new(), rewritten: Vec::new(), gaps: Vec::new() };
        Self { text: job.request.text, renderer, draft, at: 0, gap: None }
    }

    /// Gaps with nothing shown between them are one, even if something is folded there.
    fn leave_out(&mut self, range: &Range<usize>) {
        self.gap = Some(self.gap.take().map_or(range.clone(), |gap| gap.start..range.end));
    }

    fn show(&mut self, record: &Range<usize>, count: usize) {
        self.close_gap();
        self.tell_until(record.start);
        if count > 1 {
            self.draft.text.push_str(&format!("{count}×{} ", self.renderer.tag()));
        }
        for part in excerpt(self.text, record) {
            if self.at < part.start {
                self.leave_out(&(self.at..part.start));
                self.close_gap();
            }
            self.draft.text.push_str(&self.text[part.clone()]);
            self.draft.shown.push(part.clone());
            self.at = part.end;
        }
        // What an excerpt omits is blank, or the rest of an overlong line or record.
        if !self.text[self.at..record.end].trim().is_empty() {
            self.leave_out(&(self.at..record.end));
            self.close_gap();
        }
        self.end_line();
    }

    fn close_gap(&mut self) {
        let Some(gap) = self.gap.take() else { return };
        self.tell_until(gap.start);
        if !self.draft.text.ends_with('\n') {
            self.draft.text.push(' ');
        }
        self.draft.text.push_str(&self.renderer.mark(gap.start, gap.end));
        self.draft.text.push('\n');
        self.at = gap.end;
        self.draft.gaps.push(self.renderer.gap(gap));
    }

    fn tell_until(&mut self, end: usize) {
        if self.at < end {
            self.draft.rewritten.push(self.at..end);
            self.at = end;
        }
    }

    fn end_line(&mut self) {
        if !self.draft.text.ends_with('\n') {
            self.draft.text.push('\n');
        }
    }

    fn finish(mut self) -> CondensedDraft {
        self.close_gap();
        self.tell_until(self.text.len());
        if !self.text.ends_with('\n') {
            self.draft.text.pop();
        }
        self.draft
    }
}
