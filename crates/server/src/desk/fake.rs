//! A desk with a store in a temporary folder, for tests of pages and API.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::{Extension, Router};
use futures::future::BoxFuture;
use larder_agent::turn::Turns;
use larder_core::pack::Rendition;
use larder_engine::config::{Config, Setting};
use larder_engine::project::Project;
use larder_engine::settings::ToolSettings;
use larder_engine::settings::TurnLimits;
use larder_engine::{Engine, Policy};
use larder_models::chat::ChatModel;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_models::table::Provider;
use larder_store::{
    DocumentPlace, Documents, KeyLimits, Store, StoreError, StoreOptions, Timestamp, UserDocuments, UserStore,
};
use larder_testkit::layers::every_layer;
use larder_testkit::scripted::{Act, ScriptedModel};
use larder_text::tokens::Counter;
use larder_tools::{NoOne, ToolBox};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{Desk, ModelBudget};
use crate::api::Problem;
use crate::auth::{Auth, Caller};
use crate::exchange::{
    AnsweredBy, Bill, Compaction, Decision, DecisionStatus, Exchange, Head, Outcome, Rehydration, Shape,
    Times, Tokens, WindowPart, Wire,
};
use crate::limits::Places;
use crate::telemetry::Telemetry;
use crate::turns::Courses;

/// 2026-11-22, 08:00.
pub const NOW: Timestamp = Timestamp::from_millis(1_795_334_400_000);

pub struct Fake {
    telemetry: Telemetry,
    auth: Auth,
    project: Arc<Project>,
    pub store: Store,
    /// What the model table is called in budgets and what inspecting answers.
    pub name: String,
    pub documents: Documents,
    pub courses: Arc<Courses>,
    pub stop: CancellationToken,
    /// What every layer says in turns; none fails.
    pub model: Arc<ScriptedModel>,
    places: Places,
    _dir: tempfile::TempDir,
}

impl Fake {
    pub fn new() -> Self {
        Self::called("main")
    }

    pub fn called(name: &str) -> Self {
        Self::scripted(name, [])
    }

    /// As [`Fake::called`], with a model that performs `acts` in turns.
    pub fn scripted(name: &str, acts: impl IntoIterator<Item = Act>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
        let documents =
            Documents::open(&store, &DocumentPlace::Folder(dir.path().join("documents"))).unwrap();
        let stop = CancellationToken::new();
        Self {
            documents,
            courses: Arc::new(Courses::new(stop.clone())),
            stop,
            model: Arc::new(ScriptedModel::new(acts)),
            places: Places::new(4, 1 << 20),
            telemetry: Telemetry::new(NOW, None),
            auth: Auth::new(store.clone()).unwrap(),
            project: Arc::new(Project::builtin(&Counter::cl100k())),
            store,
            name: name.to_owned(),
            _dir: dir,
        }
    }

    pub fn vault(&self, user: &str) -> UserDocuments {
        self.documents.user(user).unwrap()
    }

    pub fn user(&self, user: &str) -> UserStore {
        self.store.user(user).unwrap()
    }

    /// Records a request as the gateway does: live and in the store.
    pub fn record(&self, exchange: &Exchange) {
        self.telemetry.record(exchange);
        let json = serde_json::to_string(exchange).unwrap();
        let row = exchange.to_row(&json);
        self.store.record_exchanges(&[(&self.user(&exchange.head.user), row)]).unwrap();
    }
}

impl Desk for Fake {
    fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    fn auth(&self) -> &Auth {
        &self.auth
    }

    fn project(&self) -> Arc<Project> {
        Arc::clone(&self.project)
    }

    fn settings(&self) -> Vec<Setting> {
        Config::builtin().settings()
    }

    fn refused(&self) -> Option<String> {
        Some(self.name.clone())
    }

    fn budgets(&self) -> Vec<ModelBudget> {
        vec![ModelBudget {
            name: self.name.clone(),
            id: "model-1".to_owned(),
            window: 128_000,
            budget: 100_000,
            reserve: 2_000,
            floor: 6_400,
            trace_threshold: 80_000,
            output: 26_000,
        }]
    }

    fn max_body_bytes(&self) -> usize {
        1 << 20
    }

    fn inspect(&self, store: &UserStore, wire: Wire, body: &str) -> Result<Exchange, String> {
        if !body.starts_with('{') {
            return Err(format!("line 1: expected {{, found {body}"));
        }
        let mut exchange = exchange(store.user(), 9);
        exchange.head.wire = wire;
        Ok(exchange)
    }

    fn recorded(&self, _: &str, _: &str) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn documents(&self, store: &UserStore) -> Result<UserDocuments, StoreError> {
        self.documents.user(store.user())
    }

    fn turns(&self, caller: &Caller) -> Result<Turns, Problem> {
        let model = Arc::clone(&self.model) as Arc<dyn ChatModel>;
        let models = every_layer(model, self._dir.path(), 32_000, 20_000);
        let project = Project::builtin(&Counter::cl100k());
        let store = caller.store.clone();
        Ok(Turns {
            engine: Engine::new(project, models, store, Policy::default(), Box::new(|_| None)).unwrap(),
            documents: self.documents.user(caller.store.user())?,
            tools: Arc::new(ToolBox::new(&ToolSettings::default()).unwrap()),
            limits: TurnLimits::default(),
            embedding: None,
            confirm: Arc::new(NoOne),
        })
    }

    fn courses(&self) -> &Arc<Courses> {
        &self.courses
    }

    fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.take()
    }
}

/// One who was let in without a key.
pub fn caller(store: UserStore) -> Caller {
    Caller { store, key: None, limits: KeyLimits::default(), operator: true }
}

/// Asks `router` as `user` with a key that is no operator's.
pub async fn ask_with_key(fake: &Fake, router: &Router, user: &str, request: Request<Body>) -> Response<Body> {
    let caller = Caller { operator: false, ..caller(fake.user(user)) };
    router.clone().layer(Extension(caller)).oneshot(request).await.unwrap()
}

/// Asks `router` as `user`.
pub async fn ask(fake: &Fake, router: &Router, user: &str, request: Request<Body>) -> Response<Body> {
    let router = router.clone().layer(Extension(caller(fake.user(user))));
    router.oneshot(request).await.unwrap()
}

pub fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

pub fn post(path: &str, kind: &str, body: &str) -> Request<Body> {
    Request::post(path).header("content-type", kind).body(Body::from(body.to_owned())).unwrap()
}

pub async fn read(response: Response<Body>) -> (StatusCode, HeaderMap, String) {
    let (head, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    (head.status, head.headers, String::from_utf8(bytes.to_vec()).unwrap())
}

/// A part of a window.
pub fn part(slot: &str, label: &str, rendition: Rendition, tokens: u64, original_tokens: u64) -> WindowPart {
    WindowPart {
        slot: slot.to_owned(),
        role: "tool".to_owned(),
        label: label.to_owned(),
        rendition,
        tokens,
        original_tokens,
        reason: "over entry cap".to_owned(),
        pointer: None,
        message: Some(0),
        epoch: 0,
        items: 1,
    }
}

/// The `number`th request of a user: 2,340 tokens came, 1,440 were sent.
pub fn exchange(user: &str, number: u64) -> Exchange {
    let head = Head {
        id: format!("019aa5f0-3c2b-7d4e-8f10-{number:012}"),
        time: Timestamp::from_millis(NOW.as_millis() + number * 1_000),
        user: user.to_owned(),
        key: None,
        session: Some("session-1".to_owned()),
        branch: None,
        traceparent: None,
        wire: Wire::Chat,
        route: None,
        model: "model-1".to_owned(),
        answered_by: Some(AnsweredBy {
            name: "main".to_owned(),
            id: "model-1".to_owned(),
            server: None,
            provider: Provider::OpenAi,
        }),
        recipe: None,
        run: None,
        stream: true,
        outcome: Outcome::Ok,
        status: 200,
        error: None,
        decision: Some(Decision {
            status: DecisionStatus::NeedsSummary,
            reason: "a tool result is over its cap".to_owned(),
            deficit: 0,
            emergency_floor: 100,
            largest: Vec::new(),
            dry_run: false,
        }),
        round_trips: None,
        tokens: Tokens {
            system: 100,
            tools: 60,
            messages: 1_280,
            before: 2_340,
            after: 1_440,
            budget: 2_000,
            reserve: 200,
            output: 1_000,
        },
        usage: Some(Usage { input: 1_450, cached_input: 1_000, cache_write: 0, output: 50, reasoning: 0 }),
        usage_estimated: false,
        bill: Some(Bill { cost: Usd::from_picos(2_000_000_000), without: Usd::from_picos(3_500_000_000) }),
        violations: 0,
        times: Times { total_us: 900_000, upstream_us: 898_000, policy_us: 1_500 },
        shape: Shape::default(),
    };
    let mut second = part("messages", "search", Rendition::Pointer, 40, 300);
    let pointer: larder_text::pointer::Pointer = "lp1-0123456789abc-0a1b2c".parse().unwrap();
    second.pointer = Some(pointer.clone());
    second.epoch = 1;
    let mut first = part("messages", "read_file", Rendition::Condensed, 200, 800);
    first.pointer = Some(pointer.clone());
    let window = vec![
        part("system", "system prompt", Rendition::Whole, 100, 100),
        first,
        second,
        part("messages", "list_files", Rendition::Absent, 0, 500),
        part("messages", "user", Rendition::Whole, 1_000, 1_000),
    ];
    let compactions = vec![Compaction {
        epoch: 1,
        message: 2,
        label: "search".to_owned(),
        from: Rendition::Whole,
        to: Rendition::Pointer,
        before: 300,
        after: 40,
        reason: "slot over cap".to_owned(),
        pointer: Some(pointer),
        content_type: "generic".to_owned(),
    }];
    let rehydrations = vec![Rehydration {
        pointer: "lp1-0123456789abc-0a1b2c".to_owned(),
        found: true,
        bytes: 120,
        tokens: 30,
    }];
    Exchange::new(head, window, compactions, rehydrations)
}
