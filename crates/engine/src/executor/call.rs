//! The one place that sends a prompt to a model.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use larder_core::output::{self, OutputEvent, OutputStream};
use larder_core::pack::Pack;
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError};
use larder_models::table::{Capability, DEFAULT_TIMEOUT_MS};
use larder_text::message::{Message, Role};

use super::report::CallLog;
use super::{Engine, ModelCandidate, RecipeRun, RunKind};
use crate::evidence::{citing, shown};
use crate::prepare::PreparedPrompt;

/// What a model is asked to be loaded.
const WARMING: &str = "Hi";

impl Engine {
    /// Has a model load by asking it for one token (R0-20.2).
    ///
    /// # Errors
    /// If the model is not available, or does not answer.
    pub fn warm<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), ModelError>> {
        async move {
            let Some(spec) = self.models.table().model(name) else { return Ok(()) };
            let request = ChatRequest {
                model: spec.id.clone(),
                messages: vec![Message::text(Role::User, WARMING)],
                tools: Vec::new(),
                schema: None,
                grammar: None,
                max_output: 1,
                temperature: None,
                timeout: spec.timeout,
                stable_messages: 0,
                thinking_budget: None,
            };
            self.models.chat(name)?.chat(&request).await.map(drop)
        }
        .boxed()
    }
}

impl RecipeRun<'_> {
    /// Calls a candidate with messages of so many tokens, which begin with those of the pack, and logs the call. A run that rules can replace waits no
    /// longer than its own timeout, and one with a limit of time no longer than that.
    pub(super) async fn call(
        &self,
        candidate: &ModelCandidate,
        prepared: &PreparedPrompt,
        pack: &Pack,
        (messages, tokens): (&[Message], usize),
    ) -> Result<ChatReply, ModelError> {
        let log = CallLog::start(self, candidate, tokens);
        self.came().clear();
        let ended = self.send(candidate, prepared, pack, messages).await;
        log.end(&ended);
        ended
    }

    async fn send(
        &self,
        candidate: &ModelCandidate,
        prepared: &PreparedPrompt,
        pack: &Pack,
        messages: &[Message],
    ) -> Result<ChatReply, ModelError> {
        let recipe = self.recipe;
        let model = self.engine.models.chat(&candidate.name)?;
        let _first = self.engine.take_turn(&candidate.name).await;
        let enforced = candidate.spec.can(Capability::JsonSchema);
        let request = ChatRequest {
            model: candidate.spec.id.clone(),
            messages: messages.to_vec(),
            tools: prepared.tools.clone(),
            schema: recipe.output.schema.as_ref().filter(|_| enforced).map(|schema| {
                if recipe.gates.evidence_required {
                    citing(schema, &shown(pack, &prepared.citable))
                } else {
                    schema.clone()
                }
            }),
            grammar: output::grammar(&recipe.output),
            max_output: u32::try_from(prepared.max_output).unwrap_or(u32::MAX),
            temperature: candidate.temperature,
            timeout: timeout(recipe.gates.timeout_ms, candidate.spec.timeout),
            stable_messages: match pack.messages.len() {
                // A session goes on: all but its newest message is sent again.
                messages if self.input.session_id.is_some() && !self.input.history.is_empty() => {
                    messages.saturating_sub(1)
                }
                _ => pack.stable_messages,
            },
            thinking_budget: candidate.thinking_budget,
        };
        let mut limits = self.meter.left();
        if let Some(until) = self.kind.until() {
            limits.deadline = Some(limits.deadline.map_or(until, |deadline| deadline.min(until)));
        }
        if !self.kind.has_substitute() && limits.deadline.is_none() {
            return self.receive(model.as_ref(), &request).await;
        }
        let most = if self.kind.has_substitute() { request.timeout } else { Duration::MAX };
        let after = limits.time(most);
        let late = |_| ModelError::Timeout { provider: candidate.name.clone(), after };
        tokio::time::timeout(after, self.receive(model.as_ref(), &request)).await.map_err(late)?
    }
}

impl RecipeRun<'_> {
    /// Gets the whole reply, and passes it on meanwhile if the caller wants that.
    async fn receive(&self, model: &dyn ChatModel, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        if self.kind != RunKind::Answer || !self.observer.wants_output() {
            return model.chat(request).await;
        }
        if self.shown.swap(false, Ordering::Relaxed) {
            self.observer.restarted();
        }
        let mut output = OutputStream::new(&self.recipe.output);
        let pass_on = |events: Vec<OutputEvent>| {
            for event in &events {
                self.shown.store(true, Ordering::Relaxed);
                self.observer.output(event);
            }
        };
        let mut events = model.stream(request);
        while let Some(event) = events.next().await {
            match event? {
                ChatEvent::Text(text) => {
                    self.came().push_str(&text);
                    pass_on(output.push(text.as_bytes()));
                }
                ChatEvent::ToolCall(_) => {}
                ChatEvent::Done(reply) => {
                    pass_on(output.end().0);
                    return Ok(reply);
                }
            }
        }
        let detail = "the stream has no end".to_owned();
        Err(ModelError::Protocol { provider: request.model.clone(), detail })
    }
}

/// The time for one call: the recipe's, but not less than that of a model which needs more than the default; the model's
/// where the recipe states none.
pub(super) fn timeout(recipe: Option<u64>, model: Duration) -> Duration {
    match recipe.map(Duration::from_millis) {
        Some(recipe) if model > Duration::from_millis(DEFAULT_TIMEOUT_MS) => recipe.max(model),
        Some(recipe) => recipe,
        None => model,
    }
}
