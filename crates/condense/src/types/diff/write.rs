//! Renders the header, a line for every file, the lines shown, and markers for those that are not.
//!
//! Knows files, lines and tokens; does not know why one line precedes another. A file's header lines are represented
//! by a single line here: `modified src/a.rs +5 -3`, `renamed src/b.rs → src/c.rs +2 -0 [… L21-40]`.

use std::cell::RefCell;
use std::ops::Range;

use hashbrown::HashMap;

use super::choose::{DiffOrder, changes};
use super::parse::{DiffFile, ParsedDiff, Status};
use crate::engine::draft::CondensedDraft;
use crate::engine::greedy::{attempts, max_fitting};
use crate::engine::job::Job;
use crate::engine::markers::OPEN;
use crate::engine::render::{Header, Renderer};

/// The shares of the target, in per cent, that names with markers and the counts of every hunk may take, that names with
/// a marker each may take, and that names alone may take.
const SHARE_OF_HUNKS: usize = 25;
const SHARE_OF_MARKED: usize = 35;
const SHARE_OF_NAMES: usize = 60;
/// Unused tokens that are not worth another attempt.
const SLACK: usize = 24;

/// How files are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileNaming {
    /// As `Marked`, and markers have the counts of each hunk that they replace (R3-4.21).
    Hunks,
    /// One line each, with a marker for what is omitted.
    Marked,
    /// One line each; adjacent files share a marker.
    Lines,
    /// Adjacent files with the same folder and status on one line: `modified src/{a.rs +1 -2, b.rs +3 -0}`.
    Folders,
}

/// Tokens of the header in this form.
pub(super) fn header_tokens(job: &Job<'_>, diff: &ParsedDiff, header: Header) -> usize {
    job.request.counter.count(&head(job, &renderer(job, diff, header), diff, header))
}

/// Git escapes names, which could hide something that looks like a marker.
fn renderer<'a>(job: &'a Job<'a>, diff: &ParsedDiff, header: Header) -> Renderer<'a> {
    let names = diff.files.iter().flat_map(|file| [&file.old, &file.new]).flatten();
    Renderer::new(job, header).tagged_if(names.into_iter().any(|name| name.contains(OPEN)))
}

fn head(job: &Job<'_>, renderer: &Renderer<'_>, diff: &ParsedDiff, header: Header) -> String {
    let (id, tag, count) = (&job.id, renderer.tag(), diff.files.len());
    let (added, removed) =
        diff.files.iter().fold((0_usize, 0_usize), |(a, r), f| (a + f.added, r + f.removed));
    match header {
        Header::Full => format!(
            "[Condensed diff: {count} files, +{added} -{removed}. Full text: {id}. Each file is named with its lines \
             added and removed; \"[…{tag} Lx-y]\" = lines x to y of the diff left out here; to read them, append \
             #Lx-y to the pointer.]\n"
        ),
        Header::Short => format!(
            "[Condensed diff, {count} files: {id}. \"[…{tag} Lx-y]\" = left out: append #Lx-y to read.]\n"
        ),
        Header::Brief => format!("[Condensed diff, {count} files: {id}]\n"),
        Header::Bare => renderer.header(),
    }
}

impl FileNaming {
    /// Whether each file has markers of its own.
    const fn is_marked(self) -> bool {
        matches!(self, Self::Hunks | Self::Marked)
    }
}

/// What is shown and named.
#[derive(Debug, Clone)]
struct DiffView {
    style: FileNaming,
    lines: Vec<bool>,
    named: Vec<bool>,
}

/// How each file stands that shows none of its lines, by file and whether its hunks are counted: most files of a large diff
/// do in every attempt.
type HiddenFiles = RefCell<HashMap<(usize, bool), String>>;

/// A diff's condensed forms under one header.
pub(super) struct DiffPage<'a> {
    job: &'a Job<'a>,
    diff: &'a ParsedDiff,
    plan: &'a DiffOrder,
    renderer: Renderer<'a>,
    head: String,
    /// The lines of every hunk.
    hunks: Vec<Range<usize>>,
    /// What follows the name of every file.
    stats: Vec<String>,
    hidden: HiddenFiles,
}

impl<'a> DiffPage<'a> {
    pub(super) fn new(job: &'a Job<'a>, diff: &'a ParsedDiff, plan: &'a DiffOrder, header: Header) -> Self {
        let renderer = renderer(job, diff, header);
        let head = head(job, &renderer, diff, header);
        let hunks = diff.files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.lines.clone()).collect();
        let stats = diff.files.iter().map(stat).collect();
        Self { job, diff, plan, renderer, head, hunks, stats, hidden: RefCell::default() }
    }

    /// Tokens with every file named and only required lines shown.
    pub(super) fn essential(&self) -> usize {
        self.tokens(&self.named(FileNaming::Lines, self.diff.files.len()))
    }

    /// As much as the target holds; `None` if it cannot hold the required lines.
    pub(super) fn fit(&self) -> Option<CondensedDraft> {
        let mut view = self.base()?;
        let bare = view.clone();
        let taken = max_fitting(0..=self.plan.steps.len(), |count| {
            let mut view = bare.clone();
            self.plan.steps[..count].iter().for_each(|step| step.show(&mut view));
            self.fits(&view)
        });
        self.plan.steps[..taken].iter().for_each(|step| step.show(&mut view));
        self.fill(&mut view, &self.plan.steps[taken..]);
        let draft = self.draft(&view);
        let stands = |range: &Range<usize>| draft.text.contains(&self.job.request.text[range.clone()]);
        (self.fits(&view) && self.job.required.iter().all(stands)).then_some(draft)
    }

    /// The clearest naming of files that the target can hold; as many files as possible if it cannot hold all.
    fn base(&self) -> Option<DiffView> {
        let (target, count) = (self.job.request.target, self.diff.files.len());
        for (style, share) in [
            (FileNaming::Hunks, SHARE_OF_HUNKS),
            (FileNaming::Marked, SHARE_OF_MARKED),
            (FileNaming::Lines, SHARE_OF_NAMES),
            (FileNaming::Folders, 100),
            (FileNaming::Lines, 100),
        ] {
            let view = self.named(style, count);
            if self.tokens(&view) <= target.saturating_mul(share) / 100 {
                return Some(view);
            }
        }
        let most = max_fitting(0..=count, |count| self.fits(&self.named(FileNaming::Folders, count)));
        let view = self.named(FileNaming::Folders, most);
        self.fits(&view).then_some(view)
    }

    fn named(&self, style: FileNaming, count: usize) -> DiffView {
        let mut view = DiffView {
            style,
            lines: vec![false; self.diff.lines.len()],
            named: vec![false; self.diff.files.len()],
        };
        self.plan.names[..count].iter().for_each(|&file| view.named[file] = true);
        self.plan.required.iter().for_each(|&line| view.lines[line] = true);
        view
    }

    /// Adds those of `rest` that still fit.
    fn fill(&self, view: &mut DiffView, rest: &[super::choose::DiffStep]) {
        let target = self.job.request.target;
        let mut free = target.saturating_sub(self.tokens(view));
        let mut tried = 0;
        for step in rest {
            if free <= SLACK || tried == attempts(target) {
                return;
            }
            let bytes: usize = step
                .parts
                .iter()
                .flat_map(|part| &self.diff.lines[part.clone()])
                .map(|line| line.len())
                .sum();
            if bytes as f32 * self.job.tokens_per_byte() > free as f32 {
                continue;
            }
            tried += 1;
            let before = view.lines.clone();
            step.show(view);
            let tokens = self.tokens(view);
            if tokens > target {
                view.lines = before;
            } else {
                free = target - tokens;
            }
        }
    }

    fn fits(&self, view: &DiffView) -> bool {
        self.job.request.counter.count_up_to(&self.text(view), self.job.request.target).is_some()
    }

    fn tokens(&self, view: &DiffView) -> usize {
        self.job.request.counter.count(&self.text(view))
    }

    /// The text of a draft.
    fn text(&self, view: &DiffView) -> String {
        self.sheet(view, Some(&self.hidden)).write().text
    }

    fn draft(&self, view: &DiffView) -> CondensedDraft {
        self.sheet(view, None).write()
    }

    fn sheet<'s>(&'s self, view: &'s DiffView, hidden: Option<&'s HiddenFiles>) -> DiffSheet<'s> {
        let text = self.head.clone();
        let draft = CondensedDraft { text, shown: Vec::new(), rewritten: Vec::new(), gaps: Vec::new() };
        DiffSheet {
            text: self.job.request.text,
            diff: self.diff,
            hunks: &self.hunks,
            stats: &self.stats,
            renderer: &self.renderer,
            view,
            hidden,
            draft,
            gap: None,
            group: None,
        }
    }
}

impl super::choose::DiffStep {
    fn show(&self, view: &mut DiffView) {
        self.parts.iter().for_each(|part| view.lines[part.clone()].fill(true));
    }
}

/// A page being rendered, from top to bottom.
struct DiffSheet<'a> {
    text: &'a str,
    diff: &'a ParsedDiff,
    hunks: &'a [Range<usize>],
    stats: &'a [String],
    renderer: &'a Renderer<'a>,
    view: &'a DiffView,
    /// Files written before that show nothing, if only the text is wanted.
    hidden: Option<&'a HiddenFiles>,
    draft: CondensedDraft,
    /// Omitted lines that no marker covers yet.
    gap: Option<Range<usize>>,
    /// Folder and status of the names on the current line.
    group: Option<(&'a str, Status)>,
}

impl<'a> DiffSheet<'a> {
    fn write(mut self) -> CondensedDraft {
        let mut at = 0;
        for (index, file) in self.diff.files.iter().enumerate() {
            self.lines(at..file.lines.start);
            at = file.lines.end;
            let shows = self.view.lines[file.lines.clone()].contains(&true);
            let alike = self.hidden.filter(|_| !shows && self.view.named[index] && self.stands_alone());
            let Some(hidden) = alike else {
                self.file(index, file, shows);
                continue;
            };
            let key = (index, self.view.style == FileNaming::Hunks);
            if let Some(text) = hidden.borrow().get(&key) {
                self.draft.text.push_str(text);
                continue;
            }
            let start = self.draft.text.len();
            self.file(index, file, shows);
            hidden.borrow_mut().insert(key, self.draft.text[start..].to_owned());
        }
        self.lines(at..self.diff.lines.len());
        self.close_gap();
        self.end_line();
        if !self.text.ends_with('\n') && !self.draft.shown.is_empty() {
            self.draft.text.pop();
        }
        self.draft
    }

    /// Whether the text of the next file depends on nothing before it.
    fn stands_alone(&self) -> bool {
        self.view.style.is_marked() && self.gap.is_none() && self.draft.text.ends_with('\n')
    }

    fn file(&mut self, index: usize, file: &'a DiffFile, shows: bool) {
        let named = self.view.named[index];
        if named {
            self.name(file, &self.stats[index], shows);
        }
        let told = if named && self.gap.is_none() { file.header.clone() } else { 0..0 };
        self.header(told.clone());
        let rest = file.lines.start + told.len()..file.lines.end;
        if shows {
            self.lines(rest)
        } else {
            self.hide(rest)
        }
        if named && self.view.style.is_marked() {
            self.close_gap();
        }
    }

    /// The line that names a file.
    fn name(&mut self, file: &'a DiffFile, stat: &str, shows: bool) {
        if shows {
            self.close_gap();
        }
        let (folder, rest) = shortened(file);
        let group = (folder, file.status);
        if self.view.style == FileNaming::Folders && !folder.is_empty() {
            if self.group == Some(group) && self.draft.text.ends_with('}') {
                self.draft.text.pop();
                [", ", rest, stat, "}"].iter().for_each(|part| self.draft.text.push_str(part));
            } else {
                self.end_line();
                let line = [file.status.as_str(), " ", folder, "{", rest, stat, "}"];
                line.iter().for_each(|part| self.draft.text.push_str(part));
                self.group = Some(group);
            }
            return;
        }
        self.end_line();
        let moved = matches!(file.status, Status::Renamed | Status::Copied);
        let from = file.old.as_deref().filter(|_| moved).map(|old| format!("{old} → ")).unwrap_or_default();
        self.draft.text.push_str(&format!("{} {from}{}{stat}", file.status.as_str(), file.name()));
    }

    /// Skips the header lines of a file, which its name represents.
    fn header(&mut self, lines: Range<usize>) {
        for line in lines {
            let bytes = self.diff.lines[line].clone();
            if self.view.lines[line] {
                self.show(bytes);
            } else {
                match self.draft.rewritten.last_mut() {
                    Some(last) if last.end == bytes.start => last.end = bytes.end,
                    _ => self.draft.rewritten.push(bytes),
                }
            }
        }
    }

    fn lines(&mut self, lines: Range<usize>) {
        let mut at = lines.start;
        while at < lines.end {
            let shown = self.view.lines[at];
            let alike = self.view.lines[at..lines.end].iter().take_while(|&&other| other == shown).count();
            let run = at..at + alike;
            if shown {
                self.close_gap();
                self.show(self.diff.lines[run.start].start..self.diff.lines[run.end - 1].end);
            } else {
                self.hide(run.clone());
            }
            at = run.end;
        }
    }

    fn hide(&mut self, lines: Range<usize>) {
        if !lines.is_empty() {
            self.gap = Some(self.gap.take().map_or(lines.clone(), |gap| gap.start..lines.end));
        }
    }

    fn show(&mut self, bytes: Range<usize>) {
        self.end_line();
        self.draft.text.push_str(&self.text[bytes.clone()]);
        match self.draft.shown.last_mut() {
            Some(last) if last.end == bytes.start => last.end = bytes.end,
            _ => self.draft.shown.push(bytes),
        }
    }

    fn close_gap(&mut self) {
        let Some(gap) = self.gap.take() else { return };
        let bytes = self.diff.lines[gap.start].start..self.diff.lines[gap.end - 1].end;
        // Either on the line with the file's name, which has the counts already, or on a line with its own counts.
        let style = self.view.style;
        let beside_name = style.is_marked() && !self.draft.text.ends_with('\n');
        if beside_name {
            self.draft.text.push(' ');
        } else {
            self.end_line();
        }
        self.draft.text.push_str(&self.renderer.mark(bytes.start, bytes.end));
        let counts = match style {
            FileNaming::Hunks => self.hunk_counts(&gap),
            FileNaming::Marked => vec![changes(self.diff, gap)],
            FileNaming::Lines | FileNaming::Folders => Vec::new(),
        };
        if !beside_name || counts.len() > 1 {
            let counts = counts.iter().filter(|(added, removed)| added + removed > 0);
            let counts: Vec<String> =
                counts.map(|(added, removed)| format!(" +{added} -{removed}")).collect();
            self.draft.text.push_str(&counts.join(","));
        }
        self.draft.text.push('\n');
        if self.hidden.is_none() {
            self.draft.gaps.push(self.renderer.gap(bytes));
        }
    }

    /// Lines added and removed in each hunk, as far as it is omitted.
    fn hunk_counts(&self, gap: &Range<usize>) -> Vec<(usize, usize)> {
        let first = self.hunks.partition_point(|hunk| hunk.end <= gap.start);
        let hunks = self.hunks[first..].iter().take_while(|hunk| hunk.start < gap.end);
        hunks.map(|hunk| changes(self.diff, hunk.start.max(gap.start)..hunk.end.min(gap.end))).collect()
    }

    fn end_line(&mut self) {
        if !self.draft.text.ends_with('\n') {
            self.draft.text.push('\n');
        }
    }
}

/// The folder with its slash, and the rest of the name; a moved file is shown with both full names.
fn shortened(file: &DiffFile) -> (&str, &str) {
    let name = file.name();
    if matches!(file.status, Status::Renamed | Status::Copied) || name.contains(['{', '}']) {
        return ("", name);
    }
    name.rfind('/').map_or(("", name), |at| name.split_at(at + 1))
}

/// The text after a name: added and removed lines, mode, binary.
fn stat(file: &DiffFile) -> String {
    let mut stat = String::new();
    if file.added + file.removed > 0 {
        stat.push_str(&format!(" +{} -{}", file.added, file.removed));
    }
    if let [Some(old), Some(new)] = &file.modes {
        stat.push_str(&format!(" mode {old} → {new}"));
    }
    if file.binary {
        stat.push_str(" binary");
    }
    stat
}
