//! Which conversation a request belongs to: by header, or by how its history begins. Knows no store.

use axum::http::HeaderMap;
use larder_core::hash::ContentHash;
use larder_core::message::Role;

use crate::exchange::cut_name;
use crate::wire::Request;

/// The header in which a client may name its conversation.
pub const HEADER: &str = "x-larder-session";
/// Hexadecimal digits of a name that is made here.
const DIGITS: usize = 20;

/// The name of a request's conversation. Without the header, requests belong together whose history begins with the
/// same instructions and the same first message of the user: agents send the whole history again each time.
pub fn of(request: &Request<'_>, headers: &HeaderMap) -> String {
    let named = headers.get(HEADER).and_then(|name| name.to_str().ok()).map(str::trim);
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        return cut_name(name);
    }
    let first = |role: Role| request.items.iter().find(|item| item.role() == role);
    let mut begin = Vec::new();
    for item in [first(Role::System), first(Role::User)].into_iter().flatten() {
        let identity = match item.message {
            Some(message) => request.identity(message),
            None => ContentHash::of(item.text().as_bytes()),
        };
        begin.extend_from_slice(identity.as_bytes());
    }
    let mut name = ContentHash::of(&begin).to_hex();
    name.truncate(DIGITS);
    format!("s-{name}")
}
