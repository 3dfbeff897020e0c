//! The shape of the answer: format, JSON Schema, tags.

use jsonschema::error::ValidationErrorKind;
use serde_json::{Value, json};

use super::code::DiagnosticCode;
use super::diagnostic::{DiagnosticSink, Span, suggest};
use super::model::{OutputFormat, OutputSpec, TagSpec};
use super::yaml::{YamlKind, YamlNode};
use super::{fields, file};

const FORMATS: [(&str, OutputFormat); 5] = [
    ("json", OutputFormat::Json),
    ("yaml", OutputFormat::Yaml),
    ("markdown", OutputFormat::Markdown),
    ("text", OutputFormat::Text),
    ("tagged", OutputFormat::Tagged),
];
/// The draft of schemas without `$schema`.
const DEFAULT_DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Reads `output_format`, `output_schema` and `output_tags`, and checks that they match each other and the gates.
pub(super) fn output(root: &YamlNode<'_>, start: &Span, sink: &mut DiagnosticSink<'_>) -> Option<OutputSpec> {
    let format =
        root.get("output_format").and_then(|node| fields::choice(node, "output_format", &FORMATS, sink));
    let schema = root.get("output_schema").and_then(|node| schema(node, "output_schema", sink));
    let tags = root.get("output_tags").map(|node| tags(node, sink)).unwrap_or_default();
    let format = format?;
    if format == OutputFormat::Json && root.get("output_schema").is_none() {
        let help = "output_format json needs the JSON Schema of the answer";
        sink.report(DiagnosticCode::SchemaMissing, start, "Missing required field: output_schema", help);
    }
    match (format, root.get("output_tags")) {
        (OutputFormat::Tagged, None) => {
            let help = "list the tags of the answer, such as `output_tags: [{name: promise}]`";
            sink.report(DiagnosticCode::Tags, start, "Missing required field: output_tags", help);
        }
        (OutputFormat::Tagged, Some(_)) | (_, None) => {}
        (_, Some(node)) => {
            let help = "write `output_format: tagged`, or remove the tags";
            sink.report(DiagnosticCode::Tags, &node.span, "output_tags needs output_format tagged", help);
        }
    }
    let output = OutputSpec { format, schema, tags };
    check_confidence(root, &output, sink);
    Some(output)
}

/// Checks that a confidence gate has a field in which the answer states its confidence.
fn check_confidence(root: &YamlNode<'_>, output: &OutputSpec, sink: &mut DiagnosticSink<'_>) {
    let Some(gate) = root.get("quality_gates").and_then(|gates| gates.get("confidence_threshold")) else {
        return;
    };
    let has_field = |schema: &Value| schema.pointer("/properties/confidence").is_some();
    let (has_place, help) = match output.format {
        OutputFormat::Json | OutputFormat::Yaml => (
            output.schema.as_ref().is_none_or(has_field),
            "add `confidence: {type: number, minimum: 0, maximum: 1}` to the schema, or remove the gate",
        ),
        OutputFormat::Tagged => (
            output.tags.iter().any(|tag| tag.name == "confidence" && !tag.multiple),
            "add a tag `confidence` to output_tags, or remove the gate",
        ),
        OutputFormat::Markdown | OutputFormat::Text => {
            (false, "use output_format json, yaml or tagged, or remove the gate")
        }
    };
    if !has_place {
        let message = "the answer has no field `confidence` for confidence_threshold to compare";
        sink.report(DiagnosticCode::GateUnmeetable, &gate.span, message, help);
    }
}

/// Reads a JSON Schema that is valid and has no external references.
fn schema(node: &YamlNode<'_>, what: &str, sink: &mut DiagnosticSink<'_>) -> Option<Value> {
    if !matches!(node.kind, YamlKind::Map(_)) {
        fields::wrong_type(node, what, "a JSON Schema, a mapping", sink);
        return None;
    }
    let schema = node.to_json();
    let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or(DEFAULT_DRAFT);
    let meta = match jsonschema::validator_for(&json!({"$ref": draft})) {
        Ok(meta) => meta,
        Err(_) => {
            let at = node.get("$schema").unwrap_or(node);
            let help = format!("omit $schema; {DEFAULT_DRAFT} is the default");
            sink.report(
                DiagnosticCode::SchemaInvalid,
                &at.span,
                format!("{draft:?} is not a known draft"),
                help,
            );
            return None;
        }
    };
    let mut problems: Vec<_> = meta.iter_errors(&schema).map(jsonschema::ValidationError::to_owned).collect();
    if problems.is_empty() {
        problems.extend(jsonschema::validator_for(&schema).err());
    }
    for problem in &problems {
        report_schema(node, what, problem, sink);
    }
    problems.is_empty().then_some(schema)
}

fn report_schema(
    node: &YamlNode<'_>,
    what: &str,
    problem: &jsonschema::ValidationError<'_>,
    sink: &mut DiagnosticSink<'_>,
) {
    let pointer = problem.instance_path().to_string();
    let at = node.at_pointer(&pointer);
    let place = if pointer.is_empty() { what.to_owned() } else { format!("{what}{pointer}") };
    let (message, help) = match problem.kind() {
        ValidationErrorKind::Referencing(error) => {
            let help = "references must point inside the schema, such as #/$defs/name";
            match outside_reference(node) {
                Some(outside) => {
                    let message = format!("`{what}` has a reference outside the schema");
                    sink.report(DiagnosticCode::SchemaInvalid, &outside.span, message, help);
                    return;
                }
                None => (format!("`{place}` has a dangling reference: {error}"), help.to_owned()),
            }
        }
        _ if pointer.ends_with("/type") || pointer == "/type" => {
            let given = problem.instance().as_str().unwrap_or("");
            (format!("`{place}`: {} is not a JSON Schema type", problem.instance()), suggest(given, TYPES))
        }
        _ => (format!("`{place}`: {problem}"), String::new()),
    };
    sink.report(DiagnosticCode::SchemaInvalid, &at.span, message, help);
}

/// The first `$ref` that does not start with `#`.
fn outside_reference<'n, 's>(node: &'n YamlNode<'s>) -> Option<&'n YamlNode<'s>> {
    match &node.kind {
        YamlKind::Scalar { .. } => None,
        YamlKind::List(items) => items.iter().find_map(outside_reference),
        YamlKind::Map(entries) => entries.iter().find_map(|(key, value)| match &value.kind {
            YamlKind::Scalar { text, .. } => (key.text == "$ref" && !text.starts_with('#')).then_some(value),
            _ => outside_reference(value),
        }),
    }
}

fn tags(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Vec<TagSpec> {
    let mut tags: Vec<TagSpec> = Vec::new();
    for item in fields::list(node, "output_tags", sink) {
        let Some(tag) = tag(item, sink) else { continue };
        if tags.iter().any(|other| other.name == tag.name) {
            sink.report(
                DiagnosticCode::Duplicate,
                &item.span,
                format!("tag `{}` is declared twice", tag.name),
                "",
            );
        } else {
            tags.push(tag);
        }
    }
    tags
}

fn tag(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Option<TagSpec> {
    let keys = ["name", "required", "multiple", "hidden", "schema"];
    if !fields::check_keys(node, "output_tags", &keys, sink) {
        return None;
    }
    let Some(name) = node.get("name") else {
        file::missing("output_tags.name", &node.span, sink);
        return None;
    };
    let mut flag = |key: &str| match node.get(key) {
        Some(value) => fields::boolean(value, &format!("output_tags.{key}"), sink).unwrap_or_default(),
        None => false,
    };
    let (required, multiple, hidden) = (flag("required"), flag("multiple"), flag("hidden"));
    let schema = node.get("schema").and_then(|value| schema(value, "output_tags.schema", sink));
    let name = fields::name(name, "output_tags.name", sink)?.value;
    Some(TagSpec { name, required, multiple, hidden, inline: false, schema })
}
