//! Logs: tokens saved, and how many of the true templates are still visible.
//!
//! A template is visible if one of its lines is in the output unchanged, or if an output line with places for what
//! varies fits one of its lines; such a pattern counts for the one template most of whose lines it fits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use larder_condense::ContentType;
use larder_text::tokens::Counter;
use regex::Regex;

use crate::report::{Report, ReportColumn};
use crate::{Failure, corpora, measure};

/// Asked for over all files: tokens saved and templates visible, in per cent.
const LEAST_SAVED: f64 = 93.0;
const LEAST_VISIBLE: f64 = 99.0;
/// The largest target that is tried, in per cent of the original.
const LARGEST_SHARE: usize = 60;
/// What is used where no target will do.
const FIXED_SHARE: usize = 7;
/// What a pattern may have in the place of what varies.
const PLACE: &str = r"<\*>|<[A-Za-z_]{1,12}>|\*|…";

/// Measures all logs. The target of each is the smallest with which the condenser leaves no line untold, found from
/// its output alone: the same rule for all, without a look at the truth.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let folder = corpora::folder("logs")?;
    let mut rows = Vec::new();
    let mut faults = Vec::new();
    let (mut before, mut after, mut seen, mut all, mut seen_single, mut all_single, mut spent) =
        (0, 0, 0, 0, 0, 0, 0.0);
    for path in corpora::files(&folder, &["_2k.log"])? {
        let name = corpora::name(&path).replace("_2k.log", "");
        let text = corpora::text(&path)?;
        let truth = Truth::read(&folder, &name, &text)?;
        let target = target_of(&text, Counter::o200k().count(&text));
        let measured = measure::run(&text, ContentType::Log, target)?;
        let condensed = &measured.condensed;
        faults.extend(measure::faults(&text, condensed, target).into_iter().map(|f| format!("{name}: {f}")));
        let visible = truth.visible(&condensed.text)?;
        let single: HashSet<&str> = truth.single().collect();
        let visible_single = visible.iter().filter(|id| single.contains(id.as_str())).count();
        let row = [
            condensed.original_tokens as f64,
            condensed.tokens as f64,
            measure::saved(condensed.original_tokens, condensed.tokens),
            truth.lines_of.len() as f64,
            measure::percent(visible.len(), truth.lines_of.len()),
            measure::percent(visible_single, single.len()),
            condensed.gaps.len() as f64,
            measured.ms,
        ];
        rows.push((name, row.map(Some).to_vec()));
        before += condensed.original_tokens;
        after += condensed.tokens;
        seen += visible.len();
        all += truth.lines_of.len();
        seen_single += visible_single;
        all_single += single.len();
        spent += measured.ms;
    }
    let total = [
        before as f64,
        after as f64,
        measure::saved(before, after),
        all as f64,
        measure::percent(seen, all),
        measure::percent(seen_single, all_single),
        0.0,
        spent,
    ];
    Ok(Report {
        suite: "logs",
        title: "Logs (loghub), condensed as far as every line is still told".to_owned(),
        columns: vec![
            ReportColumn::shown("tokens", 0),
            ReportColumn::shown("out", 0),
            ReportColumn::higher("saved %", 0.3).least(LEAST_SAVED),
            ReportColumn::shown("templates", 0),
            ReportColumn::higher("visible %", 0.3).least(LEAST_VISIBLE),
            ReportColumn::higher("of one line %", 0.5),
            ReportColumn::shown("gaps", 0),
            ReportColumn::shown("ms", 1),
        ],
        rows,
        total: total.map(Some).to_vec(),
        faults,
    })
}

/// The smallest target, to a part in 200, at which the output has no gap.
///
/// A condenser that always leaves gaps is given a fixed share.
pub(super) fn target_of(text: &str, tokens: usize) -> usize {
    let untold = |target: usize| {
        measure::run(text, ContentType::Log, target).is_ok_and(|run| run.condensed.gaps.is_empty())
    };
    let (mut low, mut high) = (0, measure::share_of(tokens, LARGEST_SHARE));
    if !untold(high) {
        return measure::share_of(tokens, FIXED_SHARE);
    }
    while high - low > (high / 200).max(4) {
        let middle = low.midpoint(high);
        if untold(middle) { high = middle } else { low = middle }
    }
    high
}

/// How many templates are visible, and how many there are.
pub(super) fn kept(folder: &Path, file: &str, text: &str, output: &str) -> Result<(usize, usize), Failure> {
    let truth = Truth::read(folder, &file.replace("_2k.log", ""), text)?;
    Ok((truth.visible(output)?.len(), truth.lines_of.len()))
}

/// The true templates of one log.
struct Truth<'t> {
    /// By template, in order: its lines, without line breaks.
    lines_of: BTreeMap<String, Vec<&'t str>>,
}

impl<'t> Truth<'t> {
    fn read(folder: &Path, name: &str, text: &'t str) -> Result<Self, Failure> {
        let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches('\r')).collect();
        let mut lines_of: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut reader = csv::Reader::from_path(folder.join(format!("{name}_2k.line_event.csv")))?;
        for record in reader.records() {
            let record = record?;
            let (Some(number), Some(id)) = (record.get(0), record.get(1)) else {
                return Err(format!("{name}: a record of the truth has no line and template").into());
            };
            let line = number.parse::<usize>()?.checked_sub(1).and_then(|at| lines.get(at));
            let line = line.ok_or_else(|| format!("{name}: the log has no line {number}"))?;
            lines_of.entry(id.to_owned()).or_default().push(line);
        }
        Ok(Self { lines_of })
    }

    /// The templates with one line.
    fn single(&self) -> impl Iterator<Item = &str> {
        self.lines_of.iter().filter(|(_, lines)| lines.len() == 1).map(|(id, _)| id.as_str())
    }

    /// The templates that are visible in `output`.
    fn visible(&self, output: &str) -> Result<HashSet<String>, Failure> {
        let shown: Vec<&str> = output.split('\n').map(|line| line.trim_end_matches('\r')).collect();
        let is_shown = |line: &&str| shown.iter().any(|shown| shown.contains(*line));
        let mut visible: HashSet<String> = self
            .lines_of
            .iter()
            .filter(|(_, lines)| lines.iter().any(is_shown))
            .map(|(id, _)| id.clone())
            .collect();
        let place = Regex::new(PLACE)?;
        let patterns: HashSet<&str> =
            shown.iter().map(|line| without_count(line)).filter(|line| place.is_match(line)).collect();
        for pattern in patterns {
            let fits = Fits::new(pattern, &place);
            let mut matched: HashMap<&str, usize> = HashMap::new();
            for (id, lines) in &self.lines_of {
                let count = lines.iter().filter(|line| fits.found_in(line)).count();
                if count > 0 {
                    matched.insert(id, count);
                }
            }
            let most = matched.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(a.0)));
            visible.extend(most.map(|(id, _)| id.to_owned()));
        }
        Ok(visible)
    }
}

/// A pattern as the stretches between its places.
struct Fits<'p> {
    parts: Vec<&'p str>,
}

impl<'p> Fits<'p> {
    fn new(pattern: &'p str, place: &Regex) -> Self {
        Self { parts: place.split(pattern).filter(|part| !part.is_empty()).collect() }
    }

    /// Whether the stretches follow each other somewhere in the line. The first place each can have is as good as any
    /// later one. A pattern of nothing but places fits no line.
    fn found_in(&self, line: &str) -> bool {
        let mut rest = line;
        let fits = |part: &&str| match rest.split_once(*part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        };
        self.parts.iter().any(|part| part.chars().any(char::is_alphanumeric)) && self.parts.iter().all(fits)
    }
}

/// An output line without a count before it, such as `12× ` or `[x12] `.
fn without_count(line: &str) -> &str {
    let Some((first, rest)) = line.split_once(' ') else { return line };
    let is_count = first.chars().any(|c| c.is_ascii_digit())
        && first.chars().all(|c| c.is_ascii_digit() || "×x[](),:".contains(c));
    if is_count { rest } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(templates: &[(&str, &[&'static str])]) -> Truth<'static> {
        Truth { lines_of: templates.iter().map(|(id, lines)| ((*id).to_owned(), lines.to_vec())).collect() }
    }

    fn visible(truth: &Truth<'_>, output: &str) -> Vec<String> {
        let mut visible: Vec<String> = truth.visible(output).unwrap().into_iter().collect();
        visible.sort();
        visible
    }

    #[test]
    fn a_whole_line_makes_its_template_visible_and_a_part_of_it_does_not() {
        let truth = truth(&[("a", &["open 1", "open 2"]), ("b", &["close it"])]);
        assert_eq!(visible(&truth, "12× open 2\nclose"), ["a"]);
    }

    #[test]
    fn a_pattern_counts_for_the_template_that_it_fits_best() {
        let truth = truth(&[("a", &["open 1 by x", "open 2 by y"]), ("b", &["open 3 or by z"])]);
        assert_eq!(visible(&truth, "3× open <*> by <*>"), ["a"]);
        assert_eq!(visible(&truth, "<*> <*>"), [""; 0]);
    }
}
