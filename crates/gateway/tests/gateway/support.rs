//! A gateway in this process, in front of a stub that plays the provider.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_engine::Engine;
use larder_engine::config::Config;
use larder_engine::project::Project;
use larder_gateway::app::{App, Loaded};
use larder_gateway::reload::WatchedFiles;
use larder_gateway::serve;
use larder_models::chat::{ChatModel, EmbeddingModel, ModelError};
use larder_models::connect::{EmbeddedModels, Models};
use larder_models::table::ModelSpec;
use larder_proxy::record::RequestRecord;
use larder_store::{Clock, ExchangeFilter, Store, StoreOptions, Timestamp, UserStore};
use larder_testkit::scripted::ScriptedModel;
use larder_testkit::stub::{Answer, Seen, StubServer};
use larder_text::tokens::Counter;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A gateway with its folder and its provider.
pub struct Gateway {
    pub provider: StubServer,
    pub app: Arc<App>,
    pub dir: Arc<TempDir>,
    address: SocketAddr,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<usize>,
}

impl Gateway {
    /// A gateway whose provider gives `answers` in order.
    pub async fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(StubServer::start(answers).await, "").await
    }

    /// A gateway in front of `provider`, with more settings.
    pub async fn with(provider: StubServer, settings: &str) -> Self {
        Self::with_store(provider, settings, StoreOptions::default()).await
    }

    /// The same over a store of other patience or time.
    pub async fn with_store(provider: StubServer, settings: &str, options: StoreOptions) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        write_settings(dir.path(), &provider, settings);
        Self::over(dir, provider, options).await
    }

    /// A gateway over a folder that is there already.
    pub async fn on(dir: Arc<TempDir>, provider: StubServer) -> Self {
        Self::over(dir, provider, StoreOptions::default()).await
    }

    async fn over(dir: Arc<TempDir>, provider: StubServer, options: StoreOptions) -> Self {
        let store = Store::open(&dir.path().join("home"), options).unwrap();
        let watched = WatchedFiles::new(vec![dir.path().join("larder.toml"), dir.path().join("recipes")]);
        let (folder, loaded) = (dir.path().to_owned(), store.clone());
        let load = move || load(&folder, &loaded);
        let app = App::new(store, Box::new(load)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, asked) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve::run(
            Arc::clone(&app),
            larder_console::routes(&app),
            listener,
            watched,
            async {
                let _ = asked.await;
            },
        ));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        Self { provider, app, dir, address, client, stop: Some(stop), serving }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A request with a body as text.
    pub fn post(&self, path: &str, body: impl Into<String>) -> RequestBuilder {
        let request = self.client.post(self.url(path)).header("content-type", "application/json");
        request.body(body.into())
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path))
    }

    pub async fn chat(&self, body: &Value) -> Response {
        self.post("/v1/chat/completions", body.to_string()).send().await.unwrap()
    }

    pub async fn messages(&self, body: &Value) -> Response {
        let request = self.post("/v1/messages", body.to_string());
        request.header("anthropic-version", "2023-06-01").send().await.unwrap()
    }

    /// What the provider was sent, one after the other.
    pub fn seen(&self) -> Vec<Seen> {
        self.provider.seen()
    }

    /// The body of the last request that the provider got.
    pub fn last_sent(&self) -> Value {
        self.seen().last().unwrap().json()
    }

    pub fn store(&self) -> UserStore {
        self.app.store.user("local").unwrap()
    }

    /// Begins to stop.
    pub fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops, and gives everything that was recorded, the oldest first, with the number of connections that were cut.
    pub async fn stop(mut self) -> (Vec<RequestRecord>, usize) {
        drop(self.stop.take());
        let store = self.store();
        let cut = self.serving.await.unwrap();
        let records = store.exchanges().list(&ExchangeFilter::default()).unwrap();
        let exchanges = records.iter().rev().map(|json| serde_json::from_str(json).unwrap());
        (exchanges.collect(), cut)
    }

    /// Stops, and starts another process's worth of gateway over the same folder and provider.
    pub async fn restart(mut self) -> Self {
        drop(self.stop.take());
        self.serving.await.unwrap();
        Self::on(self.dir, self.provider).await
    }
}

/// A clock that stands wherever a test puts it.
#[derive(Clone)]
pub struct SetClock(Arc<AtomicU64>);

impl SetClock {
    /// A clock that stands at a moment such as `2026-11-21T12:00:00Z`.
    pub fn at(time: &str) -> Self {
        let clock = Self(Arc::default());
        clock.set(time);
        clock
    }

    pub fn set(&self, time: &str) {
        self.0.store(time.parse::<Timestamp>().unwrap().as_millis(), Ordering::SeqCst);
    }

    /// A store that goes by this clock.
    pub fn store(&self) -> StoreOptions {
        StoreOptions { clock: Arc::new(self.clone()), ..StoreOptions::default() }
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Opens models that panic when they are asked. Those called `absent` have no weights.
struct Panicking;

impl EmbeddedModels for Panicking {
    fn has_weights(&self, spec: &ModelSpec) -> bool {
        spec.id != "absent"
    }

    fn chat(&self, _: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
        Ok(Arc::new(ScriptedModel::default()))
    }

    fn embedding(&self, spec: &ModelSpec) -> Result<Arc<dyn EmbeddingModel>, ModelError> {
        Err(ModelError::NotConfigured { provider: spec.id.clone(), detail: "no vectors".into() })
    }
}

/// Reads settings and recipes of a folder, as the command does.
fn load(folder: &Path, store: &Store) -> Result<Loaded, String> {
    let none = |_: &str| None;
    let config = Config::load(Some(folder), None, &none).map_err(|error| error.to_string())?;
    let counter = Counter::cl100k();
    let project = match folder.join("recipes").is_dir() {
        true => Project::open_with(folder, &counter, config.default_context_budget())
            .map_err(|error| error.to_string())?,
        false => Project::builtin(&counter),
    };
    let errors: Vec<_> =
        project.check().diagnostics.iter().filter(|found| found.is_error()).cloned().collect();
    if !errors.is_empty() {
        return Err(project.render(&errors));
    }
    let models = Models::new(config.models().clone(), folder, &none)
        .with_upstreams(&config.gateway().upstreams(), &none)
        .with_embedded(Arc::new(Panicking));
    let user = store.user("local").map_err(|error| error.to_string())?;
    let engine = Engine::new(project, models, user, config.policy(), Box::new(|_| None));
    Ok(Loaded { config, engine: engine.map_err(|error| error.to_string())? })
}

/// Writes larder.toml: the models `mini` (OpenAI's formats) and `claude` (Anthropic's) are played by `provider`.
pub fn write_settings(folder: &Path, provider: &StubServer, settings: &str) {
    let address = provider.address();
    let text = format!(
        r#"
[models.layers]
VOICE = "mini"
MIND = "mini"

[models.mini]
provider = "openai"
base_url = "{address}/v1"
id = "gpt-4o-mini"
window = 16000
max_output = 1000
retries = 0
prices = {{ input = 1, cached_input = 0.1, output = 2 }}

[models.claude]
provider = "anthropic"
base_url = "{address}"
id = "claude-sonnet-4-5"
window = 16000
max_output = 1000
retries = 0

[models.vectors]
provider = "openai"
base_url = "{address}/v1"
id = "text-embedding-3-small"
window = 8000
dimensions = 3
capabilities = ["embedding"]
prices = {{ input = 1 }}

{settings}
"#
    );
    std::fs::write(folder.join("larder.toml"), text).unwrap();
}

pub fn write(path: PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A reply of chat completions.
pub fn said(text: &str) -> Answer {
    Answer::json(200, &completion(json!({"role": "assistant", "content": text}), "stop"))
}

pub fn completion(message: Value, finish: &str) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
}

/// A reply of Anthropic's messages.
pub fn message(content: Value, stop: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content,
        "stop_reason": stop, "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 10}})
}

/// Events of chat completions, one chunk for each delta, then the end.
pub fn chat_events(deltas: &[Value], finish: &str) -> String {
    let chunk = |delta: &Value, finish: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let mut events: String = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    events += &chunk(&json!({}), json!(finish));
    events + "data: [DONE]\n\n"
}

/// A history in which a tool has said `result`.
pub fn after_tool(result: &str) -> Value {
    json!({"model": "mini", "messages": [
        {"role": "system", "content": "You find faults."},
        {"role": "user", "content": "Which request failed?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read_log", "arguments": "{\"path\": \"a.log\"}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": result}],
        "tools": [{"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}]})
}

/// A log whose lines are all different, far larger than a tool's result may be.
pub fn long_log() -> String {
    (1..=400)
        .map(|line| {
            let level = if line == 321 { "ERROR" } else { "INFO" };
            format!(
                "2026-11-22 10:{:02}:{:02} {level} request {line} took {} ms\n",
                line / 60,
                line % 60,
                line * 7 % 97
            )
        })
        .collect()
}

/// The pointers in a text that this gateway's user owns.
pub fn pointers(gateway: &Gateway, text: &str) -> Vec<larder_text::pointer::Pointer> {
    gateway.store().key().find_in(text).into_iter().map(|(_, pointer)| pointer).collect()
}
