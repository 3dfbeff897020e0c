//! Where the corpora lie and how their files are read; does not know what they are for.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::Failure;

/// The environment variable that names the folder of the corpora.
const VARIABLE: &str = "LARDER_CORPORA";

/// The folder that a suite needs is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The folder inside the corpora.
    pub folder: &'static str,
    /// Where it was looked for, if the variable is set.
    pub root: Option<PathBuf>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Some(root) => write!(f, "{}: there is no folder {}/ in it", root.display(), self.folder)?,
            None => write!(f, "{VARIABLE} is not set; it names the folder that holds {}/", self.folder)?,
        }
        write!(f, "\nevals/README.md says which public sources to put there, and in which form")
    }
}

impl std::error::Error for Missing {}

/// The folder of the corpora with this name.
///
/// # Errors
/// [`Missing`] when the variable is not set or the folder is not there.
pub fn folder(folder: &'static str) -> Result<PathBuf, Missing> {
    let root = std::env::var_os(VARIABLE).filter(|root| !root.is_empty()).map(PathBuf::from);
    let path = root.as_ref().map(|root| root.join(folder)).filter(|path| path.is_dir());
    path.ok_or(Missing { folder, root })
}

/// The files of `folder` whose names end so, in order of their names.
///
/// # Errors
/// The folder cannot be read, or holds no such file.
pub fn files(folder: &Path, ends: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if ends.iter().any(|end| name(&path).ends_with(end)) {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("{} holds no file that ends in {}", folder.display(), ends.join(" or ")).into());
    }
    Ok(files)
}

/// The file's name; empty if it has none.
pub fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The text of a file, unpacked if its name ends in `.gz`. Bytes that are not UTF-8 become U+FFFD, as they do wherever
/// a program hands text to a model.
///
/// # Errors
/// The file cannot be read or unpacked.
pub fn text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let bytes = if path.extension().is_some_and(|ending| ending == "gz") { unpacked(&bytes)? } else { bytes };
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned()))
}

fn unpacked(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

/// The JSON value of a file.
///
/// # Errors
/// The file cannot be read or is not JSON.
pub fn json(path: &Path) -> Result<serde_json::Value, Failure> {
    serde_json::from_str(&text(path)?).map_err(|error| format!("{}: {error}", path.display()).into())
}
