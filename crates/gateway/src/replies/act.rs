//! What a participant starts besides messages, for a caller: within the budget of the key, on a thread that may block, to its
//! end.

use std::sync::Arc;

use axum::http::StatusCode;
use larder_conversation::sharing::{NewShare, SHARE, SharePreview, Shared};
use larder_conversation::{ActionResult, Conversation, ConversationError, Started};
use larder_engine::blocking;
use larder_engine::executor::{Meter, ModelSet, NoopObserver};

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
    let name = match &act {
        Act::Action(name, _) => name,
        Act::Preview(_) | Act::Share(_) => SHARE,
    };
    let budget = conversation.action_budget(name);
    let carry_out = move |meter: Metered| async move {
        match act {
            Act::Action(name, text) => {
                conversation.act(&name, text.as_deref(), &*meter).await.map(Acted::Action)
            }
            Act::Preview(new) => conversation.preview_share(&new, &*meter).await.map(Acted::Preview),
            Act::Share(confirm) => conversation.share(&confirm, &*meter).await.map(Acted::Shared),
        }
    };
    within_budget(app, caller, budget, carry_out).await
}

/// Answers a message that comes before a conversation of a type is open.
///
/// # Errors
/// As [`act`], or there is no such type.
pub async fn start(app: &Arc<App>, caller: &Caller, kind: String, text: String) -> Result<Started, Problem> {
    let (door, by) = (Arc::clone(app), caller.clone());
    let finding = blocking::run(move || {
        let all = door.conversations(&by);
        let budget = all.start_budget(&kind)?;
        Ok::<_, Problem>((all, kind, budget))
    });
    let (all, kind, budget) = finding.await.map_err(|error| Problem::internal(&error))??;
    let answer = move |meter: Metered| async move { all.start(&kind, &text, &*meter).await };
    within_budget(app, caller, budget, answer).await
}

/// Counts what the calls of an act spend.
type Metered = Arc<Meter<'static>>;

/// Does work of a conversation on a thread that may block, to its end. The key's budget holds the most that it may cost.
async fn within_budget<T, F>(
    app: &Arc<App>,
    caller: &Caller,
    (tokens, reach): (u64, ModelSet),
    work: impl FnOnce(Metered) -> F + Send + 'static,
) -> Result<T, Problem>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ConversationError>> + Send,
{
    let (app, caller) = (Arc::clone(app), caller.clone());
    let working = blocking::spawn(async move {
        let _place = app.place().ok_or_else(|| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many concurrent requests; retry in a moment")
        })?;
        let reservation = app.auth.reserve_for(&caller, tokens, &reach).map_err(refused)?;
        let most = (!caller.limits.is_unlimited()).then_some(tokens);
        let meter = Arc::new(Meter::new(&NoopObserver, most, None));
        let done = work(Arc::clone(&meter)).await;
        let taken = meter.total();
        reservation.settle_or_log(taken.tokens(), taken.cost.unwrap_or_default());
        Ok(done?)
    });
    working.await.map_err(|error| Problem::internal(&error))?
}
