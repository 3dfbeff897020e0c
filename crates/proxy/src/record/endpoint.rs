//! The endpoint that a request addresses. Knows no HTTP.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{self, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::wire::ApiDialect;

/// The endpoint that a request addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// A reply of a model, in this dialect.
    Generate(ApiDialect),
    /// OpenAI's embeddings.
    Embeddings,
    /// Anthropic's counting of tokens.
    CountTokens,
    /// Anything else, which is forwarded unchanged.
    Passed,
}

impl Endpoint {
    /// Every endpoint, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Embeddings, Self::CountTokens, Self::Passed];
        ApiDialect::ALL.into_iter().map(Self::Generate).chain(others)
    }

    /// The word in records, metrics and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generate(dialect) => dialect.as_str(),
            Self::Embeddings => "embeddings",
            Self::CountTokens => "count_tokens",
            Self::Passed => "passed",
        }
    }

    /// The dialect of the request's body, if it has a window to decide.
    pub const fn dialect(self) -> Option<ApiDialect> {
        match self {
            Self::Generate(dialect) => Some(dialect),
            Self::CountTokens => Some(ApiDialect::Messages),
            Self::Embeddings | Self::Passed => None,
        }
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        let unknown = || {
            let names: Vec<String> = Self::all().map(|endpoint| format!("`{}`", endpoint.as_str())).collect();
            let expected = names.join(", ");
            serde::de::Error::custom(format!("unknown variant `{name}`, expected one of {expected}"))
        };
        Self::all().find(|endpoint| endpoint.as_str() == name).ok_or_else(unknown)
    }
}

impl PartialSchema for Endpoint {
    fn schema() -> RefOr<Schema> {
        let names = Self::all().map(Self::as_str);
        let object = ObjectBuilder::new().schema_type(openapi::schema::SchemaType::Type(Type::String));
        object
            .description(Some("The endpoint that a request addresses."))
            .enum_values(Some(names))
            .build()
            .into()
    }
}

impl ToSchema for Endpoint {
    /// The name in the API's description, where clients that are generated from it have it.
    fn name() -> Cow<'static, str> {
        "Wire".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_recorded_by_name() {
        let names: Vec<&str> = Endpoint::all().map(Endpoint::as_str).collect();
        assert_eq!(
            names,
            ["chat", "responses", "messages", "converse", "invoke", "embeddings", "count_tokens", "passed"]
        );
        for endpoint in Endpoint::all() {
            let text = serde_json::to_string(&endpoint).unwrap();
            assert_eq!(text, format!("{:?}", endpoint.as_str()));
            assert_eq!(serde_json::from_str::<Endpoint>(&text).unwrap(), endpoint);
        }
        assert!(serde_json::from_str::<Endpoint>("\"telegram\"").is_err());
    }
}
