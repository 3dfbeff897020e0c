//! JSON: how many ids of records are still visible or listed, in three spacings, and the way back.
//!
//! Each file is condensed to the same shares of its tokens. An id counts where it is a whole value: not inside
//! a longer run of letters or digits. A printed range counts for the whole numbers in it.

use std::collections::HashSet;
use std::path::Path;

use larder_condense::ContentType;
use larder_text::tokens::Counter;
use regex::Regex;
use serde_json::Value;

use crate::report::{Report, ReportColumn};
use crate::{Failure, corpora, measure};

/// What each file is condensed to, in per cent of its tokens. Ids alone take up to 15 % of a file.
pub(super) const SHARES: [usize; 2] = [25, 8];

/// Measures all JSON files at each share.
///
/// # Errors
/// The corpus is missing or not as expected.
pub fn measure() -> Result<Report, Failure> {
    let folder = corpora::folder("json")?;
    let ids = corpora::json(&folder.join("ids.json"))?;
    let mut report = Report {
        suite: "json",
        title: "JSON, condensed to 25 % and 8 % of its tokens; the total is that of 25 %".to_owned(),
        columns: vec![
            ReportColumn::shown("tokens", 0),
            ReportColumn::shown("out", 0),
            ReportColumn::higher("saved %", 0.5),
            ReportColumn::shown("ids", 0),
            ReportColumn::higher("visible %", 0.0).least(100.0),
            ReportColumn::higher("recoverable %", 0.0).least(100.0),
            ReportColumn::shown("gaps", 0),
            ReportColumn::shown("ms", 1),
        ],
        rows: Vec::new(),
        total: Vec::new(),
        faults: Vec::new(),
    };
    let files: Vec<_> = corpora::files(&folder, &[".json", ".json.gz"])?
        .into_iter()
        .filter(|path| corpora::name(path) != "ids.json")
        .collect();
    for share in SHARES {
        let mut sum = Sum::default();
        for path in &files {
            let name = corpora::name(path);
            let text = corpora::text(path)?;
            let tokens = Counter::o200k().count(&text);
            let target = measure::share_of(tokens, share);
            let label = format!("{} @{share}", name.trim_end_matches(".gz").trim_end_matches(".json"));
            let measured = match measure::run(&text, ContentType::Json, target) {
                Ok(measured) => measured,
                Err(refusal) => {
                    report.faults.push(format!("{label}: refused: {refusal}"));
                    continue;
                }
            };
            let condensed = &measured.condensed;
            let faults = measure::faults(&text, condensed, target);
            report.faults.extend(faults.into_iter().map(|fault| format!("{label}: {fault}")));
            let ids = ids_of(&ids, &name);
            let visible = ids.as_ref().map(|ids| visible(&condensed.text, ids));
            let back = ids.as_ref().map(|ids| recoverable(&text, &condensed.text, ids));
            let of = |found: Option<usize>| Some(measure::percent(found?, ids.as_ref()?.len()));
            report.rows.push((
                label,
                vec![
                    Some(tokens as f64),
                    Some(condensed.tokens as f64),
                    Some(measure::saved(tokens, condensed.tokens)),
                    ids.as_ref().map(|ids| ids.len() as f64),
                    of(visible),
                    of(back),
                    Some(condensed.gaps.len() as f64),
                    Some(measured.ms),
                ],
            ));
            sum.before += tokens;
            sum.after += condensed.tokens;
            sum.ids += ids.map_or(0, |ids| ids.len());
            sum.visible += visible.unwrap_or(0);
            sum.back += back.unwrap_or(0);
            sum.ms += measured.ms;
        }
        if share == SHARES[0] {
            report.total = sum.figures();
        }
    }
    Ok(report)
}

/// How many ids of the file are visible, and how many there are.
pub(super) fn kept(folder: &Path, file: &str, output: &str) -> Result<(usize, usize), Failure> {
    let ids = ids_of(&corpora::json(&folder.join("ids.json"))?, file).unwrap_or_default();
    Ok((visible(output, &ids), ids.len()))
}

#[derive(Default)]
struct Sum {
    before: usize,
    after: usize,
    ids: usize,
    visible: usize,
    back: usize,
    ms: f64,
}

impl Sum {
    fn figures(&self) -> Vec<Option<f64>> {
        let figures = [
            self.before as f64,
            self.after as f64,
            measure::saved(self.before, self.after),
            self.ids as f64,
            measure::percent(self.visible, self.ids),
            measure::percent(self.back, self.ids),
        ];
        figures.into_iter().map(Some).chain([None, Some(self.ms)]).collect()
    }
}

/// The ids of this file; `retail-orders-200.*.json` in the truth covers all its spacings.
fn ids_of(truth: &Value, name: &str) -> Option<Vec<String>> {
    let of_name = |key: &str| match key.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => key == name,
    };
    let (_, entry) = truth.as_object()?.iter().find(|(key, _)| of_name(key))?;
    let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    Some(entry["ids"].as_array()?.iter().map(text).collect())
}

/// How many of the ids are whole values in `output` or within a printed range.
fn visible(output: &str, ids: &[String]) -> usize {
    let ranges = ranges(output);
    let in_range = |id: &str| {
        id.parse::<u64>().is_ok_and(|id| ranges.iter().any(|&(from, to)| (from..=to).contains(&id)))
    };
    ids.iter().filter(|id| is_value(output, id) || in_range(id)).count()
}

fn is_value(output: &str, id: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    output.match_indices(id).any(|(at, _)| {
        !joins(output[..at].chars().next_back()) && !joins(output[at + id.len()..].chars().next())
    })
}

/// Ranges such as `1-200`, `1–200`, `1..200` and `1 to 200`, those in marks and pointers left out.
fn ranges(output: &str) -> Vec<(u64, u64)> {
    let Ok(range) = Regex::new(r"(?:^|[^A-Za-z0-9#.\-])(\d{1,18})(?:-|–|\.\.=?| to )(\d{1,18})\b") else {
        return Vec::new();
    };
    let number = |found: Option<regex::Match<'_>>| found?.as_str().parse::<u64>().ok();
    range
        .captures_iter(output)
        .filter_map(|found| Some((number(found.get(1))?, number(found.get(2))?)))
        .filter(|(from, to)| from < to)
        .collect()
}

/// How many ids are in the bytes that the pointers of `output` resolve to.
fn recoverable(original: &str, output: &str, ids: &[String]) -> usize {
    if output == original {
        return ids.len();
    }
    let found: HashSet<&str> = measure::key()
        .find_in(output)
        .iter()
        .filter_map(|(_, pointer)| measure::resolve(original, pointer))
        .flat_map(|bytes| ids.iter().filter(|id| is_value(bytes, id)).map(String::as_str))
        .collect();
    ids.iter().filter(|id| found.contains(id.as_str())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_counts_as_a_whole_value_or_inside_a_printed_range() {
        let ids = ["17", "18", "a1", "99"].map(str::to_owned);
        assert_eq!(visible("\"a1\": 170, 18", &ids), 2);
        assert_eq!(visible("ids: 1–50; a12", &ids), 2);
        assert_eq!(visible("[… L1-99] lp1-0#B1-99", &ids), 1);
    }
}
