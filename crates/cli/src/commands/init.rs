//! `larder init`: creates a project to start from. Overwrites nothing.

use std::path::Path;

use serde_json::json;

use crate::args::Format;
use crate::error::CliError;
use crate::output;

const FILES: [(&str, &str); 3] = [
    ("larder.toml", include_str!("../init/larder.toml")),
    ("recipes/notes/summary.yaml", include_str!("../init/summary.yaml")),
    ("prompts/notes/summary.md", include_str!("../init/summary.md")),
];
/// Written unless they exist: a text to try the recipe on, and an ignore file for the store.
const EXTRAS: [(&str, &str); 2] = [
    ("notes.md", include_str!("../init/notes.md")),
    (".gitignore", "# Originals, runs, and the key that signs pointers.\n.larder/\n"),
];

pub fn run(dir: &Path, format: Format) -> Result<(), CliError> {
    // A link that leads nowhere is in the way as well.
    let is_in_the_way = |path: &&Path| path.symlink_metadata().is_ok() && !path.is_dir();
    if let Some(path) = dir.ancestors().find(is_in_the_way) {
        return Err(CliError::Fixable(format!(
            "{} is not a folder; name the folder of the project, which `larder init` creates if it does not exist",
            path.display()
        )));
    }
    let taken: Vec<&str> =
        FILES.iter().map(|(name, _)| *name).filter(|name| dir.join(name).exists()).collect();
    if !taken.is_empty() {
        return Err(CliError::Fixable(format!(
            "{} already contains {}; nothing was written",
            dir.display(),
            taken.join(", ")
        )));
    }
    let mut created = Vec::new();
    let extras = EXTRAS.into_iter().filter(|(name, _)| !dir.join(name).exists());
    for (name, text) in FILES.into_iter().chain(extras) {
        let path = dir.join(name);
        let failed = |source| CliError::Write { path: path.clone(), source };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, text).map_err(failed)?;
        created.push(name);
    }
    if format == Format::Json {
        return output::json(&json!({"project": dir, "created": created}));
    }
    output::line(&format!("created a project in {}", dir.display()))?;
    output::say("try this in the folder: larder check && larder ask . 'When does version 2.4 ship?'");
    Ok(())
}
