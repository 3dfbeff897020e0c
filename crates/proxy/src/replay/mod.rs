//! What a policy costs an agent: a recorded run, sent turn by turn through the window that the gateway decides, with the
//! price of reading back what the agent needs next and does not see.
//!
//! Knows wire formats and windows; does not know settings or where runs are stored.

mod cost;
mod needs;
mod run;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use larder_core::policy::{ContextBudgetPolicy, Memo};
use larder_text::hash::ContentHash;
use larder_text::pointer::PointerKey;
use larder_text::price::{CacheShares, CacheWrites};
use larder_text::time::Timestamp;
use larder_text::tokens::Counter;
use memchr::memmem;

use self::run::{Turn, said};
use crate::record::{Endpoint, RequestRecord};
use crate::window::{LastRenditions, WindowBuilder};
use crate::wire;

pub use self::cost::{NetCost, UnseenNeed};
pub use self::run::{RecordedRun, RunError};

/// The most tokens of a result that one reading back returns.
const LONGEST_READING: usize = 2_000;
/// What the words of a reading back cost: 60 tokens of output at five times the price of input.
const READING: f64 = 300.0;

/// Replays recorded runs. Counts are kept from one replay to the next.
pub struct Replayer {
    counter: Counter,
    key: PointerKey,
    counts: RefCell<HashMap<ContentHash, usize>>,
}

/// One side of the comparison: who sends everything, or what the policy decides.
#[derive(Default)]
struct Sender {
    /// The messages of the last request.
    messages: Vec<String>,
    /// Tokens that readings back have added to the window.
    read: usize,
    /// The results that were read back.
    known: BTreeSet<usize>,
}

/// A request as it is billed.
struct Billed {
    /// Tokens of its messages.
    tokens: usize,
    /// Of these, those that the provider's cache has.
    cached: usize,
    /// Bytes of the last request that it repeats, and of the whole last request.
    prefix: (usize, usize),
}

impl Billed {
    fn cost(&self, cache: CacheShares) -> f64 {
        cache.write * (self.tokens - self.cached) as f64 + cache.read * self.cached as f64
    }
}

/// A request as the policy sends it.
struct Decided {
    messages: Vec<String>,
    /// All text in it.
    view: String,
    /// Whether Larder's tool is offered.
    offers: bool,
}

/// What is kept from one request of a run to the next, as by the gateway.
struct Session<'p> {
    policy: &'p ContextBudgetPolicy,
    rehydrates: bool,
    memo: Memo,
    last: LastRenditions,
}

impl Replayer {
    /// Counts with `counter`, and mints pointers with `key`.
    pub fn new(counter: Counter, key: PointerKey) -> Self {
        Self { counter, key, counts: RefCell::default() }
    }

    /// The results of tools in a run: the tool's name, empty if unknown, and tokens.
    pub fn results<'r>(&self, run: &'r RecordedRun) -> impl Iterator<Item = (&'r str, usize)> {
        run.results().iter().map(|result| (result.tool.as_str(), self.count(&result.text)))
    }

    /// What a run costs under a policy and if everything is sent, at the policy's prices of the cache. Turns whose request the policy refuses are left out of
    /// both. `rehydrates`: the model can read originals back.
    pub fn replay(&self, run: &RecordedRun, policy: &ContextBudgetPolicy, rehydrates: bool) -> NetCost {
        let mut net = NetCost { runs: 1, ..NetCost::default() };
        let (mut whole, mut ours) = (Sender::default(), Sender::default());
        let mut session =
            Session { policy, rehydrates, memo: Memo::default(), last: LastRenditions::default() };
        let tool = self.count(&wire::rehydrate_tool_json(run.dialect(), wire::REHYDRATE));
        let (mut offered, cache) = (false, policy.cache_shares());
        for turn in run.turns() {
            let Some(Decided { messages, view, offers }) = self.decide(run, turn, &mut session) else {
                net.refused += 1;
                continue;
            };
            net.turns += 1;
            net.raw += self.send(&mut whole, run.messages_of(turn).to_vec()).cost(cache);
            let billed = self.send(&mut ours, messages);
            net.cost += billed.cost(cache) + cache.read * ours.read as f64;
            net.prefix = (net.prefix.0 + billed.prefix.0, net.prefix.1 + billed.prefix.1);
            // The definition comes before the messages: what was cached behind it no longer is.
            let moved = if offers == offered { 0 } else { billed.cached };
            let share = match (offers, offered) {
                (false, _) => 0.0,
                (true, false) => cache.write,
                (true, true) => cache.read,
            };
            net.tool += share * tool as f64 + (cache.write - cache.read) * moved as f64;
            offered = offers;
            let read = self.look_up(run, turn, &view, &mut ours, &mut net);
            if read > 0 {
                net.cost +=
                    cache.read * (billed.tokens + ours.read) as f64 + cache.write * read as f64 + READING;
                ours.read += read;
            }
        }
        net
    }

    /// Looks for what the turn needs, and returns the tokens of what must be read back because it is not in view.
    fn look_up(
        &self,
        run: &RecordedRun,
        turn: &Turn,
        view: &str,
        ours: &mut Sender,
        net: &mut NetCost,
    ) -> usize {
        let unseen = turn.needs.iter().filter(|need| {
            !ours.known.contains(&need.result)
                && memmem::find(view.as_bytes(), need.text.as_bytes()).is_none()
        });
        let unseen: Vec<_> = unseen.collect();
        net.needs += turn.needs.len();
        net.in_view += turn.needs.len() - unseen.len();
        net.turns_reading_back += usize::from(!unseen.is_empty());
        net.unseen.extend(unseen.iter().map(|need| UnseenNeed {
            message: turn.messages,
            text: need.text.clone(),
            tool: run.result(need.result).tool.clone(),
        }));
        let asked: BTreeSet<usize> = unseen.iter().map(|need| need.result).collect();
        let tokens = |&at: &usize| self.count(&run.result(at).text).min(LONGEST_READING);
        let read = asked.iter().map(tokens).sum();
        ours.known.extend(asked);
        read
    }

    /// The request of a turn as the gateway would send it; `None` if it would be refused.
    fn decide(&self, run: &RecordedRun, turn: &Turn, session: &mut Session<'_>) -> Option<Decided> {
        let body = Bytes::from(run.body(turn));
        let request = wire::read(run.dialect(), std::str::from_utf8(&body).ok()?).ok()?;
        let builder = WindowBuilder {
            memo: &session.memo,
            counts: &|key, count| *self.counts.borrow_mut().entry(key).or_insert_with(count),
            policy: session.policy,
            counter: &self.counter,
            key: &self.key,
            last: &session.last,
            rehydrates: session.rehydrates,
            holds_pointers: false,
            body: &body,
            // Transcripts hold no marks: clients move them.
            writes: CacheWrites::Usual,
            counts_only: false,
            transcribes: false,
            is_stored: &|_| true,
            ahead: None,
        };
        let decided = builder.decide(&request, None);
        let endpoint = Endpoint::Generate(run.dialect());
        let mut record = RequestRecord::blank("", Timestamp::from_millis(0), "", endpoint);
        decided.report.write_to(&mut record);
        session.last = LastRenditions::from_window(&record.window);
        let sent = decided.outcome.ok()?;
        let request = wire::read(run.dialect(), std::str::from_utf8(&sent.body).ok()?).ok()?;
        let view = request.items.iter().map(said).collect();
        let messages = (0..request.messages()).map(|at| request.message(at).to_owned()).collect();
        Some(Decided { messages, view, offers: sent.offered.is_some() })
    }

    /// Sends the messages after those of the last request.
    fn send(&self, sender: &mut Sender, messages: Vec<String>) -> Billed {
        let same = sender.messages.iter().zip(&messages).take_while(|(before, now)| before == now).count();
        let sum = |messages: &[String]| messages.iter().map(|message| self.count(message)).sum::<usize>();
        let bytes = |messages: &[String]| messages.iter().map(String::len).sum::<usize>();
        let billed = Billed {
            tokens: sum(&messages),
            cached: sum(&messages[..same]),
            prefix: (bytes(&messages[..same]), bytes(&sender.messages)),
        };
        sender.messages = messages;
        billed
    }

    fn count(&self, text: &str) -> usize {
        let key = ContentHash::new(text.as_bytes());
        *self.counts.borrow_mut().entry(key).or_insert_with(|| self.counter.count(text))
    }
}

#[cfg(test)]
#[path = "../replay_tests.rs"]
mod tests;
