//! Pointers as resources: `larder://pointer/ID`, with a fragment for a part.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use larder_text::pointer::Pointer;
use rmcp::model::{ErrorData, ReadResourceResult, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::{McpCaller, brief};

const SCHEME: &str = "larder://pointer/";

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{SCHEME}{{id}}"), "pointer").with_title("Text behind a pointer").with_description(
        "The original bytes behind a pointer. #L10-40 (lines) or #B0-1024 (bytes) after the id selects a part.",
    )
}

/// The bytes behind the URI of a resource, as text if they are text.
pub(super) fn read(caller: &McpCaller, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = |why: String| {
        ErrorData::resource_not_found(format!("{}: {why}", brief(uri)), Some(json!({"uri": brief(uri)})))
    };
    // Clients that fill in the template percent-encode `#`.
    let id = uri.strip_prefix(SCHEME).map(|id| id.replace("%23", "#"));
    let id = id.ok_or_else(|| missing(format!("expected {SCHEME} and a pointer")))?;
    let pointer: Pointer = id.parse().map_err(|error| missing(format!("{error}")))?;
    let bytes =
        caller.engine.store.pointers().resolve(&pointer).map_err(|error| missing(error.to_string()))?;
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri)
            .with_mime_type("application/octet-stream"),
    };
    Ok(ReadResourceResult::new(vec![contents]))
}
