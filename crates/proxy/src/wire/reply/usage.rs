//! The usage that providers report: every number of a report by its path, so that sums omit nothing. Knows the names
//! of the formats only where Larder's own record needs them.

use std::collections::BTreeMap;

use larder_text::json::{Edit, Kind, Value};
use larder_text::usage::Usage;

use super::super::dialect::ApiDialect;

/// Maximum numbers per report; further ones are left unchanged.
const MAX_NUMBERS: usize = 64;
/// Levels of a report that are read.
const MAX_LEVELS: usize = 4;

/// Numbers by path, such as `prompt_tokens_details.cached_tokens`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally(BTreeMap<String, f64>);

/// What is known about a round of a reply while it arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartialUsage {
    /// What the provider has reported of it.
    pub usage: Option<Usage>,
    /// Bytes of its text so far.
    pub said: usize,
    /// Whether it has reached its end, so that the report is complete.
    pub ended: bool,
}

impl PartialUsage {
    /// All of a reply for which the provider reported `usage`.
    pub const fn complete(usage: Usage) -> Self {
        Self { usage: Some(usage), said: 0, ended: true }
    }
}

impl Tally {
    /// Adds the numbers of a report. Counts are cumulative: the last value wins.
    pub fn take(&mut self, report: Value<'_, '_>) {
        for (path, value) in numbers(report) {
            if let Some(number) =
                parse(value).filter(|_| self.0.len() < MAX_NUMBERS || self.0.contains_key(&path))
            {
                self.0.insert(path, number);
            }
        }
    }

    pub fn add(&mut self, other: &Self) {
        for (path, number) in &other.0 {
            *self.0.entry(path.clone()).or_default() += number;
        }
    }

    pub fn get(&self, path: &str) -> Option<u64> {
        // Saturates; a provider may report anything.
        self.0.get(path).filter(|number| **number >= 0.0).map(|number| *number as u64)
    }

    /// Adds these sums to the numbers of a report.
    pub fn edits(&self, report: Value<'_, '_>) -> Vec<Edit> {
        let sum = |(path, value): (String, Value<'_, '_>)| {
            let sum = parse(value)? + self.0.get(&path).filter(|number| **number != 0.0)?;
            let sum = if sum.fract() == 0.0 && sum.abs() < 9e15 {
                (sum as i64).to_string()
            } else {
                Some(sum.to_string()).filter(|_| sum.is_finite())?
            };
            Some(Edit::replace(value.span(), sum))
        };
        numbers(report).into_iter().filter_map(sum).collect()
    }

    /// One round in Anthropic's list of them.
    pub fn iteration(&self) -> String {
        let names =
            ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let numbers = names.map(|name| format!(r#","{name}":{}"#, self.get(name).unwrap_or_default()));
        format!(r#"{{"type":"message"{}}}"#, numbers.concat())
    }

    /// The first of these numbers that was reported; 0 if none was.
    pub fn first(&self, paths: &[&str]) -> u64 {
        paths.iter().find_map(|path| self.get(path)).unwrap_or_default()
    }

    /// In Larder's terms; `None` if nothing was reported.
    pub fn usage(&self, dialect: ApiDialect) -> Option<Usage> {
        (!self.0.is_empty()).then(|| dialect.format().usage(self))
    }
}

fn parse(value: Value<'_, '_>) -> Option<f64> {
    value.raw().parse().ok().filter(|number: &f64| number.is_finite())
}

fn numbers<'d, 't>(report: Value<'d, 't>) -> Vec<(String, Value<'d, 't>)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), report)];
    for _ in 0..MAX_LEVELS {
        for (path, value) in std::mem::take(&mut open) {
            for (key, value) in value.members() {
                let name = key.text();
                let path = if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") };
                match value.kind() {
                    Kind::Number => found.push((path, value)),
                    Kind::Object => open.push((path, value)),
                    // Amazon Bedrock lists what is written to the cache by its lifetime.
                    Kind::Array => open.extend(value.items().filter_map(|item| {
                        let ttl = item.given("ttl").and_then(Value::text)?;
                        Some((format!("{path}.{ttl}"), item))
                    })),
                    _ => {}
                }
            }
        }
    }
    found
}
