//! The origin of a request: this machine or another, one of Larder's pages or another site's. Knows no keys.
//!
//! Browsers let any page send requests to any address, so neither a cookie nor a local address proves that the user
//! wanted the request. The headers that browsers add, and pages cannot change, do.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::{FORWARDED, HOST, ORIGIN};

/// What proxies add. With one of these the peer is a proxy, and the caller anyone.
const PROXIED: [&str; 3] = ["x-forwarded-for", "x-forwarded-host", "x-real-ip"];

/// Whether the request comes from this machine, under a name that no other site can take over.
pub(super) fn is_local(headers: &HeaderMap, peer: SocketAddr) -> bool {
    let proxied = headers.contains_key(FORWARDED) || PROXIED.iter().any(|name| headers.contains_key(*name));
    let named_so = match headers.get(HOST) {
        // A site may have its name resolve to 127.0.0.1, and its page in a browser then calls us by that name.
        Some(host) => host.to_str().is_ok_and(is_loopback_name),
        None => true,
    };
    peer.ip().to_canonical().is_loopback() && !proxied && named_so
}

fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Whether a page of another site sent the request. Programs other than browsers send no such headers and count as
/// not foreign.
pub(super) fn is_foreign(headers: &HeaderMap) -> bool {
    said(headers) == Some(false)
}

/// Whether the browser reports that one of Larder's pages sent the request.
pub(super) fn is_own(headers: &HeaderMap) -> bool {
    said(headers) == Some(true)
}

/// Whether one of Larder's pages sent the request, if any header says so.
fn said(headers: &HeaderMap) -> Option<bool> {
    let site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
    if matches!(site, Some(b"same-origin" | b"none")) {
        return Some(true);
    }
    match headers.get(ORIGIN) {
        Some(origin) => Some(origin.to_str().is_ok_and(|origin| is_ours(origin, headers))),
        None => site.map(|_| false),
    }
}

/// Whether an origin is the request's target, or an application with its own scheme, which is not a web page.
fn is_ours(origin: &str, headers: &HeaderMap) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return true,
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let plain = |authority: &str| authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase();
    !authority.is_empty() && plain(authority) == plain(host)
}

/// Whether the browser uses HTTPS, according to a proxy's header.
pub(super) fn is_https(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|scheme| scheme.as_bytes().eq_ignore_ascii_case(b"https"))
}
