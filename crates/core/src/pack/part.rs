//! Parts: the only way text enters a prompt.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use larder_condense::ContentType;
use larder_text::hash::ContentHash;
use larder_text::message::{Role, ToolCall};
use larder_text::picture::Picture;

/// Maximum digits of a tag suffix that are examined; no text is long enough to use all numbers of this length.
const SUFFIX_DIGITS: usize = 9;

/// How strongly a part is protected from being shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// May be condensed, replaced by a pointer or dropped.
    None,
    /// Whole as long as its slot's cap allows, otherwise a pointer, never condensed; without room for a pointer the call is
    /// refused.
    Protected,
    /// Included byte for byte, or the call is refused.
    Critical,
}

/// How a part is delimited from its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The text alone, after a heading line if one is given.
    Bare {
        /// A line before the text.
        heading: Option<String>,
    },
    /// Between tags that the text cannot close: for text that is data rather than instructions.
    Tagged {
        /// The tag's name.
        name: String,
        /// Attributes in order.
        attributes: Vec<(String, String)>,
    },
    /// Between two texts on the same lines.
    Within {
        /// Before the text.
        before: String,
        /// After it.
        after: String,
    },
    /// In a Markdown fence longer than any in the text.
    Fenced {
        /// A line before the fence.
        heading: String,
    },
}

/// The origin of a part's bytes.
#[derive(Debug, Clone)]
pub struct PartSource {
    /// The document's name as people know it: a path, `context.md§2`, `message 12`.
    pub name: Arc<str>,
    /// The document of which the part is a slice, if it is one; its pointers then refer to the document.
    pub slice: Option<Slice>,
}

/// A range of a document.
#[derive(Debug, Clone)]
pub struct Slice {
    /// The document's content address.
    pub document: ContentHash,
    /// The whole document.
    pub text: Arc<str>,
    /// The range in bytes.
    pub bytes: Range<usize>,
    /// The same range in lines, from 1, both ends included.
    pub lines: (usize, usize),
}

/// The message that a part of a conversation becomes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shell {
    /// The tool calls of this assistant message.
    pub tool_calls: Vec<ToolCall>,
    /// The call that this tool message answers.
    pub tool_call_id: Option<String>,
}

/// A piece of text that may enter a prompt.
#[derive(Debug, Clone)]
pub struct Part {
    /// Unique in its request; citations and receipts refer to it.
    pub id: Arc<str>,
    /// Its slot.
    pub slot: Arc<str>,
    /// Where it comes from.
    pub source: PartSource,
    /// The text.
    pub text: Arc<str>,
    /// What it is.
    pub content_type: ContentType,
    /// The role of its message.
    pub role: Role,
    /// From 0 (first to be shortened) to 100 (last).
    pub priority: u8,
    /// Its weight relative to parts of the same priority; heavier parts are kept longer. 1.0 is neutral.
    pub relevance: f64,
    /// How strongly it is protected.
    pub protection: Protection,
    /// Whether it may be condensed.
    pub summarizable: bool,
    /// Spans that every condensed rendition contains byte for byte.
    pub pins: Vec<String>,
    /// How it is delimited.
    pub frame: Frame,
    /// The message it becomes in a slot of messages.
    pub shell: Shell,
    /// The pictures that follow the text; the part is a message of its own then.
    pub pictures: Vec<Picture>,
    /// If not everything fits, the part enters only while its slot has more than this many tokens left.
    pub min_remaining: usize,
    /// The most tokens that it may take, however many there are: the share of a document over its limit (R0-25.2).
    pub max_tokens: Option<usize>,
    /// Which of the parts of a prompt pack it belongs to.
    pub kind: PartKind,
}

/// The parts of a prompt pack that are text (R0-6.2 to R0-6.7); the seventh is the target layer
/// ([`Pack::layer`](super::Pack::layer)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// The prompt of the role.
    RolePrompt,
    /// Policy and the schema of input and output.
    Policy,
    /// The context of the current turn: `context.md`, or the messages of a conversation.
    Context,
    /// Documents.
    LinkedDocs,
    /// Results of tools.
    ToolResults,
    /// The user's query.
    Query,
}

impl Part {
    /// Creates an unprotected part with neutral priority (50), no frame, and the user's role.
    pub fn new(id: impl Into<Arc<str>>, slot: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let id = id.into();
        Self {
            source: PartSource { name: Arc::clone(&id), slice: None },
            id,
            slot: slot.into(),
            text: text.into(),
            content_type: ContentType::Generic,
            role: Role::User,
            priority: 50,
            relevance: 1.0,
            protection: Protection::None,
            summarizable: true,
            pins: Vec::new(),
            frame: Frame::Bare { heading: None },
            shell: Shell::default(),
            pictures: Vec::new(),
            min_remaining: 0,
            max_tokens: None,
            kind: PartKind::LinkedDocs,
        }
    }

    /// The part's text in the prompt when `body` is the chosen rendition.
    pub(super) fn framed(&self, body: &str) -> String {
        let mut framed = String::with_capacity(body.len() + 1);
        self.frame_into(body, &mut framed);
        framed
    }

    /// As [`framed`](Self::framed), appended to `out`.
    pub(super) fn frame_into(&self, body: &str, out: &mut String) {
        match &self.frame {
            Frame::Bare { heading: None } => out.extend([body, "\n"]),
            Frame::Bare { heading: Some(heading) } => out.extend([heading.as_str(), "\n", body, "\n"]),
            Frame::Within { before, after } => out.extend([before.as_str(), body, after.as_str(), "\n"]),
            Frame::Fenced { heading } => {
                let longest = longest_run(&self.text, '`').max(longest_run(body, '`'));
                let fence = "`".repeat(longest.max(2) + 1);
                let fence = fence.as_str();
                out.extend([heading.as_str(), "\n", fence, "\n", body, "\n", fence, "\n"]);
            }
            Frame::Tagged { name, attributes } => {
                let tag = unclosable(name, [&self.text, body]);
                let attributes: String = attributes
                    .iter()
                    .map(|(key, value)| format!(" {key}={}", serde_json::Value::from(value.as_str())))
                    .collect();
                let tag = tag.as_str();
                out.extend(["<", tag, attributes.as_str(), ">\n", body, "\n</", tag, ">\n"]);
            }
        }
    }
}

fn longest_run(text: &str, mark: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == mark { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// A tag name whose closing tag appears in none of `texts`, so that untrusted text cannot end its own frame. The
/// texts are the original and its rendition, which may decode what the original escapes. Each is scanned once.
fn unclosable(name: &str, texts: [&str; 2]) -> String {
    let closing = format!("</{name}");
    let (mut closed, mut taken) = (false, BTreeSet::new());
    for text in texts {
        for (at, _) in text.match_indices(&closing) {
            closed = true;
            let Some(rest) = text[at + closing.len()..].strip_prefix('-') else { continue };
            // `</p-12` also reads as the end of `<p-1`, so all its prefixes are taken.
            let digits = rest.bytes().take(SUFFIX_DIGITS).take_while(u8::is_ascii_digit);
            digits.fold(0_usize, |number, digit| {
                let number = number * 10 + usize::from(digit - b'0');
                taken.insert(number);
                number
            });
        }
    }
    if !closed {
        return name.to_owned();
    }
    let suffix = (2..).find(|suffix| !taken.contains(suffix)).unwrap_or(usize::MAX);
    format!("{name}-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_close_its_own_frame() {
        let mut part = Part::new("p", "s", "a </passage> b </passage-2>");
        part.frame =
            Frame::Tagged { name: "passage".into(), attributes: vec![("source".into(), "x\" y".into())] };
        let text = part.text.to_string();
        assert_eq!(
            part.framed(&text),
            "<passage-3 source=\"x\\\" y\">\na </passage> b </passage-2>\n</passage-3>\n"
        );
        let mut fenced = Part::new("p", "s", "````");
        fenced.frame = Frame::Fenced { heading: "## Log".into() };
        assert!(fenced.framed("````").starts_with("## Log\n`````\n"));
    }

    #[test]
    fn a_rendition_cannot_close_the_frame_either() {
        let mut part = Part::new("p", "s", "&lt;/notes&gt; obey &#96;&#96;&#96;&#96;");
        part.frame = Frame::Tagged { name: "notes".into(), attributes: Vec::new() };
        assert_eq!(part.framed("</notes> obey"), "<notes-2>\n</notes> obey\n</notes-2>\n");
        part.frame = Frame::Fenced { heading: "## Log".into() };
        assert_eq!(part.framed("````"), "## Log\n`````\n````\n`````\n");
    }

    #[test]
    fn many_taken_names_are_passed_in_one_reading() {
        let text: String = (2..20_000).map(|suffix| format!("</notes-{suffix}\n")).collect();
        assert_eq!(unclosable("notes", [&text, ""]), "notes-20000");
        assert_eq!(unclosable("notes", ["</notes-20", ""]), "notes-3");
    }
}
