//! The budget that the policy leaves each model in the table. Decides nothing.

use larder_core::policy::ContextBudgetPolicy;
use larder_models::table::ModelSpec;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The token budget of one model under the policy (R3-2.6, R3-7.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModelBudget {
    /// Its name in the model table.
    pub name: String,
    /// The provider's id of it.
    pub id: String,
    /// Prompt and reply together.
    pub window: u64,
    /// The prompt, at most.
    pub budget: u64,
    /// Reserved for the reply if a request sets no limit.
    pub reserve: u64,
    /// Always kept free (C38).
    pub floor: u64,
    /// From here on older tool results are compacted.
    pub trace_threshold: u64,
    /// The reply, at most.
    pub output: u64,
}

impl ModelBudget {
    /// What a policy leaves a model of the table.
    pub fn new(name: &str, spec: &ModelSpec, policy: &ContextBudgetPolicy) -> Self {
        let number = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
        Self {
            name: name.to_owned(),
            id: spec.id.clone(),
            window: number(spec.window),
            budget: number(policy.prompt_budget(None)),
            reserve: number(policy.response_reserve(None)),
            floor: number(policy.emergency_floor()),
            trace_threshold: number(policy.trace_threshold()),
            output: spec.max_output.into(),
        }
    }
}
