//! Breaking the gateway's reading and writing of the wire formats.

mod bodies;
mod diff;
pub(super) mod requests;
pub(super) mod results;
pub(super) mod streams;

use larder_proxy::wire::ApiDialect;

/// The formats that are fuzzed, as the first byte of a case chooses them. What differs in Bedrock's two is held by the
/// property tests of `proxy::wire`.
const FORMATS: [ApiDialect; 3] = [ApiDialect::Chat, ApiDialect::Responses, ApiDialect::Messages];

fn format_of(byte: u8) -> ApiDialect {
    FORMATS[usize::from(byte) % FORMATS.len()]
}

/// A text in a report: its beginning.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(120)]
}
