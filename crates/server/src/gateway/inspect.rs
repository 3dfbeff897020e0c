//! What would become of a request: decided as if it had come in, but neither sent, stored nor recorded.

use bytes::Bytes;
use larder_store::UserStore;

use crate::app::App;
use crate::exchange::{Exchange, Outcome, Wire};
use crate::gateway::describe::Forms;
use crate::gateway::ledger;
use crate::gateway::window::Bench;
use crate::wire::{self, Format};

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
    let request = wire::read(format, body).map_err(|error| error.to_string())?;
    let model = request.model.as_ref().map(wire::Text::text).unwrap_or_default();
    let current = app.current();
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
