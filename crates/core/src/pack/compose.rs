//! Turns a plan into messages and counts them exactly. Owns how parts are joined, and the text in which a slot's
//! dropped parts are stored.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use super::part::Part;
use super::receipt::{Epoch, OriginalText, PackOriginal, PartReason, Rendition, SlotLedger, TextSpan};
use super::render::{PartRenderer, Rendered, left_out_mark};
use super::request::PackRequest;
use super::run::PlannedRun;
use super::slot::SlotForm;
use larder_text::hash::ContentHash;
use larder_text::message::{Message, Role};
use larder_text::picture::Picture;
use larder_text::pointer::Pointer;

/// A part's rendition, its cost, and the reason for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub rendition: Rendition,
    pub tokens: usize,
    pub reason: PartReason,
}

/// A plan whose renditions have been rendered.
pub(super) struct Planned {
    /// By part of the request.
    pub standings: Vec<Standing>,
    /// By part: renditions other than whole and absent.
    pub made: BTreeMap<usize, Rendered>,
    /// By slot: its older messages as one text.
    pub runs: BTreeMap<usize, PlannedRun>,
    pub slots: Vec<SlotLedger>,
    pub epoch: Option<Epoch>,
    /// Tokens available to all slots together.
    pub net: usize,
}

/// A part's previous rendition, for undoing a change.
pub(super) type Before = (usize, Standing, Option<Rendered>);

impl Planned {
    pub fn new(parts: usize, net: usize) -> Self {
        let absent = Standing { rendition: Rendition::Absent, tokens: 0, reason: PartReason::CallOverBudget };
        Self {
            standings: vec![absent; parts],
            made: BTreeMap::new(),
            runs: BTreeMap::new(),
            slots: Vec::new(),
            epoch: None,
            net,
        }
    }

    /// Sets the rendition of a part and returns the previous one.
    pub fn put(&mut self, part: usize, rendered: Rendered, reason: PartReason) -> Before {
        let standing = Standing { rendition: rendered.rendition, tokens: rendered.tokens, reason };
        let before = std::mem::replace(&mut self.standings[part], standing);
        let made = match rendered.rendition {
            Rendition::Condensed | Rendition::Pointer => self.made.insert(part, rendered),
            Rendition::Whole | Rendition::Absent => self.made.remove(&part),
        };
        (part, before, made)
    }

    /// Undoes changes, most recent first.
    pub fn restore(&mut self, changes: Vec<Before>) {
        for (part, standing, made) in changes.into_iter().rev() {
            self.standings[part] = standing;
            match made {
                Some(made) => self.made.insert(part, made),
                None => self.made.remove(&part),
            };
        }
    }

    pub fn is_absent(&self, part: usize) -> bool {
        self.standings[part].rendition == Rendition::Absent
    }

    /// Whether a part is in the prompt as a text or message of its own.
    fn is_shown(&self, part: usize) -> bool {
        !self.is_absent(part) && self.standings[part].reason != PartReason::Summarized
    }
}

/// The composed prompt of a plan.
pub(super) struct ComposedPrompt {
    pub messages: Vec<Message>,
    /// Exact token count of the whole call.
    pub total: usize,
    /// By slot: tokens of its parts and of its marker.
    pub used: Vec<usize>,
    /// By slot: where its text is.
    pub spans: Vec<Vec<TextSpan>>,
    /// By slot.
    pub left_out: Vec<Option<Bundle>>,
}

/// Messages under construction; adjacent joined texts with the same role share a message.
#[derive(Default)]
struct MessageWriter {
    messages: Vec<Message>,
    open: Option<(Role, String)>,
}

impl MessageWriter {
    /// The text of the current message of this role, to be extended.
    fn text(&mut self, role: Role) -> &mut String {
        let text = match self.open.take() {
            Some((open, text)) if open == role => text,
            other => {
                self.messages.extend(other.map(|(role, text)| Message::text(role, text)));
                String::new()
            }
        };
        &mut self.open.insert((role, text)).1
    }

    /// Adds a message of its own; returns where its text is.
    fn message(&mut self, message: Message) -> TextSpan {
        self.messages.extend(self.open.take().map(|(role, text)| Message::text(role, text)));
        self.messages.push(message);
        let (at, message) = (self.messages.len() - 1, &self.messages[self.messages.len() - 1]);
        TextSpan { message: at, start: 0, end: message.joined_text().len() }
    }

    /// Adds to the current message of this role; returns where the text is.
    fn join(&mut self, role: Role, write: impl FnOnce(&mut String)) -> TextSpan {
        let text = self.text(role);
        let start = text.len();
        write(text);
        let end = text.len();
        TextSpan { message: self.messages.len(), start, end }
    }

    fn finish(mut self) -> Vec<Message> {
        self.messages.extend(self.open.take().map(|(role, text)| Message::text(role, text)));
        self.messages
    }
}

/// Writes the messages and counts them.
pub(super) fn compose(
    request: &PackRequest,
    renderer: &PartRenderer<'_>,
    slot_parts: &[Vec<usize>],
    planned: &Planned,
) -> ComposedPrompt {
    let mut writer = MessageWriter::default();
    let (mut used, mut bundles, mut all_spans) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (slot, members)) in request.slots.iter().zip(slot_parts).enumerate() {
        let mut run = planned.runs.get(&number);
        let mut spans: Vec<TextSpan> = Vec::new();
        let bundle = Bundle::of(request, renderer, members, planned);
        let mark = bundle.as_ref().map(|bundle| left_out_mark(&slot.name, &bundle.pointer));
        let mark_tokens = mark.as_ref().map_or(0, |mark| renderer.counter.count(mark));
        let run_tokens = run.map_or(0, |run| run.rendered.tokens);
        let tokens: usize = members.iter().map(|&part| planned.standings[part].tokens).sum();
        used.push(tokens + run_tokens + mark_tokens);
        if let (SlotForm::Messages, Some(mark)) = (slot.form, &mark) {
            spans.push(writer.message(Message::text(Role::User, mark.as_str())));
        }
        for &index in members.iter().filter(|&&part| planned.is_shown(part)) {
            if let Some(run) = run.take_if(|run| run.before == Some(index)) {
                spans.push(writer.message(message(&run.run.part, Some(&run.rendered.text))));
            }
            let part = &request.parts[index];
            let made = planned.made.get(&index).map(|made| made.text.as_str());
            let span = match slot.form {
                SlotForm::Joined if part.pictures.is_empty() => {
                    writer.join(part.role, |text| write(text, part, made))
                }
                _ => writer.message(message(part, made)),
            };
            match spans.last_mut() {
                Some(last) if last.message == span.message && last.end == span.start => last.end = span.end,
                _ => spans.push(span),
            }
        }
        if let Some(run) = run {
            spans.push(writer.message(message(&run.run.part, Some(&run.rendered.text))));
        }
        if let (SlotForm::Joined, Some(mark)) = (slot.form, &mark) {
            let role = members.last().map_or(Role::User, |&part| request.parts[part].role);
            spans.push(writer.join(role, |text| text.push_str(mark)));
        }
        bundles.push(bundle);
        all_spans.push(spans);
    }
    let messages = writer.finish();
    let counts = messages.iter().map(|message| renderer.counter.count_message(message));
    let total = request.framing.per_call + counts.sum::<usize>();
    ComposedPrompt { messages, total, used, spans: all_spans, left_out: bundles }
}

fn write(text: &mut String, part: &Part, made: Option<&str>) {
    match made {
        Some(made) => text.push_str(made),
        None => part.frame_into(&part.text, text),
    }
}

fn message(part: &Part, made: Option<&str>) -> Message {
    let mut text = String::new();
    write(&mut text, part, made);
    if text.ends_with('\n') {
        text.pop();
    }
    let mut message = Message::text(part.role, text);
    message.tool_calls.clone_from(&part.shell.tool_calls);
    message.tool_call_id.clone_from(&part.shell.tool_call_id);
    message.content.extend(part.pictures.iter().map(Picture::content));
    message
}

/// Everything that one slot drops, stored as one text: the bytes of the parts, and where to read slices of documents.
pub(super) struct Bundle {
    pub pointer: Pointer,
    text: String,
    /// The ranges of the dropped parts that are not slices of a document, in order.
    pub ranges: Vec<Range<usize>>,
}

impl Bundle {
    fn of(
        request: &PackRequest,
        renderer: &PartRenderer<'_>,
        members: &[usize],
        planned: &Planned,
    ) -> Option<Self> {
        let absent =
            || members.iter().filter(|&&part| planned.is_absent(part)).map(|&part| &request.parts[part]);
        absent().next()?;
        let own = |part: &&Part| part.source.slice.is_none();
        let (count, size) = absent()
            .filter(own)
            .fold((0, 0), |(count, size): (usize, usize), part| (count + 1, size + part.text.len() + 1));
        let (mut text, mut ranges) = (String::with_capacity(size), Vec::with_capacity(count));
        for part in absent() {
            if part.source.slice.is_some() {
                let _ = writeln!(text, "{}: {}", part.source.name, renderer.pointer_to(part));
            } else {
                let start = text.len();
                text.push_str(&part.text);
                ranges.push(start..text.len());
                text.push('\n');
            }
        }
        let pointer = Pointer::whole(renderer.key.mint(ContentHash::new(text.as_bytes())));
        Some(Self { pointer, text, ranges })
    }

    pub fn into_original(self) -> PackOriginal {
        PackOriginal {
            text: OriginalText::Joined(self.text),
            kind: "left_out",
            display: "parts that were left out".to_owned(),
        }
    }
}
