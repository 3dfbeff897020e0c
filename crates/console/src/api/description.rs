//! `openapi.json` follows from the endpoints. `LARDER_BLESS=1` writes it anew; read the diff.

use std::io::{Result, Write};
use std::path::Path;
use std::sync::Arc;

use axum::handler::Handler;
use larder_gateway::app::App;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use utoipa::__dev::{SchemaReferences, Tags};
use utoipa::OpenApi as _;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{
    Components, Content, HttpMethod, OpenApi, Ref, RefOr, Response, ResponseBuilder, Schema,
};

use super::endpoint::Endpoints;

/// What holds for all endpoints.
#[derive(utoipa::OpenApi)]
#[openapi(info(
    title = "Larder",
    description = "What the gateway sends to models, why, and what it costs. Every answer concerns the user whose key \
        asks: `authorization: Bearer lk-…` or `x-api-key`. No key is needed from this machine until the first one is \
        created. What belongs to all users (`/metrics`, the settings) needs an operator key.",
    license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
))]
struct Description;

/// Paths have no `*`, which only the router knows.
impl Endpoints for OpenApi {
    fn add<P, H, T>(&mut self, _: H)
    where
        P: utoipa::Path + SchemaReferences + Tags<'static>,
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let mut operation = P::operation();
        operation.tags.get_or_insert_default().extend(P::tags().into_iter().map(str::to_owned));
        if can_be_malformed(&operation) {
            operation.responses.responses.entry("400".to_owned()).or_insert_with(|| malformed().into());
        }
        // Names of handlers are of their module.
        operation.operation_id = P::methods().first().map(|method| id(method, &P::path()));
        self.paths.add_path_operation(P::path().replace("{*", "{"), P::methods(), operation);
        let mut schemas = Vec::new();
        P::schemas(&mut schemas);
        let known = &mut self.components.get_or_insert_with(Components::new).schemas;
        for (name, schema) in schemas {
            let entry = known.entry(name);
            let name = entry.key().clone();
            assert!(*entry.or_insert_with(|| schema.clone()) == schema, "two types are named {name}");
        }
    }
}

/// Whether an operation reads a body, a query or a number of the address.
fn can_be_malformed(operation: &Operation) -> bool {
    let is_text = |schema: &Option<RefOr<Schema>>| matches!(schema, Some(RefOr::T(Schema::Object(object))) if object.schema_type == Type::String.into());
    let is_read = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(one) => match one.parameter_in {
            ParameterIn::Query => true,
            ParameterIn::Path => !is_text(&one.schema),
            _ => false,
        },
        RefOr::Ref(_) => false,
    };
    operation.request_body.is_some() || operation.parameters.iter().flatten().any(is_read)
}

fn malformed() -> Response {
    ResponseBuilder::new()
        .description("The address, the query or the body is not of this form")
        .content("application/problem+json", Content::new(Some(Ref::from_schema_name("Problem"))))
        .build()
}

/// `get_turns_number` for `GET /api/v1/turns/{number}`.
fn id(method: &HttpMethod, path: &str) -> String {
    let method = serde_json::to_value(method).unwrap();
    let parts = path.split(|char: char| !char.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let parts = parts.filter(|part| !matches!(*part, "api" | "v1"));
    method.as_str().into_iter().chain(parts).collect::<Vec<_>>().join("_")
}

/// The description of every endpoint.
pub(super) fn description() -> OpenApi {
    let mut description = Description::openapi();
    super::endpoints(&mut description);
    description
}

/// Compact, with a line for each field of the outer three objects: each operation and each schema. Holds how many
/// objects are open.
struct Lines(usize);

impl Formatter for Lines {
    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> Result<()> {
        self.0 += 1;
        to.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> Result<()> {
        self.0 -= 1;
        to.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> Result<()> {
        to.write_all(if first { b"" } else { b"," })?;
        to.write_all(if self.0 > 3 { b"" } else { b"\n" })
    }
}

#[test]
fn the_description_is_that_of_the_endpoints() {
    let mut expected = Vec::new();
    description().serialize(&mut Serializer::with_formatter(&mut expected, Lines(0))).unwrap();
    expected.push(b'\n');
    let expected = String::from_utf8(expected).unwrap();
    if std::env::var_os("LARDER_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
        std::fs::write(path, expected).unwrap();
        return;
    }
    assert!(
        super::OPENAPI == expected,
        "crates/console/openapi.json is out of date; LARDER_BLESS=1 writes it anew"
    );
}
