//! A short way to complete a JSON or tagged text under a grammar: strings are closed, optional parts omitted, and required ones
//! get their smallest value. Greedy, so not always the shortest.

use llguidance::Matcher;
use toktrie::SimpleVob;

use super::tokenizer::Tokenizer;

/// The state of a text at its last byte.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Place {
    /// Whether it is tagged text; then a string is what a tag holds, and `escaped` is set right behind a `<`.
    is_tagged: bool,
    in_string: bool,
    escaped: bool,
}

impl Place {
    /// The beginning of a tagged text.
    pub(super) fn tagged() -> Self {
        Self { is_tagged: true, ..Self::default() }
    }

    /// Whether it is in tagged text.
    pub(super) fn is_tagged(self) -> bool {
        self.is_tagged
    }

    /// Advances over `bytes`.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.is_tagged {
                if self.escaped && (byte == b'/' || byte.is_ascii_alphabetic()) {
                    self.in_string = byte != b'/';
                }
                self.escaped = byte == b'<';
                continue;
            }
            match (self.in_string, self.escaped, byte) {
                (true, true, _) => self.escaped = false,
                (true, false, b'\\') => self.escaped = true,
                (_, false, b'"') => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }
}

/// Tokens that complete the text from the state of `matcher`, at most `limit`; `None` if no completion was found.
pub(super) fn closing(
    matcher: &Matcher,
    mut place: Place,
    tokenizer: &Tokenizer,
    limit: usize,
) -> Option<Vec<u32>> {
    let mut matcher = matcher.clone();
    let mut tokens: Vec<u32> = Vec::new();
    loop {
        if matcher.is_error() || tokens.len() > limit {
            return None;
        }
        if matcher.is_stopped() || matcher.is_accepting().ok()? {
            return Some(tokens);
        }
        let mut next = matcher.compute_ff_tokens();
        if next.is_empty() {
            next.push(shortest(&matcher.compute_mask().ok()?, place, tokenizer)?);
        }
        matcher.consume_tokens(&next).ok()?;
        for &token in &next {
            place.read(tokenizer.bytes(token));
        }
        tokens.extend(next);
    }
}

/// The allowed token that leads to the end soonest: the lowest rank, then the first.
fn shortest(allowed: &SimpleVob, place: Place, tokenizer: &Tokenizer) -> Option<u32> {
    if place.is_tagged {
        return allowed
            .iter()
            .filter(|&token| !tokenizer.bytes(token).is_empty())
            .min_by_key(|&token| (rank_tagged(tokenizer.bytes(token), place), token));
    }
    let ranked = tokenizer.closers().iter().copied().filter(|&token| allowed.is_allowed(token));
    let closer = ranked.filter(|&token| tokenizer.bytes(token).starts_with(b"\"") == place.in_string);
    if let Some(closer) = closer.max_by_key(|&token| (tokenizer.bytes(token).len(), std::cmp::Reverse(token)))
    {
        return Some(closer);
    }
    allowed
        .iter()
        .filter(|&token| !tokenizer.bytes(token).is_empty())
        .min_by_key(|&token| (rank(tokenizer.bytes(token), place), token))
}

/// How well a token leads to the end if no closing one is allowed: lower is better.
fn rank(bytes: &[u8], place: Place) -> (u8, isize) {
    let length = isize::try_from(bytes.len()).unwrap_or(isize::MAX);
    if place.in_string {
        // A minimum length, a pattern or a fixed value requires more text: take the longest token without escapes.
        return (u8::from(bytes.contains(&b'\\')), -length);
    }
    match bytes.first() {
        Some(b',') => (0, length),
        Some(b'0'..=b'9') => (1, length),
        Some(b'n' | b't' | b'f') => (2, -length),
        Some(b'"') => (3, length),
        Some(b'-') => (4, length),
        Some(b'[') => (5, length),
        Some(b'{') => (6, length),
        _ => (7, length),
    }
}

/// As [`rank`], in tagged text: a tag is closed, a line ended, no tag opened, anything else as short as possible.
fn rank_tagged(bytes: &[u8], place: Place) -> (u8, usize) {
    match bytes.first() {
        Some(b'<') if place.in_string => (0, bytes.len()),
        Some(b'<') => (3, bytes.len()),
        Some(b'\n') => (1, bytes.len()),
        _ => (2, bytes.len()),
    }
}

/// Whether a token only closes: a quote at most, then brackets; or a whole empty value and brackets.
pub(super) fn is_closer(bytes: &[u8]) -> bool {
    let rest = [b"\"".as_slice(), b"[]", b"{}", b""].into_iter().find_map(|start| bytes.strip_prefix(start));
    !bytes.is_empty() && rest.is_some_and(|rest| rest.iter().all(|byte| matches!(byte, b'}' | b']')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_knows_strings_and_escapes() {
        let mut place = Place::default();
        place.read(br#"{"a\"b"#);
        assert!(place.in_string);
        place.read(br#"\\":"#);
        assert_eq!(place, Place::default());
    }

    #[test]
    fn closers_close_and_open_nothing() {
        for closer in ["\"", "\"}", "}]", "]", "[]", "{}", "[]}", "\"]}"] {
            assert!(is_closer(closer.as_bytes()), "{closer}");
        }
        for other in ["", "\"a", "},", "[{", "\",\"", "\"\"", "{\""] {
            assert!(!is_closer(other.as_bytes()), "{other}");
        }
    }
}
