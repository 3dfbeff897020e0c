//! The transcript entry of a request (R3-4.35): each message as received and, if different, as sent. Knows no store.

use std::ops::Range;

use bytes::Bytes;
use larder_core::policy::{ConversationItem, DecidedWindow, MessageForm};
use larder_text::hash::ContentHash;
use larder_text::json::{self, Edit};
use larder_text::message::TranscriptMessage;
use larder_text::pointer::Pointer;

use crate::wire::Request;

/// Bytes that identify most messages: lengths, the role, a hash.
const USUAL_IDENTITY: usize = 96;

/// The position of a message in the body, and its other fields in [`TranscriptMessage`].
struct Located {
    identity: ContentHash,
    role: &'static str,
    /// Its bytes in the body.
    raw: Range<usize>,
    sent: Option<String>,
    pointers: Vec<Pointer>,
}

/// The messages of a request.
pub struct Transcript {
    body: Bytes,
    messages: Vec<Located>,
}

impl Transcript {
    /// The messages of a request whose body is `body`. `changed` is its window with the edits that apply it to the
    /// body; `None` if it was sent unchanged.
    pub fn new(
        request: &Request<'_>,
        items: &[ConversationItem<'_>],
        changed: Option<(&DecidedWindow, &[Edit])>,
        body: &Bytes,
    ) -> Self {
        let mut messages: Vec<Located> = (0..request.messages()).map(|at| locate(request, at)).collect();
        let mut identities: Vec<Vec<u8>> =
            messages.iter().map(|_| Vec::with_capacity(USUAL_IDENTITY)).collect();
        for (of, item) in request.items.iter().zip(items) {
            let Some(at) = of.message else { continue };
            let (Some(message), Some(identity)) = (messages.get_mut(at), identities.get_mut(at)) else {
                continue;
            };
            message.role = item.role.as_str();
            identify(of, item, identity);
        }
        for (message, identity) in messages.iter_mut().zip(&identities) {
            message.identity = ContentHash::new(identity);
        }
        if let Some((window, edits)) = changed {
            note_changes(request, window, edits, &mut messages);
        }
        Self { body: body.clone(), messages }
    }

    /// The bytes it holds in memory.
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// Each message of the request.
    pub fn messages(&self) -> impl Iterator<Item = TranscriptMessage<'_>> {
        self.messages.iter().map(|message| TranscriptMessage {
            identity: message.identity,
            role: message.role,
            raw: self.body.get(message.raw.clone()).unwrap_or_default(),
            sent: message.sent.as_deref().map(str::as_bytes),
            pointers: &message.pointers,
        })
    }
}

fn locate(request: &Request<'_>, at: usize) -> Located {
    let raw = request.message(at);
    // The message is a part of the body.
    let start = (raw.as_ptr() as usize).saturating_sub(request.body.as_ptr() as usize);
    Located {
        identity: ContentHash::new(b""),
        role: "",
        raw: start..start.saturating_add(raw.len()),
        sent: None,
        pointers: Vec::new(),
    }
}

/// Identifies a message across requests by its content, without cache breakpoints, which clients move.
fn identify(of: &crate::wire::Item<'_>, item: &ConversationItem<'_>, identity: &mut Vec<u8>) {
    let mut add = |bytes: &[u8]| {
        identity.extend_from_slice(&bytes.len().to_le_bytes());
        identity.extend_from_slice(bytes);
    };
    add(item.role.as_str().as_bytes());
    add(of.identity().as_bytes());
    for call in item.calls {
        [&call.id, &call.name, &call.arguments].into_iter().for_each(|text| add(text.as_bytes()));
    }
    for opaque in &of.opaque {
        add(ContentHash::new(opaque.raw.as_bytes()).as_bytes());
    }
    add(item.result_of.unwrap_or_default().as_bytes());
}

/// Records how messages were sent. `edits` are those that apply the window to the body.
fn note_changes(request: &Request<'_>, window: &DecidedWindow, edits: &[Edit], messages: &mut [Located]) {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|edit| edit.range.start);
    for (at, decided) in window.items.iter().enumerate() {
        let Some(message) = request.items.get(at).and_then(|item| messages.get_mut(item.message?)) else {
            continue;
        };
        match &decided.form {
            MessageForm::Whole => {}
            MessageForm::Dropped => drop(message.sent.get_or_insert_default()),
            MessageForm::DroppedFor(with) => {
                message.sent = Some(with.text.clone());
                message.pointers.extend(with.pointer.clone());
            }
            MessageForm::Replaced(with) => {
                message.sent = Some(within(request.body, &message.raw, &edits));
                message.pointers.extend(with.pointer.clone());
            }
        }
    }
}

/// A range of the body with the edits inside it.
fn within(body: &str, stretch: &Range<usize>, edits: &[Edit]) -> String {
    let from = edits.partition_point(|edit| edit.range.start < stretch.start);
    let inside = edits.iter().skip(from).take_while(|edit| edit.range.end <= stretch.end);
    let shifted = inside.map(|edit| Edit {
        range: edit.range.start - stretch.start..edit.range.end - stretch.start,
        with: edit.with.clone(),
    });
    let raw = body.get(stretch.clone()).unwrap_or_default();
    json::apply(raw, shifted.collect()).unwrap_or_default()
}
