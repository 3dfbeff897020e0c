//! Diffs: every file named with its status, every shown hunk with its true header and whole lines.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use larder_condense::ContentType;
use larder_text::tokens::Counter;
use regex::Regex;
use serde_json::Value;

use crate::report::{Report, ReportColumn};
use crate::{Failure, corpora, measure};

/// What each diff is condensed to, in per cent of its tokens.
pub(super) const SHARE: usize = 10;
/// Words that name each status next to a file's name, as a word of its own.
const STATUS: [(&str, &[&str]); 4] = [
    ("A", &["A", "added", "new"]),
    ("D", &["D", "deleted", "removed"]),
    ("R", &["R", "renamed", "rename", "→", "->", "=>"]),
    ("M", &["M", "modified", "changed"]),
];

/// Measures all diffs.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let folder = corpora::folder("diffs")?;
    let index = corpora::json(&folder.join("index.json"))?;
    let (mut rows, mut faults, mut sum) = (Vec::new(), Vec::new(), DiffFigures::default());
    for entry in index.as_array().ok_or("index.json is not a list")? {
        let file = entry["file"].as_str().ok_or("an entry of index.json has no file")?;
        let name = file.trim_end_matches(".gz").trim_end_matches(".diff").to_owned();
        let text = corpora::text(&folder.join(file))?;
        let target = measure::share_of(Counter::o200k().count(&text), SHARE);
        match measure::run(&text, ContentType::Diff, target) {
            Ok(measured) => {
                let wrong = measure::faults(&text, &measured.condensed, target);
                faults.extend(wrong.into_iter().map(|fault| format!("{name}: {fault}")));
                let files = entry["files"].as_array().map(Vec::as_slice).unwrap_or_default();
                let figures = DiffFigures::of(&text, &measured, files)?;
                sum.add(&figures);
                rows.push((name, figures.row()));
            }
            Err(refusal) => faults.push(format!("{name}: refused: {refusal}")),
        }
    }
    Ok(Report {
        suite: "diffs",
        title: format!("Diffs of real commits, condensed to {SHARE} % of their tokens"),
        columns: vec![
            ReportColumn::shown("tokens", 0),
            ReportColumn::shown("out", 0),
            ReportColumn::higher("saved %", 0.5),
            ReportColumn::shown("files", 0),
            ReportColumn::higher("named %", 0.0).least(100.0),
            ReportColumn::higher("with status %", 0.0).least(100.0),
            ReportColumn::shown("hunks shown", 0),
            ReportColumn::higher("true headers %", 0.0).least(100.0),
            ReportColumn::higher("whole lines %", 0.0).least(100.0),
            ReportColumn::higher("changed lines visible %", 1.0),
            ReportColumn::shown("ms", 1),
        ],
        rows,
        total: sum.row(),
        faults,
    })
}

/// How many files are named with their status, and how many there are.
pub(super) fn kept(folder: &Path, file: &str, output: &str) -> Result<(usize, usize), Failure> {
    let index = corpora::json(&folder.join("index.json"))?;
    let entry = index.as_array().and_then(|entries| entries.iter().find(|entry| entry["file"] == file));
    let files = entry.and_then(|entry| entry["files"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let output = &spelt_out(output);
    let named = |file: &&Value| names(file).all(|name| output.contains(name)) && stated(output, file);
    Ok((files.iter().filter(named).count(), files.len()))
}

#[derive(Default)]
struct DiffFigures {
    before: usize,
    after: usize,
    files: usize,
    named: usize,
    stated: usize,
    hunks: usize,
    true_hunks: usize,
    shown: usize,
    whole: usize,
    changed: usize,
    visible: usize,
    ms: f64,
}

impl DiffFigures {
    fn of(text: &str, measured: &measure::Measured, files: &[Value]) -> Result<Self, Failure> {
        let output = &measured.condensed.text;
        let (truth, shown) = (Hunks::of(text)?, Hunks::of(output)?);
        let output = &spelt_out(output);
        let lines: HashSet<&str> = text.lines().collect();
        Ok(Self {
            before: measured.condensed.original_tokens,
            after: measured.condensed.tokens,
            files: files.len(),
            named: files.iter().filter(|file| names(file).all(|name| output.contains(name))).count(),
            stated: files.iter().filter(|file| stated(output, file)).count(),
            hunks: shown.headers.len(),
            true_hunks: shown.headers.iter().filter(|header| truth.headers.contains(*header)).count(),
            shown: shown.lines.len(),
            whole: shown.lines.iter().filter(|line| lines.contains(*line)).count(),
            changed: truth.changed().count(),
            visible: common(truth.changed(), shown.changed()),
            ms: measured.ms,
        })
    }

    fn add(&mut self, other: &Self) {
        self.before += other.before;
        self.after += other.after;
        self.files += other.files;
        self.named += other.named;
        self.stated += other.stated;
        self.hunks += other.hunks;
        self.true_hunks += other.true_hunks;
        self.shown += other.shown;
        self.whole += other.whole;
        self.changed += other.changed;
        self.visible += other.visible;
        self.ms += other.ms;
    }

    fn row(&self) -> Vec<Option<f64>> {
        let figures = [
            self.before as f64,
            self.after as f64,
            measure::saved(self.before, self.after),
            self.files as f64,
            measure::percent(self.named, self.files),
            measure::percent(self.stated, self.files),
            self.hunks as f64,
            measure::percent(self.true_hunks, self.hunks),
            measure::percent(self.whole, self.shown),
            measure::percent(self.visible, self.changed),
            self.ms,
        ];
        figures.map(Some).to_vec()
    }
}

/// The old and the new name of a file, where they exist.
fn names(file: &Value) -> impl Iterator<Item = &str> {
    [&file["old"], &file["new"]].into_iter().filter_map(Value::as_str)
}

/// The text with every line such as `modified src/{a.rs +1 -2, b.rs}` written as a line for each name.
fn spelt_out(output: &str) -> String {
    let spelt = |line: &str| -> Option<String> {
        let (start, rest) = line.split_once('{').filter(|(start, _)| start.ends_with('/'))?;
        let (names, end) = rest.split_once('}')?;
        Some(names.split(", ").map(|name| format!("{start}{name}{end}\n")).collect())
    };
    output.lines().map(|line| spelt(line).unwrap_or_else(|| format!("{line}\n"))).collect()
}

/// Whether the status of the file is written next to its name, or follows from git's own header lines.
fn stated(output: &str, file: &Value) -> bool {
    let (Some(status), Some(name)) = (file["status"].as_str(), names(file).last()) else { return false };
    let words =
        STATUS.iter().find(|(letter, _)| *letter == status).map(|(_, words)| *words).unwrap_or_default();
    let is_word = |part: &str| words.contains(&part);
    let beside = output
        .lines()
        .filter(|line| line.contains(name) && !line.starts_with("diff --git"))
        .any(|line| line.split(|c: char| c.is_whitespace() || "()[]:,".contains(c)).any(is_word));
    beside || in_git_headers(output, name, status)
}

fn in_git_headers(output: &str, name: &str, status: &str) -> bool {
    let mut lines =
        output.lines().skip_while(|line| !(line.starts_with("diff --git ") && line.ends_with(name)));
    if lines.next().is_none() {
        return false;
    }
    let header: Vec<&str> =
        lines.take_while(|line| !line.starts_with("diff --git ") && !line.starts_with("@@")).collect();
    let has = |start: &str| header.iter().any(|line| line.starts_with(start));
    match status {
        "A" => has("new file"),
        "D" => has("deleted file"),
        "R" => has("rename to"),
        _ => !has("new file") && !has("deleted file") && !has("rename to"),
    }
}

/// The hunks of a diff or of its condensed form.
struct Hunks<'t> {
    headers: Vec<&'t str>,
    /// The lines that follow a header, up to the first line that cannot belong to a hunk.
    lines: Vec<&'t str>,
}

impl<'t> Hunks<'t> {
    fn of(text: &'t str) -> Result<Self, Failure> {
        let header = Regex::new(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")?;
        let (mut headers, mut lines, mut inside) = (Vec::new(), Vec::new(), false);
        for line in text.lines() {
            if let Some(found) = header.find(line) {
                headers.push(found.as_str());
                inside = true;
            } else if inside && line.starts_with([' ', '+', '-', '\\']) {
                lines.push(line);
            } else {
                // A mark between two lines of a hunk does not end it; the next file's header does.
                inside &= line.starts_with('[') || line.is_empty();
            }
        }
        Ok(Self { headers, lines })
    }

    fn changed(&self) -> impl Iterator<Item = &'t str> {
        self.lines.iter().copied().filter(|line| line.starts_with(['+', '-']))
    }
}

/// How many of `shown` are among `truth`, each as often as it occurs there.
fn common<'t>(truth: impl Iterator<Item = &'t str>, shown: impl Iterator<Item = &'t str>) -> usize {
    let mut left: HashMap<&str, usize> = HashMap::new();
    truth.for_each(|line| *left.entry(line).or_default() += 1);
    let mut both = 0;
    for line in shown {
        if let Some(count) = left.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            both += 1;
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_counts_beside_the_name_or_in_gits_own_words() {
        let file = serde_json::json!({"status": "A", "old": null, "new": "src/a.rs"});
        assert!(stated("A src/a.rs +3", &file));
        assert!(stated("diff --git a/src/a.rs b/src/a.rs\nnew file mode 100644\n@@ -0,0 +1 @@", &file));
        assert!(!stated("diff --git a/src/a.rs b/src/a.rs\n@@ -0,0 +1 @@", &file));
        assert!(!stated("M src/a.rs +3", &file));
    }

    #[test]
    fn names_of_one_folder_may_be_put_together() {
        let file = serde_json::json!({"status": "M", "old": "src/b.rs", "new": "src/b.rs"});
        assert!(stated(&spelt_out("modified src/{a.rs +1 -2, b.rs +3 -0} [… L1-9]"), &file));
    }

    #[test]
    fn lines_count_as_often_as_they_stand_in_the_original() {
        let truth = Hunks::of("@@ -1 +1,2 @@\n-a\n+b\n+b\n").unwrap();
        let shown =
            Hunks::of("M x\n@@ -1 +1,2 @@ fn\n+b\n[… L3-4]\n+b\n+b\ndiff --git a/y b/y\n--- a/y\n").unwrap();
        assert_eq!(common(truth.changed(), shown.changed()), 2);
        assert_eq!(shown.lines, ["+b", "+b", "+b"]);
        assert_eq!(shown.headers, truth.headers);
    }
}
