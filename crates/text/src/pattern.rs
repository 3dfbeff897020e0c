//! Patterns and sets of bytes that are part of the program. Knows none of them.

use regex::Regex;

/// Compiles a constant pattern. A broken one must not disable its rule in silence, so this panics, and the test that
/// comes with every such pattern compiles it.
#[allow(clippy::expect_used, reason = "patterns are constants and every test run compiles them")]
pub fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

/// The set of these bytes, by byte.
pub const fn byte_set(bytes: &[u8]) -> [bool; 256] {
    let mut set = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        set[bytes[at] as usize] = true;
        at += 1;
    }
    set
}
