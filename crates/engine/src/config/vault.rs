//! The location of documents and the embedding model, from the settings. Opens neither.

use std::path::{Path, PathBuf};

use larder_models::table::{Capability, ModelSpec};
use larder_store::DocumentPlace;
use larder_text::provider::Provider;

use super::{CODE, Config, ConfigError, SettingOrigin, SettingProblem};
use crate::settings::VaultSettings;

/// The default folder of documents, in the home folder.
const DOCUMENTS: &str = "documents";
const EMBEDDING: &str = "gather.embedding";
/// An embedding model in one of the built-in tables.
const LIKE: &str = "minilm";

impl Config {
    /// Where documents are.
    pub fn document_place(&self) -> DocumentPlace {
        match self.section::<VaultSettings>().place {
            None => DocumentPlace::Folder(self.home().join(DOCUMENTS)),
            Some(url) if url.contains("://") => DocumentPlace::Url(url),
            Some(folder) => {
                let here = Path::new(&self.path).parent().unwrap_or(Path::new(""));
                DocumentPlace::Folder(here.join(folder))
            }
        }
    }

    /// What no tool may reach: the settings, the home folder and the documents of all users.
    pub(super) fn private_paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![PathBuf::from(&self.path), self.home().to_owned()];
        if let DocumentPlace::Folder(documents) = self.document_place() {
            paths.push(documents);
        }
        paths.into_iter().map(|path| std::path::absolute(&path).unwrap_or(path)).collect()
    }

    /// Whether a command starts a process that does background jobs.
    pub fn detaches_jobs(&self) -> bool {
        self.section::<VaultSettings>().jobs_detached
    }

    /// The name, in the model table, of the embedding model that retrieval uses; `None` if none is set.
    pub fn embedding(&self) -> Option<&str> {
        self.value(EMBEDDING).filter(|name| !name.is_empty())
    }

    /// The same for conversations, which use the embedded model of the table unless the setting names another or none.
    pub fn conversation_embedding(&self) -> Option<&str> {
        let is_embedded =
            |spec: &ModelSpec| spec.provider == Provider::Embedded && spec.can(Capability::Embedding);
        let embedded = || self.models.models().find(|(_, spec)| is_embedded(spec)).map(|(name, _)| name);
        let is_set =
            self.settings.iter().any(|set| set.key == EMBEDDING && set.origin != SettingOrigin::Default);
        if is_set { self.embedding() } else { embedded() }
    }

    /// Fails if the configured embedding model cannot be used.
    pub(super) fn check_embedding(&self) -> Result<(), ConfigError> {
        let Some(name) = self.embedding() else { return Ok(()) };
        let model = self.models.model(name);
        if model.is_some_and(|model| model.can(Capability::Embedding)) {
            return Ok(());
        }
        let makers = self.models.models().filter(|(_, spec)| spec.can(Capability::Embedding));
        let makers: Vec<&str> = makers.map(|(name, _)| name).collect();
        let help = match makers.as_slice() {
            [] => {
                "the model table has no model with the capability `embedding`; add one, or remove the setting"
                    .into()
            }
            names => format!("name a model with the capability `embedding`: {}", names.join(", ")),
        };
        let what = if model.is_some() { "is not an embedding model" } else { "is not in the table" };
        let origin =
            self.settings.iter().find(|setting| setting.key == EMBEDDING).map(|setting| &setting.origin);
        if let Some(SettingOrigin::Environment { name: variable }) = origin {
            let (name, value) = (variable.clone(), name.to_owned());
            return Err(ConfigError::Environment { name, value, key: EMBEDDING, like: LIKE.to_owned() });
        }
        let message = format!("{EMBEDDING} cannot be {name}: that model {what}");
        let (line, column) = self.places.get(EMBEDDING);
        Err(ConfigError::Problems(vec![SettingProblem {
            code: CODE,
            severity: "error",
            file: self.path.clone(),
            line,
            column,
            message,
            help,
        }]))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::FILE;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let file = Path::new("project").join(FILE);
        Config::resolve(text, &file.to_string_lossy(), None, Path::new("project"), &|_| None)
    }

    #[test]
    fn documents_are_in_the_home_folder_by_default() {
        let place = read("").unwrap().document_place();
        assert_eq!(place, DocumentPlace::Folder(Path::new("project/.larder/documents").to_owned()));
    }

    #[test]
    fn places_and_limits_are_read() {
        let place =
            |text: &str| read(&format!("[documents]\nplace = \"{text}\"\n")).unwrap().document_place();
        assert_eq!(place("vault"), DocumentPlace::Folder(Path::new("project/vault").to_owned()));
        assert_eq!(place("/vault"), DocumentPlace::Folder(Path::new("/vault").to_owned()));
        assert_eq!(place("s3://bucket/a"), DocumentPlace::Url("s3://bucket/a".to_owned()));
        let limits = read("[turn]\nmax_tokens = 5\nmax_cost = \"0.5\"\nmax_time_s = 3\nmax_retries = 0\n");
        let limits = limits.unwrap().turn_limits();
        assert_eq!((limits.tokens, limits.retries), (Some(5), 0));
        assert_eq!(limits.cost.map(|cost| cost.to_string()).as_deref(), Some("0.5"));
        assert_eq!(limits.time, Some(Duration::from_secs(3)));
    }

    #[test]
    fn tools_reach_no_settings_store_or_documents() {
        let private = read("[documents]\nplace = \"../vault\"\n").unwrap().tools().private;
        let here = std::env::current_dir().unwrap().join("project");
        assert_eq!(private, [FILE, ".larder", "../vault"].map(|name| here.join(name)));
    }

    #[test]
    fn an_embedding_model_is_one_of_the_table() {
        assert_eq!(Config::builtin().embedding(), None);
        let gather = |name: &str| read(&format!("[gather]\nembedding = \"{name}\"\n"));
        assert_eq!(gather("minilm").unwrap().embedding(), Some("minilm"));
        assert_eq!(gather("").unwrap().embedding(), None);
        let named = |name: &str| gather(name).unwrap().conversation_embedding().map(str::to_owned);
        assert_eq!((named("minilm").as_deref(), named("")), (Some("minilm"), None));
        assert_eq!(Config::builtin().conversation_embedding(), Some("minilm"));
        for (name, message) in [
            ("smollm2", "gather.embedding cannot be smollm2: that model is not an embedding model"),
            ("ada", "gather.embedding cannot be ada: that model is not in the table"),
        ] {
            let Err(ConfigError::Problems(problems)) = gather(name) else { panic!("{name}") };
            assert_eq!((problems[0].line, problems[0].message.as_str()), (2, message));
            assert!(problems[0].help.ends_with(": minilm"), "{}", problems[0].help);
        }
        let set = |name: &str| (name == "LARDER_GATHER_EMBEDDING").then(|| "ada".to_owned());
        let refused = Config::resolve("", FILE, None, Path::new("."), &set);
        let Err(ConfigError::Environment { name, value, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((name.as_str(), value.as_str()), ("LARDER_GATHER_EMBEDDING", "ada"));
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, message) in [
            ("[documents]\nplace = \"ftp://x\"\n", "documents.place cannot be ftp://x"),
            ("[documents]\nplace = \"s3:///\"\n", "documents.place cannot be"),
            ("[documents]\nplaec = \"x\"\n", "unknown setting documents.plaec"),
            ("[turn]\nmax_tokens = -1\n", "turn.max_tokens cannot be -1"),
            ("[turn]\nmax_cost = \"much\"\n", "turn.max_cost cannot be much"),
            ("[turn]\nmax_iterations = 0\n", "turn.max_iterations cannot be 0"),
            ("[turn]\nmax_calls = 1\n", "unknown setting turn.max_calls"),
        ] {
            let Err(ConfigError::Problems(problems)) = read(text) else { panic!("{text}") };
            assert!(problems.iter().any(|found| found.message.contains(message)), "{text}: {problems:?}");
        }
    }
}
