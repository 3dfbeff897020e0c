//! Safe names and paths: of users, turns, pages and topics; and paths inside a vault.
//!
//! Any text is mapped to a name that is valid on every file system, and no two texts to the same one, even on
//! case-insensitive file systems. Knows no files.

use std::fmt;
use std::str::FromStr;

use super::value::{ValueError, as_text};

/// Maximum bytes of a plain name, and of the readable prefix of a hashed one.
const LONGEST_PLAIN: usize = 64;
const LONGEST_START: usize = 40;
/// Digits of the hash in a name: 80 bits, 5 per digit.
const HASH_DIGITS: usize = 16;
/// Digits that distinguish the pages of one turn.
const PAGE_DIGITS: usize = 10;
/// Without letters that look like digits, so that names survive being retyped.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Reserved device names on Windows, with any extension.
const RESERVED: [&str; 24] = [
    "con", "prn", "aux", "nul", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8",
    "com9", "lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// A file or folder name for any text.
///
/// Lower-case ASCII letters, digits, `_`, `-` and single inner `.` are kept, up to 64 bytes; any other text becomes
/// its readable part, `-`, and 16 digits of its hash. Windows device names, leading or trailing dots, capitals, and
/// texts that end like such a hash count as other texts.
pub fn safe_name(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut start = readable(text, LONGEST_START);
    if !start.is_empty() {
        start.push('-');
    }
    start + &digits(text, HASH_DIGITS)
}

fn is_plain(text: &str) -> bool {
    let fine = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.');
    let stem = text.split('.').next().unwrap_or_default();
    let hashed = text
        .rsplit('-')
        .next()
        .is_some_and(|end| end.len() == HASH_DIGITS && end.bytes().all(|byte| DIGITS.contains(&byte)));
    !text.is_empty()
        && text.len() <= LONGEST_PLAIN
        && text.bytes().all(fine)
        && !text.starts_with(['.', '-'])
        && !text.ends_with(['.', '-'])
        && !text.contains("..")
        && !RESERVED.contains(&stem)
        && !hashed
}

/// Lower-case letters and digits, with everything between them replaced by one `-`.
fn readable(text: &str, longest: usize) -> String {
    let mut name = String::new();
    for char in text.chars() {
        if name.len() >= longest {
            break;
        }
        match char.to_ascii_lowercase() {
            char @ ('a'..='z' | '0'..='9') => name.push(char),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    name.truncate(name.trim_end_matches('-').len());
    name
}

/// The first digits of the text's hash, 5 bits each.
fn digits(text: &str, count: usize) -> String {
    let hash = blake3::hash(text.as_bytes());
    let pair = |at: usize| {
        let byte = |at: usize| u16::from(hash.as_bytes().get(at).copied().unwrap_or_default());
        byte(at) << 8 | byte(at + 1)
    };
    (0..count)
        .map(|digit| {
            let bit = digit * 5;
            let value = pair(bit / 8) >> (11 - bit % 8) & 31;
            char::from(DIGITS[usize::from(value)])
        })
        .collect()
}

/// The folder of a page in `webpage_cache`: the name of its site, `_`, and digits of the URL's hash.
pub fn url_slug(url: &str) -> String {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = after.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let labels: Vec<&str> = host.split('.').filter(|label| !label.is_empty()).collect();
    let site = match labels.as_slice() {
        [.., site, "co" | "com" | "org" | "net" | "ac" | "gov", country] if country.len() == 2 => site,
        [.., site, _] => site,
        [site] => site,
        [] => "",
    };
    let site = readable(site, LONGEST_START);
    format!("{}_{}", if site.is_empty() { "page" } else { &site }, digits(url, PAGE_DIGITS))
}

/// `turn_000815`: at least six digits.
pub fn turn_name(number: u32) -> String {
    format!("turn_{number:06}")
}

/// The number of `turn_000815`, or of the short form `turn_815` (C79).
pub fn turn_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("turn_")?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The path of a file in a vault: names joined by `/`, none of them empty, `.` or `..`, without `\` and control
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaultPath(String);

impl VaultPath {
    /// Maximum bytes of a path.
    pub const LONGEST: usize = 1_024;
    const EXPECTED: &'static str =
        "a path inside the vault: names joined by /, without .., \\ or control characters";

    /// Validates a path; `None` if it would leave the vault or is not valid on some file system.
    pub fn new(path: &str) -> Option<Self> {
        let mut bytes = path.bytes();
        let drive = matches!((bytes.next(), bytes.next()), (Some(letter), Some(b':')) if letter.is_ascii_alphabetic());
        let name_is_fine = |name: &str| !matches!(name, "" | "." | "..");
        let fine = path.len() <= Self::LONGEST
            && !drive
            && path.split('/').all(name_is_fine)
            && !path.chars().any(|char| char == '\\' || char.is_control());
        fine.then(|| Self(path.to_owned()))
    }

    /// Creates a path from names made by [`safe_name`] and the like.
    pub(super) fn of_safe(path: String) -> Self {
        Self(path)
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder; empty at the root of the vault.
    pub fn folder(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The last name.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The path as used in a wikilink: without `.md`, unless the rest would seem to have another extension.
    pub fn wiki(&self) -> &str {
        let without =
            self.0.strip_suffix(".md").filter(|path| !path.rsplit('/').next().unwrap_or(path).contains('.'));
        without.unwrap_or(&self.0)
    }

    /// The last two names, enough to recognise a file: `turn_000815/context.md`.
    pub fn short(&self) -> &str {
        let mut slashes = self.0.rmatch_indices('/');
        slashes.nth(1).map_or(&self.0, |(at, _)| &self.0[at + 1..])
    }

    /// The path of another file relative to this one: `../turn_000759/research.md`.
    pub fn relative(&self, to: &Self) -> String {
        let (mut from, mut rest) = (self.folder(), to.as_str());
        while let (Some((a, from_rest)), Some((b, to_rest))) = (first(from), rest.split_once('/')) {
            if a != b {
                break;
            }
            (from, rest) = (from_rest, to_rest);
        }
        let ups = if from.is_empty() { 0 } else { from.split('/').count() };
        "../".repeat(ups) + rest
    }

    /// The file that a relative path in this file refers to; `None` outside the vault.
    pub fn join(&self, relative: &str) -> Option<Self> {
        let mut names: Vec<&str> = self.folder().split('/').filter(|name| !name.is_empty()).collect();
        for name in relative.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop()?;
                }
                name => names.push(name),
            }
        }
        Self::new(&names.join("/"))
    }
}

fn first(folder: &str) -> Option<(&str, &str)> {
    (!folder.is_empty()).then(|| folder.split_once('/').unwrap_or((folder, "")))
}

impl fmt::Display for VaultPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for VaultPath {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Self::new(text).ok_or_else(|| ValueError::new(Self::EXPECTED, text))
    }
}

as_text!(VaultPath);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> VaultPath {
        VaultPath::new(text).unwrap()
    }

    #[test]
    fn plain_names_stay_and_others_carry_their_hash() {
        for plain in ["henry", "commerce.laptop", "amazon.com", "a_b-c", "0"] {
            assert_eq!(safe_name(plain), plain);
        }
        for other in [
            "..", ".", "", "con", "CON", "nul.txt", "com1.md", "a/b", "a\\b", "C:", "a..b", "x.", ".x",
            "Henry", "é",
        ] {
            let name = safe_name(other);
            assert!(name != other && is_file_name(&name), "{other:?} became {name:?}");
        }
        let hashed = safe_name("Henry");
        assert!(
            hashed.starts_with("henry-") && safe_name(&hashed) != hashed,
            "a name cannot pass for another's"
        );
    }

    fn is_file_name(name: &str) -> bool {
        let stem = name.split('.').next().unwrap_or_default();
        VaultPath::new(name).is_some()
            && name.len() <= LONGEST_PLAIN
            && !name.contains(['/', ':', '*', '?', '"', '<', '>', '|'])
            && !name.ends_with(['.', ' '])
            && !RESERVED.contains(&stem)
    }

    #[test]
    fn a_page_is_named_after_its_site() {
        for (url, site) in [
            ("https://www.reddit.com/r/x", "reddit"),
            ("http://user:pw@shop.example.co.uk:80/a?b", "example"),
            ("https://localhost/", "localhost"),
            ("not a url", "not-a-url"),
            ("", "page"),
        ] {
            assert_eq!(url_slug(url).split_once('_').map(|(site, _)| site), Some(site), "{url}");
        }
    }

    #[test]
    fn turns_have_six_digits_and_short_forms_are_read() {
        assert_eq!(turn_name(815), "turn_000815");
        assert_eq!(turn_number("turn_847"), Some(847));
        assert_eq!(turn_number(&turn_name(u32::MAX)), Some(u32::MAX));
        for wrong in ["turn_", "turn_-1", "turn_+1", "turn_99999999999", "turn_1a"] {
            assert_eq!(turn_number(wrong), None);
        }
    }

    #[test]
    fn a_path_stays_in_the_vault() {
        for outside in
            ["", "/etc/passwd", "..", "a/../b", "a//b", "a/./b", "a\\b", "C:x", "a\0", "a\n", "./a"]
        {
            assert_eq!(VaultPath::new(outside), None, "{outside:?}");
        }
        let here = path("users/u/turns/turn_000815/context.md");
        assert_eq!(
            here.relative(&path("users/u/turns/turn_000759/research.md")),
            "../turn_000759/research.md"
        );
        assert_eq!(here.relative(&path("users/u/turns/turn_000815/ticket.md")), "ticket.md");
        assert_eq!(here.relative(&path("users/u/facts.md")), "../../facts.md");
        assert_eq!(path("a.md").relative(&path("b/c.md")), "b/c.md");
        assert_eq!(here.join("../../../../../x"), None);
        assert_eq!(here.short(), "turn_000815/context.md");
        assert_eq!(path("a/b.json").wiki(), "a/b.json");
    }

    proptest! {
        #[test]
        fn every_name_is_a_file_name_and_no_two_are_one(a in "\\PC{0,12}", b in "[-a-zA-Z0-9_./é]{0,4}", c in "[-a-zA-Z0-9_./é]{0,4}") {
            prop_assert!(is_file_name(&safe_name(&a)), "{:?}", safe_name(&a));
            prop_assert!(is_file_name(&safe_name(&b)), "{:?}", safe_name(&b));
            prop_assert_eq!(b == c, safe_name(&b).eq_ignore_ascii_case(&safe_name(&c)));
            prop_assert!(is_file_name(&url_slug(&a)));
        }

        #[test]
        fn a_relative_path_leads_back(from in "[abc]{1,2}(/[abc]{1,2}){0,4}", to in "[abc]{1,2}(/[abc]{1,2}){0,4}") {
            let (from, to) = (path(&from), path(&to));
            prop_assert_eq!(from.join(&from.relative(&to)), Some(to));
        }
    }
}
