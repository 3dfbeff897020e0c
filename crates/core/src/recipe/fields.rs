//! Reads typed values from a YAML tree, and reports each invalid one.
//!
//! Every reader returns `None` after reporting, so that the caller can continue and find the next problem.

use std::ops::RangeInclusive;

use super::code::DiagnosticCode;
use super::diagnostic::{DiagnosticSink, Spanned, suggest};
use super::yaml::{YamlKind, YamlNode};

/// Whether a name consists of characters that are valid in file names, template variables and log fields.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 100
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Whether a template can refer to a name: a letter or `_`, then letters, digits and `_`.
pub(crate) fn is_identifier(name: &str) -> bool {
    is_plain_name(name) && !name.contains('-') && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Reports keys that are not in `valid`; false if the node is not a mapping at all. `what` names the mapping.
pub(crate) fn check_keys(
    node: &YamlNode<'_>,
    what: &str,
    valid: &[&str],
    sink: &mut DiagnosticSink<'_>,
) -> bool {
    let YamlKind::Map(entries) = &node.kind else {
        wrong_type(node, what, "a mapping", sink);
        return false;
    };
    for (key, _) in entries.iter().filter(|(key, _)| !valid.contains(&key.text.as_ref())) {
        let place = if what.is_empty() { String::new() } else { format!(" in `{what}`") };
        // `model` is nearer to `mode`, but if `model_layer` is missing, that is what was meant.
        let begins = |name: &&&str| {
            name.strip_prefix(&*key.text).is_some_and(|rest| rest.starts_with('_'))
                && node.get(name).is_none()
        };
        let help = match valid.iter().find(begins) {
            Some(name) => format!("did you mean `{name}`?"),
            None => suggest(&key.text, valid.iter().copied()),
        };
        sink.report(
            DiagnosticCode::UnknownKey,
            &key.span,
            format!("unknown key `{}`{place}", key.text),
            help,
        );
    }
    true
}

pub(crate) fn wrong_type(node: &YamlNode<'_>, what: &str, expected: &str, sink: &mut DiagnosticSink<'_>) {
    let subject = if what.is_empty() { "the recipe".to_owned() } else { format!("`{what}`") };
    let message = format!("{subject} must be {expected}, not {}", node.describe());
    let is_scalar = matches!(node.kind, YamlKind::Scalar { .. });
    let help = if expected == "text" && is_scalar { "put it in quotes" } else { "" };
    sink.report(DiagnosticCode::WrongType, &node.span, message, help);
}

/// Text that is not blank. Numbers and booleans must be quoted to count as text.
pub(crate) fn text(
    node: &YamlNode<'_>,
    what: &str,
    sink: &mut DiagnosticSink<'_>,
) -> Option<Spanned<String>> {
    match node.to_json() {
        serde_json::Value::String(value) if value.trim().is_empty() => {
            sink.report(DiagnosticCode::Empty, &node.span, format!("`{what}` is empty"), "");
            None
        }
        serde_json::Value::String(value) => Some(Spanned { value, span: node.span.clone() }),
        serde_json::Value::Null => {
            sink.report(DiagnosticCode::Empty, &node.span, format!("`{what}` is empty"), "");
            None
        }
        _ => {
            wrong_type(node, what, "text", sink);
            None
        }
    }
}

/// A name of letters, digits, `_` and `-`.
pub(crate) fn name(
    node: &YamlNode<'_>,
    what: &str,
    sink: &mut DiagnosticSink<'_>,
) -> Option<Spanned<String>> {
    text(node, what, sink).filter(|name| {
        let good = is_plain_name(&name.value);
        if !good {
            let message = format!("`{what}` is not a plain name: {:?}", name.value);
            sink.report(
                DiagnosticCode::BadName,
                &name.span,
                message,
                "use letters, digits, _ and - only, at most 100",
            );
        }
        good
    })
}

pub(crate) fn boolean(node: &YamlNode<'_>, what: &str, sink: &mut DiagnosticSink<'_>) -> Option<bool> {
    let value = node.to_json().as_bool();
    if value.is_none() {
        wrong_type(node, what, "true or false", sink);
    }
    value
}

/// An integer within `range`.
pub(crate) fn whole(
    node: &YamlNode<'_>,
    what: &str,
    range: RangeInclusive<u64>,
    sink: &mut DiagnosticSink<'_>,
) -> Option<u64> {
    let json = node.to_json();
    if !json.is_number() || (json.is_f64() && json.as_f64().is_some_and(|n| n.fract() != 0.0)) {
        wrong_type(node, what, "a whole number", sink);
        return None;
    }
    let value = json.as_u64().filter(|value| range.contains(value));
    if value.is_none() {
        let message = format!("`{what}` must be between {} and {}", range.start(), range.end());
        let help = if json.is_f64() { "write it without a point or an exponent" } else { "" };
        sink.report(DiagnosticCode::OutOfRange, &node.span, message, help);
    }
    value
}

/// A number from 0 to 1.
pub(crate) fn fraction(node: &YamlNode<'_>, what: &str, sink: &mut DiagnosticSink<'_>) -> Option<f64> {
    let Some(value) = node.to_json().as_f64() else {
        wrong_type(node, what, "a number between 0 and 1", sink);
        return None;
    };
    if (0.0..=1.0).contains(&value) {
        return Some(value);
    }
    sink.report(DiagnosticCode::OutOfRange, &node.span, format!("`{what}` must be between 0 and 1"), "");
    None
}

/// `80%` or 80.
pub(crate) fn percent(node: &YamlNode<'_>, what: &str, sink: &mut DiagnosticSink<'_>) -> Option<u8> {
    let value = match node.to_json() {
        serde_json::Value::String(text) => text.trim_end_matches('%').trim_end().parse::<u64>().ok(),
        json => json.as_u64(),
    };
    let value = value.filter(|value| (1..=100).contains(value)).and_then(|value| u8::try_from(value).ok());
    if value.is_none() {
        sink.report(
            DiagnosticCode::OutOfRange,
            &node.span,
            format!("`{what}` must be a percentage from 1% to 100%"),
            "",
        );
    }
    value
}

/// One of `choices`, by exact name.
pub(crate) fn choice<T: Copy>(
    node: &YamlNode<'_>,
    what: &str,
    choices: &[(&str, T)],
    sink: &mut DiagnosticSink<'_>,
) -> Option<T> {
    let given = text(node, what, sink)?;
    let found = choices.iter().find(|(name, _)| *name == given.value).map(|(_, value)| *value);
    if found.is_none() {
        let help = suggest(&given.value, choices.iter().map(|(name, _)| *name));
        sink.report(
            DiagnosticCode::NotOneOf,
            &given.span,
            format!("`{what}` cannot be `{}`", given.value),
            help,
        );
    }
    found
}

/// The items of a list that is not empty.
pub(crate) fn list<'n, 's>(
    node: &'n YamlNode<'s>,
    what: &str,
    sink: &mut DiagnosticSink<'_>,
) -> &'n [YamlNode<'s>] {
    match &node.kind {
        YamlKind::List(items) if items.is_empty() => {
            sink.report(DiagnosticCode::Empty, &node.span, format!("`{what}` is empty"), "omit the key");
            &[]
        }
        YamlKind::List(items) => items,
        _ => {
            wrong_type(node, what, "a list", sink);
            &[]
        }
    }
}

/// Reports duplicate entries and returns the list without them.
pub(crate) fn distinct(
    items: Vec<Spanned<String>>,
    what: &str,
    sink: &mut DiagnosticSink<'_>,
) -> Vec<Spanned<String>> {
    let mut seen = std::collections::BTreeSet::new();
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        if seen.insert(item.value.clone()) {
            kept.push(item);
        } else {
            sink.report(
                DiagnosticCode::Duplicate,
                &item.span,
                format!("`{}` appears twice in `{what}`", item.value),
                "",
            );
        }
    }
    kept
}

/// A list of distinct plain names; empty when the key is absent.
pub(crate) fn names(
    node: Option<&YamlNode<'_>>,
    what: &str,
    sink: &mut DiagnosticSink<'_>,
) -> Vec<Spanned<String>> {
    let Some(node) = node else { return Vec::new() };
    let items = list(node, what, sink).iter().filter_map(|item| name(item, what, sink)).collect();
    distinct(items, what, sink)
}

/// The texts without their spans.
pub(crate) fn values(items: &[Spanned<String>]) -> Vec<String> {
    items.iter().map(|item| item.value.clone()).collect()
}
