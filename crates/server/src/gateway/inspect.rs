//! What would become of a request: decided as if it had come in, but neither sent, stored nor recorded.

use bytes::Bytes;
use larder_core::pointer::PointerKey;
use larder_core::policy::{ContextBudgetPolicy, Memo, Usage};
use larder_core::tokens::Counter;
use larder_store::{Timestamp, UserStore};

use crate::app::App;
use crate::exchange::{Exchange, Outcome, Wire};
use crate::gateway::cache::Cache;
use crate::gateway::describe::Forms;
use crate::gateway::fault::Fault;
use crate::gateway::ledger;
use crate::gateway::shelf::Counts;
use crate::gateway::window::Bench;
use crate::wire::{self, Format};

/// Counts that [`leaving`] keeps for the one request it is given.
const COUNTS: usize = 1 << 10;

/// A request as it would leave.
#[derive(Debug)]
pub struct Leaving {
    /// Its body.
    pub body: String,
    /// Whether our tool is offered in it.
    pub offered: bool,
    /// What must be stored before it leaves: the originals of the pointers in it.
    pub originals: Vec<String>,
    /// What would be recorded of it.
    pub exchange: Exchange,
}

/// Makes of a body what would be sent under a policy: with no server and no store, and nothing known from before.
///
/// # Errors
/// Why nothing would be sent.
pub fn leaving(
    format: Format,
    body: &str,
    policy: &ContextBudgetPolicy,
    counter: &Counter,
    key: &PointerKey,
) -> Result<Leaving, Fault> {
    let request = wire::read(format, body).map_err(|error| Fault::invalid(error.to_string()))?;
    let wire = match format {
        Format::Chat => Wire::Chat,
        Format::Responses => Wire::Responses,
        Format::Messages => Wire::Messages,
    };
    let mut exchange = ledger::blank("", Timestamp::from_millis(0), "", wire);
    let bench = Bench {
        memo: &Memo::default(),
        counts: Counts::new(Cache::new(COUNTS)),
        policy,
        counter,
        key,
        last: &Forms::default(),
        rehydrates: true,
        body: &Bytes::copy_from_slice(body.as_bytes()),
        counts_only: false,
        transcribes: true,
        is_stored: &|_| false,
    };
    let prepared = bench.prepare(&request, None, &mut exchange)?;
    exchange.head.outcome = Outcome::Ok;
    let prompt = exchange.head.tokens.after;
    ledger::record_usage(policy, &mut Usage::default(), &mut exchange.head, prompt);
    let body = String::from_utf8(prepared.body.into()).map_err(|error| Fault::bug(&error.to_string()))?;
    Ok(Leaving {
        body,
        offered: prepared.offered,
        originals: prepared.missing.into_iter().map(|missing| missing.text).collect(),
        exchange: ledger::sealed(exchange),
    })
}

/// Decides over the body of a request. Blocks.
///
/// # Errors
/// Why it cannot be understood, in words.
pub fn inspect(app: &App, store: &UserStore, wire: Wire, body: &str) -> Result<Exchange, String> {
    let format = match wire {
        Wire::Chat => Format::Chat,
        Wire::Responses => Format::Responses,
        Wire::Messages | Wire::CountTokens => Format::Messages,
        Wire::Embeddings => return Err("a request for vectors has no window to decide over".to_owned()),
    };
    let current = app.current();
    let request =
        wire::read_up_to(format, body, current.gateway.max_messages).map_err(|error| error.to_string())?;
    let model = request.model.as_ref().map(wire::Text::text).unwrap_or_default();
    let route = current.routes.find(wire, &model, current.shared()).map_err(|fault| fault.message)?;
    let id = app.store.new_run_id().map_err(|error| error.to_string())?;
    let mut exchange = ledger::blank(id.as_str(), app.store.now(), store.user(), wire);
    exchange.head.model = crate::exchange::cut_name(&model);
    exchange.head.stream = request.stream;
    exchange.head.answered_by = Some(route.model.clone());
    let bench = Bench {
        memo: &app.shelf.memo,
        counts: app.shelf.counts(&route.counter),
        policy: &route.policy,
        counter: &route.counter,
        key: store.key(),
        last: &Forms::default(),
        rehydrates: current.gateway.rehydrate_rounds > 0,
        body: &Bytes::new(),
        counts_only: false,
        transcribes: false,
        is_stored: &|_| true,
    };
    match bench.prepare(&request, None, &mut exchange) {
        Ok(_) => exchange.head.outcome = Outcome::Ok,
        Err(fault) => {
            exchange.head.outcome = fault.outcome;
            exchange.head.status = fault.status.as_u16();
            exchange.head.error = Some(fault.class.to_owned());
        }
    }
    Ok(ledger::sealed(exchange))
}
