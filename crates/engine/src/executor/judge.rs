//! Whether a reply is an answer: it parses, passes its gates and is complete.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use larder_core::output::{self, GateFailure, GateResult, OutputError};
use larder_core::pack::Pack;
use larder_core::recipe::{OutputFormat, Recipe};
use larder_models::chat::{ChatReply, StopReason};

use super::attempt::AttemptResult;
use super::{RecipeRun, RunError};
use crate::evidence::shown;
use crate::prepare::PreparedPrompt;

/// Roles whose callers handle a sound answer with low confidence themselves: they ask again, ask the user, or do not
/// approve (C67). The record holds the confidence.
const ROLES_THAT_HANDLE_DOUBT: [&str; 2] = ["reflection", "validation"];

impl RecipeRun<'_> {
    pub(super) fn judge(
        &mut self,
        prepared: &PreparedPrompt,
        pack: &Pack,
        reply: ChatReply,
        unanswered: Option<String>,
    ) -> Result<AttemptResult, RunError> {
        let recipe = self.recipe;
        if let Some(limit) = unanswered {
            self.answer = Some(reply.text);
            self.gates = GateResult { failures: vec![GateFailure::Calls { limit }], ..GateResult::default() };
            self.ended_by = self.gates.failures.first().cloned();
            return Ok(AttemptResult::Failed(self.gates.failures.clone()));
        }
        let parsed = output::parse(&recipe.output, &reply.text);
        self.answer = Some(reply.text);
        let citable: BTreeSet<String> = shown(pack, &prepared.citable).into_iter().collect();
        let schemas = &self.engine.schemas;
        self.gates = output::evaluate(parsed.as_ref(), &recipe.output, &recipe.gates, schemas, &citable)
            .map_err(|source| RunError::Schema { recipe: recipe.id(), source })?;
        // JSON that parses is complete, whatever the provider reports.
        let complete = recipe.output.format == OutputFormat::Json && parsed.is_ok();
        let is_short = !complete && matches!(reply.stop, StopReason::Length | StopReason::Closed);
        // Where its reader wants it short, or its form is whole, nothing better follows from asking again.
        let may_be_cut =
            self.input.max_output == Some(prepared.max_output) || reply.stop == StopReason::Closed;
        self.is_cut = is_short && may_be_cut && parsed.is_ok() && self.gates.passed();
        self.gates.failures.extend(match reply.stop {
            _ if is_short && !self.is_cut => Some(GateFailure::Cut { limit: prepared.max_output }),
            StopReason::Refusal => Some(GateFailure::Declined),
            _ => None,
        });
        match parsed {
            Ok(parsed) if self.gates.passed() || leaves_doubt_to_caller(recipe, &self.gates) => {
                Ok(AttemptResult::Answered(parsed))
            }
            parsed if self.shown.load(Ordering::Relaxed) && !self.begins_anew(parsed.as_ref().err()) => {
                let answer = self.answer.as_deref().unwrap_or_default();
                let read = parsed.unwrap_or_else(|_| output::salvage(&recipe.output, answer));
                Ok(AttemptResult::Answered(read))
            }
            _ => Ok(AttemptResult::Failed(self.gates.failures.clone())),
        }
    }

    /// Whether a reply that was passed on is asked for again: it lacks a required tag, its reader can take it back, and
    /// there is another attempt.
    fn begins_anew(&self, problem: Option<&OutputError>) -> bool {
        let lacking = match problem {
            Some(OutputError::MissingTag { .. }) => true,
            Some(OutputError::UnclosedTag { name, .. }) => {
                self.recipe.output.tags.iter().any(|tag| tag.required && tag.name == *name)
            }
            _ => false,
        };
        lacking && self.may_retry && self.observer.takes_restarts() && self.observer.may_spend()
    }
}

/// Whether low confidence is the only problem with an answer, and the callers of its role handle that.
fn leaves_doubt_to_caller(recipe: &Recipe, gates: &GateResult) -> bool {
    recipe.role.as_deref().is_some_and(|role| ROLES_THAT_HANDLE_DOUBT.contains(&role))
        && gates.failures.iter().all(|failure| matches!(failure, GateFailure::LowConfidence { .. }))
}
