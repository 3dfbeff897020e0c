//! Putting together what a command runs on: settings, project, models, store.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use larder::config::Config;
use larder::engine::Engine;
use larder::project::Project;
use larder_core::tokens::{Counter, Registry};
use larder_models::chat::{ChatModel, EmbeddingModel, ModelError};
use larder_models::connect::{EmbeddedModels, Models};
use larder_models::embedded::{self, Embedded};
use larder_models::table::{ModelSpec, Provider};
use larder_models::weights::{Source, Weights};
use larder_store::{Store, StoreOptions, UserStore};

use crate::args::Global;
use crate::error::CliError;
use crate::{files, output, progress};

/// What was typed, resolved against files and environment.
pub struct Context {
    pub global: Global,
    pub config: Config,
}

impl Context {
    pub fn new(global: Global) -> Result<Self, CliError> {
        let dir = project_dir(&global);
        let config = Config::load(dir.as_deref(), global.home.as_deref(), &env)?;
        Ok(Self { global, config })
    }

    pub fn store(&self) -> Result<UserStore, CliError> {
        let options =
            StoreOptions { compaction_ttl: self.config.compaction_ttl(), ..StoreOptions::default() };
        Ok(Store::open(self.config.home(), options)?.user(&self.global.user)?)
    }

    /// The project in its folder, or the built-in one.
    pub fn project(&self) -> Result<Project, CliError> {
        let counter = Counter::cl100k();
        match project_dir(&self.global).filter(|dir| dir.join("recipes").is_dir()) {
            Some(dir) => Ok(Project::open(&dir, &counter)?),
            None => Ok(Project::builtin(&counter)),
        }
    }

    pub fn models(&self) -> Models {
        let folder = project_dir(&self.global).unwrap_or_else(|| PathBuf::from("."));
        Models::new(self.config.models().clone(), folder, &env)
            .with_embedded(Arc::new(InProcess(self.weights())))
    }

    pub fn engine(&self) -> Result<Engine, CliError> {
        let project = self.project()?;
        let weights = self.weights();
        let load =
            move |name: &str| (name == embedded::TOKENIZER).then(|| embedded_counter(&weights).ok())?;
        Ok(Engine::new(project, self.models(), self.store()?, self.config.policy(), Box::new(load)))
    }

    /// Offers to fetch the weights of the embedded model when the table uses it and they are missing.
    pub async fn ensure_weights(&self, yes: bool) -> Result<(), CliError> {
        let used = self.config.models().models().any(|(_, spec)| spec.provider == Provider::Embedded);
        if !used || self.weights().locate(embedded::MODEL).is_some() {
            return Ok(());
        }
        let agreed = yes || (output::is_interactive() && confirm()?);
        if !agreed {
            return Err(CliError::Fixable(
                "the embedded model has no weights yet (98 MB); fetch them with `larder models pull`, or give --yes"
                    .to_owned(),
            ));
        }
        self.pull(embedded::MODEL, &Source::Any).await
    }

    /// Fetches weights with a progress bar.
    pub async fn pull(&self, name: &str, source: &Source) -> Result<(), CliError> {
        output::say(&format!("fetching the weights of {name}"));
        let mut bar = progress::transfer(name);
        let folder = self.weights().pull(name, source, &env, &mut bar).await?;
        output::say(&format!("{name} is in {}", folder.display()));
        Ok(())
    }

    fn weights(&self) -> Weights {
        Weights::shared(Some(self.config.home()), &env)
    }

    /// The counter that `--tokenizer` names.
    pub fn counter(&self, name: Option<&str>) -> Result<Counter, CliError> {
        let Some(name) = name else { return Ok(Counter::cl100k()) };
        if name == embedded::TOKENIZER || name == embedded::MODEL {
            return embedded_counter(&self.weights());
        }
        let path = Path::new(name);
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("json" | "gguf")) || path.is_file() {
            return file_counter(path, extension == Some("gguf"));
        }
        let registry = Registry::builtin();
        registry.by_name(name).or_else(|error| {
            let model = registry.for_model(name);
            if model.name() == Counter::bytes().name() { Err(error.into()) } else { Ok(model) }
        })
    }
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn file_counter(path: &Path, gguf: bool) -> Result<Counter, CliError> {
    let stem = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !gguf {
        return Ok(Counter::from_tokenizer_json(&files::read(path)?, &stem)?);
    }
    let file = File::open(path).map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    Ok(Counter::from_gguf(BufReader::new(file), &stem)?)
}

/// Counts with the vocabulary inside the embedded model's own weights.
fn embedded_counter(weights: &Weights) -> Result<Counter, CliError> {
    let folder = weights.locate(embedded::MODEL).ok_or_else(|| {
        CliError::Fixable(
            "the embedded model has no weights yet; fetch them with `larder models pull`".to_owned(),
        )
    })?;
    let path = folder.join(embedded::WEIGHTS_FILE);
    let file = File::open(&path).map_err(|source| CliError::Read { path: path.clone(), source })?;
    Ok(Counter::from_gguf(BufReader::new(file), embedded::TOKENIZER)?)
}

/// Opens the models that run in this process.
struct InProcess(Weights);

impl EmbeddedModels for InProcess {
    fn chat(&self, spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
        let folder = self.0.locate(embedded::MODEL).ok_or_else(|| missing(spec))?;
        Ok(Arc::new(Embedded::open(&folder)?))
    }

    fn embedding(&self, spec: &ModelSpec) -> Result<Arc<dyn EmbeddingModel>, ModelError> {
        Err(ModelError::NotConfigured {
            provider: "embedded".to_owned(),
            detail: format!("{} makes no vectors; bind an embedding model of another provider", spec.id),
        })
    }
}

fn missing(spec: &ModelSpec) -> ModelError {
    ModelError::NotConfigured {
        provider: "embedded".to_owned(),
        detail: format!("{} has no weights yet; `larder models pull` fetches them", spec.id),
    }
}

fn confirm() -> Result<bool, CliError> {
    output::say("The embedded model has no weights yet. Fetch them now (98 MB)? [Y/n]");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(CliError::Print)?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}

/// The project's folder: the one named, or this one when it holds recipes or settings.
pub fn project_dir(global: &Global) -> Option<PathBuf> {
    if let Some(dir) = &global.project {
        return Some(dir.clone());
    }
    let here = PathBuf::from(".");
    (here.join("recipes").is_dir() || here.join("larder.toml").is_file()).then_some(here)
}
