//! Raw pass-through: forwards bytes and headers to a model's server and returns its bytes as they arrive. Owns which
//! headers are forwarded, what is retried, and the measured waiting time; knows no wire format.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};

use crate::chat::ModelError;
use crate::http::{HttpEndpoint, retry_after};
use crate::table::Provider;

/// Headers that belong to one connection (RFC 9110 §7.6.1), not to the message.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// Request headers that this client sets itself, or that concern only a proxy in front of it. Replies arrive
/// uncompressed, since they are read on the way.
const OWN: [HeaderName; 5] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::ACCEPT_ENCODING,
    header::PROXY_AUTHORIZATION,
    header::COOKIE,
];
/// Beginning of the names of headers that are Larder's own.
const LARDER: &str = "x-larder-";
/// Pause before a connection is retried.
const PAUSE: Duration = Duration::from_millis(100);

/// A server for models that are not in the model table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// What it speaks.
    pub provider: Provider,
    /// Its address.
    pub base_url: String,
    /// The source of its key; if `None`, clients send their own.
    pub key: Option<KeySource>,
}

/// The source of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable.
    Environment(String),
    /// A file, relative to `larder.toml`.
    File(PathBuf),
    /// No key: requests are signed with the AWS credentials of this profile.
    Aws(String),
}

impl Upstream {
    /// The key file, if that is the key's source.
    pub fn key_file(&self) -> Option<&Path> {
        match &self.key {
            Some(KeySource::File(file)) => Some(file),
            _ => None,
        }
    }

    /// The profile whose AWS credentials sign its requests.
    pub fn aws_profile(&self) -> Option<&str> {
        match &self.key {
            Some(KeySource::Aws(profile)) => Some(profile),
            _ => None,
        }
    }
}

/// A server that requests pass to.
#[derive(Debug)]
pub struct UpstreamTarget {
    endpoint: HttpEndpoint,
    provider: Provider,
}

/// A request as it leaves.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Its method.
    pub method: Method,
    /// What follows the server's base address, query included; without a leading slash.
    pub path: String,
    /// Its headers, as selected by [`passing`].
    pub headers: HeaderMap,
    /// Its bytes.
    pub body: Bytes,
}

/// Timeouts and retries. A request is retried only if the server has certainly not processed it: if the connection
/// failed, or the server refused it and stated when to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryLimits {
    /// Maximum retries of a request.
    pub retries: u32,
    /// The longest `retry-after` that is waited for; zero hands every refusal to the client.
    pub longest_pause: Duration,
    /// Time for the head of a reply, and between two pieces of its body.
    pub silence: Duration,
}

/// A reply as it arrives.
#[derive(Debug)]
pub struct Incoming {
    /// Its status.
    pub status: StatusCode,
    /// Its headers, without those of the connection.
    pub headers: HeaderMap,
    target: Arc<UpstreamTarget>,
    response: Response,
    silence: Duration,
    waited: Duration,
}

impl UpstreamTarget {
    pub(crate) const fn new(endpoint: HttpEndpoint, provider: Provider) -> Self {
        Self { endpoint, provider }
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        self.endpoint.name()
    }

    /// What it speaks.
    pub const fn provider(&self) -> Provider {
        self.provider
    }

    /// The path below the server's address for a path of the gateway: some base URLs contain its start already.
    pub fn path(&self, path: &str) -> String {
        let path = path.trim_start_matches('/');
        let contained = self.provider.info().server.map_or("", |server| server.path_in_base_url);
        path.strip_prefix(contained).unwrap_or(path).to_owned()
    }

    /// Whether requests carry a configured key. Otherwise clients send their own.
    pub fn has_key(&self) -> bool {
        self.endpoint.has_key()
    }

    /// Sends a request and waits for the head of the reply with any status.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if the path cannot be sent as it is; [`ModelError::Unreachable`] if
    /// nothing was sent; [`ModelError::Protocol`] if the connection broke; [`ModelError::Timeout`] if the server
    /// stays silent.
    pub async fn send(
        self: &Arc<Self>,
        outgoing: &Outgoing,
        patience: RetryLimits,
    ) -> Result<Incoming, ModelError> {
        let started = Instant::now();
        let mut left = patience.retries;
        loop {
            let Outgoing { method, path, headers, body } = outgoing.clone();
            let sent = self.endpoint.forward(method, &path, headers, body);
            let sent = tokio::time::timeout(patience.silence, sent).await;
            let sent = sent.unwrap_or_else(|_| Err(self.silent(patience.silence)));
            let pause = match &sent {
                Ok(response) => refusal_pause(response, patience.longest_pause),
                Err(ModelError::Unreachable { .. }) => Some(PAUSE),
                Err(_) => None,
            };
            match pause.filter(|_| left > 0) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return sent.map(|response| self.incoming(response, patience.silence, started)),
            }
            left -= 1;
        }
    }

    fn incoming(self: &Arc<Self>, mut response: Response, silence: Duration, started: Instant) -> Incoming {
        let mut headers = std::mem::take(response.headers_mut());
        remove_hop_by_hop(&mut headers);
        let (status, waited) = (response.status(), started.elapsed());
        Incoming { status, headers, target: Arc::clone(self), response, silence, waited }
    }

    fn silent(&self, after: Duration) -> ModelError {
        ModelError::Timeout { provider: self.name().to_owned(), after }
    }
}

/// The pause before a refused request is retried; `None` if it is not.
fn refusal_pause(response: &Response, longest: Duration) -> Option<Duration> {
    let refused =
        matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    retry_after(response.headers()).filter(|pause| refused && *pause <= longest)
}

impl Incoming {
    /// The next bytes of the body, `None` at its end.
    ///
    /// # Errors
    /// [`ModelError::Protocol`] when the connection breaks, [`ModelError::Timeout`] when the server stays silent.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let started = Instant::now();
        let chunk = tokio::time::timeout(self.silence, self.response.chunk()).await;
        self.waited += started.elapsed();
        match chunk {
            Ok(chunk) => chunk.map_err(|error| self.target.endpoint.broken(&error)),
            Err(_) => Err(self.target.silent(self.silence)),
        }
    }

    /// The whole body, if it has at most `limit` bytes.
    ///
    /// # Errors
    /// As [`Incoming::chunk`]; [`ModelError::Protocol`] when the body is larger.
    pub async fn body(&mut self, limit: usize) -> Result<Bytes, ModelError> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut body = Vec::from(first);
        let mut next = Some(second);
        while let Some(bytes) = next {
            if body.len().saturating_add(bytes.len()) > limit {
                let words = format!("the reply has more than {limit} bytes");
                return Err(self.target.endpoint.protocol(words));
            }
            body.extend_from_slice(&bytes);
            next = self.chunk().await?;
        }
        Ok(body.into())
    }

    /// Time spent waiting for the server so far, pauses before another try included.
    pub const fn waited(&self) -> Duration {
        self.waited
    }
}

/// The headers of a client's request that pass on: all but those of the connection, those that this client writes
/// itself and Larder's own. `keeps_key` says whether the client's credentials pass too.
pub fn passing(headers: &HeaderMap, keeps_key: impl Fn(&HeaderName, &HeaderValue) -> bool) -> HeaderMap {
    let named = named_by_connection(headers);
    let mut passing = HeaderMap::with_capacity(headers.keys_len());
    for (name, value) in headers {
        let stays = HOP_BY_HOP.contains(name)
            || OWN.contains(name)
            || named.contains(name)
            || name.as_str().starts_with(LARDER);
        // A header may come more than once, and each value may be another's key.
        if !stays && (!is_credential(name) || keeps_key(name, value)) {
            passing.append(name.clone(), value.clone());
        }
    }
    passing
}

/// Whether a header carries a key.
fn is_credential(name: &HeaderName) -> bool {
    *name == header::AUTHORIZATION
        || matches!(name.as_str(), "x-api-key" | "api-key" | "x-amz-security-token")
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = named_by_connection(headers);
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// The headers that a connection names as its own.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_and_ours_stay_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "1"),
            ("transfer-encoding", "chunked"),
            ("host", "gateway"),
            ("content-length", "3"),
            ("accept-encoding", "gzip"),
            ("cookie", "a=b"),
            ("x-larder-session", "s"),
            ("authorization", "Bearer lk-1"),
            ("x-api-key", "sk-2"),
            ("anthropic-beta", "a"),
            ("anthropic-version", "2026-10-21"),
            ("content-type", "application/json"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.append("anthropic-beta", HeaderValue::from_static("b"));
        let kept = passing(&headers, |_, value| !value.as_bytes().starts_with(b"Bearer lk-"));
        let mut names: Vec<_> =
            kept.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        names.sort_unstable();
        let expected = [
            ("anthropic-beta", "a"),
            ("anthropic-beta", "b"),
            ("anthropic-version", "2026-10-21"),
            ("content-type", "application/json"),
            ("x-api-key", "sk-2"),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn every_value_of_a_header_with_keys_is_looked_at() {
        let ours = |value: &str| value.contains("lk-");
        let cases: [(&[&'static str], &[&'static str]); 3] = [
            (&["Bearer sk-1", "Bearer lk-2"], &["Bearer sk-1"]),
            (&["Bearer lk-1", "Bearer sk-2", "Bearer lk-3", "Bearer sk-4"], &["Bearer sk-2", "Bearer sk-4"]),
            (&["Bearer lk-1", "Bearer lk-2"], &[]),
        ];
        for (given, expected) in cases {
            for name in ["authorization", "x-api-key", "api-key"] {
                let mut headers = HeaderMap::new();
                for value in given.iter().copied() {
                    headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
                }
                let kept = passing(&headers, |_, value| !ours(value.to_str().unwrap()));
                assert!(kept.get_all(name).iter().eq(expected.iter().copied()), "{name}: {kept:?}");
                assert_eq!(kept.len(), expected.len());
            }
        }
    }
}
