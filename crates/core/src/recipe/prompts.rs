//! The prompt files of a project: their locations, whether they compile, and what they include.
//!
//! Does not know recipes: whether the names used in a prompt are declared depends on the recipe.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::assemble::{self, PromptFile};
use super::check::{ProjectFiles, is_prompt_path};
use super::code::DiagnosticCode;
use super::diagnostic::{DiagnosticSink, nearest};
use super::{fields, template};

/// Compiles every prompt and follows its includes; returns them by name. Files missing from `texts` because they are
/// not text are also returned, so that recipes do not report them as missing.
pub(super) fn check<'f>(
    files: &'f ProjectFiles,
    texts: &BTreeMap<&'f str, String>,
    sinks: &mut BTreeMap<&'f str, DiagnosticSink<'_>>,
) -> BTreeMap<String, PromptFile> {
    let mut prompts = BTreeMap::new();
    for path in files.keys().filter(|path| is_prompt_path(path)) {
        let name = path.strip_prefix("prompts/").and_then(|rest| rest.strip_suffix(".md")).unwrap_or("");
        let mut prompt = PromptFile { path: path.clone(), ..PromptFile::default() };
        let (Some(text), Some(sink)) = (texts.get(path.as_str()), sinks.get_mut(path.as_str())) else {
            prompts.insert(name.to_owned(), prompt);
            continue;
        };
        let steps: Vec<&str> = name.split('/').collect();
        if steps.len() < 2 || !steps.iter().all(|step| fields::is_plain_name(step)) {
            let message = format!("{path:?} is not of the form prompts/category/name.md");
            sink.report(DiagnosticCode::Layout, &(0..0), message, "move the file into a category folder");
        }
        if text.trim().is_empty() {
            sink.report(DiagnosticCode::Empty, &(0..0), "the prompt is empty", "");
        }
        match template::undeclared(text) {
            Ok(names) => prompt.undeclared = names,
            Err(problem) => {
                sink.report(DiagnosticCode::TemplateSyntax, &problem.range, problem.message, problem.help)
            }
        }
        prompt.text.clone_from(text);
        prompts.insert(name.to_owned(), prompt);
    }
    check_includes(&mut prompts, sinks);
    for prompt in prompts.values_mut() {
        prompt.sound = sinks.get(prompt.path.as_str()).is_some_and(|sink| !sink.has_errors());
    }
    prompts
}

fn check_includes(
    prompts: &mut BTreeMap<String, PromptFile>,
    sinks: &mut BTreeMap<&str, DiagnosticSink<'_>>,
) {
    let names: Vec<String> = prompts.keys().cloned().collect();
    for prompt in prompts.values_mut() {
        let Some(sink) = sinks.get_mut(prompt.path.as_str()) else { continue };
        let found = template::includes(&prompt.text);
        let included = resolve_includes(&found, &names);
        for (index, message, help) in included.problems {
            let range = found.get(index).map_or(0..0, |(_, range)| range.clone());
            sink.report(DiagnosticCode::Include, &range, message, help);
        }
        prompt.includes = included.names;
    }
    for (name, prompt) in prompts.iter() {
        if assemble::reach(prompts, &prompt.includes).contains(name)
            && let Some(sink) = sinks.get_mut(prompt.path.as_str())
        {
            let range = template::includes(&prompt.text).first().map_or(0..0, |(_, range)| range.clone());
            let message = format!("`{name}` includes itself, directly or through others");
            sink.report(DiagnosticCode::Include, &range, message, "break the cycle");
        }
    }
}

/// What a template includes, and the problems of its includes by their index.
pub(super) struct Included {
    pub names: BTreeSet<String>,
    pub problems: Vec<(usize, String, String)>,
}

/// Resolves `found`, the result of [`template::includes`], against the sorted names in `known`.
pub(super) fn resolve_includes(found: &[(Option<String>, Range<usize>)], known: &[String]) -> Included {
    let mut included = Included { names: BTreeSet::new(), problems: Vec::new() };
    for (index, (name, _)) in found.iter().enumerate() {
        match name {
            Some(name) if known.binary_search(name).is_ok() => {
                included.names.insert(name.clone());
            }
            Some(name) => {
                let help = match nearest(name, known.iter().map(String::as_str)) {
                    Some(candidate) => format!("did you mean \"{candidate}\"?"),
                    None => "prompts are included by name, \"category/name\", without extension".to_owned(),
                };
                included.problems.push((index, format!("there is no prompt {name:?}"), help));
            }
            None => {
                let message = "the included prompt must be a quoted name".to_owned();
                let help =
                    "write {% include \"category/name\" %}, so that the prompt can be checked".to_owned();
                included.problems.push((index, message, help));
            }
        }
    }
    included
}
