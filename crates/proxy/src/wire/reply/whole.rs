//! Replies that arrive complete. Knows no streams.

use larder_text::json::{self, Document, Edit, Value, encoded};

use super::super::dialect::ApiDialect;
use super::super::read::ReadError;
use super::{LimitNote, ReplyRound, ReplyRounds, ReplyUnit};

/// The replies of one request, each a whole body.
#[derive(Debug)]
pub struct WholeReply {
    rounds: ReplyRounds,
    body: String,
}

impl WholeReply {
    /// Expects the first reply. `tool`: the name of Larder's, if it was offered, so that its calls are hidden.
    pub const fn new(dialect: ApiDialect, tool: Option<&'static str>) -> Self {
        Self { rounds: ReplyRounds::new(dialect, tool), body: String::new() }
    }

    /// Takes a reply.
    ///
    /// # Errors
    /// If it is not JSON. The client should then receive it unchanged, unless it saw an earlier round.
    pub fn take(&mut self, reply: &str) -> Result<(), ReadError> {
        let doc = Document::parse(reply)?;
        let round = self.read(doc.root());
        self.rounds.done.push(round);
        reply.clone_into(&mut self.body);
        Ok(())
    }

    /// The output so far.
    pub const fn rounds(&mut self) -> &mut ReplyRounds {
        &mut self.rounds
    }

    /// The next request, if the model waits only for Larder's tool and its results are available; `None` if the reply
    /// can be closed.
    ///
    /// # Errors
    /// If `request`, the last body sent, is not valid in its format.
    pub fn next(&self, request: &str) -> Result<Option<String>, ReadError> {
        self.rounds.next(request)
    }

    /// The reply for the client. If nothing was hidden, these are the provider's own bytes.
    ///
    /// # Errors
    /// None that a reply can cause: it was read before.
    pub fn close(mut self) -> Result<String, ReadError> {
        let (gave_up, note) = (self.rounds.gave_up(), self.rounds.note());
        let last = self.rounds.done.pop().filter(|last| !self.rounds.done.is_empty() || last.has_ours);
        if last.is_none() && self.rounds.tool.is_none() {
            return Ok(self.body);
        }
        let doc = Document::parse(&self.body)?;
        let format = self.rounds.dialect.format();
        let mut edits = match &last {
            Some(last) => {
                format.close_reply(doc.root(), &ReplyClose { rounds: &self.rounds, last, gave_up, note })
            }
            None => Vec::new(),
        };
        edits.extend(self.rounds.tool.into_iter().flat_map(|tool| format.unoffered(doc.root(), tool)));
        Ok(json::apply(&self.body, edits)?)
    }

    fn read(&self, root: Value<'_, '_>) -> ReplyRound {
        let (dialect, format) = (self.rounds.dialect, self.rounds.dialect.format());
        let failed = root.given("error").is_some();
        let mut round = ReplyRound { complete: !failed, failed, ended: true, ..ReplyRound::default() };
        round.read_service(root);
        if let Some(usage) = root.given("usage") {
            round.tally.take(usage);
            round.read_service(usage);
        }
        round.said = format.said_bytes(root);
        let list = format.read_reply(root, &mut round);
        for unit in list.into_iter().filter(|_| self.rounds.tool.is_some()).flat_map(Value::items) {
            let unit = ReplyUnit::read(dialect, unit, self.rounds.tool);
            round.see(&unit);
            round.units.push(unit);
        }
        round
    }
}

/// The data for closing a complete reply.
pub(in super::super) struct ReplyClose<'a> {
    /// The rounds before the last.
    pub rounds: &'a ReplyRounds,
    /// The last round, whose body the client receives.
    pub last: &'a ReplyRound,
    /// The model waits for us, yet the reply is to end.
    pub gave_up: bool,
    /// What is added where the reply would otherwise be empty.
    pub note: Option<LimitNote>,
}

/// A reply that ends although the model waits for a result is reported as finished.
pub(in super::super) fn stop_edit(stop: Option<Value<'_, '_>>, gave_up: bool, end: &str) -> Option<Edit> {
    let asks = |stop: &Value<'_, '_>| stop.is("tool_use") || stop.is("tool_calls");
    stop.filter(asks).filter(|_| gave_up).map(|stop| Edit::replace(stop.span(), encoded(end)))
}
