//! The providers as [`everyone`](crate::everyone) asks them: a stub server that follows a script, a folder of
//! recordings, and the embedded model with its real weights.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use larder_models::chat::{ChatModel, ChatRequest};
use larder_models::replay::ReplayRecorder;
use larder_testkit::scripted::{self, ScriptedModel};
use larder_testkit::stub::{Answer, End};

use crate::everyone::{Act, Provider, Subject};
use crate::replay::replayed;
use crate::support::{Wire, stubbed};

/// A provider behind a wire, played by a stub server.
pub struct Wired<W>(pub W);

impl<W: Wire> Provider for Wired<W> {
    fn model<'a>(&'a self, _: &'a ChatRequest, acts: Vec<Act>) -> BoxFuture<'a, Subject> {
        let answer = |act: &Act| match act {
            Act::Say(reply) => Answer::json(200, &self.0.whole(reply)),
            Act::Stream(reply) => Answer::events(self.0.streamed(reply)).byte_by_byte(),
            Act::Hang => Answer::events("").ending(End::Hang),
            Act::Refuse => self.0.window_errors().swap_remove(0),
        };
        let answers: Vec<Answer> = acts.iter().map(answer).collect();
        async move {
            let stub = stubbed(&self.0, answers).await;
            Subject { model: Arc::clone(&stub.model), _keeps: Box::new(stub.server) }
        }
        .boxed()
    }
}

/// Replies that another model gave before.
pub struct Recorded;

impl Provider for Recorded {
    fn model<'a>(&'a self, asked: &'a ChatRequest, acts: Vec<Act>) -> BoxFuture<'a, Subject> {
        async move {
            let folder = tempfile::tempdir().expect("a folder");
            let Some(Act::Say(reply) | Act::Stream(reply)) = acts.into_iter().next() else {
                panic!("a recording holds replies only")
            };
            let model = ScriptedModel::new([scripted::Act::Say(Ok(reply))]);
            let recorder = ReplayRecorder::new(Arc::new(model), folder.path().join("replies"), Vec::new());
            recorder.chat(asked).await.expect("a reply to record");
            Subject { model: replayed(folder.path()), _keeps: Box::new(folder) }
        }
        .boxed()
    }
}

/// The model in this process, which does as it likes.
pub struct InProcess;

impl Provider for InProcess {
    fn model<'a>(&'a self, _: &'a ChatRequest, _: Vec<Act>) -> BoxFuture<'a, Subject> {
        async { Subject { model: Arc::new(larder_testkit::weights::embedded()), _keeps: Box::new(()) } }
            .boxed()
    }
}
