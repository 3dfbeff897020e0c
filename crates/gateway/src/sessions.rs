//! Which conversation a request belongs to: by header, or by the beginning of its history. Knows no store.

use axum::http::HeaderMap;
use larder_proxy::record::{MAX_NAME_BYTES, cut_name};
use larder_proxy::wire::Request;
use larder_text::hash::ContentHash;
use larder_text::message::Role;

use crate::error::RequestError;

/// The header in which a client may name its conversation.
pub const HEADER: &str = "x-larder-session";
/// Hexadecimal digits of a generated name.
const DIGITS: usize = 20;

/// The name of a request's conversation. Without the header, requests belong together if their history starts with
/// the same instructions and the same first user message: agents resend the whole history each time.
///
/// # Errors
/// If the header contains characters that are not allowed in a name.
pub fn identify(request: &Request<'_>, headers: &HeaderMap) -> Result<String, RequestError> {
    if let Some(name) = named(headers, HEADER) {
        // The store accepts no such names, and would reject it after the work is done.
        if name.chars().any(char::is_control) {
            return Err(RequestError::invalid(format!(
                "{HEADER}: the name of a conversation holds no control characters, such as tabs; send printable \
                 characters and spaces, of which the first {MAX_NAME_BYTES} bytes count"
            )));
        }
        return Ok(cut_name(name));
    }
    let first = |role: Role| request.items.iter().find(|item| item.role() == role);
    let mut begin = Vec::new();
    for item in [first(Role::System), first(Role::User)].into_iter().flatten() {
        let identity = match item.message {
            Some(message) => request.identity(message),
            None => item.identity(),
        };
        begin.extend_from_slice(identity.as_bytes());
    }
    let mut name = ContentHash::new(&begin).to_hex();
    name.truncate(DIGITS);
    Ok(format!("s-{name}"))
}

/// The text of a header, unless it is empty.
pub fn named<'h>(headers: &'h HeaderMap, header: &str) -> Option<&'h str> {
    headers.get(header).and_then(|name| name.to_str().ok()).map(str::trim).filter(|name| !name.is_empty())
}
