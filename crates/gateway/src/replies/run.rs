//! Writing one reply for a caller: within the budget of the key, on a thread that may block, to its end.

use std::collections::btree_map::Entry;
use std::sync::{Arc, PoisonError};

use axum::http::StatusCode;
use larder_conversation::catalog::TypeError;
use larder_conversation::{Conversation, ConversationError, Reply};
use larder_core::output::OutputEvent;
use larder_engine::blocking;
use larder_engine::executor::{Meter, ProgressObserver, RunReceipt};
use larder_store::StoreError;

use super::stream::{ReplyStream, Running};
use crate::app::App;
use crate::auth::{AuthError, Caller};
use crate::error::RequestError;
use crate::problem::Problem;

/// The reply to a message that was posted: as it is written now, or as it was. Where its first reader can take text back
/// (`takes_restarts`), one without a required tag is asked for again. Blocks.
///
/// # Errors
/// The store fails, or there is no such message in this track.
pub fn answer(
    app: &Arc<App>,
    caller: &Caller,
    conversation: Conversation,
    message: u64,
    takes_restarts: bool,
) -> Result<Arc<ReplyStream>, Problem> {
    let running = || app.running_replies.lock().unwrap_or_else(PoisonError::into_inner);
    let under_way = running().get(&message).map(Arc::clone);
    if let Some(stream) = under_way {
        return Ok(stream);
    }
    // Other replies do not wait while the store is read. One that ends meanwhile is found by `write`.
    if let Some(reply) = conversation.written(message)? {
        let record = conversation.record(reply.number)?;
        return Ok(ReplyStream::of(message, reply, &record));
    }
    let stream = match running().entry(message) {
        Entry::Occupied(under_way) => return Ok(Arc::clone(under_way.get())),
        Entry::Vacant(place) => Arc::clone(place.insert(Arc::new(ReplyStream::new(message)))),
    };
    let (app, caller, written) = (Arc::clone(app), caller.clone(), Arc::clone(&stream));
    blocking::spawn(async move {
        let running = Running::new(written, &app.running_replies);
        let passing = Passing { stream: &running.stream, takes_restarts };
        let outcome = write(&app, &caller, &conversation, message, &passing).await;
        running.end(outcome);
    });
    Ok(stream)
}

/// Writes a reply, unless another process does, and returns it with the pieces in which it was written.
async fn write(
    app: &App,
    caller: &Caller,
    conversation: &Conversation,
    message: u64,
    observer: &Passing<'_>,
) -> Result<(Reply, Vec<usize>), Problem> {
    // Another process or request may have written it meanwhile: it then costs nothing.
    if let Some(reply) = conversation.written(message)? {
        let pieces = conversation.record(reply.number)?.pieces;
        return Ok((reply, pieces));
    }
    let _place = app.place().ok_or_else(|| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many concurrent requests; retry in a moment")
    })?;
    let (tokens, reach) = conversation.reply_budget();
    let reservation = app.auth.reserve_for(caller, tokens, &reach).map_err(refused)?;
    let meter = Meter::new(observer, (!caller.limits.is_unlimited()).then_some(tokens), None);
    let answered = conversation.answer(message, &meter).await;
    let taken = meter.total();
    reservation.settle_or_log(taken.tokens(), taken.cost.unwrap_or_default());
    let reply = answered?;
    let pieces = conversation.record(reply.number)?.pieces;
    Ok((reply, pieces))
}

pub(super) fn refused(error: AuthError) -> Problem {
    match error {
        AuthError::Store(error) => error.into(),
        error => Problem::new(error.status(), error.to_string()),
    }
}

impl From<ConversationError> for Problem {
    fn from(error: ConversationError) -> Self {
        let status = match error {
            // A name in a body that cannot be one is a value that is not valid.
            ConversationError::Store(StoreError::InvalidName { .. } | StoreError::InvalidUser { .. }) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            ConversationError::Store(error) => return error.into(),
            ConversationError::Run(error) => {
                let error = RequestError::from(error);
                return Self::new(error.status, error.message);
            }
            ConversationError::Type(TypeError::NotFound { .. })
            | ConversationError::UnknownSession { .. }
            | ConversationError::UnknownPerson { .. } => StatusCode::NOT_FOUND,
            ConversationError::Type(TypeError::Invalid { .. }) => StatusCode::CONFLICT,
            ConversationError::NotConfirmed | ConversationError::Acted { .. } => StatusCode::CONFLICT,
            ConversationError::Ceiling { .. } => StatusCode::TOO_MANY_REQUESTS,
            ConversationError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, error.to_string())
    }
}

/// Passes the text on.
struct Passing<'a> {
    stream: &'a ReplyStream,
    takes_restarts: bool,
}

impl ProgressObserver for Passing<'_> {
    fn stage(&self, _: &str) {}

    fn packed(&self, _: &RunReceipt) {}

    fn wants_output(&self) -> bool {
        true
    }

    fn output(&self, event: &OutputEvent) {
        if let OutputEvent::Reply(piece) = event
            && !piece.is_empty()
        {
            self.stream.text(piece);
        }
    }

    fn restarted(&self) {
        self.stream.restart();
    }

    fn takes_restarts(&self) -> bool {
        self.takes_restarts
    }
}
