//! Checks a whole project: reports every problem in every file, and returns the recipes without errors.

use std::collections::{BTreeMap, BTreeSet};

use super::assemble::{self, PromptFile};
use super::catalog::Catalog;
use super::code::DiagnosticCode;
use super::diagnostic::{Diagnostic, DiagnosticSink, suggest};
use super::file::{self, RecipeFile};
use super::registry::{self, REGISTRY_PATH};
use super::{fields, prompts, slots};
use larder_text::Mode;
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;

/// Maximum size of a recipe or prompt file in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// The files of a project: path within it, with `/`, → bytes. Files other than recipes, prompts and the registry are
/// ignored.
pub type ProjectFiles = BTreeMap<String, Vec<u8>>;

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Recipes without errors.
    pub recipes: Catalog,
    /// Sorted by file, line and column.
    pub diagnostics: Vec<Diagnostic>,
    /// The expected content of `registry.yaml`; `None` if there are errors.
    pub registry: Option<String>,
    /// The tools that recipes name, each with the problem that it would be if there were no such tool.
    pub named_tools: Vec<(String, Diagnostic)>,
}

impl CheckReport {
    /// Whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Adds a problem found elsewhere, in order; an error discards the registry.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        if diagnostic.is_error() {
            self.registry = None;
        }
        let at = self.diagnostics.partition_point(|other| *other <= diagnostic);
        self.diagnostics.insert(at, diagnostic);
    }
}

/// Checks every recipe and prompt of a project. `counter` measures whether prompts fit their allotments.
pub fn check(files: &ProjectFiles, counter: &Counter) -> CheckReport {
    check_with(files, counter, None, &BTreeSet::new())
}

/// As [`check`], with `total` as the default for recipes that omit `token_budget.total` (C17), and the names of the
/// presets of the router that recipes may name.
pub fn check_with(
    files: &ProjectFiles,
    counter: &Counter,
    total: Option<usize>,
    routers: &BTreeSet<String>,
) -> CheckReport {
    let mut diagnostics = Vec::new();
    let texts = read_texts(files, &mut diagnostics);
    let mut sinks: BTreeMap<&str, DiagnosticSink<'_>> =
        texts.iter().map(|(path, text)| (*path, DiagnosticSink::new(path, text))).collect();
    let prompts = prompts::check(files, &texts, &mut sinks);
    let mut recipes = Catalog::default();
    let mut parsed = parse_recipes(files, total, &mut sinks, &mut recipes);
    check_names(&parsed, &mut sinks);
    check_modes(&parsed, &mut sinks);
    check_routers(&parsed, routers, &mut sinks);
    let named_tools = named_tools(&parsed, &sinks);
    parsed.sort_by(|a, b| a.path.cmp(&b.path));
    let mut paths = BTreeMap::new();
    for file in parsed {
        let bytes = files.get(&file.path).map(Vec::as_slice).unwrap_or_default();
        match assemble::recipe(&file, bytes, &prompts, counter, &mut sinks) {
            Some(recipe) => {
                paths.insert(recipe.id(), file.path);
                recipes.insert(recipe);
            }
            None => recipes.insert_broken(file),
        }
    }
    diagnostics.extend(sinks.into_values().flat_map(DiagnosticSink::into_found));
    let mut report = CheckReport { recipes, diagnostics, registry: None, named_tools };
    if !report.has_errors() {
        add_registry(&mut report, files, &prompts, &paths);
    }
    report.diagnostics.sort();
    report.diagnostics.dedup();
    report
}

fn named_tools(
    files: &[RecipeFile],
    sinks: &BTreeMap<&str, DiagnosticSink<'_>>,
) -> Vec<(String, Diagnostic)> {
    let of_file = |file: &RecipeFile| {
        let sink = sinks.get(file.path())?;
        let named = file.tools.iter().map(|tool| {
            let message = format!("there is no tool `{}`", tool.value);
            (tool.value.clone(), sink.diagnostic(DiagnosticCode::NotOneOf, &tool.span, message, ""))
        });
        Some(named.collect::<Vec<_>>())
    };
    files.iter().filter_map(of_file).flatten().collect()
}

fn add_registry(
    report: &mut CheckReport,
    files: &ProjectFiles,
    prompts: &BTreeMap<String, PromptFile>,
    paths: &BTreeMap<String, String>,
) {
    let versions = prompts.iter().map(|(name, prompt)| {
        let bytes = files.get(&prompt.path).map(Vec::as_slice).unwrap_or_default();
        (name.clone(), ContentHash::new(bytes))
    });
    let old = files.get(REGISTRY_PATH).map(|bytes| String::from_utf8_lossy(bytes));
    let expected = registry::generate(&report.recipes, &versions.collect(), paths, old.as_deref());
    if old.is_some_and(|old| old != expected) {
        let message = "registry.yaml does not match the recipes and prompts";
        let help = "run `larder check --write-registry`";
        report.diagnostics.push(Diagnostic::whole_file(
            DiagnosticCode::RegistryStale,
            REGISTRY_PATH,
            message,
            help,
        ));
    }
    report.registry = Some(expected);
}

/// Decodes recipes and prompts, reporting files that are not text.
fn read_texts<'f>(files: &'f ProjectFiles, found: &mut Vec<Diagnostic>) -> BTreeMap<&'f str, String> {
    let mut texts = BTreeMap::new();
    for (path, bytes) in files.iter().filter(|(path, _)| is_recipe_path(path) || is_prompt_path(path)) {
        match read_text(path, bytes) {
            Ok(text) => {
                texts.insert(path.as_str(), text);
            }
            Err(diagnostic) => found.push(diagnostic),
        }
    }
    texts
}

fn is_recipe_path(path: &str) -> bool {
    path.starts_with("recipes/") && [".yaml", ".yml"].iter().any(|end| path.ends_with(end))
}

pub(super) fn is_prompt_path(path: &str) -> bool {
    path.starts_with("prompts/") && path.ends_with(".md")
}

/// Decodes UTF-8 without byte order mark and control characters, normalising line ends to LF.
///
/// # Errors
/// If the file is not such text, with the place.
pub fn read_text(path: &str, bytes: &[u8]) -> Result<String, Diagnostic> {
    if bytes.len() > MAX_FILE_BYTES {
        // A folder's files are read to just above the limit.
        let message = format!("the file has more than {MAX_FILE_BYTES} bytes, which is the maximum");
        let help = "put text for the model to work on into documents";
        return Err(Diagnostic::whole_file(DiagnosticCode::TooLarge, path, message, help));
    }
    let at = |offset: usize, code, message: String, help: &str| {
        let before = String::from_utf8_lossy(bytes.get(..offset).unwrap_or_default());
        let mut sink = DiagnosticSink::new(path, &before);
        sink.report(code, &(before.len()..before.len()), message, help);
        sink.into_found().pop().unwrap_or_else(|| Diagnostic::whole_file(code, path, "", help))
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = "the file is not UTF-8 text from here on".to_owned();
        at(error.valid_up_to(), DiagnosticCode::NotUtf8, message, "save the file as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| control(*c)) {
        let mut sink = DiagnosticSink::new(path, &text);
        let message = format!("control character U+{:04X}", u32::from(c));
        sink.report(DiagnosticCode::ControlCharacter, &(offset..offset + 1), message, "remove it");
        return Err(sink.into_found().pop().unwrap_or_else(|| {
            Diagnostic::whole_file(DiagnosticCode::ControlCharacter, path, "control character", "remove it")
        }));
    }
    Ok(text)
}

fn parse_recipes(
    files: &ProjectFiles,
    total: Option<usize>,
    sinks: &mut BTreeMap<&str, DiagnosticSink<'_>>,
    recipes: &mut Catalog,
) -> Vec<RecipeFile> {
    let mut parsed = Vec::new();
    for path in files.keys().filter(|path| is_recipe_path(path)) {
        let place = path.strip_prefix("recipes/").and_then(|rest| rest.split_once('/'));
        let place = place.and_then(|(category, file)| Some((category, file.strip_suffix(".yaml")?)));
        let Some((category, stem)) =
            place.filter(|(category, stem)| fields::is_plain_name(category) && fields::is_plain_name(stem))
        else {
            if let Some(sink) = sinks.get_mut(path.as_str()) {
                let message = format!("{path:?} is not of the form recipes/category/name.yaml");
                sink.report(
                    DiagnosticCode::Layout,
                    &(0..0),
                    message,
                    "rename or move the file; it is not loaded from here",
                );
            }
            continue;
        };
        let file =
            sinks.get_mut(path.as_str()).and_then(|sink| file::parse(path, (category, stem), total, sink));
        match file {
            Some(file) => {
                if let Some(sink) = sinks.get_mut(path.as_str()) {
                    slots::check_together(&file, sink);
                }
                parsed.push(file);
            }
            None => recipes.insert_unreadable(category, stem),
        }
    }
    parsed
}

/// Names, stems and aliases are unique in the project (C73).
fn check_names(parsed: &[RecipeFile], sinks: &mut BTreeMap<&str, DiagnosticSink<'_>>) {
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for file in parsed {
        let Some(sink) = sinks.get_mut(file.path.as_str()) else { continue };
        let name = file.name.iter().map(|name| (name.value.as_str(), name.span.clone()));
        let aliases = file.aliases.iter().map(|alias| (alias.value.as_str(), alias.span.clone()));
        let is_named_so = file.name.as_ref().is_some_and(|name| name.value == file.stem);
        let stem = (!is_named_so).then_some((file.stem.as_str(), 0..0));
        let names = name.chain(stem).chain(aliases);
        for (name, span) in names {
            let owner = taken.entry(name).or_insert(&file.path);
            if *owner != file.path {
                let message = format!("the name `{name}` is already taken by {owner}");
                sink.report(
                    DiagnosticCode::NameTaken,
                    &span,
                    message,
                    "a recipe is loaded by its name, file stem or an alias",
                );
            }
        }
    }
}

/// `{phase}_code` and `{phase}_chat` must state the matching mode, and code needs a chat counterpart.
fn check_modes(parsed: &[RecipeFile], sinks: &mut BTreeMap<&str, DiagnosticSink<'_>>) {
    for file in parsed {
        let Some(sink) = sinks.get_mut(file.path.as_str()) else { continue };
        let Some(name) = &file.name else { continue };
        for (suffix, text, mode) in [("_chat", "chat", Mode::Chat), ("_code", "code", Mode::Code)] {
            let Some(phase) = name.value.strip_suffix(suffix) else { continue };
            match &file.mode {
                Some(stated) if stated.value == mode => {}
                Some(stated) => {
                    let message =
                        format!("`{}` is loaded in mode {text}, but states a different mode", name.value);
                    sink.report(
                        DiagnosticCode::ModeMismatch,
                        &stated.span,
                        message,
                        format!("write `mode: {text}`"),
                    );
                }
                None => {
                    let message = format!("`{}` is loaded in mode {text}, but states no mode", name.value);
                    sink.report(
                        DiagnosticCode::ModeMismatch,
                        &name.span,
                        message,
                        format!("write `mode: {text}`"),
                    );
                }
            }
            let chat = format!("{phase}_chat");
            if mode == Mode::Code && !parsed.iter().any(|other| other.answers_to(&chat)) {
                let message = format!("`{chat}` is missing next to `{}`", name.value);
                let help = "every mode except code loads it; add that recipe, or rename this one";
                sink.report(DiagnosticCode::ModeCounterpart, &name.span, message, help);
            }
        }
    }
}

/// A recipe names a preset that exists.
fn check_routers(
    parsed: &[RecipeFile],
    routers: &BTreeSet<String>,
    sinks: &mut BTreeMap<&str, DiagnosticSink<'_>>,
) {
    for file in parsed {
        let Some(router) = file.router.as_ref().filter(|router| !routers.contains(&router.value)) else {
            continue;
        };
        let Some(sink) = sinks.get_mut(file.path.as_str()) else { continue };
        let message = format!("there is no router `{}`", router.value);
        let help = suggest(&router.value, routers.iter().map(String::as_str));
        sink.report(DiagnosticCode::RouterNotFound, &router.span, message, help);
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
