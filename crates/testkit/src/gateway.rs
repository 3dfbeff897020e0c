//! The state of a gateway over a store in a temporary folder, with a scripted model behind every layer; and requests
//! to its routers as a given user.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::{Extension, Router};
use larder_engine::config::Config;
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_gateway::app::{App, Loaded};
use larder_gateway::auth::Caller;
use larder_gateway::recorder::row;
use larder_models::chat::ChatModel;
use larder_proxy::record::RequestRecord;
use larder_store::{KeyLimits, Store, StoreOptions, UserDocuments, UserStore};
use larder_text::tokens::Counter;
use tower::ServiceExt;

use crate::layers::every_layer_and;
use crate::scripted::{Act, ScriptedModel};

/// Few places, small bodies, and one model that requests may name.
const SETTINGS: &str = "
[gateway]
max_requests = 4
max_body_bytes = 1048576

[policy]
response_reserve = 2000
prompt_budget_override = 100000
";

/// The state of a gateway that is not served.
pub struct TestApp {
    /// The state itself.
    pub app: Arc<App>,
    /// The model of every layer.
    pub model: Arc<ScriptedModel>,
    _dir: tempfile::TempDir,
}

impl Deref for TestApp {
    type Target = Arc<App>;

    fn deref(&self) -> &Arc<App> {
        &self.app
    }
}

impl Default for TestApp {
    fn default() -> Self {
        Self::scripted([])
    }
}

impl TestApp {
    /// A gateway whose model has an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// A gateway whose model performs `acts` in order.
    pub fn scripted(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::with("model-1", None, acts)
    }

    /// A gateway for a project in this folder, whose model performs `acts` in order.
    pub fn of_project(project: &Path, acts: impl IntoIterator<Item = Act>) -> Self {
        Self::with("model-1", Some(project), acts)
    }

    /// A gateway that serves a model with this id, and whose last reload was refused with the same words.
    pub fn refusing(words: &str) -> Self {
        Self::with(words, None, [])
    }

    fn with(id: &str, project: Option<&Path>, acts: impl IntoIterator<Item = Act>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let store = Store::open(&home, StoreOptions::default()).unwrap();
        let model = Arc::new(ScriptedModel::new(acts));
        std::fs::write(dir.path().join("larder.toml"), SETTINGS).unwrap();
        let main = format!(
            "
[models.main]
provider = \"anthropic\"
base_url = \"http://127.0.0.1:9\"
id = {id:?}
window = 128000
max_output = 26000
"
        );
        let refuses = Arc::new(AtomicBool::new(false));
        let load = {
            let (folder, model, store) = (dir.path().to_owned(), Arc::clone(&model), store.clone());
            let (refuses, words) = (Arc::clone(&refuses), id.to_owned());
            let root = project.map(Path::to_owned);
            move || {
                if refuses.load(Ordering::Relaxed) {
                    return Err(words.clone());
                }
                let config = Config::load(Some(&folder), Some(&home), &|_| None).unwrap();
                let model = Arc::clone(&model) as Arc<dyn ChatModel>;
                let models = every_layer_and(model, &main, &folder, 32_000, 20_000);
                let counter = Counter::cl100k();
                let project = root.as_ref().map(|root| Project::open(root, &counter).unwrap());
                let project = project.unwrap_or_else(|| Project::builtin(&counter));
                let user = store.user("local").unwrap();
                let engine =
                    Engine::new(project, models, user, RunPolicy::default(), Box::new(|_| None)).unwrap();
                Ok(Loaded { config, engine })
            }
        };
        let app = App::new(store, Box::new(load)).unwrap();
        refuses.store(true, Ordering::Relaxed);
        if id != "model-1" {
            app.reload();
        }
        Self { app, model, _dir: dir }
    }

    /// The documents of a user.
    pub fn vault(&self, user: &str) -> UserDocuments {
        self.documents.user(user).unwrap()
    }

    /// The store of a user.
    pub fn user(&self, user: &str) -> UserStore {
        self.store.user(user).unwrap()
    }

    /// Records a request as the gateway does: live and in the store.
    pub fn record(&self, exchange: &RequestRecord) {
        self.telemetry.record(exchange);
        let json = serde_json::to_string(exchange).unwrap();
        self.store.record_exchanges(&[(&self.user(&exchange.summary.user), row(exchange, &json))]).unwrap();
    }
}

/// A caller authenticated without a key.
pub fn caller(store: UserStore) -> Caller {
    Caller { store, key: None, limits: KeyLimits::default(), operator: true }
}

/// Asks `router` as `user` with a key that is not an operator's.
pub async fn ask_with_key(
    app: &TestApp,
    router: &Router,
    user: &str,
    request: Request<Body>,
) -> Response<Body> {
    let caller = Caller { operator: false, ..caller(app.user(user)) };
    router.clone().layer(Extension(caller)).oneshot(request).await.unwrap()
}

/// Asks `router` as `user`.
pub async fn ask(app: &TestApp, router: &Router, user: &str, request: Request<Body>) -> Response<Body> {
    let router = router.clone().layer(Extension(caller(app.user(user))));
    router.oneshot(request).await.unwrap()
}

/// A request that reads.
pub fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// A request with a body of this content type.
pub fn post(path: &str, kind: &str, body: &str) -> Request<Body> {
    Request::post(path).header("content-type", kind).body(Body::from(body.to_owned())).unwrap()
}

/// A response, read to its end.
pub async fn read(response: Response<Body>) -> (StatusCode, HeaderMap, String) {
    let (head, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    (head.status, head.headers, String::from_utf8(bytes.to_vec()).unwrap())
}
