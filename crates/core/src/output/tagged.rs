//! Tagged answers: extracts the declared tags from the text as it arrives; the rest is the reply.
//!
//! A tag is `<name>` … `</name>`; case, white space and attributes before the `>` are ignored, so that a careless
//! model cannot expose a hidden tag. Tags do not nest: inside one, only its own closing tag counts. Everything else
//! is text, and so is a tag in code (between backticks, or in a fenced block), which shows it, unless the tag is hidden,
//! required or inline. An inline tag opens nothing: what is in it is part of the reply, where other tags count. The
//! parser works character by character and keeps its state, so any chunking gives the same result.

use serde_json::{Map, Value};

use super::OutputError;
use super::stream::OutputEvent;
use crate::recipe::TagSpec;
use larder_text::code_state::CodeState;

/// Maximum bytes of white space and attributes between the name of a tag and its `>`.
const MAX_ATTRIBUTES: usize = 64;
/// Maximum characters of a field name.
const MAX_FIELD_NAME: usize = 40;

/// The state of a tagged answer being parsed.
#[derive(Debug, Clone)]
pub(super) struct Tagged {
    specs: Vec<TagSpec>,
    /// Bytes parsed so far.
    offset: usize,
    /// Text from a `<` on that may still become a tag.
    pending: String,
    open: Option<OpenTag>,
    /// Whether the text outside tags is inside code.
    code: CodeState,
    /// The inline tag that is open, whose content goes into the reply, too.
    inline: Option<OpenTag>,
    found: Vec<(usize, String)>,
    reply: String,
    /// White space that belongs to the reply only if more of the reply follows.
    held: String,
    error: Option<OutputError>,
}

#[derive(Debug, Clone)]
struct OpenTag {
    spec: usize,
    offset: usize,
    text: String,
}

enum TagMark {
    No,
    Maybe,
    Opens(usize),
    Closes(usize),
}

impl Tagged {
    pub(super) fn new(specs: &[TagSpec]) -> Self {
        Self {
            specs: specs.to_vec(),
            offset: 0,
            pending: String::new(),
            open: None,
            code: CodeState::default(),
            inline: None,
            found: Vec::new(),
            reply: String::new(),
            held: String::new(),
            error: None,
        }
    }

    /// Parses more text and emits what the user may see of it.
    pub(super) fn push(&mut self, mut text: &str, events: &mut Vec<OutputEvent>) {
        while let Some(next) = text.chars().next() {
            if self.pending.is_empty() && next != '<' {
                let (plain, rest) = text.split_at(text.find('<').unwrap_or(text.len()));
                self.offset += plain.len();
                self.take(plain, events);
                text = rest;
                continue;
            }
            text = &text[next.len_utf8()..];
            if next == '<' {
                self.release(events);
            }
            self.pending.push(next);
            self.offset += next.len_utf8();
            match self.classify() {
                TagMark::Maybe => {}
                TagMark::No => self.release(events),
                TagMark::Opens(spec) => self.opened(spec),
                TagMark::Closes(spec) => self.closed(spec, events),
            }
        }
    }

    /// Classifies `pending`. Inside a tag only that tag's closing tag counts.
    fn classify(&self) -> TagMark {
        // White space in front of the name is as careless as behind it.
        let body = self.pending[1..].trim_start();
        let (closing, name) = body.strip_prefix('/').map_or((false, body), |name| (true, name.trim_start()));
        let candidates = self.specs.iter().enumerate();
        let mut verdict = TagMark::No;
        let in_code = self.open.is_none() && self.code.is_inside();
        for (spec, TagSpec { name: declared, hidden, required, inline, .. }) in candidates {
            if in_code && !(*hidden || *required || *inline) {
                continue;
            }
            let expected = match &self.open {
                Some(open) => open.spec == spec && (closing || body.is_empty()),
                None => true,
            };
            match expected.then(|| tag_end(name, declared)) {
                Some(TagMark::Opens(_)) if closing => return TagMark::Closes(spec),
                Some(TagMark::Opens(_)) => return TagMark::Opens(spec),
                Some(TagMark::Maybe) => verdict = TagMark::Maybe,
                _ => {}
            }
        }
        verdict
    }

    /// Treats `pending` as text: it turned out not to be a tag.
    fn release(&mut self, events: &mut Vec<OutputEvent>) {
        let text = std::mem::take(&mut self.pending);
        self.take(&text, events);
    }

    /// Ends the text. A tag that was cut off behind its name, or while it closes, is no text.
    fn end(&mut self, events: &mut Vec<OutputEvent>) {
        let cut = self.pending.trim_start_matches(['<', '/', ' ']);
        let is_named = self
            .specs
            .iter()
            .any(|spec| cut.get(..spec.name.len()).is_some_and(|name| name.eq_ignore_ascii_case(&spec.name)));
        if is_named || (self.pending.len() > 2 && self.pending.starts_with("</")) {
            self.pending.clear();
        }
        self.release(events);
    }

    fn opened(&mut self, spec: usize) {
        let offset = self.offset - self.pending.len();
        self.pending.clear();
        let TagSpec { name, multiple, .. } = &self.specs[spec];
        if !multiple && self.found.iter().any(|(found, _)| *found == spec) {
            self.fail(OutputError::RepeatedTag { name: name.clone(), offset });
        }
        let opened = Some(OpenTag { spec, offset, text: String::new() });
        if self.specs[spec].inline {
            self.inline = opened;
        } else {
            self.open = opened;
        }
    }

    fn closed(&mut self, spec: usize, events: &mut Vec<OutputEvent>) {
        let offset = self.offset - self.pending.len();
        self.pending.clear();
        let name = &self.specs[spec].name;
        let open = if self.specs[spec].inline { self.inline.take() } else { self.open.take() };
        let Some(open) = open.filter(|open| open.spec == spec) else {
            return self.fail(OutputError::UnopenedTag { name: name.clone(), offset });
        };
        let text = open.text.trim().to_owned();
        if !self.specs[spec].hidden && !self.specs[spec].inline {
            events.push(OutputEvent::Tag { name: name.clone(), text: text.clone() });
        }
        self.found.push((spec, text));
    }

    /// Appends text to the open tag, otherwise to the reply, whose outer white space is layout.
    fn take(&mut self, text: &str, events: &mut Vec<OutputEvent>) {
        if let Some(open) = &mut self.open {
            return open.text.push_str(text);
        }
        self.code.read(text);
        if let Some(inline) = &mut self.inline {
            inline.text.push_str(text);
        }
        let text = if self.reply.is_empty() { text.trim_start() } else { text };
        let shown = text.trim_end();
        if !shown.is_empty() {
            let mut delta = std::mem::take(&mut self.held);
            delta.push_str(shown);
            self.reply.push_str(&delta);
            match events.last_mut() {
                Some(OutputEvent::Reply(last)) => last.push_str(&delta),
                _ => events.push(OutputEvent::Reply(delta)),
            }
        }
        if !self.reply.is_empty() {
            self.held.push_str(&text[shown.len()..]);
        }
    }

    /// Keeps the first error; parsing continues so that later text still ends up in the right place.
    fn fail(&mut self, error: OutputError) {
        self.error.get_or_insert(error);
    }

    /// The tags that can be read and the reply, whatever is wrong with the others. What is in a tag that never closes
    /// stays hidden.
    pub(super) fn salvage(mut self) -> (Value, String) {
        self.end(&mut Vec::new());
        let mut value = Map::new();
        for (at, spec) in self.specs.iter().enumerate() {
            let texts = self.found.iter().filter(|(found, _)| *found == at);
            let mut contents = texts.filter_map(|(_, text)| content(spec, text).ok());
            let content = if spec.multiple {
                Some(Value::Array(contents.collect()))
                    .filter(|all| all.as_array().is_some_and(|all| !all.is_empty()))
            } else {
                contents.next()
            };
            value.extend(content.map(|content| (spec.name.clone(), content)));
        }
        (Value::Object(value), self.reply)
    }

    /// Returns the tags by name and the reply.
    pub(super) fn finish(mut self, events: &mut Vec<OutputEvent>) -> Result<(Value, String), OutputError> {
        self.end(events);
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(OpenTag { spec, offset, .. }) = self.open.or(self.inline) {
            return Err(OutputError::UnclosedTag { name: self.specs[spec].name.clone(), offset });
        }
        let mut value = Map::new();
        for (at, spec) in self.specs.iter().enumerate() {
            let texts =
                self.found.iter().filter(|(found, _)| *found == at).map(|(_, text)| content(spec, text));
            let mut contents = texts.collect::<Result<Vec<_>, _>>()?;
            if contents.is_empty() {
                if spec.required {
                    return Err(OutputError::MissingTag { name: spec.name.clone() });
                }
                continue;
            }
            let content = if spec.multiple { Value::Array(contents) } else { contents.swap_remove(0) };
            value.insert(spec.name.clone(), content);
        }
        Ok((Value::Object(value), self.reply))
    }
}

/// Whether `text`, which follows `<` or `</`, is or may become `declared` followed by `>`.
fn tag_end(text: &str, declared: &str) -> TagMark {
    let (name, rest) = text.split_at(text.floor_char_boundary(declared.len()));
    if text.len() < declared.len() {
        let may = declared.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
        return if may { TagMark::Maybe } else { TagMark::No };
    }
    let attributes = rest.strip_suffix('>').unwrap_or(rest);
    // `<draft of a letter>` is text: attributes must be blank or assignments.
    let well_formed = attributes.trim().is_empty() || attributes.contains('=');
    if !name.eq_ignore_ascii_case(declared)
        || attributes.len() > MAX_ATTRIBUTES
        || attributes.starts_with(|c: char| !c.is_ascii_whitespace())
        || (rest.ends_with('>') && !well_formed)
    {
        TagMark::No
    } else if rest.ends_with('>') {
        TagMark::Opens(0)
    } else {
        TagMark::Maybe
    }
}

/// The content of a tag: its text, or its `Field: value` lines if its schema asks for an object.
fn content(spec: &TagSpec, text: &str) -> Result<Value, OutputError> {
    match &spec.schema {
        Some(schema) if schema.get("type").is_none_or(|kind| kind != "string") => {
            fields(&spec.name, schema, text)
        }
        _ => Ok(text.into()),
    }
}

fn fields(tag: &str, schema: &Value, text: &str) -> Result<Value, OutputError> {
    let mut fields: Map<String, Value> = Map::new();
    let mut current: Option<(String, String)> = None;
    let problem = |line: usize, problem| OutputError::Field { name: tag.to_owned(), line: line + 1, problem };
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match (field(line), &mut current) {
            (Some((name, value)), _) => {
                if let Some((name, value)) = current.take() {
                    let value = typed(schema, &name, value);
                    fields.insert(name, value);
                }
                if fields.contains_key(name) {
                    return Err(problem(at, "the same field again"));
                }
                current = Some((name.to_owned(), value.to_owned()));
            }
            (None, Some((_, value))) => {
                value.push('\n');
                value.push_str(line.trim());
            }
            (None, None) => return Err(problem(at, "no field")),
        }
    }
    if let Some((name, value)) = current {
        let value = typed(schema, &name, value);
        fields.insert(name, value);
    }
    Ok(Value::Object(fields))
}

/// Splits a `Field: value` line; any other line continues the previous value.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= MAX_FIELD_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_- ".contains(&byte));
    plain.then_some((name, value.trim()))
}

/// Converts a field's text to the type its schema asks for; text of another type stays text and fails validation.
fn typed(schema: &Value, name: &str, text: String) -> Value {
    let declared = schema.get("properties").and_then(|properties| properties.get(name)?.get("type"));
    let wants = |kinds: &[&str]| {
        declared.is_some_and(|declared| match declared {
            Value::Array(any) => any.iter().any(|kind| kinds.iter().any(|wanted| kind == wanted)),
            one => kinds.iter().any(|wanted| one == wanted),
        })
    };
    match serde_json::from_str(&text) {
        Ok(number @ Value::Number(_)) if wants(&["integer", "number"]) => number,
        Ok(flag @ Value::Bool(_)) if wants(&["boolean"]) => flag,
        _ => Value::String(text),
    }
}
