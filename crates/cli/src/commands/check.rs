//! `larder check`: reports every problem of every recipe, prompt, conversation type and setting at once.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use larder_conversation::catalog::TypeCatalog;
use larder_core::recipe::{Diagnostic, DiagnosticCode};
use larder_engine::config::{
    Config, ConfigError, FILE, InspectedConfig, LearnedValue, SettingProblem, Standing, is_window,
};
use larder_engine::project::Project;
use larder_models::connect::Models;
use larder_models::table::ModelTable;
use larder_text::tokens::Counter;
use larder_text::words::counted;
use serde_json::json;

use crate::args::{Format, Global};
use crate::context::{CommandContext, env, project_dir};
use crate::error::CliError;
use crate::output;
use crate::recipe_tools::KnownTools;

/// Folders below `apps/recipes` that are looked into: `recipes/category/name.yaml`.
const MAX_DEPTH: usize = 2;

pub fn run(global: &Global, dir: Option<PathBuf>, write_registry: bool) -> Result<ExitCode, CliError> {
    let mut global = global.clone();
    if dir.is_some() {
        global.project = dir;
    }
    let config = budgeted(&global)?;
    let known = KnownTools::new(&config);
    // A folder with settings only is the project of a gateway: it runs the built-in recipes.
    let has_own = |dir: &PathBuf| Project::has_own(dir) || !dir.join("larder.toml").is_file();
    let project = match global.project.as_ref().filter(|dir| has_own(dir)) {
        Some(dir) => Project::open_with(dir, &Counter::cl100k(), config.default_context_budget())?,
        None => CommandContext::of(global.clone(), config).project_as_written()?,
    };
    // Without own recipes the built-in ones are checked; their warnings are of no use to the user.
    let own = project.root().is_some();
    let counter = Counter::cl100k();
    let cookbook = project.root().map(|_| Project::builtin(&counter));
    let types = TypeCatalog::load(&project, cookbook.as_ref().unwrap_or(&project), &counter);
    let found = project.check().diagnostics.iter().chain(types.diagnostics()).cloned();
    let mut diagnostics: Vec<_> = found.filter(|one| own || one.is_error()).collect();
    diagnostics.extend(unknown_tools(&project, &known));
    diagnostics.sort();
    diagnostics.extend(misplaced(global.project.as_deref().unwrap_or(Path::new("."))));
    let settings = settings(&global, &project)?;
    let failed = !settings.is_empty() || diagnostics.iter().any(|diagnostic| diagnostic.is_error());
    let notes =
        CommandContext::new(global.clone()).map_or_else(|_| Ok(Vec::new()), |context| notes(&context));
    if global.format == Format::Json {
        let notes = notes.iter().flatten().map(|note| json!({"severity": "note", "message": note}));
        let settings = settings.iter().map(|one| json!(one));
        let all: Vec<_> = diagnostics.iter().map(|one| json!(one)).chain(settings).chain(notes).collect();
        output::json(&all)?;
    } else {
        if diagnostics.is_empty() && settings.is_empty() {
            let types = types.iter().filter(|one| project.files().contains_key(&one.path())).count();
            output::line(&without_problems(&global, own, project.check().recipes.len(), types))?;
        } else {
            output::line(&project.render(&diagnostics))?;
            for problem in &settings {
                output::line(&problem.to_string())?;
            }
        }
        for note in notes.iter().flatten() {
            output::say(&format!("note: {note}"));
        }
    }
    // Problems are reported even if the store cannot be read.
    notes?;
    if write_registry && project.write_registry()? {
        output::say("registry.yaml is up to date now");
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The tools that recipes name and that neither Larder nor an MCP server of the settings has.
fn unknown_tools(project: &Project, known: &KnownTools) -> Vec<Diagnostic> {
    let named = project.check().named_tools.iter();
    named
        .filter_map(|(tool, problem)| {
            let help = known.unknown(tool)?;
            Some(Diagnostic { help, ..problem.clone() })
        })
        .collect()
}

/// Recipes and prompts below `apps/`, where nothing reads them (R1-15.2).
fn misplaced(project: &Path) -> Vec<Diagnostic> {
    let found = |(inside, ending): &(&str, &str)| holds(&project.join(inside), ending, MAX_DEPTH);
    let places = [("apps/recipes", ".yaml"), ("apps/prompts", ".md")].into_iter().filter(found);
    let diagnostic = |(inside, _): (&str, &str)| {
        let message = format!("{inside} is not read: recipes/ and prompts/ at the project's root are");
        let top = inside.trim_start_matches("apps/");
        let help = format!("move its categories to {top}/, so that a file is {top}/category/name");
        Diagnostic::whole_file(DiagnosticCode::Layout, inside, message, help)
    };
    places.map(diagnostic).collect()
}

/// Whether a folder contains a file whose name ends so.
fn holds(folder: &Path, ending: &str, depth: usize) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => depth > 0 && holds(&entry.path(), ending, depth - 1),
        Ok(kind) => kind.is_file() && entry.file_name().to_string_lossy().ends_with(ending),
        Err(_) => false,
    })
}

/// What is no problem, but may not be what was meant.
fn notes(context: &CommandContext) -> Result<Vec<String>, CliError> {
    let mut notes = notes_on_unknown(context.config.models());
    let folder = project_dir(&context.global).unwrap_or_else(|| ".".into());
    let models = Models::new(context.config.models().clone(), folder, &env);
    notes.extend(models.unset_variables().iter().map(ToString::to_string));
    notes.extend(context.config.context_policy().idle_caps().map(|name| {
        format!(
            "policy.tool_caps.{name} has no effect: results of this tool stay whole, see policy.opt_out_tools"
        )
    }));
    notes.extend(notes_on_learning(&context.learned()?.1));
    Ok(notes)
}

/// Names the models of the table whose ids the catalogue lacks. On a server of the user's own, any id may be right, so
/// only those are named that resemble a known one.
fn notes_on_unknown(table: &ModelTable) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, spec) in table.models() {
        if spec.provider.info().server.is_none() || table.catalogue().find(&spec.id).is_some() {
            continue;
        }
        let near = table.catalogue().nearest(&spec.id);
        if near.is_some() || spec.base_url.is_none() {
            let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            notes.push(format!("nobody knows the id {:?} of [models.{name}]{near}", spec.id));
        }
    }
    notes
}

/// Names the models that nobody knows, whose windows were learned, and the learned values that cannot be used.
fn notes_on_learning(learned: &[LearnedValue]) -> impl Iterator<Item = String> {
    learned.iter().filter_map(|LearnedValue { key, value, standing }| match standing {
        Standing::Used if is_window(key) => Some(format!(
            "{key} = {value} was learned from a provider's refusal, since nobody knows this model; add it under \
             [models.catalogue] in larder.toml to set its window and prices"
        )),
        Standing::Unusable { reason } => {
            Some(format!("the learned value {key} = {value} is not used: {reason}; see `larder revisions`"))
        }
        _ => None,
    })
}

/// The report when there are no problems.
fn without_problems(global: &Global, own: bool, recipes: usize, types: usize) -> String {
    let (recipes, types) = (recipes as u64, types as u64);
    match (own, project_dir(global)) {
        (true, _) if types > 0 => {
            let (recipes, types) = (counted(recipes, "recipe"), counted(types, "conversation type"));
            format!("{recipes} and {types}, no problems")
        }
        (true, _) => format!("{}, no problems", counted(recipes, "recipe")),
        (false, Some(dir)) => {
            format!("{} and the {recipes} built-in recipes: no problems", dir.join(FILE).display())
        }
        (false, None) => format!(
            "there is no project here (no recipes folder, no {FILE}); the {recipes} built-in recipes were checked: no problems"
        ),
    }
}

/// The settings that affect how recipes are read, including the environment. Problems of the file are reported with the
/// others; what they leave of it is used.
fn budgeted(global: &Global) -> Result<Config, CliError> {
    match Config::inspect(project_dir(global).as_deref(), global.home.as_deref(), &env) {
        Err(ConfigError::Problems(_)) => Ok(Config::builtin()),
        inspected => Ok(inspected?.config),
    }
}

/// Problems of the settings file, layers of the project's recipes without a model, unusable providers, and caps of slots
/// that do not exist.
fn settings(global: &Global, project: &Project) -> Result<Vec<SettingProblem>, CliError> {
    let dir = project_dir(global);
    let inspected = match Config::inspect(dir.as_deref(), global.home.as_deref(), &|_| None) {
        Err(ConfigError::Problems(problems)) => return Ok(problems),
        inspected => inspected?,
    };
    let InspectedConfig { config, mut problems, has_models } = inspected;
    if has_models {
        let own = project.root().map(|_| config.unbound(project.check().recipes.iter()));
        problems.extend(own.into_iter().flatten());
        let folder = dir.unwrap_or_else(|| ".".into());
        let models = Models::new(config.models().clone(), folder.clone(), &|_| None);
        problems.extend(config.unusable(&models));
        problems.extend(config.missing_tokenizers(&folder));
    }
    problems.extend(project.slot_problems(&config.slot_caps(), &Counter::cl100k()));
    Ok(problems)
}
