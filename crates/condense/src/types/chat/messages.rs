//! Finds the messages of a conversation: JSON objects with a role, lines that start with a speaker, headings that
//! name one.
//!
//! Knows how conversations are written, not what matters in them. Single pass, no recursion.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use larder_text::lines::spans;
use larder_text::message::Role;
use larder_text::pattern::pattern;
use larder_text::transcript;

/// Common speakers; a line that begins with any other `Name:` may be anything.
const SPEAKERS: &str = "user|human|customer|client|me|you|question|q|assistant|ai|bot|agent|model|answer|a|chatgpt|claude|gpt|gemini|copilot|support|system|developer|tool|function|observation|tool result";
/// Minimum number of alternating messages in a line-based conversation, and of objects in a JSON one.
const MIN_LINES: usize = 4;
const MIN_OBJECTS: usize = 2;
/// The share of a conversation that messages must make up, in per cent.
const SHARE: usize = 80;
/// Maximum bytes of a label.
const LONGEST_LABEL: usize = 80;
/// How far the role may be from the start of its object, and the content from the role, in bytes.
const NEAR: usize = 48;
/// Objects nested deeper contain no messages.
const DEEPEST: usize = 3;
/// Minimum occurrences of a name that is not a known speaker.
const MIN_TURNS: usize = 2;

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
    /// Someone with a name.
    Other,
}

impl Speaker {
    fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "user" | "human" | "customer" | "client" | "me" | "question" | "q" => Self::User,
            "assistant" | "ai" | "bot" | "agent" | "model" | "answer" | "a" | "you" | "chatgpt"
            | "claude" | "gpt" | "gemini" | "copilot" | "support" => Self::Assistant,
            "system" | "developer" => Self::System,
            "tool" | "function" | "observation" | "tool result" => Self::Tool,
            _ => Self::Other,
        }
    }
}

/// How the messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    Json,
    Lines,
    /// As [`transcript::write`](larder_text::transcript::write) writes it.
    Transcript,
}

/// One message. Messages are contiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChatMessage {
    pub(super) role: Speaker,
    /// Its number in the conversation, from 1.
    pub(super) number: usize,
    pub(super) range: Range<usize>,
    /// The text that identifies the speaker.
    pub(super) label: Range<usize>,
}

/// The messages of a transcript that Larder wrote.
fn written(text: &str) -> Option<Vec<ChatMessage>> {
    let labels = transcript::labels(text)?;
    let ends: Vec<usize> =
        labels.iter().skip(1).map(|label| label.bytes.start).chain(std::iter::once(text.len())).collect();
    let message = |(label, end): (transcript::Label, usize)| ChatMessage {
        role: match label.role {
            Role::System => Speaker::System,
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Assistant,
            Role::Tool => Speaker::Tool,
        },
        number: label.number,
        range: label.bytes.start..end,
        label: label.bytes,
    };
    Some(labels.into_iter().zip(ends).map(message).collect())
}

/// The messages of a text in order; other text may precede the first and follow the last.
#[derive(Debug)]
pub(super) struct ChatTranscript {
    pub(super) messages: Vec<ChatMessage>,
    pub(super) writing: Writing,
}

impl ChatTranscript {
    pub(super) fn of(text: &str) -> Self {
        if let Some(messages) = written(text) {
            return Self { messages, writing: Writing::Transcript };
        }
        let objects = if text.trim_start().starts_with(['[', '{']) { json(text) } else { Vec::new() };
        if objects.len() >= MIN_OBJECTS {
            return Self { messages: objects, writing: Writing::Json };
        }
        Self { messages: lines(text, &ANYONE, text.len()), writing: Writing::Lines }
    }

    /// The first message of the user, or of any speaker except the system.
    pub(super) fn first_request(&self) -> Option<usize> {
        let first = |role: Speaker| self.messages.iter().position(|message| message.role == role);
        first(Speaker::User).or_else(|| first(Speaker::Other))
    }
}

/// Whether messages with known speakers make up most of the text.
pub(super) fn is_transcript(text: &str) -> bool {
    if text.trim_start().starts_with(['[', '{']) {
        // If every message names its role, most texts are recognised without inspecting values.
        if memchr::memmem::find_iter(text.as_bytes(), "\"role\"").take(MIN_OBJECTS).count() < MIN_OBJECTS {
            return false;
        }
        let messages = json(text);
        let bytes: usize = messages.iter().map(|message| message.range.len()).sum();
        let known = messages.iter().all(|message| message.role != Speaker::Other);
        return known && messages.len() >= MIN_OBJECTS && bytes * 100 >= text.len() * SHARE;
    }
    let before = text.len() - text.len() / 100 * SHARE;
    let messages = lines(text, &KNOWN, before);
    let alternating = messages.windows(2).filter(|pair| pair[0].role != pair[1].role).count() + 1;
    let covered = messages.first().map_or(0, |first| text.len() - first.range.start);
    let both =
        [Speaker::User, Speaker::Assistant].iter().all(|role| messages.iter().any(|m| m.role == *role));
    both && alternating >= MIN_LINES
        && alternating * 2 > messages.len()
        && covered * 100 >= text.len() * SHARE
}

/// Matches `Name:`, optionally after a time, as a heading, or in bold.
fn label_pattern(name: &str) -> Regex {
    let time = r"(?:\[[^\]\n]{1,40}\] ?|\(?\d{1,2}:\d{2}(?::\d{2})?\)?[ ,-]+)?";
    let note = r"(?: ?\([^)\n]{0,40}\))?";
    pattern(&format!(
        r"(?m)^(?:{time}\*{{0,2}}(?P<line>{name}){note}(?:\*\*:|:\*\*|:)(?:[ \t]|$)|#{{1,6}} \*{{0,2}}(?P<head>{name}){note}:?\*{{0,2}}[ \t\r]*$|\*\*(?P<bold>{name}){note}\*\*[ \t\r]*$)"
    ))
}

static KNOWN: LazyLock<Regex> = LazyLock::new(|| label_pattern(&format!("(?i:{SPEAKERS})")));
static ANYONE: LazyLock<Regex> = LazyLock::new(|| {
    let word = r"[^\s:*#\[\]()]+";
    label_pattern(&format!("(?i:{SPEAKERS})|{word}(?: {word}){{0,2}}"))
});

/// Messages that start with a label, outside fenced blocks; none if no label starts in the first `within` bytes.
fn lines(text: &str, speakers: &Regex, within: usize) -> Vec<ChatMessage> {
    let mut found: Vec<(&str, Range<usize>)> = Vec::new();
    let mut times: hashbrown::HashMap<&str, usize> = hashbrown::HashMap::new();
    let mut fenced = false;
    for span in spans(text) {
        let (start, line) = (span.start, &text[span]);
        if found.is_empty() && start > within {
            break;
        }
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let head = &line[..line.floor_char_boundary(LONGEST_LABEL)];
        let labelled = head.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '*' | '#' | '[' | '('));
        if fenced || !labelled || !head.contains(':') && !head.starts_with(['#', '*']) {
            continue;
        }
        let Some(captures) = speakers.captures(head) else { continue };
        let name = ["line", "head", "bold"].iter().find_map(|group| captures.name(group));
        let (Some(name), Some(all)) = (name, captures.get(0)) else { continue };
        if Speaker::of(name.as_str()) == Speaker::Other && !name.as_str().starts_with(char::is_uppercase) {
            continue;
        }
        *times.entry(name.as_str()).or_default() += 1;
        found.push((name.as_str(), start..start + all.end()));
    }
    found.retain(|(name, _)| Speaker::of(name) != Speaker::Other || times[name] >= MIN_TURNS);
    let ends: Vec<usize> =
        found.iter().skip(1).map(|(_, label)| label.start).chain(std::iter::once(text.len())).collect();
    let message = |(at, ((name, label), end)): (usize, ((&str, Range<usize>), usize))| ChatMessage {
        role: Speaker::of(name),
        number: at + 1,
        range: label.start..end,
        // A line break after the label belongs to it.
        label: label.start..label.end + usize::from(text[label.end..end].starts_with('\n')),
    };
    found.into_iter().zip(ends).enumerate().map(message).collect()
}

/// An object being scanned.
#[derive(Debug, Clone, Default)]
struct Object {
    start: usize,
    /// The ranges of `"role": "user"` and of the name in it.
    role: Option<(Range<usize>, Range<usize>)>,
    content: Option<usize>,
}

/// The outermost objects with a role and content, found without parsing anything else.
fn json(text: &str) -> Vec<ChatMessage> {
    let bytes = text.as_bytes();
    let mut objects: Vec<Object> = Vec::new();
    let mut depth = 0_usize;
    let mut found: Vec<ChatMessage> = Vec::new();
    let mut at = 0;
    while let Some(skipped) = memchr::memchr3(b'{', b'}', b'"', &bytes[at..]) {
        at += skipped;
        match bytes[at] {
            b'{' => {
                depth += 1;
                if depth <= DEEPEST {
                    objects.push(Object { start: at, ..Object::default() });
                }
                at += 1;
            }
            b'}' => {
                if depth <= DEEPEST
                    && let Some(object) = objects.pop()
                {
                    close(text, &object, at + 1, &mut found);
                }
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ => {
                let end = string_end(bytes, at);
                if let Some(object) = objects.last_mut().filter(|_| depth <= DEEPEST) {
                    at = key(text, at..end, object);
                } else {
                    at = end;
                }
            }
        }
    }
    let starts: Vec<usize> = found.iter().skip(1).map(|message| message.range.start).collect();
    for (message, next) in found.iter_mut().zip(starts) {
        message.range.end = next;
    }
    for (at, message) in found.iter_mut().enumerate() {
        message.number = at + 1;
    }
    found
}

/// The byte after the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(skipped) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += skipped;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at = (at + 2).min(bytes.len());
    }
    bytes.len()
}

/// Records the string if it is a relevant key; returns the byte at which to continue.
fn key(text: &str, string: Range<usize>, object: &mut Object) -> usize {
    let name = text.get(string.start + 1..string.end.saturating_sub(1)).unwrap_or_default();
    if !matches!(name, "role" | "content" | "tool_calls" | "parts") {
        return string.end;
    }
    let bytes = text.as_bytes();
    let spaces = |from: usize| {
        from + bytes[from..].iter().take(NEAR).take_while(|byte| byte.is_ascii_whitespace()).count()
    };
    let colon = spaces(string.end);
    if bytes.get(colon) != Some(&b':') {
        return string.end;
    }
    let value = spaces(colon + 1);
    if name != "role" {
        object.content = object.content.or(Some(value));
        return value;
    }
    if bytes.get(value) == Some(&b'"') {
        let end = string_end(bytes, value);
        object.role = Some((string.start..end, value + 1..end.saturating_sub(1).max(value + 1)));
        return end;
    }
    value
}

/// Records the object if it is a message; messages inside it are then discarded.
fn close(text: &str, object: &Object, end: usize, found: &mut Vec<ChatMessage>) {
    let (Some((role, name)), Some(content)) = (&object.role, object.content) else { return };
    let (Some(name), true) = (text.get(name.clone()), role.len() <= LONGEST_LABEL) else { return };
    while found.pop_if(|inner| inner.range.start >= object.start).is_some() {}
    let start = if role.start - object.start <= NEAR { object.start } else { role.start };
    let said = content + usize::from(text.as_bytes().get(content) == Some(&b'"'));
    let label_end = if content > role.end && content - role.end <= NEAR { said } else { role.end };
    found.push(ChatMessage {
        role: Speaker::of(name),
        number: 0,
        range: object.start..end,
        label: start..label_end,
    });
}
