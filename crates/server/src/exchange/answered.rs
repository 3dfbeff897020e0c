//! Which model answered a request, and where its name may be told. Knows nothing else of the request.

use larder_models::table::Provider;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Head, Outcome};

/// Which model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnsweredBy {
    /// Its name in the model table; of a model that the table does not have, its id.
    pub name: String,
    /// The provider's id of it.
    pub id: String,
    /// The server for other models, where the table does not have it. The name is then the client's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Who serves it.
    #[schema(value_type = String, example = "openai")]
    pub provider: Provider,
}

impl Head {
    /// The name of the model that answered, as far as logs and metrics may have it: one that the table does not have is told
    /// by its server, until the provider answers to it.
    pub fn told_model(&self) -> Option<&str> {
        let model = self.answered_by.as_ref()?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@+".contains(&byte);
        let is_known = self.outcome == Outcome::Ok && model.name.bytes().all(is_name);
        Some(model.server.as_deref().filter(|_| !is_known).unwrap_or(&model.name))
    }
}

#[cfg(test)]
mod tests {
    use crate::desk::fake;

    use super::*;

    #[test]
    fn a_model_that_the_table_does_not_have_is_told_once_its_provider_knows_it() {
        let mut head = fake::exchange("a", 1).head;
        assert_eq!(head.told_model(), Some("main"));
        let model = head.answered_by.as_mut().unwrap();
        (model.name, model.server) = ("gpt-4o".to_owned(), Some("openai".to_owned()));
        assert_eq!(head.told_model(), Some("gpt-4o"));
        head.outcome = Outcome::UpstreamError;
        assert_eq!(head.told_model(), Some("openai"));
        head.outcome = Outcome::Ok;
        head.answered_by.as_mut().unwrap().name = "a word\nof the client's".to_owned();
        assert_eq!(head.told_model(), Some("openai"));
        head.answered_by = None;
        assert_eq!(head.told_model(), None);
    }
}
