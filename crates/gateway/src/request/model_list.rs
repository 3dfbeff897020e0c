//! Lists of models: Larder's own, then those of the server for other models. Knows how lists are paged; forwards nothing
//! else.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, Request, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use larder_conversation::catalog::LoadedType;
use larder_engine::blocking;
use larder_proxy::record::Endpoint;
use larder_proxy::wire::ApiDialect;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;

use crate::app::{App, Snapshot};
use crate::auth::Caller;
use crate::error::RequestError;
use crate::request::{CONVERSATION, RECIPE, dialect, outgoing, passthrough, patience, recipes, reply};

/// Bytes of a list of models.
const MAX_REPLY_BYTES: usize = 64 << 20;
/// The models that a server is asked for at once where lists are paged: the most that Anthropic's takes.
const PAGE: usize = 1_000;
/// The pages that a server is asked for.
const MAX_PAGES: usize = 16;

type AppState = State<Arc<App>>;

/// Which part of a paged list a client asks for.
#[derive(Debug, Default, Deserialize)]
struct ListPage {
    after_id: Option<String>,
    before_id: Option<String>,
    limit: Option<usize>,
}

impl ListPage {
    /// The models of this page, and whether there are more in its direction. A page without a limit has all of them.
    fn of(&self, mut models: Vec<Value>) -> (Vec<Value>, bool) {
        let place = |id: &String| models.iter().position(|model| id_of(model) == Some(id));
        let limit = self.limit.unwrap_or(usize::MAX).max(1);
        if let Some(before) = &self.before_id {
            // Nothing is before a model that is not there.
            models.truncate(place(before).unwrap_or(0));
            let left = models.len().saturating_sub(limit);
            return (models.split_off(left), left > 0);
        }
        let start = self.after_id.as_ref().map_or(0, |after| place(after).map_or(models.len(), |at| at + 1));
        let mut page = models.split_off(start);
        let has_more = page.len() > limit;
        page.truncate(limit);
        (page, has_more)
    }
}

/// `GET /v1/models`: recipes and the table's models, followed by those of the server for other models; nothing that the
/// caller could not ask for.
pub async fn models(
    State(app): AppState,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let (current, dialect) = (app.current(), dialect(parts.uri.path(), &parts.headers));
    let mut listed = listed(&current, dialect).await;
    let theirs = theirs(&current, &parts, dialect).await;
    // The table and the server may name the same model.
    let ours: HashSet<String> = listed.iter().filter_map(id_of).map(str::to_owned).collect();
    listed.extend(theirs.into_iter().filter(|model| id_of(model).is_none_or(|id| !ours.contains(id))));
    // A budget in money admits only models with a price; what recipes call is checked when they are asked.
    let is_priced = |id: &str| {
        let route = current.routes.find(Endpoint::Generate(dialect), id, current.shared());
        id.starts_with(RECIPE)
            || id.starts_with(CONVERSATION)
            || route.is_ok_and(|route| route.prices.is_some())
    };
    if caller.limits.picos_per_day.is_some() {
        listed.retain(|entry| id_of(entry).is_some_and(is_priced));
    }
    let page = Query::<ListPage>::try_from_uri(&parts.uri).ok().filter(|_| dialect.pages_models());
    let (listed, has_more) = page.map(|Query(page)| page).unwrap_or_default().of(listed);
    axum::Json(dialect.model_list(listed, has_more)).into_response()
}

/// `GET /v1/models/{id}`: one of ours, or the answer of the server for other models.
pub async fn model(
    State(app): AppState,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let (current, dialect) = (app.current(), dialect(request.uri().path(), request.headers()));
    let is_it = |entry: &Value| id_of(entry) == Some(&id);
    match listed(&current, dialect).await.into_iter().find(is_it) {
        Some(entry) => axum::Json(entry).into_response(),
        None if current.routes.other(dialect.provider()).is_some() => {
            passthrough::pass(State(app), Extension(caller), request).await
        }
        None => reply::error(dialect, &RequestError::unknown_model(&id, dialect.provider())),
    }
}

/// What clients may name as a model.
async fn listed(current: &Arc<Snapshot>, dialect: ApiDialect) -> Vec<Value> {
    let current = Arc::clone(current);
    // Conversation types are read the first time.
    let listing = blocking::run(move || list(&current, dialect));
    listing.await.unwrap_or_default()
}

fn list(current: &Snapshot, dialect: ApiDialect) -> Vec<Value> {
    let engine = current.shared();
    let recipes = &engine.project.check().recipes;
    let is_answered = |kind: &LoadedType| {
        let recipe = engine.find(&kind.kind.recipe, None);
        recipe.is_ok_and(|recipe| recipes::has_model(recipe, &engine.models))
    };
    let types = current.types().iter().filter(|kind| is_answered(kind));
    let types = types.map(|kind| format!("{CONVERSATION}{}", kind.kind.name));
    let recipes = recipes.iter().filter(|recipe| recipes::can_be_asked(recipe, &engine.models));
    let recipes = recipes.map(|recipe| format!("{RECIPE}{}", recipe.id()));
    let models = current.routes.models().filter(|(_, spec)| spec.provider == dialect.provider());
    let names = models.map(|(name, _)| name.to_owned()).chain(recipes).chain(types);
    names.map(|name| dialect.listed_model(&name)).collect()
}

/// The models of the server for other models: none if there is no such server, or it does not list them. All pages are
/// read, so that they can be listed behind ours and paged with them.
async fn theirs(current: &Snapshot, parts: &Parts, dialect: ApiDialect) -> Vec<Value> {
    let mut all = Vec::new();
    let mut last: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let page = page_of_theirs(current, parts, dialect, last.as_deref()).await;
        let Some(mut page) = page else { break };
        let Some(Value::Array(models)) = page.get_mut("data").map(Value::take) else { break };
        let has_more = dialect.pages_models() && page.get("has_more").and_then(Value::as_bool) == Some(true);
        let next = models
            .last()
            .and_then(id_of)
            .map(str::to_owned)
            .filter(|next| has_more && last.as_ref() != Some(next));
        all.extend(models);
        if next.is_none() {
            break;
        }
        last = next;
    }
    all
}

/// One page of them, from behind the model `after`.
async fn page_of_theirs(
    current: &Snapshot,
    parts: &Parts,
    dialect: ApiDialect,
    after: Option<&str>,
) -> Option<Value> {
    let target = current.routes.other(dialect.provider())?;
    let mut outgoing = outgoing(&target, parts, Bytes::new());
    if dialect.pages_models() {
        let after = after.map(|id| format!("&after_id={}", utf8_percent_encode(id, NON_ALPHANUMERIC)));
        let query = format!("{}?limit={PAGE}{}", parts.uri.path(), after.unwrap_or_default());
        outgoing.path = target.path(&query);
    }
    let mut incoming = target.send(&outgoing, patience(&current.gateway)).await.ok()?;
    let body = incoming.body(MAX_REPLY_BYTES).await.ok().filter(|_| incoming.status.is_success())?;
    serde_json::from_slice(&body).ok()
}

fn id_of(model: &Value) -> Option<&str> {
    model.get("id").and_then(Value::as_str)
}
