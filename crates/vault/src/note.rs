//! A Markdown file as people and Obsidian see it: frontmatter and body. Every byte is preserved until its key is set.
//!
//! Knows YAML by its top-level lines; does not know what any key means.

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use larder_text::sections::Sections;

/// Maximum nesting of a value.
const MAX_DEPTH: usize = 16;
/// Maximum values under one key.
const MAX_NODES: usize = 10_000;

/// A Markdown file. Printing it reproduces the parsed text byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Note {
    /// The block between `---` lines at the start.
    pub frontmatter: Frontmatter,
    /// Everything after it.
    pub body: String,
}

impl Note {
    /// Divides any text into frontmatter and body.
    pub fn parse(text: &str) -> Self {
        let (frontmatter, body) = text.split_at(Sections::parse(text).frontmatter.end);
        Self { frontmatter: Frontmatter { text: frontmatter.to_owned() }, body: body.to_owned() }
    }

    /// The number of the body's first line in the file, from 1.
    pub fn body_line(&self) -> usize {
        self.frontmatter.text.matches('\n').count() + 1
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.frontmatter.text, self.body)
    }
}

/// The YAML at the start of a note, including its `---` lines, as written: unknown keys, their order, comments and
/// spelling are preserved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontmatter {
    text: String,
}

/// A top-level key and the bytes of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FrontmatterEntry {
    key: String,
    line: usize,
    range: Range<usize>,
}

impl Frontmatter {
    /// The text, `---` lines included; empty if there is none.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The keys, in order.
    pub fn keys(&self) -> Vec<String> {
        self.entries().into_iter().map(|entry| entry.key).collect()
    }

    /// The line of a key in the file, from 1.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        self.entries().into_iter().find(|entry| entry.key == key).map(|entry| entry.line)
    }

    /// The value of a key; `None` if it is missing or not YAML. Anchors and aliases are not supported.
    pub fn get(&self, key: &str) -> Option<Value> {
        let entry = self.entries().into_iter().find(|entry| entry.key == key)?;
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: MAX_DEPTH,
                max_aliases: 0,
                max_anchors: 0,
                max_documents: 1,
                max_events: 4 * MAX_NODES,
                max_nodes: MAX_NODES,
                max_merge_keys: 0,
            },
            strict_booleans: true,
            with_snippet: false,
        };
        match serde_saphyr::from_str_with_options::<Value>(&self.text[entry.range], options) {
            Ok(Value::Object(map)) => map.into_iter().next().map(|(_, value)| value),
            _ => None,
        }
    }

    /// Sets a key and preserves every other byte. A new key is added at the end. Of duplicate keys, the first is set.
    pub fn set(&mut self, key: &str, value: &Value) {
        let end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let line = format!("{}: {}{end}", scalar(key), flow(value));
        match self.entries().into_iter().find(|entry| entry.key == key) {
            Some(entry) => self.text.replace_range(entry.range, &line),
            None if self.text.is_empty() => self.text = format!("---{end}{line}---{end}"),
            None => self.text.insert_str(self.closing(), &line),
        }
    }

    /// The start of the closing line.
    fn closing(&self) -> usize {
        self.text.trim_end_matches(['\r', '\n']).rfind('\n').map_or(0, |at| at + 1)
    }

    fn entries(&self) -> Vec<FrontmatterEntry> {
        let mut entries: Vec<FrontmatterEntry> = Vec::new();
        let mut at = 0;
        let end = self.closing();
        for (number, line) in self.text[..end].split_inclusive('\n').enumerate() {
            let range = at..at + line.len();
            at = range.end;
            let body = line.trim_end();
            // Continuation lines: deeper ones, list items, and blank lines before another continuation line.
            let goes_on = body.starts_with([' ', '\t']) || body == "-" || body.starts_with("- ");
            match key_of(body) {
                Some(key) if number > 0 => entries.push(FrontmatterEntry { key, line: number + 1, range }),
                _ if goes_on => {
                    if let Some(last) = entries.last_mut() {
                        last.range.end = range.end;
                    }
                }
                _ => {}
            }
        }
        entries
    }
}

/// The key at the start of a top-level line.
fn key_of(line: &str) -> Option<String> {
    if line.starts_with(['"', '\'']) {
        let quote = line.chars().next()?;
        let mut escaped = false;
        let end = line.char_indices().skip(1).find(|(_, char)| {
            let closes = *char == quote && !escaped;
            escaped = quote == '"' && *char == '\\' && !escaped;
            closes
        });
        let (end, _) = end?;
        let rest = line[end + 1..].trim_start().strip_prefix(':')?;
        let key =
            if quote == '"' { serde_json::from_str(&line[..=end]).ok()? } else { line[1..end].to_owned() };
        return (rest.is_empty() || rest.starts_with(' ')).then_some(key);
    }
    if line.starts_with([' ', '\t', '#', '-', '?', '[', '{', '&', '*', '!', '|', '>', '%', '@', '`']) {
        return None;
    }
    let end = line.match_indices(':').find(|(at, _)| {
        let rest = &line[at + 1..];
        rest.is_empty() || rest.starts_with([' ', '\t'])
    });
    end.map(|(at, _)| line[..at].trim_end().to_owned()).filter(|key| !key.is_empty())
}

/// Writes a value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Plain if every YAML reader parses it as this text, otherwise in double quotes.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | '/');
    let is_name = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && text.chars().all(plain)
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is_name || text.parse::<super::DocumentTime>().is_ok_and(|moment| moment.to_string() == text) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            // Characters that YAML does not accept, or treats as line breaks.
            char if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            char => quoted.push(char),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::quote::tests::hostile;
    use super::*;

    const EDITED: &str = "---\r\n# mine\r\ntitle: A: b \r\n\r\ntags:\r\n  - one\r\n- two\r\nmood: \"odd\" # why\r\n'a b': [1,\r\n  2]\r\n---\r\nBody\r\n";

    #[test]
    fn a_key_is_set_and_every_other_byte_stays() {
        let mut note = Note::parse(EDITED);
        assert_eq!(note.to_string(), EDITED);
        assert_eq!(note.frontmatter.keys(), ["title", "tags", "mood", "a b"]);
        assert_eq!(note.frontmatter.get("tags"), None, "no reader of YAML takes this list");
        assert_eq!(note.frontmatter.get("mood"), Some(json!("odd")));
        assert_eq!(note.frontmatter.get("a b"), Some(json!([1, 2])));
        assert_eq!((note.frontmatter.line_of("tags"), note.body_line()), (Some(5), 12));
        note.frontmatter.set("tags", &json!(["x"]));
        note.frontmatter.set("quality", &json!(0.5));
        assert_eq!(
            note.to_string(),
            EDITED
                .replace("tags:\r\n  - one\r\n- two", "tags: [x]")
                .replace("2]\r\n", "2]\r\nquality: 0.5\r\n")
        );
    }

    #[test]
    fn a_note_without_frontmatter_gets_one() {
        let mut note = Note::parse("# Title\n");
        note.frontmatter.set("id", &json!("turn_000815_context"));
        assert_eq!(note.to_string(), "---\nid: turn_000815_context\n---\n# Title\n");
    }

    proptest! {
        #[test]
        fn any_text_is_a_note_and_stays(text in hostile(), front in hostile()) {
            for text in [text.clone(), format!("---\n{front}\n---\n{text}")] {
                prop_assert_eq!(Note::parse(&text).to_string(), text);
            }
        }

        #[test]
        fn what_is_set_is_read(before in hostile(), key in hostile(), text in hostile(), more in "\\PC{0,9}") {
            let mut note = Note::parse(&format!("---\nfirst: 1\n---\n{before}"));
            for value in [json!(text), json!([more, text]), json!(1.5), json!(true), json!(null)] {
                note.frontmatter.set(&key, &value);
                prop_assert_eq!(note.frontmatter.get(&key), Some(value), "{}", note);
                prop_assert_eq!(&Note::parse(&note.to_string()), &note);
            }
            prop_assert!(note.body == before && (key == "first" || note.frontmatter.get("first") == Some(json!(1))));
        }
    }
}
