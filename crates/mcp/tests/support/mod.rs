//! A store, files, a scripted model, and a client that speaks the protocol line by line, so that tests see the wire.
#![allow(dead_code, reason = "each test binary uses its part of this module")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use larder_engine::project::Project;
use larder_engine::settings::{AnswerMode, AskLimits, AskSettings, Planner};
use larder_engine::{Engine, RunPolicy};
use larder_mcp::{McpCaller, Roots, serve};
use larder_models::chat::ChatModel;
use larder_store::{Store, StoreOptions};
use larder_testkit::layers::every_layer;
use larder_testkit::scripted::{Act, ScriptedModel};
use larder_text::tokens::Counter;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// A folder with `files/`, which tools may read, and a store beside it.
pub struct Shop {
    dir: TempDir,
    pub store: Store,
    pub model: Arc<ScriptedModel>,
}

impl Shop {
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let shop = Self { dir, store, model: Arc::new(ScriptedModel::new(acts)) };
        std::fs::create_dir(shop.path("files")).unwrap();
        shop
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes `files/NAME`.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path("files").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A caller of `ask` whose candidates are found by rules.
    pub fn caller(&self, user: &str) -> McpCaller {
        let model = Arc::clone(&self.model) as Arc<dyn ChatModel>;
        let models = every_layer(model, self.dir.path(), 8_000, 60_000);
        let project = Project::builtin(&Counter::cl100k());
        let store = self.store.user(user).unwrap();
        let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
        McpCaller {
            engine: Arc::new(engine),
            asking: AskSettings {
                answer: AnswerMode::Generate,
                planner: Planner::Rules,
                limits: AskLimits::default(),
            },
            roots: Arc::new(Roots::open(&[self.path("files")]).unwrap()),
            budget: None,
        }
    }

    /// A caller for whom the model plans, too.
    pub fn planning(&self, user: &str) -> McpCaller {
        let caller = self.caller(user);
        McpCaller { asking: AskSettings { planner: Planner::Model, ..caller.asking }, ..caller }
    }

    pub async fn client(&self, user: &str) -> Client {
        Client::start(self.caller(user)).await
    }

    /// Stores a content of the user's and gives its pointer.
    pub fn pointer(&self, user: &str, content: &[u8]) -> String {
        let stored =
            self.store.user(user).unwrap().pointers().insert(content, "tool_result", "a result").unwrap();
        stored.pointer_id.to_string()
    }
}

/// A client that has begun.
pub struct Client {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    asked: u64,
    /// Notifications so far.
    pub notes: Vec<Value>,
    /// What the server said of itself.
    pub info: Value,
}

impl Client {
    pub async fn start(caller: McpCaller) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        tokio::spawn(serve(caller, input, output));
        let (input, output) = tokio::io::split(ours);
        let input = BufReader::new(input).lines();
        let mut client = Self { input, output, asked: 0, notes: Vec::new(), info: Value::Null };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        client.info = client.ask("initialize", params).await;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    pub async fn send(&mut self, message: &Value) {
        self.raw(&message.to_string()).await;
    }

    /// Sends a line as it is.
    pub async fn raw(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request; gives its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        serde_json::from_str(&self.input.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// The response to a request; no other may come before it.
    pub async fn end(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message.get("id").is_none() {
                self.notes.push(message);
                continue;
            }
            assert_eq!(message["id"], id, "{message}");
            return message;
        }
    }

    /// The result of a request.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let mut message = self.end(id).await;
        assert!(message.get("error").is_none(), "{message}");
        message["result"].take()
    }

    /// The error of a request.
    pub async fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let mut message = self.end(id).await;
        assert!(message.get("result").is_none(), "{message}");
        message["error"].take()
    }

    /// What a tool gives: data and text.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> (Value, String) {
        let mut result = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (result["structuredContent"].take(), text)
    }

    /// What a tool says to whoever can mend it.
    pub async fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}
