//! `larder init`: a project to start from. Writes nothing over what is there.

use std::path::Path;

use crate::error::CliError;
use crate::output;

const FILES: [(&str, &str); 3] = [
    ("larder.toml", include_str!("../init/larder.toml")),
    ("recipes/notes/summary.yaml", include_str!("../init/summary.yaml")),
    ("prompts/notes/summary.md", include_str!("../init/summary.md")),
];
/// For folders that have none: something to try the recipe on, and what keeps the store out of a repository.
const EXTRAS: [(&str, &str); 2] = [
    ("notes.md", include_str!("../init/notes.md")),
    (".gitignore", "# Originals, runs and the key that pointers are made with.\n.larder/\n"),
];

pub fn run(dir: &Path) -> Result<(), CliError> {
    let taken: Vec<&str> =
        FILES.iter().map(|(name, _)| *name).filter(|name| dir.join(name).exists()).collect();
    if !taken.is_empty() {
        return Err(CliError::Fixable(format!(
            "{} holds {} already; nothing was written",
            dir.display(),
            taken.join(", ")
        )));
    }
    let extras = EXTRAS.into_iter().filter(|(name, _)| !dir.join(name).exists());
    for (name, text) in FILES.into_iter().chain(extras) {
        let path = dir.join(name);
        let failed = |source| CliError::Write { path: path.clone(), source };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, text).map_err(failed)?;
    }
    output::line(&format!("made a project in {}", dir.display()))?;
    output::say(
        "try in that folder: larder check && larder run notes/summary --doc notes=notes.md --query 'What matters \
         here?'",
    );
    Ok(())
}
