//! What a recipe reads: documents, sections, variables, and the stages that select among them.

use std::collections::BTreeMap;

use super::code::DiagnosticCode;
use super::diagnostic::{DiagnosticSink, Spanned, suggest};
use super::file::VariantFile;
use super::model::{DEFAULT_PRIORITY, InputDoc, LAST_SECTION, own_slots};
use super::yaml::{YamlKind, YamlNode};
use super::{fields, file};
use larder_condense::ContentType;

/// The largest value of `min_remaining`.
const MAX_REMAINING: u64 = 100_000_000;

/// Reads `input_docs`: names, or mappings with details.
pub(super) fn docs(
    node: Option<&YamlNode<'_>>,
    variants: &BTreeMap<String, VariantFile>,
    sink: &mut DiagnosticSink<'_>,
) -> Vec<Spanned<InputDoc>> {
    let Some(node) = node else { return Vec::new() };
    let mut docs: Vec<Spanned<InputDoc>> = Vec::new();
    for item in fields::list(node, "input_docs", sink) {
        let Some(doc) = doc(item, variants, sink) else { continue };
        if docs.iter().any(|other| other.value.name == doc.name) {
            let message = format!("`{}` appears twice in `input_docs`", doc.name);
            sink.report(DiagnosticCode::Duplicate, &item.span, message, "");
        } else {
            docs.push(Spanned { value: doc, span: item.span.clone() });
        }
    }
    docs
}

fn doc(
    node: &YamlNode<'_>,
    variants: &BTreeMap<String, VariantFile>,
    sink: &mut DiagnosticSink<'_>,
) -> Option<InputDoc> {
    const KEYS: [&str; 9] = [
        "name",
        "required",
        "priority",
        "content_type",
        "protect",
        "variants",
        "min_remaining",
        "heading",
        "label",
    ];
    let mut doc = InputDoc {
        name: String::new(),
        required: true,
        priority: DEFAULT_PRIORITY,
        content_type: None,
        protect: false,
        variants: Vec::new(),
        min_remaining: 0,
        heading: None,
        label: None,
    };
    if matches!(node.kind, YamlKind::Scalar { .. }) {
        doc.name = doc_name(node, sink)?;
        return Some(doc);
    }
    if !fields::check_keys(node, "input_docs", &KEYS, sink) {
        return None;
    }
    match node.get("name") {
        Some(name) => doc.name = doc_name(name, sink)?,
        None => {
            file::missing("input_docs.name", &node.span, sink);
            return None;
        }
    }
    if let Some(value) = node.get("required") {
        // After a value that cannot be used, the other fields are read too: all problems are reported at once.
        doc.required = fields::boolean(value, "input_docs.required", sink).unwrap_or(doc.required);
    }
    if let Some(value) = node.get("priority") {
        doc.priority = priority(value, "input_docs.priority", sink).unwrap_or(doc.priority);
    }
    if let Some(value) = node.get("content_type") {
        doc.content_type = content_type(value, sink);
    }
    if let Some(value) = node.get("protect") {
        doc.protect = fields::boolean(value, "input_docs.protect", sink).unwrap_or(doc.protect);
    }
    if let Some(value) = node.get("min_remaining") {
        let tokens = fields::whole(value, "input_docs.min_remaining", 0..=MAX_REMAINING, sink);
        doc.min_remaining = tokens.and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or_default();
    }
    if let Some(value) = node.get("heading") {
        doc.heading = fields::text(value, "input_docs.heading", sink).map(|text| text.value);
    }
    if let Some(value) = node.get("label") {
        // An empty label is none: the text itself has the line, if it wants one.
        let label = match value.to_json() {
            serde_json::Value::String(text) if text.is_empty() => text,
            _ => fields::text(value, "input_docs.label", sink).map(|text| text.value).unwrap_or_default(),
        };
        if doc.heading.is_some() || label.contains('\n') {
            let message = "`input_docs.label` must be one line, and takes the place of `heading`";
            sink.report(DiagnosticCode::WrongType, &value.span, message, "");
        }
        doc.label = Some(label);
    }
    let stages = fields::names(node.get("variants"), "input_docs.variants", sink);
    for stage in stages.iter().filter(|stage| !variants.contains_key(&stage.value)) {
        let help = suggest(&stage.value, variants.keys().map(String::as_str));
        sink.report(
            DiagnosticCode::Variant,
            &stage.span,
            format!("there is no variant `{}`", stage.value),
            help,
        );
    }
    doc.variants = fields::values(&stages);
    Some(doc)
}

/// 0 to 100.
pub(super) fn priority(node: &YamlNode<'_>, what: &str, sink: &mut DiagnosticSink<'_>) -> Option<u8> {
    fields::whole(node, what, 0..=100, sink).and_then(|n| u8::try_from(n).ok())
}

/// A file name without folders.
fn doc_name(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Option<String> {
    let name = fields::text(node, "input_docs", sink)?;
    let good = name.value.split('.').all(fields::is_plain_name);
    if !good {
        let message = format!("{:?} is not a document name", name.value);
        let help = "use a file name without folders, such as context.md; the caller supplies its location";
        sink.report(DiagnosticCode::BadName, &name.span, message, help);
    }
    let part = name.value.strip_suffix(".md").unwrap_or(&name.value);
    if own_slots::ALL.contains(&part) {
        let message = format!("`{part}` names a part that Larder adds to prompts itself");
        let help =
            "give the document another name; these are taken: ".to_owned() + &own_slots::ALL.join(", ");
        sink.report(DiagnosticCode::NameTaken, &name.span, message, help);
    }
    good.then_some(name.value)
}

fn content_type(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Option<ContentType> {
    let given = fields::text(node, "input_docs.content_type", sink)?;
    let found = serde_json::from_value(given.value.clone().into());
    if found.is_err() {
        let names = content_type_names();
        let message = format!("`input_docs.content_type` cannot be `{}`", given.value);
        let help = suggest(&given.value, names.iter().map(String::as_str));
        sink.report(DiagnosticCode::NotOneOf, &given.span, message, help);
    }
    found.ok()
}

/// The names of all content types, taken from the deserializer's error for an empty one.
fn content_type_names() -> Vec<String> {
    let refusal = serde_json::from_value::<ContentType>("".into()).map_err(|error| error.to_string());
    refusal.err().unwrap_or_default().split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

/// `input_sections`: `"§0"` to `"§6"`, ascending.
pub(super) fn sections(node: Option<&YamlNode<'_>>, sink: &mut DiagnosticSink<'_>) -> Vec<u8> {
    let Some(node) = node else { return Vec::new() };
    let mut sections = Vec::new();
    for item in fields::list(node, "input_sections", sink) {
        let Some(text) = fields::text(item, "input_sections", sink) else { continue };
        let digits = text.value.strip_prefix('§').or_else(|| text.value.strip_prefix("section_"));
        let number = digits.and_then(|digits| digits.parse::<u8>().ok());
        match number.filter(|number| *number <= LAST_SECTION) {
            Some(number) if sections.contains(&number) => {
                let message = format!("`{}` appears twice in `input_sections`", text.value);
                sink.report(DiagnosticCode::Duplicate, &text.span, message, "");
            }
            Some(number) => sections.push(number),
            None => {
                let message = format!("`input_sections` cannot name `{}`", text.value);
                let help = format!("sections are \"§0\" to \"§{LAST_SECTION}\", in quotes");
                sink.report(DiagnosticCode::NotOneOf, &text.span, message, help);
            }
        }
    }
    sections.sort_unstable();
    sections
}

/// `variables`: name → template.
pub(super) fn variables(
    node: Option<&YamlNode<'_>>,
    sink: &mut DiagnosticSink<'_>,
) -> BTreeMap<String, Spanned<String>> {
    let mut variables = BTreeMap::new();
    let Some(node) = node else { return variables };
    let YamlKind::Map(entries) = &node.kind else {
        fields::wrong_type(node, "variables", "a mapping from name to template", sink);
        return variables;
    };
    if entries.is_empty() {
        sink.report(DiagnosticCode::Empty, &node.span, "`variables` is empty", "omit the key");
    }
    for (name, value) in entries {
        if !fields::is_identifier(&name.text) {
            let message = format!("{:?} cannot be the name of a variable", name.text);
            sink.report(
                DiagnosticCode::BadName,
                &name.span,
                message,
                "start with a letter; then letters, digits and _",
            );
            continue;
        }
        // A variable with an invalid value is still declared, so that its uses are not reported as well.
        let template = fields::text(value, &format!("variables.{}", name.text), sink);
        let template = template.unwrap_or(Spanned { value: String::new(), span: value.span.clone() });
        variables.insert(name.text.to_string(), template);
    }
    variables
}

/// `variants`: stage → its prompts.
pub(super) fn variants(
    node: Option<&YamlNode<'_>>,
    sink: &mut DiagnosticSink<'_>,
) -> BTreeMap<String, VariantFile> {
    let mut variants = BTreeMap::new();
    let Some(node) = node else { return variants };
    let YamlKind::Map(entries) = &node.kind else {
        fields::wrong_type(node, "variants", "a mapping from stage to its prompts", sink);
        return variants;
    };
    for (stage, value) in entries {
        let what = format!("variants.{}", stage.text);
        if !fields::is_plain_name(&stage.text) {
            let message = format!("{:?} cannot be the name of a variant", stage.text);
            sink.report(DiagnosticCode::BadName, &stage.span, message, "use letters, digits, _ and - only");
        }
        if !fields::check_keys(value, &what, &["description", "prompt_files"], sink) {
            continue;
        }
        let prompt_files = match value.get("prompt_files") {
            Some(files) => file::prompt_paths(files, &format!("{what}.prompt_files"), sink),
            None => {
                file::missing(&format!("{what}.prompt_files"), &stage.span, sink);
                Vec::new()
            }
        };
        let description = value.get("description").and_then(|node| fields::text(node, &what, sink));
        let description = description.map(|text| text.value.trim().to_owned());
        variants.insert(stage.text.to_string(), VariantFile { description, prompt_files });
    }
    variants
}

/// Reads `default_variant`: an explicit name, required with variants (C64).
pub(super) fn default_variant(
    root: &YamlNode<'_>,
    variants: &BTreeMap<String, VariantFile>,
    sink: &mut DiagnosticSink<'_>,
) -> Option<Spanned<String>> {
    let Some(node) = root.get("default_variant") else {
        if let Some(stages) = root.get("variants").filter(|_| !variants.is_empty()) {
            let start = stages.span.start..stages.span.start;
            let help = "states without a variant of their own use the default; add `default_variant`";
            sink.report(DiagnosticCode::Variant, &start, "Missing required field: default_variant", help);
        }
        return None;
    };
    let given = fields::text(node, "default_variant", sink)?;
    if variants.contains_key(&given.value) {
        return Some(given);
    }
    let help = suggest(&given.value, variants.keys().map(String::as_str));
    sink.report(DiagnosticCode::Variant, &given.span, format!("there is no variant `{}`", given.value), help);
    None
}
