//! Events of Amazon Bedrock's `ConverseStream`. Knows no bytes.

use std::collections::BTreeMap;

use larder_text::json::{Document, Edit, Value};
use serde_json::{Map, Value as Json, json};

use super::super::dialect::ApiDialect;
use super::super::reply::{LimitNote, ReplyRound, ReplyUnit, length};
use super::{EventAction, RoundContext};

/// The member with the index of a block.
const INDEX: &str = "contentBlockIndex";

/// The indexes of a reply's blocks.
#[derive(Debug, Default)]
pub(super) struct ConverseState {
    /// The provider's index → the client's; `None` for hidden blocks.
    places: BTreeMap<u64, Option<u64>>,
    /// Blocks the client has.
    shown: u64,
    open: BTreeMap<u64, StreamedBlock>,
}

/// A block in progress.
#[derive(Debug, Default)]
struct StreamedBlock {
    /// What it started with.
    start: Map<String, Json>,
    text: Option<String>,
    thought: Map<String, Json>,
    /// The input of a call so far.
    input: String,
    /// Pieces that cannot be put together again.
    is_other: bool,
}

impl ConverseState {
    pub fn finish(&mut self, round: &mut ReplyRound) {
        // The report of the usage may be missing; why the reply ended was said before.
        round.ended |= round.complete;
        self.places.clear();
        self.open.clear();
    }

    pub fn event(&mut self, kind: &str, event: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        match kind {
            "messageStart" if !cx.is_first() => EventAction::Drop,
            "contentBlockStart" => self.start(event, cx),
            "contentBlockDelta" => self.grow(event, cx),
            "contentBlockStop" => {
                let action = self.place(event);
                self.stop(event, cx);
                action
            }
            "messageStop" => {
                cx.round.read_stop(event, "stopReason");
                cx.round.complete = true;
                if cx.is_spliced() { EventAction::End(Vec::new()) } else { EventAction::Pass(Vec::new()) }
            }
            "metadata" => Self::metadata(event, cx),
            _ => EventAction::Pass(Vec::new()),
        }
    }

    /// A block created by Larder, after all others.
    pub fn say(&self, note: &LimitNote) -> String {
        let (index, text) = (self.shown, note.literal());
        format!(
            "event: contentBlockDelta\ndata: {{\"{INDEX}\":{index},\"delta\":{{\"text\":{text}}}}}\n\n\
             event: contentBlockStop\ndata: {{\"{INDEX}\":{index}}}\n\n"
        )
    }

    /// Notes a block that begins; a text begins with its first piece.
    fn open(&mut self, index: u64, start: Option<Value<'_, '_>>, cx: &mut RoundContext<'_>) {
        let begun = start.and_then(|start| serde_json::from_str(start.raw()).ok()).unwrap_or_default();
        let unit = start.map(|start| ReplyUnit::read(ApiDialect::Converse, start, cx.tool));
        unit.iter().for_each(|unit| cx.round.see(unit));
        let ours = unit.is_some_and(|unit| unit.ours.is_some());
        // As long as nothing is hidden, the provider's own indexes are kept.
        let shown = if cx.is_spliced() { self.shown } else { index };
        self.places.insert(index, (!ours).then_some(shown));
        if !ours {
            self.shown = self.shown.max(shown.saturating_add(1));
        }
        if cx.keep {
            self.open.insert(index, StreamedBlock { start: begun, ..StreamedBlock::default() });
        }
    }

    fn start(&mut self, event: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        let Some(index) = index(event) else { return EventAction::Pass(Vec::new()) };
        self.open(index, event.given("start"), cx);
        self.place(event)
    }

    /// Merges a piece into its block.
    fn grow(&mut self, event: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        let Some((index, delta)) = index(event).zip(event.given("delta")) else {
            return EventAction::Pass(Vec::new());
        };
        if !self.places.contains_key(&index) {
            self.open(index, None, cx);
        }
        let (text, thought) = (delta.given("text"), delta.given("reasoningContent"));
        let input = delta.given("toolUse").and_then(|call| call.given("input"));
        let pieces = [text, thought.and_then(|thought| thought.given("text")), input];
        cx.round.said += pieces.into_iter().map(length).sum::<usize>();
        let Some(block) = self.open.get_mut(&index) else { return self.place(event) };
        if let Some(piece) = text.and_then(Value::text) {
            block.text.get_or_insert_default().push_str(&piece);
        } else if let Some(piece) = input.and_then(Value::text) {
            block.input.push_str(&piece);
        } else if let Some(thought) = thought {
            for (name, piece) in thought.members() {
                let piece = piece.text().unwrap_or_default();
                match block.thought.entry(name.text()).or_insert_with(|| json!("")) {
                    Json::String(all) => all.push_str(&piece),
                    other => *other = json!(piece),
                }
            }
        } else {
            block.is_other = true;
        }
        self.place(event)
    }

    fn stop(&mut self, event: Value<'_, '_>, cx: &mut RoundContext<'_>) {
        let Some(block) = index(event).and_then(|index| self.open.remove(&index)) else { return };
        let input = block.input.clone();
        let Some(Ok(raw)) = block.whole().map(|block| serde_json::to_string(&block)) else {
            // It could not be sent back as it was.
            cx.round.lost = true;
            return;
        };
        let Ok(doc) = Document::parse(&raw) else { return };
        let mut unit = ReplyUnit::read(ApiDialect::Converse, doc.root(), cx.tool);
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
                let span = event.get(INDEX).map(Value::span).unwrap_or_default();
                EventAction::Pass(vec![Edit::replace(span, shown.to_string())])
            }
            _ => EventAction::Pass(Vec::new()),
        }
    }

    fn metadata(event: Value<'_, '_>, cx: &mut RoundContext<'_>) -> EventAction {
        cx.round.ended = true;
        cx.round.read_service(event);
        let usage = event.given("usage");
        if let Some(usage) = usage {
            cx.round.tally.take(usage);
        }
        if !cx.is_spliced() {
            return EventAction::Pass(Vec::new());
        }
        EventAction::End(usage.map(|usage| cx.earlier.spent().edits(usage)).unwrap_or_default())
    }
}

impl StreamedBlock {
    /// The block as a history has it; `None` if it is of a kind that cannot be put together.
    fn whole(self) -> Option<Json> {
        let Self { mut start, text, thought, input, is_other } = self;
        if let Some(Json::Object(call)) = start.get_mut("toolUse") {
            // Anything but an object cannot be sent back; the call itself keeps the model's text.
            let object = serde_json::from_str::<Json>(&input).ok().filter(Json::is_object);
            call.insert("input".to_owned(), object.unwrap_or_else(|| json!({})));
            return Some(Json::Object(start));
        }
        if is_other || !start.is_empty() {
            return None;
        }
        if let Some(seal) = thought.get("redactedContent") {
            return Some(json!({ "reasoningContent": { "redactedContent": seal } }));
        }
        match text {
            Some(text) => Some(json!({ "text": text })),
            None if thought.is_empty() => Some(json!({ "text": "" })),
            None => Some(json!({ "reasoningContent": { "reasoningText": thought } })),
        }
    }
}

fn index(event: Value<'_, '_>) -> Option<u64> {
    event.given(INDEX)?.as_u64()
}
