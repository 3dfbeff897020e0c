//! The conversation types that can be used: those of the project, and those that ship for names that the project does not
//! define.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use larder_core::recipe::{Diagnostic, suggest};
use larder_engine::Engine;
use larder_engine::project::Project;
use larder_text::tokens::Counter;

use crate::check::{self, Known};
use crate::kind::ConversationType;

/// A checked type, with the texts of the prompt files that it names.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedType {
    /// The type as written.
    pub kind: ConversationType,
    /// Path → text of `pieces`, transitions and the safety text.
    pub(crate) texts: BTreeMap<String, String>,
}

impl LoadedType {
    /// Where the file is inside its project.
    pub fn path(&self) -> String {
        check::path_of(&self.kind.name)
    }

    /// The text of a prompt file that the type names.
    pub fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }
}

/// A type that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// It does not exist.
    #[error("there is no conversation type {name:?}; {help}")]
    NotFound {
        /// The name.
        name: String,
        /// The nearest names.
        help: String,
    },
    /// It has errors.
    #[error("the conversation type {name} has errors; `larder check` lists them")]
    Invalid {
        /// The name.
        name: String,
    },
}

/// Every usable type, and everything that is wrong with the others.
#[derive(Debug, Clone, Default)]
pub struct TypeCatalog {
    types: BTreeMap<String, Arc<LoadedType>>,
    broken: BTreeSet<String>,
    diagnostics: Vec<Diagnostic>,
}

impl TypeCatalog {
    /// Reads and checks the types of an engine's project, and those that ship.
    pub fn of(engine: &Engine) -> Self {
        Self::load(&engine.project, engine.cookbook(), &Counter::cl100k())
    }

    /// Reads and checks the types of `project`, and those of `cookbook` for the other names. `counter` measures whether
    /// prompts fit small windows. Problems of the cookbook are reported only if it is the project.
    pub fn load(project: &Project, cookbook: &Project, counter: &Counter) -> Self {
        let mut catalog = Self::default();
        let known = Known { project, cookbook, counter };
        for path in project.files().keys().filter(|path| check::is_type(path)) {
            catalog.add(path, project, &known);
        }
        if project.root().is_some() {
            let of_cookbook = Known { project: cookbook, ..known };
            for path in cookbook.files().keys().filter(|path| check::is_type(path)) {
                let name = check::stem(path);
                if !catalog.types.contains_key(name) && !catalog.broken.contains(name) {
                    catalog.add(path, cookbook, &of_cookbook);
                }
            }
            catalog.diagnostics.retain(|found| project.files().contains_key(&found.file));
        }
        catalog.diagnostics.sort();
        catalog
    }

    fn add(&mut self, path: &str, project: &Project, known: &Known<'_>) {
        let bytes = project.files().get(path).map(Vec::as_slice).unwrap_or_default();
        let (loaded, diagnostics) = check::file(path, bytes, known);
        self.diagnostics.extend(diagnostics);
        match loaded {
            Some(loaded) => {
                self.types.insert(loaded.kind.name.clone(), Arc::new(loaded));
            }
            None => {
                self.broken.insert(check::stem(path).to_owned());
            }
        }
    }

    /// The type with this name.
    ///
    /// # Errors
    /// If it does not exist or has errors.
    pub fn find(&self, name: &str) -> Result<&Arc<LoadedType>, TypeError> {
        match self.types.get(name) {
            Some(found) => Ok(found),
            None if self.broken.contains(name) => Err(TypeError::Invalid { name: name.to_owned() }),
            None => {
                let help = suggest(name, self.types.keys().map(String::as_str));
                Err(TypeError::NotFound { name: name.to_owned(), help })
            }
        }
    }

    /// Every usable type, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<LoadedType>> {
        self.types.values()
    }

    /// Everything that is wrong with files of the project, by file and place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}
