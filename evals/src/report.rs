//! What a suite found: a table, its total, broken guarantees; and the comparison with a committed baseline.
//!
//! Knows figures only; does not know what they mean.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::Failure;

/// What a committed figure may have lost when it was written with four digits.
const ROUNDING: f64 = 0.000_1;

/// Which way of a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Reported, never compared.
    Neither,
}

/// One figure of every row.
#[derive(Debug, Clone, Copy)]
pub struct ReportColumn {
    /// Its name in the baseline and at the head of the table.
    pub name: &'static str,
    /// Which way is better.
    pub better: Better,
    /// By how much a row or the total may be worse than the baseline.
    pub slack: f64,
    /// The worst total that is accepted.
    pub accepted: Option<f64>,
    /// Digits after the point.
    pub digits: usize,
}

impl ReportColumn {
    /// A figure that is reported and never compared.
    pub const fn shown(name: &'static str, digits: usize) -> Self {
        Self { name, better: Better::Neither, slack: 0.0, accepted: None, digits }
    }

    /// A figure of which more is better, with how much less is borne.
    pub const fn higher(name: &'static str, slack: f64) -> Self {
        Self { name, better: Better::Higher, slack, accepted: None, digits: 1 }
    }

    /// The same with the least total that is accepted.
    pub const fn least(mut self, accepted: f64) -> Self {
        self.accepted = Some(accepted);
        self
    }

    /// The same with other digits after the point.
    pub const fn digits(mut self, digits: usize) -> Self {
        self.digits = digits;
        self
    }

    fn worse(&self, value: f64, than: f64, slack: f64) -> bool {
        match self.better {
            Better::Higher => value < than - slack - ROUNDING,
            Better::Lower => value > than + slack + ROUNDING,
            Better::Neither => false,
        }
    }
}

/// What one suite found.
#[derive(Debug)]
pub struct Report {
    /// Its name, which is also the baseline's.
    pub suite: &'static str,
    /// What was done, in one sentence.
    pub title: String,
    /// The figures of every row.
    pub columns: Vec<ReportColumn>,
    /// One row for each file or case; a figure that makes no sense there is none.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// The same figures over all.
    pub total: Vec<Option<f64>>,
    /// Guarantees that were broken: never accepted.
    pub faults: Vec<String>,
}

impl Report {
    /// The table as aligned text.
    pub fn table(&self) -> String {
        let head = std::iter::once(self.suite.to_owned())
            .chain(self.columns.iter().map(|column| column.name.to_owned()))
            .collect();
        let total = (!self.total.is_empty()).then(|| ("total".to_owned(), self.total.clone()));
        let rows = self.rows.iter().chain(&total).map(|(name, values)| self.cells(name, values));
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        let width = |at: usize| {
            rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..=self.columns.len()).map(width).collect();
        let mut table = format!("{}\n\n", self.title);
        for row in rows {
            for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let _ =
                    if at == 0 { write!(table, "{cell:<width$}") } else { write!(table, "  {cell:>width$}") };
            }
            table.push('\n');
        }
        table
    }

    fn cells(&self, name: &str, values: &[Option<f64>]) -> Vec<String> {
        let cell = |(value, column): (&Option<f64>, &ReportColumn)| match value {
            Some(value) => format!("{value:.*}", column.digits),
            None => "–".to_owned(),
        };
        std::iter::once(name.to_owned()).chain(values.iter().zip(&self.columns).map(cell)).collect()
    }

    /// The figures that are compared, as they are committed.
    pub fn figures(&self) -> Value {
        let figures = |values: &[Option<f64>]| -> Value {
            let compared =
                self.columns.iter().zip(values).filter(|(column, _)| column.better != Better::Neither);
            compared
                .filter_map(|(column, value)| Some((column.name.to_owned(), rounded((*value)?))))
                .collect()
        };
        let rows: Map<String, Value> =
            self.rows.iter().map(|(name, values)| (name.clone(), figures(values))).collect();
        json!({ "total": figures(&self.total), "rows": rows })
    }

    /// Everything, for programs.
    pub fn json(&self, problems: &[String]) -> Value {
        let figures = |values: &[Option<f64>]| -> Value {
            self.columns
                .iter()
                .zip(values)
                .map(|(column, value)| (column.name.to_owned(), json!(value)))
                .collect()
        };
        let rows: Map<String, Value> =
            self.rows.iter().map(|(name, values)| (name.clone(), figures(values))).collect();
        json!({ "suite": self.suite, "title": self.title, "rows": rows, "total": figures(&self.total), "problems": problems })
    }

    /// What is wrong: broken guarantees, totals that are not accepted, figures worse than the baseline's.
    pub fn problems(&self, baseline: Option<&Value>) -> Vec<String> {
        let mut problems = self.faults.clone();
        for (column, value) in self.columns.iter().zip(&self.total) {
            if let (Some(accepted), Some(value)) = (column.accepted, *value)
                && column.worse(value, accepted, 0.0)
            {
                problems.push(format!("{} of all is {value:.2}; {accepted} is asked for", column.name));
            }
        }
        let Some(baseline) = baseline else {
            problems.push("there is no baseline; write it with --bless".to_owned());
            return problems;
        };
        problems.extend(self.worse("total", &self.total, &baseline["total"]));
        for (name, values) in &self.rows {
            problems.extend(self.worse(name, values, &baseline["rows"][name]));
        }
        problems
    }

    fn worse(&self, row: &str, values: &[Option<f64>], baseline: &Value) -> Vec<String> {
        let mut worse = Vec::new();
        for (column, value) in self.columns.iter().zip(values) {
            let Some(before) = baseline[column.name].as_f64() else { continue };
            match value {
                Some(value) if !column.worse(*value, before, column.slack) => {}
                Some(value) => worse.push(format!(
                    "{row}: {} is {value:.2}, was {before:.2} (slack {})",
                    column.name, column.slack
                )),
                None => worse.push(format!("{row}: {} was {before:.2} and is missing", column.name)),
            }
        }
        worse
    }
}

fn rounded(value: f64) -> Value {
    json!((value * 1e4).round() / 1e4)
}

fn path(suite: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines").join(format!("{suite}.json"))
}

/// The committed figures of a suite, if there are any.
///
/// # Errors
/// The file exists and is not JSON.
pub fn baseline(suite: &str) -> Result<Option<Value>, Failure> {
    match std::fs::read_to_string(path(suite)) {
        Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
        Err(_) => Ok(None),
    }
}

/// Writes the figures that are to be committed.
///
/// # Errors
/// The file cannot be written.
pub fn bless(report: &Report) -> Result<(), Failure> {
    Ok(std::fs::write(path(report.suite), format!("{:#}\n", report.figures()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(value: f64) -> Report {
        Report {
            suite: "none",
            title: String::new(),
            columns: vec![ReportColumn::higher("share", 0.5).least(90.0), ReportColumn::shown("ms", 1)],
            rows: vec![("file".to_owned(), vec![Some(value), Some(1.0)])],
            total: vec![Some(value), None],
            faults: Vec::new(),
        }
    }

    #[test]
    fn a_figure_may_be_worse_by_its_slack_and_not_by_more() {
        let baseline = report(95.0).figures();
        assert_eq!(report(94.6).problems(Some(&baseline)), [""; 0]);
        assert_eq!(report(99.0).problems(Some(&baseline)), [""; 0]);
        assert_eq!(report(94.4).problems(Some(&baseline)).len(), 2);
        assert_eq!(report(89.0).problems(Some(&baseline)).len(), 3);
    }

    #[test]
    fn times_are_not_committed_and_broken_guarantees_never_pass() {
        let mut broken = report(95.0);
        let baseline = broken.figures();
        assert!(!baseline.to_string().contains("ms"));
        broken.faults.push("a byte is lost".to_owned());
        assert_eq!(broken.problems(Some(&baseline)), ["a byte is lost"]);
        assert_eq!(report(95.0).problems(None).len(), 1);
    }
}
