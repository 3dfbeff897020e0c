//! The cost of files and recordings. Only their provider knows it exactly; these figures are the
//! published ones. Knows no wire format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larder_text::tokens::{Framing, Pictures};
use memchr::memmem;

/// Bytes of a recording for which one token is charged: at 32 kbit/s a second has 5,333 bytes of base64, and no provider
/// charges more than 32 tokens for it.
const BYTES_PER_AUDIO_TOKEN: usize = 160;
/// Tokens of a page of a PDF document, which is shown as a picture (about 1,600) and as text (about 700).
const PER_PAGE: usize = 2_500;
/// Of that, the text, with room.
const TEXT_OF_PAGE: usize = 900;
/// Approximate size of a rendered page in pixels.
const PAGE: (u32, u32) = (768, 1_024);
/// Bytes per token charged for a file whose pages cannot be counted: a page of typeset text has about 20 kB, a
/// scanned one far more.
const BYTES_PER_FILE_TOKEN: usize = 16;
/// The beginning of a PDF document in base64.
const PDF: &str = "JVBERi";

/// The approximate tokens of a recording, given its complete JSON.
pub fn audio(raw: &str, framing: Framing) -> usize {
    (raw.len() / BYTES_PER_AUDIO_TOKEN).max(framing.pictures.max_tokens())
}

/// The approximate tokens of a file with this many pages, if they can be counted.
pub fn file(pages: Option<usize>, raw: &str, framing: Framing) -> usize {
    let (width, height) = PAGE;
    let page = match framing.pictures {
        Pictures::Tiles { .. } => PER_PAGE.max(TEXT_OF_PAGE + framing.pictures.sized(width, height)),
        Pictures::AtMost(_) | Pictures::Area { .. } => PER_PAGE,
    };
    pages.map_or(raw.len() / BYTES_PER_FILE_TOKEN, |pages| pages * page).max(framing.pictures.max_tokens())
}

/// The pages of the PDF document in a part, unless marks of some may be compressed, as typesetters leave them.
pub fn pages(raw: &str) -> Option<usize> {
    let data = &raw[raw.find(PDF)?..];
    let document = STANDARD.decode(&data[..data.find('"')?]).ok()?;
    if memmem::find(&document, b"/ObjStm").is_some() {
        return None;
    }
    let marks = memmem::find_iter(&document, b"/Type").filter(|&at| {
        let kind = document[at + b"/Type".len()..].trim_ascii_start();
        kind.strip_prefix(b"/Page").is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
    });
    Some(marks.count()).filter(|&pages| pages > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(document: &[u8]) -> String {
        format!(r#"{{"type":"document","source":{{"data":"{}"}}}}"#, STANDARD.encode(document))
    }

    #[test]
    fn a_document_costs_what_its_pages_do_and_not_its_bytes() {
        let counted = |raw: &str| file(pages(raw), raw, Framing::OPENAI);
        let head = "%PDF-1.7 <</Type/Pages/Count 3>> ";
        let slides = format!("{head}{}", "<</Type /Page/Parent 1>> <</Type/PageLabel>> stream".repeat(3));
        let slides = [slides.as_bytes(), &[7; 3_000_000]].concat();
        assert_eq!(counted(&part(&slides)), 3 * PER_PAGE);
        let compressed = part(&[head.as_bytes(), &[7; 300_000]].concat());
        assert_eq!(counted(&compressed), compressed.len() / BYTES_PER_FILE_TOKEN);
        let signed = format!("{head}<</Type/ObjStm/N 300>> {} <</Type/Page>>", "x".repeat(300_000));
        let signed = part(signed.as_bytes());
        assert_eq!(counted(&signed), signed.len() / BYTES_PER_FILE_TOKEN);
        assert_eq!(counted(r#"{"file_id":"f"}"#), Framing::OPENAI.pictures.max_tokens());
    }

    #[test]
    fn a_page_costs_no_less_than_a_picture_of_it_where_tiles_are_dear() {
        let small = Framing { pictures: Pictures::Tiles { base: 2_833, tile: 5_667 }, ..Framing::OPENAI };
        assert_eq!(file(Some(2), "", small), 2 * (TEXT_OF_PAGE + 2_833 + 4 * 5_667));
        assert_eq!(file(Some(2), "", Framing::ANTHROPIC), 2 * PER_PAGE);
        assert_eq!(
            file(Some(1), "", small),
            small.pictures.max_tokens(),
            "the least that is charged for a file"
        );
    }

    #[test]
    fn a_minute_of_speech_is_not_taken_for_a_book() {
        let wave = "A".repeat(60 * 24_000 * 2 / 3 * 4);
        assert_eq!(audio(&wave, Framing::OPENAI), 24_000);
    }
}
