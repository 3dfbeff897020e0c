//! Replies of conversations that this gateway writes: each runs to its end and is committed, whoever waits for it. Knows no
//! wire format.

mod act;
mod run;
mod stream;

pub use act::{Act, Acted, act, start};
pub use run::answer;
pub use stream::{ReplyEvent, ReplyReader, ReplyStream, RunningReplies};
