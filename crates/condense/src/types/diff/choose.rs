//! Chooses the order in which lines of hunks are shown, and which files are named first.
//!
//! Knows files, hunks and the query; does not know tokens or how a page is rendered.

use std::ops::Range;

use hashbrown::HashSet;
use xxhash_rust::xxh3::xxh3_64;

use super::parse::{DiffFile, ParsedDiff};
use crate::analysis::relevance::relevance_to;
use crate::engine::job::Job;
use larder_text::query::QueryHits;

/// Lines of a note, such as a commit message, that precede hunks.
const NOTE_LINES: usize = 12;
/// Hunks of up to this many lines are shown whole or not at all; of longer ones, first this many changed lines at the
/// start and at the end.
const SHORT_HUNK: usize = 12;
const FIRST_LINES: usize = 4;
const LAST_LINES: usize = 2;
/// The rest of a long hunk is shown in blocks of this many lines.
const STRETCH: usize = 24;
/// Answers to the query outweigh everything else.
const QUERY: f32 = 12.0;
/// The weight of generated files, and of hunks that repeat an earlier change.
const NOISE: f32 = 0.02;
const REPEATED: f32 = 0.2;
/// The factor by which each further hunk of a file loses weight.
const FURTHER: f32 = 0.15;
/// The weight of the middle of a hunk relative to its ends.
const MIDDLE: f32 = 0.3;

/// The order in which a diff is shown.
#[derive(Debug)]
pub(super) struct DiffOrder {
    /// Lines that must be shown.
    pub(super) required: Vec<usize>,
    /// Lines shown together, best first.
    pub(super) steps: Vec<DiffStep>,
    /// The order in which files are named if not all can be.
    pub(super) names: Vec<usize>,
}

/// Lines shown together, with the hunk header above them.
#[derive(Debug)]
pub(super) struct DiffStep {
    pub(super) parts: Vec<Range<usize>>,
}

impl DiffOrder {
    pub(super) fn new(job: &Job<'_>, diff: &ParsedDiff, asked: Option<&QueryHits>) -> Self {
        let mut steps: Vec<(f32, DiffStep)> = Vec::new();
        for note in &diff.notes {
            let head = note.start..note.end.min(note.start + NOTE_LINES);
            let worth = if steps.is_empty() { 2.0 * QUERY } else { 1.0 };
            steps.push((worth, DiffStep { parts: vec![head.clone()] }));
            stretches(head.end..note.end)
                .for_each(|part| steps.push((MIDDLE, DiffStep { parts: vec![part] })));
        }
        let relevance = asked.map_or_else(Vec::new, |asked| relevance(diff, asked));
        let mut seen = HashSet::new();
        let mut hunk_number = 0;
        for file in &diff.files {
            let tool_written = if is_tool_written(file) { NOISE } else { 1.0 };
            for (nth, hunk) in file.hunks.iter().enumerate() {
                let repeated = if seen.insert(change_hash(job.request.text, diff, &hunk.lines)) {
                    1.0
                } else {
                    REPEATED
                };
                let further = 1.0 / (1.0 + FURTHER * nth as f32);
                let asked = QUERY * relevance.get(hunk_number).copied().unwrap_or_default();
                hunk_number += 1;
                steps_of(diff, &hunk.lines, tool_written * repeated * further + asked, &mut steps);
            }
        }
        steps.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.parts[0].start.cmp(&b.1.parts[0].start)));
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        Self { required: required(job, diff), steps, names: names(diff) }
    }
}

fn required(job: &Job<'_>, diff: &ParsedDiff) -> Vec<usize> {
    let touched = job.required.iter().flat_map(|range| {
        let first = diff.lines.partition_point(|line| line.end <= range.start);
        first..diff.lines.partition_point(|line| line.start < range.end)
    });
    touched.collect()
}

fn relevance(diff: &ParsedDiff, asked: &QueryHits) -> Vec<f32> {
    let hunks = diff.files.iter().flat_map(|file| &file.hunks);
    let bytes = |lines: &Range<usize>| match (diff.lines.get(lines.start), diff.lines.get(lines.end - 1)) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    };
    let ranges: Vec<_> = hunks.map(|hunk| bytes(&hunk.lines)).collect();
    relevance_to(asked, &ranges)
}

/// A hash that is equal for hunks that add and remove the same lines.
fn change_hash(text: &str, diff: &ParsedDiff, lines: &Range<usize>) -> u64 {
    let changed = lines.clone().filter(|&line| diff.changes[line].is_some());
    changed.fold(0, |hash: u64, line| {
        hash.rotate_left(17).wrapping_mul(31).wrapping_add(xxh3_64(text[diff.lines[line].clone()].as_bytes()))
    })
}

fn steps_of(diff: &ParsedDiff, lines: &Range<usize>, worth: f32, steps: &mut Vec<(f32, DiffStep)>) {
    let header = lines.start..lines.start + 1;
    if lines.len() <= SHORT_HUNK {
        return steps.push((worth, DiffStep { parts: vec![lines.clone()] }));
    }
    let (first, last) = changed_ends(diff, lines);
    let head = first..(first + FIRST_LINES).min(last);
    let tail = last.saturating_sub(LAST_LINES).max(head.end)..last;
    steps.push((worth, DiffStep { parts: vec![header.clone(), head.clone(), tail.clone()] }));
    for part in
        stretches(head.end..tail.start).chain(stretches(header.end..first)).chain(stretches(last..lines.end))
    {
        steps.push((worth * MIDDLE, DiffStep { parts: vec![header.clone(), part] }));
    }
}

/// The first changed line, and the end of the last.
fn changed_ends(diff: &ParsedDiff, lines: &Range<usize>) -> (usize, usize) {
    let changed = |line: &usize| diff.changes[*line].is_some();
    let first = lines.clone().find(changed).unwrap_or(lines.start + 1);
    let last = lines.clone().rev().find(changed).unwrap_or(lines.end - 1);
    (first, last + 1)
}

fn stretches(lines: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = lines.end;
    lines.step_by(STRETCH).map(move |start| start..(start + STRETCH).min(end))
}

/// Hand-written files first, then by the size of the change.
fn names(diff: &ParsedDiff) -> Vec<usize> {
    let mut names: Vec<usize> = (0..diff.files.len()).collect();
    let changed = |file: &DiffFile| file.added.saturating_add(file.removed);
    names.sort_by_cached_key(|&file| {
        (is_tool_written(&diff.files[file]), std::cmp::Reverse(changed(&diff.files[file])), file)
    });
    names
}

/// Lock files, bundles, snapshots and the like, recognised by their names.
fn is_tool_written(file: &DiffFile) -> bool {
    const ENDINGS: [&str; 10] = [
        ".lock",
        "-lock.json",
        "-lock.yaml",
        ".lockb",
        ".sum",
        ".snap",
        ".min.js",
        ".min.css",
        ".map",
        ".svg",
    ];
    const FOLDERS: [&str; 6] =
        ["dist/", "vendor/", "node_modules/", "generated/", "__generated__/", "third_party/"];
    let name = file.name();
    let within = |folder: &&str| {
        let starts = |(at, _): (usize, &str)| at == 0 || name[..at].ends_with('/');
        name.match_indices(folder).any(starts)
    };
    ENDINGS.iter().any(|ending| name.ends_with(ending)) || FOLDERS.iter().any(within)
}

/// The numbers of added and removed `lines`.
pub(super) fn changes(diff: &ParsedDiff, lines: Range<usize>) -> (usize, usize) {
    let (before, until) = (diff.sums[lines.start], diff.sums[lines.end]);
    (until.0 - before.0, until.1 - before.1)
}
