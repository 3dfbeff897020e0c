//! Decodes web content to text: detects its type and encoding. Knows HTML only as far as encodings are declared in
//! it.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes at the beginning in which a page may name its encoding.
const PROLOGUE: usize = 4_096;
/// Leading bytes examined to decide whether it is text.
const SNIFFED: usize = 8_192;

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageForm {
    Html,
    Json,
    Text,
}

/// A body as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) form: PageForm,
    pub(super) text: String,
    /// Some bytes were invalid in the encoding and were replaced with U+FFFD.
    pub(super) damaged: bool,
}

/// The body as text; `None` if it is anything else, whatever the server declares.
pub(super) fn decode(content_type: Option<&str>, body: &[u8]) -> Option<Decoded> {
    let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_lowercase();
    let mark = Encoding::for_bom(body);
    let wide = mark.is_some_and(|(encoding, _)| encoding == UTF_16LE || encoding == UTF_16BE);
    let declared = stated(content_type).or_else(|| prologue(body));
    let wide = wide || declared.is_some_and(|encoding| encoding == UTF_16LE || encoding == UTF_16BE);
    let head = &body[..body.len().min(SNIFFED)];
    if !may_be_text(&media) || !wide && head.contains(&0) {
        return None;
    }
    let encoding = declared.unwrap_or_else(|| if is_utf8(body) { UTF_8 } else { WINDOWS_1252 });
    // A byte order mark is believed before anything else.
    let (text, _, damaged) = encoding.decode(body);
    let text = text.replace("\r\n", "\n").replace('\0', "\u{fffd}");
    Some(Decoded { form: form(&media, &text), text, damaged })
}

fn may_be_text(media: &str) -> bool {
    let (kind, name) = media.split_once('/').unwrap_or((media, ""));
    match kind {
        "" | "text" => true,
        "application" => {
            matches!(name, "json" | "xml" | "javascript" | "x-javascript" | "yaml" | "x-yaml" | "x-ndjson")
                || name.ends_with("+json")
                || name.ends_with("+xml")
        }
        _ => false,
    }
}

fn form(media: &str, text: &str) -> PageForm {
    let head = text.trim_start_matches('\u{feff}').trim_start();
    let begins = |with: &str| head.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with));
    if media == "text/html" || media == "application/xhtml+xml" {
        PageForm::Html
    } else if media == "application/json" || media.ends_with("+json") {
        PageForm::Json
    } else if matches!(media, "" | "application/xml" | "text/xml")
        && (begins("<!doctype html") || begins("<html"))
    {
        PageForm::Html
    } else {
        PageForm::Text
    }
}

/// The encoding that the server names.
fn stated(content_type: Option<&str>) -> Option<&'static Encoding> {
    let parameters = content_type?.split(';').skip(1);
    let label = parameters.filter_map(|parameter| parameter.split_once('=')).find_map(|(name, value)| {
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })?;
    Encoding::for_label(label.as_bytes())
}

/// The encoding that the page names: `<meta charset=…>`, `<?xml encoding="…"?>`. A page that could be read so far is not
/// in a two-byte encoding, regardless of what it states.
fn prologue(body: &[u8]) -> Option<&'static Encoding> {
    let head = body[..body.len().min(PROLOGUE)].to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    let after = |key: &str| {
        let (_, rest) = head.split_once(key)?;
        let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && !"-_:.".contains(char));
        Encoding::for_label(&rest.as_bytes()[..end.unwrap_or(rest.len())])
    };
    let xml = head.trim_start().starts_with("<?xml");
    let found = after("charset").or_else(|| xml.then(|| after("encoding")).flatten())?;
    Some(if found == UTF_16LE || found == UTF_16BE { UTF_8 } else { found })
}

/// A body that was cut may end within a character.
fn is_utf8(body: &[u8]) -> bool {
    std::str::from_utf8(body).map_or_else(|error| error.error_len().is_none(), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content_type: &str, body: &[u8]) -> String {
        decode(Some(content_type).filter(|kind| !kind.is_empty()), body).unwrap().text
    }

    #[test]
    fn encodings_are_found_where_they_are_named() {
        assert_eq!(text("text/html; charset=ISO-8859-1", b"caf\xe9"), "café");
        assert_eq!(
            text("text/html", b"<meta charset=\"windows-1251\"><p>\xcf\xf0\xe8\xe2\xe5\xf2"),
            "<meta charset=\"windows-1251\"><p>Привет"
        );
        assert_eq!(
            text(
                "text/html",
                b"<meta http-equiv=Content-Type content='text/html; charset=Shift_JIS'>\x93\xfa\x96\x7b"
            ),
            "<meta http-equiv=Content-Type content='text/html; charset=Shift_JIS'>日本"
        );
        assert_eq!(text("", b"\xff\xfeh\0i\0"), "hi");
        assert_eq!(text("text/plain; charset=utf-16be", b"\0h\0i"), "hi");
        assert_eq!(text("text/plain", "naïve".as_bytes()), "naïve");
        assert_eq!(text("text/plain", b"na\xefve"), "naïve");
        assert_eq!(text("text/html; charset=x-no-such", "é".as_bytes()), "é");
        assert_eq!(text("text/html", b"<meta charset=utf-16>caf\xc3\xa9"), "<meta charset=utf-16>café");
        assert_eq!(
            text("application/xml", b"<?xml version='1.0' encoding='iso-8859-2'?>\xb3"),
            "<?xml version='1.0' encoding='iso-8859-2'?>ł"
        );
    }

    #[test]
    fn bodies_that_are_not_text_are_none() {
        for (kind, body) in [
            ("image/png", &b"\x89PNG\r\n"[..]),
            ("text/html", b"\x89PNG\r\n\x1a\n\0\0\0"),
            ("application/pdf", b"%PDF-1.7"),
            ("application/octet-stream", b"hello"),
            ("video/mp4", b""),
        ] {
            assert_eq!(decode(Some(kind), body), None, "{kind}");
        }
    }

    #[test]
    fn invalid_bytes_are_reported() {
        let decoded = decode(Some("text/plain; charset=utf-8"), b"a\xffb").unwrap();
        assert!(decoded.damaged && decoded.text == "a\u{fffd}b");
    }

    #[test]
    fn forms_are_distinguished() {
        for (kind, body, form) in [
            ("text/html", "x", PageForm::Html),
            ("", "<!DOCTYPE html><p>", PageForm::Html),
            ("application/ld+json", "{}", PageForm::Json),
            ("text/plain", "<html>", PageForm::Text),
        ] {
            assert_eq!(
                decode(Some(kind).filter(|kind| !kind.is_empty()), body.as_bytes()).unwrap().form,
                form
            );
        }
    }
}
