//! Checks conversation types: reports every problem of a file at once, with its place and how to fix it.
//!
//! The form of the file is described by the schema of [`ConversationType`]. What is checked here is what no schema can
//! express: names that must exist, recipes that must fit their use, and numbers that must not contradict each other.

mod flow;
mod heeded;
mod numbers;
mod recipes;

use std::collections::BTreeMap;

use larder_core::recipe::{
    self, Diagnostic, DiagnosticCode, Recipe, RecipeError, SchemaFile, nearest, suggest,
};
use larder_core::route::Preset;
use larder_engine::project::Project;
use larder_text::tokens::Counter;

use crate::catalog::LoadedType;
use crate::kind::ConversationType;

/// The folder of the types inside a project.
const FOLDER: &str = "conversations/";

/// Where recipes and prompts are looked for: in the project, then in the cookbook.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub project: &'a Project,
    pub cookbook: &'a Project,
    pub counter: &'a Counter,
}

impl<'a> Known<'a> {
    fn recipe(&self, name: &str) -> Result<&'a Recipe, RecipeError> {
        match self.project.recipe(name) {
            Err(RecipeError::NotFound { .. }) => self.cookbook.recipe(name),
            found => found,
        }
    }

    fn file(&self, path: &str) -> Option<&'a [u8]> {
        let found = self.project.files().get(path).or_else(|| self.cookbook.files().get(path));
        found.map(Vec::as_slice)
    }

    /// The preset of the router with this name, if it can be used. Every project knows those that ship.
    fn router(&self, name: &str) -> Option<&'a Preset> {
        self.project.routers().get(name)
    }

    fn routers(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.project.routers().keys().map(String::as_str)
    }

    /// The prompt file nearest to a path.
    fn nearest_prompt(&self, path: &str) -> Option<&'a str> {
        let all = self.project.files().keys().chain(self.cookbook.files().keys());
        nearest(path, all.map(String::as_str).filter(|path| path.starts_with("prompts/")))
    }
}

/// Whether a file of a project is meant as a conversation type.
pub(crate) fn is_type(path: &str) -> bool {
    path.starts_with(FOLDER) && [".yaml", ".yml"].iter().any(|end| path.ends_with(end))
}

/// The path of the type with this name.
pub(crate) fn path_of(name: &str) -> String {
    format!("{FOLDER}{name}.yaml")
}

/// The name of the file without folder and extension.
pub(crate) fn stem(path: &str) -> &str {
    let name = path.strip_prefix(FOLDER).unwrap_or(path);
    name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name)
}

/// Reads and checks one file; the type only if it has no errors.
pub(crate) fn file(path: &str, bytes: &[u8], known: &Known<'_>) -> (Option<LoadedType>, Vec<Diagnostic>) {
    let text = match recipe::read_text(path, bytes) {
        Ok(text) => text,
        Err(problem) => return (None, vec![problem]),
    };
    let mut file = SchemaFile::read(path, &text, &ConversationType::schema());
    let read = file.value().map(serde_json::from_value::<ConversationType>);
    let kind = match read {
        Some(Ok(kind)) => kind,
        Some(Err(error)) => {
            file.report("", DiagnosticCode::WrongType, error.to_string(), "");
            return (None, file.into_diagnostics());
        }
        None => return (None, file.into_diagnostics()),
    };
    let mut check = Check { kind: &kind, known, file, texts: BTreeMap::new() };
    check.name(path);
    check.flow();
    check.recipes();
    check.numbers();
    check.heeded();
    let texts = std::mem::take(&mut check.texts);
    let diagnostics = check.file.into_diagnostics();
    let is_usable = !diagnostics.iter().any(Diagnostic::is_error);
    (is_usable.then_some(LoadedType { kind, texts }), diagnostics)
}

/// A file being checked.
struct Check<'a> {
    kind: &'a ConversationType,
    known: &'a Known<'a>,
    file: SchemaFile<'a>,
    /// The texts of the prompt files that were found.
    texts: BTreeMap<String, String>,
}

impl Check<'_> {
    fn report(
        &mut self,
        pointer: &str,
        code: DiagnosticCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.file.report(pointer, code, message, help);
    }

    fn name(&mut self, path: &str) {
        let name = &self.kind.name;
        if path != path_of(name) {
            let message = format!("the type `{name}` is in {path}");
            let help = format!("name the file {}: types are found by the stem of their file", path_of(name));
            self.report("/name", DiagnosticCode::Layout, message, help);
        }
    }

    /// Reports a name that is not among `valid`; true if it is.
    fn expect<'v>(
        &mut self,
        pointer: &str,
        what: &str,
        name: &str,
        valid: impl IntoIterator<Item = &'v str> + Clone,
    ) -> bool {
        let exists = valid.clone().into_iter().any(|other| other == name);
        if !exists {
            let message = format!("there is no {what} `{name}`");
            let help = suggest(name, valid);
            self.report(pointer, DiagnosticCode::UnknownReference, message, help);
        }
        exists
    }

    /// Reads a prompt file that is sent as it is.
    fn prompt(&mut self, pointer: &str, path: &str) {
        let known = self.known;
        let Some(bytes) = known.file(path).filter(|_| path.starts_with("prompts/")) else {
            let help = match known.nearest_prompt(path) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "write the path as prompts/category/name.md, relative to the project folder".to_owned()
                }
            };
            return self.report(
                pointer,
                DiagnosticCode::PromptNotFound,
                format!("there is no file {path}"),
                help,
            );
        };
        let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").trim().to_owned();
        if text.contains("{{") || text.contains("{%") {
            let message = format!("{path} is sent as it is, and contains template syntax");
            let help = "remove the braces; only prompts of recipes are templates";
            self.report(pointer, DiagnosticCode::TemplateSyntax, message, help);
        }
        self.texts.insert(path.to_owned(), text);
    }

    /// Every prompt file that the type names, with its place.
    fn named_prompts(&self) -> Vec<(String, String)> {
        let pieces = &self.kind.pieces;
        let listed = [
            ("process_overview", &pieces.process_overview),
            ("transition", &pieces.transition),
            ("post_share", &pieces.post_share),
            ("avoid_recall", &pieces.avoid_recall),
            ("memory_request", &pieces.memory_request),
            ("memory_guidance", &pieces.memory_guidance),
        ];
        let pieces = listed.into_iter().map(|(key, path)| (format!("/pieces/{key}"), path));
        let transitions = self.kind.stages.iter().enumerate();
        let transitions =
            transitions.map(|(at, stage)| (format!("/stages/{at}/transition"), &stage.transition));
        let safety = [("/safety/text".to_owned(), &self.kind.safety.text)];
        let all = pieces.chain(transitions).chain(safety);
        all.filter_map(|(pointer, path)| Some((pointer, path.clone()?))).collect()
    }
}
