//! Events of OpenAI's responses. Knows no bytes.

use std::collections::BTreeMap;

use larder_text::json::{self, Edit, Kind, Value, encoded};

use super::super::dialect::ApiDialect;
use super::super::format::WireFormat as _;
use super::super::reply::{LimitNote, ReplyUnit, length, text};
use super::super::responses::ResponsesFormat;
use super::{EventAction, RoundContext};

/// Events that make up one of Larder's items.
const EVENTS_OF_NOTE: usize = 6;

/// The indexes of a reply's items.
#[derive(Debug, Default)]
pub(super) struct ResponsesState {
    /// The provider's index → the client's; `None` for hidden items.
    places: BTreeMap<u64, Option<u64>>,
    /// Items the client has.
    shown: u64,
    /// The number of the event the client got last, or gets last if the reply ends here.
    sequence: Option<u64>,
    /// That number before the end of the round was held back.
    before_end: Option<Option<u64>>,
    /// The id that the client knows the reply by: the first response's, as clients reject an end with another.
    id: Option<String>,
}

impl ResponsesState {
    pub fn finish(&mut self) {
        self.places.clear();
    }

    /// Discards the events that were held back.
    pub fn forget_end(&mut self) {
        if let Some(sequence) = self.before_end.take() {
            self.sequence = sequence;
        }
    }

    pub fn next_sequence(&self) -> u64 {
        self.sequence.map_or(0, |last| last.saturating_add(1))
    }

    /// An item created by Larder, after all others and before the end.
    pub fn say(&self, note: &LimitNote) -> String {
        let reply = self.id.as_deref().unwrap_or_default();
        let (index, id, text) = (self.shown, LimitNote::id(reply), note.literal());
        let empty = r#""type":"output_text","text":"","annotations":[]"#;
        let begun = format!(
            r#""item":{{"id":{id},"type":"message","status":"in_progress","role":"assistant","content":[]}}"#
        );
        let within = format!(r#""item_id":{id},"content_index":0"#);
        let events: [(&str, String); EVENTS_OF_NOTE] = [
            ("output_item.added", begun),
            ("content_part.added", format!(r#"{within},"part":{{{empty}}}"#)),
            ("output_text.delta", format!(r#"{within},"delta":{text}"#)),
            ("output_text.done", format!(r#"{within},"text":{text}"#)),
            ("content_part.done", format!(r#"{within},"part":{}"#, note.part())),
            ("output_item.done", format!(r#""item":{}"#, note.item(reply))),
        ];
        // The sequence number of the end is reused; servers without sequence numbers get none.
        let first = self.before_end.flatten().map(|before| before.saturating_add(1));
        let mut out = String::new();
        for ((kind, more), at) in events.into_iter().zip(0_u64..) {
            let number = first.map(|first| format!(r#","sequence_number":{}"#, first.saturating_add(at)));
            let number = number.unwrap_or_default();
            out += &format!(
                "event: response.{kind}\ndata: {{\"type\":\"response.{kind}\"{number},\"output_index\":{index},{more}}}\n\n"
            );
        }
        out
    }

    pub fn event(&mut self, event: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        let kind = event.given("type").and_then(Value::text).unwrap_or_default();
        let item = event.given("item");
        if let (None, Some(response)) = (&self.id, event.given("response")) {
            self.id = Some(text(response, "id").into_owned());
        }
        let index = event.given("output_index").and_then(Value::as_u64);
        // Sound arrives as base64, whose length says nothing about its tokens.
        if kind.ends_with(".delta") && kind != "response.audio.delta" {
            cx.round.said += length(event.given("delta"));
        }
        match (&*kind, item, index) {
            ("error", ..) => cx.round.failed = true,
            ("response.created" | "response.in_progress" | "response.queued", ..) if !cx.is_first() => {
                return EventAction::Drop;
            }
            ("response.completed" | "response.incomplete" | "response.failed", ..) => {
                return self.end(event, &kind, cx);
            }
            ("response.output_item.added", Some(item), Some(index)) => {
                let unit = ReplyUnit::read(ApiDialect::Responses, item, cx.tool);
                cx.round.see(&unit);
                let ours = unit.ours.is_some();
                // As long as nothing is hidden, the provider's own indexes are kept.
                let shown = if cx.is_spliced() { self.shown } else { index };
                self.places.insert(index, (!ours).then_some(shown));
                if !ours {
                    self.shown = self.shown.max(shown.saturating_add(1));
                }
            }
            ("response.output_item.done", Some(item), _) if cx.keep => {
                cx.round.units.push(ReplyUnit::read(ApiDialect::Responses, item, cx.tool));
            }
            _ => {}
        }
        let mut edits = unoffered(event, cx);
        match index.and_then(|index| self.places.get(&index)) {
            Some(None) => return EventAction::Drop,
            Some(Some(shown)) if index != Some(*shown) => {
                let span = event.get("output_index").map(Value::span).unwrap_or_default();
                edits.push(Edit::replace(span, shown.to_string()));
            }
            _ => {}
        }
        edits.extend(self.number(event, cx));
        EventAction::Pass(edits)
    }

    fn end(&mut self, event: Value<'_, '_>, kind: &str, cx: &mut RoundContext<'_>) -> EventAction {
        let response = event.given("response");
        let part = |name: &str| response.and_then(|response| response.given(name));
        response.into_iter().for_each(|response| cx.round.read_service(response));
        if let Some(usage) = part("usage") {
            cx.round.tally.take(usage);
        }
        cx.round.complete = kind == "response.completed";
        (cx.round.ended, cx.round.failed) = (true, kind == "response.failed");
        cx.round.stop = part("status").and_then(Value::text).map(|status| status.into_owned());
        cx.round.unstored = part("store").is_some_and(|store| store.raw() == "false");
        cx.round.id = response.map(|response| text(response, "id").into_owned()).unwrap_or_default();
        let before = self.sequence;
        let mut edits = unoffered(event, cx);
        edits.extend(self.number(event, cx));
        if !cx.is_spliced() {
            // The next request may name this response as soon as the client has its end: what it holds is stored first.
            let is_stored = cx.tool.is_some() && !cx.round.unstored;
            return if is_stored { EventAction::End(edits) } else { EventAction::Pass(edits) };
        }
        self.before_end.get_or_insert(before);
        let other = |id: &Value<'_, '_>| self.id.as_ref().is_some_and(|known| !id.is(known));
        if let (Some(id), Some(known)) = (part("id").filter(other), &self.id) {
            edits.push(Edit::replace(id.span(), encoded(known)));
        }
        // Some servers list no items at the end although there were some.
        let listed = |list: &Value<'_, '_>| list.items().next().is_some() || cx.round.units.is_empty();
        match part("output").filter(listed) {
            Some(list) => edits.extend(cx.earlier.list_edits(list, part("usage"))),
            None => edits.extend(part("usage").into_iter().flat_map(|usage| cx.earlier.spent().edits(usage))),
        }
        EventAction::End(edits)
    }

    /// Events are numbered without a gap.
    fn number(&mut self, event: Value<'_, '_>, cx: &RoundContext<'_>) -> Option<Edit> {
        let given = event.given("sequence_number")?;
        let number = if cx.is_spliced() { self.next_sequence() } else { given.as_u64()? };
        self.sequence = Some(number);
        (given.as_u64() != Some(number)).then(|| Edit::replace(given.span(), number.to_string()))
    }
}

/// The edits that remove Larder's tool from the response of an event.
fn unoffered(event: Value<'_, '_>, cx: &RoundContext<'_>) -> Vec<Edit> {
    let found = event.given("response").zip(cx.tool);
    found.map(|(response, tool)| ResponsesFormat.unoffered(response, tool)).unwrap_or_default()
}

/// The edits of an event that is held back, once a note's item precedes it.
pub(super) fn end_edits(event: Value<'_, '_>, note: &LimitNote) -> Vec<Edit> {
    let mut edits = Vec::new();
    if let Some((given, number)) =
        event.given("sequence_number").and_then(|given| Some((given, given.as_u64()?)))
    {
        let moved = number.saturating_add(EVENTS_OF_NOTE as u64);
        edits.push(Edit::replace(given.span(), moved.to_string()));
    }
    if let Some(response) = event.given("response") {
        let list = response.given("output").filter(|list| list.kind() == Kind::Array);
        edits.extend(list.map(|list| json::append_to(list, &note.item(&text(response, "id")))));
    }
    edits
}
