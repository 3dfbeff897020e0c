//! What makes a folder a project, and which of its files decide what a command there does.

use std::fs;
use std::path::{Path, PathBuf};

use larder_core::recipe::REGISTRY_PATH;

use super::{Project, folder};
use crate::config::{DEFAULT_HOME, FILE};

const RECIPES: &str = "recipes";
const CONVERSATIONS: &str = "conversations";
/// What a project consists of besides its registry.
pub(super) const FOLDERS: [&str; 4] = [RECIPES, "prompts", "routes", CONVERSATIONS];
/// Folders below `recipes` and `conversations` in which a YAML file makes a project.
const DEPTHS: [(&str, usize); 2] = [(RECIPES, 1), (CONVERSATIONS, 0)];

impl Project {
    /// Whether a folder has recipes or conversation types of its own: a YAML file in `recipes`, in one of its categories
    /// or in `conversations`. Folders of these names may hold anything else.
    pub fn has_own(dir: &Path) -> bool {
        DEPTHS.into_iter().any(|(name, depth)| has_yaml(&dir.join(name), depth))
    }

    /// Whether a command that runs in this folder takes it for its project.
    pub fn is_root(dir: &Path) -> bool {
        Self::has_own(dir) || dir.join(FILE).is_file()
    }

    /// Whether the name of an entry of a folder is one that [`Self::deciding`] looks at.
    pub fn may_decide(name: &str) -> bool {
        [FILE, DEFAULT_HOME, REGISTRY_PATH].contains(&name) || FOLDERS.contains(&name)
    }

    /// The files and folders of a folder that exist and decide what a command there does: its settings and home, and
    /// what its project consists of, if it has one of its own.
    pub fn deciding(dir: &Path) -> Vec<PathBuf> {
        let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
        let mut paths: Vec<PathBuf> =
            [FILE, DEFAULT_HOME].map(|name| dir.join(name)).into_iter().filter(exists).collect();
        // What a link leads to can change, wherever it is.
        let links = DEPTHS.map(|(name, _)| dir.join(name)).into_iter().filter(|path| path.is_symlink());
        paths.extend(links);
        if Self::has_own(dir) {
            let files = folder::read(dir).map(|contents| contents.files).unwrap_or_default();
            paths.extend(files.keys().map(|inside| dir.join(inside)));
        }
        paths
    }

    /// Whether a new file would be among what decides: one of these names below `dir`, in small letters.
    pub fn would_decide(dir: &Path, inside: &[String]) -> bool {
        let [first, below @ ..] = inside else { return false };
        let makes_project = DEPTHS.into_iter().any(|(name, depth)| {
            first == name
                && (1..=depth + 1).contains(&below.len())
                && below.last().is_some_and(|name| is_yaml(name))
        });
        let settings = first == DEFAULT_HOME || first == FILE && below.is_empty();
        let belongs = first == REGISTRY_PATH || FOLDERS.contains(&first.as_str()) && !below.is_empty();
        settings || makes_project || belongs && Self::has_own(dir)
    }
}

fn has_yaml(dir: &Path, depth: usize) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        !name.starts_with('.') && (is_yaml(&name) || depth > 0 && has_yaml(&entry.path(), depth - 1))
    })
}

fn is_yaml(name: &str) -> bool {
    !name.starts_with('.') && [".yaml", ".yml"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_decide_does_once_it_exists() {
        let cases = [
            ("", "larder.toml", true),
            ("", ".larder/key", true),
            ("", "recipes/ask/answer.yaml", true),
            ("", "recipes/answer.yml", true),
            ("", "conversations/care.yaml", true),
            ("", "recipes/soup.md", false),
            ("", "recipes/soups/cold/soup.yaml", false),
            ("", "conversations/2024/chat.yaml", false),
            ("", "prompts/a/b.md", false),
            ("", "routes/a.yaml", false),
            ("", "registry.yaml", false),
            ("recipes/a/b.yaml", "prompts/a/b.md", true),
            ("recipes/a/b.yaml", "routes/a.yaml", true),
            ("recipes/a/b.yaml", "registry.yaml", true),
            ("recipes/a/b.yaml", "src/recipes.yaml", false),
        ];
        for (before, path, decides) in cases {
            let dir = tempfile::tempdir().unwrap();
            let write = |inside: &str| {
                fs::create_dir_all(dir.path().join(inside).parent().unwrap()).unwrap();
                fs::write(dir.path().join(inside), "x: 1\n").unwrap();
            };
            if !before.is_empty() {
                write(before);
            }
            let inside: Vec<String> = path.split('/').map(str::to_owned).collect();
            assert_eq!(Project::would_decide(dir.path(), &inside), decides, "{path} after {before:?}");
            let earlier = Project::deciding(dir.path()).len();
            write(path);
            assert_eq!(Project::deciding(dir.path()).len() > earlier, decides, "{path} after {before:?}");
            assert!(!decides || Project::may_decide(&inside[0]), "{path}");
            assert!(!Project::is_root(dir.path()) || decides || !before.is_empty(), "{path}");
        }
    }
}
