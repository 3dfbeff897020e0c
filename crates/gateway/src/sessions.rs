//! Which conversation a request belongs to: by header, or by the beginning of its history. Knows no store.

use axum::http::HeaderMap;
use larder_proxy::record::cut_name;
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
    if let Some(name) = named(headers, HEADER)? {
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

/// The name in a header, unless it is empty.
///
/// # Errors
/// If it contains characters that are not allowed in a name.
pub fn named<'h>(headers: &'h HeaderMap, header: &str) -> Result<Option<&'h str>, RequestError> {
    let Some(name) = headers.get(header) else { return Ok(None) };
    // The store accepts no control characters, and would reject them after the work is done. What is not ASCII has no one
    // meaning in a header: to take the name for absent would mix conversations.
    match name.to_str().ok().filter(|name| !name.chars().any(char::is_control)) {
        Some(name) => Ok(Some(name.trim()).filter(|name| !name.is_empty())),
        None => Err(RequestError::invalid(format!(
            "{header}: a name holds no control characters, such as tabs, and nothing but ASCII; send printable characters \
             and spaces"
        ))),
    }
}
