//! From a dialect to its format. The one place that names every format; no module imports it, since what it adds are
//! methods of [`ApiDialect`].

use larder_text::provider::Provider;
use serde_json::Value as Json;

use super::dialect::ApiDialect;
use super::format::WireFormat;
use super::model_path::{ModelPath, PREFIX};
use super::{chat, converse, messages, responses};

impl ApiDialect {
    /// The dialect of a client, by what it asks for and the names of its headers, in lower case: of any request, whether
    /// or not its route is known. Clients that show neither a header nor a path of a dialect are answered as OpenAI's.
    pub fn from_request(path: &str, has_header: impl Fn(&str) -> bool) -> Self {
        let by_header = |dialect: &Self| dialect.format().client_header().is_some_and(&has_header);
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        let by_path =
            |dialect: &Self| dialect.path().is_some_and(|own| path.strip_prefix(own).is_some_and(is_below));
        // What is asked of Bedrock in a body of another maker still gets Bedrock's errors.
        let by_model = ModelPath::read(path).map(|path| path.dialect);
        let found = by_model.or_else(|| path.starts_with(PREFIX).then_some(Self::Converse));
        let found = found.or_else(|| Self::ALL.into_iter().find(by_header));
        let found = found.or_else(|| Self::ALL.into_iter().find(by_path));
        found.unwrap_or(Self::Chat)
    }

    /// What the dialect has of its own.
    pub(super) fn format(self) -> &'static dyn WireFormat {
        match self {
            Self::Chat => &chat::ChatFormat,
            Self::Responses => &responses::ResponsesFormat,
            Self::Messages => &messages::MessagesFormat { invokes: false },
            Self::Converse => &converse::ConverseFormat,
            Self::Invoke => &messages::MessagesFormat { invokes: true },
        }
    }

    /// The name in records, metrics and pages.
    pub fn as_str(self) -> &'static str {
        self.format().name()
    }

    /// The path to which requests are posted, unless that names the model.
    pub fn path(self) -> Option<&'static str> {
        self.format().path()
    }

    /// The member of a request that defines tools; the argument is a list of them.
    pub fn tools_member(self, tools: &str) -> String {
        self.format().tools_member(tools)
    }

    /// The content type of its streams.
    pub fn stream_type(self) -> &'static str {
        self.format().framing().content_type()
    }

    /// The provider whose servers understand it.
    pub fn provider(self) -> Provider {
        self.format().provider()
    }

    /// A model in a list of models.
    pub fn listed_model(self, id: &str) -> Json {
        self.format().listed_model(id)
    }

    /// Whether its clients ask for lists of models by the page.
    pub fn pages_models(self) -> bool {
        self.format().pages_models()
    }

    /// A list of models, ours and the provider's, or a page of it.
    pub fn model_list(self, models: Vec<Json>, has_more: bool) -> Json {
        self.format().model_list(models, has_more)
    }

    /// Whether the request may have a history in which the model has answered. Guessed by its bytes, before it is read; no
    /// such request is missed but for odd escapes.
    pub fn may_have_history(self, body: &str) -> bool {
        self.format().answer_marks().iter().any(|mark| body.contains(mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_its_headers_before_its_path() {
        let dialect = |path: &str, header: &str| ApiDialect::from_request(path, |name| name == header);
        for each in ApiDialect::ALL {
            if let Some(path) = each.path() {
                assert_eq!(dialect(path, ""), each);
                assert_eq!(dialect(&format!("{path}/x"), ""), each);
            }
            let header = each.format().client_header();
            assert!(header.is_none_or(|header| dialect("/v1/models", header) == each));
        }
        assert_eq!(dialect("/v1/chat/completions", "anthropic-version"), ApiDialect::Messages);
        assert_eq!(dialect("/model/m/converse", "anthropic-version"), ApiDialect::Converse);
        assert_eq!(dialect("/model/anthropic.m/invoke", ""), ApiDialect::Invoke);
        assert_eq!(dialect("/model/titan/invoke", "authorization"), ApiDialect::Converse);
        for path in ["/v1/models", "/v1/messagesx", ""] {
            assert_eq!(dialect(path, "authorization"), ApiDialect::Chat, "{path}");
        }
    }

    #[test]
    fn the_list_of_models_has_the_shape_of_its_clients() {
        let list = |dialect: ApiDialect, ids: &[&str]| {
            dialect.model_list(ids.iter().map(|id| dialect.listed_model(id)).collect(), false)
        };
        for dialect in ApiDialect::ALL {
            let models = list(dialect, &["a", "b"]);
            assert_eq!((&models["data"][0]["id"], &models["data"][1]["id"]), (&"a".into(), &"b".into()));
        }
        assert_eq!(list(ApiDialect::Responses, &["a"]), list(ApiDialect::Chat, &["a"]));
        let models = list(ApiDialect::Messages, &["a", "b"]);
        assert_eq!((&models["first_id"], &models["last_id"]), (&"a".into(), &"b".into()));
        assert_eq!(list(ApiDialect::Messages, &[])["first_id"], Json::Null);
    }
}
