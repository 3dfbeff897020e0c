//! Events of Anthropic's messages. Knows no bytes.

use std::collections::BTreeMap;

use larder_text::json::{self, Document, Edit, Value};
use serde_json::{Map, Value as Json};

use super::super::dialect::ApiDialect;
use super::super::messages::iterations;
use super::super::reply::{LimitNote, ReplyUnit, length};
use super::{EventAction, RoundContext};

/// The indexes of a reply's blocks.
#[derive(Debug, Default)]
pub(super) struct MessagesState {
    /// The provider's index → the client's; `None` for hidden blocks.
    places: BTreeMap<u64, Option<u64>>,
    /// Blocks the client has.
    shown: u64,
    open: BTreeMap<u64, StreamedBlock>,
}

/// A block in progress.
#[derive(Debug, Default)]
struct StreamedBlock {
    block: Map<String, Json>,
    /// The input of a call so far.
    input: String,
}

impl MessagesState {
    pub fn finish(&mut self) {
        self.places.clear();
        self.open.clear();
    }

    pub fn event(&mut self, event: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        let kind = event.given("type").and_then(Value::text).unwrap_or_default();
        match &*kind {
            "message_start" => {
                if let Some(usage) = event.given("message").and_then(|message| message.given("usage")) {
                    cx.round.tally.take(usage);
                    cx.round.read_service(usage);
                }
                if cx.is_first() { EventAction::Pass(Vec::new()) } else { EventAction::Drop }
            }
            "content_block_start" => self.start(event, cx),
            "content_block_delta" => {
                let delta = event.given("delta");
                let texts = ["text", "thinking", "partial_json"].into_iter();
                cx.round.said += texts.map(|name| length(delta.and_then(|d| d.given(name)))).sum::<usize>();
                if cx.keep {
                    self.grow(event);
                }
                self.place(event)
            }
            "content_block_stop" => {
                self.stop(event, cx);
                self.place(event)
            }
            "message_delta" => Self::delta(event, cx),
            "message_stop" => {
                cx.round.ended = true;
                if cx.is_spliced() { EventAction::End(Vec::new()) } else { EventAction::Pass(Vec::new()) }
            }
            "error" => {
                cx.round.failed = true;
                EventAction::Pass(Vec::new())
            }
            _ => EventAction::Pass(Vec::new()),
        }
    }

    /// A block created by Larder, after all others.
    pub fn say(&self, note: &LimitNote) -> String {
        let (index, text) = (self.shown, note.literal());
        let event = |kind: &str, more: &str| {
            format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"index\":{index}{more}}}\n\n")
        };
        [
            event("content_block_start", r#","content_block":{"type":"text","text":""}"#),
            event("content_block_delta", &format!(r#","delta":{{"type":"text_delta","text":{text}}}"#)),
            event("content_block_stop", ""),
        ]
        .concat()
    }

    fn start(&mut self, event: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        let Some((index, block)) = index(event).zip(event.given("content_block")) else {
            return EventAction::Pass(Vec::new());
        };
        let unit = ReplyUnit::read(ApiDialect::Messages, block, cx.tool);
        cx.round.see(&unit);
        let ours = unit.ours.is_some();
        // As long as nothing is hidden, the provider's own indexes are kept.
        let shown = if cx.is_spliced() { self.shown } else { index };
        self.places.insert(index, (!ours).then_some(shown));
        if !ours {
            self.shown = self.shown.max(shown.saturating_add(1));
        }
        if cx.keep {
            let block = serde_json::from_str(block.raw()).unwrap_or_default();
            self.open.insert(index, StreamedBlock { block, input: String::new() });
        }
        self.place(event)
    }

    /// Merges a piece into its block: text is appended, anything else is kept as it is.
    fn grow(&mut self, event: Value<'_, '_>) {
        let Some((index, delta)) = index(event).zip(event.given("delta")) else { return };
        let Some(draft) = self.open.get_mut(&index) else { return };
        for (key, value) in delta.members() {
            let name = key.text();
            if name == "type" {
                continue;
            }
            match (&*name, value.text()) {
                ("partial_json", Some(piece)) => draft.input.push_str(&piece),
                ("citation", _) => {
                    let list = draft.block.entry("citations").or_insert(Json::Null);
                    if !list.is_array() {
                        *list = Json::Array(Vec::new());
                    }
                    if let (Json::Array(list), Ok(citation)) = (list, serde_json::from_str(value.raw())) {
                        list.push(citation);
                    }
                }
                (_, Some(piece)) => match draft.block.get_mut(&*name) {
                    Some(Json::String(text)) => text.push_str(&piece),
                    _ => {
                        draft.block.insert(name.into_owned(), Json::String(piece.into_owned()));
                    }
                },
                (_, None) => {
                    let value = serde_json::from_str(value.raw()).unwrap_or_default();
                    draft.block.insert(name.into_owned(), value);
                }
            }
        }
    }

    fn stop(&mut self, event: Value<'_, '_>, cx: &mut RoundContext<'_>) {
        let Some(StreamedBlock { mut block, input }) =
            index(event).and_then(|index| self.open.remove(&index))
        else {
            return;
        };
        if let Some(whole) = Some(&input).filter(|input| !input.is_empty()) {
            // Anything but an object cannot be sent back; the call itself keeps the model's text.
            let object = serde_json::from_str::<Json>(whole).ok().filter(Json::is_object);
            block.insert("input".to_owned(), object.unwrap_or_else(|| Json::Object(Map::new())));
        }
        let raw = Json::Object(block).to_string();
        let Ok(doc) = Document::parse(&raw) else { return };
        let mut unit = ReplyUnit::read(ApiDialect::Messages, doc.root(), cx.tool);
        if let Some(ours) = unit.ours.as_mut().filter(|_| !input.is_empty()) {
            ours.arguments = input;
        }
        cx.round.units.push(unit);
    }

    /// An event of a block is treated like its block.
    fn place(&self, event: Value<'_, '_>) -> EventAction {
        let place = index(event).and_then(|index| Some((index, *self.places.get(&index)?)));
        match place {
            Some((_, None)) => EventAction::Drop,
            Some((index, Some(shown))) if index != shown => {
                let span = event.get("index").map(Value::span).unwrap_or_default();
                EventAction::Pass(vec![Edit::replace(span, shown.to_string())])
            }
            _ => EventAction::Pass(Vec::new()),
        }
    }

    fn delta(event: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        let usage = event.given("usage");
        if let Some(usage) = usage {
            cx.round.tally.take(usage);
            cx.round.read_service(usage);
        }
        let stop = event.given("delta").and_then(|delta| delta.given("stop_reason"));
        if let Some(stop) = stop.and_then(Value::text) {
            cx.round.stop = Some(stop.into_owned());
            (cx.round.complete, cx.round.ended) = (true, true);
        }
        if !cx.is_spliced() {
            return EventAction::Pass(Vec::new());
        }
        let spent = cx.earlier.spent();
        let mut edits: Vec<Edit> = usage.map(|usage| spent.edits(usage)).unwrap_or_default();
        // The prompt's counts came with the start of the message, which covers the first round only.
        if let Some(usage) = usage.filter(|_| !cx.is_first()) {
            let mut sums = Vec::new();
            for name in ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"] {
                let (before, now) = (spent.get(name), cx.round.tally.get(name));
                if usage.get(name).is_none() && (before.is_some() || now.is_some()) {
                    let sum = before.unwrap_or_default().saturating_add(now.unwrap_or_default());
                    sums.push(format!(r#""{name}":{sum}"#));
                }
            }
            edits.extend(iterations(usage, cx.earlier, &cx.round.tally, &mut sums));
            if !sums.is_empty() {
                edits.push(json::add_members(usage, &sums.join(",")));
            }
        }
        EventAction::End(edits)
    }
}

fn index(event: Value<'_, '_>) -> Option<u64> {
    event.given("index")?.as_u64()
}
