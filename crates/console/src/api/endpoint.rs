//! How modules list their endpoints: once, for the router and for the description. Only tests make the description, so
//! that no program has the code for it.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};
use larder_gateway::app::App;
use utoipa::__dev::{SchemaReferences, Tags};
use utoipa::openapi::HttpMethod;

/// What takes endpoints.
pub(super) trait Endpoints {
    /// Takes the endpoint with this description and handler.
    fn add<P, H, T>(&mut self, handler: H)
    where
        P: utoipa::Path + SchemaReferences + Tags<'static>,
        H: Handler<T, Arc<App>>,
        T: 'static;
}

/// Adds handlers, each with what `utoipa::path` describes of it.
macro_rules! routes {
    ($endpoints:expr, $($handler:ident),+) => {
        pastey::paste! { $($endpoints.add::<[<__path_ $handler>], _, _>($handler);)+ }
    };
}
pub(super) use routes;

impl Endpoints for Router<Arc<App>> {
    fn add<P, H, T>(&mut self, handler: H)
    where
        P: utoipa::Path + SchemaReferences + Tags<'static>,
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let methods = P::methods()
            .into_iter()
            .fold(MethodRouter::new(), |router, method| router.on(filter(&method), handler.clone()));
        *self = std::mem::take(self).route(&P::path(), methods);
    }
}

fn filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Trace => MethodFilter::TRACE,
    }
}
