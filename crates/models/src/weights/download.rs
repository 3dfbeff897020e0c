//! Downloads that survive a broken connection: what has come stays in a `.part` file, and the next request asks for
//! the rest only. Knows HTTP and checksums, not what is fetched.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_RANGE, RANGE};
use reqwest::{Response, StatusCode, Url};

use super::{DownloadProgress, FileDigest, WeightsError, io};

/// Fruitless requests in a row after which a download is abandoned.
const FRUITLESS_REQUESTS: u32 = 3;
/// Time to reach a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Time in which nothing comes before a connection counts as broken.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A client that trusts what the system trusts and goes through the proxy that the environment names.
pub(super) struct Client(Result<[reqwest::Client; 2], String>);

/// One file to fetch.
pub(super) struct Transfer<'a> {
    pub url: &'a str,
    /// Where it grows.
    pub part: &'a Path,
    /// Its digest, where one is known.
    pub sha256: Option<&'a str>,
}

/// How a request for the rest of a file ended.
enum DownloadStep {
    /// The file is complete.
    Complete,
    /// The connection broke; there are now this many bytes.
    Broken { detail: String },
}

impl Client {
    pub(super) fn new() -> Self {
        // rustls wants one provider per process; where the embedding program has chosen one, its choice is kept.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = |builder: reqwest::ClientBuilder| {
            builder
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
                .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| chain(&error))
        };
        let direct = client(reqwest::Client::builder().no_proxy());
        Self(direct.and_then(|direct| Ok([direct, client(reqwest::Client::builder())?])))
    }

    fn get(&self, url: &str) -> Result<(reqwest::RequestBuilder, String), WeightsError> {
        let parsed = Url::parse(url).map_err(|error| failed("an address", &error.to_string()))?;
        let [direct, proxied] = self.0.as_ref().map_err(|detail| failed(url, detail))?;
        let client = if is_loopback(&parsed) { direct } else { proxied };
        let shown = without_credentials(&parsed);
        Ok((client.get(parsed), shown))
    }

    /// The text at `url`, asked for as `accept`, and the address it came from in the end.
    pub(super) async fn text(&self, url: &str, accept: &str) -> Result<(String, Url), WeightsError> {
        let (request, shown) = self.get(url)?;
        let response = request.header(ACCEPT, accept).send().await;
        let response = response.and_then(Response::error_for_status);
        let response = response.map_err(|error| failed(&shown, &chain(&error.without_url())))?;
        let from = response.url().clone();
        let text = response.text().await.map_err(|error| failed(&shown, &chain(&error.without_url())))?;
        Ok((text, from))
    }

    /// Fetches a file whole and checks it. On a wrong digest nothing is kept.
    pub(super) async fn fetch(
        &self,
        transfer: &Transfer<'_>,
        progress: DownloadProgress<'_>,
    ) -> Result<(), WeightsError> {
        let mut fruitless = 0;
        loop {
            let before = length(transfer.part);
            match self.step(transfer, before, progress).await? {
                DownloadStep::Complete => return check(transfer),
                DownloadStep::Broken { detail } => {
                    fruitless = if length(transfer.part) > before { 0 } else { fruitless + 1 };
                    if fruitless == FRUITLESS_REQUESTS {
                        return Err(failed(&self.get(transfer.url)?.1, &detail));
                    }
                    tracing::debug!(%detail, "a download broke off and is resumed");
                }
            }
        }
    }

    async fn step(
        &self,
        transfer: &Transfer<'_>,
        have: u64,
        progress: DownloadProgress<'_>,
    ) -> Result<DownloadStep, WeightsError> {
        let (mut request, shown) = self.get(transfer.url)?;
        if have > 0 {
            request = request.header(RANGE, format!("bytes={have}-"));
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Ok(DownloadStep::Broken { detail: chain(&error.without_url()) }),
        };
        let start = match response.status() {
            StatusCode::PARTIAL_CONTENT if range_start(&response) == Some(have) => have,
            StatusCode::OK => 0,
            StatusCode::RANGE_NOT_SATISFIABLE if range_total(&response) == Some(have) => {
                return Ok(DownloadStep::Complete);
            }
            // The part is of another file: start anew.
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
                fs::remove_file(transfer.part).map_err(io(transfer.part))?;
                return Ok(DownloadStep::Broken {
                    detail: "the server sent another range than it was asked for".to_owned(),
                });
            }
            status if status.is_server_error() => {
                return Ok(DownloadStep::Broken { detail: format!("status {status}") });
            }
            status => return Err(failed(&shown, &format!("status {status}"))),
        };
        append(response, transfer.part, start, progress).await
    }
}

/// Writes what comes into `part` from `start` on.
async fn append(
    response: Response,
    part: &Path,
    start: u64,
    progress: DownloadProgress<'_>,
) -> Result<DownloadStep, WeightsError> {
    let total = response.content_length().map(|left| start.saturating_add(left));
    let mut file = OpenOptions::new().create(true).append(true).open(part).map_err(io(part))?;
    file.set_len(start).map_err(io(part))?;
    let mut have = start;
    let mut body = response.bytes_stream();
    while let Some(bytes) = body.next().await {
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => return Ok(DownloadStep::Broken { detail: chain(&error.without_url()) }),
        };
        file.write_all(&bytes).map_err(io(part))?;
        have = have.saturating_add(bytes.len() as u64);
        progress(have, total.unwrap_or(have));
    }
    match total {
        Some(total) if have < total => {
            Ok(DownloadStep::Broken { detail: format!("{have} of {total} bytes came") })
        }
        _ => Ok(DownloadStep::Complete),
    }
}

fn check(transfer: &Transfer<'_>) -> Result<(), WeightsError> {
    let Some(expected) = transfer.sha256 else { return Ok(()) };
    let mut file = File::open(transfer.part).map_err(io(transfer.part))?;
    let digest = FileDigest::copy(&mut file, transfer.part, |_| Ok(()))?;
    drop(file);
    let checked = digest.check(&shown(transfer.url), expected);
    if checked.is_err() {
        fs::remove_file(transfer.part).map_err(io(transfer.part))?;
    }
    checked
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

fn content_range(response: &Response) -> Option<&str> {
    response.headers().get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")
}

fn range_start(response: &Response) -> Option<u64> {
    content_range(response)?.split_once('-')?.0.trim().parse().ok()
}

fn range_total(response: &Response) -> Option<u64> {
    content_range(response)?.split_once('/')?.1.trim().parse().ok()
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

fn shown(url: &str) -> String {
    Url::parse(url).map_or_else(|_| "an address".to_owned(), |url| without_credentials(&url))
}

/// The address as errors may show it.
fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

fn failed(url: &str, detail: &str) -> WeightsError {
    WeightsError::Download { url: url.to_owned(), detail: detail.to_owned() }
}

/// An error with its causes, which HTTP clients hide.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
