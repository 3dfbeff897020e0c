//! Callers of the MCP route: whose store they work on, and how what they ask of models is paid for.

use std::sync::Arc;

use larder_models::chat::Usage;
use larder_models::price::Usd;

use crate::app::App;
use crate::auth::{Caller, Held};
use crate::gateway::{self, Fault};
use crate::mcp::{Guest, GuestOf, HttpOptions, Purse, Reserved, Roots};
use crate::wire::Format;

/// How callers of the gateway become guests.
pub fn read(app: &Arc<App>) -> Arc<GuestOf> {
    let (app, roots) = (Arc::clone(app), Arc::new(Roots::none()));
    Arc::new(move |parts| {
        let Some(caller) = parts.extensions.get::<Caller>() else {
            return Err(Box::new(gateway::error(Format::Chat, &Fault::bug("a request without a caller"))));
        };
        let current = app.current();
        Ok(Guest {
            engine: Arc::new(current.engine(&caller.store)),
            asking: current.config.asking(),
            roots: Arc::clone(&roots),
            purse: Some(Arc::new(KeyPurse { app: Arc::clone(&app), caller: caller.clone() })),
        })
    })
}

/// How the MCP route is served.
pub fn options(app: &App) -> HttpOptions {
    HttpOptions {
        // The door has looked at where a request comes from.
        hosts: Vec::new(),
        max_body: app.current().gateway.max_body_bytes,
        stop: app.stop.clone(),
    }
}

/// The budget of a caller's key.
struct KeyPurse {
    app: Arc<App>,
    caller: Caller,
}

impl Purse for KeyPurse {
    fn reserve(&self, tokens: u64) -> Result<Box<dyn Reserved>, String> {
        let held = self.app.auth.reserve(&self.caller, tokens, Usd::default());
        held.map(|held| Box::new(OfKey(held)) as Box<dyn Reserved>).map_err(|error| error.to_string())
    }
}

struct OfKey(Held);

impl Reserved for OfKey {
    fn settle(self: Box<Self>, usage: Usage, cost: Option<Usd>) {
        let tokens = usage.input.saturating_add(usage.output);
        if let Err(error) = self.0.settle(tokens, cost.unwrap_or_default()) {
            tracing::error!(%error, "a budget could not be settled; all that was reserved counts as used");
        }
    }
}
