//! Putting chosen renditions into messages and writing the receipt.

use std::sync::Arc;

use super::choose::Ladder;
use super::part::Part;
use super::receipt::{
    Epoch, Ledger, NextRung, Original, Pack, PartReceipt, Reason, Receipt, Rendition, SlotLedger,
};
use super::render::{Rendered, Renderer, left_out_mark};
use super::request::PackRequest;
use super::slot::{Form, Slot};
use crate::hash::ContentHash;
use crate::message::{Message, Role};
use crate::pointer::Pointer;

/// A plan whose renditions have been made.
pub(super) struct Planned {
    /// Per part of the request.
    pub renditions: Vec<Option<(Rendered, Reason)>>,
    pub slots: Vec<SlotLedger>,
    pub epoch: Option<Epoch>,
}

impl Planned {
    pub fn new(parts: usize) -> Self {
        Self { renditions: vec![None; parts], slots: Vec::new(), epoch: None }
    }
}

/// Messages under construction; neighbouring joined texts of one role share a message.
#[derive(Default)]
struct Writer {
    messages: Vec<Message>,
    texts: Vec<(Role, String)>,
}

impl Writer {
    fn join(&mut self, role: Role, text: &str) {
        match self.texts.last_mut() {
            Some((last, joined)) if *last == role => joined.push_str(text),
            _ => {
                self.flush();
                self.texts.push((role, text.to_owned()));
            }
        }
    }

    fn flush(&mut self) {
        self.messages.extend(self.texts.drain(..).map(|(role, text)| Message::text(role, text)));
    }

    fn message(&mut self, part: &Part, text: String) {
        self.flush();
        let mut message = Message::text(part.role, text);
        message.tool_calls.clone_from(&part.shell.tool_calls);
        message.tool_call_id.clone_from(&part.shell.tool_call_id);
        self.messages.push(message);
    }
}

/// Writes the prompt and its receipt.
pub(super) fn assemble(
    request: &PackRequest,
    renderer: &Renderer<'_>,
    ladders: &[Ladder],
    slot_of: &[usize],
    planned: Planned,
) -> Pack {
    let Planned { renditions, mut slots, epoch } = planned;
    let mut writer = Writer::default();
    let mut receipts = Vec::with_capacity(request.parts.len());
    let mut originals = Vec::new();
    let mut by_slot: Vec<Vec<(usize, Rendered, Reason)>> = request.slots.iter().map(|_| Vec::new()).collect();
    for (index, made) in renditions.into_iter().enumerate() {
        if let Some((rendered, reason)) = made {
            by_slot[slot_of[index]].push((index, rendered, reason));
        }
    }
    for ((slot, ledger), members) in request.slots.iter().zip(&mut slots).zip(by_slot) {
        let left_out = Bundle::of(request, renderer, &members);
        let mut mark = left_out.as_ref().map(|bundle| left_out_mark(&slot.name, &bundle.pointer));
        if let (Form::Messages, Some(mark)) = (slot.form, mark.take_if(|_| slot.form == Form::Messages)) {
            ledger.tokens += renderer.counter.count(&mark);
            writer.flush();
            writer.messages.push(Message::text(Role::User, mark));
        }
        let mut role = Role::User;
        for (index, mut rendered, reason) in members {
            let part = &request.parts[index];
            role = part.role;
            ledger.tokens += rendered.tokens;
            let pointer = match (&left_out, rendered.rendition) {
                (Some(bundle), Rendition::Absent) => bundle.pointer_of(renderer, part, index),
                _ => rendered.pointer.clone(),
            };
            if matches!(rendered.rendition, Rendition::Condensed | Rendition::Pointer) {
                originals.push(part_original(part, rendered.rendition));
            }
            if let (Rendition::Absent, Some(_)) = (rendered.rendition, &part.source.slice) {
                originals.push(Renderer::original(part));
            }
            receipts.push(part_receipt(part, &ladders[index], &mut rendered, reason, pointer));
            write(&mut writer, slot, part, rendered);
        }
        if let Some(mark) = mark {
            ledger.tokens += renderer.counter.count(&mark);
            writer.join(role, &mark);
        }
        originals.extend(left_out.map(|bundle| bundle.original));
    }
    writer.flush();
    dedup(&mut originals);
    let messages = writer.messages;
    let framing = request.framing.per_call + request.framing.per_message * messages.len();
    let used = request.framing.per_call
        + messages.iter().map(|message| renderer.counter.count_message(message)).sum::<usize>();
    let stable_messages = messages.iter().take_while(|message| message.role == Role::System).count();
    let budget = Ledger {
        limits: request.budget,
        available: request.budget.available(),
        framing,
        used,
        slots,
        tokenizer: renderer.counter.name().into(),
        label: renderer.counter.label(),
    };
    Pack {
        messages,
        receipt: Receipt { budget, total: used, refused: None, parts: receipts, epoch },
        originals,
        stable_messages,
    }
}

fn write(writer: &mut Writer, slot: &Slot, part: &Part, rendered: Rendered) {
    if rendered.rendition == Rendition::Absent {
        return;
    }
    match slot.form {
        Form::Joined => writer.join(part.role, &rendered.text),
        Form::Messages => {
            let text = rendered.text.strip_suffix('\n').map(str::to_owned).unwrap_or(rendered.text);
            writer.message(part, text);
        }
    }
}

/// A condensed text's pointers lead to the part's own bytes; a pointer leads into its document.
fn part_original(part: &Part, rendition: Rendition) -> Original {
    match rendition {
        Rendition::Condensed => {
            Original { text: Arc::clone(&part.text), kind: "part", display: Renderer::original(part).display }
        }
        _ => Renderer::original(part),
    }
}

fn dedup(originals: &mut Vec<Original>) {
    let mut seen = hashbrown::HashSet::new();
    originals.retain(|original| seen.insert((original.text.as_ptr() as usize, original.text.len())));
}

fn part_receipt(
    part: &Part,
    ladder: &Ladder,
    rendered: &mut Rendered,
    reason: Reason,
    pointer: Option<Pointer>,
) -> PartReceipt {
    let next = match rendered.rendition {
        Rendition::Whole => None,
        Rendition::Absent if ladder.pointer < ladder.size / 2 => {
            Some(NextRung { rendition: Rendition::Pointer, tokens: ladder.pointer })
        }
        _ => ladder.whole.map(|tokens| NextRung { rendition: Rendition::Whole, tokens }),
    };
    let slice = part.source.slice.as_ref();
    PartReceipt {
        id: Arc::clone(&part.id),
        slot: Arc::clone(&part.slot),
        source: Arc::clone(&part.source.name),
        bytes: slice.map(|slice| (slice.bytes.start, slice.bytes.end)),
        lines: slice.map(|slice| slice.lines),
        rendition: rendered.rendition,
        tokens: rendered.tokens,
        original_tokens: ladder.whole,
        reason,
        pointer,
        gaps: std::mem::take(&mut rendered.gaps),
        author: rendered.author.take(),
        next,
    }
}

/// Everything that one slot leaves out, stored as one text: the parts' own bytes, and where slices of documents can
/// be read.
struct Bundle {
    pointer: Pointer,
    original: Original,
    ranges: Vec<(usize, std::ops::Range<usize>)>,
}

impl Bundle {
    fn of(
        request: &PackRequest,
        renderer: &Renderer<'_>,
        members: &[(usize, Rendered, Reason)],
    ) -> Option<Self> {
        let mut text = String::new();
        let mut ranges = Vec::new();
        for (index, rendered, _) in members {
            if rendered.rendition != Rendition::Absent {
                continue;
            }
            let part = &request.parts[*index];
            if part.source.slice.is_some() {
                text.push_str(&format!("{}: {}\n", part.source.name, renderer.pointer_to(part)));
            } else {
                let start = text.len();
                text.push_str(&part.text);
                ranges.push((*index, start..text.len()));
                text.push('\n');
            }
        }
        if text.is_empty() {
            return None;
        }
        let text: Arc<str> = text.into();
        let pointer = Pointer::whole(renderer.key.mint(ContentHash::of(text.as_bytes())));
        let original = Original { text, kind: "left_out", display: "parts that were left out".to_owned() };
        Some(Self { pointer, original, ranges })
    }

    fn pointer_of(&self, renderer: &Renderer<'_>, part: &Part, index: usize) -> Option<Pointer> {
        if part.source.slice.is_some() {
            return Some(renderer.pointer_to(part));
        }
        let at = self.ranges.binary_search_by_key(&index, |(part, _)| *part).ok()?;
        Some(Pointer::bytes(self.pointer.id.clone(), self.ranges[at].1.clone()))
    }
}
