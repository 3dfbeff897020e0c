//! Frames that are short because another content says most of it: a message that was condensed contains its original, as
//! a JSON string.
//!
//! Nearly always it is the longest string of the message and escaped as `serde_json` and `JSON.stringify` do it. Then the
//! frame holds what is around it. Otherwise it is a frame of zstd whose dictionary is the base as the inside of a JSON
//! string, or as it is if it is not text. How the base is escaped is part of the format.

use std::ops::Range;

use larder_text::hash::ContentHash;
use larder_text::json;

use crate::frame::{COMPRESSION_LEVEL, compress as packed, other_hash};

/// The longest base, and the longest content that has one, where the base is a dictionary: the window of zstd must hold
/// both.
const MAX_BYTES: usize = 512 << 10;
/// The shortest content that is worth it.
pub const MIN_BYTES: usize = 1 << 10;

/// The first byte of a frame that holds what is around its base; a frame of zstd has another. The length of what comes
/// before the base follows, in four bytes, and then one frame of zstd of both parts.
const AROUND: u8 = 1;
/// Bytes before that frame of zstd.
const HEAD: usize = 5;

/// The frame of a content on a base of this length, if that is much shorter than the content; `limit` is the longest content
/// that is read. `read` gives the base where it is needed, if it is whole.
///
/// # Errors
/// Those of `read`.
pub fn frame<E>(
    content: &[u8],
    (base, length): (ContentHash, u64),
    limit: usize,
    read: impl FnOnce() -> Result<Option<Vec<u8>>, E>,
) -> Result<Option<Vec<u8>>, E> {
    if content.len() < MIN_BYTES || content.len() > limit {
        return Ok(None);
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    // Escaping makes nothing shorter.
    let around = if length <= content.len() { around(content, base) } else { None };
    let frame = match around {
        None if content.len() <= MAX_BYTES && length <= MAX_BYTES => {
            read()?.and_then(|base| compress(content, &base))
        }
        around => around,
    };
    Ok(frame.filter(|frame| frame.len() < content.len() / 2))
}

/// The frame of a content around its base, which need not be read; `None` if the content does not contain it as it would
/// be escaped, or its other parts are most of it.
fn around(content: &[u8], base: ContentHash) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(content).ok()?;
    let is_most = |literal: &Range<usize>| content.len() - literal.len() < literal.len().min(MAX_BYTES);
    let literal = json::longest_literal(text).filter(is_most)?;
    let inside = &text[literal.clone()];
    if !json::is_shortest(inside) || ContentHash::new(json::decode(inside).as_bytes()) != base {
        return None;
    }
    let (before, after) = (&content[..=literal.start], &content[literal.end - 1..]);
    let mut frame = vec![AROUND];
    frame.extend(u32::try_from(before.len()).ok()?.to_le_bytes());
    frame.extend(packed(&[before, after].concat()).ok()?);
    Some(frame)
}

/// The frame of a content with a base as its dictionary; `None` if zstd cannot use the base.
fn compress(content: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::with_dictionary(COMPRESSION_LEVEL, &escaped(base)).ok()?;
    compressor.compress(content).ok()
}

/// The content of a frame, at most `limit` bytes long, or why it is invalid.
///
/// # Errors
/// The frame has no such content.
pub fn decompress(frame: &[u8], base: &[u8], limit: usize, hash: ContentHash) -> Result<Vec<u8>, String> {
    let content = match frame.first_chunk::<HEAD>() {
        Some([AROUND, length @ ..]) => {
            let others = zstd::bulk::decompress(&frame[HEAD..], limit).map_err(|error| error.to_string())?;
            let before = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let (before, after) = others.split_at_checked(before).ok_or_else(other_hash)?;
            [before, &escaped(base), after].concat()
        }
        _ => {
            let reader = zstd::bulk::Decompressor::with_dictionary(&escaped(base));
            let content = reader.and_then(|mut reader| reader.decompress(frame, limit));
            content.map_err(|error| error.to_string())?
        }
    };
    if content.len() > limit || ContentHash::new(&content) != hash {
        return Err(other_hash());
    }
    Ok(content)
}

/// A base as the inside of a JSON string.
fn escaped(base: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(base).map(serde_json::to_string) {
        Ok(Ok(literal)) => json::unquoted(&literal).as_bytes().to_vec(),
        _ => base.to_vec(),
    }
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

    #[test]
    fn a_message_of_any_length_is_kept_as_what_is_around_its_original() {
        let rows: Vec<_> =
            (0..20_000).map(|id| serde_json::json!({"id": id, "note": "é\u{1}\"\n"})).collect();
        let original = serde_json::to_string_pretty(&rows).unwrap();
        assert!(original.len() > MAX_BYTES);
        let message = serde_json::json!({"role": "tool", "id": "call_7", "content": [{"text": original}]});
        let message = message.to_string();
        let (base, hash) = (ContentHash::new(original.as_bytes()), ContentHash::new(message.as_bytes()));
        let frame = around(message.as_bytes(), base).unwrap();
        assert!(frame.len() < 100, "{} bytes", frame.len());
        let read = |frame: &[u8], base: &[u8], limit| decompress(frame, base, limit, hash);
        assert_eq!(read(&frame, original.as_bytes(), message.len()).unwrap(), message.as_bytes());
        assert!(read(&frame, original.as_bytes(), message.len() - 1).is_err());
        assert!(read(&frame, b"another base", message.len()).is_err());
        assert!(read(&frame[..HEAD], original.as_bytes(), message.len()).is_err());
        let damaged = [&[AROUND, 255, 255, 255, 255], &frame[HEAD..]].concat();
        assert!(read(&damaged, original.as_bytes(), message.len()).is_err());
        assert_eq!(around(message.as_bytes(), hash), None, "of another content");
        let spelled_out = message.replace('é', "\\u00e9");
        assert_eq!(around(spelled_out.as_bytes(), base), None, "escaped in another way");
    }

    proptest! {
        #[test]
        fn what_is_around_a_base_gives_the_content_with_it(
            (before, text, after) in ("[\\PC\"\\\\]{0,20}", "[\\PC\n\r\t\"\\\\\u{0}-\u{1f}]{0,60}", "[\\PC\"]{0,20}"),
        ) {
            let content = format!("{before}{}{after}", serde_json::to_string(&text).unwrap());
            if let Some(frame) = around(content.as_bytes(), ContentHash::new(text.as_bytes())) {
                let hash = ContentHash::new(content.as_bytes());
                prop_assert_eq!(decompress(&frame, text.as_bytes(), 1_000, hash).unwrap(), content.as_bytes());
            }
        }

        #[test]
        fn any_content_comes_back_on_any_base(
            content in prop::collection::vec(any::<u8>(), 0..300),
            base in prop_oneof![prop::collection::vec(any::<u8>(), 0..300), ".{0,100}".prop_map(String::into_bytes)],
        ) {
            if let Some(frame) = compress(&content, &base) {
                prop_assert_eq!(decompress(&frame, &base, 1_000, ContentHash::new(&content)).unwrap(), content);
            }
        }
    }

    #[test]
    fn how_a_base_is_escaped_stays_the_same() {
        let base = "\"\\/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é\u{2028}😀";
        let expected = "\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é\u{2028}😀";
        assert_eq!(escaped(base.as_bytes()), expected.as_bytes());
        assert_eq!(escaped(b"\xff\n"), b"\xff\n", "it is not text");
    }
}
