//! API keys: their sources, and how they are kept out of every output. Knows no provider.

use std::fmt;
use std::path::Path;

/// Bytes a key file may have; a larger one is not a key.
const MAX_KEY_FILE_BYTES: u64 = 16 * 1024;

/// A key. It prints as `***`; only `Secret::expose` gives the text, and only the HTTP layer calls it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key, without the white space that files and shells add. `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Reads a key from a file that contains nothing else.
    ///
    /// # Errors
    /// When the file cannot be read, is empty, or is too large to be a key.
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        let wrong = |reason: String| SecretError { path: path.display().to_string(), reason };
        let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
        if size > MAX_KEY_FILE_BYTES {
            return Err(wrong(format!("it has {size} bytes; a key file has at most {MAX_KEY_FILE_BYTES}")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Self::new(&text).ok_or_else(|| wrong("it is empty".to_owned()))
    }

    /// The key itself.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the key replaced by `***`.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "***")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A key file without a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the key file {path} contains no usable key: {reason}")]
pub struct SecretError {
    path: String,
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints() {
        let secret = Secret::new(" sk-abc\n").unwrap();
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert_eq!(secret.redact("key sk-abc, again sk-abc"), "key ***, again ***");
        assert_eq!(secret.expose(), "sk-abc");
        assert_eq!(Secret::new(" \n"), None);
    }

    #[test]
    fn a_key_file_is_one_trimmed_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-1\r\n").unwrap();
        assert_eq!(Secret::from_file(&path).unwrap().expose(), "sk-1");
        std::fs::write(&path, "\n").unwrap();
        assert!(Secret::from_file(&path).unwrap_err().to_string().contains("it is empty"));
        std::fs::write(&path, vec![b'a'; 20_000]).unwrap();
        assert!(Secret::from_file(&path).unwrap_err().to_string().contains("at most 16384"));
        assert!(Secret::from_file(&folder.path().join("none")).is_err());
    }
}
