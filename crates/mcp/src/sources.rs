//! Reads the inputs of a call: texts, pointers, paths within the roots, inputs of recipes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use larder_core::recipe::Mode;
use larder_engine::PrepareError;
use larder_engine::executor::RunError;
use larder_engine::history::{self, History};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_text::pointer::Pointer;
use larder_text::tokens::{Counter, Registry};

use super::{McpCaller, brief};

/// The most bytes of one file, as for a question over files.
const MAX_FILE: u64 = 256 << 20;
/// The problems of a history that an error lists.
const SHOWN_PROBLEMS: usize = 5;

/// Why a call failed and how to fix it. The caller reads it as the result.
#[derive(Debug)]
pub(super) struct CallError(pub String);

impl<E: std::error::Error> From<E> for CallError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A text with its name.
#[derive(Debug)]
pub(super) struct SourceText {
    pub name: String,
    pub text: Arc<str>,
}

impl McpCaller {
    /// The text of the call, or the text behind its source.
    pub(super) fn given(&self, text: Option<String>, source: Option<&str>) -> Result<SourceText, CallError> {
        match (text, source) {
            (Some(text), None) => Ok(SourceText { name: "text".to_owned(), text: text.into() }),
            (None, Some(source)) => self.read(source),
            _ => Err(CallError("give exactly one: either `text` or `source`".to_owned())),
        }
    }

    /// The text behind a pointer or in a file.
    pub(super) fn read(&self, source: &str) -> Result<SourceText, CallError> {
        let (name, bytes) = if let Ok(pointer) = source.trim().parse::<Pointer>() {
            let stored = self.engine.store.pointers().get(&pointer)?;
            (stored.display_text, self.engine.store.pointers().resolve(&pointer)?)
        } else {
            let path = self.path(source)?;
            let (found, source) = (std::fs::metadata(&path)?, brief(source));
            if found.is_dir() {
                return Err(CallError(format!("{source:?} is a folder; give a file in it")));
            }
            if found.len() > MAX_FILE {
                return Err(CallError(format!(
                    "{source:?} has {} bytes; the limit is {MAX_FILE}",
                    found.len()
                )));
            }
            (self.roots.shown(&path.to_string_lossy()), std::fs::read(&path)?)
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            CallError(format!(
                "{:?} is not UTF-8 text: byte {} is invalid",
                brief(source),
                error.utf8_error().valid_up_to()
            ))
        })?;
        Ok(SourceText { name, text: text.into() })
    }

    fn path(&self, source: &str) -> Result<PathBuf, CallError> {
        Ok(self.roots.find(source, self.engine.store.store().home())?)
    }

    /// Resolves sources to open paths and pointers. Without any, everything that is open.
    pub(super) fn sources(&self, sources: &[String]) -> Result<Vec<PathBuf>, CallError> {
        if sources.is_empty() {
            return Ok(self.roots.all()?);
        }
        let one = |source: &String| -> Result<PathBuf, CallError> {
            match source.trim().parse::<Pointer>() {
                Ok(pointer) => {
                    self.engine.store.pointers().get(&pointer)?;
                    Ok(PathBuf::from(pointer.to_string()))
                }
                Err(_) => self.path(source),
            }
        };
        sources.iter().map(one).collect()
    }

    /// The counter for a name in the model table, a model id, or a tokenizer.
    pub(super) fn counter(&self, model: Option<&str>) -> Result<Counter, CallError> {
        let Some(name) = model else { return Ok(Counter::cl100k()) };
        if let Some(spec) = self.engine.models.table().model(name) {
            return Ok(self.engine.counter(spec));
        }
        let registry = Registry::builtin();
        let known = registry.for_model(name);
        if known.name() == Counter::bytes().name() { Ok(registry.by_name(name)?) } else { Ok(known) }
    }
}

/// Inputs of a recipe by name.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    pub query: Option<String>,
    /// Pairs of an input and its document: a source, or a text that contains a line break.
    pub documents: Vec<(String, String)>,
    pub values: BTreeMap<String, String>,
    pub variant: Option<String>,
    /// The messages so far: their source, or a JSON array.
    pub history: Option<String>,
    pub mode: Option<Mode>,
}

impl Inputs {
    /// Reads the documents.
    pub(super) fn read(self, caller: &McpCaller) -> Result<RunInput, CallError> {
        let document = |(input, source): (String, String)| -> Result<InputDocument, CallError> {
            // Neither paths nor pointers contain line breaks.
            let SourceText { name, text } = if source.contains('\n') {
                SourceText { name: input.clone(), text: source.into() }
            } else {
                caller.read(&source)?
            };
            Ok(InputDocument::whole(input, name, text))
        };
        let history = match self.history {
            Some(source) => history_of(&source, caller)?,
            None => History::default(),
        };
        Ok(RunInput {
            history: history.messages,
            history_originals: history.originals,
            documents: self.documents.into_iter().map(document).collect::<Result<_, _>>()?,
            query: self.query,
            values: self.values.into_iter().map(|(name, value)| (name, value.into())).collect(),
            variant: self.variant,
            mode: self.mode,
            ..RunInput::default()
        })
    }
}

/// Why a prompt cannot be made, and what to change about the call: the error itself speaks of the command line.
pub(super) fn unfit_inputs(error: &RunError) -> String {
    match error {
        RunError::Prepare(PrepareError::MissingDocument { recipe, name }) => {
            format!("recipe {recipe} needs a document named `{name}`; give one of that name")
        }
        RunError::Prepare(PrepareError::EmptyDocument { recipe, name, file }) => {
            format!("recipe {recipe} requires the document `{name}`, but {file} is empty; give one with text")
        }
        RunError::Prepare(PrepareError::UnknownDocument { recipe, name, takes, .. }) => {
            format!("recipe {recipe} accepts no document called {name}; it accepts {takes}")
        }
        RunError::Prepare(PrepareError::NoQuery { recipe }) => {
            format!("recipe {recipe} needs the user's query; give it as `query`")
        }
        error => error.to_string(),
    }
}

/// The messages behind a source, or in the array itself.
fn history_of(source: &str, caller: &McpCaller) -> Result<History, CallError> {
    let text = match source.trim_start().starts_with(['[', '{']) {
        true => source.into(),
        false => caller.read(source)?.text,
    };
    history::read(&text, caller.engine.store.key()).map_err(|problems| {
        let (shown, more) = problems.split_at(problems.len().min(SHOWN_PROBLEMS));
        let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
        CallError(format!("history: {}{more}", brief(&shown.join("; "))))
    })
}
