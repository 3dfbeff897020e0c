//! Conversations of a project without a network: every model is one that answers as a test says.

use std::path::Path;
use std::sync::{Arc, Mutex};

use larder_conversation::{Conversation, Conversations};
use larder_engine::executor::NoopObserver;
use larder_engine::project::Project;
use larder_engine::{Engine, RunPolicy};
use larder_models::connect::Models;
use larder_store::{Store, StoreOptions};
use larder_text::tokens::Counter;

use crate::layers::{Answering, Outcome, every_layer, small_nerves};

/// The window of the model, and the milliseconds that a call may take.
const WINDOW: usize = 200_000;
const TIMEOUT_MS: u64 = 10_000;

/// Conversations in a home of their own, with the prompts that were sent for them.
pub struct Talks {
    /// The home folder.
    pub home: tempfile::TempDir,
    /// The conversations of `ann`.
    pub all: Conversations,
    /// The prompts so far, of all users.
    pub prompts: Arc<Mutex<Vec<String>>>,
    project: tempfile::TempDir,
    model: Arc<Answering>,
}

impl Talks {
    /// Conversations of a copy of the project in a folder. Prompts are answered by `answer`.
    pub fn new(project: &Path, answer: impl Fn(&str) -> Outcome + Send + Sync + 'static) -> Self {
        Self::with_changes(project, &[], answer)
    }

    /// As [`new`](Self::new), with changes in the files of the copy: path, text that is there, and what takes its place.
    pub fn with_changes(
        project: &Path,
        changes: &[(&str, &str, &str)],
        answer: impl Fn(&str) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(project, copy.path());
        for (path, from, to) in changes {
            let file = copy.path().join(path);
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(text.contains(from), "{path} has no {from:?}");
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, if from.is_empty() { (*to).to_owned() } else { text.replace(from, to) })
                .unwrap();
        }
        let home = tempfile::tempdir().unwrap();
        let model = Arc::new(Answering::trying(answer));
        let prompts = model.prompts();
        let all = conversations(home.path(), copy.path(), &model, "ann");
        Self { home, all, prompts, project: copy, model }
    }

    /// The conversations of another user of the same home.
    pub fn of(&self, user: &str) -> Conversations {
        conversations(self.home.path(), self.project.path(), &self.model, user)
    }

    /// The conversations of `ann` where the model of layer NERVES has a window of so many tokens.
    pub fn with_small_nerves(&self, window: usize) -> Conversations {
        let models =
            small_nerves(Arc::clone(&self.model) as _, self.home.path(), (window, WINDOW), TIMEOUT_MS);
        with_models(self.home.path(), self.project.path(), models, "ann")
    }

    /// Begins a conversation in which `ann` is alone.
    pub fn begin(&self, kind: &str) -> Conversation {
        let record = self.all.begin(kind, "A talk", &[]).unwrap();
        self.all.open(&record.id, None).unwrap()
    }

    /// Says something, and returns the prompt of the reply.
    pub async fn say(&self, talk: &Conversation, text: &str) -> String {
        talk.say(text, &NoopObserver).await.unwrap();
        self.last_prompt()
    }

    /// The last prompt that was sent.
    pub fn last_prompt(&self) -> String {
        self.prompts.lock().unwrap().last().unwrap().clone()
    }

    /// The prompts so far with these words.
    pub fn prompts_with(&self, words: &str) -> Vec<String> {
        let prompts = self.prompts.lock().unwrap();
        prompts.iter().filter(|prompt| prompt.contains(words)).cloned().collect()
    }

    /// Does all jobs of `ann` that wait, once.
    pub async fn work(&self) {
        work(&self.all).await;
    }
}

/// Does all jobs of a user that wait, once; those that fail go, too.
pub async fn work(all: &Conversations) {
    for job in all.engine.store.jobs().list().unwrap() {
        let after = serde_json::from_value(job.payload.clone()).unwrap();
        if let Err(error) = all.work(&job.kind, &after, &NoopObserver).await {
            tracing::info!(kind = job.kind, %error, "the job failed");
        }
        all.engine.store.jobs().cancel(job.id).unwrap();
    }
}

fn conversations(home: &Path, project: &Path, model: &Arc<Answering>, user: &str) -> Conversations {
    with_models(home, project, every_layer(Arc::clone(model) as _, home, WINDOW, TIMEOUT_MS), user)
}

fn with_models(home: &Path, project: &Path, models: Models, user: &str) -> Conversations {
    let store = Store::open(home, StoreOptions::default()).unwrap().user(user).unwrap();
    let project = Project::open(project, &Counter::cl100k()).unwrap();
    let engine = Engine::new(project, models, store, RunPolicy::default(), Box::new(|_| None)).unwrap();
    Conversations::new(engine, None)
}

/// Copies a folder with everything in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
