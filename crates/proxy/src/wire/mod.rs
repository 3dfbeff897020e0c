//! The wire formats of clients and providers: requests as views and edits, replies as views, edits and
//! filtered streams, errors in each format's shape.
//!
//! Owns the formats and how Larder's tool and its calls are added to and removed from them. Knows no HTTP, no policy
//! and no store. A body is parsed as spans and edited by byte range: anything unknown stays unchanged.
//!
//! # Our tool, and the provider's prompt cache
//!
//! [`Request::offer`] appends `larder_rehydrate` behind the client's own tools, always the same bytes. Tools come before
//! all messages in a provider's cache, so offering it for the first time in the middle of a conversation costs one read
//! of the whole prompt. It is therefore for the caller to offer it by a rule that, once true of a conversation, stays
//! true: as soon as a client's request has tools, or from the first pointer on, which stays where it was put.
//! What the model must know about pointers is in the description of the tool (R3-4.41, R3-5.12) and next to each
//! pointer; the system prompt is never touched. A client's `tool_choice` is kept, so that a call which must not use
//! tools, or only one, does as the client says; a list of allowed tools gets ours as well, since it only reads.
//!
//! # Calls of our tool
//!
//! The model's calls of our tool are answered by the gateway and never reach the client:
//!
//! - *Alone*: the calls and the end of the reply are withheld, and the model is asked again with its own words, its
//!   calls and our results appended ([`reply`], [`stream`]). The client sees one reply: what the model said before and
//!   after, in order, and as usage the sum of what was billed.
//! - *Along with calls of the client's tools*: the client gets its own calls at once. Its results come with its next request.
//!
//! In both cases a history that the client sends later lacks what was hidden. [`HiddenSteps`] holds it, to be remembered
//! under the ids that providers give to calls and thoughts and that clients send back, and of texts, which have none,
//! under the text and its [`ReplyPlace`]; [`Request::restore`] puts it back in its place. So the model finds its own steps
//! again, thoughts are next to the calls they led to (some providers refuse them otherwise), and what was rehydrated
//! need not be asked for again at each step. The memory is not required: where it is lost, or a client changed what it
//! got, the model meets a history without its call and may call again. Nothing is invented, and a client's call is
//! never delayed or repeated. Where the restored form would not fit, the plain form is what the client knows anyway.

mod api_error;
mod billing;
mod cache_marks;
mod chat;
mod converse;
mod dialect;
mod dispatch;
mod edit;
mod format;
mod framing;
mod hashed_texts;
mod hidden;
mod message_text;
mod messages;
mod model_path;
mod opaque;
mod place;
mod read;
mod recipe_reply;
pub mod reply;
mod request;
mod responses;
pub mod stream;
#[cfg(test)]
#[path = "../../tests/support/wire.rs"]
mod testing;
mod tool;

pub use self::api_error::{ApiError, ApiErrorKind};
pub use self::dialect::ApiDialect;
pub use self::hashed_texts::HashedTexts;
pub use self::hidden::HiddenSteps;
pub use self::message_text::MessageText;
pub use self::model_path::ModelPath;
pub use self::opaque::{Opaque, OpaqueKind};
pub use self::place::ReplyPlace;
pub use self::read::ReadError;
pub use self::recipe_reply::{RecipeReply, ReplyPart};
pub use self::reply::{PartialUsage, RehydrateCall, ReplyRounds, WholeReply};
pub use self::request::{Fixed, Item, OfferedTool, Request, ResultItem, Text, read, read_up_to};
pub use self::stream::StreamedReply;
pub use self::tool::{rehydrate_tool_json, tool_json};
pub use larder_core::policy::{ItemCall, REHYDRATE};
