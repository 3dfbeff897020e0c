//! One GET of the open web: the address is resolved, checked and pinned before anything is sent.
//!
//! Whoever follows links that strangers wrote reaches servers through this alone. It follows no redirect (the caller
//! decides about each), sends no cookie and no key, and goes through no proxy, since a proxy would resolve the name a
//! second time. Knows no page and no robots.txt.

mod address;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Response, Url, redirect};

pub use self::address::{Guard, Network};

/// What pages and their robots.txt know us as.
const USER_AGENT: &str = concat!("larder/", env!("CARGO_PKG_VERSION"));
/// Time to reach a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct WebRequest<'a> {
    /// An address of `http` or `https`.
    pub url: &'a str,
    /// The media types that are wanted, as the header `accept` has them.
    pub accept: &'a str,
    /// Bytes of the body that are read at most.
    pub limit: usize,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebReply {
    /// The status, redirects and errors included.
    pub status: u16,
    /// Its media type and charset, as stated.
    pub content_type: Option<String>,
    /// Where it sends us instead, as an absolute address.
    pub location: Option<String>,
    /// The body, or its beginning.
    pub body: Vec<u8>,
    /// Whether the body goes on beyond the limit.
    pub truncated: bool,
    /// The requested address, for requests to the same server.
    pub peer: IpAddr,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The text is not an address that may be visited.
    #[error("{url:?} cannot be visited: {why}; give a whole address such as https://example.com/page")]
    Address {
        /// The text.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The name leads nowhere.
    #[error("{host} has no address: {why}")]
    Unknown {
        /// The name.
        host: String,
        /// What the resolver says.
        why: String,
    },
    /// The name leads to a place that pages have no business with.
    #[error(
        "{host} is at {address}, which is {kind}; pages may only be visited at public addresses, or at those that \
         `tools.private_hosts` allows"
    )]
    Private {
        /// The name.
        host: String,
        /// One of its addresses.
        address: IpAddr,
        /// What kind of address that is.
        kind: &'static str,
    },
    /// The server could not be reached, or sent no answer.
    #[error("{host} did not answer: {why}")]
    Broken {
        /// The name.
        host: String,
        /// Why.
        why: String,
    },
    /// The server broke off in the middle of the body.
    #[error("{host} broke off after {bytes} bytes of its answer: {why}")]
    Cut {
        /// The name.
        host: String,
        /// Bytes of the body that were received.
        bytes: usize,
        /// Why.
        why: String,
    },
    /// The body is packed in a way that was not asked for.
    #[error("{host} sent its page as {encoding}, which was not asked for")]
    Encoded {
        /// The name.
        host: String,
        /// How it is packed.
        encoding: String,
    },
}

/// Asks once and reads the body up to the limit. It has no timeout of its own beyond that of connecting.
///
/// # Errors
/// [`WebError`]; a status that says no is none.
pub fn get<'a>(request: WebRequest<'a>, guard: &'a Guard) -> BoxFuture<'a, Result<WebReply, WebError>> {
    async move {
        let url = visitable(request.url)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let address = resolve(&url, &host, guard).await?;
        let broken = |why: String| WebError::Broken { host: host.clone(), why };
        let client = pinned(&host, address).map_err(broken)?;
        let sent = client
            .get(url.clone())
            .header(ACCEPT, request.accept)
            .header(ACCEPT_ENCODING, "identity")
            .send()
            .await
            .map_err(|error| broken(crate::http::chain(&error)))?;
        let headers = sent.headers().clone();
        let status = sent.status().as_u16();
        let packed =
            text_of(&headers, CONTENT_ENCODING.as_str()).filter(|how| !how.eq_ignore_ascii_case("identity"));
        if let Some(encoding) = packed {
            return Err(WebError::Encoded { host, encoding });
        }
        let (body, truncated) =
            read(sent, request.limit).await.map_err(|(bytes, why)| WebError::Cut { host, bytes, why })?;
        let location =
            text_of(&headers, LOCATION.as_str()).and_then(|to| url.join(&to).ok()).map(String::from);
        let content_type = text_of(&headers, CONTENT_TYPE.as_str());
        Ok(WebReply { status, content_type, location, body, truncated, peer: address.ip() })
    }
    .boxed()
}

/// A client for servers that the settings name: it follows no redirect.
///
/// # Errors
/// What keeps it from being built, such as certificates that cannot be read.
pub fn client() -> Result<Client, String> {
    install_tls();
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::none())
        .user_agent(USER_AGENT)
        .build()
        .map_err(|error| crate::http::chain(&error))
}

fn install_tls() {
    // rustls wants one provider per process; where the embedding program has chosen one, its choice is kept.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The address that a text is, if pages may be visited at such a one.
///
/// # Errors
/// [`WebError::Address`].
pub fn visitable(text: &str) -> Result<Url, WebError> {
    let wrong = |why| WebError::Address { url: text.chars().take(200).collect(), why };
    let url = Url::parse(text).map_err(|_| wrong("it is no address"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("only http and https can be visited"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a user name or password"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("it names no host"));
    }
    Ok(url)
}

/// The address to connect to. A name that leads to a public and a private address at once is refused: it was set up so.
async fn resolve(url: &Url, host: &str, guard: &Guard) -> Result<SocketAddr, WebError> {
    let port = url.port_or_known_default().unwrap_or(80);
    let bare = host.trim_matches(['[', ']']);
    let unknown = |why: String| WebError::Unknown { host: host.to_owned(), why };
    let found = tokio::net::lookup_host((bare, port)).await.map_err(|error| unknown(error.to_string()))?;
    let mut first = None;
    for address in found {
        if let Some(kind) = guard.refuses(address.ip()) {
            return Err(WebError::Private { host: host.to_owned(), address: address.ip(), kind });
        }
        first.get_or_insert(address);
    }
    first.ok_or_else(|| unknown("the name leads to no address".to_owned()))
}

/// A client that reaches `host` at this address only.
fn pinned(host: &str, address: SocketAddr) -> Result<Client, String> {
    install_tls();
    Client::builder()
        .no_proxy()
        .resolve(host, address)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::none())
        .user_agent(USER_AGENT)
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| crate::http::chain(&error))
}

/// The body and whether it goes on beyond the limit, or the bytes after which it broke off and why.
async fn read(mut response: Response, limit: usize) -> Result<(Vec<u8>, bool), (usize, String)> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| (body.len(), crate::http::chain(&error)))?;
        let Some(chunk) = chunk else { return Ok((body, false)) };
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body, true));
        }
        body.extend_from_slice(&chunk);
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
