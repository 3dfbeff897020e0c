//! A user's vault with a scripted model and scripted tools, in which turns run: fixed clock, counted randomness, no
//! network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]
#![allow(dead_code, reason = "not every test needs every helper")]

pub mod answers;
pub mod story;
pub mod tools;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{BoxStream, StreamExt};
use larder_agent::turn::background::Background;
use larder_agent::turn::{TurnEvent, TurnObserver, TurnRequest, Turns};
use larder_engine::executor::NoopObserver;
use larder_engine::project::Project;
use larder_engine::settings::ToolSettings;
use larder_engine::settings::TurnLimits;
use larder_engine::{Engine, RunPolicy};
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError};
use larder_store::{Clock, DocumentPlace, Documents, Entropy, JobEnd, Store, StoreOptions};
use larder_testkit::layers::every_layer;
use larder_testkit::lived_in;
use larder_testkit::scripted::text;
use larder_text::tokens::Counter;
use larder_tools::{Confirm, ToolBox};
use larder_vault::links::{LinkDestination, NoteOutline, Vault, links};
use larder_vault::{DocumentTime, Mode, Note, VaultPath};
use tempfile::TempDir;
use tokio::sync::Notify;

/// Who else has turns in a vault that has been lived in.
pub const OTHER: &str = "mara";
/// When the year of such a vault ends: before any story.
const YEAR_END: &str = "2025-12-05T00:00:00Z";

/// A clock that shows the time that the test sets.
pub struct SetClock(pub AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> larder_store::Timestamp {
        larder_store::Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Randomness that counts.
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        let count = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        for (at, byte) in bytes.iter_mut().rev().enumerate() {
            *byte = count.iter().rev().nth(at).copied().unwrap_or(0);
        }
        Ok(())
    }
}

/// One answer of the model.
#[derive(Clone, Debug)]
pub enum Say {
    Text(String),
    Fail,
    Hang,
}

/// A model that answers by its script and records its prompts.
#[derive(Default)]
pub struct Model {
    pub script: Mutex<VecDeque<Say>>,
    pub prompts: Mutex<Vec<String>>,
    /// Tokens of everything that it has answered.
    pub took: AtomicU64,
    /// Its reply to requests to condense, which are not in the script; without one, rules condense.
    pub retells: Mutex<Option<String>>,
    /// Notified when it hangs.
    pub hangs: Arc<Notify>,
}

impl Model {
    fn next(&self, request: &ChatRequest) -> Say {
        let prompt: Vec<String> = request.messages.iter().map(|message| message.joined_text()).collect();
        let prompt = prompt.join("\n");
        if let Some(words) = self.retells.lock().unwrap().clone().filter(|_| prompt.starts_with("Shorten ")) {
            return Say::Text(words);
        }
        self.prompts.lock().unwrap().push(prompt);
        self.script.lock().unwrap().pop_front().unwrap_or(Say::Fail)
    }
}

impl ChatModel for Model {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let say = self.next(request);
        async move {
            match say {
                Say::Text(words) => {
                    let reply = text(&words);
                    self.took.fetch_add(reply.usage.input + reply.usage.output, Ordering::SeqCst);
                    Ok(reply)
                }
                Say::Fail => Err(ModelError::NotConfigured {
                    provider: "script".into(),
                    detail: "the script has no answer".into(),
                }),
                Say::Hang => {
                    self.hangs.notify_one();
                    std::future::pending().await
                }
            }
        }
        .boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        let reply = self.chat(request);
        futures::stream::once(reply).map(|reply| reply.map(ChatEvent::Done)).boxed()
    }
}

/// Lets everything through.
struct Yes;

impl Confirm for Yes {
    fn confirm<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, bool> {
        async { true }.boxed()
    }
}

/// Remembers events.
#[derive(Default)]
pub struct Events(pub Mutex<Vec<TurnEvent>>);

impl TurnObserver for Events {
    fn event(&self, event: &TurnEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Events {
    pub fn all(&self) -> Vec<TurnEvent> {
        self.0.lock().unwrap().clone()
    }

    /// Each event by its name, in order.
    pub fn names(&self) -> Vec<String> {
        let name = |event: &TurnEvent| {
            let value = serde_json::to_value(event).unwrap();
            value["event"].as_str().unwrap().to_owned()
        };
        self.all().iter().map(name).collect()
    }
}

/// A user's vault in which turns run.
pub struct World {
    pub turns: Turns,
    pub model: Arc<Model>,
    pub tools: Arc<tools::Script>,
    pub clock: Arc<SetClock>,
    pub events: Events,
    pub store: Store,
    pub documents: Documents,
    /// The first id that this world gives.
    ids: u64,
    dir: TempDir,
}

pub fn millis(at: DocumentTime) -> u64 {
    u64::try_from(at.as_millis()).unwrap()
}

impl World {
    pub fn new(user: &str, now: &str, mode: Mode) -> Self {
        Self::within(tempfile::tempdir().unwrap(), 1, user, now, mode)
    }

    /// A vault in which a year of this user stands, and some turns of another.
    pub fn lived_in(user: &str, now: &str, mode: Mode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let place = DocumentPlace::Folder(dir.path().join("vault"));
        let documents = Documents::open(&store, &place).unwrap();
        lived_in::a_year(&documents, [user, OTHER], YEAR_END.parse().unwrap());
        drop((documents, store));
        Self::within(dir, 1, user, now, mode)
    }

    /// The same vault at a later time, with nothing in its scripts.
    pub fn later(self, user: &str, now: &str, mode: Mode) -> Self {
        let Self { dir, turns, store, documents, ids, .. } = self;
        drop((turns, store, documents));
        // Ids that were given are not given again.
        Self::within(dir, ids + 1_000_000, user, now, mode)
    }

    fn within(dir: TempDir, ids: u64, user: &str, now: &str, mode: Mode) -> Self {
        let clock = Arc::new(SetClock(AtomicU64::new(millis(now.parse().unwrap()))));
        let options = StoreOptions {
            clock: clock.clone(),
            entropy: Arc::new(Counting(AtomicU64::new(ids))),
            ..StoreOptions::default()
        };
        let store = Store::open(&dir.path().join("home"), options).unwrap();
        let place = DocumentPlace::Folder(dir.path().join("vault"));
        let documents = Documents::open(&store, &place).unwrap();
        let model = Arc::new(Model::default());
        let models = every_layer(model.clone(), dir.path(), 32_000, 2_000);
        let project = Project::builtin(&Counter::cl100k());
        let user_store = store.user(user).unwrap();
        let engine =
            Engine::new(project, models, user_store, RunPolicy::default(), Box::new(|_| None)).unwrap();
        let mut toolbox = ToolBox::new(&ToolSettings::default()).unwrap();
        let script = tools::Script::install(&mut toolbox, mode);
        let turns = Turns {
            engine,
            documents: documents.user(user).unwrap(),
            tools: Arc::new(toolbox),
            limits: TurnLimits::default(),
            embedding: None,
            confirm: Arc::new(Yes),
        };
        *script.hangs.lock().unwrap() = Arc::clone(&model.hangs);
        Self { turns, model, tools: script, clock, events: Events::default(), store, documents, ids, dir }
    }

    /// Removes what waits in the queue.
    pub fn cancel_jobs(&self) {
        let jobs = self.turns.engine.store.jobs();
        jobs.list().unwrap().iter().for_each(|job| drop(jobs.cancel(job.id).unwrap()));
    }

    /// Does what waits in the queue, one after the other.
    pub async fn work_off(&self) {
        let (engine, documents) = (self.turns.engine.clone(), self.turns.documents.clone());
        let background = Background { engine, documents, embedding: self.turns.embedding.clone() };
        let worker = self.store.job_queue().acquire().unwrap().unwrap();
        while let Some(job) = worker.claim().unwrap() {
            let after = serde_json::from_value(job.payload.clone()).unwrap();
            // Where a test has no model for vectors, none are created.
            let next = background.work(&job.kind, &after, &NoopObserver).await.ok().flatten();
            next.iter().for_each(|next| self.turns.engine.store.jobs().add(next).unwrap());
            worker.end(&job, &JobEnd::Done).unwrap();
        }
    }

    pub fn vault(&self) -> PathBuf {
        self.dir.path().join("vault")
    }

    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// Tokens that the model has taken so far.
    pub fn took(&self) -> u64 {
        self.model.took.load(Ordering::SeqCst)
    }

    pub fn says(&self, answers: impl IntoIterator<Item = String>) {
        self.model.script.lock().unwrap().extend(answers.into_iter().map(Say::Text));
    }

    pub fn script(&self, says: impl IntoIterator<Item = Say>) {
        *self.model.script.lock().unwrap() = says.into_iter().collect();
    }

    pub async fn ask(&self, query: &str) -> larder_agent::turn::TurnOutcome {
        self.turns.run(&request(query), &self.events).await.unwrap()
    }

    /// The files of a turn by their path in its folder.
    pub fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.vault().join(folder);
        let mut found = BTreeMap::new();
        walk(&root, &root, &mut found);
        found
    }

    /// One file of a turn, as text.
    pub fn text(&self, folder: &str, name: &str) -> String {
        let files = self.files(folder);
        let bytes =
            files.get(name).unwrap_or_else(|| panic!("{name} is not in {folder}: {:?}", files.keys()));
        String::from_utf8(bytes.clone()).unwrap()
    }

    /// Every link of the vault that leads nowhere.
    pub fn broken_links(&self) -> Vec<String> {
        self.broken(|fragment| fragment.starts_with('^'))
    }

    /// Links to headings that are not there.
    pub fn missing_headings(&self) -> Vec<String> {
        self.broken(|fragment| !fragment.starts_with('^'))
    }

    /// Links to no file, and those of these fragments to no part of one.
    fn broken(&self, is_checked: impl Fn(&str) -> bool) -> Vec<String> {
        let mut all = BTreeMap::new();
        walk(&self.vault(), &self.vault(), &mut all);
        let paths = all.keys().filter_map(|name| VaultPath::new(name));
        let vault = Vault::new(paths);
        let mut broken = Vec::new();
        for (name, bytes) in all.iter().filter(|(name, _)| name.ends_with(".md")) {
            let from = VaultPath::new(name).unwrap();
            for link in links(&String::from_utf8_lossy(bytes)) {
                let leads = match (vault.resolve(&from, &link), &link.fragment) {
                    (LinkDestination::Missing, _) => false,
                    (LinkDestination::File(to), Some(fragment)) if is_checked(fragment) => {
                        let text = String::from_utf8_lossy(&all[to.as_str()]);
                        NoteOutline::parse(&text).find(fragment).is_some()
                    }
                    _ => true,
                };
                if !leads {
                    broken.push(format!("{name}: {}", link.destination()));
                }
            }
        }
        broken
    }

    /// Ids that two documents of the vault have, and notes without an id.
    pub fn repeated_ids(&self) -> Vec<String> {
        let mut all = BTreeMap::new();
        walk(&self.vault(), &self.vault(), &mut all);
        let mut seen = std::collections::BTreeSet::new();
        let notes = all.iter().filter(|(name, _)| name.ends_with(".md"));
        let id = |bytes: &[u8]| Note::parse(&String::from_utf8_lossy(bytes)).frontmatter.get("id");
        let ids = notes.map(|(name, bytes)| id(bytes).map_or_else(|| name.clone(), |id| id.to_string()));
        ids.filter(|id| id.ends_with(".md") || !seen.insert(id.clone())).collect()
    }
}

pub fn request(query: &str) -> TurnRequest {
    TurnRequest { query: query.to_owned(), mode: Mode::Chat, session: None, workspace: None }
}

pub fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(root, &path, found);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
}
