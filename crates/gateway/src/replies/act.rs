//! What a participant starts besides messages, for a caller: within the budget of the key, on a thread that may block, to its
//! end.

use std::sync::Arc;

use axum::http::StatusCode;
use larder_conversation::sharing::{NewShare, SHARE, SharePreview, Shared};
use larder_conversation::{ActionResult, Conversation};
use larder_engine::blocking;
use larder_engine::executor::{Meter, NoopObserver};

use super::run::refused;
use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// What is started.
#[derive(Debug, Clone)]
pub enum Act {
    /// An action by its name, with what the participant says to it.
    Action(String, Option<String>),
    /// A preview of what would be shared.
    Preview(NewShare),
    /// The act of sharing what was previewed, by what confirms it.
    Share(String),
}

/// What it gave.
#[derive(Debug, Clone)]
pub enum Acted {
    /// The action.
    Action(ActionResult),
    /// The preview.
    Preview(SharePreview),
    /// The act of sharing.
    Shared(Shared),
}

/// Carries out what a participant starts.
///
/// # Errors
/// The budget is used up, the conversation does not allow it, or a model or the store failed.
pub async fn act(
    app: &Arc<App>,
    caller: &Caller,
    conversation: Conversation,
    act: Act,
) -> Result<Acted, Problem> {
    let (app, caller) = (Arc::clone(app), caller.clone());
    let acting = blocking::spawn(async move {
        let _place = app.place().ok_or_else(|| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many concurrent requests; retry in a moment")
        })?;
        let name = match &act {
            Act::Action(name, _) => name.as_str(),
            Act::Preview(_) | Act::Share(_) => SHARE,
        };
        let (tokens, reach) = conversation.action_budget(name);
        let reservation = app.auth.reserve_for(&caller, tokens, &reach).map_err(refused)?;
        let meter = Meter::new(&NoopObserver, (!caller.limits.is_unlimited()).then_some(tokens), None);
        let acted = match act {
            Act::Action(name, text) => {
                conversation.act(&name, text.as_deref(), &meter).await.map(Acted::Action)
            }
            Act::Preview(new) => conversation.preview_share(&new, &meter).await.map(Acted::Preview),
            Act::Share(confirm) => conversation.share(&confirm, &meter).await.map(Acted::Shared),
        };
        let taken = meter.total();
        reservation.settle_or_log(taken.tokens(), taken.cost.unwrap_or_default());
        Ok(acted?)
    });
    acting.await.map_err(|error| Problem::internal(&error))?
}
