//! Replies that come whole. Knows no streams.

use larder_text::json::{self, Document, Edit, Kind, Name, Value, encoded};

use super::super::ApiDialect;
use super::super::read::ReadError;
use super::{Note, Round, Rounds, Unit, inner, is_thought, length, push_text};

/// The replies of one request, each a whole body.
#[derive(Debug)]
pub struct WholeReply {
    rounds: Rounds,
    hide: bool,
    body: String,
}

impl WholeReply {
    /// Awaits the first reply. `hide`: our tool was offered, so its calls are ours.
    pub const fn new(format: ApiDialect, hide: bool) -> Self {
        Self { rounds: Rounds::new(format), hide, body: String::new() }
    }

    /// Takes a reply.
    ///
    /// # Errors
    /// When it is no JSON. The client is then to get it as it is, unless it saw an earlier round.
    pub fn take(&mut self, reply: &str) -> Result<(), ReadError> {
        let doc = Document::parse(reply)?;
        let round = self.read(doc.root());
        self.rounds.done.push(round);
        reply.clone_into(&mut self.body);
        Ok(())
    }

    /// What was said so far.
    pub const fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    /// The next request, if the model waits for us alone and has its answers; none if the reply can be closed.
    ///
    /// # Errors
    /// When `request`, the body sent last, is none of its format.
    pub fn next(&self, request: &str) -> Result<Option<String>, ReadError> {
        self.rounds.next(request)
    }

    /// The reply for the client. Where nothing was hidden these are the provider's own bytes.
    ///
    /// # Errors
    /// None that a reply can cause: it was read before.
    pub fn close(mut self) -> Result<String, ReadError> {
        let (gave_up, note) = (self.rounds.gave_up(), self.rounds.note());
        let Some(last) = self.rounds.done.pop().filter(|last| !self.rounds.done.is_empty() || last.has_ours)
        else {
            return Ok(self.body);
        };
        let doc = Document::parse(&self.body)?;
        let root = doc.root();
        let usage = root.given("usage");
        let edits = match self.rounds.format {
            ApiDialect::Responses => root.given("output").map(|list| {
                let mut edits = self.rounds.list_edits(list, usage, true);
                edits.extend(note.map(|note| note.behind(list, &note.item(&super::text(root, "id")))));
                edits
            }),
            ApiDialect::Messages => root.given("content").map(|list| {
                let mut edits = self.rounds.list_edits(list, usage, true);
                edits.extend(note.map(|note| note.behind(list, &note.block())));
                edits.extend(stop_edit(root.get("stop_reason"), gave_up, "end_turn"));
                edits
            }),
            ApiDialect::Chat => choice(root).map(|choice| {
                let mut edits = self.chat_edits(&last, choice, note.as_ref());
                edits.extend(usage.into_iter().flat_map(|usage| self.rounds.spent().edits(usage)));
                edits.extend(stop_edit(choice.get("finish_reason"), gave_up, "stop"));
                edits
            }),
        };
        Ok(json::apply(&self.body, edits.unwrap_or_default())?)
    }

    fn read(&self, root: Value<'_, '_>) -> Round {
        let format = self.rounds.format;
        let failed = root.given("error").is_some();
        let mut round = Round { complete: !failed, failed, ended: true, ..Round::default() };
        if let Some(usage) = root.given("usage") {
            round.tally.take(usage);
        }
        let text =
            |value: Option<Value<'_, '_>>| value.and_then(Value::text).unwrap_or_default().into_owned();
        round.said = said(format, root);
        let list = match format {
            ApiDialect::Chat => {
                let Some(choice) = choice(root) else { return round };
                round.stop = choice.given("finish_reason").map(|stop| text(Some(stop)));
                let message = choice.given("message");
                round.text = text(message.and_then(|message| message.given("content")));
                for (key, value) in message.into_iter().flat_map(Value::members) {
                    let wanted = is_thought(&key.text());
                    if wanted && value.kind() != Kind::Null {
                        round.members += &format!(",{}:{}", key.raw(), value.raw());
                    }
                }
                message.and_then(|message| message.given("tool_calls"))
            }
            ApiDialect::Messages => {
                round.stop = root.given("stop_reason").map(|stop| text(Some(stop)));
                root.given("content")
            }
            ApiDialect::Responses => {
                round.stop = root.given("status").map(|stop| text(Some(stop)));
                round.complete &= round.stop.as_deref().is_none_or(|status| status == "completed");
                round.unstored = root.given("store").is_some_and(|store| store.raw() == "false");
                root.given("output")
            }
        };
        for unit in list.into_iter().filter(|_| self.hide).flat_map(Value::items) {
            let unit = Unit::of(format, unit, true);
            round.see(&unit);
            round.units.push(unit);
        }
        round
    }

    /// What becomes of the message of a chat, whose text is that of all rounds.
    fn chat_edits(&self, last: &Round, choice: Value<'_, '_>, note: Option<&Note>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let Some(message) = choice.given("message") else { return edits };
        let before = self.rounds.text_before();
        let mut all = before.clone();
        push_text(&mut all, &last.text);
        let content = message.get("content").filter(|_| !before.is_empty());
        match content.map(|content| (content.kind(), content.span())) {
            Some((Kind::String, span)) => {
                edits.push(Edit::insert(span.start + 1, inner(&all[..all.len() - last.text.len()])));
            }
            Some((Kind::Null, span)) => edits.push(Edit::replace(span, encoded(&all))),
            _ => {}
        }
        let Some(calls) = message.given("tool_calls") else { return edits };
        // Content in parts is left to its client.
        let in_parts = message.get("content").is_some_and(|content| content.kind() == Kind::Array);
        if let Some(note) = note.filter(|_| !in_parts) {
            edits = note.in_place_of_calls(message);
        } else if last.asks_us_alone() {
            edits.extend(json::without(message, &["tool_calls"]));
        } else {
            let is_ours = |at: usize| last.units.get(at).is_some_and(|unit| unit.ours.is_some());
            edits.extend(json::splice(calls, "", is_ours));
        }
        edits
    }
}

/// Bytes of text that a reply says, as its stream would be counted: no marks, no log probabilities, no pictures.
fn said(format: ApiDialect, root: Value<'_, '_>) -> usize {
    let (list, inner) = match format {
        ApiDialect::Chat => ("choices", Some("message")),
        ApiDialect::Messages => ("content", None),
        ApiDialect::Responses => ("output", None),
    };
    let units = root.given(list).into_iter().flat_map(Value::items);
    let units = units.filter_map(|unit| inner.map_or(Some(unit), |inner| unit.given(inner)));
    units.map(|unit| unit.members().map(|(name, value)| said_in(format, name, value)).sum::<usize>()).sum()
}

/// Bytes of text in a member of a message, an item or a block.
fn said_in(format: ApiDialect, name: Name<'_>, value: Value<'_, '_>) -> usize {
    let name = name.text();
    let parts = |value: Value<'_, '_>, names: &[&str]| -> usize {
        value.items().flat_map(|part| names.iter().map(move |name| length(part.given(name)))).sum()
    };
    match (format, &*name) {
        (ApiDialect::Chat, "role") => 0,
        (ApiDialect::Chat, "tool_calls") => {
            let functions = value.items().filter_map(|call| call.given("function"));
            functions.map(|function| length(function.given("arguments"))).sum()
        }
        (ApiDialect::Chat, "content") if value.kind() == Kind::Array => parts(value, &["text"]),
        // Thoughts and refusals have members of their own, under many names.
        (ApiDialect::Chat, _) | (ApiDialect::Messages, "text" | "thinking") => length(Some(value)),
        (ApiDialect::Messages, "input") => value.raw().len(),
        (ApiDialect::Responses, "content" | "summary") => parts(value, &["text", "refusal"]),
        (ApiDialect::Responses, "arguments" | "input" | "code") => length(Some(value)),
        _ => 0,
    }
}

fn choice<'d, 't>(root: Value<'d, 't>) -> Option<Value<'d, 't>> {
    root.given("choices")?.items().next()
}

/// A reply that ends although the model waits for us is said to have come to its end.
pub(in super::super) fn stop_edit(stop: Option<Value<'_, '_>>, gave_up: bool, end: &str) -> Option<Edit> {
    let asks = |stop: &Value<'_, '_>| stop.is("tool_use") || stop.is("tool_calls");
    stop.filter(asks).filter(|_| gave_up).map(|stop| Edit::replace(stop.span(), encoded(end)))
}
