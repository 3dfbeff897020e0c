//! How large a picture is that a request holds, read from the beginning of its file. Knows PNG and JPEG; of any other one,
//! and of one that is elsewhere, the size is not known. Knows no model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larder_text::tokens::Pictures;
use memchr::memmem;

use larder_text::json::{Document, Value};

/// Characters of base64 that are read: a camera's notes stand before the size.
const MOST_READ: usize = 256 << 10;
/// What the data of a picture begins behind, in a data URL.
const DATA: &str = ";base64,";
/// The member that says how closely it is looked at.
const DETAIL: &str = r#""detail""#;

/// Tokens that a picture costs, of whose JSON this is all.
pub fn tokens(raw: &str, pictures: Pictures) -> usize {
    if let Pictures::AtMost(most) = pictures {
        return most;
    }
    if is_low(raw) {
        return pictures.low();
    }
    size(raw).map_or(pictures.max_tokens(), |(width, height)| pictures.sized(width, height))
}

/// Whether the client wants it seen at low detail, wherever it says how: beside the picture's address (chat completions),
/// or in the item itself (responses). Which of two a provider heeds is not known, so that both must say it.
fn is_low(raw: &str) -> bool {
    if memmem::find(raw.as_bytes(), DETAIL.as_bytes()).is_none() {
        return false;
    }
    let Ok(doc) = Document::parse(raw) else { return false };
    let root = doc.root();
    let places = members(root, "image_url").chain([root]);
    let mut said = places.flat_map(|place| members(place, "detail")).peekable();
    said.peek().is_some() && said.all(|detail| detail.is("low"))
}

/// All members of this name.
fn members<'d, 't>(object: Value<'d, 't>, name: &'static str) -> impl Iterator<Item = Value<'d, 't>> {
    object.members().filter(move |(key, _)| key.is(name)).map(|(_, value)| value)
}

/// Its width and height.
fn size(raw: &str) -> Option<(u32, u32)> {
    let (_, data) = raw.split_once(DATA)?;
    let data = data.get(..data.find('"')?)?;
    let read = if data.len() > MOST_READ { data.get(..MOST_READ)? } else { data };
    let bytes = STANDARD.decode(read).ok()?;
    png(&bytes).or_else(|| jpeg(&bytes))
}

/// The size stands in the first chunk.
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let head = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let number = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    (head.get(4..8)? == b"IHDR").then_some((number(8)?, number(12)?))
}

/// The size stands in the frame, behind segments of which each says how long it is.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = bytes.starts_with(b"\xff\xd8").then_some(2)?;
    loop {
        let &[0xff, marker] = bytes.get(at..at + 2)? else { return None };
        match marker {
            // Filling.
            0xff => at += 1,
            0xc4 | 0xc8 | 0xcc => at += 2 + usize::from(number(at + 2)?),
            0xc0..=0xcf => return Some((number(at + 7)?.into(), number(at + 5)?.into())),
            // The picture itself, which has no size in front of it.
            0xd0..=0xda => return None,
            _ => at += 2 + usize::from(number(at + 2)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png_of(width: u32, height: u32) -> Vec<u8> {
        let head: [&[u8]; 5] = [
            b"\x89PNG\r\n\x1a\n\0\0\0\x0d",
            b"IHDR",
            &width.to_be_bytes(),
            &height.to_be_bytes(),
            b"\x08\x06",
        ];
        head.concat()
    }

    fn jpeg_of(width: u16, height: u16) -> Vec<u8> {
        let notes = [b"\xff\xd8\xff\xe1\x80\x02".as_slice(), &[7; 0x8000]].concat();
        let frame =
            [b"\xff\xff\xc0\0\x11\x08".as_slice(), &height.to_be_bytes(), &width.to_be_bytes()].concat();
        [notes, frame].concat()
    }

    fn part(file: &[u8], more: &str) -> String {
        let url = format!("data:image/png;base64,{}", STANDARD.encode(file));
        format!(r#"{{"type":"image_url","image_url":{{"url":"{url}"{more}}}}}"#)
    }

    #[test]
    fn the_size_is_read_from_the_beginning() {
        assert_eq!(size(&part(&png_of(1_920, 1_080), "")), Some((1_920, 1_080)));
        assert_eq!(size(&part(&jpeg_of(640, 480), "")), Some((640, 480)));
        let large = [png_of(1_920, 1_080), vec![7; 1 << 20]].concat();
        assert_eq!(size(&part(&large, "")), Some((1_920, 1_080)));
        for strange in
            [b"".as_slice(), b"GIF89a", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0", &[0xff; 64]]
        {
            assert_eq!(size(&part(strange, "")), None);
        }
        assert_eq!(size(r#"{"image_url":{"url":"https://example.com/a.png"}}"#), None);
    }

    #[test]
    fn a_picture_costs_what_its_size_does_and_the_most_where_that_is_not_known() {
        let small = Pictures::Tiles { base: 2_833, tile: 5_667 };
        let square = png_of(512, 512);
        for (raw, tokens) in [
            (part(&square, ""), 8_500),
            (part(&square, r#", "detail" : "high""#), 8_500),
            (part(b"GIF89a", r#","detail":"low""#), 2_833),
            (part(b"GIF89a", ""), 48_169),
            (r#"{"type":"input_image","file_id":"f","detail":"low"}"#.to_owned(), 2_833),
            // What stands elsewhere says nothing, and of two that differ the dearer counts.
            (r#"{"type":"input_image","file_id":"f","more":{"detail":"low"}}"#.to_owned(), 48_169),
            (r#"{"more":{"detail":"low"},"image_url":{"url":"u","detail":"high"}}"#.to_owned(), 48_169),
            (r#"{"detail":"low","image_url":{"url":"u","detail":"high"}}"#.to_owned(), 48_169),
            (r#"{"image_url":{"url":"u","detail":"low"},"detail":"auto"}"#.to_owned(), 48_169),
            (r#"{"image_url":{"url":"u","detail":"high","detail":"low"}}"#.to_owned(), 48_169),
            (r#"{"detail":"low","image_url":{"url":"u","detail":"low"}}"#.to_owned(), 2_833),
        ] {
            assert_eq!(super::tokens(&raw, small), tokens, "{raw}");
            assert_eq!(super::tokens(&raw, Pictures::AtMost(2_489)), 2_489);
        }
    }
}
