//! The cost of an image in a request, by its size, where the request contains its file. Knows no model.

use larder_text::picture;
use larder_text::tokens::Pictures;
use memchr::memmem;

use larder_text::json::{Document, Value};

/// The text before the data in a data URL.
const DATA: &str = ";base64,";
/// The name of the data in Anthropic's form.
const NAMED: &str = r#""data""#;
/// The member that sets the level of detail.
const DETAIL: &str = r#""detail""#;

/// The tokens of a picture, given its complete JSON.
pub fn tokens(raw: &str, pictures: Pictures) -> usize {
    if let Pictures::AtMost(most) = pictures {
        return most;
    }
    if is_low(raw) {
        return pictures.low();
    }
    size(raw).map_or(pictures.max_tokens(), |(width, height)| pictures.sized(width, height))
}

/// Whether the client requests low detail, in either place: next to the picture's address (chat completions), or in
/// the item itself (responses). Which of two a provider honours is unknown, so both must say so.
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
    let after_name =
        || raw.split_once(NAMED)?.1.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"');
    let data = raw.split_once(DATA).map(|(_, data)| data).or_else(after_name)?;
    let data = data.get(..data.find('"')?)?;
    picture::size(data)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

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
        let frame = [b"\xff\xc0\0\x11\x08".as_slice(), &height.to_be_bytes(), &width.to_be_bytes()].concat();
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
    fn fill_bytes_before_the_markers_of_a_jpeg_are_skipped() {
        let plain = jpeg_of(640, 480);
        let filled = [&plain[..2], &[0xff; 3], &plain[2..0x8006], &[0xff; 5], &plain[0x8006..]].concat();
        assert_eq!(size(&part(&filled, "")), Some((640, 480)));
        let (scan, pixels) = (b"\xff\xff\xda\0\x02".as_slice(), [0xff; 64].as_slice());
        assert_eq!(size(&part(&[&filled, [8; 10].as_slice(), scan, pixels].concat(), "")), Some((640, 480)));
        // A file that ends before its size is charged as the largest picture.
        for end in 0..filled.len() {
            if end < 16 || end > filled.len() - 16 {
                assert_eq!(size(&part(&filled[..end], "")), None, "{end}");
            }
        }
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
            // Values elsewhere are ignored, and of two that differ the more expensive counts.
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
