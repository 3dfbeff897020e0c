//! One preset as written, with its spans: parsed and checked.

use std::collections::{BTreeMap, BTreeSet};

use larder_text::Layer;
use larder_text::hash::ContentHash;
use larder_text::price::Usd;

use super::condition::{Between, Condition, FieldIs, Measure, Place, Says};
use super::phrases::Phrase;
use super::{Factor, Preset, Requirement, Tier};
use crate::recipe::DiagnosticCode;
use crate::recipe::diagnostic::{DiagnosticSink, Span};
use crate::recipe::fields;
use crate::recipe::yaml::{self, YamlKind, YamlNode};

const KEYS: [&str; 6] = ["description", "single_factor", "tiers", "factors", "require", "ceilings"];
/// Keys of a condition besides those of [`Measure::ALL`].
const WHEN: [&str; 10] =
    ["task", "stage", "output", "document_kind", "fields", "says", "in", "at_least", "any", "not"];
/// How deep `any` and `not` nest.
const MAX_DEPTH: usize = 4;
/// The largest weight or threshold; more could not be summed exactly.
const MAX_WEIGHT: f64 = 1000.0;

/// The preset in a file; `None` after reporting why it cannot be used.
pub(super) fn parse(name: &str, bytes: &[u8], sink: &mut DiagnosticSink<'_>) -> Option<Preset> {
    let root = yaml::parse(sink)?;
    if !fields::check_keys(&root, "router", &KEYS, sink) {
        return None;
    }
    for key in ["description", "tiers", "factors"].into_iter().filter(|key| root.get(key).is_none()) {
        missing(key, &root, sink);
    }
    let description = root.get("description").and_then(|node| fields::text(node, "description", sink));
    let tiers = root.get("tiers").map(|node| tiers(node, sink)).unwrap_or_default();
    let factors = root.get("factors").map(|node| factors(node, sink)).unwrap_or_default();
    let allowed = root.get("single_factor").and_then(|node| {
        fields::choice(node, "single_factor", &[("allowed", true), ("forbidden", false)], sink)
    });
    let requirements = root.get("require").map(|node| requirements(node, sink)).unwrap_or_default();
    let (max_cost, max_latency_ms) =
        root.get("ceilings").map(|node| ceilings(node, sink)).unwrap_or_default();
    if let Some(from) = tiers.iter().find_map(|tier| tier.from) {
        check_weights(&factors, from, allowed == Some(true), sink);
    }
    if let (Some(node), Some(from)) =
        (root.get("tiers"), tiers.iter().filter_map(|tier| tier.from).next_back())
    {
        let most: f64 = factors.iter().map(|(factor, _)| factor.weight.max(0.0)).sum();
        if most < from {
            let message = format!("no score reaches {from}: all factors together add {most}");
            report(&node.span, message, "lower the threshold, or add factors", sink);
        }
    }
    (!sink.has_errors()).then(|| Preset {
        name: name.to_owned(),
        description: description.map(|text| text.value.trim().to_owned()).unwrap_or_default(),
        version: ContentHash::new(bytes),
        tiers,
        factors: factors.into_iter().map(|(factor, _)| factor).collect(),
        requirements,
        max_cost,
        max_latency_ms,
    })
}

fn report(span: &Span, message: impl Into<String>, help: &str, sink: &mut DiagnosticSink<'_>) {
    sink.report(DiagnosticCode::Router, span, message, help);
}

fn missing(key: &str, node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) {
    let span = node.span.start..node.span.start;
    sink.report(DiagnosticCode::MissingField, &span, format!("Missing required field: {key}"), "");
}

/// No factor alone may reach a threshold, or a single sign would decide (C62).
fn check_weights(factors: &[(Factor, Span)], from: f64, allowed: bool, sink: &mut DiagnosticSink<'_>) {
    for (factor, span) in factors.iter().filter(|(factor, _)| !allowed && factor.weight >= from) {
        let message = format!("`{}` alone reaches the threshold {from}", factor.name);
        let help = "lower its weight, raise the threshold, or write `single_factor: allowed` at the top";
        sink.report(DiagnosticCode::SingleFactor, span, message, help);
    }
}

fn tiers(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Vec<Tier> {
    let mut tiers: Vec<Tier> = Vec::new();
    for item in fields::list(node, "tiers", sink) {
        if !fields::check_keys(item, "tiers", &["name", "layer", "from"], sink) {
            continue;
        }
        for key in ["name", "layer"].into_iter().filter(|key| item.get(key).is_none()) {
            missing(&format!("tiers.{key}"), item, sink);
        }
        let name = item.get("name").and_then(|node| fields::name(node, "tiers.name", sink));
        let layer = item.get("layer").and_then(|node| fields::choice(node, "tiers.layer", &Layer::ALL, sink));
        let from = item.get("from").and_then(|node| number(node, "tiers.from", sink));
        let (Some(name), Some(layer)) = (name, layer) else { continue };
        if tiers.iter().any(|tier| tier.name == name.value) {
            let message = format!("`{}` appears twice in `tiers`", name.value);
            sink.report(DiagnosticCode::Duplicate, &name.span, message, "");
        }
        match (tiers.last().map(|tier| tier.from), from) {
            (None, Some(_)) => report(
                &item.span,
                "the first tier answers where no threshold is reached",
                "remove its `from`",
                sink,
            ),
            (Some(_), None) => {
                report(&item.span, "every tier but the first needs a threshold", "add `from: 4`", sink)
            }
            (Some(before), Some(from)) if before.is_some_and(|before| before >= from) => report(
                &item.span,
                "thresholds must rise from tier to tier",
                "order the tiers by `from`",
                sink,
            ),
            _ => {}
        }
        tiers.push(Tier { name: name.value, layer, from });
    }
    if tiers.len() == 1 {
        report(&node.span, "a router chooses among two tiers or more", "add a tier with `from`", sink);
    }
    tiers
}

fn factors(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Vec<(Factor, Span)> {
    let mut names = BTreeSet::new();
    let mut factors = Vec::new();
    for item in fields::list(node, "factors", sink) {
        if !fields::check_keys(item, "factors", &["name", "weight", "when"], sink) {
            continue;
        }
        for key in ["name", "weight", "when"].into_iter().filter(|key| item.get(key).is_none()) {
            missing(&format!("factors.{key}"), item, sink);
        }
        let name = item.get("name").and_then(|node| fields::text(node, "factors.name", sink));
        let weight = item.get("weight").and_then(|node| Some((number(node, "factors.weight", sink)?, node)));
        let when = item.get("when").and_then(|node| condition(node, 0, sink));
        let (Some(name), Some((weight, written)), Some(when)) = (name, weight, when) else { continue };
        if !names.insert(name.value.clone()) {
            let message = format!("`{}` appears twice in `factors`", name.value);
            sink.report(DiagnosticCode::Duplicate, &name.span, message, "");
        }
        if when == Condition::default() {
            report(&item.span, "the factor holds for every request", "say in `when` for which", sink);
        }
        factors.push((Factor { name: name.value, weight, when }, written.span.clone()));
    }
    factors
}

fn requirements(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    for item in fields::list(node, "require", sink) {
        if !fields::check_keys(item, "require", &["capability", "when"], sink) {
            continue;
        }
        for key in ["capability", "when"].into_iter().filter(|key| item.get(key).is_none()) {
            missing(&format!("require.{key}"), item, sink);
        }
        let capability =
            item.get("capability").and_then(|node| fields::name(node, "require.capability", sink));
        let when = item.get("when").and_then(|node| condition(node, 0, sink));
        if let (Some(capability), Some(when)) = (capability, when) {
            requirements.push(Requirement { capability: capability.value, when });
        }
    }
    requirements
}

fn ceilings(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> (Option<Usd>, Option<u64>) {
    /// One hour.
    const MAX_LATENCY_MS: u64 = 3_600_000;
    if !fields::check_keys(node, "ceilings", &["cost_usd", "latency_ms"], sink) {
        return (None, None);
    }
    let cost = node.get("cost_usd").and_then(|node| {
        let written = node.to_json();
        let cost = written.is_number().then(|| written.to_string().parse::<Usd>().ok()).flatten();
        if cost.is_none() {
            fields::wrong_type(node, "ceilings.cost_usd", "an amount of US dollars such as 0.02", sink);
        }
        cost
    });
    let latency = node
        .get("latency_ms")
        .and_then(|node| fields::whole(node, "ceilings.latency_ms", 1..=MAX_LATENCY_MS, sink));
    (cost, latency)
}

fn condition(node: &YamlNode<'_>, depth: usize, sink: &mut DiagnosticSink<'_>) -> Option<Condition> {
    let keys: Vec<&str> = WHEN.into_iter().chain(Measure::ALL.map(|(key, _)| key)).collect();
    if !fields::check_keys(node, "when", &keys, sink) {
        return None;
    }
    if depth > MAX_DEPTH {
        report(&node.span, format!("conditions nest deeper than {MAX_DEPTH} levels"), "flatten them", sink);
        return None;
    }
    let at_least = node.get("at_least").and_then(|node| fields::whole(node, "at_least", 1..=100, sink));
    let at_least = at_least.and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
    let place =
        node.get("in").and_then(|node| fields::choice(node, "in", &Place::ALL, sink)).unwrap_or_default();
    let measures = Measure::ALL
        .into_iter()
        .filter_map(|(key, measure)| Some((measure, between(node.get(key)?, key, sink)?)))
        .collect();
    let any = node.get("any").map(|node| fields::list(node, "any", sink)).unwrap_or_default();
    Some(Condition {
        tasks: texts(node.get("task"), "task", sink),
        stages: texts(node.get("stage"), "stage", sink),
        outputs: texts(node.get("output"), "output", sink),
        kinds: texts(node.get("document_kind"), "document_kind", sink),
        measures,
        fields: node.get("fields").map(|node| field_rules(node, sink)).unwrap_or_default(),
        says: node.get("says").and_then(|node| says(node, at_least, place, sink)),
        any: any.iter().filter_map(|item| condition(item, depth + 1, sink)).collect(),
        not: node.get("not").and_then(|node| condition(node, depth + 1, sink)).map(Box::new),
    })
}

fn says(node: &YamlNode<'_>, at_least: usize, place: Place, sink: &mut DiagnosticSink<'_>) -> Option<Says> {
    let items = fields::list(node, "says", sink).iter();
    let written = items.filter_map(|item| fields::text(item, "says", sink)).collect();
    let mut phrases = Vec::new();
    for text in fields::distinct(written, "says", sink) {
        match Phrase::new(&text.value) {
            Some(phrase) => phrases.push(phrase),
            None => {
                let help = "words without punctuation; `word*`, `*word`, `#`, ` … ` between words, `^` at the beginning";
                report(&text.span, format!("{:?} is not a phrase", text.value), help, sink);
            }
        }
    }
    if phrases.len() < at_least && !phrases.is_empty() {
        let message = format!("{} phrases cannot match {at_least} times", phrases.len());
        report(&node.span, message, "lower `at_least`, or add phrases", sink);
    }
    (!phrases.is_empty()).then_some(Says { phrases, at_least, place })
}

fn texts(node: Option<&YamlNode<'_>>, what: &str, sink: &mut DiagnosticSink<'_>) -> Vec<String> {
    let Some(node) = node else { return Vec::new() };
    let texts =
        fields::list(node, what, sink).iter().filter_map(|item| fields::text(item, what, sink)).collect();
    fields::values(&fields::distinct(texts, what, sink))
}

fn field_rules(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> BTreeMap<String, FieldIs> {
    let YamlKind::Map(entries) = &node.kind else {
        fields::wrong_type(node, "fields", "a mapping", sink);
        return BTreeMap::new();
    };
    let rules = entries.iter().filter_map(|(key, value)| {
        let rule = match &value.kind {
            YamlKind::List(_) => FieldIs::OneOf(texts(Some(value), &key.text, sink)),
            _ => FieldIs::Between(between(value, &key.text, sink)?),
        };
        Some((key.text.to_string(), rule))
    });
    rules.collect()
}

fn between(node: &YamlNode<'_>, what: &str, sink: &mut DiagnosticSink<'_>) -> Option<Between> {
    if !fields::check_keys(node, what, &["from", "to"], sink) {
        return None;
    }
    let mut bound = |key: &str| node.get(key).map(|node| number(node, what, sink));
    let (from, to) = (bound("from"), bound("to"));
    if from.is_none() && to.is_none() {
        report(&node.span, format!("`{what}` has no bound"), "add `from`, `to` or both", sink);
    }
    let (from, to) = (from.flatten(), to.flatten());
    if let (Some(least), Some(most)) = (from, to)
        && least > most
    {
        report(&node.span, format!("nothing lies between {least} and {most}"), "swap `from` and `to`", sink);
    }
    Some(Between { from, to })
}

/// A finite number.
fn number(node: &YamlNode<'_>, what: &str, sink: &mut DiagnosticSink<'_>) -> Option<f64> {
    let value = node.to_json().as_f64();
    match value {
        None => fields::wrong_type(node, what, "a number", sink),
        Some(value) if what.ends_with("weight") && value.abs() > MAX_WEIGHT => {
            let message = format!("`{what}` must be between -{MAX_WEIGHT} and {MAX_WEIGHT}");
            sink.report(DiagnosticCode::OutOfRange, &node.span, message, "");
            return None;
        }
        Some(_) => {}
    }
    value
}
