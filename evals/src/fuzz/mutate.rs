//! Making cases: a made-up text of the type, then changes of the kinds that break parsers.

use larder_condense::ContentType;

use super::case::OUR_POINTER;
use crate::made::{self, Random, TYPES};

/// What condensers look at, and what imitates their own output.
const SCRAPS: [&str; 44] = [
    "[… L3-9]",
    "[…]",
    "[… B0-99]",
    "[Condensed: lp1-0000000000000-000000. \"[… Lx-y]\" = left out: append #Lx-y to read.]\n",
    "lp1-0000000000000-000000",
    "lp1-",
    OUR_POINTER,
    "\0",
    "\r\n",
    "\r",
    "\u{feff}",
    "\u{2028}",
    "\u{85}",
    "\u{1b}[31mred\u{1b}[0m",
    "e\u{301}",
    "👩‍👩‍👧‍👦",
    "吾輩は猫である。名前はまだ無い。",
    "\n\n",
    "\t",
    "\"",
    "\\",
    "\\\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "1e999",
    "-0",
    "123456789012345678901234567890.5",
    "\"a\": 1, \"a\": 2,",
    "@@ -1,3 +1,4 @@\n",
    "@@@ -1 -1 +1 @@@\n",
    "--- a/x\n+++ b/x\n",
    "\\ No newline at end of file\n",
    "<p>",
    "</div>",
    "<script>",
    "```",
    "# ",
    "ERROR: disk full\n",
    "Traceback (most recent call last):\n",
];
/// Single things repeated many times.
const REPEATED: [&str; 22] = [
    "[",
    "{\"a\":",
    "(",
    "<div>",
    "a",
    " ",
    "\n",
    "{",
    "\"",
    "1,",
    "|",
    ",",
    "> ",
    "- ",
    "あ",
    "\u{301}",
    "+\n",
    "@@ -1 +1 @@\n",
    "User: ",
    "if x {\n",
    "/*",
    "&amp;",
];
/// A case has no more.
pub(super) const MOST_BYTES: usize = 60_000;

/// A new case of this type in bytes.
pub(super) fn generate(content_type: ContentType, random: &mut Random) -> Vec<u8> {
    let size = 1_usize << random.below(15);
    // Now and then a text is not what it is said to be.
    let content_type = if random.below(12) == 0 { random.one(&TYPES).1 } else { content_type };
    let mut text = if random.below(25) == 0 {
        scraps(random)
    } else {
        made::text(content_type, random.next(), size).into_bytes()
    };
    for _ in 0..random.below(6) {
        change(&mut text, random);
    }
    text.truncate(MOST_BYTES);
    let target =
        if random.below(3) == 0 { random.below(3_000) } else { random.below(text.len() / 4 + 40) % 3_000 };
    let mut bytes = (target as u16).to_le_bytes().to_vec();
    bytes.extend([random.next() as u8, random.next() as u8]);
    bytes.extend(text);
    bytes
}

fn scraps(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..random.below(120) {
        let times = random.below(3) + 1;
        let scrap = random.one(&SCRAPS);
        (0..times).for_each(|_| text.extend_from_slice(scrap.as_bytes()));
    }
    text
}

/// Changes a text in one of the ways that break parsers.
pub(super) fn change(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    let end = (at + (1 << random.below(10))).min(text.len());
    match random.below(12) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..end)),
        2 => {
            let copy = text[at..end].to_vec();
            let to = random.below(text.len() + 1);
            text.splice(to..to, copy);
        }
        3 if at < text.len() => text[at] ^= 1 << random.below(8),
        4 => {
            let again = text[at..end].repeat(random.below(30) + 2);
            text.splice(at..at, again);
        }
        5 => {
            let thing = random.one(&REPEATED).repeat(1 << random.below(13));
            text.splice(at..at, thing.into_bytes());
        }
        6 => {
            let other = random.one(&TYPES).1;
            text.splice(at..at, made::text(other, random.next(), 300).into_bytes());
        }
        7 => *text = String::from_utf8_lossy(text).replace('\n', "\r\n").into_bytes(),
        8 => *text = String::from_utf8_lossy(text).replace('\n', " ").into_bytes(),
        _ => {
            let scrap = random.one(&SCRAPS);
            text.splice(at..at, scrap.bytes());
        }
    }
}
