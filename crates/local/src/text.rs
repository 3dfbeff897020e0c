//! Text from tokens that may end inside a character. Knows bytes only.

/// The text of a reply as its bytes arrive.
pub(super) struct TextStream {
    text: String,
    /// The start of an incomplete character.
    rest: Vec<u8>,
    aloud: bool,
}

impl TextStream {
    /// A stream that gives its pieces while they come (`aloud`), or only the whole at the end.
    pub(super) fn new(aloud: bool) -> Self {
        Self { text: String::new(), rest: Vec::new(), aloud }
    }

    /// Adds bytes and gives the characters that they complete. Bytes that are no UTF-8 become U+FFFD.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<String> {
        self.rest.extend_from_slice(bytes);
        let mut piece = String::new();
        let mut done = 0;
        for chunk in self.rest.utf8_chunks() {
            piece.push_str(chunk.valid());
            done += chunk.valid().len();
            let at_end = done + chunk.invalid().len() == self.rest.len();
            if chunk.invalid().is_empty() || at_end && is_start(chunk.invalid()) {
                break;
            }
            piece.push(char::REPLACEMENT_CHARACTER);
            done += chunk.invalid().len();
        }
        self.rest.drain(..done);
        self.text.push_str(&piece);
        (self.aloud && !piece.is_empty()).then_some(piece)
    }

    /// The whole text; the start of an unfinished character is left out.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Whether bytes could still become one character.
fn is_start(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_never_split() {
        let text = "naïve 日本語 🦀 end";
        for size in 1..=text.len() {
            let mut stream = TextStream::new(true);
            let pieces: String =
                text.as_bytes().chunks(size).filter_map(|bytes| stream.push(bytes)).collect();
            assert_eq!(pieces, text);
            assert_eq!(stream.finish(), text);
        }
    }

    #[test]
    fn broken_bytes_are_replaced_and_an_unfinished_end_is_left_out() {
        let mut stream = TextStream::new(true);
        assert_eq!(stream.push(b"a\xFFb\xE6\x97").as_deref(), Some("a\u{FFFD}b"));
        assert_eq!(stream.push(b"\xA5").as_deref(), Some("日"));
        assert_eq!(stream.push(b"\xF0\x9F"), None);
        assert_eq!(stream.finish(), "a\u{FFFD}b日");
    }
}
