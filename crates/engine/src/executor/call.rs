//! The one place that sends a prompt to a model.

use std::time::Duration;

use larder_core::pack::Pack;
use larder_models::chat::{ChatReply, ChatRequest, ModelError};
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
    pub async fn warm(&self, name: &str) -> Result<(), ModelError> {
        let Some(spec) = self.models.table().model(name) else { return Ok(()) };
        let request = ChatRequest {
            model: spec.id.clone(),
            messages: vec![Message::text(Role::User, WARMING)],
            tools: Vec::new(),
            schema: None,
            max_output: 1,
            temperature: None,
            timeout: spec.timeout,
            stable_messages: 0,
            thinking_budget: None,
        };
        self.models.chat(name)?.chat(&request).await.map(drop)
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
            max_output: u32::try_from(prepared.max_output).unwrap_or(u32::MAX),
            temperature: candidate.temperature,
            timeout: timeout(recipe.gates.timeout_ms, candidate.spec.timeout),
            stable_messages: pack.stable_messages,
            thinking_budget: candidate.thinking_budget,
        };
        let mut limits = self.meter.left();
        if let RunKind::Condensing { until: Some(until) } = self.kind {
            limits.deadline = Some(limits.deadline.map_or(until, |deadline| deadline.min(until)));
        }
        if !self.kind.has_substitute() && limits.deadline.is_none() {
            return model.chat(&request).await;
        }
        let most = if self.kind.has_substitute() { request.timeout } else { Duration::MAX };
        let after = limits.time(most);
        let late = |_| ModelError::Timeout { provider: candidate.name.clone(), after };
        tokio::time::timeout(after, model.chat(&request)).await.map_err(late)?
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
