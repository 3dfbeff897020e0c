//! The settings, project, models and store that a command runs on.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use larder_agent::turn::TurnHost;
use larder_engine::config::{Config, ConfigError, FILE, LearnedValue};
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_models::connect::Models;
use larder_models::table::{Capability, ModelSpec, Provider};
use larder_models::weights::{self, WeightSource, Weights};
use larder_store::{DocumentPlace, Documents, Store, StoreOptions, UserStore};
use larder_text::tokens::{Counter, Registry, TokenError};
use larder_text::{Layer, Mode};
use tempfile::TempDir;

use crate::args::Global;
use crate::error::CliError;
use crate::{files, output, progress};

/// The global options, and the settings after file, environment and flags.
pub struct CommandContext {
    pub global: Global,
    pub config: Config,
    stand_in: OnceLock<TempDir>,
    /// What was noted so far.
    noted: Mutex<BTreeSet<String>>,
}

impl CommandContext {
    pub fn new(global: Global) -> Result<Self, CliError> {
        let dir = project_dir(&global);
        if let Some(dir) = dir.as_deref().filter(|dir| !dir.is_dir()) {
            return Err(CliError::Fixable(format!(
                "there is no folder {}; give the project folder with --project, or create one with `larder init`",
                dir.display()
            )));
        }
        // clap reads LARDER_HOME as well; the settings must still report it as the origin.
        let typed = global
            .home
            .as_deref()
            .filter(|home| std::env::var_os("LARDER_HOME").as_deref() != Some(home.as_os_str()));
        let config = Config::load(dir.as_deref(), typed, &env)?;
        Ok(Self::of(global, config))
    }

    /// A context with settings that are already read.
    pub const fn of(global: Global, config: Config) -> Self {
        Self { global, config, stand_in: OnceLock::new(), noted: Mutex::new(BTreeSet::new()) }
    }

    /// A context with settings from the command line.
    pub fn with_flags(global: Global, flags: &[(&'static str, String)]) -> Result<Self, CliError> {
        let mut context = Self::new(global)?;
        for (key, value) in flags {
            context.config = context.config.with_flag(key, value)?;
        }
        Ok(context)
    }

    /// The store, of all users.
    pub fn whole_store(&self) -> Result<Store, CliError> {
        let options =
            StoreOptions { compaction_ttl: self.config.compaction_ttl(), ..StoreOptions::default() };
        Ok(Store::open(self.config.home(), options)?)
    }

    /// The store of a command that only reads: where there is nothing, an empty one, and where nothing can be written, a
    /// copy of its index. Either is gone when the command ends.
    pub fn store_to_read(&self) -> Result<Store, CliError> {
        match self.instead_of_home()? {
            Some(folder) => Ok(Store::open(folder, StoreOptions::default())?),
            None => self.whole_store(),
        }
    }

    /// The store of a command that keeps the originals behind the pointers that it prints, but sends nothing: it is written
    /// where that is possible.
    pub fn store_to_explain(&self) -> Result<Store, CliError> {
        if self.require_writable().is_ok() { self.whole_store() } else { self.store_to_read() }
    }

    /// The documents of a command that only reads.
    pub fn documents_to_read(&self) -> Result<Documents, CliError> {
        let store = self.store_to_read()?;
        match self.instead_of_home()? {
            Some(folder) if self.has_no_home() || self.has_no_documents() => {
                Ok(Documents::open(&store, &DocumentPlace::Folder(folder.join("documents")))?)
            }
            // What a crash interrupted there is left as it is.
            Some(_) => Ok(Documents::open(&store, &self.config.document_place())?),
            None => match TurnHost::documents(&store, &self.config) {
                // As there, with a full disk.
                Err(error) if error.is_unwritable() => {
                    Ok(Documents::open(&store, &self.config.document_place())?)
                }
                documents => Ok(documents?),
            },
        }
    }

    /// Whether no document was ever stored: a gateway alone stores none.
    fn has_no_documents(&self) -> bool {
        let usual = self.config.home().join("documents");
        matches!(self.config.document_place(), DocumentPlace::Folder(folder) if folder == usual)
            && usual.try_exists().is_ok_and(|exists| !exists)
    }

    fn has_no_home(&self) -> bool {
        !std::fs::read_dir(self.config.home()).is_ok_and(|mut home| home.next().is_some())
    }

    /// A folder to read in place of a home that does not exist yet, or that cannot be written.
    fn instead_of_home(&self) -> Result<Option<&Path>, CliError> {
        let (home, is_missing) = (self.config.home(), self.has_no_home());
        if !is_missing && larder_store::unwritable(home).is_none() {
            return Ok(None);
        }
        if let Some(folder) = self.stand_in.get() {
            return Ok(Some(folder.path()));
        }
        let write = |source| CliError::Write { path: std::env::temp_dir(), source };
        let made = tempfile::tempdir().map_err(write)?;
        if !is_missing {
            larder_store::copy_to_read(home, made.path())?;
        }
        Ok(Some(self.stand_in.get_or_init(|| made).path()))
    }

    /// Fails if the home cannot be written, for commands that change what they read.
    pub fn require_writable(&self) -> Result<(), CliError> {
        let home = self.config.home();
        match larder_store::unwritable(home).filter(|_| !self.has_no_home()) {
            None => Ok(()),
            Some(path) => Err(CliError::Fixable(format!(
                "{} is read-only; make it writable, or name another folder (a home with --home or LARDER_HOME)",
                path.display()
            ))),
        }
    }

    /// Says so where there is no store: a folder that was written wrongly must not look like one in which all is well.
    pub fn note_missing_store(&self) {
        let home = self.config.home();
        if !Store::exists(home) {
            crate::output::say(&format!(
                "note: there is no store in {}; --home names another folder",
                home.display()
            ));
        }
    }

    /// What a command that only reads knows of its user.
    pub fn user_to_read(&self) -> Result<UserStore, CliError> {
        Ok(self.store_to_read()?.user(&self.global.user)?)
    }

    /// The settings with what the newest revision has learned, and its values. Creates no store.
    pub fn learned(&self) -> Result<(Config, Vec<LearnedValue>), CliError> {
        if !Store::exists(self.config.home()) {
            return Ok((self.config.clone(), Vec::new()));
        }
        let store = self.store_to_read()?;
        let newest = store.revisions().newest()?;
        Ok(self.config.revised(newest, &store.revisions().settings(newest)?))
    }

    pub fn store(&self) -> Result<UserStore, CliError> {
        Ok(self.whole_store()?.user(&self.global.user)?.begun()?)
    }

    /// The project in its folder, or the built-in one.
    pub fn project(&self) -> Result<Project, CliError> {
        Ok(self.project_as_written()?.with_slot_caps(&self.config.slot_caps(), &Counter::cl100k())?)
    }

    /// The same without the caps of slots that the settings give.
    pub fn project_as_written(&self) -> Result<Project, CliError> {
        let counter = Counter::cl100k();
        Ok(match project_dir(&self.global).filter(|dir| Project::has_own(dir)) {
            Some(dir) => Project::open_with(&dir, &counter, self.config.default_context_budget())?,
            None => Project::builtin(&counter),
        })
    }

    pub fn models(&self) -> Models {
        let models = Models::new(self.config.models().clone(), self.folder(), &env)
            .with_upstreams(&self.config.gateway().upstreams(), &env);
        #[cfg(feature = "local")]
        let models = models.with_embedded(std::sync::Arc::new(larder_local::LocalModels(self.weights())));
        models
    }

    /// The folder of `larder.toml`; its paths are relative to it.
    pub fn folder(&self) -> PathBuf {
        project_dir(&self.global).unwrap_or_else(|| PathBuf::from("."))
    }

    pub fn engine(&self) -> Result<Engine, CliError> {
        self.engine_with(self.config.policy())
    }

    /// The engine of a command that only reads.
    pub fn engine_to_read(&self) -> Result<Engine, CliError> {
        self.require_tokenizers()?;
        self.engine_over(self.project()?, self.user_to_read()?, self.config.policy())
    }

    /// The engine with another policy than the configured one.
    pub fn engine_with(&self, policy: RunPolicy) -> Result<Engine, CliError> {
        self.require_tokenizers()?;
        self.engine_over(self.project()?, self.store()?, policy)
    }

    /// Fails if the model table names tokenizers that there are not, in the words of `larder check`: prompts would be
    /// refused as too large, since every byte would count as a token.
    pub fn require_tokenizers(&self) -> Result<(), CliError> {
        let missing = self.config.missing_tokenizers(&self.folder());
        if missing.is_empty() { Ok(()) } else { Err(ConfigError::Problems(missing).into()) }
    }

    /// The engine for a project and a store that are already open.
    pub fn engine_over(
        &self,
        project: Project,
        store: UserStore,
        policy: RunPolicy,
    ) -> Result<Engine, CliError> {
        let (weights, folder) = (self.weights(), self.folder());
        let load = move |name: &str| table_counter(&weights, &folder, name).ok();
        Ok(Engine::new(project, self.models(), store, policy, Box::new(load))?)
    }

    /// Says something on stderr, once per command.
    pub fn note(&self, text: &str) {
        if self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
            output::say(text);
        }
    }

    /// Notes that a model's tokens are estimated by bytes for lack of its tokenizer, and how to fix it.
    pub fn note_on_counting(&self, model: &str, tokenizer: &str) {
        if tokenizer != Counter::bytes().name() {
            return;
        }
        let spec = self.config.models().model(model);
        if spec.is_some_and(|spec| spec.provider == Provider::Embedded) {
            self.note(&format!(
                "note: the weights of {model}, which contain its tokenizer, are not installed, so every byte counts as a \
                 token, several times too many for most text; fetch them with `larder models pull`"
            ));
            return;
        }
        let named = spec.and_then(|spec| spec.tokenizer.as_deref());
        let why = match named {
            Some(name) if name == Counter::bytes().name() => return,
            Some(name) => match table_counter(&self.weights(), &self.folder(), name) {
                Ok(_) => return,
                Err(error) => format!("the tokenizer {name} of {model} cannot be loaded ({error})"),
            },
            None => format!("the tokenizer of {model} is unknown"),
        };
        self.note(&format!(
            "note: {why}, so every byte counts as a token, several times too many for most text; set `tokenizer` under \
             [models.{model}] in larder.toml to cl100k_base, o200k_base or the path of the model's tokenizer.json"
        ));
    }

    /// The same for the models of the layers that turns and conversations ask.
    pub fn note_on_layers(&self, engine: &Engine) {
        let table = engine.models.table();
        let bound = text_layers().into_iter().filter_map(|layer| table.resolve(layer, None));
        bound.for_each(|model| self.note_on_counting(model.name, engine.counter(model.spec).name()));
    }

    /// Offers to fetch the weights of the embedded model when one of `layers`, which will be asked, is bound to it and
    /// they are missing. A model that is asked in place of another reports missing weights itself.
    pub async fn ensure_weights(
        &self,
        yes: bool,
        layers: impl FnOnce() -> Result<Vec<Layer>, CliError>,
    ) -> Result<(), CliError> {
        let table = self.config.models();
        let chats = |spec: &ModelSpec| !spec.can(Capability::Embedding);
        let used = table.models().any(|(_, spec)| spec.provider == Provider::Embedded && chats(spec));
        // A build without the local model reports the missing model when it is called.
        if !cfg!(feature = "local") || !used || self.weights().locate(weights::CHAT_MODEL).is_some() {
            return Ok(());
        }
        let is_embedded = |layer: Layer| {
            let bound = [None, Some(Mode::Code)].into_iter().filter_map(|mode| table.resolve(layer, mode));
            bound.into_iter().any(|model| model.spec.provider == Provider::Embedded)
        };
        if !layers()?.into_iter().any(is_embedded) {
            return Ok(());
        }
        let agreed = yes || (output::is_interactive() && confirm()?);
        if !agreed {
            return Err(CliError::Fixable(
                "the weights of the embedded model are not installed (98 MB); fetch them with `larder models pull`, or pass --yes"
                    .to_owned(),
            ));
        }
        self.pull(weights::CHAT_MODEL, &WeightSource::Any).await
    }

    /// Fetches weights with a progress bar.
    pub async fn pull(&self, name: &str, source: &WeightSource) -> Result<(), CliError> {
        weights::release(name)?;
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
    pub fn counter(&self, name: &str) -> Result<Counter, CliError> {
        if name == weights::CHAT_TOKENIZER || name == weights::CHAT_MODEL {
            return embedded_counter(&self.weights());
        }
        let path = Path::new(name);
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("json" | "gguf")) || path.is_file() {
            return file_counter(path, extension == Some("gguf"));
        }
        let registry = Registry::builtin();
        registry.by_name(name).or_else(|mut error| {
            if let TokenError::Unknown { known, .. } = &mut error {
                known.push_str(&format!(
                    ", {}, the name or id of a model, or the path of a tokenizer.json or .gguf file",
                    weights::CHAT_TOKENIZER
                ));
            }
            self.model_counter(&registry, name)?.ok_or_else(|| error.into())
        })
    }

    /// The counter of a model: that of the model table, which has it under this name or id, otherwise that of its
    /// family; `None` if nobody knows it.
    fn model_counter(&self, registry: &Registry, model: &str) -> Result<Option<Counter>, CliError> {
        let table = self.config.models();
        let by_id = || table.models().map(|(_, spec)| spec).find(|spec| spec.id == model);
        let spec = table.model(model).or_else(by_id);
        if let Some(tokenizer) = spec.and_then(|spec| spec.tokenizer.as_deref()) {
            let named = registry.by_name(tokenizer);
            return named.or_else(|_| table_counter(&self.weights(), &self.folder(), tokenizer)).map(Some);
        }
        let id = table.catalogue().counted_as(spec.map_or(model, |spec| &spec.id));
        let counter = registry.for_model(id);
        Ok((counter.name() != Counter::bytes().name()).then_some(counter))
    }
}

/// The layers that turns and conversations ask. Pictures are read only where there are some.
pub fn text_layers() -> Vec<Layer> {
    vec![Layer::Reflex, Layer::Nerves, Layer::Mind, Layer::Voice]
}

/// An environment variable.
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The counter named by `tokenizer` in the model table, unless it is built in.
fn table_counter(weights: &Weights, folder: &Path, name: &str) -> Result<Counter, CliError> {
    if name == weights::CHAT_TOKENIZER {
        return embedded_counter(weights);
    }
    file_counter(&folder.join(name), name.ends_with(".gguf"))
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
    let folder = weights.locate(weights::CHAT_MODEL).ok_or_else(|| {
        CliError::Fixable(
            "the weights of the embedded model are not installed; fetch them with `larder models pull`"
                .to_owned(),
        )
    })?;
    let path = folder.join(weights::CHAT_WEIGHTS);
    let file = File::open(&path).map_err(|source| CliError::Read { path: path.clone(), source })?;
    Ok(Counter::from_gguf(BufReader::new(file), weights::CHAT_TOKENIZER)?)
}

fn confirm() -> Result<bool, CliError> {
    output::say("The weights of the embedded model are not installed. Fetch them now (98 MB)? [Y/n]");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(CliError::Print)?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}

/// The project folder: the given one, the current one if it has recipes or settings, or the nearest one above it with a
/// `larder.toml`.
pub fn project_dir(global: &Global) -> Option<PathBuf> {
    if let Some(dir) = &global.project {
        return Some(dir.clone());
    }
    let here = PathBuf::from(".");
    if Project::is_root(&here) { Some(here) } else { project_above() }
}

/// Says which project a command in a folder below it works on.
pub fn note_on_project_above(global: &Global) {
    if let Some(above) = project_dir(global).filter(|dir| dir.starts_with("..") && global.project.is_none()) {
        let found = above.canonicalize().unwrap_or(above);
        output::say(&output::dim(&format!("project {}", found.display())));
    }
}

/// The nearest folder above the current one with a `larder.toml` of the same owner: settings name programs that are
/// started, so those that somebody else left in a shared folder do not count.
fn project_above() -> Option<PathBuf> {
    let above = std::env::current_dir().ok()?.ancestors().skip(1).count();
    let owner = owner(Path::new("."))?;
    let folders = (1..=above).map(|steps| PathBuf::from_iter(std::iter::repeat_n("..", steps)));
    let mut projects = folders.filter(|dir| dir.join(FILE).is_file());
    projects.next().filter(|dir| self::owner(&dir.join(FILE)) == Some(owner))
}

/// Who owns a file or folder.
#[cfg(unix)]
fn owner(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata))
}

/// Owners have no numbers here: everything counts as one's own.
#[cfg(not(unix))]
fn owner(path: &Path) -> Option<u32> {
    path.exists().then_some(0)
}
