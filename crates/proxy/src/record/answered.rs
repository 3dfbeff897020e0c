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

impl RequestSummary {
    /// The name of the model as allowed in logs and metrics: a model outside the table is reported by its server
    /// until the provider confirms its name.
    pub fn reported_model(&self) -> Option<&str> {
        let model = self.answered_by.as_ref()?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@+".contains(&byte);
        let is_known = self.outcome == Outcome::Ok && model.name.bytes().all(is_name);
        Some(model.server.as_deref().filter(|_| !is_known).unwrap_or(&model.name))
    }
}
