//! The models that answered a request, and where their names may be shown. Knows nothing else of the request.

use larder_text::price::Usd;
use larder_text::provider::Provider;
use larder_text::usage::Usage;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Outcome, RequestSummary};

/// Which model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnsweredBy {
    /// Its name in the model table; of a model that the table does not have, its id.
    pub name: String,
    /// The provider's id of it.
    pub id: String,
    /// The default server, if the model is not in the table. The name is then the client's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Who serves it.
    #[schema(value_type = String, example = "openai")]
    pub provider: Provider,
}

/// What one model used in the run of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModelShare {
    /// Its name in the model table.
    pub model: String,
    /// Its calls that were answered.
    pub calls: u32,
    /// Tokens of these calls.
    pub usage: Usage,
    /// Their cost in US dollars; `None` if the model has no price.
    #[schema(value_type = Option<String>, example = "0.0105")]
    pub cost: Option<Usd>,
}

/// What reports call a model whose name is the client's text alone: one that neither the table nor the catalogue has, and
/// that no provider confirmed. Without it every misspelt name would add a row or a series that stays.
pub const OTHER_MODEL: &str = "other";
/// What reports call the model of a request that names none, such as one with an unreadable body.
pub const NO_MODEL: &str = "none";

impl RequestSummary {
    /// The name of the model as allowed in logs and metrics, [`OTHER_MODEL`] if it may not be repeated; `None` if no model
    /// was found for the request.
    pub fn reported_model(&self) -> Option<&str> {
        let model = self.answered_by.as_ref()?;
        Some(if model.server.is_none() { &model.name } else { self.unless_unknown(&model.name) })
    }

    /// The name under which the cost of the request is booked.
    pub fn booked_model(&self) -> &str {
        let named = || if self.model.is_empty() { NO_MODEL } else { self.unless_unknown(&self.model) };
        self.reported_model().unwrap_or_else(named)
    }

    /// The recipe under which the cost of the request is booked.
    pub fn booked_recipe(&self) -> Option<&str> {
        self.recipe.as_deref().map(|recipe| self.unless_unknown(recipe))
    }

    fn unless_unknown<'a>(&self, name: &'a str) -> &'a str {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@+".contains(&byte);
        let is_known = self.model_is_known || self.outcome == Outcome::Ok;
        // Some servers answer whatever they are called.
        if is_known && name.bytes().all(is_name) { name } else { OTHER_MODEL }
    }
}
