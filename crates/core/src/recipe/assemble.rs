//! Turns a parsed recipe and the project's prompts into a checked recipe: prompts found, templates checked, text
//! measured.

use std::collections::{BTreeMap, BTreeSet};

use super::code::DiagnosticCode;
use super::diagnostic::{DiagnosticSink, Span, Spanned, nearest};
use super::file::{Prompts, RecipeFile};
use super::model::{PromptTemplate, Recipe, SlotSource, Variant};
use super::prompts::resolve_includes;
use super::template::{self, PromptInputs};
use crate::pack::Cap;
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;

/// A prompt file of the project.
#[derive(Default)]
pub(super) struct PromptFile {
    pub path: String,
    pub text: String,
    /// Names it uses without defining them.
    pub undeclared: BTreeSet<String>,
    /// Prompts it includes.
    pub includes: BTreeSet<String>,
    /// Whether it is free of errors itself.
    pub sound: bool,
}

/// The prompts reachable from `names` through includes, themselves included.
pub(super) fn reach(prompts: &BTreeMap<String, PromptFile>, names: &BTreeSet<String>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = names.iter().collect();
    while let Some(name) = open.pop() {
        if reached.insert(name.clone())
            && let Some(prompt) = prompts.get(name)
        {
            open.extend(&prompt.includes);
        }
    }
    reached
}

/// The checked recipe; `None` if it or a prompt it uses has errors, which have been reported.
pub(super) fn recipe<'s>(
    file: &RecipeFile,
    bytes: &[u8],
    prompts: &BTreeMap<String, PromptFile>,
    counter: &Counter,
    sinks: &mut BTreeMap<&'s str, DiagnosticSink<'s>>,
) -> Option<Recipe> {
    let own = sinks.get_mut(file.path.as_str())?;
    check_reads_something(file, own);
    let used = find_prompts(file, prompts, own);
    let inline = match &file.prompts {
        Prompts::Inline(text) => Some(check_inline(file, text, prompts, own)),
        _ => None,
    };
    let inputs = check_variables(file, own);
    let includes = inline.as_ref().map(|inline| inline.includes.clone()).unwrap_or_default();
    let roots: BTreeSet<String> = used.all().cloned().chain(includes).collect();
    let reached = reach(prompts, &roots);
    let mut sound = check_used_names(file, &reached, prompts, sinks);
    sound &= check_unused(file, inline.as_ref(), &reached, prompts, sinks);
    sound &= reached.iter().filter_map(|name| prompts.get(name)).all(|prompt| prompt.sound);
    let own = sinks.get_mut(file.path.as_str())?;
    if own.has_errors() || !sound {
        return None;
    }
    let recipe = build(file, bytes, &used, &reached, inputs, prompts)?;
    check_prompt_fits(file, &recipe, counter, own);
    (!own.has_errors()).then_some(recipe)
}

/// Requires at least one of documents, sections and variables (C70).
fn check_reads_something(file: &RecipeFile, sink: &mut DiagnosticSink<'_>) {
    if file.input_docs.is_empty()
        && file.input_sections.is_empty()
        && file.variables.is_empty()
        && !file.slots.iter().any(|slot| slot.value.source == SlotSource::Messages)
        && !sink.has_errors()
    {
        let message = "the recipe reads nothing";
        let help = "add at least one of input_docs, input_sections and variables";
        sink.report(DiagnosticCode::NoInput, &(0..0), message, help);
    }
}

/// Names of the prompts a recipe uses.
#[derive(Default)]
struct Used {
    system: Vec<String>,
    variants: BTreeMap<String, Vec<String>>,
}

impl Used {
    fn all(&self) -> impl Iterator<Item = &String> {
        self.system.iter().chain(self.variants.values().flatten())
    }
}

fn find_prompts(
    file: &RecipeFile,
    prompts: &BTreeMap<String, PromptFile>,
    sink: &mut DiagnosticSink<'_>,
) -> Used {
    let mut find = |paths: &[Spanned<String>]| -> Vec<String> {
        paths.iter().filter_map(|path| find_prompt(path, prompts, sink)).collect()
    };
    let system = match &file.prompts {
        Prompts::Files(paths) => find(paths),
        _ => Vec::new(),
    };
    let variants = file.variants.iter().map(|(stage, variant)| (stage.clone(), find(&variant.prompt_files)));
    Used { system, variants: variants.collect() }
}

/// The prompt at a path; leading folders may be omitted if only one prompt ends in it (C74).
fn find_prompt(
    path: &Spanned<String>,
    prompts: &BTreeMap<String, PromptFile>,
    sink: &mut DiagnosticSink<'_>,
) -> Option<String> {
    let name = path.value.strip_prefix("prompts/")?.strip_suffix(".md")?;
    if prompts.contains_key(name) {
        return Some(name.to_owned());
    }
    let tail = format!("/{name}");
    let matches: Vec<&String> = prompts.keys().filter(|full| full.ends_with(&tail)).collect();
    match matches.as_slice() {
        [one] => Some((*one).clone()),
        [] => {
            let help = match nearest(name, prompts.keys().map(String::as_str)) {
                Some(candidate) => format!("did you mean `prompts/{candidate}.md`?"),
                None => "create the file, or correct the path".to_owned(),
            };
            sink.report(
                DiagnosticCode::PromptNotFound,
                &path.span,
                format!("there is no file {}", path.value),
                help,
            );
            None
        }
        several => {
            let several: Vec<String> = several.iter().map(|name| format!("`prompts/{name}.md`")).collect();
            let help = format!("one of {}", several.join(", "));
            sink.report(
                DiagnosticCode::PromptAmbiguous,
                &path.span,
                format!("several files end in {}", path.value),
                help,
            );
            None
        }
    }
}

/// An inline prompt, checked.
struct Inline {
    undeclared: BTreeSet<String>,
    includes: BTreeSet<String>,
}

fn check_inline(
    file: &RecipeFile,
    text: &Spanned<String>,
    prompts: &BTreeMap<String, PromptFile>,
    sink: &mut DiagnosticSink<'_>,
) -> Inline {
    let known: Vec<String> = prompts.keys().cloned().collect();
    let written = sink.source().get(text.span.clone()).unwrap_or("");
    let in_file = |range: &Span| text.span.start + range.start..text.span.start + range.end;
    let included = resolve_includes(&template::includes(&text.value), &known);
    let places = template::includes(written);
    for (index, message, help) in included.problems {
        let span = places.get(index).map_or(text.span.clone(), |(_, range)| in_file(range));
        sink.report(DiagnosticCode::Include, &span, message, help);
    }
    let undeclared = match template::undeclared(&text.value) {
        Ok(names) => names,
        Err(problem) => {
            let span = inline_span(text, &problem.range, sink);
            sink.report(DiagnosticCode::TemplateSyntax, &span, problem.message, problem.help);
            BTreeSet::new()
        }
    };
    let places = template::names(written);
    for name in undeclared.iter().filter(|name| !is_declared(file, name)) {
        let span = places.get(name.as_str()).map_or(text.span.clone(), &in_file);
        report_undeclared(file, name, &span, sink);
    }
    Inline { undeclared, includes: included.names }
}

/// The location in the file of bytes in a template written inside the YAML: the exact place if the text is found
/// there, otherwise the whole value.
fn inline_span(text: &Spanned<String>, range: &Span, sink: &DiagnosticSink<'_>) -> Span {
    let needle = text.value.get(range.clone()).map(str::trim).filter(|needle| !needle.is_empty());
    let written = sink.source().get(text.span.clone()).unwrap_or("");
    let before = text.value.get(..range.start).unwrap_or("");
    let earlier = needle.map_or(0, |needle| before.matches(needle).count());
    match needle.and_then(|needle| written.match_indices(needle).nth(earlier)) {
        Some((at, found)) => text.span.start + at..text.span.start + at + found.len(),
        None => text.span.clone(),
    }
}

fn is_declared(file: &RecipeFile, name: &str) -> bool {
    template::is_builtin(name) || file.variables.contains_key(name)
}

fn report_undeclared(file: &RecipeFile, name: &str, span: &Span, sink: &mut DiagnosticSink<'_>) {
    let message = format!("`{name}` is not declared in {}", file.path);
    let help = template::undeclared_help(name, file.variables.keys().map(String::as_str));
    sink.report(DiagnosticCode::UndeclaredVariable, span, message, help);
}

/// Checks the templates of `variables`; returns the names that the caller must supply.
fn check_variables(file: &RecipeFile, sink: &mut DiagnosticSink<'_>) -> BTreeSet<String> {
    let mut inputs = BTreeSet::new();
    for text in file.variables.values() {
        match template::undeclared(&text.value) {
            Ok(names) => inputs.extend(names.into_iter().filter(|name| !template::is_builtin(name))),
            Err(problem) => {
                let span = inline_span(text, &problem.range, sink);
                sink.report(DiagnosticCode::TemplateSyntax, &span, problem.message, problem.help);
            }
        }
        if let Some((_, range)) = template::includes(&text.value).first() {
            let span = inline_span(text, range, sink);
            sink.report(
                DiagnosticCode::Include,
                &span,
                "a variable cannot include a prompt",
                "include it in a prompt",
            );
        }
    }
    inputs
}

/// Reports names that prompt files use but this recipe does not declare; true if there are none.
fn check_used_names<'s>(
    file: &RecipeFile,
    reached: &BTreeSet<String>,
    prompts: &BTreeMap<String, PromptFile>,
    sinks: &mut BTreeMap<&'s str, DiagnosticSink<'s>>,
) -> bool {
    let mut sound = true;
    for prompt in reached.iter().filter_map(|name| prompts.get(name)) {
        let Some(sink) = sinks.get_mut(prompt.path.as_str()) else { continue };
        let unknown: Vec<&String> =
            prompt.undeclared.iter().filter(|name| !is_declared(file, name)).collect();
        let places = if unknown.is_empty() { BTreeMap::new() } else { template::names(&prompt.text) };
        for name in unknown {
            let span = places.get(name.as_str()).cloned().unwrap_or(0..0);
            report_undeclared(file, name, &span, sink);
            sound = false;
        }
    }
    sound
}

/// Warns about variables that no prompt uses.
fn check_unused<'s>(
    file: &RecipeFile,
    inline: Option<&Inline>,
    reached: &BTreeSet<String>,
    prompts: &BTreeMap<String, PromptFile>,
    sinks: &mut BTreeMap<&'s str, DiagnosticSink<'s>>,
) -> bool {
    let in_prompts =
        reached.iter().filter_map(|name| prompts.get(name)).flat_map(|prompt| &prompt.undeclared);
    let used: BTreeSet<&String> =
        in_prompts.chain(inline.into_iter().flat_map(|inline| &inline.undeclared)).collect();
    let Some(sink) = sinks.get_mut(file.path.as_str()) else { return false };
    if sink.has_errors() {
        return false;
    }
    for (name, text) in file.variables.iter().filter(|(name, _)| !used.contains(name)) {
        let message = format!("no prompt uses the variable `{name}`");
        sink.report(
            DiagnosticCode::UnusedVariable,
            &text.span,
            message,
            "remove it, or correct the name in the prompt",
        );
    }
    true
}

fn build(
    file: &RecipeFile,
    bytes: &[u8],
    used: &Used,
    reached: &BTreeSet<String>,
    inputs: BTreeSet<String>,
    prompts: &BTreeMap<String, PromptFile>,
) -> Option<Recipe> {
    let name = file.name.clone()?.value;
    let templates = |names: &[String]| -> Vec<PromptTemplate> {
        let found = names.iter().filter_map(|name| Some((name, prompts.get(name)?)));
        found.map(|(name, prompt)| PromptTemplate { name: name.clone(), text: prompt.text.clone() }).collect()
    };
    let system = match &file.prompts {
        Prompts::Inline(text) => {
            let name = format!("{}/{name}#system_prompt", file.category);
            vec![PromptTemplate { name, text: text.value.clone() }]
        }
        _ => templates(&used.system),
    };
    let variants = file.variants.iter().map(|(stage, variant)| {
        let system = used.variants.get(stage).map(|names| templates(names)).unwrap_or_default();
        (stage.clone(), Variant { description: variant.description.clone(), system })
    });
    let included = reached.iter().filter_map(|name| Some((name, prompts.get(name)?)));
    let stem = Some(file.stem.clone()).filter(|stem| *stem != name);
    let declared = file.aliases.iter().map(|alias| alias.value.clone());
    let mut aliases: Vec<String> = stem.into_iter().chain(declared).filter(|alias| *alias != name).collect();
    aliases.dedup();
    Some(Recipe {
        aliases,
        category: file.category.clone(),
        version: version(bytes, reached, prompts),
        description: file.description.clone()?,
        role: file.role.clone(),
        risk: file.risk,
        layer: file.layer?,
        router: file.router.as_ref().map(|router| router.value.clone()),
        budget: file.budget.as_ref()?.tokens,
        system,
        includes: included.map(|(name, prompt)| (name.clone(), prompt.text.clone())).collect(),
        input_docs: file.input_docs.iter().map(|doc| doc.value.clone()).collect(),
        input_sections: file.input_sections.clone(),
        variables: file.variables.iter().map(|(name, text)| (name.clone(), text.value.clone())).collect(),
        inputs,
        output: file.output.clone()?,
        gates: file.gates.clone(),
        compression: file.compression.clone(),
        mode: file.mode.as_ref().map(|mode| mode.value),
        tools: super::fields::values(&file.tools),
        needs_query: file.needs_query,
        query_format: file.query_format.clone(),
        slots: file.slots.iter().map(|slot| slot.value.clone()).collect(),
        derived_caps: BTreeMap::new(),
        variants: variants.collect(),
        default_variant: file.default_variant.as_ref().map(|stage| stage.value.clone()),
        name,
    })
}

/// The digest of the recipe's bytes and of every prompt it reaches, each with its name and length.
fn version(bytes: &[u8], reached: &BTreeSet<String>, prompts: &BTreeMap<String, PromptFile>) -> ContentHash {
    let mut all = Vec::new();
    let mut add = |name: &str, bytes: &[u8]| {
        all.extend_from_slice(format!("{name}\0{}\0", bytes.len()).as_bytes());
        all.extend_from_slice(bytes);
    };
    add("recipe", bytes);
    for (name, prompt) in reached.iter().filter_map(|name| Some((name, prompts.get(name)?))) {
        add(name, prompt.text.as_bytes());
    }
    ContentHash::new(&all)
}

/// Tokens of the prompts of a stage.
#[derive(Debug)]
pub struct PromptSize {
    /// The variant; `None` for a recipe without any.
    pub stage: Option<String>,
    /// Those of every stage.
    pub system: usize,
    /// Those of this stage.
    pub variant: usize,
}

impl Recipe {
    /// The size of the prompts of each stage, rendered with empty values. Templates that cannot be rendered that way are
    /// left to the packer, which measures every call.
    pub fn prompt_sizes(&self, counter: &Counter) -> Vec<PromptSize> {
        let values = self.inputs.iter().map(|name| (name.clone(), "".into())).collect();
        let documents: Vec<String> = self.input_docs.iter().map(|doc| doc.name.clone()).collect();
        let stages: Vec<Option<&str>> = match self.variants.is_empty() {
            true => vec![None],
            false => self.variants.keys().map(|stage| Some(stage.as_str())).collect(),
        };
        let size = |stage: Option<&str>| {
            let inputs = PromptInputs {
                variant: stage,
                documents: &documents,
                values: Some(&values),
                ..Default::default()
            };
            let rendered = self.render(&inputs).ok()?;
            let [system, variant] = [&rendered.system, &rendered.variant].map(|prompts| {
                let texts: Vec<&str> = prompts.iter().map(|prompt| prompt.text.as_str()).collect();
                counter.count(&texts.join("\n\n"))
            });
            Some(PromptSize { stage: stage.map(str::to_owned), system, variant })
        };
        stages.into_iter().filter_map(size).collect()
    }
}

/// Measures the prompts against their allotments.
fn check_prompt_fits(file: &RecipeFile, recipe: &Recipe, counter: &Counter, sink: &mut DiagnosticSink<'_>) {
    let Some(budget) = &file.budget else { return };
    let cap = |source: SlotSource| {
        let spec = recipe.slots.iter().find(|spec| spec.source == source)?;
        match spec.slot.cap {
            Cap::Tokens(tokens) => Some((spec.slot.name.clone(), tokens)),
            Cap::Share(_) | Cap::Flexible => None,
        }
    };
    let mut reported = BTreeSet::new();
    for PromptSize { stage, system, variant } in recipe.prompt_sizes(counter) {
        let whole = (format!("token_budget.prompt is {}", budget.tokens.prompt), budget.tokens.prompt);
        let slot = |source, tokens| {
            cap(source).map(|(name, cap)| ((format!("slot {name} holds {cap}"), cap), tokens))
        };
        let limits = [
            Some((whole, system.saturating_add(variant))),
            slot(SlotSource::Prompt, system),
            slot(SlotSource::Variant, variant),
        ];
        for ((limit, allowed), tokens) in
            limits.into_iter().flatten().filter(|((_, allowed), tokens)| tokens > allowed)
        {
            let stage = stage.as_ref().map(|stage| format!(" of stage {stage}")).unwrap_or_default();
            if reported.insert(limit.clone()) {
                let message = format!("the prompt{stage} takes {tokens} tokens, {limit}");
                let help = format!("shorten it by {} tokens, or allot more", tokens.saturating_sub(allowed));
                sink.report(DiagnosticCode::PromptTooLong, &budget.prompt_span, message, help);
            }
        }
    }
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
