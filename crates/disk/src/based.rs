//! Frames that are short because another content says most of it: a message that was condensed contains its original, as
//! a JSON string.
//!
//! The dictionary of such a frame is the base as the inside of a JSON string, or as it is if it is not text. How it is
//! escaped is part of the format.

use larder_text::hash::ContentHash;

use crate::frame::{COMPRESSION_LEVEL, other_hash};

/// The longest base, and the longest content that has one: the window of zstd must hold both.
const MAX_BYTES: usize = 512 << 10;
/// The shortest content that is worth it.
pub const MIN_BYTES: usize = 1 << 10;

/// Whether a content of a length may have a base of another length.
pub const fn fits(content: usize, base: usize) -> bool {
    MIN_BYTES <= content && content <= MAX_BYTES && base <= MAX_BYTES
}

/// The frame of a content on a base; `None` if zstd cannot use the base.
pub fn compress(content: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let mut compressor =
        zstd::bulk::Compressor::with_dictionary(COMPRESSION_LEVEL, &dictionary(base)).ok()?;
    compressor.compress(content).ok()
}

/// The content of a frame, at most `limit` bytes long, or why it is invalid.
///
/// # Errors
/// The frame has no such content.
pub fn decompress(frame: &[u8], base: &[u8], limit: usize, hash: ContentHash) -> Result<Vec<u8>, String> {
    let reader = zstd::bulk::Decompressor::with_dictionary(&dictionary(base));
    let content = reader.and_then(|mut reader| reader.decompress(frame, limit));
    let content = content.map_err(|error| error.to_string())?;
    if ContentHash::new(&content) != hash {
        return Err(other_hash());
    }
    Ok(content)
}

fn dictionary(base: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(base) else { return base.to_vec() };
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for char in text.chars() {
        match char {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{c}' => escaped.push_str("\\f"),
            control if control < ' ' => escaped.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => escaped.push(other),
        }
    }
    escaped.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_costs_little_more_than_its_original() {
        let digest = |at: u32| ContentHash::new(&at.to_le_bytes()).to_hex();
        let log: String = (0..800).map(|at| format!("\"{at}\"\t{}\n", digest(at))).collect();
        let message =
            serde_json::json!({"role": "tool", "tool_call_id": "call_7", "content": log}).to_string();
        let frame = compress(message.as_bytes(), log.as_bytes()).unwrap();
        assert!(frame.len() < 200, "{} bytes", frame.len());
        let hash = ContentHash::new(message.as_bytes());
        assert_eq!(decompress(&frame, log.as_bytes(), 1 << 20, hash).unwrap(), message.as_bytes());
        assert!(decompress(&frame, b"another base", 1 << 20, hash).is_err());
    }

    proptest! {
        #[test]
        fn any_content_comes_back_on_any_base(
            content in prop::collection::vec(any::<u8>(), 0..300),
            base in prop_oneof![prop::collection::vec(any::<u8>(), 0..300), ".{0,100}".prop_map(String::into_bytes)],
        ) {
            if let Some(frame) = compress(&content, &base) {
                prop_assert_eq!(decompress(&frame, &base, 1_000, ContentHash::new(&content)).unwrap(), content);
            }
        }

        #[test]
        fn text_is_escaped_as_json_is(text in "[\\PC\n\r\t\"\\\\\u{0}-\u{1f}]{0,60}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(dictionary(text.as_bytes()), &json.as_bytes()[1..json.len() - 1]);
        }
    }
}
