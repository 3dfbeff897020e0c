//! Everything that a call needs: an engine over a model that answers by its prompt, one user's documents,
//! a workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt};
use larder_engine::executor::RemainingBudget;
use larder_engine::executor::{Meter, NoopObserver};
use larder_engine::project::Project;
use larder_engine::settings::ToolSettings;
use larder_engine::{Engine, RunPolicy};
use larder_store::{DocumentPlace, Documents, Store, StoreOptions, UserDocuments};
use larder_testkit::layers::{Answering, every_layer};
use larder_text::tokens::Counter;
use larder_tools::{Confirm, ToolBox, ToolContext, ToolOutput};
use larder_vault::layout::{TurnPlace, UserPlace};
use larder_vault::{DocumentTime, Intent, Mode};
use serde_json::Value;
use tempfile::TempDir;

/// Says the same to everything and counts how often it was asked.
pub struct Answers(pub bool, pub AtomicUsize);

impl Confirm for Answers {
    fn confirm<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, bool> {
        self.1.fetch_add(1, Ordering::SeqCst);
        async { self.0 }.boxed()
    }
}

pub struct Fixture {
    engine: Engine,
    pub documents: UserDocuments,
    pub toolbox: ToolBox,
    pub turn: TurnPlace,
    pub files: BTreeMap<String, Vec<u8>>,
    pub mode: Mode,
    pub now: DocumentTime,
    pub intent: Option<Intent>,
    pub topic: Option<&'static str>,
    pub workspace: PathBuf,
    pub confirm: Answers,
    pub budget: RemainingBudget,
    pub query: String,
    pub prompts: Arc<Mutex<Vec<String>>>,
    /// What calls took.
    pub meter: Meter<'static>,
    _dir: TempDir,
}

/// Settings that let tests visit servers on the loopback address.
pub fn settings() -> ToolSettings {
    ToolSettings { private_hosts: vec!["127.0.0.1".parse().unwrap()], ..ToolSettings::default() }
}

pub fn now() -> DocumentTime {
    "2026-01-05T10:00:00Z".parse().unwrap()
}

impl Fixture {
    pub fn new(settings: &ToolSettings) -> Self {
        Self::answering(settings, |prompt| panic!("nobody is to be asked: {prompt}"))
    }

    pub fn answering(
        settings: &ToolSettings,
        answer: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let folder = DocumentPlace::Folder(dir.path().join("documents"));
        let documents = Documents::open(&store, &folder).unwrap().user("ann").unwrap();
        let model = Answering::new(answer);
        let prompts = model.prompts();
        let models = every_layer(Arc::new(model), dir.path(), 32_000, 5_000);
        let project = Project::builtin(&Counter::cl100k());
        let user = store.user("ann").unwrap();
        let engine = Engine::new(project, models, user, RunPolicy::default(), Box::new(|_| None)).unwrap();
        let workspace = dir.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        Self {
            engine,
            documents,
            toolbox: ToolBox::new(settings).unwrap(),
            turn: UserPlace::new("ann").turn(7),
            files: BTreeMap::new(),
            mode: Mode::Chat,
            now: now(),
            intent: None,
            topic: None,
            workspace,
            confirm: Answers(true, AtomicUsize::new(0)),
            budget: RemainingBudget::default(),
            query: "find me the cheapest laptop with nvidia gpu".to_owned(),
            prompts,
            meter: Meter::new(&NoopObserver, None, None),
            _dir: dir,
        }
    }

    pub fn code(settings: &ToolSettings) -> Self {
        Self { mode: Mode::Code, ..Self::new(settings) }
    }

    pub async fn call(&self, name: &str, arguments: Value) -> ToolOutput {
        let context = ToolContext {
            engine: &self.engine,
            documents: &self.documents,
            counter: &Counter::cl100k(),
            turn: &self.turn,
            draft_files: &self.files,
            original_query: &self.query,
            intent: self.intent,
            topic: self.topic,
            mode: self.mode,
            now: self.now,
            workspace: Some(&self.workspace),
            confirm: &self.confirm,
            observer: &self.meter,
            begun: &|| Ok(()),
            budget: self.budget,
        };
        self.toolbox.call(name, &arguments, &context).await
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.workspace.join(name), bytes).unwrap();
    }
}

pub fn words(output: &ToolOutput) -> String {
    String::from_utf8_lossy(&output.content).into_owned()
}
