//! A project folder: its recipes, prompts, conversation types and registry, read safely from disk, or built into the program.
//!
//! Owns reading and writing those files. Problems inside them are the business of [`larder_core::recipe`].

mod folder;
mod root;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use larder_core::pack::Cap;
use larder_core::recipe::{
    self, CheckReport, Diagnostic, Mode, ProjectFiles, REGISTRY_PATH, Recipe, RecipeError, SlotSource,
};
use larder_core::route::{self, Preset};
use larder_text::tokens::Counter;

use crate::config::{SettingProblem, SlotCap};
use crate::prepare::{QUERY_SLOT, derived_slots};

include!(concat!(env!("OUT_DIR"), "/cookbook.rs"));

/// The default `token_budget.total` of recipes that declare none, unless the settings say otherwise (R0-30.1).
pub const DEFAULT_CONTEXT_BUDGET: usize = 12_000;

/// A project, read and checked.
#[derive(Debug)]
pub struct Project {
    root: Option<PathBuf>,
    files: ProjectFiles,
    report: CheckReport,
    routers: BTreeMap<String, Preset>,
    /// Caps that the settings give slots of built-in recipes.
    builtin_caps: Vec<SlotCap>,
}

/// A project that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The folder could not be read.
    #[error("cannot read {}: {source}; expected a project folder with recipes/ or conversations/", path.display())]
    Read {
        /// What could not be read.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The registry could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// What could not be written.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The registry is only written for a project without errors.
    #[error("{count} errors in the project; `larder check` lists them; {REGISTRY_PATH} was not written")]
    HasErrors {
        /// How many.
        count: usize,
    },
    /// Settings give caps to slots that do not exist or cannot have them; all of them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Slots(Vec<SettingProblem>),
    /// The built-in project has no folder to write to.
    #[error("the built-in project cannot be changed; `larder init` creates a project folder")]
    BuiltIn,
}

impl Project {
    /// Reads and checks the project in folder `dir`; one without recipes of its own has the built-in ones. Problems inside files do not cause a failure; they are in
    /// [`Self::check`]. `counter` measures whether prompts fit their allotments.
    ///
    /// # Errors
    /// If the folder itself cannot be read.
    pub fn open(dir: &Path, counter: &Counter) -> Result<Self, ProjectError> {
        Self::open_with(dir, counter, DEFAULT_CONTEXT_BUDGET)
    }

    /// As [`open`](Self::open), with a default total for budgets that declare none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(dir: &Path, counter: &Counter, total: usize) -> Result<Self, ProjectError> {
        let folder::FolderContents { mut files, problems } = folder::read(dir)?;
        if !files.keys().any(|path| path.starts_with("recipes/")) && !dir.join("recipes").is_dir() {
            for (path, bytes) in COOKBOOK {
                if path.starts_with("recipes/") || path.starts_with("prompts/") {
                    files.entry((*path).to_owned()).or_insert_with(|| bytes.to_vec());
                }
            }
        }
        let mut project = Self::checked(Some(dir.to_owned()), files, counter, Some(total));
        for problem in problems {
            project.report.add(problem);
        }
        Ok(project)
    }

    /// The recipes, prompts and conversation types that ship with Larder.
    pub fn builtin(counter: &Counter) -> Self {
        let files: ProjectFiles =
            COOKBOOK.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect();
        Self::checked(None, files, counter, None)
    }

    fn checked(root: Option<PathBuf>, files: ProjectFiles, counter: &Counter, total: Option<usize>) -> Self {
        let mut presets = route::check(&files);
        let own: BTreeSet<String> = presets.names.into_iter().collect();
        let mut names = own.clone();
        let shipped =
            COOKBOOK.iter().filter_map(|(path, _)| path.strip_prefix("routes/")?.strip_suffix(".yaml"));
        names.extend(shipped.map(str::to_owned));
        let mut report = recipe::check_with(&files, counter, total, &names);
        presets.diagnostics.into_iter().for_each(|diagnostic| report.add(diagnostic));
        // The presets that ship are known to every project, which may replace them.
        if root.is_some() {
            let shipped = COOKBOOK.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
            let shipped = route::check(&shipped.filter(|(path, _)| path.starts_with("routes/")).collect());
            presets.usable.extend(shipped.usable.into_iter().filter(|(name, _)| !own.contains(name)));
        }
        Self { root, files, report, routers: presets.usable, builtin_caps: Vec::new() }
    }

    /// Replaces the caps of slots, of its own recipes and of built-in ones. `counter` measures whether their prompts still
    /// fit.
    ///
    /// # Errors
    /// As [`Self::slot_problems`].
    pub fn with_slot_caps(mut self, caps: &[SlotCap], counter: &Counter) -> Result<Self, ProjectError> {
        let problems = self.slot_problems(caps, counter);
        if !problems.is_empty() {
            return Err(ProjectError::Slots(problems));
        }
        for cap in caps {
            if !self.set_cap(cap) {
                self.builtin_caps.push(cap.clone());
            }
        }
        Ok(self)
    }

    /// What ships, for names that this project does not define, with the caps that the settings give its slots.
    pub fn cookbook(&self, counter: &Counter) -> Self {
        let mut cookbook = Self::builtin(counter);
        for cap in &self.builtin_caps {
            cookbook.set_cap(cap);
        }
        cookbook
    }

    /// The problems of caps of slots: recipes and slots that do not exist, caps too small for the prompts or the floor of
    /// their slot, and caps beyond the budget of their recipe.
    pub fn slot_problems(&self, caps: &[SlotCap], counter: &Counter) -> Vec<SettingProblem> {
        let builtin = LazyCell::new(|| Self::builtin(counter));
        let problem = |cap: &SlotCap| match self.report.recipes.find(&cap.recipe) {
            Ok(recipe) if recipe.id() == cap.recipe => slot_problem(recipe, cap, counter),
            Err(error @ RecipeError::Invalid { .. }) => Some(cap.problem(error.to_string(), String::new())),
            _ => match builtin.report.recipes.iter().find(|recipe| recipe.id() == cap.recipe) {
                Some(recipe) => slot_problem(recipe, cap, counter),
                None => Some(self.no_recipe(cap, &builtin)),
            },
        };
        caps.iter().filter_map(problem).collect()
    }

    fn no_recipe(&self, cap: &SlotCap, builtin: &Self) -> SettingProblem {
        let ids = |project: &Self| project.report.recipes.iter().map(Recipe::id).collect::<Vec<_>>();
        let (own, builtin) = (ids(self), ids(builtin));
        let near = recipe::nearest(&cap.recipe, own.iter().chain(&builtin).map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => recipe::suggest(&cap.recipe, own.iter().map(String::as_str)),
        };
        cap.problem(format!("{}: there is no recipe {}", cap.key, cap.recipe), help)
    }

    /// Sets the cap of a slot; false if there is no such recipe.
    fn set_cap(&mut self, cap: &SlotCap) -> bool {
        let Some(recipe) = self.report.recipes.get_mut(&cap.recipe) else { return false };
        if recipe.slots.is_empty() {
            recipe.derived_caps.insert(cap.slot.clone(), cap.tokens);
        }
        for spec in recipe.slots.iter_mut().filter(|spec| *spec.slot.name == *cap.slot) {
            spec.slot.cap = Cap::Tokens(cap.tokens);
        }
        true
    }

    /// The folder, unless built in.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The files as read, by path inside the project.
    pub fn files(&self) -> &ProjectFiles {
        &self.files
    }

    /// Everything the check found, and every usable recipe.
    pub fn check(&self) -> &CheckReport {
        &self.report
    }

    /// The recipe with this name: `category/name`, or a name, file stem or alias alone; `.yaml` may follow (C72).
    ///
    /// # Errors
    /// If it does not exist ("Recipe not found: …", R0-18.2) or has errors.
    pub fn recipe(&self, name: &str) -> Result<&Recipe, RecipeError> {
        self.report.recipes.find(name)
    }

    /// The recipe of a phase for a mode (R0-17.4).
    ///
    /// # Errors
    /// As [`Self::recipe`].
    pub fn recipe_for_mode(&self, phase: &str, mode: Mode) -> Result<&Recipe, RecipeError> {
        self.report.recipes.for_mode(phase, mode)
    }

    /// The presets of the router without errors, by name: the project's, and those that ship with Larder and that it does
    /// not replace.
    pub fn routers(&self) -> &BTreeMap<String, Preset> {
        &self.routers
    }

    /// Diagnostics as plain text with excerpts of the files.
    pub fn render(&self, diagnostics: &[Diagnostic]) -> String {
        recipe::render_plain(diagnostics, |path| self.files.get(path).map(Vec::as_slice))
    }

    /// Updates `registry.yaml`; true if it changed. The file is replaced atomically.
    ///
    /// # Errors
    /// If the project has errors, is built in, or the file cannot be written.
    pub fn write_registry(&self) -> Result<bool, ProjectError> {
        let root = self.root.as_deref().ok_or(ProjectError::BuiltIn)?;
        let Some(registry) = &self.report.registry else {
            let count = self.report.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
            return Err(ProjectError::HasErrors { count });
        };
        if self.files.get(REGISTRY_PATH).is_some_and(|old| old == registry.as_bytes()) {
            return Ok(false);
        }
        let path = root.join(REGISTRY_PATH);
        folder::replace(&path, registry.as_bytes()).map_err(|source| ProjectError::Write { path, source })?;
        Ok(true)
    }
}

/// What is wrong with a cap for a slot of this recipe.
fn slot_problem(recipe: &Recipe, cap: &SlotCap, counter: &Counter) -> Option<SettingProblem> {
    let SlotCap { slot, tokens, key, .. } = cap;
    let id = recipe.id();
    let Some(spec) = recipe.slots.iter().find(|spec| *spec.slot.name == **slot) else {
        let derived = if recipe.slots.is_empty() { derived_slots(recipe) } else { Vec::new() };
        if derived.contains(slot) {
            return over_budget(recipe, cap);
        }
        let declared = recipe.slots.iter().map(|spec| &*spec.slot.name);
        let names: Vec<&str> = declared.chain(derived.iter().map(String::as_str)).collect();
        return Some(match uncapped(recipe, slot) {
            Some(why) => cap.problem(
                format!("{key}: slot {slot} of {id} has no cap: {why}"),
                format!("slots that take a cap: {}", names.join(", ")),
            ),
            None => {
                cap.problem(format!("{key}: recipe {id} has no slot {slot}"), recipe::suggest(slot, names))
            }
        });
    };
    let sizes = recipe.prompt_sizes(counter);
    let needed = sizes.iter().map(|size| match spec.source {
        SlotSource::Prompt => size.system,
        SlotSource::Variant => size.variant,
        _ => 0,
    });
    let needs = [(needed.max().unwrap_or(0), "its prompts take"), (spec.slot.floor, "its floor is")];
    let Some((needed, why)) = needs.into_iter().find(|(needed, _)| needed > tokens) else {
        return over_budget(recipe, cap);
    };
    let message = format!("{key}: slot {slot} of {id} may hold {tokens} tokens, but {why} {needed}");
    Some(cap.problem(message, format!("set it to {needed} or more")))
}

/// The problem of a cap that no prompt of this recipe can reach.
fn over_budget(recipe: &Recipe, cap: &SlotCap) -> Option<SettingProblem> {
    let SlotCap { slot, tokens, key, .. } = cap;
    let budget = recipe.budget;
    let most = budget.total.saturating_sub(budget.output.saturating_add(budget.response_reserve));
    (*tokens > most).then(|| {
        let id = recipe.id();
        let message = format!(
            "{key}: slot {slot} of {id} may hold {tokens} tokens, but token_budget leaves {most} to the whole prompt"
        );
        cap.problem(message, format!("set it to {most} or less"))
    })
}

/// Why a slot that layouts show has no cap; `None` if there is no such slot.
fn uncapped(recipe: &Recipe, slot: &str) -> Option<&'static str> {
    match slot {
        QUERY_SLOT | "§0" => Some("the query is always sent whole"),
        "system" if recipe.slots.is_empty() => Some("token_budget.prompt of the recipe limits its prompts"),
        _ => None,
    }
}
