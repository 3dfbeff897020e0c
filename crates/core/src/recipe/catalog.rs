//! Looks up checked recipes by any of their names, and by phase and mode.

use std::collections::BTreeMap;

use super::diagnostic::{nearest, suggest};
use super::file::RecipeFile;
use super::model::Recipe;
use larder_text::Mode;

/// Every usable recipe of a project, and the names of unusable ones.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    recipes: BTreeMap<String, Recipe>,
    broken: Vec<RecipeFile>,
    /// Paths of recipe files that could not be parsed as recipes at all.
    unreadable: Vec<(String, String)>,
}

/// A recipe that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// The recipe does not exist.
    #[error("Recipe not found: {name}")]
    NotFound {
        /// The requested name.
        name: String,
        /// The nearest names.
        help: String,
    },
    /// The recipe exists but has errors.
    #[error("Recipe {name} has errors in {path} or its prompts; `larder check` lists them")]
    Invalid {
        /// The requested name.
        name: String,
        /// The path inside the project.
        path: String,
    },
}

impl RecipeError {
    /// The message of the `config_error` intervention.
    pub fn intervention(&self) -> String {
        match self {
            Self::NotFound { name, .. } => format!("Missing recipe: {name}"),
            Self::Invalid { .. } => self.to_string(),
        }
    }

    /// How to fix the problem; may be empty.
    pub fn help(&self) -> &str {
        match self {
            Self::NotFound { help, .. } => help,
            Self::Invalid { .. } => "",
        }
    }
}

impl Catalog {
    pub(super) fn insert(&mut self, recipe: Recipe) {
        self.recipes.insert(recipe.id(), recipe);
    }

    pub(super) fn insert_broken(&mut self, file: RecipeFile) {
        self.broken.push(file);
    }

    pub(super) fn insert_unreadable(&mut self, category: &str, stem: &str) {
        self.unreadable.push((category.to_owned(), stem.to_owned()));
    }

    /// Every usable recipe, by `category/name`.
    pub fn iter(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.values()
    }

    /// The recipe with this full name, to be changed.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut Recipe> {
        self.recipes.get_mut(id)
    }

    /// The number of usable recipes.
    pub fn len(&self) -> usize {
        self.recipes.len()
    }

    /// Whether no recipe is usable.
    pub fn is_empty(&self) -> bool {
        self.recipes.is_empty()
    }

    /// Finds a recipe by `category/name`, or by name alone; the file stem and aliases also work, and `.yaml` may
    /// follow.
    ///
    /// # Errors
    /// If it does not exist or has errors.
    pub fn find(&self, name: &str) -> Result<&Recipe, RecipeError> {
        let plain = name.strip_prefix("recipes/").unwrap_or(name);
        let plain = plain.strip_suffix(".yaml").unwrap_or(plain);
        let (category, own) =
            plain.split_once('/').map_or((None, plain), |(category, own)| (Some(category), own));
        let in_category = |other: &str| category.is_none_or(|category| category == other);
        let answers =
            |recipe: &&Recipe| recipe.name == own || recipe.aliases.iter().any(|alias| alias == own);
        if let Some(recipe) = self.iter().filter(|recipe| in_category(&recipe.category)).find(answers) {
            return Ok(recipe);
        }
        let broken = self.broken.iter().filter(|file| in_category(&file.category) && file.answers_to(own));
        let unreadable = self.unreadable.iter().find(|(category, stem)| in_category(category) && stem == own);
        let path = broken.map(|file| file.path.clone()).next();
        let path = path.or(unreadable.map(|(category, stem)| format!("recipes/{category}/{stem}.yaml")));
        match path {
            Some(path) => Err(RecipeError::Invalid { name: name.to_owned(), path }),
            None => Err(RecipeError::NotFound { name: name.to_owned(), help: self.nearest_names(plain) }),
        }
    }

    /// Finds the recipe of a phase: `{phase}_code` in mode code, `{phase}_chat` in any other.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn for_mode(&self, phase: &str, mode: Mode) -> Result<&Recipe, RecipeError> {
        let suffix = if mode == Mode::Code { "code" } else { "chat" };
        self.find(&format!("{phase}_{suffix}"))
    }

    /// The name that is nearly this one.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.names_like(name))
    }

    fn nearest_names(&self, name: &str) -> String {
        suggest(name, self.names_like(name))
    }

    /// All names, with their category if `name` has one.
    fn names_like(&self, name: &str) -> Vec<&str> {
        let whole = name.contains('/');
        self.recipes.iter().map(|(id, recipe)| if whole { id.as_str() } else { &recipe.name }).collect()
    }
}
