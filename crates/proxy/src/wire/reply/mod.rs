//! Replies over one or more rounds: a round is one answer of the provider, and all but the last end in calls of
//! Larder's tool. Owns what rounds have in common, complete or streamed: what was said, what is called, how the next
//! request is built, what must be remembered.

mod note;
mod usage;
mod whole;

use std::borrow::Cow;

use larder_text::json::{self, Document, Edit, Kind, Value, encoded};
use larder_text::usage::{Service, Usage};

pub(super) use self::note::LimitNote;
pub use self::usage::PartialUsage;
pub(super) use self::usage::Tally;
pub use self::whole::WholeReply;
pub(super) use self::whole::{ReplyClose, stop_edit};
use super::dialect::ApiDialect;
use super::hidden::{HiddenCall, HiddenStep, HiddenSteps};
use super::place::ReplyPlace;
use super::read::ReadError;

/// Maximum bytes of a reply kept so that the model can be asked to continue. A longer reply is forwarded, and ends
/// where the model called Larder's tool.
pub(super) const MAX_KEPT: usize = 16 << 20;

/// A call of Larder's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehydrateCall {
    /// The provider's id of it.
    pub id: String,
    /// The arguments as the model wrote them: JSON text if it followed the schema.
    pub arguments: String,
}

/// The provider's output so far, round by round.
#[derive(Debug)]
pub struct ReplyRounds {
    pub(super) dialect: ApiDialect,
    /// The name of Larder's tool, if it was offered: its calls are hidden.
    pub(super) tool: Option<&'static str>,
    pub(super) done: Vec<ReplyRound>,
    /// Why the model is not asked to continue although it waits for a result, as text for the reader of the reply.
    limit: Option<&'static str>,
}

/// One answer of the provider's.
#[derive(Debug, Default)]
pub(super) struct ReplyRound {
    /// Blocks, items, or entries of `tool_calls`, in order.
    pub units: Vec<ReplyUnit>,
    /// The message's text (chat completions).
    pub text: String,
    /// Thoughts that some providers want back, each as a member with a comma before it (chat completions).
    pub members: String,
    pub tally: Tally,
    /// The service that the provider names.
    pub service: Service,
    pub stop: Option<String>,
    /// It ended as its format has it.
    pub complete: bool,
    /// The provider reported its end, whatever the reason.
    pub ended: bool,
    /// The provider reported an error in it.
    pub failed: bool,
    /// Bytes of its text.
    pub said: usize,
    /// The provider does not store it (`store: false`).
    pub unstored: bool,
    /// The id under which the provider stores it (responses).
    pub id: String,
    /// It was too long to be kept.
    pub lost: bool,
    /// It contains a call of Larder's tool.
    pub has_ours: bool,
    /// It contains a call for the client.
    pub asks: bool,
    pub answers: Vec<String>,
}

/// One element of a reply.
#[derive(Debug)]
pub(super) struct ReplyUnit {
    pub raw: String,
    pub ours: Option<RehydrateCall>,
    /// The client is to answer it.
    pub asks: bool,
}

impl ReplyUnit {
    /// Reads a block, an item or an entry of `tool_calls`. `tool`: the name of Larder's, if it was offered.
    pub(super) fn read(dialect: ApiDialect, value: Value<'_, '_>, tool: Option<&str>) -> Self {
        let inner = value.given("function").or_else(|| value.given("toolUse")).unwrap_or(value);
        let (asks, id, arguments) = dialect.format().call(value);
        let ours = (asks && tool.is_some_and(|tool| text(inner, "name") == tool)).then(|| {
            let arguments = inner.given(arguments);
            let arguments = arguments.map(|a| a.text().unwrap_or(a.raw().into()).into_owned());
            let id = value.given(id).or_else(|| inner.given(id)).and_then(Value::text).unwrap_or_default();
            RehydrateCall { id: id.into_owned(), arguments: arguments.unwrap_or_default() }
        });
        Self { raw: value.raw().to_owned(), asks: asks && ours.is_none(), ours }
    }
}

impl ReplyRound {
    fn ours(&self) -> impl Iterator<Item = &RehydrateCall> {
        self.units.iter().filter_map(|unit| unit.ours.as_ref())
    }

    /// Reads why the reply ended.
    pub(super) fn read_stop(&mut self, object: Value<'_, '_>, member: &str) {
        self.stop = object.given(member).map(|stop| stop.text().unwrap_or_default().into_owned());
    }

    /// Records who has to answer a unit.
    pub(super) fn see(&mut self, unit: &ReplyUnit) {
        self.has_ours |= unit.ours.is_some();
        self.asks |= unit.asks;
    }

    /// Reads under which service the provider answers, where this part of a reply says so.
    pub(super) fn read_service(&mut self, object: Value<'_, '_>) {
        let tier = object.given("service_tier").or_else(|| object.given("serviceTier")?.given("type"));
        if let Some(name) = tier.and_then(Value::text) {
            self.service = Service::from_name(&name);
        }
    }

    /// What is known about it so far.
    pub(super) fn known(&self, dialect: ApiDialect) -> PartialUsage {
        let usage = self.tally.usage(dialect).map(|usage| Usage { service: self.service, ..usage });
        PartialUsage { usage, said: self.said, ended: self.ended }
    }

    /// Whether it reached its end, so that its calls are complete.
    fn answerable(&self) -> bool {
        let cut = [
            "length",
            "content_filter",
            "max_tokens",
            "refusal",
            "model_context_window_exceeded",
            "guardrail_intervened",
            "content_filtered",
            "malformed_model_output",
            "malformed_tool_use",
        ];
        self.complete && !self.lost && !self.stop.as_deref().is_some_and(|stop| cut.contains(&stop))
    }

    /// Whether all of its calls are calls of Larder's tool.
    pub(super) const fn asks_us_alone(&self) -> bool {
        self.has_ours && !self.asks
    }

    /// Our calls with their results, if all are answered.
    fn answered(&self, dialect: ApiDialect) -> Vec<HiddenCall> {
        let units = self.units.iter().filter_map(|unit| Some((unit.ours.as_ref()?, &unit.raw)));
        let answered = units.zip(&self.answers).map(|((call, raw), answer)| HiddenCall {
            call: raw.clone(),
            result: dialect.format().tool_result(&encoded(&call.id), &encoded(answer)),
        });
        if self.answers.len() == self.ours().count() { answered.collect() } else { Vec::new() }
    }
}

impl ReplyRounds {
    pub(super) const fn new(dialect: ApiDialect, tool: Option<&'static str>) -> Self {
        Self { dialect, tool, done: Vec::new(), limit: None }
    }

    /// The calls of Larder's tool in the last round. Empty if that reply was cut short.
    pub fn calls(&self) -> Vec<RehydrateCall> {
        let last = self.done.last().filter(|round| round.answerable());
        last.map(|round| round.ours().cloned().collect()).unwrap_or_default()
    }

    /// Takes the answers to [`calls`](Self::calls), in their order.
    pub fn answer(&mut self, answers: Vec<String>) {
        if let Some(last) = self.done.last_mut() {
            last.answers = answers;
        }
    }

    /// The model waits for a result, but is not asked to continue because of `limit`.
    pub const fn give_up(&mut self, limit: &'static str) {
        self.limit = Some(limit);
    }

    /// What to remember so that [`Request::restore`](super::Request::restore) can restore it; `place` is the reply's.
    /// Must be stored before the client receives the end of the reply, since it may continue immediately.
    pub fn hidden(&self, place: &ReplyPlace) -> Vec<HiddenSteps> {
        let mut place = place.clone();
        let mut found: Vec<HiddenSteps> = Vec::new();
        let mut before: Vec<HiddenStep> = Vec::new();
        for (at, round) in self.done.iter().enumerate() {
            let anchors = self.anchors(round, &mut place);
            let steps = if anchors.is_empty() { Vec::new() } else { std::mem::take(&mut before) };
            let calls = round.answered(self.dialect);
            let asks = round.units.iter().any(|unit| unit.asks);
            let (beside, calls) = if asks { (calls, Vec::new()) } else { (Vec::new(), calls) };
            let hidden = |anchors: Vec<(bool, Vec<String>)>, beside: Vec<HiddenCall>| HiddenSteps {
                keys: anchors.into_iter().flat_map(|(_, keys)| keys).collect(),
                before: steps.clone(),
                beside,
                round: at,
                last: round.text.clone(),
            };
            let (call, others): (Vec<_>, Vec<_>) = anchors.into_iter().partition(|(asks, _)| *asks);
            found.push(hidden(others, Vec::new()));
            found.push(hidden(call, beside));
            if !calls.is_empty() {
                before.push(HiddenStep { members: round.members.clone(), text: round.text.clone(), calls });
            }
        }
        // A chat has one text for all rounds, and no other identification if it makes no calls.
        if self.dialect.format().has_one_text() && !self.done.iter().any(|round| round.lost) {
            let keys = place.key(&self.text_before()).into_iter().collect();
            let last = self.done.last().map(|round| round.text.clone()).unwrap_or_default();
            found.push(HiddenSteps { keys, before, beside: Vec::new(), round: self.done.len(), last });
        }
        let is_empty = |hidden: &HiddenSteps| hidden.before.is_empty() && hidden.beside.is_empty();
        found.retain(|hidden| !hidden.keys.is_empty() && !is_empty(hidden));
        found
    }

    /// The keys of each element that a round showed the client, up to the first call, which clients always keep; and
    /// whether it is that call. Reasoning and texts may be missing from what a client sends.
    fn anchors(&self, round: &ReplyRound, place: &mut ReplyPlace) -> Vec<(bool, Vec<String>)> {
        let shown = round.units.iter().filter(|unit| unit.ours.is_none());
        let mut all: Vec<(bool, Vec<String>)> = shown
            .filter_map(|unit| {
                let doc = Document::parse(&unit.raw).ok()?;
                let format = self.dialect.format();
                let mut own = format.keys(doc.root(), false);
                own.extend(format.said(doc.root()).and_then(|text| place.key(&text)));
                (!own.is_empty()).then_some((unit.asks, own))
            })
            .collect();
        if let Some(call) = all.iter().position(|(asks, _)| *asks) {
            all.truncate(call + 1);
        }
        all
    }

    /// The provider's reported usage, summed over the rounds; `None` if it reported nothing.
    pub fn usage(&self) -> Option<Usage> {
        self.spent().usage(self.dialect)
    }

    /// What is known about the last round alone.
    pub fn last(&self) -> PartialUsage {
        self.done.last().map(|round| round.known(self.dialect)).unwrap_or_default()
    }

    /// The id under which the provider stores the reply with all before it, and that of its first round, which a
    /// streamed reply keeps: what clients name to continue from there.
    pub fn stored_under(&self) -> Option<(&str, &str)> {
        let stored = |round: &&ReplyRound| !round.unstored && !round.id.is_empty();
        let last = self.done.last().filter(stored)?;
        Some((&last.id, &self.done.first()?.id))
    }

    /// The number of rounds so far.
    pub const fn count(&self) -> usize {
        self.done.len()
    }

    /// Why the last round ended, in the format's words.
    pub fn stop(&self) -> Option<&str> {
        self.done.last()?.stop.as_deref()
    }

    /// Whether the provider reported an error in the last reply.
    pub fn failed(&self) -> bool {
        self.done.last().is_some_and(|round| round.failed)
    }

    pub(super) fn spent(&self) -> Tally {
        let mut sum = Tally::default();
        self.done.iter().for_each(|round| sum.add(&round.tally));
        sum
    }

    /// Whether the last round only calls Larder's tool, yet the reply is to end with it.
    pub(super) fn gave_up(&self) -> bool {
        self.done.last().is_some_and(ReplyRound::asks_us_alone)
    }

    /// The text of earlier rounds, and the separator before the text that follows.
    pub(super) fn text_before(&self) -> String {
        let mut all = String::new();
        for round in &self.done {
            push_text(&mut all, &round.text);
        }
        all
    }

    /// What earlier rounds showed the client, with commas between.
    pub(super) fn shown(&self) -> String {
        let units = self.done.iter().flat_map(|round| &round.units).filter(|unit| unit.ours.is_none());
        units.map(|unit| unit.raw.as_str()).collect::<Vec<_>>().join(",")
    }

    /// The next request, if the model waits only for Larder's tool and its results are available: the last request
    /// with the model's output and the results appended, or with the results alone where the provider has added the
    /// rest to the history that it holds.
    pub(super) fn next(&self, request: &str) -> Result<Option<String>, ReadError> {
        let waits = |round: &&ReplyRound| round.answerable() && round.asks_us_alone();
        let Some(round) = self.done.last().filter(waits) else { return Ok(None) };
        let calls = round.answered(self.dialect);
        if calls.is_empty() {
            return Ok(None);
        }
        let step = HiddenStep { members: round.members.clone(), text: round.text.clone(), calls };
        let format = self.dialect.format();
        let may_be_said_again = |unit: &&ReplyUnit| {
            Document::parse(&unit.raw).is_ok_and(|doc| format.may_be_said_again(round, doc.root()))
        };
        let said = round.units.iter().filter(may_be_said_again);
        let said = said.map(|unit| unit.raw.as_str()).collect::<Vec<_>>().join(",");
        let (list, mut more) = format.next_step(&step, &said);
        let doc = Document::parse(request)?;
        let root = doc.root();
        let is_held = format.is_history_held(root);
        if is_held {
            more = step.results();
        }
        let edit = match root.given(list) {
            Some(sent) if is_held => Edit::replace(sent.span(), format!("[{more}]")),
            Some(array) if array.kind() == Kind::Array => json::append_to(array, &more),
            Some(text) if text.kind() == Kind::String => {
                Edit::replace(text.span(), format!(r#"[{{"role":"user","content":{}}},{more}]"#, text.raw()))
            }
            _ if format.may_lack_history() => json::add_members(root, &format!(r#""{list}":[{more}]"#)),
            other => return Err(ReadError::shape(list, other.unwrap_or(root), "an array")),
        };
        Ok(Some(json::apply(request, vec![edit])?))
    }

    /// The edits that turn the complete last reply into the client's: earlier rounds before it, Larder's calls
    /// removed, usage summed. `earlier` are the earlier rounds.
    pub(super) fn list_edits(&self, list: Value<'_, '_>, usage: Option<Value<'_, '_>>) -> Vec<Edit> {
        let items: Vec<_> = list.items().collect();
        let ours = |at: usize| {
            items.get(at).is_some_and(|item| ReplyUnit::read(self.dialect, *item, self.tool).ours.is_some())
        };
        let mut edits = json::splice(list, &self.shown(), ours);
        edits.extend(usage.into_iter().flat_map(|usage| self.spent().edits(usage)));
        edits
    }
}

/// The text of a member; empty if it is missing.
pub(super) fn text<'t>(object: Value<'_, 't>, name: &str) -> Cow<'t, str> {
    object.given(name).and_then(Value::text).unwrap_or_default()
}

/// Bytes of a text in a reply.
pub(super) fn length(text: Option<Value<'_, '_>>) -> usize {
    text.filter(|text| text.kind() == Kind::String).map_or(0, |text| text.raw().len() - 2)
}

/// Bytes of text in members of the parts of a list.
pub(super) fn parts_length(list: Value<'_, '_>, names: &[&str]) -> usize {
    list.items().flat_map(|part| names.iter().map(move |name| length(part.given(name)))).sum()
}

/// Appends the text of a later round, with a separator.
pub(super) fn push_text(all: &mut String, text: &str) {
    if !all.is_empty() && !text.is_empty() && !all.ends_with(char::is_whitespace) {
        all.push_str(GAP);
    }
    all.push_str(text);
}

/// Between the text of two rounds, which were two messages.
pub(super) const GAP: &str = "\n\n";

/// The inside of a string literal.
pub(super) fn inner(text: &str) -> String {
    let literal = encoded(text);
    literal[1..literal.len() - 1].to_owned()
}

/// Where a member of a chat message belongs among [`ReplyRound::members`].
pub(super) fn is_thought(name: &str) -> bool {
    name.starts_with("reasoning") || name.starts_with("thinking")
}

#[cfg(test)]
#[path = "reply_tests.rs"]
pub(super) mod tests;
