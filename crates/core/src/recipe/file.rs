//! One parsed recipe file: every field typed and with its span, not yet compared with other files.

use std::collections::BTreeMap;

use super::code::DiagnosticCode;
use super::diagnostic::{DiagnosticSink, Span, Spanned};
use super::model::{
    Compression, DEFAULT_MAX_RETRIES, Gates, InputDoc, OutputSpec, QueryFormat, Risk, SlotSource, SlotSpec,
    TokenBudget,
};
use super::yaml::{self, YamlNode};
use super::{PRESERVE, fields, inputs, outputs, slots};
use larder_text::message::Role;
use larder_text::{Layer, Mode};

/// The keys of a recipe, in the order of the reference (R0-10).
pub const KEYS: [&str; 25] = [
    "name",
    "aliases",
    "description",
    "role",
    "risk_level",
    "model_layer",
    "router",
    "mode",
    "token_budget",
    "system_prompt",
    "prompt_files",
    "input_docs",
    "input_sections",
    "variables",
    "needs_query",
    "query_format",
    "slots",
    "variants",
    "default_variant",
    "output_format",
    "output_schema",
    "output_tags",
    "quality_gates",
    "compression",
    TOOLS,
];
const TOOLS: &str = "tools_available";
/// The largest number of tokens allowed in a budget.
const MAX_TOKENS: u64 = 100_000_000;
/// The maximum timeout of a call: one hour.
const MAX_TIMEOUT_MS: u64 = 3_600_000;

/// A recipe as written, with source spans. Only [`super::check`] turns it into a [`super::Recipe`].
#[derive(Debug, Clone)]
pub struct RecipeFile {
    pub(super) path: String,
    pub(super) category: String,
    pub(super) stem: String,
    pub(super) name: Option<Spanned<String>>,
    pub(super) aliases: Vec<Spanned<String>>,
    pub(super) description: Option<String>,
    pub(super) role: Option<String>,
    pub(super) risk: Risk,
    pub(super) layer: Option<Layer>,
    pub(super) router: Option<Spanned<String>>,
    pub(super) mode: Option<Spanned<Mode>>,
    pub(super) budget: Option<BudgetFile>,
    pub(super) prompts: Prompts,
    pub(super) input_docs: Vec<Spanned<InputDoc>>,
    pub(super) input_sections: Vec<u8>,
    pub(super) variables: BTreeMap<String, Spanned<String>>,
    pub(super) needs_query: bool,
    pub(super) query_format: Option<QueryFormat>,
    pub(super) slots: Vec<Spanned<SlotSpec>>,
    pub(super) variants: BTreeMap<String, VariantFile>,
    pub(super) default_variant: Option<Spanned<String>>,
    pub(super) output: Option<OutputSpec>,
    pub(super) gates: Gates,
    pub(super) compression: Compression,
    pub(super) tools: Vec<Spanned<String>>,
}

/// A budget with the spans of its allotments.
#[derive(Debug, Clone)]
pub(super) struct BudgetFile {
    pub tokens: TokenBudget,
    pub prompt_span: Span,
    pub span: Span,
}

/// Where the system prompt comes from.
#[derive(Debug, Clone)]
pub(super) enum Prompts {
    /// Neither or both were given; this has been reported.
    Unclear,
    Inline(Spanned<String>),
    Files(Vec<Spanned<String>>),
}

/// A stage as written.
#[derive(Debug, Clone)]
pub(super) struct VariantFile {
    pub description: Option<String>,
    pub prompt_files: Vec<Spanned<String>>,
}

impl RecipeFile {
    /// Path inside the project, such as `recipes/ask/answer.yaml`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether `name` is one of this recipe's names, without the category.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        self.stem == name
            || self.name.as_ref().is_some_and(|own| own.value == name)
            || self.aliases.iter().any(|alias| alias.value == name)
    }
}

/// Parses the recipe at `recipes/{category}/{stem}.yaml`, reporting everything that is wrong; `None` if it is not a
/// mapping. `total` is the default total of the budget, where a default is permitted.
pub(super) fn parse(
    path: &str,
    (category, stem): (&str, &str),
    total: Option<usize>,
    sink: &mut DiagnosticSink<'_>,
) -> Option<RecipeFile> {
    let root = yaml::parse(sink)?;
    if !fields::check_keys(&root, "", &KEYS, sink) {
        return None;
    }
    let start = root.span.start..root.span.start;
    for field in ["name", "description", "model_layer", "token_budget", "output_format"] {
        if root.get(field).is_none() {
            missing(field, &start, sink);
        }
    }
    let variants = inputs::variants(root.get("variants"), sink);
    let file = RecipeFile {
        path: path.to_owned(),
        category: category.to_owned(),
        stem: stem.to_owned(),
        name: root.get("name").and_then(|node| fields::name(node, "name", sink)),
        aliases: fields::names(root.get("aliases"), "aliases", sink),
        description: root
            .get("description")
            .and_then(|node| fields::text(node, "description", sink))
            .map(|text| text.value.trim().to_owned()),
        role: root.get("role").and_then(|node| fields::name(node, "role", sink)).map(|role| role.value),
        risk: root
            .get("risk_level")
            .and_then(|node| fields::choice(node, "risk_level", &RISKS, sink))
            .unwrap_or_default(),
        layer: root
            .get("model_layer")
            .and_then(|node| fields::choice(node, "model_layer", &Layer::ALL, sink)),
        router: root.get("router").and_then(|node| fields::name(node, "router", sink)),
        mode: mode(&root, sink),
        budget: root.get("token_budget").and_then(|node| budget(node, total, sink)),
        prompts: prompts(&root, &start, &variants, sink),
        input_docs: inputs::docs(root.get("input_docs"), &variants, sink),
        input_sections: inputs::sections(root.get("input_sections"), sink),
        variables: inputs::variables(root.get("variables"), sink),
        needs_query: needs_query(&root, category, sink),
        query_format: root.get("query_format").and_then(|node| query_format(node, sink)),
        slots: slots::slots(root.get("slots"), sink),
        default_variant: inputs::default_variant(&root, &variants, sink),
        variants,
        output: outputs::output(&root, &start, sink),
        gates: gates(root.get("quality_gates"), sink),
        compression: compression(root.get("compression"), sink),
        tools: tools(root.get(TOOLS), sink),
    };
    check_evidence(&root, &file, sink);
    Some(file)
}

/// Checks that an answer that must cite has something to cite: what the user says, which is everything but the prompt.
fn check_evidence(root: &YamlNode<'_>, file: &RecipeFile, sink: &mut DiagnosticSink<'_>) {
    let is_of_user = |slot: &SlotSpec| slot.source == SlotSource::Messages || slot.role == Role::User;
    let is_cited = !file.input_docs.is_empty()
        || !file.input_sections.is_empty()
        || file.slots.iter().any(|slot| is_of_user(&slot.value));
    let gate = root.get("quality_gates").and_then(|gates| gates.get("evidence_required"));
    if let (Some(gate), false) = (gate.filter(|_| file.gates.evidence_required), is_cited) {
        let message = "evidence_required asks for citations, but the recipe reads nothing that can be cited";
        let help = "add input_docs, input_sections or a slot of messages, or remove the gate";
        sink.report(DiagnosticCode::GateUnmeetable, &gate.span, message, help);
    }
}

const RISKS: [(&str, Risk); 3] = [("low", Risk::Low), ("medium", Risk::Medium), ("high", Risk::High)];

/// Reports a missing field with the wording required by R0-18.4.
pub(super) fn missing(field: &str, span: &Span, sink: &mut DiagnosticSink<'_>) {
    let key = field.rsplit('.').next().unwrap_or(field);
    let example = match key {
        "model_layer" => "VOICE",
        "output_format" => "text",
        "prompt_files" => "[prompts/category/name.md]",
        "token_budget" => "{total: 2000, prompt: 300, input: 1250, output: 250}",
        _ => "…",
    };
    sink.report(
        DiagnosticCode::MissingField,
        span,
        format!("Missing required field: {field}"),
        format!("add `{key}: {example}`"),
    );
}

fn mode(root: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Option<Spanned<Mode>> {
    let node = root.get("mode").filter(|node| !node.is_null())?;
    let value = fields::choice(node, "mode", &[("chat", Mode::Chat), ("code", Mode::Code)], sink)?;
    Some(Spanned { value, span: node.span.clone() })
}

fn budget(node: &YamlNode<'_>, usual: Option<usize>, sink: &mut DiagnosticSink<'_>) -> Option<BudgetFile> {
    const PARTS: [&str; 5] = ["total", "prompt", "input", "output", "response_reserve"];
    if !fields::check_keys(node, "token_budget", &PARTS, sink) {
        return None;
    }
    let mut part = |key: &str, min: u64| {
        let what = format!("token_budget.{key}");
        match node.get(key) {
            Some(node) => {
                fields::whole(node, &what, min..=MAX_TOKENS, sink).and_then(|n| usize::try_from(n).ok())
            }
            None if key == "response_reserve" => Some(0),
            None if key == "total" && usual.is_some() => usual,
            None => {
                missing(&what, &node.span, sink);
                None
            }
        }
    };
    let (total, prompt, input) = (part("total", 1), part("prompt", 1), part("input", 1));
    let (output, reserve) = (part("output", 1), part("response_reserve", 0));
    let tokens = TokenBudget {
        total: total?,
        prompt: prompt?,
        input: input?,
        output: output?,
        response_reserve: reserve?,
    };
    check_budget(&tokens, &node.get("total").unwrap_or(node).span, sink);
    let prompt_span = node.get("prompt").unwrap_or(node).span.clone();
    Some(BudgetFile { tokens, prompt_span, span: node.span.clone() })
}

/// Checks that the four parts do not exceed the total (C16), with the wording required by R0-18.5.
fn check_budget(budget: &TokenBudget, span: &Span, sink: &mut DiagnosticSink<'_>) {
    let TokenBudget { total, prompt, input, output, response_reserve } = *budget;
    let asked = prompt + input + output;
    let parts = asked + response_reserve;
    if parts > total {
        let message = format!("Budget parts ({parts}) exceed total ({total})");
        let help = format!(
            "prompt {prompt} + input {input} + output {output} + response_reserve {response_reserve} = {parts}; \
             raise total to {parts} or lower a part"
        );
        sink.report(DiagnosticCode::BudgetExceeded, span, message, help);
    } else if total - asked < super::ADVISED_RESERVE {
        let slack = total - asked;
        let advised = super::ADVISED_RESERVE;
        let message =
            format!("prompt, input and output leave {slack} tokens; {advised} are recommended for framing");
        sink.report(
            DiagnosticCode::SmallReserve,
            span,
            message,
            format!("raise total to {}", asked + advised),
        );
    }
}

fn prompts(
    root: &YamlNode<'_>,
    start: &Span,
    variants: &BTreeMap<String, VariantFile>,
    sink: &mut DiagnosticSink<'_>,
) -> Prompts {
    match (root.get("system_prompt"), root.get("prompt_files")) {
        (Some(node), None) => {
            fields::text(node, "system_prompt", sink).map_or(Prompts::Unclear, Prompts::Inline)
        }
        (None, Some(node)) => Prompts::Files(prompt_paths(node, "prompt_files", sink)),
        (Some(_), Some(files)) => {
            let help = "move the text of system_prompt into a prompt file, or drop prompt_files";
            sink.report(
                DiagnosticCode::PromptSource,
                &files.span,
                "both system_prompt and prompt_files are given",
                help,
            );
            Prompts::Unclear
        }
        // Every stage has its whole prompt.
        (None, None) if !variants.is_empty() => Prompts::Files(Vec::new()),
        (None, None) => {
            let help = "add `prompt_files: [prompts/category/name.md]`";
            sink.report(
                DiagnosticCode::PromptSource,
                start,
                "neither system_prompt nor prompt_files is given",
                help,
            );
            Prompts::Unclear
        }
    }
}

/// Paths under `prompts/`; each component is a plain name, so that no path can lead out of the project.
pub(super) fn prompt_paths(
    node: &YamlNode<'_>,
    what: &str,
    sink: &mut DiagnosticSink<'_>,
) -> Vec<Spanned<String>> {
    let items = fields::list(node, what, sink).iter();
    let paths = items
        .filter_map(|item| {
            let path = fields::text(item, what, sink)?;
            let steps = path.value.strip_prefix("prompts/").and_then(|rest| rest.strip_suffix(".md"));
            let good = steps.is_some_and(|steps| steps.split('/').all(fields::is_plain_name));
            if !good {
                let message = format!("{:?} is not a path of the form prompts/category/name.md", path.value);
                let help =
                    "paths are relative to the project folder and use letters, digits, _ and - between slashes";
                sink.report(DiagnosticCode::BadName, &path.span, message, help);
            }
            good.then_some(path)
        })
        .collect();
    fields::distinct(paths, what, sink)
}

fn needs_query(root: &YamlNode<'_>, category: &str, sink: &mut DiagnosticSink<'_>) -> bool {
    let Some(node) = root.get("needs_query") else { return true };
    let needs = fields::boolean(node, "needs_query", sink).unwrap_or(true);
    if !needs && category != super::COMPRESS_CATEGORY {
        let message = format!("a recipe of category `{category}` requires the user's query");
        sink.report(DiagnosticCode::QueryRequired, &node.span, message, "remove needs_query");
    }
    needs
}

/// Reads `query_format`: text with `{query}` in one place.
fn query_format(node: &YamlNode<'_>, sink: &mut DiagnosticSink<'_>) -> Option<QueryFormat> {
    let text = fields::text(node, "query_format", sink)?.value;
    match text.split_once("{query}") {
        Some((before, after)) if !after.contains("{query}") => {
            Some(QueryFormat { before: before.to_owned(), after: after.to_owned() })
        }
        _ => {
            let help = "such as `query_format: 'User message: \"{query}\"'`";
            sink.report(DiagnosticCode::WrongType, &node.span, "`query_format` must have {query} once", help);
            None
        }
    }
}

fn gates(node: Option<&YamlNode<'_>>, sink: &mut DiagnosticSink<'_>) -> Gates {
    const KEYS: [&str; 5] =
        ["schema_validation", "confidence_threshold", "evidence_required", "max_retries", "timeout_ms"];
    /// More retries than this only add cost.
    const MAX_RETRIES: u64 = 10;
    let mut gates = Gates::default();
    let Some(node) = node.filter(|node| fields::check_keys(node, "quality_gates", &KEYS, sink)) else {
        return gates;
    };
    let what = |key: &str| format!("quality_gates.{key}");
    if let Some(value) = node.get(KEYS[0]) {
        gates.schema_validation = fields::boolean(value, &what(KEYS[0]), sink).unwrap_or(true);
    }
    gates.confidence_threshold =
        node.get(KEYS[1]).and_then(|value| fields::fraction(value, &what(KEYS[1]), sink));
    if let Some(value) = node.get(KEYS[2]) {
        gates.evidence_required = fields::boolean(value, &what(KEYS[2]), sink).unwrap_or_default();
    }
    if let Some(value) = node.get(KEYS[3]) {
        let retries = fields::whole(value, &what(KEYS[3]), 0..=MAX_RETRIES, sink);
        gates.max_retries = retries.and_then(|n| u32::try_from(n).ok()).unwrap_or(DEFAULT_MAX_RETRIES);
    }
    if let Some(value) = node.get(KEYS[4]) {
        gates.timeout_ms = fields::whole(value, &what(KEYS[4]), 1..=MAX_TIMEOUT_MS, sink);
    }
    gates
}

fn compression(node: Option<&YamlNode<'_>>, sink: &mut DiagnosticSink<'_>) -> Compression {
    let mut compression = Compression::default();
    let keys = ["enabled", "model_layer", "preserve"];
    let Some(node) = node.filter(|node| fields::check_keys(node, "compression", &keys, sink)) else {
        return compression;
    };
    if let Some(value) = node.get("enabled") {
        compression.enabled = fields::boolean(value, "compression.enabled", sink).unwrap_or(true);
    }
    if let Some(value) = node.get("model_layer") {
        let layer = fields::choice(value, "compression.model_layer", &Layer::ALL, sink);
        if layer.is_some_and(|layer| layer != Layer::Nerves) {
            sink.report(
                DiagnosticCode::CompressionLayer,
                &value.span,
                "condensing always runs on NERVES",
                "write NERVES",
            );
        }
    }
    let preserve = fields::names(node.get("preserve"), "compression.preserve", sink);
    let sections: Vec<String> = (0..=super::LAST_SECTION).map(|n| format!("section_{n}")).collect();
    let valid: Vec<&str> = PRESERVE.into_iter().chain(sections.iter().map(String::as_str)).collect();
    for entry in preserve.iter().filter(|entry| !valid.contains(&entry.value.as_str())) {
        let message = format!("`compression.preserve` cannot name `{}`", entry.value);
        let help = super::diagnostic::suggest(&entry.value, valid.iter().copied());
        sink.report(DiagnosticCode::NotOneOf, &entry.span, message, help);
    }
    compression.preserve = fields::values(&preserve);
    compression
}

/// Tool names, which may contain dots as in `internet.research`; `mcp.files.*` names all tools of a server.
fn tools(node: Option<&YamlNode<'_>>, sink: &mut DiagnosticSink<'_>) -> Vec<Spanned<String>> {
    let Some(node) = node else { return Vec::new() };
    let named: Vec<_> = fields::list(node, TOOLS, sink)
        .iter()
        .filter_map(|item| {
            let tool = fields::text(item, TOOLS, sink)?;
            let plain = tool.value.strip_suffix(".*").unwrap_or(&tool.value);
            let good = plain.split('.').all(fields::is_plain_name);
            if !good {
                let help =
                    "use letters, digits, _, - and . only, with .* at the end for all tools of an MCP server";
                sink.report(
                    DiagnosticCode::BadName,
                    &tool.span,
                    format!("{:?} is not a tool name", tool.value),
                    help,
                );
            }
            good.then_some(tool)
        })
        .collect();
    fields::distinct(named, TOOLS, sink)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
