//! Why something in a conversation was not done.

use larder_core::recipe::own_slots::QUERY as MESSAGE;
use larder_engine::embedding::EmbeddingError;
use larder_engine::executor::RunError;
use larder_store::StoreError;

use crate::catalog::TypeError;

/// Asks a user who takes part under several names to say which is meant, in the way of an interface.
pub fn which_participant(names: &str, way: &str) -> String {
    format!("you take part in this conversation as {names}; say which is meant {way}")
}

/// Why something in a conversation was not done.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// The type does not exist, or has errors.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The store failed, or does not know what was named.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The reply was not written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// No vectors were made.
    #[error(transparent)]
    Vectors(#[from] EmbeddingError),
    /// There is nothing to answer.
    #[error("the message is empty: it has no visible text; write something to answer")]
    Empty,
    /// The newest message is sent whole (C105), and there is no room for it.
    #[error(
        "the message is {over} tokens too long for the model {model}, and it would be sent whole; send it in parts, or give \
         the conversation a model with a larger window"
    )]
    TooLong {
        /// Tokens over the limit.
        over: usize,
        /// The model's name in the table.
        model: String,
    },
    /// More participants than the type allows.
    #[error("{given} participants, but a conversation of type {kind} has at most {most}")]
    TooMany {
        /// Participants that were named.
        given: usize,
        /// The type.
        kind: String,
        /// The most it allows.
        most: u8,
    },
    /// There is no such stage to begin a session in.
    #[error("{name:?} is no stage that a session can begin in; {help}")]
    NoAside {
        /// What was named.
        name: String,
        /// What there is.
        help: String,
    },
    /// There is no such session.
    #[error("there is no session {session}; the newest is {newest}")]
    UnknownSession {
        /// The number that was named.
        session: u64,
        /// The number of the newest.
        newest: u64,
    },
    /// The user takes part under several names.
    #[error("{}", which_participant(names, "in `participant`"))]
    WhichParticipant {
        /// The names.
        names: String,
    },
    /// Nothing is known of a person.
    #[error("nothing is known of anyone called {name:?}")]
    UnknownPerson {
        /// The name that was given.
        name: String,
    },
    /// The user has too many open invitations.
    #[error(
        "{open} of your invitations are open, and at most {most} may be; wait until some are accepted, or take them back"
    )]
    TooManyInvitations {
        /// Those that wait.
        open: u64,
        /// The most that may.
        most: u64,
    },
    /// There is no such action now.
    #[error("{name:?} cannot be done here; {help}")]
    NoAction {
        /// What was named.
        name: String,
        /// What there is.
        help: String,
    },
    /// What is shared is not what was previewed.
    #[error("this is not what the newest preview showed; preview it again, and send its `confirm`")]
    NotConfirmed,
    /// Something was shared or done after the message, which cannot be taken back with it.
    #[error(
        "message {number} stays as it is: something was shared or done after it; say it in a new message"
    )]
    Acted {
        /// The number of the message.
        number: u64,
    },
    /// A ceiling of the type is reached.
    #[error(
        "the ceiling of ${limit} for {of} is reached; raise `ceilings.{key}` of the conversation type to go on"
    )]
    Ceiling {
        /// The limit, in US dollars.
        limit: f64,
        /// What it limits.
        of: &'static str,
        /// Its key in the type.
        key: &'static str,
    },
}

impl ConversationError {
    /// Why a message got no reply: where it would fit if it were shorter, it is the message that is too long.
    pub(crate) fn of_reply(error: RunError) -> Self {
        let RunError::Refused { receipt, .. } = &error else { return error.into() };
        let refusal = receipt.receipt.refused.as_ref();
        let over = refusal.map_or(0, |refusal| refusal.deficit);
        let mut parts = refusal.into_iter().flat_map(|refusal| &refusal.parts);
        match parts.any(|(part, tokens)| part == MESSAGE && *tokens >= over) {
            true => Self::TooLong { over, model: receipt.model.clone() },
            false => error.into(),
        }
    }
}
