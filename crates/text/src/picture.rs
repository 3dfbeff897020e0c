//! Pictures: which files are some, and their size in pixels, read from the beginning of the file. Knows no model.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::message::Content;

/// Maximum base64 characters read: a camera's metadata precedes the size.
const MAX_READ: usize = 256 << 10;
/// Bytes up to the end of a GIF's screen descriptor, and of the size in any WebP.
const GIF_HEADER: usize = 13;
const WEBP_HEADER: usize = 30;
/// The marker of a JPEG's pixels.
const START_OF_SCAN: u8 = 0xda;

/// A picture that models can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    media_type: &'static str,
    data: Arc<str>,
}

impl Picture {
    /// The picture in a file; `None` if it is no PNG, JPEG, GIF or WebP.
    pub fn from_file(bytes: &[u8]) -> Option<Self> {
        let media_type = match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
            [0xff, 0xd8, 0xff, ..] => "image/jpeg",
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
            _ => return None,
        };
        Some(Self { media_type, data: STANDARD.encode(bytes).into() })
    }

    /// The picture in a file that is written in base64, with or without padding and line breaks; `None` if it is none.
    pub fn from_base64(data: &str) -> Option<Self> {
        let digits: Vec<u8> =
            data.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=').collect();
        Self::from_file(&STANDARD_NO_PAD.decode(digits).ok()?)
    }

    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub const fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Whether the file's header can be read: it states a size, as far as this is read of its format.
    pub fn is_readable(&self) -> bool {
        let file = self.file();
        match self.media_type {
            "image/gif" => file.len() >= GIF_HEADER,
            "image/webp" => file.len() >= WEBP_HEADER,
            _ => size_of(&file).is_some_and(|(width, height)| width > 0 && height > 0),
        }
    }

    /// The file.
    pub fn file(&self) -> Vec<u8> {
        STANDARD.decode(&*self.data).unwrap_or_default()
    }

    /// As the content of a message.
    pub fn content(&self) -> Content {
        Content::Image { media_type: self.media_type.to_owned(), data: self.data.to_string() }
    }
}

/// Width and height of a picture in base64. Supports PNG and JPEG; the size of any other is unknown.
pub fn size(data: &str) -> Option<(u32, u32)> {
    let read = if data.len() > MAX_READ { data.get(..MAX_READ)? } else { data };
    size_of(&STANDARD.decode(read).ok()?)
}

/// Width and height of the picture in a file of which at least the beginning is given.
fn size_of(bytes: &[u8]) -> Option<(u32, u32)> {
    // The crate cannot pass over fill bytes, which are rare.
    let size = imagesize::blob_size(bytes);
    let size = size.ok().or_else(|| imagesize::blob_size(&without_fill_bytes(bytes)?).ok())?;
    Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?))
}

/// The segments of a JPEG up to its pixels, each with one `0xFF` before its marker where there may be several; a last
/// one that is cut off stays so. `None` for anything else.
fn without_fill_bytes(file: &[u8]) -> Option<Vec<u8>> {
    let mut rest = file.strip_prefix(&[0xff, 0xd8])?;
    let mut clean = vec![0xff, 0xd8];
    while let [0xff, after @ ..] = rest {
        let fill = after.iter().take_while(|byte| **byte == 0xff).count();
        let segment = after.get(fill..)?;
        let &[marker, high, low, ..] = segment else { break };
        let length = 1 + usize::from(u16::from_be_bytes([high, low]));
        let (segment, next) = segment.split_at(length.min(segment.len()));
        clean.push(0xff);
        clean.extend_from_slice(segment);
        if marker == START_OF_SCAN {
            break;
        }
        rest = next;
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_its_first_bytes() {
        for (bytes, media_type) in [
            (b"\x89PNG\r\n\x1a\nrest".as_slice(), "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        ] {
            let picture = Picture::from_file(bytes).unwrap();
            assert_eq!(picture.media_type, media_type);
        }
        for other in [b"".as_slice(), b"GIF88a", b"RIFF\0\0\0\0WAVE", b"# Notes"] {
            assert_eq!(Picture::from_file(other), None);
        }
    }
}
