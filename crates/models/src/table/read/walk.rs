//! Typed access to parsed TOML that collects problems instead of stopping at the first.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::super::{Problems, TableProblem, TableProblemCode};

pub(super) type Span = Range<usize>;

/// Bytes a `larder.toml` may have.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of problems reported at once.
const MAX_PROBLEMS: usize = 100;
/// Longest name that a suggestion is sought for.
const MAX_SUGGESTED: usize = 64;

pub(super) struct TableWalk<'s> {
    source: &'s str,
    problems: Vec<(usize, TableProblem)>,
    /// Models with problems of their own: references to them are not reported as well.
    broken: BTreeSet<String>,
}

impl<'s> TableWalk<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, problems: Vec::new(), broken: BTreeSet::new() }
    }

    pub(super) fn parse(&mut self) -> Option<DeTable<'s>> {
        if self.source.len() > MAX_BYTES {
            let message = format!("larder.toml has {} bytes; the maximum is {MAX_BYTES}", self.source.len());
            self.problem(TableProblemCode::M001, 0..0, message, "");
            return None;
        }
        match DeTable::parse(self.source) {
            Ok(document) => Some(document.into_inner()),
            Err(error) => {
                self.problem(
                    TableProblemCode::M001,
                    error.span().unwrap_or(0..0),
                    error.message().to_owned(),
                    "",
                );
                None
            }
        }
    }

    pub(super) fn into_problems(mut self) -> Problems {
        self.problems.sort_by_key(|(at, _)| *at);
        Problems(self.problems.into_iter().map(|(_, problem)| problem).collect())
    }

    pub(super) fn problem(
        &mut self,
        code: TableProblemCode,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.problems.len() == MAX_PROBLEMS {
            return;
        }
        let before = self.source.get(..span.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        let problem = TableProblem { code, line, column, message: message.into(), help: help.into() };
        self.problems.push((span.start, problem));
    }

    pub(super) fn broken_model(&mut self, name: &str) {
        self.broken.insert(name.to_owned());
    }

    pub(super) fn is_broken(&self, name: &str) -> bool {
        self.broken.contains(name)
    }

    /// A key that does not belong in its table.
    pub(super) fn unknown_key(&mut self, key: &Spanned<DeString<'_>>, place: &str, known: &[&str]) {
        let name = key.get_ref();
        let help = suggestion(name, known).unwrap_or_else(|| format!("known keys: {}", known.join(", ")));
        self.problem(
            TableProblemCode::M002,
            key.span(),
            format!("{place} has no key `{}`", shown(name)),
            help,
        );
    }

    /// A name that should have been one of `known`.
    pub(super) fn unknown_name(
        &mut self,
        code: TableProblemCode,
        span: Span,
        what: &str,
        name: &str,
        known: &[&str],
    ) {
        let help = suggestion(name, known).unwrap_or_else(|| match known {
            [] => format!("the file defines no {what}"),
            known => format!("known: {}", known.join(", ")),
        });
        self.problem(code, span, format!("there is no {what} `{}`", shown(name)), help);
    }

    pub(super) fn table<'v, 'i>(
        &mut self,
        key: &str,
        value: &'v Spanned<DeValue<'i>>,
    ) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(key, "a table", value);
        }
        table
    }

    pub(super) fn string(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        match value.get_ref().as_str() {
            Some("") => {
                self.problem(TableProblemCode::M003, value.span(), format!("{} is empty", quoted(key)), "");
                None
            }
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong_type(key, "a string", value);
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            self.wrong_type(key, "true or false", value);
        }
        boolean
    }

    pub(super) fn integer<T: TryFrom<u64>>(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        range: RangeInclusive<u64>,
    ) -> Option<T> {
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok())
            .filter(|number| range.contains(number))
            .and_then(|number| T::try_from(number).ok());
        if number.is_none() {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong_type(key, &wanted, value);
        }
        number
    }

    /// A number as written, so that no precision is lost in a float.
    pub(super) fn decimal(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        match value.get_ref() {
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
            _ => {
                self.wrong_type(key, "a number", value);
                None
            }
        }
    }

    /// The name of an environment variable. A key in its place is reported without being repeated.
    pub(super) fn variable(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let name = self.string("api_key_env", value)?;
        let legal = name.len() <= MAX_SUGGESTED
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !legal {
            let message = "`api_key_env` is not the name of an environment variable";
            self.problem(
                TableProblemCode::M007,
                value.span(),
                message,
                "give the name, not the key, such as `OPENAI_API_KEY`",
            );
            return None;
        }
        Some(name)
    }

    /// Any TOML value as JSON; dates have no counterpart.
    pub(super) fn json(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let json = match value.get_ref() {
            DeValue::String(text) => Some(Value::String(text.to_string())),
            DeValue::Boolean(boolean) => Some(Value::Bool(*boolean)),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(|number| Value::Number(number.into())),
            DeValue::Float(number) => {
                number.as_str().parse().ok().and_then(Number::from_f64).map(Value::Number)
            }
            DeValue::Array(items) => return items.iter().map(|item| self.json(item)).collect(),
            DeValue::Table(table) => {
                let entries =
                    table.iter().map(|(key, value)| Some((key.get_ref().to_string(), self.json(value)?)));
                return entries.collect::<Option<Map<_, _>>>().map(Value::Object);
            }
            DeValue::Datetime(_) => None,
        };
        if json.is_none() {
            self.problem(TableProblemCode::M003, value.span(), "this value has no counterpart in JSON", "");
        }
        json
    }

    fn wrong_type(&mut self, key: &str, wanted: &str, value: &Spanned<DeValue<'_>>) {
        let found = value.get_ref().type_str();
        let found = match value.get_ref() {
            DeValue::Integer(number) => format!("{found} {}", shown(number.as_str())),
            _ => found.to_owned(),
        };
        self.problem(
            TableProblemCode::M003,
            value.span(),
            format!("{} must be {wanted}, not {found}", quoted(key)),
            "",
        );
    }
}

/// `key`, but words as they are.
fn quoted(key: &str) -> String {
    if key.contains(' ') { key.to_owned() } else { format!("`{key}`") }
}

/// A name from the file, no longer than a line can show.
fn shown(name: &str) -> String {
    name.chars().take(MAX_SUGGESTED).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// `did you mean …?`, when one of `known` is close.
fn suggestion(name: &str, known: &[&str]) -> Option<String> {
    if name.len() > MAX_SUGGESTED {
        return None;
    }
    let distance = |known: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    let nearest = known.iter().map(|known| (distance(known), known)).min()?;
    (nearest.0 <= 1 + name.len() / 4).then(|| format!("did you mean `{}`?", nearest.1))
}
