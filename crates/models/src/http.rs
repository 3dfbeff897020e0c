//! The one HTTP client (R4-1.1): certificates, proxies, limits, and the classification of broken connections. Knows
//! no provider's wire format.

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url, redirect};
use serde_json::Value;

use crate::aws::AwsSigner;
use crate::chat::ModelError;
use crate::failure::{ProviderFailure, printable};
use crate::secret::Secret;

/// Timeout for connecting to a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of one reply; no model writes more.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of an error body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The client, built on first use. It trusts the system's certificates (`SSL_CERT_FILE` and `SSL_CERT_DIR` replace
/// them on Unix), follows no redirect, and uses the environment's proxy, except for addresses that are near.
#[derive(Debug, Default)]
pub struct HttpClient {
    proxied: OnceLock<Result<Client, String>>,
    direct: OnceLock<Result<Client, String>>,
}

impl HttpClient {
    pub(crate) fn client(&self, url: &Url) -> Result<&Client, String> {
        let near = is_near(url);
        let client = (if near { &self.direct } else { &self.proxied }).get_or_init(|| {
            // rustls allows one provider per process; one installed by the embedding program is kept.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let builder = if near { Client::builder().no_proxy() } else { Client::builder() };
            builder
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(redirect::Policy::none())
                .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| chain(&error))
        });
        client.as_ref().map_err(Clone::clone)
    }
}

/// Whether an address is on this machine, or is one of those under which a cloud's machines find their credentials.
fn is_near(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => match host.trim_matches(['[', ']']).parse() {
            Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_link_local(),
            Ok(IpAddr::V6(address)) => address.is_loopback() || address.segments()[..2] == [0xfd00, 0xec2],
            Err(_) => false,
        },
        None => false,
    }
}

/// The address of a server, if the text is one.
pub fn address(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// The address and headers for calling one model.
#[derive(Debug)]
pub struct HttpEndpoint {
    http: Arc<HttpClient>,
    name: String,
    base: Url,
    headers: HeaderMap,
    secret: Option<Secret>,
    signer: Option<AwsSigner>,
}

impl HttpEndpoint {
    /// An endpoint called `name` in errors. The key goes into the header `key_header`, after `Bearer` if that is
    /// `authorization`.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when the address or a header cannot be used.
    pub fn new(
        http: Arc<HttpClient>,
        name: &str,
        base_url: &str,
        key: Option<(&str, Secret)>,
        extra: &[(&'static str, &str)],
    ) -> Result<Self, ModelError> {
        let wrong = |detail: String| ModelError::NotConfigured { provider: name.to_owned(), detail };
        let mut base =
            address(base_url).ok_or_else(|| wrong("base_url is not an http or https address".to_owned()))?;
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let mut headers = HeaderMap::new();
        for (header, value) in extra {
            let value =
                HeaderValue::from_str(value).map_err(|_| wrong(format!("header {header} is not ASCII")))?;
            headers.insert(*header, value);
        }
        let mut secret = None;
        if let Some((header, key)) = key {
            let header = HeaderName::from_bytes(header.as_bytes())
                .map_err(|_| wrong(format!("key_header `{header}` is not a header name")))?;
            let bearer = if header == reqwest::header::AUTHORIZATION { "Bearer " } else { "" };
            let mut value = HeaderValue::from_str(&format!("{bearer}{}", key.expose())).map_err(|_| {
                wrong("the key contains characters that are not allowed in HTTP headers".to_owned())
            })?;
            value.set_sensitive(true);
            headers.insert(header, value);
            secret = Some(key);
        }
        Ok(Self { http, name: name.to_owned(), base, headers, secret, signer: None })
    }

    /// Signs each request in place of carrying a key.
    #[must_use]
    pub fn with_signer(mut self, signer: AwsSigner) -> Self {
        self.signer = Some(signer);
        self
    }

    /// The address.
    pub const fn base(&self) -> &Url {
        &self.base
    }

    /// What errors call this endpoint.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Posts `body` to `path` under the base address and waits for the head of a successful reply.
    ///
    /// # Errors
    /// [`ModelError::Unreachable`] if nothing was sent; the class of [`ProviderFailure`] if the provider rejected it;
    /// [`ModelError::Protocol`] if the connection broke.
    pub async fn post(&self, path: &str, body: &Value) -> Result<HttpReply<'_>, ModelError> {
        let unset = |detail: String| ModelError::NotConfigured { provider: self.name.clone(), detail };
        let url = self.base.join(path).map_err(|error| unset(error.to_string()))?;
        let client = self.http.client(&url).map_err(unset)?;
        let body = body.to_string();
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.sign(&Method::POST, &url, &mut headers, body.as_bytes()).await?;
        let sent = client.post(url).headers(headers).body(body).send().await;
        let response = sent.map_err(|error| self.broken(&error))?;
        let mut reply = HttpReply { endpoint: self, response, read: 0 };
        if reply.response.status().is_success() {
            return Ok(reply);
        }
        let status = reply.response.status().as_u16();
        let retry_after = retry_after(reply.response.headers());
        // A rejection remains one even if its reason cannot be read completely.
        let body = reply.read_at_most(MAX_ERROR_BYTES).await;
        Err(ProviderFailure::from_body(status, &body, retry_after, self.secret.as_ref())
            .into_error(&self.name))
    }

    /// Whether requests carry a key or a signature of the endpoint's own.
    pub fn has_key(&self) -> bool {
        self.secret.is_some() || self.signer.is_some()
    }

    async fn sign(
        &self,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), ModelError> {
        let Some(signer) = &self.signer else { return Ok(()) };
        let signed = signer.sign(method, url, headers, body).await;
        signed.map_err(|detail| ModelError::NotConfigured { provider: self.name.clone(), detail })
    }

    /// Sends bytes to `path` under the base address and waits for the head of the reply with any status. The
    /// endpoint's own headers replace those of the same name.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if the path cannot be sent as it is; [`ModelError::Unreachable`] if nothing was sent;
    /// [`ModelError::Protocol`] if the connection broke.
    pub async fn forward(
        &self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, ModelError> {
        let unset = |detail: String| ModelError::NotConfigured { provider: self.name.clone(), detail };
        // Joining would let a path such as `//host/` name another server. Callers decide by the path that they give, so it
        // is sent as it is or not at all: setting it resolves `..` and escapes some characters.
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.base.clone();
        let whole = format!("{}{path}", self.base.path());
        url.set_path(&whole);
        url.set_query(query);
        if url.path() != whole {
            return Err(unset("the path cannot be sent as it is written".to_owned()));
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        let client = self.http.client(&url).map_err(unset)?;
        self.sign(&method, &url, &mut headers, &body).await?;
        let sent = client.request(method, url).headers(headers).body(body).send().await;
        sent.map_err(|error| self.broken(&error))
    }

    /// The reply violated the protocol.
    pub fn protocol(&self, detail: impl AsRef<str>) -> ModelError {
        ModelError::Protocol {
            provider: self.name.clone(),
            detail: printable(detail.as_ref(), self.secret.as_ref()),
        }
    }

    /// The provider reported an error after status 200.
    pub fn late_failure(&self, error: &Value) -> ModelError {
        ProviderFailure::from_event(error, self.secret.as_ref()).into_error(&self.name)
    }

    /// What a failure to send or to read means. Callers may pass the error on to clients, who may not learn the address
    /// of the server: the log alone has it.
    pub fn broken(&self, error: &reqwest::Error) -> ModelError {
        let provider = self.name.clone();
        let cause = printable(&chain(error), self.secret.as_ref());
        tracing::warn!(server = provider, cause, "connection_failed");
        let detail = ConnectionFault::of(error).as_str().to_owned();
        if error.is_connect() {
            ModelError::Unreachable { provider, detail }
        } else if error.is_builder() {
            ModelError::NotConfigured { provider, detail }
        } else {
            ModelError::Protocol { provider, detail }
        }
    }
}

/// Why a connection failed, without names and addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionFault {
    Refused,
    NoHost,
    NoRoute,
    TimedOut,
    Broken,
    Tls,
    Unsendable,
    NotHttp,
    Other,
}

impl ConnectionFault {
    fn of(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::TimedOut;
        }
        if error.is_builder() {
            return Self::Unsendable;
        }
        let causes = std::iter::successors(error.source(), |cause| (**cause).source());
        let found = causes.filter_map(|cause| match cause.downcast_ref::<std::io::Error>() {
            Some(error) => Self::of_io(error),
            None if cause.is::<rustls::Error>() => Some(Self::Tls),
            None if cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) => {
                Some(Self::NotHttp)
            }
            // The resolver's error has no public type.
            None if cause.to_string() == "dns error" => Some(Self::NoHost),
            None => None,
        });
        // The innermost cause says most. A connection that is closed in the middle of a message has none.
        found.last().unwrap_or(if error.is_connect() { Self::Other } else { Self::Broken })
    }

    fn of_io(error: &std::io::Error) -> Option<Self> {
        use std::io::ErrorKind;
        // What an I/O error wraps is not among its sources.
        if let Some(inner) = error.get_ref() {
            if inner.is::<rustls::Error>() {
                return Some(Self::Tls);
            }
            if let Some(fault) = inner.downcast_ref::<std::io::Error>().and_then(Self::of_io) {
                return Some(fault);
            }
        }
        match error.kind() {
            ErrorKind::ConnectionRefused => Some(Self::Refused),
            ErrorKind::TimedOut => Some(Self::TimedOut),
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Some(Self::NoRoute),
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof => Some(Self::Broken),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::NoHost => "no such host",
            Self::NoRoute => "no route to the host",
            Self::TimedOut => "timed out",
            Self::Broken => "the connection broke",
            Self::Tls => "no secure connection, as when a certificate is not trusted",
            Self::Unsendable => "the request cannot be written as HTTP",
            Self::NotHttp => "it is not HTTP, as when an address with http:// belongs to a server with TLS",
            Self::Other => "no connection",
        }
    }
}

/// A successful reply whose body has not been read yet.
#[derive(Debug)]
pub struct HttpReply<'a> {
    endpoint: &'a HttpEndpoint,
    response: Response,
    read: usize,
}

impl<'a> HttpReply<'a> {
    /// The called endpoint.
    pub fn endpoint(&self) -> &'a HttpEndpoint {
        self.endpoint
    }

    /// The next bytes of the body, `None` at its end.
    ///
    /// # Errors
    /// [`ModelError::Protocol`] when the connection breaks or the body is larger than any reply.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let chunk = self.response.chunk().await.map_err(|error| self.endpoint.broken(&error))?;
        self.read = self.read.saturating_add(chunk.as_ref().map_or(0, Bytes::len));
        if self.read > MAX_REPLY_BYTES {
            return Err(self.endpoint.protocol(format!("the reply has more than {MAX_REPLY_BYTES} bytes")));
        }
        Ok(chunk)
    }

    /// The whole body, which must be a JSON object.
    ///
    /// # Errors
    /// [`ModelError::Protocol`] as [`HttpReply::chunk`], and when the body is anything else.
    pub async fn json(mut self) -> Result<Value, ModelError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            body.extend_from_slice(&bytes);
        }
        match serde_json::from_slice(&body) {
            Ok(json @ Value::Object(_)) => Ok(json),
            Ok(_) => Err(self.endpoint.protocol("the reply is not a JSON object")),
            Err(error) => Err(self.endpoint.protocol(format!("the reply is not JSON: {error}"))),
        }
    }

    /// Whether the server declares the body as JSON or HTML rather than an event stream.
    pub fn is_no_stream(&self) -> bool {
        let content_type = self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        content_type.is_some_and(|kind| kind.starts_with("application/json") || kind.starts_with("text/html"))
    }

    async fn read_at_most(&mut self, limit: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < limit {
            match self.response.chunk().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) | Err(_) => break,
            }
        }
        body.truncate(limit);
        body
    }
}

/// `retry-after-ms`, else `retry-after` in seconds. The date form is ignored: it would need a clock.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    number("retry-after-ms")
        .map(|ms| ms / 1_000.0)
        .or_else(|| number("retry-after"))
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// An error with its causes; reqwest's outermost message alone does not explain the problem.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Runs `call` for at most `limit`.
///
/// # Errors
/// [`ModelError::Timeout`] when the limit passes, and those of `call`.
pub async fn within<T>(
    name: &str,
    limit: Duration,
    call: impl Future<Output = Result<T, ModelError>>,
) -> Result<T, ModelError> {
    tokio::time::timeout(limit, call)
        .await
        .unwrap_or_else(|_| Err(ModelError::Timeout { provider: name.to_owned(), after: limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_reads_both_headers_and_no_nonsense() {
        let read = |name: &'static str, value: &'static str| {
            retry_after(&HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]))
        };
        assert_eq!(read("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for bad in ["-1", "nan", "inf", "1e400", "Wed, 21 Oct 2026 07:28:00 GMT", ""] {
            assert_eq!(read("retry-after", bad), None, "{bad}");
        }
    }

    #[test]
    fn only_near_addresses_bypass_the_proxy() {
        for (url, near) in [
            ("http://127.0.0.1:8000/v1", true),
            ("http://localhost/", true),
            ("http://[::1]:1/", true),
            ("http://169.254.169.254/latest/api/token", true),
            ("http://[fd00:ec2::254]/", true),
            ("http://localhost.example.com/", false),
            ("https://10.0.0.1/", false),
        ] {
            assert_eq!(is_near(&Url::parse(url).unwrap()), near, "{url}");
        }
    }

    #[tokio::test]
    async fn a_server_that_speaks_no_http_is_told_from_a_connection_that_breaks() {
        use std::io::{Read as _, Write as _};
        for (said, words) in
            [(&b"\x15\x03\x01\x00\x02\x02\x46"[..], "not HTTP"), (b"", "the connection broke")]
        {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                stream.write_all(said).unwrap();
            });
            let endpoint = HttpEndpoint::new(Arc::default(), "m", &address, None, &[]).unwrap();
            let error = endpoint.post("chat", &Value::Null).await.unwrap_err();
            server.join().unwrap();
            assert!(matches!(error, ModelError::Protocol { .. }), "{error:?}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn unusable_addresses_and_keys_say_what_is_wrong_and_print_no_key() {
        let endpoint = |url: &str, header: &str, key: &str| {
            let key = Some((header, Secret::new(key).unwrap()));
            HttpEndpoint::new(Arc::default(), "mind", url, key, &[])
        };
        for (url, header, key, words) in [
            ("ftp://x/", "authorization", "k", "not an http or https address"),
            ("nonsense", "authorization", "k", "not an http or https address"),
            ("http://x", "bad header", "k", "not a header name"),
            ("http://x", "authorization", "secret\u{7}key", "not allowed in HTTP headers"),
        ] {
            let error = endpoint(url, header, key).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("secret"), "{error}");
        }
        let good = endpoint("http://x/v1", "authorization", "hidden").unwrap();
        assert!(!format!("{good:?}").contains("hidden"));
        assert_eq!(good.base.as_str(), "http://x/v1/");
    }
}
