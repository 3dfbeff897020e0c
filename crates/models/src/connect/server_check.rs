//! Checks whether servers are usable as configured in `larder.toml`: their addresses and key files, before the first
//! call. Connects to nothing, and does not check environment variables, which may be set where requests are served.

use std::path::{Path, PathBuf};

use super::{Models, base_url};
use crate::http;
use crate::secret::Secret;
use crate::upstream::Upstream;

/// What of a server cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerField {
    /// Its address.
    Address,
    /// The file with its key.
    KeyFile,
}

/// Whether a text is the address of a server.
pub fn is_address(text: &str) -> bool {
    http::address(text).is_some()
}

/// Why a server is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProblem {
    /// What of it.
    pub field: ServerField,
    /// What is wrong with that.
    pub reason: String,
}

impl Models {
    /// Why the server of a model in the table is unusable; empty if a model has no server.
    pub fn doubts(&self, name: &str) -> Vec<ServerProblem> {
        let Some(spec) = self.table.model(name).filter(|spec| spec.provider.is_remote()) else {
            return Vec::new();
        };
        let address = self.expand(name, base_url(spec)).ok();
        self.look_at(address.as_deref(), spec.api_key_file.as_deref().map(Path::new))
    }

    /// Why a server for models outside the table is unusable. Its address was checked as the settings were read.
    pub fn doubts_of(&self, upstream: &Upstream) -> Vec<ServerProblem> {
        self.look_at(None, upstream.key_file())
    }

    /// The key files of the table and of these servers for other models.
    pub fn key_files(&self, upstreams: &[Upstream]) -> Vec<PathBuf> {
        let of_table =
            self.table.models().filter_map(|(_, spec)| spec.api_key_file.as_deref().map(Path::new));
        let all = of_table.chain(upstreams.iter().filter_map(Upstream::key_file));
        all.map(|file| self.folder.join(file)).collect()
    }

    fn look_at(&self, address: Option<&str>, key_file: Option<&Path>) -> Vec<ServerProblem> {
        let address = address.filter(|text| http::address(text).is_none()).map(|text| ServerProblem {
            field: ServerField::Address,
            reason: format!("`{text}` is not an http or https address"),
        });
        let key = key_file.and_then(|file| Secret::from_file(&self.folder.join(file)).err());
        let key = key.map(|error| ServerProblem { field: ServerField::KeyFile, reason: error.to_string() });
        address.into_iter().chain(key).collect()
    }
}
