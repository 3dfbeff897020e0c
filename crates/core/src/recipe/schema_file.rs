//! YAML files whose form a JSON Schema describes, such as conversation types: parsed with spans, validated, and with a place
//! to report what no schema can express. Knows no particular kind of file.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::code::DiagnosticCode;
use super::diagnostic::{Diagnostic, DiagnosticSink, Span, suggest};
use super::yaml::{self, YamlKind, YamlNode};

/// A file, parsed and validated.
pub struct SchemaFile<'s> {
    root: Option<YamlNode<'s>>,
    sink: DiagnosticSink<'s>,
}

impl<'s> SchemaFile<'s> {
    /// Parses `text`, which [`read_text`](super::read_text) returned, and reports everything in which it differs from
    /// `schema`. The schema must be valid and without references.
    pub fn read(path: &'s str, text: &'s str, schema: &Value) -> Self {
        let mut sink = DiagnosticSink::new(path, text);
        let root = yaml::parse(&mut sink);
        let mut file = Self { root, sink };
        if let Some(json) = file.root.as_ref().map(YamlNode::to_json) {
            file.validate(&json, schema);
        }
        file
    }

    /// The content, if nothing was reported yet.
    pub fn value(&self) -> Option<Value> {
        let root = self.root.as_ref().filter(|_| !self.sink.has_errors());
        root.map(YamlNode::to_json)
    }

    /// Reports a problem of the value at a JSON pointer, or of the nearest value that exists above it.
    pub fn report(
        &mut self,
        pointer: &str,
        code: DiagnosticCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let span = self.root.as_ref().map_or(0..0, |root| root.at_pointer(pointer).span.clone());
        self.sink.report(code, &span, message, help);
    }

    /// Everything that was reported.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.sink.into_found()
    }

    fn validate(&mut self, json: &Value, schema: &Value) {
        let validator = match jsonschema::validator_for(schema) {
            Ok(validator) => validator,
            Err(error) => {
                let message = format!("the schema of such files is invalid: {error}");
                return self.sink.report(DiagnosticCode::SchemaInvalid, &(0..0), message, "");
            }
        };
        for problem in validator.iter_errors(json) {
            self.report_difference(&problem, schema);
        }
    }

    fn report_difference(&mut self, problem: &jsonschema::ValidationError<'_>, schema: &Value) {
        let Some(root) = &self.root else { return };
        let pointer = problem.instance_path().to_string();
        let node = root.at_pointer(&pointer);
        let place = place(&pointer);
        let keyword = problem.schema_path().to_string();
        let around = keyword.rsplit_once('/').and_then(|(around, _)| schema.pointer(around));
        let (code, message, help) = match problem.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known: Vec<&str> = around
                    .and_then(|object| object.get("properties")?.as_object())
                    .map(|known| known.keys().map(String::as_str).collect())
                    .unwrap_or_default();
                for key in unexpected {
                    let within = if place.is_empty() { String::new() } else { format!(" in `{place}`") };
                    let span = key_span(node, key);
                    let help = suggest(key, known.iter().copied());
                    self.sink.report(
                        DiagnosticCode::UnknownKey,
                        &span,
                        format!("unknown key `{key}`{within}"),
                        help,
                    );
                }
                return;
            }
            ValidationErrorKind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                let field = if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
                let start = node.span.start..node.span.start;
                let about = around.and_then(|object| object.get("properties")?.get(key)?.get("description"));
                let help = about.and_then(Value::as_str).map(|about| format!("add `{key}`: {about}"));
                self.sink.report(
                    DiagnosticCode::MissingField,
                    &start,
                    format!("Missing required field: {field}"),
                    help.unwrap_or_else(|| format!("add `{key}`")),
                );
                return;
            }
            ValidationErrorKind::Enum { .. }
            | ValidationErrorKind::OneOfNotValid { .. }
            | ValidationErrorKind::AnyOf { .. } => match options(around) {
                options if options.is_empty() => {
                    let message = format!("`{place}` has none of the forms that it may have");
                    (DiagnosticCode::WrongType, message, description(around))
                }
                options => {
                    let given = problem.instance().as_str().map(str::to_owned);
                    let given = given.unwrap_or_else(|| problem.instance().to_string());
                    let help = suggest(&given, options.iter().map(String::as_str));
                    (DiagnosticCode::NotOneOf, format!("`{place}` cannot be `{given}`"), help)
                }
            },
            ValidationErrorKind::Type { .. } => {
                let subject = if place.is_empty() { "the file".to_owned() } else { format!("`{place}`") };
                let message = format!("{subject} must be {}, not {}", expected(around), node.describe());
                (DiagnosticCode::WrongType, message, String::new())
            }
            ValidationErrorKind::MinLength { .. }
            | ValidationErrorKind::MinItems { .. }
            | ValidationErrorKind::MinProperties { .. } => {
                (DiagnosticCode::Empty, format!("`{place}` is empty"), description(around))
            }
            ValidationErrorKind::Pattern { .. } => {
                let message = format!("`{place}` is not a plain name: {}", problem.instance());
                (
                    DiagnosticCode::BadName,
                    message,
                    "use letters, digits, _ and - only, at most 100".to_owned(),
                )
            }
            ValidationErrorKind::UniqueItems => {
                (DiagnosticCode::Duplicate, format!("`{place}` names something twice"), String::new())
            }
            ValidationErrorKind::Minimum { limit } => (
                DiagnosticCode::OutOfRange,
                format!("`{place}` must be at least {limit}"),
                description(around),
            ),
            ValidationErrorKind::Maximum { limit } => (
                DiagnosticCode::OutOfRange,
                format!("`{place}` must be at most {limit}"),
                description(around),
            ),
            _ => (DiagnosticCode::OutOfRange, format!("`{place}`: {problem}"), description(around)),
        };
        self.sink.report(code, &node.span.clone(), message, help);
    }
}

/// `/stages/2/next/0` as `stages[2].next[0]`.
fn place(pointer: &str) -> String {
    let mut place = String::new();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            place.push_str(&format!("[{step}]"));
        } else {
            if !place.is_empty() {
                place.push('.');
            }
            place.push_str(&step);
        }
    }
    place
}

/// The place of a key in a mapping.
fn key_span(node: &YamlNode<'_>, key: &str) -> Span {
    let found = match &node.kind {
        YamlKind::Map(entries) => entries.iter().find(|(name, _)| name.text == key),
        _ => None,
    };
    found.map_or(node.span.clone(), |(name, _)| name.span.clone())
}

/// The texts that a schema allows, by `enum` or by a `const` in each branch.
fn options(schema: Option<&Value>) -> Vec<String> {
    let branches = |key: &str| schema.and_then(|schema| schema.get(key)?.as_array());
    let of_branch = |branch: &Value| -> Vec<String> {
        match branch.get("const") {
            Some(Value::String(text)) => vec![text.clone()],
            _ => options(Some(branch)),
        }
    };
    if let Some(listed) = branches("enum") {
        return listed.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    ["oneOf", "anyOf"].into_iter().filter_map(branches).flatten().flat_map(of_branch).collect()
}

fn description(schema: Option<&Value>) -> String {
    let text = schema.and_then(|schema| schema.get("description")?.as_str());
    text.unwrap_or_default().to_owned()
}

/// The types that a schema allows, in plain English.
fn expected(schema: Option<&Value>) -> String {
    let kinds = match schema.and_then(|schema| schema.get("type")) {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => Vec::from_iter(kind.and_then(Value::as_str)),
    };
    let plain = kinds.into_iter().map(|kind| match kind {
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a mapping",
        _ => "nothing",
    });
    plain.collect::<Vec<_>>().join(" or ")
}
