//! Reading what the user names: files, folders, standard input.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// The bytes of a file, or of standard input for `-`.
pub fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let failed = |source| CliError::Read { path: path.to_owned(), source };
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(failed)
}

/// The same as text.
pub fn read_text(path: &Path) -> Result<String, CliError> {
    text(path, read(path)?)
}

/// The bytes of a file as text.
pub fn text(path: &Path, bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|error| CliError::NotUtf8 {
        path: path.to_owned(),
        offset: error.utf8_error().valid_up_to(),
    })
}

/// The whole path of a folder.
pub fn folder(path: PathBuf) -> Result<PathBuf, CliError> {
    match path.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => Err(CliError::Read { path, source: io::ErrorKind::NotADirectory.into() }),
        Err(source) => Err(CliError::Read { path, source }),
    }
}
