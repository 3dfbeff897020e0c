//! Reports unusable servers and missing tokenizers as problems of the file. Connects to no server.

use std::path::Path;

use larder_models::connect::{Models, ServerField, ServerProblem};
use larder_models::table::ModelSpec;
use larder_models::weights::CHAT_TOKENIZER;
use larder_text::tokens::Registry;

use super::{CODE, Config, SettingProblem};

impl Config {
    /// Invalid addresses and unusable key files in the model table and the gateway settings. Only values set in the
    /// file are checked; `models` are those of the file.
    pub fn unusable(&self, models: &Models) -> Vec<SettingProblem> {
        let mut problems = Vec::new();
        for (name, _) in models.table().models() {
            let keys = [format!("models.{name}.base_url"), format!("models.{name}.api_key_file")];
            let variable = format!("models.{name}.api_key_env");
            problems.extend(self.doubted(models.doubts(name), &keys, &variable));
        }
        problems.extend(self.unusable_upstreams(models));
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems
    }

    /// The same of the servers for models that are not in the table. Without them no gateway starts, while a server of the
    /// table is needed only once its model is asked.
    pub fn unusable_upstreams(&self, models: &Models) -> Vec<SettingProblem> {
        let problems = self.gateway().upstreams().into_iter().flat_map(|upstream| {
            let name = format!("gateway.{}", upstream.provider.as_str());
            let (keys, variable) = ([name.clone(), format!("{name}_key_file")], format!("{name}_key_env"));
            self.doubted(models.doubts_of(&upstream), &keys, &variable)
        });
        problems.collect()
    }

    /// Tokenizers in the model table that are neither built in nor a file below `folder`, which contains larder.toml.
    /// Their models' prompts would only be bounded by bytes.
    pub fn missing_tokenizers(&self, folder: &Path) -> Vec<SettingProblem> {
        let registry = Registry::builtin();
        let problem = |(model, spec): (&str, &ModelSpec)| {
            let name = spec.tokenizer.as_deref()?;
            let known = name == CHAT_TOKENIZER || registry.by_name(name).is_ok();
            if known || folder.join(name).is_file() {
                return None;
            }
            let key = format!("models.{model}.tokenizer");
            let (line, column) = self.places.find(&key)?;
            Some(SettingProblem {
                code: CODE,
                severity: "error",
                file: self.path.clone(),
                line,
                column,
                message: format!("{key}: there is no tokenizer or file called `{name}`"),
                help: "give the path of a tokenizer.json or GGUF file, relative to larder.toml, or the name of a tokenizer: \
                       cl100k_base, o200k_base, claude, estimate or bytes"
                    .to_owned(),
            })
        };
        self.models().models().filter_map(problem).collect()
    }

    /// The problems of one server, configured by these address and key file settings; `variable` is the alternative
    /// to the key file.
    fn doubted(
        &self,
        doubts: Vec<ServerProblem>,
        [address, key_file]: &[String; 2],
        variable: &str,
    ) -> Vec<SettingProblem> {
        let problem = |ServerProblem { field, reason }: ServerProblem| {
            let (key, help) = match field {
                ServerField::Address => (address, "use a value such as https://api.openai.com/v1".to_owned()),
                ServerField::KeyFile => {
                    let help = format!(
                        "write the key into that file, whose path is relative to larder.toml, or name the variable of the \
                         environment that holds it with {variable}"
                    );
                    (key_file, help)
                }
            };
            let (line, column) = self.places.find(key)?;
            let (file, message) = (self.path.clone(), format!("{key}: {reason}"));
            Some(SettingProblem { code: CODE, severity: "error", file, line, column, message, help })
        };
        doubts.into_iter().filter_map(problem).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "provider = \"openai\"\nid = \"x\"\nwindow = 100\nmax_output = 10\n";

    fn unusable(folder: &Path, text: &str) -> Vec<(usize, usize, String, String)> {
        let config = Config::resolve(text, "larder.toml", None, folder, &|_| None).unwrap();
        let models = Models::new(config.models().clone(), folder, &|_| None);
        let told = |problem: SettingProblem| (problem.line, problem.column, problem.message, problem.help);
        config.unusable(&models).into_iter().map(told).collect()
    }

    #[test]
    fn unusable_servers_are_reported_with_their_places() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("empty"), "\n").unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let text = format!(
            "[gateway]\nopenai = \"http://x.example\"\n  openai_key_file = \"none\"\nanthropic = \"https://x.example\"\n\
             anthropic_key_file = \"folder\"\n[models.m]\n{TABLE}base_url = \"models.example/v1\"\napi_key_file = \"empty\"\n"
        );
        let told = unusable(dir.path(), &text);
        let expected = [
            (3, 3, "gateway.openai_key_file: the key file", "gateway.openai_key_env"),
            (5, 1, "gateway.anthropic_key_file: the key file", "gateway.anthropic_key_env"),
            (11, 1, "models.m.base_url: `models.example/v1` is not an http", "https://"),
            (12, 1, "models.m.api_key_file: the key file", "models.m.api_key_env"),
        ];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for ((line, column, message, help), expected) in told.iter().zip(expected) {
            assert_eq!((*line, *column), (expected.0, expected.1), "{message}");
            assert!(message.starts_with(expected.2) && help.contains(expected.3), "{message}: {help}");
        }
        assert!(told[3].2.ends_with("it is empty"), "{}", told[3].2);
    }

    #[test]
    fn a_missing_tokenizer_is_reported_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("there.json"), "{}").unwrap();
        let missing = |name: &str| {
            let text = format!("[models.m]\n{TABLE}tokenizer = \"{name}\"\n");
            let config = Config::resolve(&text, "larder.toml", None, dir.path(), &|_| None).unwrap();
            let problems = config.missing_tokenizers(dir.path());
            problems.into_iter().map(|problem| (problem.line, problem.message)).collect::<Vec<_>>()
        };
        for name in ["there.json", "cl100k_base", "o200k_base", "claude", "estimate", "bytes", "smollm2"] {
            assert_eq!(missing(name), [], "{name}");
        }
        let message = "models.m.tokenizer: there is no tokenizer or file called `nofile.json`".to_owned();
        assert_eq!(missing("nofile.json"), [(6, message)]);
    }

    #[test]
    fn usable_servers_and_environment_values_are_not_reported() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key"), "sk-1\n").unwrap();
        let text = format!(
            "[gateway]\nopenai = \"https://x.example/v1\"\nopenai_key_env = \"NOT_SET\"\nopenai_key_file = \"none\"\n\
             [models.m]\n{TABLE}base_url = \"${{NOT_SET}}/v1\"\napi_key_file = \"key\"\n"
        );
        let told = unusable(dir.path(), &text);
        assert!(told.is_empty(), "{told:?}");
    }
}
