//! The settings of documents and turns, typed. Knows neither.

use std::path::Path;

use larder_store::DocumentPlace;

use super::Config;
use crate::turn::TurnLimits;

/// The folder in the home folder where documents are, unless they are elsewhere.
const DOCUMENTS: &str = "documents";

impl Config {
    /// Where the documents are.
    pub fn document_place(&self) -> DocumentPlace {
        match self.stated("documents.place") {
            None => DocumentPlace::Folder(self.home().join(DOCUMENTS)),
            Some(url) if url.contains("://") => DocumentPlace::Url(url.to_owned()),
            Some(folder) => {
                let here = Path::new(&self.path).parent().unwrap_or(Path::new(""));
                DocumentPlace::Folder(here.join(folder))
            }
        }
    }

    /// How much a turn may do.
    pub fn turn_limits(&self) -> TurnLimits {
        let number = |key: &str, default: u32| self.number(key).unwrap_or(default);
        let default = TurnLimits::default();
        TurnLimits {
            iterations: number("turn.max_iterations", default.iterations),
            tool_calls: number("turn.max_tool_calls", default.tool_calls),
            revisions: number("turn.max_revisions", default.revisions),
            retries: number("turn.max_retries", default.retries),
            tokens: self.number("turn.max_tokens"),
            cost: self.number("turn.max_cost"),
            time: self.seconds("turn.max_time_s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{ConfigError, FILE};

    fn read(text: &str) -> Result<Config, ConfigError> {
        let file = Path::new("project").join(FILE);
        Config::resolve(text, &file.to_string_lossy(), None, Path::new("project"), &|_| None)
    }

    #[test]
    fn defaults_are_those_of_the_limits() {
        assert_eq!(Config::builtin().turn_limits(), TurnLimits::default());
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
    fn mistakes_are_told() {
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
