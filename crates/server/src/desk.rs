//! What pages and the REST API look at, and the few things that they have in common. Knows nothing of how requests
//! are served; who asks is settled before (`auth`).

use std::sync::Arc;

use futures::future::BoxFuture;
use larder_agent::turn::Turns;
use larder_core::policy::ContextBudgetPolicy;
use larder_engine::config::Setting;
use larder_engine::project::Project;
use larder_models::table::ModelSpec;
use larder_store::{StoreError, UserDocuments, UserStore};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;

use crate::api::Problem;
use crate::auth::{Auth, Caller};
use crate::exchange::{Exchange, Wire};
use crate::telemetry::Telemetry;
use crate::turns::Courses;

/// The state of every page and every route of the API.
pub type Shared = Arc<dyn Desk>;

/// What pages and the API look at. Whatever belongs to a user is reached through the store of that user only.
pub trait Desk: Send + Sync + 'static {
    /// Totals, metrics and traces.
    fn telemetry(&self) -> &Telemetry;
    /// Keys and signing in.
    fn auth(&self) -> &Auth;
    /// Recipes and prompts as they are now.
    fn project(&self) -> Arc<Project>;
    /// Every setting as it is now, with its help and where it comes from.
    fn settings(&self) -> Vec<Setting>;
    /// Why the last change of settings or recipes was refused, so that what held before still holds.
    fn refused(&self) -> Option<String>;
    /// What each model may take under the policy as it is now, by name.
    fn budgets(&self) -> Vec<ModelBudget>;
    /// Bytes that the body of a request may have.
    fn max_body_bytes(&self) -> usize;
    /// What the gateway would make of a request: decided, but neither sent, stored nor recorded. Blocks.
    ///
    /// # Errors
    /// Why it cannot be understood, in words for the person who pasted it.
    fn inspect(&self, store: &UserStore, wire: Wire, body: &str) -> Result<Exchange, String>;
    /// Ends when a request that is under way, or that has just ended, is recorded; at once for all others.
    fn recorded(&self, user: &str, id: &str) -> BoxFuture<'static, ()>;
    /// The documents of one user. Blocks.
    ///
    /// # Errors
    /// They cannot be opened.
    fn documents(&self, store: &UserStore) -> Result<UserDocuments, StoreError>;
    /// What runs turns of this caller, as the settings are now. Blocks; not to be called from a future.
    ///
    /// # Errors
    /// Something that turns need cannot be opened.
    fn turns(&self, caller: &Caller) -> Result<Turns, Problem>;
    /// Turns under way.
    fn courses(&self) -> &Arc<Courses>;
    /// A place among the requests at once, held until it is dropped; none when all are taken.
    fn place(&self) -> Option<OwnedSemaphorePermit>;
}

/// What one model may take under the policy, in tokens (R3-2.6, R3-7.6).
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
    /// Kept for the reply when a request does not say.
    pub reserve: u64,
    /// Kept free whatever a request says (C38).
    pub floor: u64,
    /// From here on older tool results are compacted.
    pub trace_threshold: u64,
    /// The reply, at most.
    pub output: u64,
}

impl ModelBudget {
    /// What a policy leaves a model of the table.
    pub fn of(name: &str, spec: &ModelSpec, policy: &ContextBudgetPolicy) -> Self {
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

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
pub(crate) mod vault;
