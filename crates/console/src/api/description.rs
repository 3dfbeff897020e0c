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
use utoipa::openapi::{Components, OpenApi};

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
        self.paths.add_path_operation(P::path().replace("{*", "{"), P::methods(), operation);
        let mut schemas = Vec::new();
        P::schemas(&mut schemas);
        let known = &mut self.components.get_or_insert_with(Components::new).schemas;
        for (name, schema) in schemas {
            known.entry(name).or_insert(schema);
        }
    }
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
