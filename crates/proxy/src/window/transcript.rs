//! What of a request goes into the transcript of its conversation (R3-4.35): each message as it came and, where that
//! differs, as it was sent. Knows no store.

use std::ops::Range;

use bytes::Bytes;
use larder_core::policy::{ConversationItem, MessageForm, Window};
use larder_text::hash::ContentHash;
use larder_text::json::{self, Edit};
use larder_text::pointer::Pointer;

use super::describe::role;
use crate::wire::Request;

/// One message, to be kept when the request has ended.
pub struct Line {
    /// What makes it the same message in the next request.
    pub identity: ContentHash,
    /// Who speaks.
    pub role: &'static str,
    /// Its bytes in the body.
    raw: Range<usize>,
    /// As it was sent, where that differs; empty where it was left out.
    pub sent: Option<String>,
    /// Pointers to what was left out of it.
    pub pointers: Vec<Pointer>,
}

/// The messages of a request.
pub struct Transcript {
    body: Bytes,
    lines: Vec<Line>,
}

impl Transcript {
    /// The messages of a request whose body is `body`. `changed` is its window with the edits that put it into the body;
    /// none where it was sent as it came.
    pub fn of(
        request: &Request<'_>,
        items: &[ConversationItem<'_>],
        changed: Option<(&Window, &[Edit])>,
        body: &Bytes,
    ) -> Self {
        let mut lines: Vec<Line> = (0..request.messages()).map(|at| line(request, at)).collect();
        let mut identities: Vec<Vec<u8>> = vec![Vec::new(); lines.len()];
        for (of, item) in request.items.iter().zip(items) {
            let Some(at) = of.message else { continue };
            let (Some(line), Some(identity)) = (lines.get_mut(at), identities.get_mut(at)) else { continue };
            line.role = role(item.role);
            identify(of, item, identity);
        }
        for (line, identity) in lines.iter_mut().zip(&identities) {
            line.identity = ContentHash::new(identity);
        }
        if let Some((window, edits)) = changed {
            change(request, window, edits, &mut lines);
        }
        Self { body: body.clone(), lines }
    }

    /// Bytes that it holds on to.
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// Each message with its bytes as they came.
    pub fn lines(&self) -> impl Iterator<Item = (&Line, &[u8])> {
        self.lines.iter().map(|line| (line, self.body.get(line.raw.clone()).unwrap_or_default()))
    }
}

fn line(request: &Request<'_>, at: usize) -> Line {
    let raw = request.message(at);
    // The message is a part of the body.
    let start = (raw.as_ptr() as usize).saturating_sub(request.body.as_ptr() as usize);
    Line {
        identity: ContentHash::new(b""),
        role: "",
        raw: start..start.saturating_add(raw.len()),
        sent: None,
        pointers: Vec::new(),
    }
}

/// What makes a message the same in the next request: what it says, asks and holds, without the breakpoints of caches,
/// which clients move on.
fn identify(of: &crate::wire::Item<'_>, item: &ConversationItem<'_>, identity: &mut Vec<u8>) {
    let mut add = |bytes: &[u8]| {
        identity.extend_from_slice(&bytes.len().to_le_bytes());
        identity.extend_from_slice(bytes);
    };
    add(role(item.role).as_bytes());
    add(of.identity().as_bytes());
    for call in item.calls {
        [&call.id, &call.name, &call.arguments].into_iter().for_each(|text| add(text.as_bytes()));
    }
    for opaque in &of.opaque {
        add(ContentHash::new(opaque.raw.as_bytes()).as_bytes());
    }
    add(item.result_of.unwrap_or_default().as_bytes());
}

/// Notes how messages were sent. `edits` are those that put the window into the body.
fn change(request: &Request<'_>, window: &Window, edits: &[Edit], lines: &mut [Line]) {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|edit| edit.range.start);
    for (at, decided) in window.items.iter().enumerate() {
        let Some(line) = request.items.get(at).and_then(|item| lines.get_mut(item.message?)) else {
            continue;
        };
        match &decided.form {
            MessageForm::Whole => {}
            MessageForm::Dropped => drop(line.sent.get_or_insert_default()),
            MessageForm::DroppedFor(with) => {
                line.sent = Some(with.text.clone());
                line.pointers.push(with.pointer.clone());
            }
            MessageForm::Replaced(with) => {
                line.sent = Some(within(request.body, &line.raw, &edits));
                line.pointers.push(with.pointer.clone());
            }
        }
    }
}

/// A stretch of the body with the edits that lie in it.
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
