//! Renditions: the texts that can represent a part, and the cost of each. Owns the wording of pointers and of gap
//! markers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::part::{Part, Shell};
use super::receipt::{OriginalText, PackOriginal, Rendition};
use larder_condense::{Author, CondenseError, CondenseRequest, Condensed, Gap};
use larder_text::hash::ContentHash;
use larder_text::message::Message;
use larder_text::picture::Picture;
use larder_text::pointer::{Pointer, PointerKey};
use larder_text::tokens::Counter;

/// How many characters of a part's first line its pointer shows.
const EXCERPT_CHARS: usize = 60;

/// A rendition and its text as it appears in the prompt.
#[derive(Debug, Clone)]
pub(super) struct Rendered {
    pub rendition: Rendition,
    pub text: String,
    pub tokens: usize,
    pub pointer: Option<Pointer>,
    pub gaps: Vec<Gap>,
    pub author: Option<Author>,
}

impl Rendered {
    /// Creates a rendition without text.
    pub const fn nothing(rendition: Rendition) -> Self {
        Self { rendition, text: String::new(), tokens: 0, pointer: None, gaps: Vec::new(), author: None }
    }
}

/// Renders parts and caches the results, including renditions supplied by a model.
pub(super) struct PartRenderer<'a> {
    pub counter: &'a Counter,
    pub key: &'a PointerKey,
    made: BTreeMap<(usize, usize), Result<Condensed, CondenseError>>,
    /// Renditions written by a model, by part.
    written: BTreeMap<usize, Vec<Condensed>>,
    /// Parts that may only be represented by their beginning.
    pub only_cut: BTreeSet<usize>,
}

impl<'a> PartRenderer<'a> {
    pub fn new(counter: &'a Counter, key: &'a PointerKey, only_cut: BTreeSet<usize>) -> Self {
        Self { counter, key, made: BTreeMap::new(), written: BTreeMap::new(), only_cut }
    }

    /// Adds a rendition made by a model, which the caller has verified.
    pub fn supply(&mut self, part: usize, condensed: Condensed) {
        self.written.entry(part).or_default().push(condensed);
    }

    /// The largest of a model's renditions with at most `inner` tokens. A replan asks for slightly more or fewer
    /// tokens than before, which does not justify another model call.
    pub fn written(&self, part: usize, inner: usize) -> Option<&Condensed> {
        let written = self.written.get(&part)?;
        written.iter().filter(|condensed| condensed.tokens <= inner).max_by_key(|condensed| condensed.tokens)
    }

    pub fn whole(&self, part: &Part) -> Rendered {
        let text = part.framed(&part.text);
        let tokens = self.counter.count(&text) + self.shell_cost(part);
        Rendered { text, tokens, ..Rendered::nothing(Rendition::Whole) }
    }

    /// The cost of the whole part, unless it exceeds `limit`. `framed` is scratch space.
    pub fn whole_cost(&self, part: &Part, limit: usize, framed: &mut String) -> Option<usize> {
        // Measure a huge text before making a framed copy of it.
        if part.text.len() > 1 << 16 {
            self.counter.count_up_to(&part.text, limit)?;
        }
        framed.clear();
        part.frame_into(&part.text, framed);
        self.counter.count_up_to(framed, limit)
    }

    /// The part condensed to at most `target` tokens, frame included; `query` is the relevant question, which never
    /// changes for a part.
    pub fn condensed(
        &mut self,
        index: usize,
        part: &Part,
        target: usize,
        query: Option<&str>,
    ) -> Result<Rendered, CondenseError> {
        let shell = self.shell_cost(part);
        let (counter, key) = (self.counter, self.key);
        let inner = target.saturating_sub(self.frame_cost(part) + shell);
        // The frame and a text may take a token or two more together than each alone.
        let excess = |text: &str| (counter.count(&part.framed(text)) + shell).saturating_sub(target);
        let condensed = match self.written(index, inner) {
            Some(written) if excess(&written.text) == 0 => written.clone(),
            _ => {
                let shorten = if self.only_cut.contains(&index) {
                    larder_condense::truncate
                } else {
                    larder_condense::condense
                };
                let made = self.made.entry((index, target)).or_insert_with(|| {
                    let within = |target: usize| {
                        shorten(&CondenseRequest {
                            text: &part.text,
                            content_type: part.content_type,
                            target,
                            query,
                            pins: &part.pins,
                            counter,
                            key,
                        })
                    };
                    let made = within(inner)?;
                    match excess(&made.text) {
                        0 => Ok(made),
                        excess => within(inner.saturating_sub(excess + 1)),
                    }
                });
                made.clone()?
            }
        };
        let text = part.framed(&condensed.text);
        let tokens = counter.count(&text) + shell;
        let (rendition, pointer) = if condensed.gaps.is_empty() && condensed.text == *part.text {
            (Rendition::Whole, None)
        } else {
            (Rendition::Condensed, Some(condensed.pointer))
        };
        Ok(Rendered { rendition, text, tokens, pointer, gaps: condensed.gaps, author: condensed.author })
    }

    /// Tokens of the part's frame alone.
    pub fn frame_cost(&self, part: &Part) -> usize {
        self.counter.count(&part.framed(""))
    }

    /// Tokens of a message's calls, ids and pictures, in addition to its text.
    pub fn shell_cost(&self, part: &Part) -> usize {
        if part.shell == Shell::default() && part.pictures.is_empty() {
            return 0;
        }
        let mut message = Message::text(part.role, "");
        let bare = self.counter.count_message(&message);
        message.tool_calls.clone_from(&part.shell.tool_calls);
        message.tool_call_id.clone_from(&part.shell.tool_call_id);
        message.content.extend(part.pictures.iter().map(Picture::content));
        self.counter.count_message(&message) - bare
    }

    /// The part as a pointer with one line of display text.
    pub fn pointer(&self, part: &Part) -> Rendered {
        let pointer = self.pointer_to(part);
        let text = pointer_text(&part.source.name, &part.text, &pointer) + "\n";
        let tokens = self.counter.count(&text);
        Rendered { text, tokens, pointer: Some(pointer), ..Rendered::nothing(Rendition::Pointer) }
    }

    /// A pointer to the part's bytes: into its document if it is a slice of one.
    pub fn pointer_to(&self, part: &Part) -> Pointer {
        match &part.source.slice {
            Some(slice) => Pointer::bytes(self.key.mint(slice.document), slice.bytes.clone()),
            None => Pointer::whole(self.key.mint(ContentHash::new(part.text.as_bytes()))),
        }
    }

    /// The original that [`Self::pointer_to`] refers to.
    pub fn original(part: &Part) -> PackOriginal {
        let name = one_line(&part.source.name);
        match &part.source.slice {
            Some(slice) => PackOriginal {
                text: OriginalText::Given(Arc::clone(&slice.text)),
                kind: "document",
                display: name,
            },
            None => PackOriginal {
                text: OriginalText::Given(Arc::clone(&part.text)),
                kind: part.content_type.as_str(),
                display: name,
            },
        }
    }
}

/// The pointer rendition of a text: one line describing it.
pub(super) fn pointer_text(name: &str, text: &str, pointer: &Pointer) -> String {
    format!("[⋯ {}: {} — in full: {pointer}]", one_line(name), excerpt(text))
}

/// The marker for everything that a slot drops. It states no number: absence is not evidence.
pub(super) fn left_out_mark(slot: &str, bundle: &Pointer) -> String {
    format!("[⋯ more in {slot} was left out to fit; all of it: {bundle}]\n")
}

/// Collapses text to one line without control characters, so that names and excerpts of untrusted text stay within
/// their line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '[' | ']') { ' ' } else { c }).collect()
}

fn excerpt(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut cut: String = one_line(line).chars().take(EXCERPT_CHARS).collect();
    if line.chars().nth(EXCERPT_CHARS).is_some() {
        cut.push('…');
    }
    cut
}
